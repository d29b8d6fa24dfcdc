"""Observations whose supports overlap, directly or through others (theory 4.3)."""

import dataclasses
import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from mrgp.supports.components import Corners, Index, Links, by_appearance, components, ranges
from mrgp.supports.concat import require_same_axes
from mrgp.supports.outlines import NEGLIGIBLE, overlapping, rectangles
from mrgp.supports.polygons import Polygons
from mrgp.supports.product import all_combinations, placed
from mrgp.supports.support import Columns, Nodes, Support

_AT_ONCE = 2**21


@dataclasses.dataclass(frozen=True, eq=False)
class Clusters:
    """Groups of observations: `labels[a][n]` is the cluster of observation n of source a.

    Labels are 0, 1, ... in order of first appearance, and `sizes` counts the observations of each.
    `split` is how many connected clusters were larger than allowed and were cut into several.

    >>> Clusters((np.array([0, 1]), np.array([0])), np.array([2, 1])).count
    2
    """

    labels: tuple[Int[np.ndarray, " _"], ...]
    sizes: Int[np.ndarray, " k"]
    split: int = 0

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.sizes)

    def __repr__(self) -> str:
        sources = f"{len(self.labels)} source{'' if len(self.labels) == 1 else 's'}"
        text = f"{self.count} of {self.sizes.sum()} observations in {sources}"
        if self.count:
            least, most = self.sizes.min(), self.sizes.max()
            text += f", sizes {least} to {most}" if least < most else f", size {most}"
        return f"Clusters({text}{f', {self.split} split' if self.split else ''})"


def overlap_clusters(supports: Iterable[Any], *, largest: int | None = None) -> Clusters:
    """Group observations whose supports overlap, across and within sources.

    `supports` is a list of supports, or of observations, or a dataset.

    Two regions overlap where they share a place, a box being half-open, [lower, upper): boxes that
    touch do not overlap, a point on a common edge belongs to the upper box, points overlap where
    they are equal, and so do sides of zero width. Overlaps of less than a millionth of a box's
    width are taken for rounding. Nodes overlap what one of their nodes lies in or coincides with.
    Polygons overlap where they have area in common (more than a millionth of the smaller), and
    hold the points of their interior. Products overlap where all their factors do.
    Regions with covariates or weights overlap as they did without. A cluster is all that is
    connected by overlaps, of any source.

    With `largest`, a cluster of more observations is halved, at the median centre along the input
    where its centres spread most relative to all centres, until no part is larger.

    >>> from mrgp import intervals, points
    >>> found = overlap_clusters([points([[0.5], [2.0]]), intervals([0.0, 1.0], [1.0, 2.0])])
    >>> found
    Clusters(3 of 4 observations in 2 sources, sizes 1 to 2)
    >>> found.labels
    (array([0, 1]), array([0, 2]))
    """
    supports = tuple(getattr(item, "support", item) for item in supports)
    _check(supports, largest)
    sizes = [len(support) for support in supports]
    links = Links(sum(sizes))
    own = supports[0].dimension - _added(supports[0])
    regions = [_regions(s, number).of_inputs(own) for number, s in enumerate(supports)]
    pieces = _all_pieces(regions, supports[0].input_names)
    _join_boxes(pieces, links)
    _join_polygons(pieces, links)
    labels, split = links.labels(), 0
    if largest is not None:
        labels, split = _split(labels, np.concatenate([_centres(r) for r in regions]), largest)
    labels, _, counts = by_appearance(labels)
    return Clusters(tuple(np.split(labels, np.cumsum(sizes)[:-1])), counts, split)


def _check(supports: tuple[Support, ...], largest: Any) -> None:
    where = "overlap_clusters"
    if not supports:
        raise ValueError(f"{where} needs at least one support, as {where}([a, b]).")
    for i, support in enumerate(supports):
        if not isinstance(support, Support):
            raise TypeError(
                f"{where} takes a list of supports; number {i} is of type {type(support).__name__}."
            )
        if support.input_names != supports[0].input_names:
            raise ValueError(
                f"{where}: all supports need the same inputs; number 0 has"
                f" {supports[0].input_names} and number {i} {support.input_names}."
            )
        require_same_axes(supports[0], support, where)
        if _added(support) != _added(supports[0]):
            raise ValueError(
                f"{where}: all supports need the same covariates; number 0 has"
                f" {_added(supports[0])} and number {i} {_added(support)}. Add them to all with"
                " with_covariates, or to none."
            )
    if largest is not None and (not isinstance(largest, int | np.integer) or largest < 1):
        raise ValueError(f"{where}: largest= is a number of observations; got {largest!r}.")


def _added(support: Support) -> int:
    """Return the number of inputs that are covariates; they come last."""
    return sum(len(field.names) for field in support.covariates or ())


class _Pieces(NamedTuple):
    """Boxes, and boxes around polygons, that regions are made of; shape -1 stands for no polygon.

    Coordinates are those given; corners are integers in the same order (`_integers`).
    """

    region: Index
    coordinates: tuple[Float[np.ndarray, "m d"], Float[np.ndarray, "m d"]]
    corners: tuple[Corners, Corners]
    shape: Index
    shapes: np.ndarray
    plane: Columns


class _Regions(NamedTuple):
    """Regions as up to s boxes each; where there is a plane of two inputs, polygons in it."""

    lower: Float[np.ndarray, "n s d"]
    upper: Float[np.ndarray, "n s d"]
    used: np.ndarray
    shapes: np.ndarray
    plane: Columns = ()

    def of_inputs(self, count: int) -> "_Regions":
        """Leave out the inputs after the first, which are covariates."""
        return self._replace(lower=self.lower[..., :count], upper=self.upper[..., :count])


def _regions(support: Support, number: int) -> _Regions:
    """Write a support as boxes and polygons."""
    members = [(_member(part, number), columns) for part, columns in support.members]
    shaped = [(part, columns) for part, columns in members if part.plane]
    if len(shaped) > 1:
        raise ValueError(
            f"overlap_clusters: support number {number} is a product of several polygons; only one"
            " factor of a product may be a polygon."
        )
    some, own = (shaped or members)[0]
    plane = tuple(own[d] for d in some.plane)
    groups = tuple(columns for _, columns in members)
    lower, upper, used = all_combinations([part[:3] for part, _ in members])
    lower, upper = (np.asarray(placed(corner, groups)) for corner in (lower, upper))
    return _Regions(lower, upper, np.logical_and.reduce(used), some.shapes, plane)


def _member(support: Support, number: int) -> _Regions:
    """Write a support that is no product; of nodes, the regions that they stand for."""
    if isinstance(support, Polygons):
        if support.outlines is None:
            raise ValueError(
                f"overlap_clusters: support number {number} has polygons without outlines, as in a"
                " copy that was moved by affine or shift. Give the polygons as they were made."
            )
        lower, upper = (np.asarray(bound)[:, None, :] for bound in support.bounds)
        used = np.ones((len(support), 1), bool)
        return _Regions(lower, upper, used, support.outlines.shapes, (0, 1))
    if isinstance(support, Nodes) and support.solid:
        if support.origin is None:
            raise ValueError(
                f"overlap_clusters: support number {number} has nodes that stand for regions, which"
                " they no longer know, as after quadrature, or in a copy moved to other axes or by"
                " affine or shift. Give the regions before that; add covariates and weights after"
                " Dataset([...]) has brought all to common axes."
            )
        made = _regions(support.origin.regions, number)
        # The covariates that came later are zero.
        later = ((0, 0), (0, 0), (0, support.dimension - made.lower.shape[-1]))
        return made._replace(lower=np.pad(made.lower, later), upper=np.pad(made.upper, later))
    lower, upper, weights = (np.asarray(array) for array in support.atoms()[:3])
    used = weights != 0
    return _Regions(lower, upper, used | ~used.any(1)[:, None], np.full(len(used), None))


def _all_pieces(found: list[_Regions], names: tuple[str, ...]) -> _Pieces:
    """Write all regions as pieces, numbered through the sources."""
    planes = {part.plane for part in found if part.plane}
    if len(planes) > 1:
        over = " and over ".join(str(tuple(names[d] for d in plane)) for plane in sorted(planes))
        raise ValueError(
            f"overlap_clusters: all polygons need the same inputs; got some over {over}."
        )
    lower, upper = (
        np.concatenate([getattr(part, end)[part.used] for part in found])
        for end in ("lower", "upper")
    )
    starts = np.cumsum([0, *(len(part.used) for part in found)])
    rows = [np.nonzero(part.used)[0] + start for part, start in zip(found, starts, strict=False)]
    region = np.concatenate(rows)
    shape, shapes = _distinct(np.concatenate([part.shapes for part in found]))
    plane = planes.pop() if planes else ()
    return _Pieces(region, (lower, upper), _integers(lower, upper), shape[region], shapes, plane)


def _distinct(shapes: np.ndarray) -> tuple[Index, np.ndarray]:
    """Number the distinct geometries, as products repeat them; None has the number -1."""
    key = np.fromiter((0 if s is None else id(s) for s in shapes), np.int64, len(shapes))
    keys, first, index = np.unique(key, return_index=True, return_inverse=True)
    none = int(len(keys) > 0 and keys[0] == 0)
    return index - none, shapes[first[none:]]


def _integers(lower: np.ndarray, upper: np.ndarray) -> tuple[Corners, Corners]:
    """Return half-open boxes with integer corners that overlap as the boxes do.

    Distinct coordinates become even numbers in their order, and a side of zero width reaches to
    the odd number above. Other sides are drawn in a little, since rounding makes the cells of a
    grid overlap where they should touch.
    """
    low, high = (np.empty(lower.shape, np.int64) for _ in range(2))
    drawn_in = upper - NEGLIGIBLE * (upper - lower)
    for d in range(lower.shape[1]):
        ends = np.concatenate([lower[:, d], drawn_in[:, d]])
        index = np.unique(ends, return_inverse=True)[1]
        low[:, d], top = 2 * index[: len(lower)], 2 * index[len(lower) :]
        high[:, d] = np.where(top > low[:, d], top, low[:, d] + 1)
    return low, high


def _join_boxes(pieces: _Pieces, links: Links) -> None:
    """Join regions whose boxes overlap."""
    plain = pieces.shape < 0
    found = components(*(corner[plain] for corner in pieces.corners))
    _join(pieces.region[plain], found, links)


def _join_polygons(pieces: _Pieces, links: Links) -> None:
    """Join regions with polygons to what they overlap.

    A footprint is what a piece covers of the plane of the polygons. Products repeat footprints, so
    these are compared once. Pieces of one footprint, or of two that overlap, overlap where their
    sides along the other inputs do.
    """
    if not pieces.plane:
        return
    footprint, shapes = _footprints(pieces)
    polygons = np.arange(len(pieces.shapes))
    others = [d for d in range(pieces.corners[0].shape[1]) if d not in pieces.plane]
    if not others:
        planar = Links(len(shapes))
        for pairs in overlapping(shapes, len(polygons), planar):
            planar.add(*pairs)
        _join(pieces.region, planar.labels()[footprint], links)
        return
    order, count = np.argsort(footprint, kind="stable"), np.bincount(footprint)
    stop = np.cumsum(count)
    lower, upper = (corner[order][:, others] for corner in pieces.corners)
    for i, j in itertools.chain([(polygons, polygons)], overlapping(shapes, len(polygons))):
        for batch in _batches(count[i] + count[j]):
            pair, piece = ranges(
                np.append((stop - count)[i[batch]], (stop - count)[j[batch]]),
                np.append(stop[i[batch]], stop[j[batch]]),
            )
            pair = (pair % len(batch))[:, None]
            found = components(np.hstack([pair, lower[piece]]), np.hstack([pair + 1, upper[piece]]))
            _join(pieces.region[order[piece]], found, links)


def _footprints(pieces: _Pieces) -> tuple[Index, np.ndarray]:
    """Return the footprint of each piece, and the geometries of all: polygons, then boxes."""
    polygons, columns = len(pieces.shapes), list(pieces.plane)
    footprint, plain = pieces.shape.copy(), np.flatnonzero(pieces.shape < 0)
    corners = np.hstack([corner[plain][:, columns] for corner in pieces.corners])
    _, first, index = np.unique(corners, axis=0, return_index=True, return_inverse=True)
    footprint[plain] = polygons + index.reshape(-1)
    lower, upper = (end[plain[first]][:, columns] for end in pieces.coordinates)
    return footprint, np.concatenate([pieces.shapes, rectangles(lower, upper)])


def _batches(sizes: Index) -> list[Index]:
    """Split a list into stretches of bounded total size."""
    chunk = (np.cumsum(sizes) - sizes) // _AT_ONCE
    return np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(chunk)) + 1) if len(sizes) else []


def _join(things: Index, labels: Index, links: Links) -> None:
    """Join things that have one label."""
    _, first, index = np.unique(labels, return_index=True, return_inverse=True)
    links.add(things, things[first[index]])


def _centres(regions: _Regions) -> Float[np.ndarray, "n d"]:
    used = regions.used[..., None]
    lower = np.where(used, regions.lower, np.inf).min(1)
    return 0.5 * (lower + np.where(used, regions.upper, -np.inf).max(1))


def _split(labels: Index, centres: Float[np.ndarray, "n d"], largest: int) -> tuple[Index, int]:
    """Halve clusters that are too large, and count them."""
    extent = np.ptp(centres, axis=0)
    scaled = centres / np.where(extent > 0, extent, 1.0)
    order, sizes = np.argsort(labels, kind="stable"), np.bincount(labels)
    stop, large = np.cumsum(sizes), np.flatnonzero(sizes > largest)
    labels, following = labels.copy(), len(sizes)
    for cluster in large:
        rows = order[stop[cluster] - sizes[cluster] : stop[cluster]]
        for number, part in enumerate(_halves(rows, scaled, largest), following):
            labels[part], following = number, number + 1
    return labels, len(large)


def _halves(rows: Index, centres: Float[np.ndarray, "n d"], largest: int) -> list[np.ndarray]:
    """Halve rows at the median centre along the widest input, until no part is too large."""
    if len(rows) <= largest:
        return [rows]
    widest = np.argmax(np.ptp(centres[rows], axis=0))
    order = np.argsort(centres[rows, widest], kind="stable")
    halves = np.split(rows[order], [len(rows) // 2])
    return [part for half in halves for part in _halves(half, centres, largest)]
