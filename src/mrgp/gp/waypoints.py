"""What a filter believed on its way: where it goes on from, and what forecasts are read from."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp._types import AnyArray, Scalar
from mrgp.gp.filtering import Belief, Dynamics, Seen, Step, beginning, passed, steps_of
from mrgp.gp.spans import Weighed, one_by_one, weighed
from mrgp.gp.timeline import Groups, Timeline

MOST, BYTES = 12, 2**25
"""How many beliefs are kept, and how much memory they should take: the last is kept in any case."""


class Front(NamedTuple):
    """Mean and covariance of the states of all terms at the time `when`, given all data.

    `seats` are the places at which each term has states.

    >>> from mrgp import points
    >>> Front(((points([[0.0]]),),), np.ones(()), np.zeros(1), np.ones((1, 1))).when.item()
    1.0
    """

    seats: tuple[Groups, ...]
    when: Scalar
    mean: Float[AnyArray, " n"]
    covariance: Float[AnyArray, "n n"]


class Waypoints(eqx.Module):
    """What was believed of all states of a timeline after some of its steps, the last one at least.

    Each step is the last one of its time. States are those of terms, and then accumulators. Where
    `step` is -1, there is nothing.

    >>> Waypoints(np.array([-1, 4]), np.zeros((2, 1)), np.ones((2, 1, 1))).step.tolist()
    [-1, 4]
    """

    step: Int[AnyArray, " k"]
    mean: Float[AnyArray, "k n"]
    covariance: Float[AnyArray, "k n n"]

    @classmethod
    def of(cls, dynamics: Dynamics, seen: Seen) -> "Waypoints":
        """Filter all values, and keep some beliefs."""
        if one_by_one(len(seen.there)):
            return remembered(dynamics, seen)
        return cls.of_spans(dynamics.line, weighed(dynamics, seen))

    @classmethod
    def of_spans(cls, line: Timeline, found: Weighed) -> "Waypoints":
        """Keep what is believed at the ends of some spans, and at the end of all."""
        last = line.times.shape[0] - 1
        ends = np.array([end for end in found.ends if end < last])
        back = np.append(0, (last - ends)[::-1])
        earlier = len(ends) - thinned(back, most_of(len(found.belief.mean)))[:0:-1]
        # A span may end among the steps of one time.
        step = jnp.where(ends_time(line, jnp.asarray(ends[earlier])), ends[earlier], -1)
        mean = found.passed.mean[earlier, :, 0], found.belief.mean[None, :, 0]
        covariance = found.passed.covariance[earlier], found.belief.covariance[None]
        return cls(jnp.append(step, last), jnp.concatenate(mean), jnp.concatenate(covariance))

    def front(self, line: Timeline, functions: int) -> Front:
        """Return what is believed of terms at the end of the timeline."""
        n = self.mean.shape[1] - functions * len(line.slots)
        seats = tuple(seats.groups for seats in line.seats)
        return Front(seats, line.times[-1], self.mean[-1, :n], self.covariance[-1, :n, :n])


def remembered(dynamics: Dynamics, seen: Seen) -> Waypoints:
    """Filter all steps, one after another, and keep some of what is believed on the way."""
    count, n = seen.there.shape[0], len(dynamics.prior)
    back, k = distances(count, most_of(n)), most_of(n)
    step = last_of_time(dynamics.line, count - 1 - np.pad(back, (0, k - len(back)), "edge")[::-1])
    step = jnp.where(jnp.append(step[1:] == step[:-1], False), -1, step)
    place = jnp.full(count, k).at[jnp.where(step < 0, count, step)].set(jnp.arange(k), mode="drop")
    room = Waypoints(step, jnp.zeros((k, n)), jnp.zeros((k, n, n)))
    start = beginning(dynamics, seen.values.shape[2])
    return on_the_way(dynamics, start, steps_of(dynamics.line, seen), place, room)


def on_the_way(
    dynamics: Dynamics, start: Belief, steps: Step, place: Int[Array, " t"], room: Waypoints
) -> Waypoints:
    """Follow steps from a belief, and keep what is believed where a step has a place in the room.

    Steps that are not kept have the number of places.
    """

    def step(carry: Any, given: tuple[Step, Array]) -> tuple[Any, None]:
        (belief, mean, covariance), (one, at) = carry, given
        found = passed(dynamics, belief, one)
        mean = mean.at[at].set(found.mean[:, 0], mode="drop")
        return (found, mean, covariance.at[at].set(found.covariance, mode="drop")), None

    carry = start, jnp.asarray(room.mean), jnp.asarray(room.covariance)
    (_, mean, covariance), _ = jax.lax.scan(step, carry, (steps, place))
    return Waypoints(room.step, mean, covariance)


def last_of_time(line: Timeline, steps: Int[np.ndarray, " k"]) -> Int[Array, " k"]:
    """Return the last steps of the times of some steps."""
    times = jnp.asarray(line.times)
    return jnp.searchsorted(times, times[steps], side="right") - 1


def ends_time(line: Timeline, steps: Int[Array, " k"]) -> Array:
    """Tell which steps are the last ones of their times."""
    times = jnp.asarray(line.times)
    return times[steps] < jnp.append(times, jnp.inf)[steps + 1]


def most_of(states: int) -> int:
    """Return how many beliefs of so many states are kept.

    >>> most_of(300), most_of(1500), most_of(5000)
    (12, 1, 1)
    """
    return int(np.clip(BYTES // (8 * states**2), 1, MOST))


def distances(count: int, most: int) -> Int[np.ndarray, " k"]:
    """Return how far before the end of so many steps beliefs are kept: ever farther apart.

    Distances double, or grow by a larger factor if `most` of them would not reach the beginning.

    >>> distances(9, 12).tolist(), distances(1000, 4).tolist(), distances(9, 1).tolist()
    ([0, 1, 3, 7, 8], [0, 9, 99, 999], [0])
    """
    if most == 1:
        return np.zeros(1, int)
    factor = max(2.0, count ** (1.0 / (most - 1)))
    found = np.round(factor ** np.arange(most)) - 1.0
    return np.unique(np.minimum(found, count - 1)).astype(int)


def thinned(back: Int[np.ndarray, " c"], most: int) -> Int[np.ndarray, " k"]:
    """Return which of some distances from the end, in order, are left of `most`.

    One after another goes whose neighbours are then least far apart, by ratio; the first and the
    last stay.

    >>> thinned(np.array([0, 1, 2, 3, 7, 8, 15]), 5).tolist()
    [0, 1, 3, 4, 6]
    """
    left = np.arange(len(back)) if most > 1 else np.zeros(1, int)
    while len(left) > max(most, 2):
        apart = (back[left[2:]] + 1.0) / (back[left[:-2]] + 1.0)
        left = np.delete(left, 1 + np.argmin(apart))
    return left
