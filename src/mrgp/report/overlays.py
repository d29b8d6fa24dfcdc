"""What the sources saw, to lay over a map or a curve."""

from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset, Observations
from mrgp.plotting.functions import per_unit
from mrgp.plotting.slices import evenly
from mrgp.report.layout import Grid, Layout, plain, written
from mrgp.report.packing import packed

MOST_PLACES, LEAST_PLACES = 2000, 200
MOST_VALUES = 30_000
"""Of one source, over all steps of the slider."""
MOST_CORNERS = 400
"""Of the outline of one polygon."""
CORNERS = np.array([[0, 2], [1, 2], [1, 3], [0, 3], [0, 2]])
"""Of a cell, by its ends: left, right, lower, upper."""
BLANK = "Cells of the map outside all areas of the data are left blank."

Periods = list[list[tuple[float, float]]]
"""From where to where the periods of averages go, in seconds: of each averaging time."""


def overlays(data: Dataset, grid: Grid, periods: Periods | None = None) -> list[dict[str, Any]]:
    """Return the places of every source, and its values there at each step of the slider.

    Of `periods` they are the means of the values in each.
    """
    if len(grid.layout.across) == 1:
        return [_along_curve(observed.dropna(), grid) for observed in data]
    return [_on_map(observed.dropna(), grid, periods or []) for observed in data]


def _along_curve(observed: Observations, grid: Grid) -> dict[str, Any]:
    """Return values over one input: dots, or bars as wide as their regions."""
    rows = evenly(len(observed), MOST_PLACES)
    lower, upper = (np.asarray(bound)[rows, 0] for bound in observed.support.bounds)
    axis = grid.layout.axes[0]
    wide = bool(np.any(upper > lower))
    return _named(observed, "intervals" if wide else "points", len(rows), len(observed)) | {
        "x": written(0.5 * (lower + upper), axis),
        "ends": [written(lower, axis), written(upper, axis)] if wide else None,
        "values": packed(_of_field(observed)[rows]),
    }


def _on_map(observed: Observations, grid: Grid, periods: Periods) -> dict[str, Any]:
    """Return the different places of a source, and its values at each step, NaN for none."""
    layout = grid.layout
    lower, upper = (np.asarray(bound).round(9) for bound in observed.support.bounds)
    ends = np.column_stack([side[:, d] for d in layout.across for side in (lower, upper)])
    places, first, owner = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    y, owner, count = _of_field(observed), owner.ravel(), len(places)
    room = int(np.clip(MOST_VALUES // len(grid.index), LEAST_PLACES, MOST_PLACES))
    kept = evenly(count, room)

    def means(several: list[np.ndarray]) -> dict[str, Any]:
        return packed([_means(owner[rows], y[rows], count)[kept] for rows in several])

    lower, upper = places[kept][:, [0, 2]], places[kept][:, [1, 3]]
    wide = bool(np.any(upper > lower))
    found = _named(observed, "cells" if wide else "points", len(kept), count)
    found["places"] = _shown(layout, 0.5 * (lower + upper))
    if wide:
        outlines = _outlines(observed, first[kept])
        found["outlines"] = outlines or [_shown(layout, place[CORNERS]) for place in places[kept]]
    over = [means(_within(observed, grid, ends)) for ends in periods]
    return found | {"values": means(_steps(observed, grid)), "periods": over}


def _within(
    observed: Observations, grid: Grid, ends: list[tuple[float, float]]
) -> list[np.ndarray]:
    """Return which values have their middle in each period."""
    along = grid.layout.along
    assert along is not None
    lower, upper = (np.asarray(bound)[:, along] for bound in observed.support.bounds)
    middle = plain(0.5 * (lower + upper), grid.layout.axes[along])
    return [(start <= middle) & (middle < end) for start, end in ends]


def _of_field(observed: Observations) -> Float[np.ndarray, " n"]:
    """Return values that compare with the field's: counts by exposure, sums by their measure."""
    y = per_unit(observed)
    return y if observed.exposure is None else y / np.asarray(observed.exposure)


def _named(o: Observations, shape: str, shown: int, count: int) -> dict[str, Any]:
    said = {"name": o.name, "task": o.task, "units": o.units}
    return said | {"shape": shape, "shown": shown, "count": count}


def _steps(observed: Observations, grid: Grid) -> list[np.ndarray]:
    """Return which values are of each step: those at that time, or over a window around it."""
    along = grid.layout.along
    if along is None:
        return [np.ones(len(observed), bool)]
    axis, bounds = grid.layout.axes[along], observed.support.bounds
    lower, upper = (plain(np.asarray(bound)[:, along], axis) for bound in bounds)
    times = grid.middles(along)
    if np.any(upper > lower):
        return [(lower <= t) & ((t < upper) | (t == lower)) for t in times]
    there = np.unique(lower)
    reach = 0.5 * float(np.median(np.diff(there))) if len(there) > 1 else 1e-6
    nearest = there[np.abs(there[None] - times[:, None]).argmin(1)]
    return [(lower == at) & (abs(at - t) <= reach) for at, t in zip(nearest, times, strict=True)]


def _means(place: np.ndarray, values: np.ndarray, count: int) -> Float[np.ndarray, " p"]:
    """Return the mean of the values at each place, or NaN."""
    with np.errstate(invalid="ignore"):
        return np.bincount(place, values, count) / np.bincount(place, minlength=count)


def _shown(layout: Layout, places: Float[np.ndarray, "n 2"]) -> dict[str, list[Any]]:
    """Return places on the map as the page writes them."""
    columns = zip("xy", layout.across, places.T, strict=True)
    return {name: written(numbers, layout.axes[d]) for name, d, numbers in columns}


def _outlines(observed: Observations, rows: np.ndarray) -> list[dict[str, list[Any]]] | None:
    """Return the outlines of polygons, where the regions are some."""
    if not _has_outlines(observed):
        return None
    return [_ring(shape) for shape in observed[rows].to_frame().geometry]


def outside(data: Dataset | None, grid: Grid) -> list[int]:
    """Return the cells of a map that no polygon touches, row by row, where all data are polygons.

    None where all cells are such: the grid was asked for elsewhere.
    """
    across = grid.layout.across
    if data is None or len(across) < 2 or not all(map(_has_outlines, data)):
        return []
    import shapely

    seen = [observed.dropna() for observed in data]
    rows = [_first_of_each(o, across) for o in seen]
    several = [o[kept].to_frame().geometry for o, kept in zip(seen, rows, strict=True)]
    shapes = [shape for some in several for shape in some]
    x, y = (_edges(np.asarray(grid.shown(d), np.float64)) for d in across)
    west, south = (ends.ravel() for ends in np.meshgrid(x[:-1], y[:-1]))
    east, north = (ends.ravel() for ends in np.meshgrid(x[1:], y[1:]))
    cells = shapely.box(west, south, east, north)
    touched = shapely.STRtree(shapes).query(cells, "intersects")[0]
    blank = np.setdiff1d(np.arange(len(cells)), touched)
    return [] if len(blank) == len(cells) else blank.tolist()


def _has_outlines(observed: Observations) -> bool:
    return any(getattr(part, "outlines", None) for part, _ in observed.support.members)


def _first_of_each(observed: Observations, across: tuple[int, ...]) -> np.ndarray:
    """Return one row of each different shape, by the ends of regions along the map."""
    sides = list(across)
    bounds = np.hstack([np.asarray(bound)[:, sides].round(9) for bound in observed.support.bounds])
    return np.sort(np.unique(bounds, axis=0, return_index=True)[1])


def _edges(middles: Float[np.ndarray, " n"]) -> Float[np.ndarray, " e"]:
    """Return the ends of cells about some middles."""
    if len(middles) == 1:
        return np.repeat(middles, 2)
    inner = 0.5 * (middles[1:] + middles[:-1])
    return np.r_[2 * middles[0] - inner[0], inner, 2 * middles[-1] - inner[-1]]


def _ring(shape: Any) -> dict[str, list[Any]]:
    """Return the outer ring of a polygon, or those of its parts with gaps between."""
    found: dict[str, list[Any]] = {"x": [], "y": []}
    for part in getattr(shape, "geoms", [shape]):
        corners = np.asarray(part.exterior.coords)
        corners = corners[:: max(1, len(corners) // MOST_CORNERS)]
        for name, column in zip("xy", corners.T, strict=False):
            gap = [None] if found[name] else []
            found[name] += [*gap, *(float(f"{v:.8g}") for v in (*column, column[0]))]
    return found
