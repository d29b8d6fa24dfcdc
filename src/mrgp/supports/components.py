"""Connected components of overlapping boxes, in about linear time (theory 4.3).

Boxes are half-open, [lower, upper), with integer corners and sides of at least one, so that two
overlap where they share a cell of the lattice. Overlapping pairs may be as many as the square of
the boxes, and are not listed. Space is cut into parts instead. In each part the boxes that reach
through it along all inputs but one are intervals, and are settled by a sweep; only the others are
cut further. In two dimensions a box is cut further in at most four parts of a level, those that
hold its corners, which bounds time and memory whatever the layout.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Shaped
from scipy import sparse
from scipy.sparse.csgraph import connected_components

Corners = Int[np.ndarray, "m d"]
Index = Int[np.ndarray, " m"]

_CUTS = 4
_FEW = 128
_CROWD = 1024
_GAP_ROUNDS = 3


def components(lower: Corners, upper: Corners) -> Index:
    """Label boxes with one integer where they overlap, directly or through others.

    >>> lower, upper = np.array([[0, 0], [4, 4], [1, 1]]), np.array([[2, 2], [6, 6], [3, 3]])
    >>> components(lower, upper).tolist()
    [0, 1, 0]
    """
    links = Links(len(lower))
    parts = [_Part(box, lower[box], upper[box]) for box in _crowds(_between_gaps(lower, upper))]
    while parts:
        smaller = [made for part in parts for made in _settle(part, links)]
        labels = links.labels()
        parts = [part for part in smaller if len(part.box) and np.ptp(labels[part.box])]
    return links.labels()


class Links:
    """Pairs of things that belong together, and the components that they make."""

    def __init__(self, count: int):
        self._labels = np.arange(count)
        self._pairs: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, first: np.ndarray, second: np.ndarray) -> None:
        """Join things, one pair after another."""
        if len(first):
            self._pairs.append((first, second))

    def labels(self) -> Index:
        """Return the number of the component that each thing belongs to."""
        if self._pairs:
            first, second = zip(*self._pairs, strict=True)
            ends = self._labels[np.concatenate(first)], self._labels[np.concatenate(second)]
            shape = (len(self._labels), len(self._labels))
            graph = sparse.coo_array((np.ones(len(ends[0]), np.int8), ends), shape=shape)
            self._labels = connected_components(graph, directed=False)[1][self._labels]
            self._pairs = []
        return self._labels


class _Part(NamedTuple):
    """Boxes cut to a part of space."""

    box: Index
    lower: Corners
    upper: Corners

    def take(self, rows: Bool[np.ndarray, " m"]) -> "_Part":
        """Select some of the boxes."""
        return _Part(*(field[rows] for field in self))

    def slices(self) -> Iterator["_Part"]:
        """Cut the part into slices across its longest side, and its boxes with it."""
        low, high = self.lower.min(0), self.upper.max(0)
        d = np.argmax(high - low)
        edges = np.linspace(low[d], high[d], _CUTS + 1).astype(np.int64)
        for start, stop in itertools.pairwise(edges):
            part = self.take((self.lower[:, d] < stop) & (self.upper[:, d] > start))
            np.clip(part.lower[:, d], start, None, out=part.lower[:, d])
            np.clip(part.upper[:, d], None, stop, out=part.upper[:, d])
            yield part


def _settle(part: _Part, links: Links) -> list[_Part]:
    """Join what overlaps in a part, and return smaller parts of which that is not known yet.

    A box that reaches through along all inputs but one overlaps, along that input, all that its
    interval overlaps. The boxes that are no intervals in this sense are cut further.
    """
    if len(part.box) <= _FEW:
        both = np.ones((len(part.box),) * 2, bool)
        for low, high in zip(part.lower.T, part.upper.T, strict=True):
            both &= low[:, None] < high
        first, second = np.nonzero(np.triu(both & both.T, 1))
        links.add(part.box[first], part.box[second])
        return []
    ends = (part.lower > part.lower.min(0)) | (part.upper < part.upper.max(0))
    free = ends.sum(1)
    for d in range(ends.shape[1]):
        # A box that reaches through along all inputs is an interval along any.
        chosen = (free == 1) & ends[:, d] | (free == 0) & (d == 0)
        if chosen.any():
            _join_to_intervals(part.box, part.lower[:, d], part.upper[:, d], chosen, links)
    rest = part.take(free > 1)
    return list(rest.slices()) if len(rest.box) else []


def _join_to_intervals(
    box: Index, lower: Index, upper: Index, chosen: Bool[np.ndarray, " m"], links: Links
) -> None:
    """Join every box to the chosen ones that it overlaps along one input."""
    order = np.flatnonzero(chosen)[np.argsort(lower[chosen], kind="stable")]
    reach, new = _runs(lower[order], upper[order])
    first = np.flatnonzero(new)
    run, some = np.cumsum(new) - 1, box[order[first]]
    links.add(box[order], some[run])
    # The runs are disjoint and sorted: a box meets those from i to j - 1, and joins them.
    i = np.searchsorted(reach[np.append(first[1:], len(order)) - 1], lower, side="right")
    j = np.searchsorted(lower[order[first]], upper, side="left")
    meets = j > i
    links.add(box[meets], some[i[meets]])
    opened, closed = (np.bincount(k[meets], minlength=len(some)) for k in (i, j - 1))
    bridged = np.flatnonzero(np.cumsum(opened - closed) > 0)
    links.add(some[bridged], some[bridged + 1])


def _between_gaps(lower: Corners, upper: Corners) -> Index:
    """Group boxes that no gap along one input separates, a few times over all inputs.

    Along one input these are the components. Grids of cells fall apart completely.
    """
    group, found = np.zeros(len(lower), np.int64), 0
    for _ in range(_GAP_ROUNDS if lower.shape[1] > 1 else 1):
        for low, high in zip(lower.T, upper.T, strict=True):
            # The intervals of each group get a stretch of the line of their own.
            stretch = int(high.max(initial=0)) * group
            order = np.argsort(stretch + low, kind="stable")
            group[order] = np.cumsum(_runs((stretch + low)[order], (stretch + high)[order])[1]) - 1
        if group.max(initial=0) == found:
            break
        found = group.max()
    return group


def _crowds(group: Index) -> list[Int[np.ndarray, " _"]]:
    """Return the boxes of groups that have several, so many groups together that it is worth it."""
    counts = np.bincount(group)
    counts[counts == 1] = 0
    box = np.argsort(group, kind="stable")
    box = box[counts[group[box]] > 0]
    crowd = (np.cumsum(counts) // _CROWD)[group[box]]
    return np.split(box, np.flatnonzero(np.diff(crowd)) + 1) if len(box) else []


def _runs(lower: Index, upper: Index) -> tuple[Index, Bool[np.ndarray, " m"]]:
    """Return how far sorted intervals reach so far, and which of them lie beyond all before."""
    reach = np.maximum.accumulate(upper)
    return reach, np.append(True, lower[1:] >= reach[:-1])[: len(lower)]


def ranges(first: Index, stop: Index) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Write ranges of integers one after the other: (which range, integer)."""
    counts = stop - first
    which = np.repeat(np.arange(len(first)), counts)
    return which, np.arange(len(which)) + np.repeat(first - (np.cumsum(counts) - counts), counts)


def by_appearance(
    labels: Shaped[np.ndarray, " m"],
) -> tuple[Index, Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Number labels 0, 1, ... as they first appear; return where each does, and how often.

    >>> [found.tolist() for found in by_appearance(np.array([7, 3, 7]))]
    [[0, 1, 0], [0, 1], [2, 1]]
    """
    _, first, index, counts = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[index], first[order], counts[order]
