// Controls: native elements, so that keyboards and screen readers know them.
function addOption(select, value, text) {
  const option = document.createElement("option");
  option.value = value;
  option.textContent = text;
  byId(select).append(option);
  return option;
}

function addOptions() {
  content.spans[0].fields.forEach((field, i) => {
    chosen.threshold[i] = field.threshold;
    addOption("task", i, withUnits(field.label, field.units));
  });
  byId("task-control").hidden = content.spans[0].fields.length < 2;
  content.spans.forEach((span, i) => addOption("span", i, span.label));
  byId("span-control").hidden = content.spans.length < 2;
  content.sources.forEach(addSource);
  byId("shown-sources").hidden = content.sources.length === 0;
  byId("slider-control").hidden = !content.grid.slider || content.grid.steps < 2;
  byId("colours").hidden = byId("slider-control").hidden;
  byId("transect-control").hidden = content.kind === "curve";
  chosen.row = Math.floor(content.grid.rows / 2);
  chosen.column = Math.floor(columns / 2);
}

function addSource(source, i) {
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
}

// Where a mean that a limit is of can be shown: as the values are, or averaged. What values are means
// over may not be known, as without dates: no limit is of them then.
const spanOf = (over) => content.spans.findIndex((span) => span.over === over);

function whyNoLimit(over) {
  if (spanOf(over) >= 0) return "";
  if (content.spans.some((span) => span.over)) return ", for which the window is too short or its values too far apart";
  return ", not offered: over how long the values shown are means is not known";
}

function addLimits() {
  byId("limit").replaceChildren();
  const limits = content.limits[chosen.task];
  const units = unitOf(fieldNow().units);
  addOption("limit", "", "a threshold of my own");
  limits.forEach((limit, i) => {
    const why = whyNoLimit(limit.over);
    const allowed = limit.allowed ? `; ${limit.allowed}` : "";
    const option = addOption("limit", i, `${limit.name}: ${digits(limit.value)}${units}, mean of ${limit.over === "hour" ? "an hour" : limit.over === "8 hours" ? "8 hours" : `a ${limit.over}`}${allowed}${why}`);
    option.disabled = why !== "";
  });
  byId("limit-control").hidden = limits.length === 0;
  const noise = content.noise[chosen.task];
  byId("noise-control").hidden = !noise;
  if (noise) byId("noise-name").textContent = `sd and probability with the noise of a value of ${noise[0]}`;
}

// A chosen limit in full: beside a narrow map its option is cut.
function tellLimit() {
  const [option] = byId("limit").selectedOptions;
  byId("limit-words").textContent = option?.value ? option.textContent : "";
}

function showChoice() {
  const field = fieldNow();
  byId("threshold").value = Number(chosen.threshold[chosen.task].toPrecision(6));
  byId("units").textContent = field.units || "";
  tellLimit();
  byId("span").value = chosen.span;
  for (const radio of document.querySelectorAll("input[name=layer]")) radio.checked = radio.value === chosen.layer;
  if (content.grid.slider) {
    const slider = byId("slider");
    slider.max = spanNow().steps - 1;
    slider.value = chosen.step;
    const value = String(coordinate(timeNow()));
    byId("slider-label").textContent = content.grid.slider.label;
    byId("slider-value").textContent = value;
    slider.setAttribute("aria-valuetext", value);
  }
  for (const label of document.querySelectorAll("#shown-sources label")) {
    label.hidden = label.dataset.task !== field.task;
  }
}

const startOf = (value) => String(value).replace(" from ", " ");

// The date stays: that of the day, the first of its hours, or the hour that a period was chosen at.
function chooseSpan(span) {
  if (span === chosen.span) return;
  chosen.at ??= startOf(timeNow());
  chosen.span = span;
  const starts = spanNow().values.map(startOf);
  const first = starts.findIndex((start) => start.startsWith(chosen.at));
  const before = starts.filter((start) => start <= chosen.at).length - 1;
  chosen.step = Math.max(0, first >= 0 ? first : before);
}

// A limit is of one averaging time: of others its value is a threshold like any.
function forgetLimit() {
  const limit = content.limits[chosen.task][byId("limit").value];
  if (limit && spanOf(limit.over) !== chosen.span) byId("limit").value = "";
}

function chooseLimit(value) {
  const limit = content.limits[chosen.task][value];
  if (!limit) return;
  chosen.threshold[chosen.task] = limit.value;
  chosen.layer = "above";
  chooseSpan(spanOf(limit.over));
}

// On a change of an element: what to do with its value, and draw again.
function onChange(id, act, kind = "change") {
  byId(id).addEventListener(kind, (event) => {
    act(event.target);
    showChoice();
    redraw();
  });
}

function listen() {
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  onChange("task", (element) => {
    chosen.task = Number(element.value);
    chooseSite(null);
    addSites();
    addLimits();
  });
  onChange("span", (element) => {
    chooseSpan(Number(element.value));
    forgetLimit();
  });
  onChange("limit", (element) => chooseLimit(element.value));
  onChange("noise", (element) => {
    chosen.noise = element.checked;
  });
  onChange("marks", (element) => {
    chosen.marks = element.value;
  });
  onChange("site", (element) => {
    const [group, place] = element.value.split("/").map(Number);
    chooseSite(element.value ? { group, place } : null);
  });
  const slide = (element) => Object.assign(chosen, { step: Number(element.value), at: null });
  onChange("slider", slide, "input");
  for (const name of ["layer", "colours"]) {
    for (const radio of document.querySelectorAll(`input[name=${name}]`)) {
      radio.addEventListener("change", () => {
        chosen[name] = radio.value;
        redraw();
      });
    }
  }
  byId("threshold").addEventListener("input", (event) => {
    const value = event.target.valueAsNumber;
    event.target.setAttribute("aria-invalid", String(!Number.isFinite(value)));
    if (!Number.isFinite(value)) return;
    chosen.threshold[chosen.task] = value;
    byId("limit").value = "";
    tellLimit();
    redraw();
  });
  byId("pick").addEventListener("click", togglePicking);
  byId("csv").addEventListener("click", saveTable);
  byId("netcdf").addEventListener("click", saveGrid);
  byId("series-csv").addEventListener("click", saveSeries);
  byId("transect-csv").addEventListener("click", saveTransect);
  const pictures = {
    png: () => ["view", fileName("png"), shownWords()],
    "series-png": () => ["series", seriesName("series", "png"), seriesWords()],
    "residuals-png": () => ["residuals", seriesName("residuals", "png"), seriesWords()],
    "transect-png": () => ["transect", plainName([fieldNow().task, "transect", timeNow()], "png"), shownWords()],
  };
  for (const [id, what] of Object.entries(pictures)) byId(id).addEventListener("click", () => savePicture(...what()));
  byId("view").addEventListener("keydown", moveMark);
  window.addEventListener("resize", redrawAll);
  window.addEventListener("resize", markCut);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
}

// Arrow keys move the marked place over the map or along the curve; Enter sets an end.
function moveMark(event) {
  if (event.target !== byId("view")) return;
  if (event.key === "Enter" && chosen.picking) {
    pickEnd();
    redraw();
    return;
  }
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, 0], ArrowDown: [-1, 0] }[event.key];
  if (!step) return;
  event.preventDefault();
  const upward = content.grid.y && content.grid.y.values[0] > content.grid.y.values[content.grid.rows - 1] ? -1 : 1;
  const inside = (value, count) => Math.min(Math.max(value, 0), count - 1);
  chooseSite(null);
  chosen.row = inside(chosen.row + upward * step[0], content.grid.rows);
  chosen.column = inside(chosen.column + step[1], columns);
  redraw();
}

function tellAbout() {
  const notes = [...content.notices];
  for (const span of content.spans) if (span.note) notes.push(`Of the ${span.label}, ${span.note}`);
  for (const field of content.spans[0].fields) {
    const what = field.most > field.components ? `The prediction of ${field.task} is a mixture of ${field.most} Gaussians; ${field.components} stand for them here. ` : "";
    const close = field.error < 5e-5 ? "are" : `are within ${field.error.toFixed(4)} of`;
    notes.push(`${what}Probabilities for ${field.task} ${close} those of the fit.`);
  }
  for (const source of content.sources) {
    if (source.shown < source.count) notes.push(`${source.shown} of ${source.count} places of ${source.name} are shown.`);
  }
  for (const group of content.sites) {
    if (group.names.length < group.count) notes.push(`${group.names.length} of ${group.count} places of ${group.source} can be chosen.`);
  }
  for (const name of content.biased) notes.push(`Values of ${name} are shown as the source says, bias included; beside probabilities they are left out.`);
  if (content.tells.some((tells) => tells?.sd)) notes.push("What a source tells is the spread of the field with and without its values, the parameters held.");
  if (content.grid.held.length) notes.push(`Held: ${content.grid.held.join(", ")}.`);
  if (content.backdrop && content.backdrop.words) notes.push(content.backdrop.words);
  byId("about").textContent = notes.join(" ");
  const curve = content.kind === "curve";
  byId("hint").textContent = curve
    ? "Point at the curve for values, or focus it and press the arrow keys."
    : "Point at the map for values; click a cell or a site, or focus the map and press the arrow keys, to mark a place.";
  if (curve) byId("view").setAttribute("aria-label", "Curve");
  if (curve) byId("mean-name").textContent = "mean and 95 % interval";
}

// Where a point of a drawing is: a cell of the grid, and a site if there is one.
function placeOf(point) {
  if (content.kind === "curve") return { row: 0, column: content.grid.x.values.indexOf(point.x) };
  if (point.data.type === "heatmap") {
    return { row: content.grid.y.values.indexOf(point.y), column: content.grid.x.values.indexOf(point.x) };
  }
  return cellAt(point.x, point.y);
}

function siteOf(point) {
  if (content.kind === "curve" || point.data.type === "heatmap") return null;
  for (const group of groupsNow()) {
    const site = siteAt({ name: group.source, task: group.task }, point.x, point.y);
    if (site) return site;
  }
  return null;
}

// Tables of which columns are out of sight say so.
function markCut() {
  for (const wide of document.querySelectorAll(".wide")) wide.classList.toggle("cut", wide.scrollWidth > wide.clientWidth + 1);
}

function follow() {
  const onGrid = (at) => at.row >= 0 && at.column >= 0;
  byId("view").on("plotly_hover", (event) => {
    const at = placeOf(event.points[0]);
    if (onGrid(at)) readout(at.row, at.column);
  });
  byId("view").on("plotly_unhover", () => readout(chosen.row, chosen.column));
  byId("view").on("plotly_click", (event) => {
    const point = event.points[0];
    const at = placeOf(point);
    if (!onGrid(at)) return;
    chooseSite(siteOf(point));
    Object.assign(chosen, at);
    if (chosen.picking) pickEnd();
    redraw();
  });
}

// The words of the page are drawn before the library is read, which takes longest.
function start() {
  const library = document.createElement("script");
  library.textContent = byId("plotly").textContent;
  document.head.append(library);
  drawPrediction().then(() => {
    follow();
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
    setTimeout(() => {
      drawChecks();
      drawMaps();
      document.documentElement.dataset.complete = "yes";
    }, 0);
  });
}

addOptions();
addSites();
addLimits();
showChoice();
listen();
tellAbout();
markCut();
requestAnimationFrame(() => setTimeout(start, 0));
