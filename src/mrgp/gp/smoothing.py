"""What all data say of the states at each time: a pass forward and one back (theory 10.6)."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp._compiled import Compiled
from mrgp._types import AnyArray
from mrgp.gp.filtering import (
    Belief,
    Dynamics,
    Leans,
    Seen,
    Step,
    arrived,
    beginning,
    emptied,
    leans_of,
    looked_at,
    passed,
    seen_of,
    sight_of,
    steps_of,
)
from mrgp.gp.timeline import Timeline
from mrgp.kernels import Kernel
from mrgp.supports import Rule


class Adjoint(NamedTuple):
    """How later data pull on the states: a score and its information."""

    score: Float[Array, "n 1"]
    information: Float[Array, "n n"]


class Smoothed(NamedTuple):
    """Mean and covariance of what terms read at their places, for each step.

    Terms stand one after another, each with all its places.
    """

    mean: Float[Array, "t u"]
    covariance: Float[Array, "t u u"]


class Course(NamedTuple):
    """A filter's way through data: kernels (bound and unwrapped), timeline, what rows see."""

    kernels: tuple[Kernel, ...]
    line: Timeline
    ratios: Float[AnyArray, "n q"]
    noise: Float[AnyArray, " n"]
    residual: Float[AnyArray, " n"]


Setting = tuple[int, Rule]
"""The input that is time, and the rule of averages: what code is compiled for."""


def smoothed(course: Course, setting: Setting) -> Iterator[tuple[Int[np.ndarray, " t"], Smoothed]]:
    """Yield what is known at the steps of each segment, the last segment first.

    Memory is that of one segment, of about the square root of the number of steps.
    """
    start = _beginning(course, setting, effort="least")

    def forward(belief: Belief, *given: Any) -> Belief:
        return _forward(course, setting, belief, *given, effort="some")

    def backward(belief: Belief, *given: Any) -> tuple[Adjoint, Smoothed]:
        return _backward(course, setting, belief, *given, effort="some")

    yield from in_segments(course.line.gap.shape[0], start, forward, backward)


def segment_of(count: int) -> int:
    """Return how many of so many steps are gone back over together.

    >>> segment_of(8760)
    94
    """
    return int(np.ceil(np.sqrt(count)))


def in_segments(
    count: int, start: Any, forward: Callable[..., Any], backward: Callable[..., Any]
) -> Iterator[tuple[Int[np.ndarray, " t"], Any]]:
    """Go forward over so many steps and back again; yield what is found on the way back.

    What is known (a `Belief`, or a pair that begins with one) is kept where segments begin.
    """
    length = segment_of(count)
    # The last segment overlaps the one before, so that all are of one length.
    starts = [min(a, count - length) for a in range(0, count, length)]
    known = [start]
    for first, next_one in itertools.pairwise(starts):
        given = jnp.asarray(first), jnp.asarray(next_one - first)
        known.append(forward(known[-1], *given, length))
    states = (start if isinstance(start, Belief) else start[0]).mean.shape[0]
    pull = Adjoint(jnp.zeros((states, 1)), jnp.zeros((states, states)))
    end = count
    for first, one in zip(starts[::-1], known[::-1], strict=True):
        given = jnp.asarray(first), jnp.asarray(end - first)
        pull, found = backward(one, *given, length, pull)
        yield first + np.arange(end - first), jax.tree.map(lambda x, n=end - first: x[:n], found)
        end = first


@Compiled
def _beginning(course: Course, setting: Setting) -> Belief:
    return beginning(dynamics_of(course, setting), 1)


def dynamics_of(course: Course, setting: Setting) -> Dynamics:
    """Return the states of a course."""
    return Dynamics.of(course.kernels, setting[0], course.line, setting[1])


def some_steps(course: Course, dynamics: Dynamics, first: Array, length: int) -> Step:
    """Return so many steps of a course."""
    ratios, noise, residual = map(jnp.asarray, (course.ratios, course.noise, course.residual))
    seen = seen_of(course.line, sight_of(dynamics, ratios), noise, residual[:, None])
    steps = steps_of(course.line, seen)
    return jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, first, length), steps)


@Compiled
def _forward(
    course: Course, setting: Setting, belief: Belief, first: Array, number: Array, length: int
) -> Belief:
    """Go on by the first `number` of so many steps."""
    dynamics = dynamics_of(course, setting)

    def step(belief: Belief, one: tuple[Step, Array]) -> tuple[Belief, None]:
        found = passed(dynamics, belief, one[0])
        return jax.tree.map(lambda a, b: jnp.where(one[1], a, b), found, belief), None

    steps = some_steps(course, dynamics, first, length)
    return jax.lax.scan(step, belief, (steps, jnp.arange(length) < number))[0]


@Compiled
def _backward(
    course: Course,
    setting: Setting,
    belief: Belief,
    first: Array,
    number: Array,
    length: int,
    pull: Adjoint,
) -> tuple[Adjoint, Smoothed]:
    """Go back over the first `number` of so many steps, from how later data pull on their end."""
    dynamics = dynamics_of(course, setting)

    def forward(belief: Belief, one: Step) -> tuple[Belief, tuple[Belief, Array, Array, Array]]:
        there = arrived(dynamics, belief, one)
        found, white, gain, root = looked_at(dynamics, there, one.seen)
        return emptied(dynamics, found, one), (there, white, gain, root)

    def backward(pull: Adjoint, given: Any) -> tuple[Adjoint, Smoothed]:
        one, (there, white, gain, root), used = given
        open_still = before_emptying(dynamics, pull, one)
        leaning = leans_of(dynamics, one.seen)
        before = before_looking(open_still, one.seen, leaning, (white, gain, root))
        rows = _read(dynamics, there.covariance)
        mean = _read(dynamics, there.mean) + rows @ before.score
        covariance = _read(dynamics, rows.T) - rows @ before.information @ rows.T
        moved = before_moving(dynamics, before, one)
        kept = jax.tree.map(lambda a, b: jnp.where(used, a, b), moved, pull)
        return kept, Smoothed(mean[:, 0], covariance)

    steps = some_steps(course, dynamics, first, length)
    _, kept = jax.lax.scan(forward, belief, steps)
    given = (steps, kept, jnp.arange(length) < number)
    return jax.lax.scan(backward, pull, given, reverse=True)


def _read(dynamics: Dynamics, states: Float[Array, "n c"]) -> Float[Array, "u c"]:
    """Return what terms read at their places."""
    parts = (jnp.einsum("d,djc->jc", b.space.reads, b.of(states)) for b in dynamics.blocks)
    return jnp.concatenate(list(parts))


def before_emptying(dynamics: Dynamics, pull: Adjoint, step: Step) -> Adjoint:
    """Take back that a step empties accumulators."""
    return Adjoint(*emptied(dynamics, Belief(*pull), step))


def before_looking(
    pull: Adjoint, seen: Seen, leaning: Leans, found: tuple[Array, Array, Array]
) -> Adjoint:
    """Add what the rows of a step say; K = G^T L^-1 is the filter's gain."""
    white, gain, root = found

    def upper(right: Array) -> Array:
        return jax.scipy.linalg.solve_triangular(root, right, lower=True, trans="T")

    def spread(right: Array) -> Array:
        """Return H^T right."""
        parts = seen.coefficient[:, :, None] * right[:, None, :]
        zero = jnp.zeros((pull.score.shape[0], right.shape[1]))
        total = zero.at[seen.states.ravel()].add(parts.reshape(-1, right.shape[1]))
        for own, weights in leaning:
            total = total.at[own].add(weights.T @ right)
        return total

    score = pull.score + spread(upper(white - gain @ pull.score))
    drawn = gain @ pull.information
    across = spread(upper(drawn))
    inner = upper(upper(drawn @ gain.T + jnp.eye(len(root))).T)
    own = spread(spread(inner).T)
    return Adjoint(score, pull.information - across - across.T + own)


def before_moving(dynamics: Dynamics, pull: Adjoint, step: Step) -> Adjoint:
    """Take back that a step moves on."""

    def moved(states: Array) -> Array:
        there = dynamics.moved(states, step.gap)
        return there if step.jump is None else dynamics.jumped(there, step.jump)

    def back(right: Array) -> Array:
        return jax.linear_transpose(moved, right)(right)[0]

    information = back(back(pull.information).T)
    return Adjoint(back(pull.score), 0.5 * (information + information.T))
