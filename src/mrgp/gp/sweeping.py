"""Predictions at many places and instants from one pass of a smoother (theory 10.6)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp._compiled import Compiled
from mrgp._types import AnyArray
from mrgp.gp.covariance import full_covariance, variance
from mrgp.gp.leaning import across, regression
from mrgp.gp.smoothing import Course, Setting, smoothed
from mrgp.gp.statespace import CONSTANT, state_space
from mrgp.gp.timeline import Timeline, extent_of, separated
from mrgp.gp.windows import Moments, over_windows
from mrgp.supports import Places, Support, taken_apart

MOST_NUMBERS = 2**25


class Instants(NamedTuple):
    """Rows at instants: the number of each row's time and place, and a factor."""

    times: Float[np.ndarray, " t"]
    when: Int[np.ndarray, " n"]
    places: tuple[Support, ...]
    where: Int[np.ndarray, " n"]
    scale: Float[np.ndarray, " n"]

    @classmethod
    def of(cls, support: Support, time: int, extent: Float[np.ndarray, " d"]) -> "Instants | None":
        """Take regions apart, or return None where some are no instants or no places."""
        try:
            parts = taken_apart(support, time)
        except ValueError:
            return None
        if any(part.times is not None or np.any(part.end > part.start) for part in parts):
            return None
        at, where = np.zeros(len(support)), np.zeros(len(support), int)
        scale, found = np.ones(len(support)), Places.of(parts, extent)
        for part, index in zip(parts, found.which, strict=True):
            at[part.rows], where[part.rows], scale[part.rows] = part.start, index, part.scale
        times, when = np.unique(at, return_inverse=True)
        return cls(times, when, found.groups, where, scale)

    @property
    def number(self) -> int:
        """The number of places."""
        return sum(map(len, self.places))


class Spread(NamedTuple):
    """What the states of all terms say at other places, and the variance that is left there."""

    weights: Float[Array, "u g"]
    rest: Float[Array, " g"]


def sweep(
    course: Course,
    setting: Setting,
    anchors: tuple[Support, ...],
    ratio: Float[np.ndarray, " q"],
    support: Support,
) -> Moments | None:
    """Return mean and variance of sum_q r_q L f_q on a support, None if it is not places in time.

    The course's timeline is made anew, with the times that are asked for.
    """
    extent = extent_of(anchors)
    asked = Instants.of(support, setting[0], extent)
    if asked is None:
        return over_windows(course, setting, anchors, ratio, support)
    inducing = course.line.inducing
    line = Timeline.of(course.kernels, setting[0], anchors, asked.times, inducing=inducing)
    if asked.number * sum(map(len, line.seats)) > MOST_NUMBERS:
        half = len(support) // 2
        rows = np.argsort(asked.where, kind="stable")
        mean, spread = np.zeros(len(support)), np.zeros(len(support))
        for part in (rows[:half], rows[half:]):
            found = sweep(course, setting, anchors, ratio, support[part])
            mean[part], spread[part] = found or (np.nan, np.nan)
        return mean, spread
    course = jax.tree.map(jnp.asarray, course._replace(line=line))
    places = jax.tree.map(jnp.asarray, asked.places)
    told = _spread(course, setting, places, jnp.asarray(ratio), effort="least")
    weights, rest = np.asarray(told.weights), np.asarray(told.rest)
    steps = np.searchsorted(line.times, asked.times - 1e-9 * extent[setting[0]])
    order = np.argsort(asked.when, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(asked.when))[:-1])
    at_step = dict(zip(steps.tolist(), rows, strict=True))
    mean, spread = np.zeros(len(support)), np.zeros(len(support))
    for numbers, found in smoothed(course, setting):
        for i, step in enumerate(numbers.tolist()):
            here = at_step.get(step)
            if here is None:
                continue
            seen = weights[:, asked.where[here]]
            own = np.asarray(found.covariance[i]) @ seen
            mean[here] = np.asarray(found.mean[i]) @ seen
            spread[here] = rest[asked.where[here]] + np.einsum("un,un->n", seen, own)
    return asked.scale * mean, asked.scale**2 * np.maximum(spread, 0.0)


@Compiled
def _spread(
    course: Course, setting: Setting, places: tuple[Support, ...], ratio: Float[AnyArray, " q"]
) -> Spread:
    time, rule = setting
    weights, rest, seats = [], jnp.zeros(sum(map(len, places))), iter(course.line.seats)
    for q, kernel in enumerate(course.kernels):
        for term in separated(kernel, time):
            seat = next(seats)
            space = CONSTANT if term.time is None else state_space(term.time)
            if not term.space:
                total = jnp.concatenate([jnp.asarray(p.total) for p in places])
                weights.append(ratio[q] * total[None, :])
                continue
            prior = jnp.block(full_covariance(term.kernel, seat.groups, rule))
            cross = across(term.kernel, seat.groups, places, rule)
            own = jnp.concatenate([variance(term.kernel, p, rule) for p in places])
            lean, half = regression(prior, cross)
            weights.append(ratio[q] * lean)
            left = jnp.maximum(own - jnp.sum(half**2, 0), 0.0)
            rest = rest + ratio[q] ** 2 * term.coefficient * space.variance * left
    return Spread(jnp.concatenate(weights), rest)
