"""Connected components of overlapping boxes, in about linear time (theory 4.3).

Boxes are half-open, [lower, upper), with integer corners and sides of at least one, so that two
overlap where they share a cell of the lattice. Overlapping pairs may be as many as the square of
the boxes, and are not listed. Space is cut into parts instead. In each part the boxes that reach
through it along all inputs but one are intervals, and are settled by a sweep; only the others are
cut further. In two dimensions a box is cut further in at most four parts of a level, those that
hold its corners, which bounds time and memory whatever the layout.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int
from scipy import sparse
from scipy.sparse.csgraph import connected_components

Corners = Int[np.ndarray, "m d"]
Index = Int[np.ndarray, " m"]

_CUTS = 4
_FEW = 24
_PAIRS_AT_ONCE = 2**22
_BOXES_AT_ONCE = 2**22
_GAP_ROUNDS = 3


def components(lower: Corners, upper: Corners) -> Index:
    """Label boxes with one integer where they overlap, directly or through others.

    >>> lower, upper = np.array([[0, 0], [4, 4], [1, 1]]), np.array([[2, 2], [6, 6], [3, 3]])
    >>> components(lower, upper).tolist()
    [0, 1, 0]
    """
    links = Links(len(lower))
    if len(lower) == 0:
        return links.labels()
    group = _between_gaps(lower, upper)
    box = np.argsort(group, kind="stable")
    stack = [_Parts(box, group[box], lower[box], upper[box])]
    while stack:
        parts = stack.pop()
        if len(parts.box) > _BOXES_AT_ONCE and parts.part[0] != parts.part[-1]:
            stack += parts.two()
            continue
        parts = _settle_intervals(_settle_few(parts, links), links)
        parts = parts.unless_joined(links.labels())
        if len(parts.box):
            stack.append(parts.cut())
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


class _Parts(NamedTuple):
    """Boxes cut to parts of space, sorted by part: a box has a row in each part it reaches."""

    box: Index
    part: Index
    lower: Corners
    upper: Corners

    def take(self, rows: np.ndarray | slice) -> "_Parts":
        """Select rows, in order."""
        return _Parts(*(field[rows] for field in self)).numbered()

    def numbered(self) -> "_Parts":
        """Number the parts anew from zero."""
        return self._replace(part=np.cumsum(np.diff(self.part, prepend=self.part[:1]) != 0))

    def two(self) -> tuple["_Parts", "_Parts"]:
        """Split the parts into two sets of about as many boxes."""
        middle = np.searchsorted(self.part, self.part[len(self.part) // 2])
        middle = middle or np.searchsorted(self.part, self.part[0], side="right")
        return self.take(slice(None, middle)), self.take(slice(middle, None))

    def starts(self) -> Index:
        """Return the first row of each part."""
        return np.flatnonzero(np.diff(self.part, prepend=-1))

    def unless_joined(self, labels: Index) -> "_Parts":
        """Keep the parts whose boxes are not all in one component yet."""
        if len(self.box) == 0:
            return self
        label, starts = labels[self.box], self.starts()
        apart = np.minimum.reduceat(label, starts) < np.maximum.reduceat(label, starts)
        return self.take(apart[self.part])

    def bounds(self) -> tuple[Corners, Corners]:
        """Return the corners of the space that the boxes of each part fill."""
        starts = self.starts()
        return np.minimum.reduceat(self.lower, starts), np.maximum.reduceat(self.upper, starts)

    def cut(self) -> "_Parts":
        """Cut every part into slices across its longest side, and its boxes with it."""
        low, high = self.bounds()
        longest = np.argmax(high - low, axis=1)[:, None]
        start, length = (
            np.take_along_axis(v, longest, 1)[:, 0].astype(np.int64)[self.part]
            for v in (low, high - low)
        )
        side = longest[self.part]
        first = (np.take_along_axis(self.lower, side, 1)[:, 0] - start) * _CUTS // length
        last = (np.take_along_axis(self.upper, side, 1)[:, 0] - 1 - start) * _CUTS // length
        row, slice_ = ranges(first, last + 1)
        order = np.argsort(self.part[row] * _CUTS + slice_, kind="stable")
        row, slice_ = row[order], slice_[order]
        # Place x is in slice floor(cuts (x - start) / length): slices start at the ceiling.
        edges = (start[row] - (-s * length[row] // _CUTS) for s in (slice_, slice_ + 1))
        made = _Parts(
            self.box[row], self.part[row] * _CUTS + slice_, self.lower[row], self.upper[row]
        )
        at = np.arange(len(row)), side[row, 0]
        made.lower[at] = np.maximum(made.lower[at], next(edges))
        made.upper[at] = np.minimum(made.upper[at], next(edges))
        return made.numbered()


def _settle_few(parts: _Parts, links: Links) -> _Parts:
    """Compare all pairs in parts of few boxes, and return the other parts."""
    counts = np.bincount(parts.part)
    rows = np.flatnonzero((counts <= _FEW)[parts.part])
    later = np.cumsum(counts)[parts.part[rows]]
    ends = np.cumsum(later - rows - 1)
    chunks = np.searchsorted(ends, np.arange(0, ends[-1] if len(ends) else 0, _PAIRS_AT_ONCE))
    for chunk in np.split(np.arange(len(rows)), chunks[1:]):
        which, second = ranges(rows[chunk] + 1, later[chunk])
        first = rows[chunk][which]
        for low, high in zip(parts.lower.T, parts.upper.T, strict=True):
            both = (low[first] < high[second]) & (low[second] < high[first])
            first, second = first[both], second[both]
        links.add(parts.box[first], parts.box[second])
    return parts.take((counts > _FEW)[parts.part])


def _settle_intervals(parts: _Parts, links: Links) -> _Parts:
    """Join what meets a box that reaches through its part along all inputs but one.

    Along that input such a box overlaps all that its interval overlaps. The boxes that are no
    intervals in this sense are returned, to be cut further.
    """
    if len(parts.box) == 0:
        return parts
    low, high = parts.bounds()
    ends = (parts.lower > low[parts.part]) | (parts.upper < high[parts.part])
    free = ends.sum(1)
    for d in range(ends.shape[1]):
        # A box that reaches through along all inputs is an interval along any.
        chosen = (free == 1) & ends[:, d] if d else (free == 1) & ends[:, 0] | (free == 0)
        if chosen.any():
            touched = np.zeros(len(low), bool)
            touched[parts.part[chosen]] = True
            here = touched[parts.part]
            part, lower, upper = parts.part[here], parts.lower[here, d], parts.upper[here, d]
            _join_to_intervals(parts.box[here], part, lower, upper, chosen[here], links)
    return parts.take(free > 1)


def _join_to_intervals(
    box: Index,
    part: Index,
    lower: Index,
    upper: Index,
    chosen: Bool[np.ndarray, " m"],
    links: Links,
) -> None:
    """Join every box to the chosen ones that it overlaps along one input, part by part."""
    lower, upper = _line_up(part, lower, upper)
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
            low, high = _line_up(group, low, high)
            order = np.argsort(low, kind="stable")
            group[order] = np.cumsum(_runs(low[order], high[order])[1]) - 1
        if group.max() == found:
            break
        found = group.max()
    return group


def _line_up(group: Index, lower: Index, upper: Index) -> tuple[Index, Index]:
    """Move the intervals of each group to a stretch of the line of its own, in order."""
    stretch = int(upper.max(initial=0)) * group.astype(np.int64)
    return stretch + lower, stretch + upper


def _runs(lower: Index, upper: Index) -> tuple[Index, Bool[np.ndarray, " m"]]:
    """Return how far sorted intervals reach so far, and which of them lie beyond all before."""
    reach = np.maximum.accumulate(upper)
    return reach, np.append(True, lower[1:] >= reach[:-1])


def ranges(first: Index, stop: Index) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Write ranges of integers one after the other: (which range, integer)."""
    counts = stop - first
    which = np.repeat(np.arange(len(first)), counts)
    return which, np.arange(len(which)) + np.repeat(first - (np.cumsum(counts) - counts), counts)


def by_appearance(labels: Index) -> tuple[Index, Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
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
