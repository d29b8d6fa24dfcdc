"""The last state of a filter, from which it goes on with later data (theory 10.6)."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp._compiled import Compiled, rung
from mrgp._types import AnyArray, Scalar, to_numpy
from mrgp.gp.filtering import (
    Belief,
    Dynamics,
    arrived,
    emptied,
    looked_at,
    seen_of,
    sight_of,
    steps_of,
)
from mrgp.gp.leaning import regression
from mrgp.gp.smoothing import Course, Setting
from mrgp.gp.timeline import SAME_TIME, Groups, Seats, Timeline
from mrgp.supports import Support, distinct


class Front(eqx.Module):
    """Mean and covariance of the states of all terms at the time `when`, given all data.

    `seats` are the places at which each term has states. No window is open: accumulators are not
    kept.

    >>> from mrgp import points
    >>> Front(((points([[0.0]]),),), np.ones(()), np.zeros(1), np.ones((1, 1))).when.item()
    1.0
    """

    seats: tuple[Groups, ...]
    when: Scalar
    mean: Float[AnyArray, " n"]
    covariance: Float[AnyArray, "n n"]

    @classmethod
    def of(cls, dynamics: Dynamics, belief: Belief, when: Any) -> "Front":
        """Keep what is believed of the states of terms, at the end of a timeline."""
        n = dynamics.moving
        seats = tuple(block.groups for block in dynamics.blocks)
        return cls(seats, when, belief.mean[:n, 0], belief.covariance[:n, :n])


def went_on(
    front: Front, course: Course, supports: Sequence[Support], extent: Any, setting: Setting
) -> Front | None:
    """Return the front after later values on some supports, or None where it cannot go on.

    It cannot where a value is earlier than the front, or a window opened before it, nor where
    places that were told apart are the same by the extent of all data. The timeline of the course
    is made here.
    """
    time, when = setting[0], float(front.when)
    line = Timeline.of(course.kernels, time, supports, np.array([when]), extent)
    if line.times[0] < when - SAME_TIME * extent[time]:
        return None
    seats, into = [], []
    for old, new in zip(front.seats, line.seats, strict=True):
        both = _together(old, new, extent)
        if both is None:
            return None
        seats.append(both[0])
        into.append(both[1])
    line = dataclasses.replace(line, seats=tuple(seats))
    given = jax.tree.map(jnp.asarray, (front, _filled(course._replace(line=line)), tuple(into)))
    return to_numpy(_went_on(*given, setting, effort="least"))


def _together(old: Groups, new: Seats, extent: Any) -> tuple[Seats, Int[np.ndarray, " j"]] | None:
    """Return the seats of a term at old and new places, and the number of every old one there."""
    told = distinct([*old, *new.groups], extent)
    into = np.concatenate(told.which[: len(old)])
    kinds = {group.pointlike for group in told.groups}
    if len(np.unique(into)) < len(into) or {g.pointlike for g in (*old, *new.groups)} != kinds:
        return None
    index = np.concatenate([*told.which[len(old) :], np.zeros(0, int)])
    # Where a term is zero at every new place, there is nothing to point at.
    index = index[new.index] if len(index) else np.zeros_like(new.index)
    return Seats(told.groups, index, new.share), into


def _filled(course: Course) -> Course:
    """Fill all up to sizes for which code is compiled: what is added changes nothing."""
    line, count = course.line, course.line.count
    steps, width = line.rows.shape
    rows, more, wide = rung(count), 1 << (steps - 1).bit_length(), rung(width)

    def longer(x: AnyArray, size: int, by: Any = 0) -> np.ndarray:
        x = np.asarray(x)
        return np.concatenate([x, np.full((size - len(x), *x.shape[1:]), by, x.dtype)])

    seen = np.where(np.asarray(line.rows) < count, line.rows, rows)
    seen = longer(longer(seen.T, wide, rows).T, more, rows)
    there = rung(len(line.seats[0].index))
    seats = (Seats(s.groups, longer(s.index, there), longer(s.share, there)) for s in line.seats)
    filled = dataclasses.replace(
        line,
        seats=tuple(seats),
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
    front: Front, course: Course, into: tuple[Int[Array, " _"], ...], setting: Setting
) -> Front:
    line = course.line
    dynamics = Dynamics.of(course.kernels, setting[0], line, setting[1])
    ratios, noise, residual = map(jnp.asarray, (course.ratios, course.noise, course.residual))
    seen = seen_of(line, sight_of(dynamics, ratios), noise, residual[:, None])

    def step(belief: Belief, one: Any) -> tuple[Belief, None]:
        found = looked_at(dynamics, arrived(dynamics, belief, one), one.seen)[0]
        return emptied(dynamics, found, one), None

    start = _carried(front, dynamics, into)
    belief, _ = jax.lax.scan(step, start, steps_of(line, seen))
    return Front.of(dynamics, belief, jnp.asarray(line.times)[-1])


def _carried(front: Front, dynamics: Dynamics, into: tuple[Int[Array, " _"], ...]) -> Belief:
    """Give new places their conditional prior: what is known is spread to them, no more."""
    spread, prior = [], []
    for block, old in zip(dynamics.blocks, into, strict=True):
        among = block.prior[old][:, old]
        if len(old) == len(block.prior):
            told = jnp.zeros_like(among)
        else:
            told = regression(among, block.prior[old])[0].T
        told = told.at[old].set(jnp.eye(len(old)))
        spread.append(jnp.kron(jnp.eye(block.space.size), told))
        prior.append(jnp.kron(block.space.stationary, among))
    spread = jax.scipy.linalg.block_diag(*spread)
    known = spread @ (front.covariance - jax.scipy.linalg.block_diag(*prior)) @ spread.T
    n = dynamics.moving
    mean = jnp.zeros((len(dynamics.prior), 1)).at[:n, 0].set(spread @ front.mean)
    return Belief(mean, dynamics.prior.at[:n, :n].add(0.5 * (known + known.T)))
