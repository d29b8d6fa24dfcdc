"""The order in which a filter meets the data: steps in time, places, and open windows (theory 10).

All of it is found once, from where and when the values are; nothing depends on parameters.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from mrgp._types import AnyArray
from mrgp.kernels import Kernel, Product, White
from mrgp.kernels.base import Factor, Term, View
from mrgp.supports import Places, Points, Support, Timed, distinct, number_values, taken_apart

SAME_TIME = 1e-9
MOVE = 12
"""What moving a covariance costs, in rows of one observation."""


class Separated(NamedTuple):
    """A term of a kernel as a coefficient, a kernel of the other inputs, and one of time.

    >>> from mrgp import Matern12
    >>> k = Matern12(1.0, variance=2.0, dims=0) * Matern12(3.0, variance=1.0, dims=1)
    >>> [part.dims for part in separated(k, time=1)]
    [(0,)]
    """

    coefficient: Any
    space: tuple[Factor, ...]
    time: Kernel | None

    @property
    def dims(self) -> tuple[int, ...]:
        """The inputs other than time that the term sees."""
        return tuple(sorted(d for factor in self.space for d in factor.dims))

    @property
    def white(self) -> tuple[int, ...]:
        """The inputs along which the term is white."""
        return tuple(f.dims[0] for f in self.space if isinstance(f.kernel, White))

    @property
    def kernel(self) -> Kernel:
        """The kernel of the other inputs, as one of all of them."""
        return Product(tuple(View(factor.dims, factor.kernel) for factor in self.space))


def separated(kernel: Kernel, time: int) -> list[Separated]:
    """Split the terms of a kernel, whose factors do not join time with other inputs."""
    return [_split(term, time) for term in kernel.sum_of_products()]


def _split(term: Term, time: int) -> Separated:
    moving = [factor for factor in term.factors if time in factor.dims]
    still = tuple(factor for factor in term.factors if time not in factor.dims)
    return Separated(term.coefficient, still, moving[0].kernel if moving else None)


Groups = tuple[Support, ...]
"""Places, as groups of one kind each."""


class Seats(eqx.Module):
    """The places at which a term has states: `index` of every place, and how much it reads there.

    Places that a term cannot tell apart have one state; places at which it is zero have none.
    Where there are places `leaning`, the index is one of them, and the states are those of
    inducing places on which they lean; `own` is the inducing place that each of them is, -1 where
    it is none, and None where none is one.

    >>> from mrgp import points
    >>> seats = Seats((points([[1.0], [2.0]]),), np.array([0, 1, 0]), np.ones(3))
    >>> len(seats)
    2
    """

    groups: Groups
    index: Int[AnyArray, " j"]
    share: Float[AnyArray, " j"]
    leaning: Groups = ()
    own: Int[AnyArray, " p"] | None = None

    def __len__(self) -> int:
        return sum(map(len, self.groups))


class Timeline(eqx.Module):
    """Steps of a filter: how long each is, which rows it sees, which accumulators it changes.

    Row n is at place `place[n]`, and reads it at an instant, or the accumulator `slot[n]`, times
    `scale[n]`. Step t moves on by `gaps[gap[t]]`, adds `jump[t]` of each place to its accumulator,
    sees the rows `rows[t]` (the number of rows where there is none), and empties accumulators
    where `keep[t]` is zero. `slots` are the places of accumulators, and `flowing` those that
    integrate over time; `seats` has the places of each term.

    >>> from mrgp import Matern12, boxes
    >>> line = Timeline.of((Matern12(1.0, variance=1.0, dims=0),), 0, [boxes([[0.0]], [[3.0]])])
    >>> line.times.tolist(), line.slot.tolist(), line.keep.tolist()
    ([0.0, 3.0], [0], [[0.0], [1.0]])
    """

    seats: tuple[Seats, ...]
    place: Int[AnyArray, " n"]
    slot: Int[AnyArray, " n"]
    scale: Float[AnyArray, " n"]
    times: Float[AnyArray, " t"]
    gaps: Float[AnyArray, " u"]
    gap: Int[AnyArray, " t"]
    rows: Int[AnyArray, "t b"]
    slots: Int[AnyArray, " s"]
    flowing: Float[AnyArray, " s"]
    keep: Float[AnyArray, "t s"] | None
    jump: Float[AnyArray, "t s"] | None
    inducing: Groups = ()

    @classmethod
    def of(
        cls,
        kernels: Sequence[Kernel],
        time: int,
        supports: Sequence[Support],
        extra: Float[np.ndarray, " e"] | None = None,
        inducing: Groups = (),
    ) -> "Timeline":
        """Plan a filter over the values on some supports, one after another, and `extra` times.

        Terms that are not white have their states at `inducing` places, if there are any.
        """
        parts, first = [], 0
        for support in supports:
            parts += [p._replace(rows=first + p.rows) for p in taken_apart(support, time)]
            first += len(support)
        extent = extent_of(supports)
        places = Places.of(parts, extent)
        terms = [term for kernel in kernels for term in separated(kernel, time)]
        events = _Events.of(parts, places, first, extent[time], extra)
        seats = tuple(seats_of(term, places.groups, extent, inducing) for term in terms)
        states = sum(map(len, seats)) + len(kernels) * len(events.slots)
        return cls(seats, *events.steps(states), inducing=inducing)

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.place.shape[0]


def extent_of(supports: Sequence[Support]) -> Float[np.ndarray, " d"]:
    """Return how far supports reach along each input, or one.

    >>> from mrgp import points
    >>> extent_of([points([[0.0, 1.0], [4.0, 1.0]])]).tolist()
    [4.0, 1.0]
    """
    lower = np.min([np.min(s.bounds[0], 0) for s in supports], 0)
    upper = np.max([np.max(s.bounds[1], 0) for s in supports], 0)
    return np.where(upper > lower, upper - lower, 1.0)


def seats_lean(term: Separated) -> bool:
    """Tell whether a term can have its states at inducing places.

    >>> from mrgp import White
    >>> [seats_lean(term) for term in separated(White(1.0, dims=0), time=1)]
    [False]
    """
    return bool(term.space) and not term.white


def seats_of(
    term: Separated,
    groups: Sequence[Support],
    extent: Float[np.ndarray, " d"],
    inducing: Groups = (),
) -> Seats:
    """Return where a term has states, among groups of places or at inducing ones.

    >>> from mrgp import White, points
    >>> (term,) = separated(White(1.0, dims=0), time=1)
    >>> len(seats_of(term, [points([[1.0, 0.0], [2.0, 0.0]])], np.ones(2)))
    2
    """
    count = sum(map(len, groups))
    if not term.space:
        total = np.concatenate([np.asarray(group.total) for group in groups])
        return Seats((Points(np.zeros((1, len(extent))), np.ones(1)),), np.zeros(count, int), total)
    index, share, found, first, kept = np.zeros(count, int), np.zeros(count), [], 0, 0
    for group in groups:
        rows = first + np.arange(len(group))
        first += len(group)
        if not all(group.pointlike[d] and d not in group.solid for d in term.white):
            continue
        if isinstance(group, Points):
            told = distinct([_as_seen(term, group)], extent)
            found.append(told.groups[0])
            index[rows], share[rows] = kept + told.which[0], np.asarray(group.weights)
        else:
            found.append(group)
            index[rows], share[rows] = kept + np.arange(len(group)), 1.0
        kept += len(found[-1])
    if not found:
        # A term that is zero at every place has a state that none of them reads.
        found.append(Points(np.zeros((1, len(extent))), np.ones(1)))
    if inducing and seats_lean(term):
        own = _inducing_ones(term, found, inducing, extent)
        return Seats(inducing, index, share, tuple(found), own)
    return Seats(tuple(found), index, share)


def _as_seen(term: Separated, group: Points) -> Points:
    """Return points without what a term does not see, which does not tell them apart."""
    seen = np.isin(np.arange(group.dimension), term.dims)
    return Points(np.where(seen, np.asarray(group.x), 0.0), np.ones(len(group)))


def _inducing_ones(
    term: Separated, places: Sequence[Support], inducing: Groups, extent: Float[np.ndarray, " d"]
) -> Int[np.ndarray, " p"] | None:
    """Return which inducing place each place is to a term, -1 where none; None if none is any."""
    seen = [_as_seen(term, g) if isinstance(g, Points) else g for g in inducing]
    told = distinct([*places, *seen], extent).which
    asked, there = (np.concatenate(w) for w in (told[: len(places)], told[len(places) :]))
    numbers, first = np.unique(there, return_index=True)
    at = np.minimum(np.searchsorted(numbers, asked), len(numbers) - 1)
    own = np.where(numbers[at] == asked, first[at], -1)
    return own if np.any(own >= 0) else None


class _Events(NamedTuple):
    """What happens when, by the number of a time."""

    place: np.ndarray
    slot: np.ndarray
    scale: np.ndarray
    times: np.ndarray
    seen: np.ndarray
    slots: np.ndarray
    flowing: np.ndarray
    emptied: list[tuple[int, int]]
    jumps: list[tuple[int, int, float]]

    @classmethod
    def of(
        cls,
        parts: Sequence[Timed],
        places: Places,
        count: int,
        extent: float,
        extra: np.ndarray | None,
    ) -> "_Events":
        place, slot = np.zeros(count, int), np.full(count, -1)
        scale, seen = np.ones(count), np.zeros(count, int)
        ends = [
            np.concatenate([p.start, p.end, *([] if p.times is None else [p.times.ravel()])])
            for p in parts
        ]
        every = np.concatenate([*ends, np.zeros(0) if extra is None else extra])
        number = number_values(every, SAME_TIME * extent)
        times = np.zeros(number.max() + 1)
        times[number] = every
        clocks = np.split(number, np.cumsum([len(e) for e in ends]))[:-1]
        found = cls(place, slot, scale, times, seen, np.zeros(0, int), np.zeros(0), [], [])
        windows = []
        for part, where, clock in zip(parts, places.which, clocks, strict=True):
            n = len(part.rows)
            start, end = clock[:n], clock[n : 2 * n]
            place[part.rows], seen[part.rows], scale[part.rows] = where, end, part.scale
            nodes = None if part.times is None else clock[2 * n :].reshape(n, -1)
            over = np.flatnonzero(end > start)
            windows += [
                _Window(int(where[i]), int(start[i]), int(end[i]), int(part.rows[i]))
                if nodes is None or part.shares is None
                else _Window(
                    int(where[i]),
                    int(start[i]),
                    int(end[i]),
                    int(part.rows[i]),
                    nodes[i],
                    part.shares[i],
                )
                for i in over
            ]
        return found._with(windows)

    def _with(self, windows: Sequence["_Window"]) -> "_Events":
        """Give every window an accumulator, the next one that is free at its place."""
        slots: dict[tuple[int, bool, int], int] = {}
        for flows in (True, False):
            chosen = [w for w in windows if (w.nodes is None) == flows]
            for window, colour, new in _coloured(chosen, closed=not flows):
                slot = slots.setdefault((window.place, flows, colour), len(slots))
                self.slot[window.row] = slot
                if flows:
                    self.scale[window.row] /= self.times[window.end] - self.times[window.start]
                if new:
                    self.emptied.append((window.start if flows else window.end, slot))
                self.jumps.extend((t, slot, w) for t, w in window.jumps)
        return self._replace(
            slots=np.array([place for place, _, _ in slots], int),
            flowing=np.array([float(flows) for _, flows, _ in slots]),
        )

    def steps(self, states: int) -> Iterator[Any]:
        """Yield the fields of a timeline after its seats."""
        counts = np.bincount(self.seen, minlength=len(self.times))
        block = _block(counts, states)
        parts = np.maximum(-(-counts // block), 1)
        last = np.cumsum(parts) - 1
        first = last - parts + 1
        rows = np.full((int(parts.sum()), block), len(self.seen))
        order = np.argsort(self.seen, kind="stable")
        within = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows[first[self.seen[order]] + within // block, within % block] = order
        times = np.repeat(self.times, parts)
        gaps, gap = _rounded_unique(np.diff(times, prepend=times[0]))
        yield from (self.place, self.slot, self.scale, times, gaps, gap, rows)
        yield from (self.slots, self.flowing)
        keep = jump = None
        if len(self.slots):
            keep = np.ones((len(times), len(self.slots)))
            for t, s in self.emptied:
                keep[last[t], s] = 0.0
        if self.jumps:
            jump = np.zeros((len(times), len(self.slots)))
            for t, s, w in self.jumps:
                jump[first[t], s] += w
        yield from (keep, jump)


def _rounded_unique(gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct gaps, which differ by more than rounding, and which each step has."""
    number = number_values(gaps, 1e-12 * max(float(gaps.max(initial=0.0)), 1e-300))
    found = np.zeros(number.max() + 1)
    found[number] = gaps
    return found, number


def _block(counts: np.ndarray, states: int) -> int:
    """Return how many rows a step should see: a time with more takes several steps."""
    sizes = np.unique(counts[counts > 0])
    sizes = sizes[np.linspace(0, len(sizes) - 1, min(len(sizes), 50)).astype(int)]

    def cost(size: int) -> float:
        steps = np.maximum(-(-counts // size), 1).sum()
        return float(steps * (MOVE + size + size**2 / states))

    return min(map(int, sizes), key=cost)


class _Window(NamedTuple):
    """A window of one row, by the numbers of its place and times; nodes have shares."""

    place: int
    start: int
    end: int
    row: int
    nodes: np.ndarray | None = None
    shares: np.ndarray | None = None

    @property
    def jumps(self) -> list[tuple[int, float]]:
        """The times at which something is added, and how much."""
        if self.nodes is None or self.shares is None:
            return []
        pairs = zip(self.nodes, self.shares, strict=True)
        return [(int(t), float(w)) for t, w in pairs if w != 0]


def _coloured(windows: Sequence[_Window], closed: bool) -> Iterator[tuple[_Window, int, bool]]:
    """Give every window of a place a colour that no other has which is open at the same time.

    Equal windows of one place share theirs. `closed` windows are still open at their end.
    """
    known: tuple[int, int, int] | None = None
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    colour = used = 0
    for window in sorted(windows, key=lambda w: w[:3]):
        key = window[:3]
        if key == known and not closed:
            yield window, colour, False
            continue
        if known is None or key[0] != known[0]:
            busy, free, used = [], [], 0
        while busy and busy[0][0] <= window.start - closed:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            colour = heapq.heappop(free)
        else:
            colour, used = used, used + 1
        heapq.heappush(busy, (window.end, colour))
        known = key
        yield window, colour, True
