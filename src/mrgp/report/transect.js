// A line between two clicks, and the prediction of the cells along it.
const SAMPLES = 200;

function togglePicking() {
  chosen.picking = !chosen.picking;
  if (chosen.picking) chosen.ends = [];
  byId("pick").setAttribute("aria-pressed", String(chosen.picking));
  byId("pick").textContent = chosen.picking ? "Click the first end on the map" : "Transect between two clicks";
  redraw();
}

// A click, or Enter on the map, sets one end after the other. Browsers tell a tap as touch events and
// again as those of a mouse, at which plotly may still be where the last one was: what comes at once,
// or where the other end is, counts for nothing.
const AT_ONCE = 400;
let picked = -Infinity;
function pickEnd() {
  const { row, column } = chosen;
  const there = chosen.ends.some((end) => end.row === row && end.column === column);
  if (there || (chosen.ends.length === 1 && performance.now() - picked < AT_ONCE)) return;
  picked = performance.now();
  chosen.ends.push({ row, column });
  if (chosen.ends.length === 1) {
    byId("pick").textContent = "Click the other end";
    return;
  }
  chosen.picking = false;
  byId("pick").setAttribute("aria-pressed", "false");
  byId("pick").textContent = "Another transect";
}

const endPlaces = () => chosen.ends.map(({ row, column }) => ({ x: content.grid.x.values[column], y: content.grid.y.values[row] }));

function transectTrace() {
  const ends = endPlaces();
  if (!ends.length) return [];
  return [
    {
      type: "scatter",
      mode: "lines+markers",
      x: ends.map((end) => end.x),
      y: ends.map((end) => end.y),
      line: { color: "#ff3333", width: 2.5 },
      marker: { color: "#ffffff", size: 9, line: { color: "#ff3333", width: 2 } },
      hoverinfo: "skip",
      showlegend: false,
      name: "transect",
    },
  ];
}

// The cells along the line, each once, and how far they are from its start.
function transectCells() {
  const [from, to] = chosen.ends;
  const [kx, ky] = content.grid.km || [1, 1];
  const found = [];
  for (let i = 0; i <= SAMPLES; i++) {
    const share = i / SAMPLES;
    const row = Math.round(from.row + share * (to.row - from.row));
    const column = Math.round(from.column + share * (to.column - from.column));
    const last = found[found.length - 1];
    if (last && last.row === row && last.column === column) continue;
    const dx = kx * (content.grid.x.values[column] - content.grid.x.values[from.column]);
    const dy = ky * (content.grid.y.values[row] - content.grid.y.values[from.row]);
    found.push({ row, column, distance: Math.hypot(dx, dy) });
  }
  return found;
}

const whenOnly = () => (timeNow() === "" ? "" : `${plainly(named(timeNow()))}<br>`);

function drawTransect() {
  const ready = chosen.ends.length === 2;
  for (const name of ["transect", "transect-files"]) byId(name).hidden = !ready;
  if (!ready) return;
  const field = fieldNow();
  const along = transectCells();
  const values = along.map(({ row, column }) => valuesAt(chosen.step, row, column));
  const x = along.map((cell) => cell.distance);
  const shown = chosen.layer === "mean" ? "mean" : chosen.layer;
  const { title } = layerLook(field);
  const km = content.grid.km ? " km" : "";
  const text = along.map(({ row, column }) => safe(placeOnly(row, column)));
  // The title of a layer is escaped already.
  const point = { text, hovertemplate: `${title}<br>%{text}, %{x:.4g}${km} along the transect<br>${whenOnly()}%{y:.4g}${hoverUnits(field)}<extra></extra>` };
  const traces =
    shown === "mean"
      ? [...band(x, values.map((v) => v.low), values.map((v) => v.high), `${bandName(field)}${safe(noiseWords("sd"))}`), { ...line(x, values.map((v) => v.mean), "mean along the transect", LINES[0]), ...point }]
      : [{ ...line(x, values.map((v) => v[shown]), "along the transect", LINES[0]), ...point }];
  const vertical = axis("", false);
  vertical.title.text = title;
  const layout = canvas(byId("transect").clientWidth, 280, {
    xaxis: axis(content.grid.km ? "distance along the transect (km)" : "distance along the transect", false),
    yaxis: vertical,
    margin: { l: 60, r: 16, t: 40, b: 48 },
  });
  Plotly.react("transect", traces, layout, settings());
}
