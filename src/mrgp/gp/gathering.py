"""Sums over time, such as means of windows, in the passes of one smoother (theory 10.6).

Nothing is seen of a sum z while it is gathered. So the filter has only to carry its mean, its
covariance with the states and its own variance, and later data change it through the states.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp._compiled import Compiled
from mrgp._linalg import solve_lower
from mrgp._types import AnyArray
from mrgp.gp.filtering import (
    Belief,
    Dynamics,
    Step,
    arrived,
    beginning,
    emptied,
    leans_of,
    looked_at,
    moves_of,
    weighted_rows,
)
from mrgp.gp.smoothing import (
    Adjoint,
    Course,
    Setting,
    before_emptying,
    before_looking,
    before_moving,
    dynamics_of,
    in_segments,
    some_steps,
)


class Sums(NamedTuple):
    """What sums read, step by step: a place, which they integrate over time or add at once.

    Sum s reads `place[t, s]` at step t: it has the integral up to there added if it `flows`, and
    what is there times `jump`; it is emptied where it is not `kept`. `weights` are how places lean
    on what all terms read at their own places. So many sums in a row have a joint covariance.
    """

    weights: Float[AnyArray, "u p"]
    place: Int[AnyArray, "t s"]
    flows: AnyArray
    kept: AnyArray
    jump: AnyArray | None


class Held(NamedTuple):
    """Sums so far: means, covariances with the states, and covariances in groups."""

    mean: Float[Array, " s"]
    cross: Float[Array, "n s"]
    own: Float[Array, "g k k"]


class Found(NamedTuple):
    """Mean and covariance of sums at the time of each step, given all data."""

    mean: Float[Array, "t s"]
    own: Float[Array, "t g k k"]


def gathered(
    course: Course, setting: Setting, sums: Sums, together: int
) -> Iterator[tuple[Int[np.ndarray, " t"], Found]]:
    """Yield what is known of sums at the steps of each segment, the last segment first.

    Covariances are among as many sums in a row as go `together`.
    """
    start = _start(course, setting, sums, together, effort="least")

    def forward(known: Any, *given: Any) -> Any:
        return _forward(course, setting, sums, known, *given, effort="some")

    def backward(known: Any, *given: Any) -> Any:
        return _backward(course, setting, sums, together, known, *given, effort="some")

    yield from in_segments(course.line.gap.shape[0], start, forward, backward)


class _Gatherer(NamedTuple):
    """The states of all terms, with how places lean on them and what they covary with them."""

    dynamics: Dynamics
    weights: list[Float[Array, "j p"]]
    beside: list[Float[Array, "j p"]]
    moves: list[Any]

    @classmethod
    def of(cls, course: Course, setting: Setting, sums: Sums) -> "_Gatherer":
        dynamics = dynamics_of(course, setting)
        sizes = [b.prior.shape[0] for b in dynamics.blocks]
        weights = jnp.split(jnp.asarray(sums.weights), np.cumsum(sizes)[:-1])
        beside = [b.prior @ w for b, w in zip(dynamics.blocks, weights, strict=True)]
        moves = [moves_of(b.space, course.line.gaps, flows=True) for b in dynamics.blocks]
        return cls(dynamics, list(weights), beside, moves)

    def states(self, rates: list[Array], places: list[Array]) -> Float[Array, "n s"]:
        """Return rates times places for the states of each block, and zero for accumulators."""
        parts = [
            (rate[:, None, None] * w[None]).reshape(-1, w.shape[1])
            for rate, w in zip(rates, places, strict=True)
        ]
        rest = len(self.dynamics.prior) - self.dynamics.moving
        return jnp.concatenate([*parts, jnp.zeros((rest, parts[0].shape[1]))])

    def flowed(self, held: Held, belief: Belief, step: Step, place: Array, by: Array) -> Held:
        """Add integrals over the gap before a step, from the belief before the gap."""
        d, gap = self.dynamics, step.gap
        weights = [w[:, place] * by[None, :] for w in self.weights]
        beside = [k[:, place] * by[None, :] for k in self.beside]
        rate = self.states([m.inflow[gap] for m in self.moves], weights)
        drawn = (belief.covariance - d.prior) @ rate
        size = held.own.shape[-1]
        own = held.own + _pairs(rate, held.cross, size) + _pairs(held.cross, rate, size)
        own = own + _pairs(rate, drawn, size)
        for move, w, k in zip(self.moves, weights, beside, strict=True):
            own = own + move.own[gap] * _pairs(w, k, size)
        cross = d.moved(held.cross + drawn, gap)
        cross = cross + self.states([m.joint[gap] for m in self.moves], beside)
        cross = cross.at[d.moving :].add(self._with_accumulators(gap, weights))
        if step.jump is not None:
            cross = d.jumped(cross, step.jump)
        return Held(held.mean + rate.T @ belief.mean[:, 0], cross, own)

    def _with_accumulators(self, gap: Array, weights: list[Array]) -> Array:
        """Return the prior covariance of integrals over a gap with those of accumulators."""
        d = self.dynamics
        slots = d.line.slots.shape[0]
        found = [jnp.zeros((slots, weights[0].shape[1]))] * d.functions
        for block, move, seats, w in zip(d.blocks, self.moves, d.line.seats, weights, strict=True):
            at = jnp.asarray(seats.index)[d.line.slots]
            share = jnp.asarray(seats.share)[d.line.slots] * jnp.asarray(d.line.flowing)
            seen = share[:, None] * (block.among(at)[0] @ w)
            found[block.function] = found[block.function] + move.own[gap] * seen
        return jnp.concatenate(found)

    def jumped(self, held: Held, there: Belief, place: Array, by: Array) -> Held:
        """Add what is read at once."""
        reads = [jnp.asarray(block.space.reads) for block in self.dynamics.blocks]
        rate = self.states(reads, [w[:, place] * by[None, :] for w in self.weights])
        drawn, size = there.covariance @ rate, held.own.shape[-1]
        own = held.own + _pairs(rate, held.cross, size) + _pairs(held.cross, rate, size)
        own = own + _pairs(rate, drawn, size)
        return Held(held.mean + rate.T @ there.mean[:, 0], held.cross + drawn, own)

    def step(self, known: tuple[Belief, Held], one: Any) -> tuple[Any, Any]:
        """Go on by a step; return what is known after it, and what was on its arrival."""
        (belief, held), (step, place, flows, kept, jump) = known, one
        held = self.flowed(held, belief, step, place, flows.astype(float))
        there = arrived(self.dynamics, belief, step)
        if jump is not None:
            held = self.jumped(held, there, place, jump)
        found, white, gain, root = looked_at(self.dynamics, there, step.seen)
        leaning = leans_of(self.dynamics, step.seen)
        drawn = solve_lower(root, weighted_rows(step.seen, leaning, held.cross))
        size = held.own.shape[-1]
        after = Held(
            held.mean + drawn.T @ white[:, 0],
            held.cross - gain.T @ drawn,
            held.own - _pairs(drawn, drawn, size),
        )
        keep = kept.astype(float)
        cross = emptied(self.dynamics, Belief(after.cross, there.covariance), step).mean
        pairs = keep.reshape(-1, size, 1) * keep.reshape(-1, 1, size)
        after = Held(keep * after.mean, cross * keep[None, :], after.own * pairs)
        there = there, held, white, gain, root
        return (emptied(self.dynamics, found, step), after), there


def _pairs(first: Array, second: Array, size: int) -> Float[Array, "g k k"]:
    """Return the products of columns with one another, in groups of a size."""
    a, b = (x.reshape(len(x), -1, size) for x in (first, second))
    return jnp.einsum("ngk,ngl->gkl", a, b)


@Compiled
def _start(course: Course, setting: Setting, sums: Sums, together: int) -> tuple[Belief, Held]:
    belief, number = beginning(dynamics_of(course, setting), 1), sums.place.shape[1]
    cross = jnp.zeros((len(belief.mean), number))
    own = jnp.zeros((number // together, together, together))
    return belief, Held(jnp.zeros(number), cross, own)


def _given(course: Course, sums: Sums, dynamics: Dynamics, first: Array, length: int) -> Any:
    steps = some_steps(course, dynamics, first, length)
    parts = (sums.place, sums.flows, sums.kept, sums.jump)
    own = (
        None if x is None else jax.lax.dynamic_slice_in_dim(jnp.asarray(x), first, length)
        for x in parts
    )
    return steps, *own


@Compiled
def _forward(
    course: Course,
    setting: Setting,
    sums: Sums,
    known: tuple[Belief, Held],
    first: Array,
    number: Array,
    length: int,
) -> tuple[Belief, Held]:
    """Go on by the first `number` of so many steps."""
    gatherer = _Gatherer.of(course, setting, sums)

    def step(known: Any, one: Any) -> tuple[Any, None]:
        found, _ = gatherer.step(known, one[0])
        return jax.tree.map(lambda a, b: jnp.where(one[1], a, b), found, known), None

    given = _given(course, sums, gatherer.dynamics, first, length)
    return jax.lax.scan(step, known, (given, jnp.arange(length) < number))[0]


@Compiled
def _backward(
    course: Course,
    setting: Setting,
    sums: Sums,
    together: int,
    known: tuple[Belief, Held],
    first: Array,
    number: Array,
    length: int,
    pull: Adjoint,
) -> tuple[Adjoint, Found]:
    """Go back over the first `number` of so many steps, from how later data pull on their end."""
    gatherer = _Gatherer.of(course, setting, sums)
    dynamics = gatherer.dynamics

    def backward(pull: Adjoint, given: Any) -> tuple[Adjoint, Found]:
        one, (_, held, white, gain, root), used = given
        open_still = before_emptying(dynamics, pull, one)
        leaning = leans_of(dynamics, one.seen)
        before = before_looking(open_still, one.seen, leaning, (white, gain, root))
        mean = held.mean + held.cross.T @ before.score[:, 0]
        own = held.own - _pairs(held.cross, before.information @ held.cross, together)
        moved = before_moving(dynamics, before, one)
        return jax.tree.map(lambda a, b: jnp.where(used, a, b), moved, pull), Found(mean, own)

    given = _given(course, sums, dynamics, first, length)
    _, kept = jax.lax.scan(gatherer.step, known, given)
    every = (given[0], kept, jnp.arange(length) < number)
    return jax.lax.scan(backward, pull, every, reverse=True)
