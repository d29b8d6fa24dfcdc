"""Regions on a map: cells, polygons and points as what they are, in the user's coordinates."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mrgp.data import Observations
from mrgp.plotting.coordinates import Coordinate, Vector, cells_of, coordinates, laid_out, shown
from mrgp.plotting.functions import per_unit
from mrgp.plotting.panels import Axes
from mrgp.plotting.slices import EVERYWHERE, Slice
from mrgp.supports import Nodes, Support

EDGE = "0.8"
SMALL, LARGE = 9.0, 28.0
MANY = 300
THIN = 0.01
"""How wide a box without width is drawn among boxes, as a share of the map."""

Limits = tuple[float, float]


class Regions(NamedTuple):
    """Regions over two inputs, each once, with its value: the mean where there are several.

    `shapes` are paths of areas, and None where the regions are points at `x` and `y`.
    """

    x: Coordinate
    y: Coordinate
    shapes: list[Any] | None
    values: Vector

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

    def draw(self, axes: Axes, limits: Limits, colours: str, *, marker: str | None = None) -> Any:
        """Draw the values: areas filled, points as markers or, as a full grid, as cells."""
        from matplotlib.colors import Normalize

        style: dict[str, Any] = {"norm": Normalize(*limits), "cmap": colours}
        grid = self.grid if marker is None else None
        if grid is not None:
            x, y, values = grid
            return axes.pcolormesh(x, y, values.T, shading="nearest", **style)
        if self.shapes is None:
            style |= {"c": self.values, "edgecolors": "black", "linewidths": 0.6}
            return self._scatter(axes, marker or "o", style)
        edge, width = (EDGE, 0.5) if len(self.values) <= MANY else ("face", 0.2)
        style |= {"array": self.values, "edgecolors": edge, "linewidths": width}
        return self._fill(axes, style)

    def outline(self, axes: Axes, colour: str, *, marker: str = "o") -> Any:
        """Draw where the regions are, over a map: edges of areas, hollow markers for points."""
        from matplotlib.patheffects import withStroke

        style: dict[str, Any] = {"facecolors": "none", "edgecolors": colour}
        if self.shapes is not None:
            return self._fill(axes, style | {"linewidths": 0.9, "zorder": 2})
        # Seen on light and on dark.
        halo = [withStroke(linewidth=2.2, foreground="white", alpha=0.7)]
        return self._scatter(axes, marker, style | {"linewidths": 0.7, "path_effects": halo})

    def _scatter(self, axes: Axes, marker: str, style: dict[str, Any]) -> Any:
        size = SMALL if len(self.values) > MANY else LARGE
        return axes.scatter(self.x.middle, self.y.middle, s=size, marker=marker, zorder=3, **style)

    def _fill(self, axes: Axes, style: dict[str, Any]) -> Any:
        from matplotlib.collections import PathCollection

        return axes.add_collection(PathCollection(self.shapes or [], **style))


def regions_on(
    support: Support, values: Vector, across: Sequence[str], place: Slice = EVERYWHERE
) -> Regions | None:
    """Return the regions of a support that meet a slice, over two inputs; None where none do."""
    rows = np.flatnonzero(place.rows(support) & ~np.isnan(values))
    if len(rows) == 0:
        return None
    some, values = support[rows], np.asarray(values)[rows]
    found = coordinates(some)
    x, y = (found[name] for name in across)
    part, columns = _part(laid_out(some), across)
    cells, outlines = cells_of([x, y]), getattr(part, "outlines", None)
    if outlines is not None:
        # Two polygons may have one bounding box.
        written = np.array([shape.wkb for shape in outlines.shapes], object)
        cells = np.column_stack([cells, np.unique(written, return_inverse=True)[1]])
    _, first, owner = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    owner = owner.reshape(-1)
    means = np.bincount(owner, values) / np.bincount(owner)
    x, y = x.take(first), y.take(first)
    if outlines is not None:
        shapes = [_path(shape, columns, (x.axis, y.axis)) for shape in outlines.shapes[first]]
        return Regions(x, y, shapes, means)
    # Nodes of unknown regions say no more than where their middle is.
    if isinstance(part, Nodes) or not np.any((x.upper > x.lower) & (y.upper > y.lower)):
        return Regions(x, y, None, means)
    return _areas(x, y, means)


def regions_of(
    observed: Observations, across: Sequence[str], place: Slice = EVERYWHERE
) -> Regions | None:
    """Return the regions of a source that meet a slice, with its values, as `regions_on` does."""
    return regions_on(observed.support, per_unit(observed), across, place)


def set_map(axes: Axes, several: Sequence[Regions]) -> None:
    """Label the axes of a map, to the scale of the ground, as wide as all regions."""
    x, y = _extent(several)
    for which, c in (("x", x), ("y", y)):
        c.label_axis(axes, which)
        getattr(axes, f"set_{which}lim")(*_reach(c, which, several))
        if not c.dated:
            axes.locator_params(axis=which, nbins=5)  # pyright: ignore[reportArgumentType]
    axes.set_aspect(x.aspect(y))


def size_of(several: Sequence[Regions]) -> float:
    """Return the height of a map of all regions that is one wide."""
    x, y = _extent(several)
    width, height = (max(float(np.ptp(c.ends)), 1e-9) for c in (x, y))
    aspect = x.aspect(y)
    return 0.75 if aspect == "auto" else float(np.clip(aspect * height / width, 0.3, 2.0))


def _extent(several: Sequence[Regions]) -> tuple[Coordinate, Coordinate]:
    return Coordinate.join([r.x for r in several]), Coordinate.join([r.y for r in several])


def _reach(c: Coordinate, which: str, several: Sequence[Regions]) -> tuple[float, float]:
    """Return from where to where an axis goes: to the edges of areas, and past points."""
    low, high = c.ends
    margin = 0.0 if high > low else 0.5
    for regions in (r for r in several if r.shapes is None):
        one: Coordinate = getattr(regions, which)
        beyond = 0.04 * (high - low)
        if regions.grid is not None:
            beyond = 0.5 * float(np.median(np.diff(np.unique(one.middle.round(9)))))
        first, last = one.ends
        margin = max(margin, low - first + beyond, last - high + beyond)
    return low - margin, high + margin


def _areas(x: Coordinate, y: Coordinate, values: Vector) -> Regions:
    """Give boxes their paths; those without an area come last, as wide as can be seen."""
    from matplotlib.path import Path

    flat = (x.upper <= x.lower) | (y.upper <= y.lower)
    order = np.argsort(flat, kind="stable")
    x, y = (_visible(c.take(order)) for c in (x, y))
    shapes = [
        Path(np.array([(a, c), (b, c), (b, d), (a, d), (a, c)]), closed=True)
        for a, b, c, d in zip(x.lower, x.upper, y.lower, y.upper, strict=True)
    ]
    return Regions(x, y, shapes, values[order])


def _visible(c: Coordinate) -> Coordinate:
    short = 0.5 * np.where(c.upper > c.lower, 0.0, THIN * float(np.ptp(c.ends)))
    return c._replace(lower=c.lower - short, upper=c.upper + short)


def _part(support: Support, across: Sequence[str]) -> tuple[Support, tuple[int, int]]:
    """Return the part of a product that has the two inputs of a map, and as which columns.

    Where no part has just these two it is the whole.
    """
    names = list(support.input_names)
    whole = names.index(across[0]), names.index(across[1])
    for part, inputs in support.members:
        if set(inputs) == set(whole):
            return part, (inputs.index(whole[0]), inputs.index(whole[1]))
    return support, whole


def _path(shape: Any, columns: Sequence[int], axes: Sequence[Any]) -> Any:
    """Return a polygon, holes and all, as one path over the columns of a map."""
    import shapely
    from matplotlib.path import Path

    rings = []
    for part in shapely.get_parts(shape):
        # Outer rings go one way and holes the other, so that holes stay empty.
        turned = shapely.geometry.polygon.orient(part)
        rings += [np.asarray(ring.coords) for ring in (turned.exterior, *turned.interiors)]
    pairs = list(zip(columns, axes, strict=True))
    corners = [np.column_stack([shown(ring[:, d], a) for d, a in pairs]) for ring in rings]
    return Path.make_compound_path(*(Path(ring, closed=True) for ring in corners))
