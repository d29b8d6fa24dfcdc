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
    joined,
    laid_out,
    set_axis,
    shown,
)
from mrgp.supports import Nodes, Products, Support

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EDGE = "0.8"
SMALL, LARGE = 9.0, 28.0
MANY = 300
THIN = 0.01
"""How wide a box without width is drawn among boxes, as a share of the map."""


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
    *,
    exact: bool = False,
) -> Regions | None:
    """Return the regions of a support that meet a slice, over two inputs; None where none do.

    With `exact` they are those of the slice, for the support that it was taken from.
    """
    rows = np.ones(len(support), bool) if place is None else place.rows(support, exact=exact)
    rows &= ~np.isnan(values)
    if not rows.any():
        return None
    some, values = support[np.flatnonzero(rows)], np.asarray(values)[rows]
    found = coordinates(some)
    x, y = (found[name] for name in across)
    part, columns = _part(laid_out(some), across)
    cells = np.column_stack([x.lower, x.upper, y.lower, y.upper]).round(9)
    outlines = getattr(part, "outlines", None)
    if outlines is not None:
        # Two polygons may have one bounding box.
        cells = np.column_stack([cells, _numbers(outlines.shapes)])
    _, first, owner = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    owner = owner.reshape(-1)
    means = np.bincount(owner, values) / np.bincount(owner)
    x, y = (c._replace(lower=c.lower[first], upper=c.upper[first]) for c in (x, y))
    if outlines is not None:
        shapes = [_path(shape, columns, (x.axis, y.axis)) for shape in outlines.shapes[first]]
        return Regions(x, y, shapes, means)
    # Nodes of unknown regions say no more than where their middle is.
    if isinstance(part, Nodes) or not np.any((x.upper > x.lower) & (y.upper > y.lower)):
        return Regions(x, y, None, means)
    return _areas(Regions(x, y, None, means))


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
    from matplotlib.patheffects import withStroke

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
            # Seen on light and on dark.
            path_effects=[withStroke(linewidth=2.2, foreground="white", alpha=0.7)],
        )
    from matplotlib.collections import PathCollection

    drawn = PathCollection(
        regions.shapes, facecolors="none", edgecolors=colour, linewidths=0.9, zorder=2
    )
    axes.add_collection(drawn)
    return drawn


def set_map(axes: "Axes", several: Sequence[Regions]) -> None:
    """Label the axes of a map, to the scale of the ground, as wide as all regions."""
    x, y = (joined([getattr(regions, which) for regions in several]) for which in ("x", "y"))
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


def size_of(several: Sequence[Regions]) -> float:
    """Return the height of a map of all regions that is one wide."""
    x, y = (joined([getattr(regions, which) for regions in several]) for which in ("x", "y"))
    width, height = (max(float(c.upper.max() - c.lower.min()), 1e-9) for c in (x, y))
    aspect = aspect_of(x, y)
    return 0.75 if aspect == "auto" else float(np.clip(aspect * height / width, 0.3, 2.0))


def _areas(regions: Regions) -> Regions:
    """Give boxes their paths; those without an area come last, as wide as can be seen."""
    from matplotlib.path import Path

    flat = (regions.x.upper <= regions.x.lower) | (regions.y.upper <= regions.y.lower)
    order = np.argsort(flat, kind="stable")
    x, y = (c._replace(lower=c.lower[order], upper=c.upper[order]) for c in (regions.x, regions.y))
    x, y = _visible(x), _visible(y)
    shapes = [
        Path(np.array([(a, c), (b, c), (b, d), (a, d), (a, c)]), closed=True)
        for a, b, c, d in zip(x.lower, x.upper, y.lower, y.upper, strict=True)
    ]
    return Regions(x, y, shapes, regions.values[order])


def _visible(c: Coordinate) -> Coordinate:
    least = THIN * float(c.upper.max() - c.lower.min())
    short = 0.5 * np.where(c.upper > c.lower, 0.0, least)
    return c._replace(lower=c.lower - short, upper=c.upper + short)


def _part(support: Support, across: Sequence[str]) -> tuple[Support, tuple[int, int]]:
    """Return the part of a product that has the two inputs of a map, and as which columns.

    Where no part has just these two it is the whole.
    """
    names = list(support.input_names)
    whole = names.index(across[0]), names.index(across[1])
    if isinstance(support, Products):
        for part, inputs in zip(support.parts, support.columns, strict=True):
            if set(inputs) == set(whole):
                return part, (inputs.index(whole[0]), inputs.index(whole[1]))
    return support, whole


def _numbers(shapes: np.ndarray) -> np.ndarray:
    """Return the same number for equal polygons, and others for others."""
    import shapely

    known: dict[bytes, int] = {}
    return np.array([known.setdefault(written, len(known)) for written in shapely.to_wkb(shapes)])


def _path(shape: Any, columns: Sequence[int], axes: Sequence[Any]) -> Any:
    """Return a polygon, holes and all, as one path over the columns of a map."""
    import shapely
    from matplotlib.path import Path

    rings = []
    for part in shapely.get_parts(shape):
        # Outer rings go one way and holes the other, so that holes stay empty.
        turned = shapely.geometry.polygon.orient(part)
        rings += [np.asarray(ring.coords)[:, :2] for ring in (turned.exterior, *turned.interiors)]
    pairs = list(zip(columns, axes, strict=True))
    return Path.make_compound_path(
        *(
            Path(np.column_stack([shown(ring[:, d], axis) for d, axis in pairs]), closed=True)
            for ring in rings
        )
    )
