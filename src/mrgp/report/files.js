// What is shown, as files: a table, a grid, a picture.
const LAYERS = ["mean", "sd", "above"];

function save(name, parts, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function fileName(ending) {
  const words = [fieldNow().task, isMean() ? spanNow().label : "", named(timeNow())];
  const name = words.filter((word) => word !== "").join("-");
  return `${name.replace(/[^A-Za-z0-9.]+/g, "-").replace(/^-|-$/g, "")}.${ending}`;
}

// The columns of the layers: what the noise of values is in says so.
const layerNames = (limit) => ["mean", `sd${noiseWords("sd")}`, `probability above ${limit}${noiseWords("sd")}`];

const quoted = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));

function saveTable() {
  const { x, y, slider } = content.grid;
  const layers = LAYERS.map((layer) => layerValues(layer));
  const limit = digits(chosen.threshold[chosen.task]);
  const head = [x.name, ...(y ? [y.name] : []), ...(slider ? [slider.name] : []), ...layerNames(limit)];
  const lines = [head.map(quoted).join(",")];
  for (let row = 0; row < content.grid.rows; row++) {
    for (let column = 0; column < columns; column++) {
      const place = [x.values[column], ...(y ? [y.values[row]] : []), ...(slider ? [timeNow()] : [])];
      const numbers = layers.map((values) => rounded(values[row * columns + column]));
      lines.push([...place, ...numbers].map(quoted).join(","));
    }
  }
  save(fileName("csv"), [`${lines.join("\n")}\n`], "text/csv");
}

const rounded = (value) => (value === undefined || Number.isNaN(value) ? "" : Number(value.toPrecision(7)));
const tableOf = (head, rows) => [`${[head, ...rows].map((row) => row.map(quoted).join(",")).join("\n")}\n`];
const plainName = (words, ending) => `${words.join("-").replace(/[^A-Za-z0-9.]+/g, "-").replace(/^-|-$/g, "")}.${ending}`;
const seriesName = (what, ending) => {
  const site = chosen.site;
  return plainName([fieldNow().task, site ? calledSite(content.sites[site.group], site.place) : "marked-place", what], ending);
};

// The series that is drawn: of a site its values, what was predicted, residuals and what other
// sources say; with the map at its cell. One row for each time of any of them.
function saveSeries() {
  const { slider } = content.grid;
  const first = content.spans[0];
  const field = first.fields[chosen.task];
  const rows = new Map();
  const put = (times, names, columns) =>
    times.forEach((time, i) => {
      if (!rows.has(time)) rows.set(time, {});
      names.forEach((name, k) => (rows.get(time)[name] = columns[k][i]));
    });
  let names = ["value", "predicted", "sd", "95 % from", "95 % to", "residual (sd)"];
  if (chosen.site) {
    const { group: n, place } = chosen.site;
    const group = content.sites[n];
    const own = seriesOf(group, place);
    const residuals = own.values.map((value, i) => (value - own.means[i]) / own.sds[i]);
    put(own.times, names, [own.values, own.means, own.sds, own.lower, own.upper, residuals]);
    for (const [i, places] of Object.entries(group.near)) {
      const other = content.sites[i];
      if (places[place] < 0 || other.check !== group.check || other.exposed !== group.exposed) continue;
      const theirs = seriesOf(other, places[place]);
      names.push(calledSite(other, places[place]));
      put(theirs.times, names.slice(-1), [theirs.values]);
    }
  } else names = [];
  const map = ["map mean", `map sd${noiseWords("sd")}`];
  const found = first.values.map((_, step) => valuesAt(step, chosen.row, chosen.column, field));
  put(first.values, map, [found.map((one) => one.mean), found.map((one) => one.sd)]);
  const head = [slider.name, ...names, ...map];
  const sorted = [...rows.entries()].sort(([a], [b]) => (a < b ? -1 : 1));
  const lines = sorted.map(([time, row]) => [time, ...head.slice(1).map((name) => rounded(row[name]))]);
  save(seriesName("series", "csv"), tableOf(head, lines), "text/csv");
}

function saveTransect() {
  const { x, y, slider, km } = content.grid;
  const limit = digits(chosen.threshold[chosen.task]);
  const head = [km ? "km" : "distance", x.name, y.name, ...(slider ? [slider.name] : []), ...layerNames(limit)];
  const lines = transectCells().map(({ row, column, distance }) => {
    const found = valuesAt(chosen.step, row, column);
    const place = [rounded(distance), x.values[column], y.values[row], ...(slider ? [timeNow()] : [])];
    return [...place, ...[found.mean, found.sd, found.above].map(rounded)];
  });
  save(plainName([fieldNow().task, "transect", timeNow()], "csv"), tableOf(head, lines), "text/csv");
}

// NetCDF in its classic format: a header, then the numbers, most significant byte first.
class Classic {
  constructor() {
    this.bytes = [];
  }

  whole(value) {
    this.bytes.push((value >>> 24) & 255, (value >>> 16) & 255, (value >>> 8) & 255, value & 255);
  }

  name(text) {
    const bytes = new TextEncoder().encode(text);
    this.whole(bytes.length);
    this.bytes.push(...bytes);
    while (this.bytes.length % 4) this.bytes.push(0);
  }

  // Texts alone: other attributes are not needed.
  attributes(found) {
    const pairs = Object.entries(found).filter(([, text]) => text);
    this.whole(pairs.length ? 12 : 0);
    this.whole(pairs.length);
    for (const [name, text] of pairs) {
      this.name(name);
      this.whole(2);
      this.name(text);
    }
  }

  header(sizes, about, variables, begins) {
    this.bytes = [67, 68, 70, 1];
    this.whole(0);
    this.whole(10);
    this.whole(sizes.length);
    for (const [name, size] of sizes) {
      this.name(name);
      this.whole(size);
    }
    this.attributes(about);
    this.whole(11);
    this.whole(variables.length);
    variables.forEach((variable, i) => {
      this.name(variable.name);
      this.whole(variable.dimensions.length);
      variable.dimensions.forEach((d) => this.whole(d));
      this.attributes(variable.about);
      this.whole(6);
      this.whole(8 * variable.values.length);
      this.whole(begins[i]);
    });
    return this.bytes.length;
  }
}

function classicFile(sizes, about, variables) {
  const writer = new Classic();
  const length = writer.header(sizes, about, variables, variables.map(() => 0));
  const begins = [];
  let end = length;
  for (const variable of variables) {
    begins.push(end);
    end += 8 * variable.values.length;
  }
  writer.header(sizes, about, variables, begins);
  const file = new DataView(new ArrayBuffer(end));
  writer.bytes.forEach((byte, i) => file.setUint8(i, byte));
  variables.forEach((variable, n) => variable.values.forEach((value, i) => file.setFloat64(begins[n] + 8 * i, value, false)));
  return file.buffer;
}

function saveGrid() {
  const { x, y, slider } = content.grid;
  const field = fieldNow();
  const sizes = [...(y ? [[y.name, content.grid.rows]] : []), [x.name, columns]];
  const over = sizes.map((_, i) => i);
  const numbers = (side) => (side.dates ? side.seconds : side.values);
  const about = (side) => (side.dates ? { units: "seconds since 1970-01-01", calendar: "standard" } : { long_name: side.label });
  const variables = [...(y ? [{ name: y.name, dimensions: [0], values: numbers(y), about: about(y) }] : [])];
  variables.push({ name: x.name, dimensions: [over.length - 1], values: numbers(x), about: about(x) });
  const limit = `${digits(chosen.threshold[chosen.task])}${unitOf(field.units)}`;
  const noise = noiseWords("sd");
  const words = { mean: `mean of ${field.label}`, sd: `standard deviation of ${field.label}${noise}`, above: `probability of ${field.label}${noise} above ${limit}` };
  for (const layer of LAYERS) {
    const units = layer === "above" ? "1" : field.units;
    variables.push({ name: layer, dimensions: over, values: Array.from(layerValues(layer)), about: { long_name: words[layer], units } });
  }
  const when = slider ? `${slider.label}: ${timeNow()}; ${spanNow().label}` : "";
  save(fileName("nc"), [classicFile(sizes, { title: content.title, time: when }, variables)], "application/x-netcdf");
}

// What a picture is of: the title of the page, with what is shown and when, or the series of a place.
function shownWords() {
  const field = fieldNow();
  const keyed = byId("marks-key").hidden ? "" : "; marks: yellow above, purple not";
  const what = [layerLook(field).title, whenOnly().replace("<br>", "")].filter(Boolean).join(", ");
  return [safe(content.title), `${what}${keyed}`];
}

function seriesWords() {
  const site = chosen.site;
  return [safe(content.title), safe(site ? calledSite(content.sites[site.group], site.place) : placeOnly(chosen.row, chosen.column))];
}

// A picture stands by itself: its title is above what the page shows.
function savePicture(chart, name, words) {
  const view = byId(chart);
  const lines = words.flatMap((text) => wrapped(text, Math.floor((view.clientWidth - 16) / (LETTER + 1))));
  const more = 24 + 20 * lines.length;
  const title = { text: lines.join("<br>"), font: { size: 15 }, x: 0, xanchor: "left", yref: "container", y: 1, yanchor: "top", pad: { l: 8, t: 22 } };
  const { layout } = view;
  const margin = { ...layout.margin, t: layout.margin.t + more };
  const height = view.clientHeight + more;
  const figure = { data: view.data, layout: { ...layout, title, margin, height } };
  Plotly.downloadImage(figure, { format: "png", filename: name.replace(/\.png$/, ""), width: view.clientWidth, height, scale: 2 });
}
