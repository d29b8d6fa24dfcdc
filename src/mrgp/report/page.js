"use strict";

// What the page was given, and what the reader has chosen.
const content = JSON.parse(document.getElementById("content").textContent);
const byId = (name) => document.getElementById(name);
const columns = content.grid.x.values.length;
const cells = content.grid.rows * columns;
const chosen = {
  task: 0,
  layer: "mean",
  span: 0,
  step: 0,
  at: null,
  row: 0,
  column: 0,
  threshold: [],
  hidden: new Set(),
  noise: false,
  colours: "all",
  marks: "values",
  site: null,
  picking: false,
  ends: [],
};
for (const span of content.spans) {
  span.steps = Math.max(span.values.length, 1);
  for (const field of span.fields) Object.assign(field, { total: cells * span.steps, counts: span.counts });
}

// What the slider goes over: values at a time, or means over periods.
const spanNow = () => content.spans[chosen.span];
const fieldNow = () => spanNow().fields[chosen.task];
const isMean = () => spanNow().label !== "values at a time";
const timeNow = () => (content.grid.slider ? spanNow().values[chosen.step] : "");

// The time of the slider as it is spoken of: a number with the name of its input.
const named = (time) => (content.grid.slider && !content.grid.slider.dates && time !== "" ? `${content.grid.slider.name} ${coordinate(time)}` : String(time));

// The noise of one value, or of the mean of as many as a period has.
function noiseOf(field, step) {
  const noise = content.noise[chosen.task];
  return chosen.noise && noise ? noise[1] / Math.sqrt(field.counts[step] || 1) : 0;
}
const noiseNow = () => noiseOf(fieldNow(), chosen.step);
// What is shown is of values with their noise: a mean stays where it is.
const noiseWords = (layer = chosen.layer) => (noiseNow() && layer !== "mean" ? ` with the noise of ${content.noise[chosen.task][0]}` : "");

// The ends of a layer over all steps, the noise of values in it where that is chosen.
function endsOfAll(field, layer) {
  const all = field.range[layer];
  const whole = content.grid.blank.length === 0;
  if (whole && (!noiseNow() || (field.scale === "real" && layer === "mean"))) return all;
  const steps = Array.from({ length: spanNow().steps }, (_, step) => step);
  if (whole && field.scale === "real") {
    const noises = steps.map((step) => noiseOf(field, step));
    return [Math.hypot(all[0], Math.min(...noises)), Math.hypot(all[1], Math.max(...noises))];
  }
  field.ends ??= {};
  const key = `${layer}${noiseNow() ? " noisy" : ""}`;
  field.ends[key] ??= endsOf(steps.flatMap((step) => endsOf(layerValues(layer, step, field))));
  return field.ends[key];
}

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

// What is Gaussian: the field itself, its logarithm, or z of a share Phi(z). Thresholds go onto that
// scale; mean and sd of the field come back from it.
const SCALES = {
  real: { words: "", onto: (value) => value, back: (z) => z, moments: (mean, sd) => [mean, sd] },
  log: {
    words: " of the logarithm",
    onto: (value) => (value > 0 ? Math.log(value) : -Infinity),
    back: Math.exp,
    moments(location, sd) {
      const mean = Math.exp(location + 0.5 * sd * sd);
      return [mean, mean * Math.sqrt(Math.expm1(sd * sd))];
    },
  },
  probit: {
    words: " on the probit scale",
    onto: probit,
    back: (z) => tail(-z),
    moments(location, sd) {
      const h = location / Math.hypot(1, sd);
      return [tail(-h), Math.sqrt(spreadOfShare(h, (sd * sd) / (1 + sd * sd)))];
    },
  },
};

// The z below which a standard normal value is with a probability.
function probit(share) {
  if (share <= 0 || share >= 1) return share <= 0 ? -Infinity : Infinity;
  let [low, high] = [-40, 40];
  for (let i = 0; i < 60; i++) {
    const middle = 0.5 * (low + high);
    if (tail(-middle) < share) low = middle;
    else high = middle;
  }
  return 0.5 * (low + high);
}

// P(z < h, z' < h) - Phi(h)^2 for a correlation, by Simpson's rule over its angle.
function spreadOfShare(h, correlation) {
  const width = Math.asin(correlation) / 16;
  let sum = 0;
  for (let i = 0; i <= 16; i++) {
    const share = i === 0 || i === 16 ? 1 : i % 2 ? 4 : 2;
    sum += share * Math.exp((-h * h) / (1 + Math.sin(i * width)));
  }
  return (sum * width) / (6 * Math.PI);
}

// The Gaussians of `count` cells from `start` on, one for each component of the mixture.
function gaussians(field, start, count) {
  const total = field.total;
  const noise = noiseOf(field, Math.floor(start / cells));
  const scale = SCALES[field.scale];
  const found = [];
  const rest = new Float32Array(count).fill(1);
  for (let k = 0; k < field.components; k++) {
    const last = k === field.components - 1;
    const weight = last ? rest : unpack(field.weights, k * total + start, count);
    if (!last) for (let i = 0; i < count; i++) rest[i] -= weight[i];
    const sd = unpack(field.sds, k * total + start, count);
    found.push({
      weight,
      scale,
      mean: unpack(field.means, k * total + start, count),
      sd: noise ? sd.map((value) => Math.hypot(value, noise)) : sd,
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

function moments(parts, count, scale = parts[0].scale) {
  const mean = new Float32Array(count);
  const sd = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    let first = 0;
    let second = 0;
    const each = parts.map((part) => scale.moments(part.mean[i], part.sd[i]));
    parts.forEach((part, k) => (first += part.weight[i] * each[k][0]));
    parts.forEach((part, k) => (second += part.weight[i] * (each[k][1] ** 2 + (each[k][0] - first) ** 2)));
    mean[i] = first;
    sd[i] = Math.sqrt(second);
  }
  return { mean, sd };
}

function above(parts, count, threshold) {
  const found = new Float32Array(count);
  const limit = parts[0].scale.onto(threshold);
  for (let i = 0; i < count; i++) {
    for (const part of parts) {
      found[i] += part.weight[i] * tail((limit - part.mean[i]) / Math.max(part.sd[i], 1e-30));
    }
  }
  return found;
}

// Values of a layer at a step, none outside the areas of the data.
function layerValues(layer = chosen.layer, step = chosen.step, field = fieldNow()) {
  const parts = gaussians(field, step * cells, cells);
  const found = layer === "above"
    ? above(parts, cells, chosen.threshold[chosen.task])
    : moments(parts, cells)[layer];
  for (const cell of content.grid.blank) found[cell] = NaN;
  return found;
}

const blank = new Set(content.grid.blank);
const isBlank = (row, column) => blank.has(row * columns + column);

function valuesAt(step, row, column, field = fieldNow()) {
  if (isBlank(row, column)) return { mean: NaN, sd: NaN, low: NaN, high: NaN, above: NaN };
  const parts = gaussians(field, step * cells + row * columns + column, 1);
  const { mean, sd } = moments(parts, 1);
  // Two sd to both sides where it is Gaussian: a positive field has no band below zero.
  const own = moments(parts, 1, SCALES.real);
  const [low, high] = [-2, 2].map((away) => parts[0].scale.back(own.mean[0] + away * own.sd[0]));
  return { mean: mean[0], sd: sd[0], low, high, above: above(parts, 1, chosen.threshold[chosen.task])[0] };
}

const bandName = (field) => `± 2 sd${SCALES[field.scale].words}`;
const coordinate = (value) => (typeof value === "number" ? Number(value.toPrecision(6)).toString() : value);
const digits = (value) => Number(value.toPrecision(4)).toString();
const withUnits = (name, units) => (units ? `${name} (${units})` : name);
// Values of a source with a bias are on a scale of its own: the map is without it.
const isBiased = (source) => content.biased.includes(source);
const asSaid = (source) => (isBiased(source) ? ", as the source says, bias included" : "");
const unitOf = (units) => (units ? ` ${units}` : "");

// As many decimals as a tenth of a cell needs.
function decimalsOf({ values, dates }) {
  const cell = Math.abs(values[values.length - 1] - values[0]) / (values.length - 1);
  return dates || !(cell > 0) ? null : Math.min(Math.max(1 - Math.floor(Math.log10(cell)), 0), 12);
}

function sideWords(side, i) {
  const decimals = decimalsOf(side);
  return decimals === null ? coordinate(side.values[i]) : String(Number(side.values[i].toFixed(decimals)));
}

// Where, and where and when, in words.
function placeOnly(row, column) {
  const { x, y } = content.grid;
  return `${x.name} ${sideWords(x, column)}${y ? `, ${y.name} ${sideWords(y, row)}` : ""}`;
}

function placeWords(row, column, time = timeNow()) {
  return [placeOnly(row, column), ...(content.grid.slider ? [named(time)] : [])].join(", ");
}

// A probability with four decimals; one that they cannot tell from nought or one is beyond them.
function chance(p) {
  if (p < 0.0001) return "< 0.0001";
  return p > 0.9999 ? "> 0.9999" : `= ${p.toFixed(4)}`;
}

function readout(row, column) {
  const field = fieldNow();
  const found = valuesAt(chosen.step, row, column);
  const units = unitOf(field.units);
  const limit = digits(chosen.threshold[chosen.task]);
  const what = isMean() ? spanNow().label : "mean";
  const noise = noiseNow() ? `; sd and probability${noiseWords("sd")}` : "";
  const said =
    `${what} ${digits(found.mean)}${units}, sd ${digits(found.sd)}${units}, ` +
    `P(${field.label} > ${limit}${units}) ${chance(found.above)}${noise}`;
  byId("readout").textContent = `${placeWords(row, column)}: ${isBlank(row, column) ? "outside all areas of the data" : said}`;
  byId("tells").textContent = tellsHere(row, column);
}

// How much wider the prediction would be without each source, on a coarse grid of places and at a
// few times: of others nothing is known.
function tellsHere(row, column) {
  const tells = content.tells[chosen.task];
  if (!tells || tells.why || chosen.span !== 0) return tells?.why ?? "";
  const step = tells.steps.indexOf(chosen.step);
  const times = tells.steps.map((n) => named(spanNow().values[n]));
  if (step < 0) return `What each source tells here was computed for some times alone: ${times.join("; ")}.`;
  const nearest = (values, at) => values.reduce((best, v, i) => (Math.abs(v - at) < Math.abs(values[best] - at) ? i : best), 0);
  const [line, along] = [nearest(tells.rows, row), nearest(tells.columns, column)];
  const index = (step * tells.rows.length + line) * tells.columns.length + along;
  const [all] = unpack(tells.sd, index, 1);
  const units = unitOf(fieldNow().units);
  const said = Object.entries(tells.without).map(([name, packed]) => {
    const [sd] = unpack(packed, index, 1);
    const share = Math.max(0, 1 - (all / sd) ** 2);
    return `without ${name} ${digits(sd)}${units} (with ${name} that variance is ${(100 * share).toFixed(0)} % less)`;
  });
  const at = placeWords(tells.rows[line], tells.columns[along]);
  return `What each source tells at ${at}, the nearest place for which it was computed: the sd is ${digits(all)}${units}; ${said.join("; ")}.`;
}
