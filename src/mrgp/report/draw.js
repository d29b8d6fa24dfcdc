// Drawings, by plotly.js. Only what is shown is computed, and only once a frame.

const LINES = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"];
const MARKS = [
  { symbol: "circle", text: "●" },
  { symbol: "diamond", text: "◆" },
  { symbol: "triangle-up", text: "▲" },
  { symbol: "square", text: "■" },
];
const DASHES = ["solid", "dash", "dot", "dashdot"];
const BAND = "rgba(0,114,178,0.25)";
const NARROW = 600;
// How wide a letter of a title is about, in pixels.
const LETTER = 8;

function symbolOf(source, i) {
  return source.shape === "points" ? MARKS[i % MARKS.length] : { symbol: "square-open", text: "▢" };
}

const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isNarrow = () => byId("view").clientWidth < NARROW;
// Buttons are for the map alone: other charts are pictures to a screen reader.
const settings = (bar) => ({
  displaylogo: false,
  responsive: false,
  displayModeBar: bar && !isNarrow() ? "hover" : false,
  // All that there are: others of the library would send the chart away.
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
});

function axis(title, dates) {
  return {
    title: { text: safe(title) },
    type: dates ? "date" : "linear",
    gridcolor: theme("--line"),
    zeroline: false,
    automargin: true,
    linecolor: theme("--line"),
  };
}

// Plotly reads some tags in its texts: names are to stay as they are.
function safe(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function canvas(width, height, more) {
  return {
    width,
    height,
    margin: { l: 60, r: 16, t: 24, b: 48 },
    paper_bgcolor: theme("--paper"),
    plot_bgcolor: theme("--paper"),
    font: { family: "system-ui, sans-serif", size: 13, color: theme("--text") },
    hoverlabel: { font: { family: "system-ui, sans-serif" }, namelength: 40 },
    dragmode: window.matchMedia("(pointer: coarse)").matches || isNarrow() ? false : "zoom",
    legend: { orientation: "h", yanchor: "bottom", y: 1.02, x: 0 },
    ...more,
  };
}

// The least and the greatest of the values shown.
function endsOf(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low < high ? [low, high] : [low - 0.5, low + 0.5];
}

function layerLook(field, values) {
  const of = !isMean() ? safe(field.label) : `${safe(field.label)}, ${safe(spanNow().label)}`;
  const noise = safe(noiseWords());
  const titled = withUnits(`${of}${noise}`, safe(field.units || ""));
  if (chosen.layer === "above") {
    const limit = `${digits(chosen.threshold[chosen.task])} ${safe(field.units || "")}`.trim();
    return { title: `P(${of}${noise} > ${limit})`, colours: "Viridis", ends: [0, 1] };
  }
  const ends = values && chosen.colours === "shown" ? endsOf(values) : endsOfAll(field, chosen.layer);
  if (chosen.layer === "sd") return { title: `sd of ${titled}`, colours: "Cividis", ends };
  // What is the mean over a period is named by it.
  return { title: isMean() ? titled : `mean of ${titled}`, colours: "Viridis", ends };
}

// A title in lines of at most so many letters, broken between words.
function wrapped(title, most) {
  const lines = [];
  for (const part of title.split("<br>")) {
    let line = "";
    for (const word of part.split(" ")) {
      const longer = line ? `${line} ${word}` : word;
      const full = line !== "" && longer.replace(/&[a-z]+;/g, "-").length > most;
      if (full) lines.push(line);
      line = full ? word : longer;
    }
    lines.push(line);
  }
  return lines;
}

// How many letters of a title have room beside or above the colours.
function roomForTitle() {
  const width = byId("view").clientWidth;
  const { l, r, t, b } = mapMargin();
  return Math.floor((isNarrow() ? width - l - r : mapHeight(width) - t - b) / LETTER);
}

// Where a map is pointed at: the names of its inputs, with as many digits as its readout has.
function hoverPlace() {
  const { x, y } = content.grid;
  const side = (which, at) => `${plainly(which.name)} %{${at}${decimalsOf(which) === null ? "" : `:.${decimalsOf(which)}~f`}}`;
  return `${side(x, "x")}, ${side(y, "y")}`;
}

function heatmap(field, look, values) {
  const rows = [];
  for (let r = 0; r < content.grid.rows; r++) rows.push(values.subarray(r * columns, (r + 1) * columns));
  const low = isNarrow();
  return {
    type: "heatmap",
    x: content.grid.x.values,
    y: content.grid.y.values,
    z: rows,
    colorscale: look.colours,
    zmin: look.ends[0],
    zmax: look.ends[1],
    colorbar: {
      // A long title would be cut where a map is low, or narrow.
      title: { text: wrapped(look.title.replace(" per unit", "<br>per unit"), roomForTitle()).join("<br>"), side: low ? "top" : "right" },
      orientation: low ? "h" : "v",
      thickness: 14,
      ...(low ? { y: 1.02, yanchor: "bottom", len: 1 } : {}),
    },
    // Blank cells have nothing to tell.
    hoverongaps: false,
    hovertemplate: `${look.title}<br>${hoverPlace()}<br>${whenOnly()}%{z:.4g}${hoverUnits(field)}<extra></extra>`,
    name: "prediction",
  };
}

// The time of the slider, or the period and that marks are means of the values in it.
function whenWords() {
  if (chosen.span === 0) return whenOnly();
  return `${safe(spanNow().label)}, ${safe(timeNow())}<br>mean of its values then: `;
}

// What pointing at a line or dots tells: what it is, where along it, the value with its unit.
function told(trace, what, units, x = alongSlider()) {
  return { ...trace, hovertemplate: `${plainly(what)}<br>${x}<br>%{y:.4g}${plainly(unitOf(units))}<extra></extra>` };
}

// Text in a template of plotly's, where a name may look like a part of it.
const plainly = (text) => safe(text).replaceAll("%{", "%&#123;");

// Where along the slider a value is: a date, or a number with the name of its input.
function alongSlider() {
  const { slider } = content.grid;
  return slider && !slider.dates ? `${plainly(slider.name)} %{x}` : "%{x}";
}

const hoverUnits = (field) => (chosen.layer === "above" ? "" : safe(unitOf(field.units)));

// Values of a source at the step shown, or the means of those in a period; places without left out.
function seenNow(source) {
  const count = source.places.x.length;
  const packed = chosen.span === 0 ? source.values : source.periods[chosen.span - 1];
  const values = unpack(packed, chosen.step * count, count);
  const seen = { x: [], y: [], value: [], place: [] };
  for (let i = 0; i < count; i++) {
    if (Number.isNaN(values[i])) continue;
    seen.x.push(source.places.x[i]);
    seen.y.push(source.places.y[i]);
    seen.value.push(values[i]);
    seen.place.push(i);
  }
  return seen;
}

function outline(source, seen, nth) {
  const x = [];
  const y = [];
  for (const place of seen.place) {
    x.push(...source.outlines[place].x, null);
    y.push(...source.outlines[place].y, null);
  }
  const line = { color: "rgba(255,255,255,0.75)", width: 1, dash: DASHES[nth % DASHES.length] };
  return { type: "scatter", mode: "lines", x, y, line, hoverinfo: "skip", showlegend: false };
}

// A light rim, so that marks are seen on dark colours too.
function halo(source, seen, i) {
  const marker = { symbol: symbolOf(source, i).symbol, size: isNarrow() ? 11 : 14, color: "#ffffff" };
  return { type: "scatter", mode: "markers", x: seen.x, y: seen.y, marker, hoverinfo: "skip", showlegend: false };
}

// Markers have the colours of the map: their values, or whether they exceed the threshold.
function marks(source, seen, i, look) {
  const limit = chosen.threshold[chosen.task];
  const colour = chosen.layer === "above" ? seen.value.map((v) => (v > limit ? 1 : 0)) : seen.value;
  const cell = source.shape === "cells";
  const symbol = cell ? "square" : symbolOf(source, i).symbol;
  return {
    type: "scatter",
    mode: "markers",
    x: seen.x,
    y: seen.y,
    customdata: seen.value,
    text: seen.place.map((place) => safe(siteName(source, source.places.x[place], source.places.y[place]))),
    marker: {
      symbol,
      size: cell ? (seen.x.length > 40 || isNarrow() ? 4 : 6) : isNarrow() ? 8 : 10,
      color: chosen.layer === "sd" ? "#888888" : colour,
      colorscale: look.colours,
      cmin: look.ends[0],
      cmax: look.ends[1],
      line: { color: cell ? "#ffffff" : "#000000", width: 1 },
    },
    hovertemplate: `%{text}<br>${whenWords()}%{customdata:.4g}${safe(unitOf(source.units))}${asSaid(source.name)}<extra></extra>`,
    showlegend: false,
    name: safe(source.name),
  };
}

function mark() {
  return {
    type: "scatter",
    mode: "markers",
    x: [content.grid.x.values[chosen.column]],
    y: [content.grid.y.values[chosen.row]],
    marker: { symbol: "cross-thin", size: 16, line: { color: "#ff3333", width: 3 } },
    hoverinfo: "skip",
    showlegend: false,
    name: "marked",
  };
}

// From the first edge of the grid to the last: plotly would leave room for marks beyond.
function reach({ values, dates }) {
  if (dates || values.length < 2) return {};
  const last = values.length - 1;
  const half = Math.abs(values[last] - values[0]) / last / 2;
  return { range: [Math.min(values[0], values[last]) - half, Math.max(values[0], values[last]) + half] };
}

// Below the title of the axis there is room for the colours of scores, where they are shown.
function mapMargin() {
  const scores = chosen.marks === "values" ? 0 : isNarrow() ? 104 : 84;
  return { l: 60, r: 16, t: isNarrow() ? 84 : 24, b: 56 + scores };
}

// The margins may be wider than asked for: what is there is known of the last drawing.
const plotHeight = () => byId("view")._fullLayout?._size.h ?? 300;

function mapHeight(width) {
  const { ratio, x, y } = content.grid;
  const { t, b } = mapMargin();
  const more = b - 56;
  if (!ratio) return Math.min(Math.max(0.6 * width, 320), 560) + more;
  const [wide, high] = [x, y].map((side) => {
    const { range } = reach(side);
    return range ? range[1] - range[0] : 1;
  });
  const inner = (isNarrow() ? width - 76 : width - 170) * ((high * ratio) / wide);
  return Math.min(Math.max(inner + t + b - more, 320), isNarrow() ? 620 : 660) + more;
}

// Coasts and borders: dark lines with a light rim, seen on every colour.
function backdropTraces() {
  if (!content.backdrop) return [];
  const traces = [];
  for (const { kind, x, y } of content.backdrop.lines) {
    const dash = kind === "coast" ? "solid" : "dot";
    const shared = { type: "scatter", mode: "lines", x, y, hoverinfo: "skip", showlegend: false, name: kind };
    traces.push({ ...shared, line: { color: "rgba(255,255,255,0.6)", width: 3 } });
    traces.push({ ...shared, line: { color: "#111111", width: kind === "coast" ? 1.4 : 1, dash } });
  }
  const { cities } = content.backdrop;
  if (cities.length) {
    traces.push({
      type: "scatter",
      mode: "text",
      x: cities.map((city) => city.x),
      y: cities.map((city) => city.y),
      text: cities.map((city) => safe(city.name)),
      textfont: { color: "#ffffff", size: 13, shadow: "0 0 3px #000000, 0 0 3px #000000, 0 0 3px #000000" },
      hoverinfo: "skip",
      showlegend: false,
      name: "cities",
    });
  }
  return traces;
}

function drawMap() {
  const field = fieldNow();
  const values = layerValues();
  const look = layerLook(field, values);
  const traces = [heatmap(field, look, values), ...backdropTraces()];
  let keyed = false;
  content.sources.forEach((source, i) => {
    if (source.task !== field.task || chosen.hidden.has(i)) return;
    const seen = seenNow(source);
    // Whether a biased value exceeds a limit says nothing of the field.
    const judged = chosen.layer !== "above" || !isBiased(source.name);
    const before = content.sources.slice(0, i).filter((other) => other.outlines).length;
    if (source.outlines) traces.push(outline(source, seen, before));
    else if (judged) traces.push(halo(source, seen, i));
    if (chosen.marks !== "values" || !judged) return;
    keyed ||= chosen.layer === "above" && seen.x.length > 0;
    traces.push(marks(source, seen, i, look));
  });
  byId("marks-key").hidden = !keyed;
  if (chosen.marks !== "values") traces.push(...scoreMarks(field));
  traces.push(...transectTrace(), mark());
  const width = byId("view").clientWidth;
  const vertical = { ...axis(content.grid.y.label, content.grid.y.dates), ...reach(content.grid.y) };
  if (content.grid.ratio) Object.assign(vertical, { scaleanchor: "x", scaleratio: content.grid.ratio, constrain: "domain", constraintoward: "bottom" });
  // A short title would be put between the numbers of the axis; a line of its own keeps it below.
  const across = { ...axis(content.grid.x.label, content.grid.x.dates), ...reach(content.grid.x) };
  across.title.text = isNarrow() ? `<br>${across.title.text}` : across.title.text;
  const layout = canvas(width, mapHeight(width), {
    xaxis: { ...across, automargin: false, constrain: "domain", showgrid: false },
    yaxis: { ...vertical, showgrid: false },
    hovermode: "closest",
    showlegend: false,
    uirevision: "map",
    margin: mapMargin(),
  });
  return Plotly.react("view", traces, layout, settings(true));
}

function curveOf(field) {
  const parts = gaussians(field, 0, cells);
  const { mean, sd } = moments(parts, cells);
  const { values: x, name, dates } = content.grid.x;
  const along = dates ? "%{x}" : `${safe(name)} %{x}`;
  const curve = (y, words, what, units) => told(line(x, y, words, LINES[0]), what, units, along);
  if (chosen.layer === "sd") return [curve(sd, "sd", `sd of ${field.label}`, field.units)];
  if (chosen.layer === "above") {
    const limit = `${digits(chosen.threshold[chosen.task])}${unitOf(field.units)}`;
    return [curve(above(parts, cells, chosen.threshold[chosen.task]), "probability", `P(${field.label} > ${limit})`, "")];
  }
  return [...band(x, unpack(field.lower, 0, cells), unpack(field.upper, 0, cells)), curve(mean, "mean", `mean of ${field.label}`, field.units)];
}

function line(x, y, name, colour, dash) {
  return { type: "scatter", mode: "lines", x, y: Array.from(y), name, line: { color: colour, width: 2, dash: dash || "solid" } };
}

function band(x, lower, upper, name) {
  const edge = { type: "scatter", mode: "lines", x, line: { width: 0 }, hoverinfo: "skip" };
  return [
    { ...edge, y: Array.from(lower), showlegend: false },
    { ...edge, y: Array.from(upper), fill: "tonexty", fillcolor: BAND, name: name || "95 % interval" },
  ];
}

function dots(source, i) {
  const values = Array.from(unpack(source.values, 0, source.x.length));
  const colour = i === 0 ? theme("--text") : LINES[1 + ((i - 1) % (LINES.length - 1))];
  const { name, dates } = content.grid.x;
  const trace = told({ type: "scatter", name: `${safe(source.name)}${asSaid(source.name)}` }, `${source.name}${asSaid(source.name)}`, source.units, dates ? "%{x}" : `${safe(name)} %{x}`);
  if (!source.ends) {
    const marker = { color: colour, size: 6, symbol: symbolOf(source, i).symbol };
    return { ...trace, mode: "markers", x: source.x, y: values, marker };
  }
  const x = [];
  const y = [];
  values.forEach((value, n) => {
    x.push(source.ends[0][n], source.ends[1][n], null);
    y.push(value, value, null);
  });
  return { ...trace, mode: "lines", x, y, line: { color: colour, width: 2.5 } };
}

function drawCurve() {
  const field = fieldNow();
  const traces = curveOf(field);
  if (chosen.layer === "mean") {
    content.sources.forEach((source, i) => {
      if (source.task === field.task && !chosen.hidden.has(i)) traces.push(dots(source, i));
    });
  }
  const at = content.grid.x.values[chosen.column];
  const width = byId("view").clientWidth;
  const vertical = axis(layerLook(field).title, false);
  // The title of a layer is escaped already.
  vertical.title.text = layerLook(field).title;
  if (chosen.layer === "above") vertical.range = [-0.02, 1.02];
  const shapes = [{ type: "line", x0: at, x1: at, yref: "paper", y0: 0, y1: 1, line: { color: theme("--soft"), width: 1, dash: "dot" } }];
  const layout = canvas(width, isNarrow() ? 380 : 440, {
    xaxis: axis(content.grid.x.label, content.grid.x.dates),
    yaxis: vertical,
    hovermode: "closest",
    shapes,
    uirevision: "curve",
    margin: { l: 60, r: 16, t: 48, b: 48 },
  });
  return Plotly.react("view", traces, layout, settings(true));
}

function drawChecks() {
  content.checks.forEach((curves, i) => {
    const width = byId(`coverage-${i}`).clientWidth;
    const even = { type: "scatter", mode: "lines", line: { color: theme("--soft"), width: 1, dash: "dash" } };
    const coverage = [{ ...even, x: [0, 1], y: [0, 1], name: "perfect" }];
    const pit = [{ ...even, x: [0, 1], y: [1, 1], name: "perfect" }];
    curves.forEach((curve, n) => {
      const colour = LINES[n % LINES.length];
      const dash = DASHES[n % DASHES.length];
      coverage.push({ ...line(curve.levels, curve.inside, safe(curve.name), colour, dash), mode: "lines+markers", marker: { size: 5 } });
      const steps = line(curve.edges, [...curve.density, curve.density[curve.density.length - 1]], safe(curve.name), colour, dash);
      steps.line.shape = "hv";
      pit.push(steps);
    });
    const share = (title) => ({ ...axis(title, false), range: [0, 1] });
    const tall = { margin: { l: 56, r: 12, t: 56, b: 48 } };
    Plotly.react(`coverage-${i}`, coverage, canvas(width, 340, { ...tall, xaxis: share("nominal share of an interval"), yaxis: share("share of values inside") }), settings());
    const density = { ...axis("density", false), rangemode: "tozero" };
    Plotly.react(`pit-${i}`, pit, canvas(width, 340, { ...tall, xaxis: share("P(y ≤ value)"), yaxis: density }), settings());
  });
}

function drawMaps() {
  content.maps.forEach((one, i) => {
    const traces = [...band(one.x, one.lower, one.upper), line(one.x, one.mean, "learned map", LINES[0])];
    if (one.identity) traces.push(line(one.x, one.x, "no bias", theme("--soft"), "dash"));
    const layout = canvas(byId(`bias-${i}`).clientWidth, 340, {
      xaxis: axis(one.xlabel, false),
      yaxis: axis(one.ylabel, false),
      title: { text: safe(one.title), font: { size: 14 }, x: 0.02 },
      margin: { l: 60, r: 16, t: 72, b: 48 },
    });
    Plotly.react(`bias-${i}`, traces, layout, settings());
  });
}

function drawPrediction() {
  const done = content.kind === "curve" ? drawCurve() : drawMap();
  readout(chosen.row, chosen.column);
  drawSeries();
  drawTransect();
  return done;
}

let waiting = false;
function redraw() {
  if (waiting || !window.Plotly) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawPrediction();
  });
}

function redrawAll() {
  if (!window.Plotly) return;
  redraw();
  drawChecks();
  drawMaps();
}

