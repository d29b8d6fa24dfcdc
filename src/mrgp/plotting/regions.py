"""Regions on a map: cells, polygons and points as what they are, in the user's coordinates."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from mrgp.plotting.coordinates import (
    Coordinate,
    Slice,
    aspect_of,
    coordinates,
    laid_out,
    set_axis,
    shown,
)
from mrgp.supports import Nodes, Product, Support

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EDGE = "0.8"
SMALL, LARGE = 9.0, 28.0
MANY = 300


class Regions(NamedTuple):
    """Regions over two inputs, each once, with its value: the mean where there are several.

    `shapes` are paths of areas, and None where the regions are points at `x` and `y`.
    """

    x: Coordinate
    y: Coordinate
    shapes: list[Any] | None
    values: Float[np.ndarray, " n"]

    @property
    def grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Points as a full grid with steps along both: columns, rows and values, or None."""
        if self.shapes is not None:
            return None
        sides = (np.unique(c.middle.round(9), return_inverse=True) for c in (self.x, self.y))
        (first, i), (second, j) = sides
        if len(first) * len(second) != len(self.values) or min(len(first), len(second)) < 2:
            return None
        values = np.full((len(first), len(second)), np.nan)
        values[i, j] = self.values
        return first, second, values


def regions_on(
    support: Support,
    values: Float[np.ndarray, " n"],
    across: Sequence[str],
    place: Slice | None = None,
) -> Regions | None:
    """Return the regions of a support that meet a slice, over two inputs; None where none do."""
    rows = np.ones(len(support), bool) if place is None else place.rows(support)
    rows &= ~np.isnan(values)
    if not rows.any():
        return None
    some, values = support[np.flatnonzero(rows)], np.asarray(values)[rows]
    found = coordinates(some)
    x, y = (found[name] for name in across)
    cells = np.column_stack([x.lower, x.upper, y.lower, y.upper]).round(9)
    _, first, owner = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    owner = owner.reshape(-1)
    means = np.bincount(owner, values) / np.bincount(owner)
    x, y = (c._replace(lower=c.lower[first], upper=c.upper[first]) for c in (x, y))
    return Regions(x, y, _shapes(some[first], across, x, y), means)


def draw_regions(
    axes: "Axes",
    regions: Regions,
    limits: tuple[float, float],
    colours: str,
    *,
    marker: str | None = None,
) -> Any:
    """Draw values on regions: areas filled, points as markers or, as a full grid, as cells."""
    low, high = limits
    grid = regions.grid if marker is None else None
    if grid is not None:
        x, y, values = grid
        return axes.pcolormesh(x, y, values.T, vmin=low, vmax=high, cmap=colours, shading="nearest")
    if regions.shapes is None:
        return axes.scatter(
            regions.x.middle,
            regions.y.middle,
            c=regions.values,
            vmin=low,
            vmax=high,
            cmap=colours,
            marker=marker or "o",
            edgecolors="black",
            linewidths=0.6,
            s=SMALL if len(regions.values) > MANY else LARGE,
            zorder=3,
        )
    from matplotlib.collections import PathCollection

    edge = {"edgecolors": EDGE, "linewidths": 0.5} if len(regions.values) <= MANY else {}
    drawn = PathCollection(
        regions.shapes, cmap=colours, **(edge or {"edgecolors": "face", "linewidths": 0.2})
    )
    drawn.set_array(regions.values)
    drawn.set_clim(low, high)
    axes.add_collection(drawn)
    return drawn


def draw_outlines(axes: "Axes", regions: Regions, *, colour: str, marker: str = "o") -> Any:
    """Draw where regions are, over a map: edges of areas, hollow markers for points."""
    if regions.shapes is None:
        return axes.scatter(
            regions.x.middle,
            regions.y.middle,
            facecolors="none",
            edgecolors=colour,
            marker=marker,
            linewidths=0.7,
            s=SMALL if len(regions.values) > MANY else LARGE,
            zorder=3,
        )
    from matplotlib.collections import PathCollection

    drawn = PathCollection(
        regions.shapes, facecolors="none", edgecolors=colour, linewidths=0.9, zorder=2
    )
    axes.add_collection(drawn)
    return drawn


def set_map(axes: "Axes", several: Sequence[Regions]) -> None:
    """Label the axes of a map, to the scale of the ground, as wide as all regions."""
    joined = []
    for which in ("x", "y"):
        sides: list[Coordinate] = [getattr(regions, which) for regions in several]
        low, high = (np.concatenate([getattr(c, end) for c in sides]) for end in ("lower", "upper"))
        joined.append(sides[0]._replace(lower=low, upper=high))
    x, y = joined
    for which, c in (("x", x), ("y", y)):
        set_axis(axes, which, c)
        reach = _reach(c, several, [getattr(r, which) for r in several])
        getattr(axes, f"set_{which}lim")(*reach)
        if not c.dated:
            axes.locator_params(axis=which, nbins=5)  # pyright: ignore[reportArgumentType]
    axes.set_aspect(aspect_of(x, y))


def _reach(
    c: Coordinate, several: Sequence[Regions], sides: Sequence[Coordinate]
) -> tuple[float, float]:
    """Return from where to where an axis goes: to the edges of areas, and past points."""
    low, high = float(c.lower.min()), float(c.upper.max())
    margin = 0.0 if high > low else 0.5
    for regions, one in zip(several, sides, strict=True):
        if regions.shapes is not None:
            continue
        beyond = 0.04 * (high - low)
        if regions.grid is not None:
            beyond = 0.5 * float(np.median(np.diff(np.unique(one.middle.round(9)))))
        margin = max(margin, low - one.lower.min() + beyond, one.upper.max() - high + beyond)
    return low - margin, high + margin


def size_of(regions: Regions) -> float:
    """Return the height of a map that is one wide."""
    width, height = (
        max(float(c.upper.max() - c.lower.min()), 1e-9) for c in (regions.x, regions.y)
    )
    aspect = aspect_of(regions.x, regions.y)
    return 0.75 if aspect == "auto" else float(np.clip(aspect * height / width, 0.3, 2.0))


def _shapes(
    support: Support, across: Sequence[str], x: Coordinate, y: Coordinate
) -> list[Any] | None:
    """Return the paths of areas, or None for points."""
    from matplotlib.path import Path

    part = _part(laid_out(support), across)
    outlines = getattr(part, "outlines", None)
    if outlines is not None:
        return [_path(shape, (x.axis, y.axis)) for shape in outlines.shapes]
    # Nodes of unknown regions say no more than where their middle is.
    if isinstance(part, Nodes) or not np.any((x.upper > x.lower) & (y.upper > y.lower)):
        return None
    return [
        Path(np.array([(a, c), (b, c), (b, d), (a, d), (a, c)]), closed=True)
        for a, b, c, d in zip(x.lower, x.upper, y.lower, y.upper, strict=True)
    ]


def _part(support: Support, across: Sequence[str]) -> Support:
    """Return the part of a product that has the two inputs of a map, or the whole."""
    if isinstance(support, Product):
        for part, inputs in zip(support.parts, support.columns, strict=True):
            if [support.input_names[d] for d in inputs] == list(across):
                return part
    return support


def _path(shape: Any, axes: Sequence[Any]) -> Any:
    """Return a polygon, holes and all, as one path."""
    import shapely
    from matplotlib.path import Path

    rings = []
    for part in shapely.get_parts(shape):
        # Outer rings go one way and holes the other, so that holes stay empty.
        turned = shapely.geometry.polygon.orient(part)
        rings += [np.asarray(ring.coords)[:, :2] for ring in (turned.exterior, *turned.interiors)]
    return Path.make_compound_path(
        *(
            Path(np.column_stack([shown(ring[:, d], axes[d]) for d in (0, 1)]), closed=True)
            for ring in rings
        )
    )
