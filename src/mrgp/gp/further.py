"""A filter goes on with further data, from what it believed before any of them (theory 10.6)."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mrgp._compiled import Compiled, rung
from mrgp._types import AnyArray, to_numpy
from mrgp.gp.filtering import Belief, Dynamics, seen_of, sight_of, steps_of
from mrgp.gp.leaning import regression
from mrgp.gp.smoothing import Course, Setting
from mrgp.gp.timeline import SAME_TIME, Seats, Timeline
from mrgp.gp.waypoints import Waypoints, distances, on_the_way, thinned
from mrgp.supports import distinct


class Before(NamedTuple):
    """A timeline, what a filter kept on it, and the rows that its own have in a longer one."""

    line: Timeline
    kept: Waypoints
    rows: Int[np.ndarray, " n"]


def went_on(
    before: Before, course: Course, since: float, extent: Any, setting: Setting
) -> Waypoints | None:
    """Return what a filter keeps on a course that has further rows, none of them before `since`.

    It goes on from the last belief kept before that time. None where there is none, or where places
    or times that were told apart are the same by the extent of all data.
    """
    line = course.line
    number, at = _kept_before(before, line, since, SAME_TIME * extent[setting[0]])
    seats = [_seats_in(a, b, extent) for a, b in zip(before.line.seats, line.seats, strict=True)]
    if not len(number) or any(into is None for into in seats):
        return None
    first, end = int(at[-1]) + 1, len(line.times)
    step = _to_keep(line, at, len(before.kept.step))
    old, new = (step >= 0) & (step < first), step >= first
    # Beliefs that stay, a place for each of those that come, and the one to go on from.
    which = np.searchsorted(at, np.where(old, step, at[0]))
    taken = np.append(number[which], number[-1])
    slots = _slots_in(before, line, np.asarray(before.line.times)[before.kept.step[taken]])
    carried = Carried(
        before.kept.mean[taken],
        before.kept.covariance[taken],
        np.append(old, True),
        None if _as_it_was(before.line, line, seats, slots) else tuple(seats),
        slots,
    )
    size = 1 << (end - first - 1).bit_length()
    place = np.full(size, len(step))
    place[step[new] - first] = np.flatnonzero(new)
    rest = _filled(_rest(course, first), size)
    given = jax.tree.map(jnp.asarray, (carried, rest, place))
    mean, covariance = to_numpy(_went_on(*given, setting, effort="least"))
    return Waypoints(step, mean, covariance)


def _kept_before(
    before: Before, line: Timeline, since: float, told: float
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Return which beliefs were kept before a time, and after which steps of a timeline they hold.

    They do where both timelines have the same times up to there.
    """
    number = np.flatnonzero(before.kept.step >= 0)
    whens = np.asarray(before.line.times)[before.kept.step[number]]
    were, are = np.unique(before.line.times), np.unique(line.times)
    shared = min(len(were), len(are))
    other = np.flatnonzero(np.abs(were[:shared] - are[:shared]) > told)
    same = other[0] if len(other) else shared
    count = np.searchsorted(were, whens, side="right")
    early = (whens < since - told) & (count <= same)
    until = are[count[early] - 1]
    return number[early], np.searchsorted(line.times, until, side="right") - 1


def _to_keep(line: Timeline, at: Int[np.ndarray, " c"], most: int) -> Int[np.ndarray, " k"]:
    """Return so many steps after which to keep what is believed, -1 for those that are missing."""
    count = len(line.times)
    found = np.searchsorted(line.times, line.times[count - 1 - distances(count, most)], "right") - 1
    every = np.unique(np.concatenate([at, found[found > at[-1]], [count - 1]]))
    kept = every[::-1][thinned(count - 1 - every[::-1], most)][::-1]
    return np.concatenate([np.full(most - len(kept), -1), kept])


def _as_it_was(old: Timeline, new: Timeline, seats: Any, slots: Int[np.ndarray, "k s"]) -> bool:
    """Tell whether all states are what they were, and where they were."""
    moved = (slots != np.arange(slots.shape[1])) & (slots >= 0)
    if len(new.slots) != len(old.slots) or np.any(moved):
        return False
    pairs = zip(seats, new.seats, strict=True)
    return all(np.array_equal(into, np.arange(len(now))) for into, now in pairs)


class Carried(NamedTuple):
    """Beliefs to be taken over, the last one to go on from: where there are any.

    `seats` are the numbers that the places of each term have now, None where all is as it was; and
    `slots` are the accumulators, -1 for those that are empty.
    """

    mean: Float[AnyArray, "k n"]
    covariance: Float[AnyArray, "k n n"]
    there: Any
    seats: Any
    slots: Int[AnyArray, "k s"]


def _seats_in(old: Seats, new: Seats, extent: Any) -> Int[np.ndarray, " j"] | None:
    """Return the number of every old place among new ones, None where they are not told apart."""
    if old.leaning or new.leaning:
        return np.arange(len(new)) if len(old) == len(new) else None
    told = distinct([*old.groups, *new.groups], extent)
    number = np.concatenate(told.which)
    was, now = number[: len(old)], number[len(old) :]
    apart = all(len(np.unique(some)) == len(some) for some in (was, now))
    if not apart or not set(was) <= set(now):
        return None
    order = np.argsort(now)
    return order[np.searchsorted(now[order], was)]


class Windows(NamedTuple):
    """Accumulators of the rows of windows, and the times at which these are seen."""

    row: Int[np.ndarray, " w"]
    slot: Int[np.ndarray, " w"]
    end: Float[np.ndarray, " w"]

    @classmethod
    def of(cls, line: Timeline) -> "Windows":
        """Find the rows of a timeline that are read from accumulators."""
        row = np.flatnonzero(line.slot >= 0)
        return cls(
            row, np.asarray(line.slot)[row], _seen_at(line)[row] if len(row) else np.zeros(0)
        )

    def next_ones(self, when: float) -> Bool[np.ndarray, " w"]:
        """Tell which are the first of their accumulators that are seen after a time."""
        later = self.end > when
        soonest = np.full(1 + self.slot.max(initial=-1), np.inf)
        np.minimum.at(soonest, self.slot[later], self.end[later])
        return later & (self.end == soonest[self.slot])


def _slots_in(
    before: Before, line: Timeline, whens: Float[np.ndarray, " k"]
) -> Int[np.ndarray, "k s"]:
    """Return the old accumulator of each, at some times; -1 where no window of it is open.

    A window is open where it is the next one of its accumulator to be seen, before and now: those
    that open later empty theirs, or find it empty.
    """
    old, new = Windows.of(before.line), Windows.of(line)
    found = np.full((len(whens), len(line.slots)), -1)
    for k, when in enumerate(whens):
        ours, now = old.next_ones(when), new.next_ones(when)
        place = dict(zip(new.row[now].tolist(), new.slot[now].tolist(), strict=True))
        for row, slot in zip(before.rows[old.row[ours]].tolist(), old.slot[ours], strict=True):
            if row in place:
                found[k, place[row]] = slot
    return found


def _seen_at(line: Timeline) -> Float[np.ndarray, " n"]:
    """Return the time at which every row is seen."""
    found = np.zeros(line.count)
    step, column = np.nonzero(line.rows < line.count)
    found[line.rows[step, column]] = line.times[step]
    return found


def _rest(course: Course, first: int) -> Course:
    """Return what comes after the first steps of a course."""
    line, rows = course.line, course.line.rows[first:]
    there = rows < line.count
    used, number = np.unique(rows[there], return_inverse=True)
    own = np.full(rows.shape, len(used))
    own[there] = number
    lengths, gap = np.unique(line.gap[first:], return_inverse=True)
    rest = dataclasses.replace(
        line,
        place=line.place[used],
        slot=line.slot[used],
        scale=line.scale[used],
        times=line.times[first:],
        gaps=line.gaps[lengths],
        gap=gap,
        rows=own,
        keep=None if line.keep is None else line.keep[first:],
        jump=None if line.jump is None else line.jump[first:],
    )
    seen = (x[used] for x in (course.ratios, course.noise, course.residual))
    return Course(course.kernels, rest, *seen)


def _filled(course: Course, more: int) -> Course:
    """Fill all up to sizes for which code is compiled: what is added changes nothing."""
    line, count = course.line, course.line.count
    rows, wide = rung(max(count, 1)), rung(line.rows.shape[1])

    def longer(x: AnyArray, size: int, by: Any = 0) -> np.ndarray:
        x = np.asarray(x)
        return np.concatenate([x, np.full((size - len(x), *x.shape[1:]), by, x.dtype)])

    seen = np.where(np.asarray(line.rows) < count, line.rows, rows)
    seen = longer(longer(seen.T, wide, rows).T, more, rows)
    there = rung(len(line.seats[0].index))
    seats = tuple(
        dataclasses.replace(s, index=longer(s.index, there), share=longer(s.share, there))
        for s in line.seats
    )
    filled = dataclasses.replace(
        line,
        seats=seats,
        place=longer(line.place, rows),
        slot=longer(line.slot, rows, -1),
        scale=longer(line.scale, rows),
        times=longer(line.times, more, float(line.times[-1])),
        gaps=longer(line.gaps, more + 1),
        gap=longer(line.gap, more, more),
        rows=seen,
        keep=None if line.keep is None else longer(line.keep, more, 1.0),
        jump=None if line.jump is None else longer(line.jump, more),
    )
    return course._replace(
        line=filled,
        ratios=longer(course.ratios, rows),
        noise=longer(course.noise, rows, 1.0),
        residual=longer(course.residual, rows),
    )


@Compiled
def _went_on(
    carried: Carried, course: Course, place: Int[Array, " t"], setting: Setting
) -> tuple[Array, Array]:
    line = course.line
    dynamics = Dynamics.of(course.kernels, setting[0], line, setting[1])
    ratios, noise, residual = map(jnp.asarray, (course.ratios, course.noise, course.residual))
    seen = seen_of(line, sight_of(dynamics, ratios), noise, residual[:, None])
    mean, covariance = _taken_over(carried, dynamics)
    room = Waypoints(jnp.zeros(len(mean) - 1, int), mean[:-1], covariance[:-1])
    start = Belief(mean[-1][:, None], covariance[-1])
    found = on_the_way(dynamics, start, steps_of(line, seen), place, room)
    return jnp.asarray(found.mean), jnp.asarray(found.covariance)


def _taken_over(carried: Carried, dynamics: Dynamics) -> tuple[Array, Array]:
    """Return beliefs of all states there are now.

    New places have their conditional prior: what is known is spread to them, no more.
    """
    there = jnp.asarray(carried.there, float)
    mean, covariance, slots = map(jnp.asarray, (carried.mean, carried.covariance, carried.slots))
    if carried.seats is None:
        return there[:, None] * mean, there[:, None, None] * covariance
    spread, prior = [], []
    for block, old in zip(dynamics.blocks, carried.seats, strict=True):
        among = block.prior[old][:, old]
        if len(old) == len(block.prior):
            told = jnp.zeros_like(among)
        else:
            told = regression(among, block.prior[old])[0].T
        told = told.at[old].set(jnp.eye(len(old)))
        spread.append(jnp.kron(jnp.eye(block.space.size), told))
        prior.append(jnp.kron(block.space.stationary, among))
    moving = jax.scipy.linalg.block_diag(*spread)
    flowing = mean.shape[1] - moving.shape[1]
    known = jax.scipy.linalg.block_diag(*prior, jnp.zeros((flowing, flowing)))
    every = jnp.arange(flowing // dynamics.functions)

    def one(mean: Array, covariance: Array, slots: Array) -> tuple[Array, Array]:
        held = jnp.kron(
            jnp.eye(dynamics.functions), (slots[:, None] == every[None, :]).astype(float)
        )
        move = jax.scipy.linalg.block_diag(moving, held)
        more = move @ (covariance - known) @ move.T
        return move @ mean, dynamics.prior + 0.5 * (more + more.T)

    mean, covariance = jax.vmap(one)(mean, covariance, slots)
    return there[:, None] * mean, there[:, None, None] * covariance
