// Sites: choose one by name or click; its measurements, the model, other sources, residuals.
// How many usual steps are a gap in a line.
const GAP = 1.5;
const MEANINGS = {
  "left out": "each value predicted from all the others",
  "held out": "values that the fit has not seen",
  "in sample": "values that were fitted",
};

// What was predicted of the values of a source, and whether they are a sample.
const meaningOf = (group) => `${MEANINGS[group.check]}${group.sample ? `; ${group.sample}` : ""}`;
const unitsOfSite = (group) => group.units || "";
const calledSite = (group, place) => {
  const name = group.names[place];
  return name.startsWith(group.source) ? name : `${name} (${group.source})`;
};

const groupsNow = () => content.sites.filter((group) => group.task === fieldNow().task);

// Which site of a source is at a place.
function siteAt(source, x, y) {
  const near = (a, b) => Math.abs(a - b) <= 1e-6 * Math.max(1, Math.abs(a));
  for (const [i, group] of content.sites.entries()) {
    if (group.source !== source.name || group.task !== source.task) continue;
    const place = group.x.findIndex((_, n) => near(group.x[n], x) && near(group.y[n], y));
    if (place >= 0) return { group: i, place };
  }
  return null;
}

function siteName(source, x, y) {
  const site = siteAt(source, x, y);
  if (!site) return source.name;
  const name = content.sites[site.group].names[site.place];
  return name.startsWith(source.name) ? name : `${name} (${source.name})`;
}

// The cell of the map that is nearest to a place.
function cellAt(x, y) {
  const nearest = (values, at) => values.reduce((best, v, i) => (Math.abs(v - at) < Math.abs(values[best] - at) ? i : best), 0);
  return { column: nearest(content.grid.x.values, x), row: nearest(content.grid.y.values, y) };
}

function chooseSite(site) {
  chosen.site = site;
  byId("site").value = site ? `${site.group}/${site.place}` : "";
  if (!site) return;
  const group = content.sites[site.group];
  Object.assign(chosen, cellAt(group.x[site.place], group.y[site.place]));
}

function addSites() {
  const select = byId("site");
  for (const old of select.querySelectorAll("optgroup")) old.remove();
  content.sites.forEach((group, i) => {
    if (group.task !== fieldNow().task) return;
    const several = document.createElement("optgroup");
    several.label = group.check === "held out" ? `${group.source}, held out` : group.source;
    const order = group.names.map((_, n) => n);
    order.sort((a, b) => group.names[a].localeCompare(group.names[b], undefined, { numeric: true }));
    for (const place of order) {
      const option = document.createElement("option");
      option.value = `${i}/${place}`;
      option.textContent = group.names[place];
      several.append(option);
    }
    select.append(several);
  });
  const none = groupsNow().length === 0;
  byId("site-control").hidden = none;
  byId("marks-control").hidden = none;
}

// The values of a site, with what was predicted of each.
function seriesOf(group, place) {
  const start = group.first[place];
  const count = group.first[place + 1] - start;
  const take = (packed) => Array.from(unpack(packed, start, count));
  return {
    count,
    times: group.when.slice(start, start + count).map((n) => group.times[n]),
    values: take(group.values),
    means: take(group.means),
    sds: take(group.sds),
    lower: take(group.lower),
    upper: take(group.upper),
  };
}

function scoreMarks(field) {
  const groups = groupsNow().filter((group) => !hiddenSource(group));
  const all = groups.flatMap((group) => group[chosen.marks]);
  if (!all.length) return [];
  const most = Math.max(...all.map(Math.abs), 1e-12);
  const look = chosen.marks === "rmse" ? { colours: "YlOrRd", low: 0 } : { colours: "RdBu", low: -most };
  const title = chosen.marks === "rmse" ? "rmse of each site" : "mean error of each site";
  return groups.map((group, n) => ({
    type: "scatter",
    mode: "markers",
    x: group.x,
    y: group.y,
    text: group.names.map(safe),
    customdata: group[chosen.marks].map((score, place) => [score, group.first[place + 1] - group.first[place]]),
    marker: {
      size: 13,
      symbol: MARKS[n % MARKS.length].symbol,
      color: group[chosen.marks],
      colorscale: look.colours,
      reversescale: chosen.marks === "rmse",
      cmin: look.low,
      cmax: most,
      line: { color: "#000000", width: 1 },
      showscale: n === 0,
      colorbar: { title: { text: withUnits(title, safe(groups[0].units || "")), side: "top" }, orientation: "h", thickness: 10, y: -(isNarrow() ? 92 : 72) / plotHeight(), yanchor: "top", ypad: 0, len: 0.8 },
    },
    hovertemplate: `%{text} (${safe(group.source)})<br>${title.replace(" of each site", "")} of ${safe(group.task)}: %{customdata[0]:.4g}${safe(unitOf(group.units))}<br>of %{customdata[1]} values, ${meaningOf(group)}<extra></extra>`,
    showlegend: false,
    name: `scores of ${safe(group.source)}`,
  }));
}

function hiddenSource(group) {
  const i = content.sources.findIndex((source) => source.name === group.source && source.task === group.task);
  return i >= 0 && chosen.hidden.has(i);
}

// Numbers along the slider: of dates, milliseconds.
const along = (slider, values) => Array.from(values, (v) => (slider.dates ? Date.parse(`${v.replace(" ", "T")}Z`) : v));

// How far times that follow one another usually are apart.
function usualStep(slider, times) {
  const sorted = [...new Set(along(slider, times))].sort((a, b) => a - b);
  const steps = sorted.slice(1).map((v, i) => v - sorted[i]).sort((a, b) => a - b);
  return steps.length ? steps[Math.floor((steps.length - 1) / 2)] : Infinity;
}

// Which values follow one another without a gap: lines and bands are not drawn across others.
function runsOf(slider, times, step) {
  const at = along(slider, times);
  const runs = [];
  at.forEach((t, i) => {
    if (i && t - at[i - 1] <= GAP * step) runs[runs.length - 1].push(i);
    else runs.push([i]);
  });
  return runs;
}

const inRuns = (runs, values) => runs.flatMap((run, n) => [...(n ? [null] : []), ...run.map((i) => values[i])]);

// A line that is broken at gaps; a value by itself has a dot.
function brokenLine(runs, x, y, name, colour, dash) {
  const lone = runs.some((run) => run.length === 1);
  return { ...line(inRuns(runs, x), inRuns(runs, y), name, colour, dash), mode: lone ? "lines+markers" : "lines", marker: { size: 4, color: colour } };
}

// A band that is broken at gaps; of a value by itself it is a bar.
function brokenBand(runs, x, lower, upper, name) {
  const around = (there, back) => runs.flatMap((run, n) => [...(n ? [null] : []), ...run.map((i) => there[i]), ...run.map((i) => back[i]).reverse()]);
  const line = { color: BAND, width: 2 };
  return { type: "scatter", mode: "lines", x: around(x, x), y: around(upper, lower), fill: "toself", fillcolor: BAND, line, hoverinfo: "skip", name };
}

function siteTraces(site) {
  const group = content.sites[site.group];
  const own = seriesOf(group, site.place);
  const called = calledSite(group, site.place);
  const units = unitsOfSite(group);
  const { slider } = content.grid;
  const runs = runsOf(slider, own.times, usualStep(slider, group.times));
  const traces = [brokenBand(runs, own.times, own.lower, own.upper, `95 %, ${MEANINGS[group.check]}`)];
  traces.push(told(brokenLine(runs, own.times, own.means, "predicted for each value", LINES[0], "dot"), `${called}, predicted`, units));
  const marker = { color: theme("--text"), size: 6 };
  const named = isBiased(group.source) ? `${safe(group.source)}${asSaid(group.source)}` : `measured, ${safe(group.source)}`;
  traces.push(told({ type: "scatter", mode: "markers", x: own.times, y: own.values, name: named, marker }, `${called}, ${isBiased(group.source) ? "as the source says" : "measured"}`, units));
  Object.entries(group.near).forEach(([i, places], n) => {
    const place = places[site.place];
    const other = content.sites[i];
    if (place < 0 || other.check !== group.check || other.exposed !== group.exposed) return;
    const theirs = seriesOf(other, place);
    const apart = runsOf(slider, theirs.times, usualStep(slider, other.times));
    const shown = brokenLine(apart, theirs.times, theirs.values, `${safe(other.source)} says (${safe(other.names[place])})${isBiased(other.source) ? ", bias included" : ""}`, LINES[1 + (n % (LINES.length - 1))]);
    const says = `${calledSite(other, place)} says${isBiased(other.source) ? ", bias included" : ""}`;
    traces.push(told({ ...shown, mode: "lines+markers", marker: { size: 4 } }, says, unitsOfSite(other)));
  });
  return traces;
}

function leastGap(numbers) {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  return sorted.slice(1).reduce((least, v, i) => Math.min(least, v - sorted[i]), Infinity);
}

// What a site's drawings reach over, with room for a bar at both ends, and how wide a bar is.
function reachOf(site, slider, traces) {
  const own = seriesOf(content.sites[site.group], site.place);
  const gap = Math.min(...[own.times, slider.values].map((values) => leastGap(along(slider, values))));
  const [low, high] = endsOf(along(slider, traces.flatMap((trace) => Array.from(trace.x).filter((v) => v !== null))));
  return { range: [low - gap / 2, high + gap / 2], width: 0.8 * gap };
}

// What is predicted at the marked place over the slider, or a site with its measurements.
function drawSeries() {
  const slider = content.grid.slider;
  const site = chosen.site;
  tellSite(site);
  const field = fieldNow();
  const first = content.spans[0];
  const group = site ? content.sites[site.group] : null;
  // A site has its values whatever the times of the map.
  const times = slider && (first.steps > 1 || (site && new Set(seriesOf(group, site.place).times).size > 1));
  for (const name of ["series", "series-files"]) byId(name).hidden = !times;
  for (const name of ["residuals", "residuals-png"]) byId(name).hidden = !times || !site;
  if (!times) return;
  const map = chosen.span === 0 ? field : first.fields[chosen.task];
  const found = first.values.map((_, step) => valuesAt(step, chosen.row, chosen.column, map));
  const words = site ? (isBiased(group.source) ? "the map at its cell, without bias" : "the map at its cell") : "mean at the marked place";
  // The map may leave out times that the data have.
  const runs = runsOf(slider, slider.values, usualStep(slider, slider.values));
  const drawn = brokenLine(runs, slider.values, found.map((one) => one.mean), words, site ? LINES[2] : LINES[0]);
  const where = site ? `${calledSite(group, site.place)}, ${words}` : `mean of ${field.label}, ${placeOnly(chosen.row, chosen.column)}`;
  const mean = told({ ...drawn, ...(first.steps > 1 ? {} : { mode: "markers", marker: { symbol: "cross", size: 10 } }) }, where, field.units);
  const around = brokenBand(runs, slider.values, found.map((v) => v.low), found.map((v) => v.high), `${bandName(map)}${safe(noiseWords("sd"))}`);
  // Counts with an exposure are no rates, which the map has.
  const alike = !group || !group.exposed;
  const traces = site ? [...siteTraces(site), ...(alike ? [mean] : [])] : [around, mean];
  const at = chosen.span === 0 && first.steps > 1 ? slider.values[chosen.step] : null;
  const shapes = at === null ? [] : [{ type: "line", x0: at, x1: at, yref: "paper", y0: 0, y1: 1, line: { color: theme("--soft"), width: 1, dash: "dot" } }];
  const reached = site && reachOf(site, slider, traces);
  const rows = isNarrow() ? Math.ceil(traces.length) : Math.ceil(traces.length / 3);
  const layout = canvas(byId("series").clientWidth, 280 + (site ? 18 * rows : 0), {
    xaxis: { ...axis(slider.label, slider.dates), ...(site ? { range: reached.range } : {}) },
    yaxis: axis(alike ? withUnits(field.label, field.units) : withUnits(group.task, group.units), false),
    shapes,
    margin: { l: 60, r: 16, t: site ? 32 + 18 * rows : 40, b: 48 },
  });
  Plotly.react("series", traces, layout, settings());
  // Bars stand below their values.
  if (site) drawResiduals(site, layout.xaxis, reached.width);
}

function drawResiduals(site, across, width) {
  const group = content.sites[site.group];
  const own = seriesOf(group, site.place);
  const y = own.values.map((value, i) => (value - own.means[i]) / own.sds[i]);
  const marker = { color: y.map((r) => (Math.abs(r) > 2 ? LINES[1] : LINES[0])) };
  const traces = [{ type: "bar", x: own.times, y, width, marker, name: "residual", hovertemplate: `${safe(calledSite(group, site.place))}, residual<br>${alongSlider()}<br>%{y:.2f} sd<extra></extra>` }];
  const rule = (at) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: at, y1: at, line: { color: theme("--soft"), width: 1, dash: "dash" } });
  const layout = canvas(byId("residuals").clientWidth, 190, {
    xaxis: { ...across },
    yaxis: axis("residual (sd)", false),
    shapes: [rule(2), rule(-2)],
    showlegend: false,
    margin: { l: 60, r: 16, t: 12, b: 48 },
  });
  Plotly.react("residuals", traces, layout, settings());
}

function tellSite(site) {
  const title = byId("site-title");
  title.hidden = !site;
  byId("site-words").textContent = "";
  if (!site) return;
  const group = content.sites[site.group];
  const own = seriesOf(group, site.place);
  const units = unitOf(group.units);
  title.textContent = `${group.names[site.place]} (${group.source})`;
  const one = own.count === 1;
  const error = `${one ? "error" : "mean error"} ${digits(group.error[site.place])}${units}`;
  const words = one
    ? [`${isBiased(group.source) ? "the source says" : "measured"} ${digits(own.values[0])}${units}`, `predicted ${digits(own.means[0])}${units}, 95 % from ${digits(own.lower[0])} to ${digits(own.upper[0])}`, error]
    : [`${own.count} values`, `rmse ${digits(group.rmse[site.place])}${units}`, error, `${(100 * group.inside[site.place]).toFixed(0)} % inside 95 % intervals`];
  byId("site-words").textContent = `${words.join(", ")}; ${meaningOf(group)}.`;
}
