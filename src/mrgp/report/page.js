"use strict";

// What the page was given, and what the reader has chosen.
const content = JSON.parse(document.getElementById("content").textContent);
const byId = (name) => document.getElementById(name);
const columns = content.grid.x.values.length;
const cells = content.grid.rows * columns;
const chosen = { task: 0, layer: "mean", step: 0, row: 0, column: 0, threshold: [], hidden: new Set() };

// Numbers are packed as base64 text; bytes are made of it once, and values of one step when shown.
function bytesOf(packed) {
  if (!packed.bytes) {
    const text = atob(packed.data);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    packed.bytes = packed.type === "uint16" ? new Uint16Array(bytes.buffer) : new Float32Array(bytes.buffer);
    packed.data = null;
  }
  return packed.bytes;
}

function unpack(packed, start, count) {
  const raw = bytesOf(packed).subarray(start, start + count);
  if (packed.type === "float32") return raw;
  const values = new Float32Array(count);
  const growth = packed.log ? Math.log(packed.high / packed.low) / 65535 : (packed.high - packed.low) / 65535;
  for (let i = 0; i < count; i++) {
    values[i] = packed.log ? packed.low * Math.exp(growth * raw[i]) : packed.low + growth * raw[i];
  }
  return values;
}

// The Gaussians of `count` cells from `start` on, one for each component of the mixture.
function gaussians(field, start, count) {
  const total = cells * content.grid.steps;
  const found = [];
  const rest = new Float32Array(count).fill(1);
  for (let k = 0; k < field.components; k++) {
    const last = k === field.components - 1;
    const weight = last ? rest : unpack(field.weights, k * total + start, count);
    if (!last) for (let i = 0; i < count; i++) rest[i] -= weight[i];
    found.push({
      weight,
      mean: unpack(field.means, k * total + start, count),
      sd: unpack(field.sds, k * total + start, count),
    });
  }
  return found;
}

// The probability that a standard normal value is above z: a series near zero, a continued
// fraction in the tail.
function tail(z) {
  const a = Math.abs(z);
  const density = Math.exp(-0.5 * a * a) / Math.sqrt(2 * Math.PI);
  let found;
  if (a < 3) {
    let term = a;
    let sum = a;
    for (let i = 3; term > 1e-13 * sum; i += 2) {
      term *= (a * a) / i;
      sum += term;
    }
    found = 0.5 - density * sum;
  } else {
    let fraction = 0;
    for (let i = 24; i >= 1; i--) fraction = i / (a + fraction);
    found = density / (a + fraction);
  }
  return z > 0 ? found : 1 - found;
}

function moments(parts, count) {
  const mean = new Float32Array(count);
  const sd = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    let first = 0;
    let second = 0;
    for (const part of parts) first += part.weight[i] * part.mean[i];
    for (const part of parts) second += part.weight[i] * (part.sd[i] ** 2 + (part.mean[i] - first) ** 2);
    mean[i] = first;
    sd[i] = Math.sqrt(second);
  }
  return { mean, sd };
}

function above(parts, count, threshold) {
  const found = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    for (const part of parts) {
      found[i] += part.weight[i] * tail((threshold - part.mean[i]) / Math.max(part.sd[i], 1e-30));
    }
  }
  return found;
}

// Values of the chosen layer at the step shown.
function layerValues() {
  const field = content.fields[chosen.task];
  const parts = gaussians(field, chosen.step * cells, cells);
  return chosen.layer === "above"
    ? above(parts, cells, chosen.threshold[chosen.task])
    : moments(parts, cells)[chosen.layer];
}

function valuesAt(step, row, column) {
  const field = content.fields[chosen.task];
  const parts = gaussians(field, step * cells + row * columns + column, 1);
  const { mean, sd } = moments(parts, 1);
  return { mean: mean[0], sd: sd[0], above: above(parts, 1, chosen.threshold[chosen.task])[0] };
}

const coordinate = (value) => (typeof value === "number" ? Number(value.toPrecision(6)).toString() : value);
const digits = (value) => Number(value.toPrecision(4)).toString();
const withUnits = (name, units) => (units ? `${name} (${units})` : name);

function readout(row, column) {
  const field = content.fields[chosen.task];
  const found = valuesAt(chosen.step, row, column);
  const units = field.units ? ` ${field.units}` : "";
  const place = [`${content.grid.x.name} ${coordinate(content.grid.x.values[column])}`];
  if (content.grid.y) place.push(`${content.grid.y.name} ${coordinate(content.grid.y.values[row])}`);
  const slider = content.grid.slider;
  if (slider) place.push(`${slider.dates ? "" : `${slider.name} `}${coordinate(slider.values[chosen.step])}`);
  const limit = digits(chosen.threshold[chosen.task]);
  byId("readout").textContent =
    `${place.join(", ")}: mean ${digits(found.mean)}${units}, sd ${digits(found.sd)}${units}, ` +
    `P(${field.task} > ${limit}) = ${found.above.toFixed(4)}`;
}

// Controls: native elements, so that keyboards and screen readers know them.
function addOptions() {
  content.fields.forEach((field, i) => {
    chosen.threshold[i] = field.threshold;
    const option = document.createElement("option");
    option.value = i;
    option.textContent = withUnits(field.task, field.units);
    byId("task").append(option);
  });
  byId("task-control").hidden = content.fields.length < 2;
  content.sources.forEach((source, i) => {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => {
      if (box.checked) chosen.hidden.delete(i);
      else chosen.hidden.add(i);
      redraw();
    });
    const symbol = document.createElement("span");
    symbol.className = "symbol";
    symbol.setAttribute("aria-hidden", "true");
    symbol.textContent = symbolOf(source, i).text;
    label.dataset.task = source.task;
    label.append(box, " ", symbol, ` ${source.name}`);
    byId("shown-sources").append(label);
  });
  byId("shown-sources").hidden = content.sources.length === 0;
  if (content.grid.slider && content.grid.steps > 1) {
    byId("slider-control").hidden = false;
    byId("slider-label").textContent = content.grid.slider.label;
    byId("slider").max = content.grid.steps - 1;
  }
  chosen.row = Math.floor(content.grid.rows / 2);
  chosen.column = Math.floor(columns / 2);
}

function showChoice() {
  const field = content.fields[chosen.task];
  byId("threshold").value = chosen.threshold[chosen.task];
  byId("units").textContent = field.units || "";
  if (content.grid.slider) {
    const value = String(coordinate(content.grid.slider.values[chosen.step]));
    byId("slider-value").textContent = value;
    byId("slider").setAttribute("aria-valuetext", value);
  }
  for (const label of document.querySelectorAll("#shown-sources label")) {
    label.hidden = label.dataset.task !== field.task;
  }
}

function listen() {
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("task").addEventListener("change", (event) => {
    chosen.task = Number(event.target.value);
    showChoice();
    redraw();
  });
  for (const radio of document.querySelectorAll("input[name=layer]")) {
    radio.addEventListener("change", () => {
      chosen.layer = radio.value;
      redraw();
    });
  }
  byId("threshold").addEventListener("input", (event) => {
    const value = event.target.valueAsNumber;
    event.target.setAttribute("aria-invalid", String(!Number.isFinite(value)));
    if (!Number.isFinite(value)) return;
    chosen.threshold[chosen.task] = value;
    redraw();
  });
  byId("slider").addEventListener("input", (event) => {
    chosen.step = Number(event.target.value);
    showChoice();
    redraw();
  });
  byId("view").addEventListener("keydown", moveMark);
  window.addEventListener("resize", redrawAll);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
}

// Arrow keys move the marked place over the map or along the curve.
function moveMark(event) {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, 0], ArrowDown: [-1, 0] }[event.key];
  if (!step || event.target !== byId("view")) return;
  event.preventDefault();
  const upward = content.grid.y && content.grid.y.values[0] > content.grid.y.values[content.grid.rows - 1] ? -1 : 1;
  const inside = (value, count) => Math.min(Math.max(value, 0), count - 1);
  chosen.row = inside(chosen.row + upward * step[0], content.grid.rows);
  chosen.column = inside(chosen.column + step[1], columns);
  redraw();
}
