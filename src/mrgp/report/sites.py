"""Sites: the places of sources with their values over time, what was predicted, and scores."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from mrgp.inference import Fit
from mrgp.plotting.slices import evenly
from mrgp.prediction import Prediction
from mrgp.report.layout import Grid, Layout, plain, written
from mrgp.report.markup import heading, paragraph, table
from mrgp.report.packing import packed
from mrgp.report.verdicts import Check, value_units
from mrgp.supports import Polygons, Support

MOST_SITES = 200
MOST_VALUES = 60_000
"""Of all sites together."""
SAME_PLACE = 0.01
"""Share of the map's width within which two sites are one place."""
NAMES = ("site", "site_name", "name", "station", "code", "id")

Ends = Float[np.ndarray, "p 4"]
"""Of regions on the map: left, right, lower, upper."""
Book = tuple[Float[np.ndarray, "k 2"], list[str]]
"""Places, and the name of each."""


@dataclasses.dataclass(frozen=True)
class Sites:
    """The places of one source, their names, and which of them each value is of.

    `index` says which of the values that were checked they are. `count` is the number of places
    there are, of which some may be left out. Values that are
    `exposed` are counts, and those of the field are rates. `sample` says which values there are,
    if not all.
    """

    source: str
    task: str
    check: str
    names: list[str]
    ends: Ends
    owner: Int[np.ndarray, " n"]
    prediction: Prediction
    y: Float[np.ndarray, " n"]
    index: Int[np.ndarray, " n"]
    count: int
    exposed: bool = False
    sample: str = ""

    def rows(self, place: int) -> Int[np.ndarray, " _"]:
        """Return the values of a place."""
        return np.flatnonzero(self.owner == place)

    def name_of(self, value: int) -> str | None:
        """Return the name of the place of a value that was checked, if it is among these."""
        found = np.flatnonzero(self.index == value)
        return self.names[int(self.owner[found[0]])] if len(found) else None


def sites_of(
    fit: Fit, checks: list[Check], grid: Grid, book: Book | None
) -> tuple[list[Sites], list[str]]:
    """Return the sites of every source that was checked, and what is left out; none over one input.

    Where a source has more places than a page can name, those are kept on which a site of another
    source lies; where it has more values than a page can carry, as many places as there is room
    for.
    """
    if len(grid.layout.across) < 2:
        return [], []
    found = []
    for check in checks:
        for process, (said, y) in check.pairs.items():
            said = dataclasses.replace(said, units=value_units(fit, process))
            one = _sites(check.name, process, said, y, grid.layout, book)
            about = {"exposed": process in fit.exposed, "sample": check.sample}
            found.append(dataclasses.replace(one, **about))
    few = [s for s in found if len(s.names) <= MOST_SITES]
    room = MOST_VALUES
    kept, left = [], []
    for one in found:
        if len(one.names) > MOST_SITES:
            covering = {p for other in few if other.task == one.task for p in covers(one, other)}
            chosen = np.array(sorted(p for p in covering if p >= 0)[:MOST_SITES], int)
            one = _taken(one, chosen if few else evenly(len(one.names), MOST_SITES))
        if len(one.y) > room:
            one = _taken(one, _within(one, room))
        if one.names:
            room -= len(one.y)
            kept.append(one)
        elif one.count:
            left.append(_left_out(one, bool(few)))
    return kept, left


def _within(sites: Sites, room: int) -> Int[np.ndarray, " k"]:
    """Return as many places as have at most so many values, evenly chosen."""
    sizes = np.bincount(sites.owner, minlength=len(sites.names))
    for count in range(min(len(sizes), 1 + room * len(sizes) // max(len(sites.y), 1)), 0, -1):
        chosen = evenly(len(sizes), count)
        if sizes[chosen].sum() <= room:
            return chosen
    return np.zeros(0, int)


def _left_out(sites: Sites, few: bool) -> str:
    """Say why no place of a source can be chosen."""
    if sites.count > MOST_SITES and few:
        return (
            f"None of the {sites.count:,} places of {sites.source} can be chosen: no site of"
            " another source lies in one."
        )
    return (
        f"No place of {sites.source} can be chosen: a page carries {MOST_VALUES:,} values of sites,"
        " and those of one place are more than what others leave of them."
    )


def _sites(
    check: str,
    process: tuple[str, str],
    found: Prediction,
    y: Any,
    layout: Layout,
    book: Book | None,
) -> Sites:
    """Return the places of a source as they are on the map."""
    support, seen = found.support, np.flatnonzero(~np.isnan(y))
    lower, upper = (np.asarray(bound)[seen].round(9) for bound in support.bounds)
    ends = np.column_stack([side[:, d] for d in layout.across for side in (lower, upper)])
    places, first, owner = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    shown = np.column_stack(
        [plain(places[:, i], layout.axes[d]) for i, d in enumerate(np.repeat(layout.across, 2))]
    )
    label = f"{process[0]} held out" if check == "held out" else process[0]
    names = _categories(support, seen, first, owner.ravel()) or _named(shown, label, book, support)
    values = np.asarray(y, np.float64)[seen]
    about = (*process, check, names, shown, owner.ravel(), found[seen], values, seen)
    return Sites(*about, len(places))


def _taken(sites: Sites, kept: Int[np.ndarray, " k"]) -> Sites:
    """Return some of the sites."""
    place = np.full(len(sites.names), -1)
    place[kept] = np.arange(len(kept))
    rows = np.flatnonzero(place[sites.owner] >= 0)
    return dataclasses.replace(
        sites,
        names=[sites.names[i] for i in kept],
        ends=sites.ends[kept],
        owner=place[sites.owner[rows]],
        prediction=sites.prediction[rows],
        y=sites.y[rows],
        index=sites.index[rows],
    )


def _categories(support: Support, seen: Any, first: Any, owner: Any) -> list[str] | None:
    """Return the levels of a category that tells all places apart, if there is one."""
    for column, levels in support.categories.items():
        codes = np.asarray(support.bounds[0])[seen, column]
        there = codes[first]
        if len(np.unique(there)) == len(first) > 1 and np.array_equal(there[owner], codes):
            return [levels[int(code)] for code in there]
    return None


def _named(ends: Ends, source: str, book: Book | None, support: Support) -> list[str]:
    """Return the names of places: those of a table, or the source with a number."""
    middles = 0.5 * np.column_stack([ends[:, 0] + ends[:, 1], ends[:, 2] + ends[:, 3]])
    names = [f"{source} {i + 1}" for i in range(len(ends))]
    shapes = any(isinstance(part, Polygons) for part, _ in support.members)
    # A cell of a grid is not the sensor in its middle.
    if book is None or (np.any(ends[:, 1] > ends[:, 0]) and not shapes):
        return names
    places, words = book
    reach = 1e-3 * max(float(np.ptp(middles, axis=0).max()), 1e-9)
    for i, middle in enumerate(middles):
        far = np.abs(places - middle).max(1)
        if len(far) and far.min() <= reach:
            names[i] = words[int(far.argmin())]
    return names


def book_of(table: Any, layout: Layout) -> Book | None:
    """Return the places of a table of sites, and their names, or say what it lacks."""
    if table is None or len(layout.across) < 2 or any(map(layout.is_time, layout.across)):
        return None
    columns = [layout.names[d] for d in layout.across]
    missing = [name for name in columns if name not in table]
    if missing:
        raise ValueError(
            f"write_report: sites= needs the columns {columns} and one of names; it lacks"
            f" {missing[0]!r}, and has {list(map(str, table.columns))}."
        )
    others = [str(c) for c in table.columns if c not in columns]
    word = next((c for n in NAMES for c in others if c.lower() == n), None)
    texts = [c for c in others if str(table[c].dtype) in ("object", "str", "string", "category")]
    word = word or next(iter(texts), None)
    if word is None:
        raise ValueError(
            f"write_report: sites= needs a column of names, called {', '.join(NAMES)} or of text;"
            f" it has {list(map(str, table.columns))}."
        )
    known = table.dropna(subset=[*columns, word]).drop_duplicates(columns)
    return known[columns].to_numpy(np.float64), [str(name) for name in known[word]]


def covers(regions: Sites, sites: Sites) -> list[int]:
    """Return, for each site, the region that it lies in, or -1.

    Another point is one if it is at the same place.
    """
    ends, others = sites.ends, regions.ends
    x, y = 0.5 * (ends[:, 0] + ends[:, 1]), 0.5 * (ends[:, 2] + ends[:, 3])
    reach = SAME_PLACE * np.array([np.ptp(np.r_[x, others[:, 0]]), np.ptp(np.r_[y, others[:, 2]])])
    flat = bool(np.all(others[:, 0] == others[:, 1]))
    slack = reach if flat else np.zeros(2)
    found = []
    for east, north in zip(x, y, strict=True):
        inside = (others[:, 0] - slack[0] <= east) & (east <= others[:, 1] + slack[0])
        inside &= (others[:, 2] - slack[1] <= north) & (north <= others[:, 3] + slack[1])
        far = (others[:, :2].mean(1) - east) ** 2 + (others[:, 2:].mean(1) - north) ** 2
        found.append(int(np.where(inside, far, np.inf).argmin()) if inside.any() else -1)
    return found


def scores(sites: Sites) -> list[dict[str, Any]]:
    """Return for each site its number of values, their mean, the errors, and the share inside."""
    mean, (low, high) = sites.prediction.mean, sites.prediction.interval(0.95)
    found = []
    for place, name in enumerate(sites.names):
        rows = sites.rows(place)
        error, y = sites.y[rows] - mean[rows], sites.y[rows]
        found.append(
            {
                "name": name,
                "n": len(rows),
                "mean": float(y.mean()),
                "error": float(error.mean()),
                "rmse": float(np.sqrt(np.mean(error**2))),
                "inside": float(np.mean((low[rows] <= y) & (y <= high[rows]))),
            }
        )
    return found


def payload(several: list[Sites], grid: Grid) -> list[dict[str, Any]]:
    """Return what the page reads of sites: places, values, predictions, scores."""
    return [_payload(one, several, grid) for one in several]


def _payload(sites: Sites, several: list[Sites], grid: Grid) -> dict[str, Any]:
    layout, found = grid.layout, sites.prediction
    order = np.lexsort((_when(sites, layout), sites.owner))
    low, high = found.interval(0.95)
    each = scores(sites)
    times, index = np.unique(_when(sites, layout)[order].round(9), return_inverse=True)
    axis = None if layout.along is None else layout.axes[layout.along]
    starts = np.searchsorted(sites.owner[order], np.arange(len(sites.names) + 1))
    others = [i for i, o in enumerate(several) if o is not sites and o.task == sites.task]
    near = {i: covers(several[i], sites) for i in others}
    middles = [0.5 * (sites.ends[:, 2 * i] + sites.ends[:, 2 * i + 1]) for i in range(2)]
    return {
        "source": sites.source,
        "task": sites.task,
        "check": sites.check,
        "units": sites.prediction.units,
        "exposed": sites.exposed,
        "sample": sites.sample,
        "names": sites.names,
        "count": sites.count,
        "x": [float(f"{v:.8g}") for v in middles[0]],
        "y": [float(f"{v:.8g}") for v in middles[1]],
        "times": [] if layout.along is None else written(times, axis),
        "when": index.tolist(),
        "first": starts.tolist(),
        "values": packed(sites.y[order]),
        "means": packed(found.mean[order]),
        "sds": packed(found.std[order]),
        "lower": packed(low[order]),
        "upper": packed(high[order]),
        "rmse": [float(f"{s['rmse']:.5g}") for s in each],
        "error": [float(f"{s['error']:.5g}") for s in each],
        "inside": [float(f"{s['inside']:.4g}") for s in each],
        "near": near,
    }


def _when(sites: Sites, layout: Layout) -> Float[np.ndarray, " n"]:
    """Return where along the slider each value is."""
    if layout.along is None:
        return np.zeros(len(sites.y))
    lower, upper = (np.asarray(b)[:, layout.along] for b in sites.prediction.support.bounds)
    return 0.5 * (lower + upper)


WORDS = {
    "left out": "each value predicted from all the others",
    "held out": "values that the fit has not seen",
    "in sample": "values that were fitted",
}
HEADER = ("site", "n", "mean", "mean error", "rmse", "in 95 %")


def sites_table(several: list[Sites]) -> str:
    """Return the scores of sites as tables, the largest errors first."""
    if not several:
        return ""
    said = "The error is the value less what was predicted. The largest errors come first."
    parts = [heading(3, "Scores by site"), paragraph(said)]
    for one in several:
        rows = sorted(scores(one), key=lambda row: -row["rmse"])
        body = [[r[k] for k in ("name", "n", "mean", "error", "rmse", "inside")] for r in rows]
        of = f"{one.source}, {one.task}: {WORDS[one.check]}"
        of += f"; {one.sample}" if one.sample else ""
        if len(rows) < one.count:
            of += f"; {len(rows)} of {one.count} places"
        units = one.prediction.units
        parts.append(table(f"{of}{f', in {units}' if units else ''}", HEADER, body, tall=True))
    return "\n".join(parts)
