"""Windows at many places, and values in groups, as sums that a smoother gathers (theory 10.6)."""

import heapq
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp._compiled import Compiled
from mrgp._types import AnyArray
from mrgp.gp.covariance import full_covariance, variance
from mrgp.gp.gathering import Sums, gathered
from mrgp.gp.leaning import across, regression, whole
from mrgp.gp.smoothing import Course, Setting, segment_of
from mrgp.gp.timeline import SAME_TIME, Timeline, extent_of, separated
from mrgp.supports import Places, Support, Timed, taken_apart

MOST_BYTES = 2**28
"""What sums may take at a time: their covariances with the states along a segment of steps."""

MOST_ROWS = 2**16
SIZES = (1, 4, 16, 64)
"""How many values a group may have: each size has passes of its own."""

Moments = tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]
Numbers = Int[np.ndarray, " _"]


class Rows(NamedTuple):
    """What rows read: a place, over steps after `first` up to `last`, times a scale.

    They integrate where they `flow`; others add `jumps`: row, step, share.
    """

    place: Numbers
    first: Numbers
    last: Numbers
    flow: np.ndarray
    scale: np.ndarray
    jumps: tuple[Numbers, Numbers, np.ndarray]

    @classmethod
    def of(
        cls,
        parts: Sequence[Timed],
        which: Sequence[Numbers],
        count: int,
        line: Timeline,
        near: float,
    ) -> "Rows":
        """Read regions that were taken apart, by the steps of a timeline that has their times."""
        times = np.asarray(line.times)
        place, first, last = (np.zeros(count, int) for _ in range(3))
        none = np.zeros(0, int), np.zeros(0, int), np.zeros(0)
        rows = cls(place, first, last, np.zeros(count, bool), np.ones(count), none)
        jumps = []
        for part, place in zip(parts, which, strict=True):
            n, over = part.rows, (part.end > part.start) & (part.times is None)
            begin = np.searchsorted(times, part.start + near, "right") - 1
            rows.place[n], rows.flow[n] = place, over
            rows.last[n] = np.searchsorted(times, part.end - near)
            rows.first[n] = np.where(over, begin, np.searchsorted(times, part.start - near) - 1)
            rows.scale[n] = part.scale / np.where(over, part.end - part.start, 1.0)
            if part.times is not None and part.shares is not None:
                at = np.searchsorted(times, part.times - near)
                jumps.append((np.repeat(n, at.shape[1]), at.ravel(), part.shares.ravel()))
            elif not over.all():
                jumps.append((n[~over], rows.last[n[~over]], np.ones(int((~over).sum()))))
        row, step, share = map(np.concatenate, zip(none, *jumps, strict=True))
        return rows._replace(jumps=(row, step, share))


class Plan(NamedTuple):
    """Groups that a pass gathers: sums, and the rows of each group by its place and step there."""

    sums: Sums
    rows: Int[np.ndarray, "g k"]
    slot: Numbers
    step: Numbers


def planned(
    rows: Rows, groups: Int[np.ndarray, "g k"], weights: AnyArray, steps: int, most: int
) -> Iterator[Plan]:
    """Plan passes for groups of rows of one size, -1 where one has fewer, over so many steps.

    A slot is a place for a group; the next one takes it once the group is read.
    """
    there = groups >= 0
    first = np.where(there, rows.first[groups], steps).min(1)
    last = np.where(there, rows.last[groups], -1).max(1)
    slot = _slots(first, last)
    most = max(1, most // groups.shape[1])
    width = min(most, int(slot.max()) + 1)
    for part in range(-(-(int(slot.max()) + 1) // most)):
        chosen = np.flatnonzero(slot // most == part)
        own = slot[chosen] % most
        sums = _sums(rows, groups[chosen], own, first[chosen], weights, (steps, width))
        yield Plan(sums, groups[chosen], own, last[chosen])


def _slots(first: Numbers, last: Numbers) -> Numbers:
    """Give every group a number that no other has at the same time."""
    found, busy, free, used = np.zeros(len(first), int), [], [], 0
    for i in np.argsort(first, kind="stable").tolist():
        while busy and busy[0][0] <= first[i]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            heapq.heappush(free, used)
            used += 1
        found[i] = heapq.heappop(free)
        heapq.heappush(busy, (int(last[i]), int(found[i])))
    return found


def _sums(
    rows: Rows,
    groups: Int[np.ndarray, "g k"],
    slot: Numbers,
    first: Numbers,
    weights: AnyArray,
    shape: tuple[int, int],
) -> Sums:
    size = groups.shape[1]
    columns = shape[1] * size
    place, flows = np.zeros((shape[0], columns), np.int32), np.zeros((shape[0], columns), bool)
    kept, column = np.ones((shape[0], columns), bool), np.full(len(rows.place), -1)
    for group, s, begin in zip(groups.tolist(), slot.tolist(), first.tolist(), strict=True):
        if begin >= 0:
            kept[begin, s * size : (s + 1) * size] = False
        for j, row in enumerate(group):
            if row < 0:
                continue
            at = column[row] = s * size + j
            over = slice(rows.first[row] + 1, rows.last[row] + 1)
            place[over, at] = rows.place[row]
            flows[over, at] = rows.flow[row]
    row, step, share = rows.jumps
    here = column[row] >= 0
    jump = np.zeros((shape[0], columns)) if here.any() else None
    if jump is not None:
        np.add.at(jump, (step[here], column[row[here]]), share[here])
    return Sums(weights, place, flows, kept, jump)


def over_windows(
    course: Course,
    setting: Setting,
    anchors: tuple[Support, ...],
    ratio: Float[np.ndarray, " q"],
    support: Support,
) -> Moments | None:
    """Return mean and variance of sum_q r_q L f_q on windows, or None where they are no such.

    The course's timeline is made anew, with the times that are asked for.
    """
    time = setting[0]
    try:
        parts = taken_apart(support, time)
    except ValueError:
        return None
    if len(support) > MOST_ROWS:
        order = np.argsort(np.asarray(support.bounds[0])[:, time], kind="stable")
        mean, spread = np.zeros(len(support)), np.zeros(len(support))
        for some in np.array_split(order, -(-len(support) // MOST_ROWS)):
            found = over_windows(course, setting, anchors, ratio, support[np.sort(some)])
            mean[np.sort(some)], spread[np.sort(some)] = found or (np.nan, np.nan)
        return mean, spread
    places = Places.of(parts, extent_of(anchors))
    course, rows = _on(course, setting, anchors, parts, places.which, len(support))
    told = _told(course, setting, places.groups, np.asarray(ratio)[:, None] * np.ones(len(places)))
    mean, spread = np.zeros(len(support)), np.zeros(len(support))
    for plan, found in _passes(course, setting, rows, np.arange(len(support))[:, None], told[0]):
        n, s, step = plan.rows[:, 0], plan.slot, plan.step
        for here, one in _ending(found, step):
            mean[n[here]] = one.mean[step[here] - one.first, s[here]]
            spread[n[here]] = one.own[step[here] - one.first, s[here], 0, 0]
    left = _rest(course, setting, np.asarray(ratio), support, told[1][:, rows.place])
    scale = rows.scale
    return scale * mean, scale**2 * np.maximum(spread, 0.0) + left


class Grouped(NamedTuple):
    """Posterior means of what values see, and the posterior covariance of each group, by its rows.

    `noise` and `residual` are the values' own: noise variances, and values without their level.

    >>> one = np.ones(1)
    >>> Grouped(one, [(np.array([0]), 0.5 * np.ones((1, 1)))], one, 2 * one).blocks[0][1].item()
    0.5
    """

    mean: Float[np.ndarray, " n"]
    blocks: list[tuple[Numbers, Float[np.ndarray, "k k"]]]
    noise: Float[np.ndarray, " n"]
    residual: Float[np.ndarray, " n"]


def in_groups(
    course: Course, setting: Setting, anchors: tuple[Support, ...], labels: Numbers
) -> Grouped:
    """Return what data say of themselves: means, and covariances of those with the same label."""
    first = np.cumsum([0, *map(len, anchors)])
    parts = [
        p._replace(rows=start + p.rows)
        for start, anchor in zip(first, anchors, strict=False)
        for p in taken_apart(anchor, setting[0])
    ]
    every = Places.of(parts, extent_of(anchors))
    ratios, place = np.asarray(course.ratios), np.zeros(len(labels), int)
    for part, index in zip(parts, every.which, strict=True):
        place[part.rows] = index
    # A place that sources read differently stands there once for each of them.
    kinds, kind = np.unique(ratios, axis=0, return_inverse=True)
    place = place + len(every) * kind.ravel()
    which = [place[part.rows] for part in parts]
    course, rows = _on(course, setting, anchors, parts, which, len(labels))
    ratio = np.repeat(kinds.T, len(every), axis=1)
    told = _told(course, setting, every.groups * len(kinds), ratio)
    mean, blocks = np.zeros(len(labels)), []
    for groups in _by_size(labels):
        for plan, found in _passes(course, setting, rows, groups, told[0]):
            size = groups.shape[1]
            for here, one in _ending(found, plan.step):
                for i in here.tolist():
                    at, s, n = (
                        plan.step[i] - one.first,
                        plan.slot[i],
                        plan.rows[i][plan.rows[i] >= 0],
                    )
                    scale = rows.scale[n]
                    mean[n] = scale * one.mean[at, s * size : s * size + len(n)]
                    own = one.own[at, s, : len(n), : len(n)]
                    blocks.append((n, scale[:, None] * own * scale[None, :]))
    return Grouped(mean, blocks, np.asarray(course.noise), np.asarray(course.residual))


def _by_size(labels: Numbers) -> Iterator[Int[np.ndarray, "g k"]]:
    """Yield the rows of groups, those of about one size together, filled up with -1."""
    order, counts = np.argsort(labels, kind="stable"), np.bincount(labels)
    starts, low = np.cumsum(counts) - counts, 0
    for size in (*SIZES, int(counts.max())):
        which = np.flatnonzero((counts > low) & (counts <= size))
        low = max(low, size)
        if len(which):
            at = np.arange(size)[None, :]
            inside = at < counts[which][:, None]
            rows = order[np.minimum(starts[which][:, None] + at, len(order) - 1)]
            yield np.where(inside, rows, -1)


class _Some(NamedTuple):
    first: int
    mean: Float[np.ndarray, "t s"]
    own: Float[np.ndarray, "t g k k"]


def _ending(found: tuple[Numbers, Array, Array], step: Numbers) -> Iterator[tuple[Numbers, _Some]]:
    """Yield the groups that are read in a segment, with what is known there."""
    numbers, mean, own = found
    here = np.flatnonzero((step >= numbers[0]) & (step <= numbers[-1]))
    if len(here):
        yield here, _Some(int(numbers[0]), np.asarray(mean), np.asarray(own))


def _passes(
    course: Course, setting: Setting, rows: Rows, groups: Int[np.ndarray, "g k"], weights: AnyArray
) -> Iterator[tuple[Plan, tuple[Numbers, Array, Array]]]:
    steps, size = course.line.gap.shape[0], groups.shape[1]
    states = 8 * (2 * weights.shape[0] + size)
    most = min(MOST_BYTES // (segment_of(steps) * states), MOST_BYTES // (16 * steps))
    for plan in planned(rows, groups, weights, steps, most):
        sums = jax.tree.map(jnp.asarray, plan.sums)
        for numbers, found in gathered(course, setting, sums, size):
            yield plan, (numbers, found.mean, found.own)


def _on(
    course: Course,
    setting: Setting,
    anchors: tuple[Support, ...],
    parts: Sequence[Timed],
    which: Sequence[Numbers],
    count: int,
) -> tuple[Course, Rows]:
    """Return a course whose timeline has the times of some regions, and what these read there."""
    time, extent = setting[0], extent_of(anchors)
    ends = [
        p.times.ravel() if p.times is not None else side for p in parts for side in (p.start, p.end)
    ]
    asked, inducing = np.unique(np.concatenate(ends)), course.line.inducing
    line = Timeline.of(course.kernels, time, anchors, asked, inducing=inducing)
    rows = Rows.of(parts, which, count, line, SAME_TIME * extent[time])
    return jax.tree.map(jnp.asarray, course._replace(line=line)), rows


def _told(
    course: Course, setting: Setting, places: tuple[Support, ...], ratio: Float[np.ndarray, "q p"]
) -> tuple[Float[np.ndarray, "u p"], Float[np.ndarray, "i p"]]:
    given = jax.tree.map(jnp.asarray, (course, places, ratio))
    found = _spread(given[0], setting, *given[1:], effort="least")
    return np.asarray(found[0]), np.asarray(found[1])


@Compiled
def _spread(
    course: Course, setting: Setting, places: tuple[Support, ...], ratio: Float[Array, "q p"]
) -> tuple[Float[Array, "u p"], Float[Array, "i p"]]:
    """Return how places lean on what terms read at theirs, and the share of variance not told."""
    time, rule = setting
    weights, left, seats = [], [], iter(course.line.seats)
    for q, kernel in enumerate(course.kernels):
        for term in separated(kernel, time):
            seat = next(seats)
            if not term.space:
                total = jnp.concatenate([jnp.asarray(p.total) for p in places])
                weights.append((ratio[q] * total)[None, :])
                left.append(jnp.zeros(len(total)))
                continue
            prior = jnp.block(full_covariance(term.kernel, seat.groups, rule))
            cross = across(term.kernel, seat.groups, places, rule)
            own = jnp.concatenate([variance(term.kernel, p, rule) for p in places])
            lean, half = regression(prior, cross)
            weights.append(ratio[q][None, :] * lean)
            told = jnp.sum(half**2, 0) / jnp.where(own > 0, own, 1.0)
            left.append(jnp.where(own > 0, jnp.maximum(1.0 - told, 0.0), 0.0))
    return jnp.concatenate(weights), jnp.stack(left)


def _rest(
    course: Course,
    setting: Setting,
    ratio: Float[np.ndarray, " q"],
    support: Support,
    left: Float[np.ndarray, "i n"],
) -> Float[np.ndarray, " n"]:
    """Return the variance of regions that the data's own places do not have."""
    given = jax.tree.map(jnp.asarray, (course.kernels, ratio, support, left))
    return np.asarray(_rest_of(*given, setting, effort="least"))


@Compiled
def _rest_of(
    kernels: tuple[Any, ...], ratio: Array, support: Support, left: Array, setting: Setting
) -> Float[Array, " n"]:
    time, rule = setting
    terms = [(q, term) for q, k in enumerate(kernels) for term in separated(k, time)]
    total = jnp.zeros(len(support))
    for (q, term), share in zip(terms, left, strict=True):
        if term.space:
            own = variance(whole(term, time), support, rule)
            total = total + ratio[q] ** 2 * term.coefficient * share * own
    return total
