"""What the sources saw, to lay over a map or a curve."""

from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset, Observations
from mrgp.report.layout import Grid, Layout, written
from mrgp.report.packing import packed
from mrgp.report.places import extent
from mrgp.supports import Products

MOST_PLACES, LEAST_PLACES = 2000, 200
MOST_VALUES = 30_000
"""Of one source, over all steps of the slider."""
MOST_CORNERS = 400
"""Of the outline of one polygon."""
Vector = Float[np.ndarray, " n"]


def overlays(data: Dataset, grid: Grid) -> list[dict[str, Any]]:
    """Return the places of every source, and its values there at each step of the slider."""
    draw = _along_curve if len(grid.layout.across) == 1 else _on_map
    return [draw(observed.dropna(), grid) for observed in data]


def _along_curve(observed: Observations, grid: Grid) -> dict[str, Any]:
    """Return values over one input: dots, or bars as wide as their regions."""
    rows = _evenly(len(observed), MOST_PLACES)
    lower, upper = (np.asarray(bound)[rows, 0] for bound in observed.support.bounds)
    axis = grid.layout.axes[0]
    wide = bool(np.any(upper > lower))
    return _named(observed, "intervals" if wide else "points", len(rows), len(observed)) | {
        "x": written(0.5 * (lower + upper), axis),
        "ends": [written(lower, axis), written(upper, axis)] if wide else None,
        "values": packed(observed.y[rows]),
    }


def _on_map(observed: Observations, grid: Grid) -> dict[str, Any]:
    """Return the different places of a source, and its values at each step, NaN for none."""
    layout, support = grid.layout, observed.support
    columns = [end for d in layout.across for end in extent(support, d, layout)]
    places, first, place = np.unique(
        np.round(np.column_stack(columns), 9), axis=0, return_index=True, return_inverse=True
    )
    room = int(np.clip(MOST_VALUES // grid.steps, LEAST_PLACES, MOST_PLACES))
    kept = _evenly(len(places), room)
    values = np.stack(
        [_at_places(observed, rows, place.ravel(), len(places)) for rows in _steps(observed, grid)]
    )
    places, values = places[kept], values[:, kept]
    wide = bool(np.any(places[:, 1] > places[:, 0]) or np.any(places[:, 3] > places[:, 2]))
    shapes = _shapes(observed, first[kept]) if wide else None
    found = _named(observed, "cells" if wide else "points", len(kept), len(first))
    found["places"] = {
        "x": _shown(layout, 0, 0.5 * (places[:, 0] + places[:, 1])),
        "y": _shown(layout, 1, 0.5 * (places[:, 2] + places[:, 3])),
    }
    if wide:
        found["outlines"] = shapes or [_corners(layout, place) for place in places]
    return found | {"values": packed(values)}


def _named(observed: Observations, shape: str, shown: int, count: int) -> dict[str, Any]:
    return {
        "name": observed.name,
        "task": observed.task,
        "shape": shape,
        "shown": shown,
        "count": count,
    }


def _evenly(count: int, most: int) -> np.ndarray:
    """Return all of so many rows, or as many as can be shown, evenly chosen."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))


def _steps(observed: Observations, grid: Grid) -> list[np.ndarray]:
    """Return which values are of each step: those at that time, or over a window around it."""
    along = grid.layout.along
    if along is None:
        return [np.ones(len(observed), bool)]
    lower, upper = extent(observed.support, along, grid.layout)
    times = grid.middles(along)
    if np.any(upper > lower):
        return [(lower <= t) & ((t < upper) | (t == lower)) for t in times]
    there = np.unique(lower)
    reach = 0.5 * float(np.median(np.diff(there))) if len(there) > 1 else 1e-6
    nearest = there[np.abs(there[None] - times[:, None]).argmin(1)]
    return [
        (lower == close) & (abs(close - t) <= reach)
        for close, t in zip(nearest, times, strict=True)
    ]


def _at_places(
    observed: Observations, rows: np.ndarray, place: np.ndarray, count: int
) -> Float[np.ndarray, " p"]:
    """Return the mean of the values at each place, or NaN."""
    seen = np.bincount(place[rows], minlength=count)
    total = np.bincount(place[rows], observed.y[rows], count)
    return np.where(seen > 0, total / np.maximum(seen, 1), np.nan)


def _shown(layout: Layout, which: int, numbers: Vector) -> list[Any]:
    """Return plain numbers along an input of the map as the page writes them."""
    axis = layout.axes[layout.across[which]]
    if axis is not None:
        numbers = (numbers - axis.origin) / axis.step
    return written(numbers, axis)


def _corners(layout: Layout, place: Vector) -> dict[str, list[Any]]:
    """Return the outline of a cell, closed."""
    x, y = place[[0, 1, 1, 0, 0]], place[[2, 2, 3, 3, 2]]
    return {"x": _shown(layout, 0, x), "y": _shown(layout, 1, y)}


def _shapes(observed: Observations, rows: np.ndarray) -> list[dict[str, list[Any]]] | None:
    """Return the outlines of polygons, where the regions are some."""
    support = observed.support
    parts = support.parts if isinstance(support, Products) else (support,)
    if not any(getattr(part, "outlines", None) is not None for part in parts):
        return None
    geometry = observed[rows].to_frame().geometry
    return [_ring(shape) for shape in geometry]


def _ring(shape: Any) -> dict[str, list[Any]]:
    """Return the outer ring of a polygon, or those of its parts with gaps between."""
    x: list[Any] = []
    y: list[Any] = []
    for part in getattr(shape, "geoms", [shape]):
        corners = np.asarray(part.exterior.coords)
        corners = corners[:: max(1, len(corners) // MOST_CORNERS)]
        x += [*(float(f"{v:.8g}") for v in [*corners[:, 0], corners[0, 0]]), None]
        y += [*(float(f"{v:.8g}") for v in [*corners[:, 1], corners[0, 1]]), None]
    return {"x": x[:-1], "y": y[:-1]}
