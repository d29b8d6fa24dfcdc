"""Polygons: districts, catchments, footprints, averaged over the pieces a grid cuts them into."""

import dataclasses
import functools
import warnings
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from mrgp._types import Inputs, Vector
from mrgp.supports.covariates import Field
from mrgp.supports.outlines import Outlines, Pieces, cut, read, shapely
from mrgp.supports.regions import check_labels, check_multiplier, join_nodes
from mrgp.supports.support import Kind, Nodes, PerInput

Steps = Float[np.ndarray, " n"]

CELLS_ACROSS = 5
"""By default a polygon of median area is about this many cells across."""

MOST_REFINED = 10_000
_FEWEST = 4


class Polygons(Nodes):
    """Means or integrals over polygons, as sums over nodes inside.

    `spacing` is the step of the grid that cut each polygon, and `lower` and `upper` are the corners
    of its bounding box. `outlines` are the geometries; a copy with other coordinates (`affine`) is
    arithmetic only and has none.
    """

    spacing: Vector
    lower: Inputs
    upper: Inputs
    outlines: Outlines | None = eqx.field(static=True, default=None)

    @property
    def bounds(self) -> tuple[Inputs, Inputs]:
        return self.lower, self.upper

    @property
    def solid(self) -> tuple[int, ...]:
        return tuple(range(self.dimension))

    def affine(self, scale: PerInput, offset: PerInput) -> "Polygons":
        spacing = scale.max() * self.spacing
        return dataclasses.replace(super().affine(scale, offset), spacing=spacing)

    def weighted(self, source: Any, *, inputs: Any = None, method: str = "linear") -> "Polygons":
        """Weight the places inside each polygon by a known density, such as population.

        >>> from shapely import box
        >>> polygons([box(0, 0, 1, 1)], spacing=0.1).weighted(lambda x: x[:, 0]).moment.round(3)
        array([[0.665, 0.5  ]])
        """
        field, outlines = Field.of(source, "weight", inputs, method), self.outlines
        if outlines is not None:
            outlines = dataclasses.replace(outlines, densities=(*outlines.densities, field))
        return dataclasses.replace(self._under(field), outlines=outlines)

    def _under(self, density: Field) -> "Polygons":
        """Multiply the weights of the nodes by a density there."""
        weights = np.asarray(density.weight(self).atoms().weights)
        return dataclasses.replace(self, weights=weights)

    def refine(self, spacing: float | None = None, *, most: int = MOST_REFINED) -> "Polygons":
        """Return the same polygons with more nodes, to see whether these are enough.

        The default spacing is half of each polygon's own.

        >>> from shapely import box
        >>> polygons([box(0, 0, 1, 1)], spacing=0.5).refine()
        Polygons(1 mean of 16 nodes: x1 0 to 1, width 1; x2 0 to 1, width 1)
        """
        if self.outlines is None:
            raise ValueError(
                "refine: these polygons have no outlines, as in a copy that was moved by affine or"
                " shift. Refine the polygons as they were made."
            )
        if self.outlines.stale:
            raise ValueError(
                "refine: these polygons are weighted by a function of other numbers than they are"
                " in now, as a Dataset brought them to its axes. Refine the polygons as they were"
                " made, or weight them by an xarray grid, which is looked up in dates and degrees."
            )
        steps = 0.5 * np.asarray(self.spacing) if spacing is None else spacing
        steps = _check_spacing(steps, len(self), "refine")
        made = _make(self.outlines, steps, most, "refine", self.labels)
        return functools.reduce(Polygons._under, self.outlines.densities, made)


def polygons(
    geometries: Any,
    *,
    spacing: float | None = None,
    inputs: Any = None,
    kind: Kind = "mean",
    weights: Any = None,
    most: int = 400,
    space: Any = None,
) -> Polygons:
    """Let each value be the mean, or the integral, over a polygon.

    `geometries` are shapely geometries, or a geopandas series or frame: polygons with or without
    holes, multipolygons, collections that hold some. A grid of step `spacing`, whose lines are the
    multiples of it, cuts each polygon into pieces. A piece becomes a node at its centroid that
    weighs its area, so that areas and the means of linear functions are exact and errors shrink
    with the square of the spacing. The default spacing is a fifth of the side of a square of median
    area. A polygon that needs more than `most` nodes gets a coarser spacing of its own, with a
    warning; the attribute `spacing` has that of each.

    `weights` is a density over the inputs, such as population: an xarray grid, or a function of
    the node coordinates [k, 2]. A mean is then the weighted mean, a sum the weighted total. With
    `kind="sum"` it may also be one factor for each region. The two inputs are directions of one
    space, with one lengthscale by default, unless `space=()`.

    >>> from shapely import Polygon, box
    >>> polygons([box(0, 0, 2, 1), Polygon([(2, 0), (3, 0), (2, 1)])], kind="sum", spacing=0.5)
    Polygons(2 sums of 8 nodes: x1 0 to 3, widths 1 to 2; x2 0 to 1, width 1)
    """
    where = "polygons"
    shapes, repaired = read(geometries, where)
    labels = check_labels(inputs, kind, 2, where, space)
    if space is None:
        labels["space"] = ((0, 1),)
    if repaired:
        warnings.warn(
            f"{where}: {repaired} of {len(shapes)} geometries had outlines that cross or parts that"
            " overlap, and were repaired by shapely.make_valid. Look at them on a map, or give"
            " valid geometries.",
            stacklevel=2,
        )
    if spacing is None:
        spacing = float(np.sqrt(np.median(shapely.area(shapes)))) / CELLS_ACROSS
    density = callable(weights) or hasattr(weights, "dims")
    factor = check_multiplier(None if density else weights, len(shapes), kind, where)
    steps = _check_spacing(spacing, len(shapes), where)
    made = _make(Outlines(shapes, factor), steps, most, where, labels)
    return made.weighted(weights) if density else made


def concat_polygons(parts: Sequence[Polygons]) -> Polygons:
    """Join polygons, with their outlines where all have them and are weighted alike.

    >>> from shapely import box
    >>> concat_polygons([polygons([box(0, 0, 1, 1)]), polygons([box(1, 0, 3, 2)])])
    Polygons(2 means of 30 nodes: x1 0 to 3, widths 1 to 2; x2 0 to 2, widths 1 to 2)
    """
    first = parts[0]
    nodes = join_nodes(parts)
    arrays = zip(*((part.spacing, part.lower, part.upper) for part in parts), strict=True)
    spacing, lower, upper = map(np.concatenate, arrays)
    kept = [part.outlines for part in parts if part.outlines is not None]
    joined = None
    if len(kept) == len(parts) and len({o.densities for o in kept}) == 1:
        shapes, factor = np.concatenate([o.shapes for o in kept]), [o.factor for o in kept]
        stale = any(o.stale for o in kept)
        joined = Outlines(shapes, np.concatenate(factor), kept[0].densities, stale)
    return Polygons(nodes.x, nodes.weights, spacing, lower, upper, joined, **first.labels)


def _make(
    outlines: Outlines, spacing: Steps, most: int, where: str, labels: dict[str, Any]
) -> Polygons:
    """Cut polygons, and warn where some got a coarser spacing; densities are left to the caller."""
    shapes = outlines.shapes
    if not isinstance(most, int | np.integer) or most < _FEWEST:
        raise ValueError(f"{where}: most= is a number of nodes, at least {_FEWEST}; got {most!r}.")
    pieces, used = _few_pieces(shapes, spacing, most)
    coarser = used > spacing
    if coarser.any():
        worst = int(np.argmax(np.where(coarser, used, 0.0)))
        warnings.warn(
            f"{where}: {coarser.sum()} of {len(shapes)} regions need more than most={most} nodes at"
            f" spacing {spacing[worst]:.3g} and got a coarser one, up to {used[worst]:.3g} (region"
            f" {worst}). With a lengthscale l their prior sd is off by about the fraction"
            f" ({used[worst]:.3g} / l)^2 / 12. Where that is too much raise most=; where it is not,"
            " give that spacing and no warning comes. The attribute spacing has what was used.",
            stacklevel=3,
        )
    x, weights = _padded(pieces, len(shapes))
    scale = 1.0 / weights.sum(1) if labels["kind"] == "mean" else outlines.factor
    bounds = shapely.bounds(shapes)
    lower, upper = bounds[:, :2], bounds[:, 2:]
    return Polygons(x, weights * scale[:, None], used, lower, upper, outlines, **labels)


def _few_pieces(shapes: np.ndarray, spacing: Steps, most: int) -> tuple[Pieces, Steps]:
    """Cut each polygon into at most so many pieces, by a coarser grid where there are more."""
    area = shapely.area(shapes)
    # There are at least area / spacing^2 pieces: what is too fine for sure is not tried.
    used = spacing * _coarser(area / (np.asarray(spacing) ** 2 * most), np.ceil)
    found, rows = [], np.arange(len(shapes))
    while len(rows):
        pieces = cut(shapes[rows], used[rows])
        count = np.bincount(pieces.owner, minlength=len(rows))
        kept = pieces.take((count <= most)[pieces.owner])
        found.append(kept._replace(owner=rows[kept.owner]))
        rows, count = rows[count > most], count[count > most]
        used[rows] *= np.maximum(_coarser(count / most, np.floor), np.sqrt(2.0))
    return Pieces.joined(found), used


def _coarser(excess: np.ndarray, whole: np.ufunc) -> np.ndarray:
    """Return the power of sqrt(2) that makes so many times fewer cells, at least one."""
    return np.sqrt(2.0) ** np.maximum(whole(np.log2(excess)), 0.0)


def _padded(pieces: Pieces, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of each region; those missing repeat the first with weight zero."""
    pieces = pieces.take(np.argsort(pieces.owner, kind="stable"))
    count = np.bincount(pieces.owner, minlength=n)
    first = np.cumsum(count) - count
    place = np.arange(len(pieces.owner)) - first[pieces.owner]
    x = np.repeat(pieces.x[first][:, None, :], count.max(), 1)
    weights = np.zeros(x.shape[:2])
    x[pieces.owner, place], weights[pieces.owner, place] = pieces.x, pieces.area
    return x, weights


def _check_spacing(spacing: Any, n: int, where: str) -> Steps:
    try:
        given = np.asarray(spacing, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.array(np.nan)
    if given.shape not in ((), (n,)) or not (np.isfinite(given).all() and (given > 0).all()):
        raise ValueError(
            f"{where}: spacing= is a positive number in the units of the coordinates; got"
            f" {spacing!r}."
        )
    return np.broadcast_to(given, (n,)).copy()
