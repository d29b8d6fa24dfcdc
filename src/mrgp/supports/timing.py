"""Regions of space and time taken apart: where each is, and when (theory 10.1)."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from mrgp.supports.product import Products, of_parts
from mrgp.supports.support import Boxes, Nodes, Points, Rectangular, Support

SAME_PLACE = 1e-6
SAME_TIME = 1e-9


class Timed(NamedTuple):
    """Some `rows` of a support as a factor `scale`, a place, and an instant, window or times.

    Places have all inputs, with zero for the time. Where there are `times`, the value is a sum
    over them, with `shares`; otherwise it is the mean from `start` to `end`.

    >>> from mrgp import boxes
    >>> (part,) = taken_apart(boxes([[5.0, 0.0]], [[5.0, 3.0]], kind="sum"), time=1)
    >>> part.place.x.tolist(), part.start.tolist(), part.end.tolist(), part.scale.tolist()
    ([[5.0, 0.0]], [0.0], [3.0], [3.0])
    """

    rows: Int[np.ndarray, " n"]
    place: Support
    start: Float[np.ndarray, " n"]
    end: Float[np.ndarray, " n"]
    scale: Float[np.ndarray, " n"]
    times: Float[np.ndarray, "n s"] | None = None
    shares: Float[np.ndarray, "n s"] | None = None


def taken_apart(support: Support, time: int) -> list[Timed]:
    """Write every region as a place times an instant or a window of one input.

    >>> from mrgp import nodes
    >>> hours = nodes([[[2.0, 0.0], [2.0, 1.0]]])
    >>> taken_apart(hours, time=1)[0].times.tolist()
    [[0.0, 1.0]]
    """
    if isinstance(support, Rectangular):
        return _of_boxes(support, time)
    if isinstance(support, Nodes):
        return _of_nodes(support, time)
    if isinstance(support, Products):
        return _of_products(support, time)
    raise ValueError(f"a {type(support).__name__} is not taken apart into place and time")


def _of_boxes(support: Rectangular, time: int) -> list[Timed]:
    lower, upper = (np.array(bound) for bound in support.bounds)
    start, end = lower[:, time].copy(), upper[:, time].copy()
    lower[:, time] = upper[:, time] = 0.0
    point = (upper == lower).all(1)
    found = []
    for rows in map(np.flatnonzero, (point, ~point)):
        if not len(rows):
            continue
        ones, low, high = np.ones(len(rows)), lower[rows], upper[rows]
        flat = tuple((low == high).all(0).tolist())
        place = Points(low, ones) if flat == (True,) * len(flat) else Boxes(low, high, ones, flat)
        scale = np.asarray(support.total)[rows]
        found.append(Timed(rows, place, start[rows], end[rows], scale))
    return found


def _of_nodes(support: Nodes, time: int) -> list[Timed]:
    x, weights = np.array(support.x), np.asarray(support.weights)
    rows, used = np.arange(len(x)), weights != 0
    # Padding stands where the first node with a weight does.
    first = np.take_along_axis(x, np.argmax(used, 1)[:, None, None], 1)
    x = np.where(used[:, :, None], x, first)
    when = x[:, :, time].copy()
    x[:, :, time] = 0.0
    instant, here = (when == when[:, :1]).all(1), (x == x[:, :1]).all((1, 2))
    if not np.all(instant | here):
        raise ValueError(
            f"in {np.sum(~(instant | here))} of {len(x)} regions the nodes differ both in place and"
            " in time"
        )
    found = []
    wide = tuple(d for d in support.solid if d != time)
    if instant.any():
        place = Nodes(x[instant], weights[instant], wide=wide)
        at = when[instant][:, 0]
        found.append(Timed(rows[instant], place, at, at, np.ones(len(at))))
    over = ~instant
    if over.any():
        place = Points(x[over][:, 0], np.ones(over.sum()))
        ends = when[over].min(1), when[over].max(1)
        scale = np.ones(over.sum())
        found.append(Timed(rows[over], place, *ends, scale, when[over], weights[over]))
    return found


def _of_products(support: Products, time: int) -> list[Timed]:
    others = tuple(d for d in range(support.dimension) if d != time)
    place, when = support.factors((others, (time,)))
    if isinstance(place, Rectangular) and isinstance(when, Rectangular):
        raise TypeError("a product of boxes is a box")
    zero = Points(np.zeros((len(support), 1)), np.ones(len(support)))
    if isinstance(place, Nodes):
        x = np.insert(np.asarray(place.x), time, 0.0, axis=2)
        wide = tuple(others[d] for d in place.solid)
        lifted: Support = Nodes(x, np.asarray(place.weights), wide=wide)
    else:
        lifted = of_parts([(place, others), (zero, (time,))], {"kind": place.kind})
    return [
        part._replace(place=lifted[part.rows])
        for part in taken_apart(dataclasses.replace(when, inputs=None, axes=None), 0)
    ]


class Places(NamedTuple):
    """Distinct places as groups of supports of one kind, and which of them each row has.

    Places are numbered through all groups.

    >>> from mrgp import points
    >>> seen = taken_apart(points([[5.0, 0.0], [6.0, 0.0], [5.0, 1.0]]), time=1)
    >>> found = Places.of(seen, extent=np.ones(2))
    >>> found.groups[0].x[:, 0].tolist(), found.which[0].tolist()
    ([5.0, 6.0], [0, 1, 0])
    """

    groups: tuple[Support, ...]
    which: tuple[Int[np.ndarray, " n"], ...]

    @classmethod
    def of(cls, parts: Sequence[Timed], extent: Float[np.ndarray, " d"]) -> "Places":
        """Find the distinct places of some parts; those that differ by rounding are the same."""
        return distinct([part.place for part in parts], extent)

    def __len__(self) -> int:
        return sum(map(len, self.groups))


def distinct(places: Sequence[Support], extent: Float[np.ndarray, " d"]) -> Places:
    """Find the distinct places among supports, kind by kind.

    >>> from mrgp import points
    >>> len(distinct([points([[1.0]]), points([[1.0], [2.0]])], np.ones(1)))
    2
    """
    kinds: dict[Any, list[int]] = {}
    for i, place in enumerate(places):
        kinds.setdefault(_kind(place), []).append(i)
    groups, index, count = [], [np.zeros(0, int)] * len(places), 0
    for members in kinds.values():
        keys = np.concatenate([_key(places[i], extent) for i in members])
        told = np.unique(_snapped(keys), axis=0, return_index=True, return_inverse=True)
        first, inverse = told[1], told[2]
        # In the order of the data, not of the coordinates.
        order = np.argsort(first)
        number = np.empty_like(order)
        number[order] = np.arange(len(order))
        groups.append(_joined([places[i] for i in members])[first[order]])
        ends = np.cumsum([0, *(len(places[i]) for i in members)])
        for i, a, b in zip(members, ends[:-1], ends[1:], strict=True):
            index[i] = count + number[inverse.ravel()[a:b]]
        count += len(first)
    return Places(tuple(groups), tuple(index))


def _kind(place: Support) -> Any:
    if isinstance(place, Points):
        return "points"
    if isinstance(place, Boxes):
        return "boxes"
    return type(place), place.nodes_per_region, place.solid, place.pointlike, place.blocks


def _key(place: Support, extent: Float[np.ndarray, " d"]) -> Float[np.ndarray, "n k"]:
    atoms = place.atoms()
    ends = (np.asarray(side) / extent for side in (atoms.lower, atoms.upper))
    columns = [*(end.reshape(len(place), -1) for end in ends), np.asarray(atoms.weights)]
    return np.concatenate(columns, 1)


def _snapped(keys: Float[np.ndarray, "n k"]) -> Int[np.ndarray, "n k"]:
    """Number the values of each column, those that differ by rounding alike."""
    return np.stack([number_values(column, SAME_PLACE) for column in keys.T], 1)


def number_values(values: Float[np.ndarray, " n"], tolerance: float) -> Int[np.ndarray, " n"]:
    """Number values in ascending order; neighbours within the tolerance have one number.

    >>> number_values(np.array([3.0, 1.0, 1.0 + 1e-9]), 1e-6).tolist()
    [1, 0, 0]
    """
    order = np.argsort(values, kind="stable")
    step = np.diff(values[order], prepend=values[order][:1]) > tolerance
    found = np.empty(len(values), int)
    found[order] = np.cumsum(step)
    return found


def _joined(places: Sequence[Support]) -> Support:
    first = places[0]
    if isinstance(first, Boxes):
        flat = tuple(np.logical_and.reduce([p.pointlike for p in places]).tolist())
        places = [dataclasses.replace(p, flat=flat) for p in places]
    if len(places) == 1:
        return places[0]
    import jax

    bare = [dataclasses.replace(p, inputs=None, axes=None, covariates=None) for p in places]
    return jax.tree.map(lambda *several: np.concatenate(several), *bare)
