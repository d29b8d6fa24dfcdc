"""`write_report`: a fit as one HTML file."""

import dataclasses
import json
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

import mrgp
from mrgp._drafts import check_writable, write_text
from mrgp._extras import needed
from mrgp._types import float64
from mrgp.data import Dataset
from mrgp.inference import Fit, as_progress
from mrgp.plotting.coordinates import with_units
from mrgp.report import sections
from mrgp.report.attribution import telling
from mrgp.report.backdrop import backdrop, extent_of
from mrgp.report.beside import beside_rules
from mrgp.report.contents import Contents
from mrgp.report.ground import Ground, unknown
from mrgp.report.headline import short_section, subtitle_of, title_of
from mrgp.report.layout import UNEVEN, Grid, Layout, default_grid
from mrgp.report.legal import limits_for
from mrgp.report.markup import section
from mrgp.report.misgivings import calibration_doubts
from mrgp.report.overlays import BLANK, outside, overlays
from mrgp.report.periods import noise_of
from mrgp.report.sites import book_of, sites_of, sites_table
from mrgp.report.sites import payload as site_payload
from mrgp.report.verdicts import checks
from mrgp.supports import Support

SCRIPTS = ("page.js", "draw.js", "sites.js", "transect.js", "files.js", "controls.js")


@dataclasses.dataclass(frozen=True)
class Report:
    """A page that was written: where it is, how large, and what it shows.

    `grid` has the number of places along each input, and `checks` the scores by kind of check and
    process.

    >>> print(Report(Path("page.html"), 4_900_000, {"hour": 400}, ("no2",), {}))
    page.html: 4.9 MB, grid of 400 hour, checks: none
    """

    path: Path
    size: int
    grid: dict[str, int]
    tasks: tuple[str, ...]
    checks: dict[str, dict[tuple[str, str], dict[str, float]]]

    def __str__(self) -> str:
        grid = " x ".join(f"{count} {name}" for name, count in self.grid.items())
        checked = ", ".join(self.checks) or "none"
        return f"{self.path}: {self.size / 1e6:.1f} MB, grid of {grid}, checks: {checked}"


@float64
def write_report(
    fit: Fit,
    path: Any,
    *,
    data: Dataset | None = None,
    held_out: Dataset | None = None,
    grid: Support | None = None,
    task: str | None = None,
    title: str | None = None,
    sites: Any = None,
    crs: Any = None,
    progress: Any = None,
) -> Report:
    """Write a fit as one HTML file that opens without a network.

    The page begins with how good the fit is, and has a map with a time slider (or a curve, for one
    input), the values of every site, the data, the model and why it was chosen, scores with
    calibration, and what was learned of each source. `data` are those of the fit, which exact fits
    keep; `held_out` are values to score, of sources that were fitted; `grid` is a full grid of
    points or cells, by default over the extent of the data. All tasks are drawn, or the one named.
    `title` stands in the place of one that says what, where and when. `sites` is a table of the
    names of sites: the columns of their places as the inputs are called, and one of names. `crs`
    says where x and y in plain numbers are, such as "EPSG:27700", or "EPSG:5070 in km".

    >>> import numpy as np, mrgp, tempfile
    >>> x = np.linspace(0.0, 6.0, 20)[:, None]
    >>> seen = mrgp.Observations(mrgp.points(x, inputs="hour"), np.sin(x[:, 0]), name="sensor")
    >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_report(fit, f"{folder}/report.html")
    >>> written.grid, list(written.checks)
    ({'hour': 400}, ['left out'])
    """
    if not isinstance(fit, Fit):
        raise TypeError(f"write_report takes a fit first; got {type(fit).__name__}.")
    if task is not None and task not in fit.tasks:
        raise ValueError(f"write_report: no task is named {task!r}; the fit has {fit.tasks}.")
    library = plotly()
    out = Path(path)
    check_writable(out, "write_report: ")
    tasks = fit.tasks if task is None else (task,)
    known = _known(fit, data)
    layout = Layout.of(fit)
    ground = Ground.of(crs, layout)
    book = book_of(sites, layout)
    places = Grid.of(default_grid(layout, known) if grid is None else grid, layout)
    made = Contents(fit, tasks, known, places, as_progress(progress))
    drawn = made.drawn()
    found = checks(fit, known, held_out)
    margins = beside_rules(fit, known, made.progress)
    by_site, without = sites_of(fit, found, places, book)
    spans = made.spans(drawn)
    maps = sections.maps_of(fit)
    blank = outside(known, places)
    box = extent_of(places, ground)
    named = title or title_of(fit, tasks, known, layout, box, ground)
    left = BLANK if blank else ""
    content = {
        "title": named,
        "kind": "curve" if len(layout.across) == 1 else "map",
        "grid": _axes(places, ground) | {"blank": blank},
        "spans": spans,
        "limits": [_limits(name, fit.units.get(name)) for name in tasks],
        "noise": [noise_of(fit, name) for name in tasks],
        "biased": sections.biased_sources(fit),
        "sources": [] if known is None else overlays(known, places, [s["ends"] for s in spans[1:]]),
        "sites": site_payload(by_site, places),
        "backdrop": backdrop(box, ground),
        "tells": [telling(fit, known, places, name, made.progress) for name in tasks],
        "notices": [*made.notices(), *without, *filter(None, [unknown(layout, ground), left])],
        "checks": [check.curves() for check in found],
        "maps": sections.drawings(maps),
    }
    shares = {one.prediction.task: one.shares for one in drawn if one.shares}
    learned = sections.sources_section(fit, maps, shares)
    checked = sections.checks_section(found, sites_table(by_site))
    doubts = calibration_doubts(fit, found, by_site, layout)
    first = short_section(fit, found, known, margins, doubts)
    parts = {
        "title": escape(named),
        "subtitle": escape(subtitle_of(fit, tasks)),
        "short": section("short", "In short", first),
        "data": section("data", "Data", sections.data_section(fit, known, layout)),
        "model": section("model", "Model", sections.model_section(fit)),
        "checks": section("checks", "Checks", checked),
        "sources": section("sources", "Bias and noise", learned),
        "version": escape(mrgp.__version__),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, _page(parts, content, library))
    return Report(
        path=out,
        size=out.stat().st_size,
        grid={side.name: len(side.lower) for side in places.sides},
        tasks=tasks,
        checks={check.name: check.scores for check in found},
    )


def _limits(task: str, units: str | None) -> list[dict[str, Any]]:
    return [limit._asdict() for limit in limits_for(task, units)]


def plotly() -> str:
    """Return the text of plotly.js, or say which extra brings it."""
    otherwise = "write_report needs plotly, which is not installed: pip install 'mrgp[report]'."
    return needed("plotly.offline", otherwise).get_plotlyjs()


def _known(fit: Fit, data: Dataset | None) -> Dataset | None:
    """Return the data of a fit: those given, or those that it keeps."""
    if data is not None:
        return fit.same_data(data, "write_report")
    found = fit.kept_data()
    return found if found is not None and found.processes == fit.processes else None


def _axes(grid: Grid, ground: Ground | None) -> dict[str, Any]:
    """Return the coordinates of the grid, with labels and the shape of a map."""
    layout = grid.layout
    found: dict[str, Any] = {"steps": len(grid.index), "rows": grid.index.shape[1]}
    slider = {} if layout.along is None else {"slider": layout.along}
    for name, d in (dict(zip("xy", layout.across, strict=False)) | slider).items():
        unit = ground.unit if ground is not None and name in ("x", "y") else None
        found[name] = {
            "label": with_units(layout.names[d], unit) if unit else layout.label(d),
            "name": layout.names[d],
            "values": grid.shown(d),
            "dates": layout.is_time(d),
        }
        if layout.is_time(d):
            # Dates are written in their zone; these are the same in all of them.
            found[name]["seconds"] = grid.middles(d).tolist()
    found["held"] = [f"{layout.names[d]} = {grid.shown(d)[0]}" for d in layout.held]
    found["ratio"] = _ratio(grid)
    axes = [layout.axes[d] for d in layout.across]
    if ground is not None:
        found["km"] = [ground.km, ground.km]
    elif len(axes) == 2 and all(axis is not None and axis.unit == "km" for axis in axes):
        found["km"] = [1 / axis.step for axis in axes if axis is not None]
    return found


def _ratio(grid: Grid) -> float | None:
    """Return how long a unit of the vertical side is beside one of the other, where they compare.

    Degrees are as long as on the ground; plain numbers are taken to be in the same unit unless one
    side is many times longer.
    """
    layout = grid.layout
    if len(layout.across) == 1 or any(layout.is_time(d) for d in layout.across):
        return None
    first, second = (layout.axes[d] for d in layout.across)
    if first is not None and second is not None:
        return first.step / second.step
    spans = [float(np.ptp(grid.middles(d))) or 1.0 for d in layout.across]
    return 1.0 if max(spans) <= UNEVEN * min(spans) else None


def _page(parts: dict[str, str], content: dict[str, Any], library: str) -> str:
    """Fill the template; data stand in a script of JSON, where no text can end the element."""
    folder = files("mrgp.report")
    read = {name: (folder / name).read_text("utf-8") for name in ("page.html", "page.css")}
    scripts = "\n".join((folder / name).read_text("utf-8") for name in SCRIPTS)
    data = json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    filled = {"style": read["page.css"], "plotly": library, "script": scripts, "content": data}
    return Template(read["page.html"]).substitute(parts | filled)
