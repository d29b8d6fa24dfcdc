"""A Kalman filter over places and accumulators, and what it whitens (theory 10.2 to 10.4)."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp._linalg import cholesky, solve_lower
from mrgp._types import AnyArray
from mrgp.gp.covariance import full_covariance
from mrgp.gp.statespace import CONSTANT, StateSpace, state_space
from mrgp.gp.timeline import Groups, Timeline, separated
from mrgp.kernels import Kernel
from mrgp.supports import Rule


class Block(NamedTuple):
    """The states of one term: a state space at each of its places, from `first` on.

    `prior` is the covariance among places; `function` is the latent function that the term is of.
    """

    function: int
    first: int
    space: StateSpace
    prior: Float[Array, "j j"]
    groups: Groups

    @property
    def size(self) -> int:
        """The number of states."""
        return self.space.size * self.prior.shape[0]

    def of(self, states: Float[Array, "n c"]) -> Float[Array, "d j c"]:
        """Return the part of all states that is the block's own."""
        own = states[self.first : self.first + self.size]
        return own.reshape(self.space.size, self.prior.shape[0], -1)


class Moves(NamedTuple):
    """What a step of some length does to the states of a block.

    `transition` moves states, `inflow` is what they add to an integral; `joint` is the covariance
    of states and an integral that ends with them, and `own` the variance of the integral. Those of
    integrals are None where nothing is integrated.
    """

    transition: Float[Array, "u d d"]
    inflow: Any
    joint: Any
    own: Any


class Dynamics(NamedTuple):
    """All states: blocks of terms, then accumulators, function by function."""

    blocks: tuple[Block, ...]
    moves: tuple[Moves, ...]
    prior: Float[Array, "n n"]
    functions: int
    line: Timeline

    @classmethod
    def of(cls, kernels: Sequence[Kernel], time: int, line: Timeline, rule: Rule) -> "Dynamics":
        """Set up the states for kernels (bound and unwrapped), at the places of a timeline."""
        groups = tuple(seats.groups for seats in line.seats)
        blocks = blocks_of(kernels, time, groups, rule)
        slots = line.slots.shape[0]
        moves = tuple(_moves(block.space, line.gaps, flows=slots > 0) for block in blocks)
        parts = [jnp.kron(b.space.stationary, b.prior) for b in blocks]
        parts.append(jnp.zeros((len(kernels) * slots,) * 2))
        return cls(blocks, moves, jax.scipy.linalg.block_diag(*parts), len(kernels), line)

    @property
    def moving(self) -> int:
        """The number of states without accumulators."""
        return sum(block.size for block in self.blocks)

    def moved(self, states: Float[Array, "n c"], gap: Int[Array, ""]) -> Float[Array, "n c"]:
        """Move states on by a gap: those of terms, and what they add to accumulators."""
        made = []
        for block, move in zip(self.blocks, self.moves, strict=True):
            a, own = move.transition[gap], block.of(states)
            turned = a[0, 0] * own if block.space.size == 1 else jnp.einsum("de,ejc->djc", a, own)
            made.append(turned.reshape(block.size, -1))
        if self.line.slots.shape[0]:
            rates = [None if m.inflow is None else m.inflow[gap] for m in self.moves]
            made.append(states[self.moving :] + self._gathered(states, rates, self.line.flowing))
        return jnp.concatenate(made)

    def jumped(self, states: Float[Array, "n c"], jump: Float[Array, " s"]) -> Array:
        """Add what the places of accumulators have now, times a number for each."""
        reads = [jnp.asarray(block.space.reads) for block in self.blocks]
        return states.at[self.moving :].add(self._gathered(states, reads, jump))

    def _gathered(self, states: Array, rates: Sequence[Any], factor: AnyArray) -> Array:
        """Sum, function by function, what terms have at the places of accumulators."""
        found = [jnp.zeros((self.line.slots.shape[0], states.shape[1]))] * self.functions
        for block, rate, seats in zip(self.blocks, rates, self.line.seats, strict=True):
            at = jnp.asarray(seats.index)[self.line.slots]
            share = jnp.asarray(seats.share)[self.line.slots] * factor
            seen = jnp.einsum("d,dsc->sc", rate, block.of(states)[:, at])
            found[block.function] = found[block.function] + share[:, None] * seen
        return jnp.concatenate(found)

    def arriving(self, gap: Int[Array, ""]) -> Float[Array, "n n"]:
        """Return the prior covariance after a gap of accumulators that were empty before it."""
        slots = self.line.slots.shape[0]
        if not slots:
            return self.prior
        flowing = jnp.asarray(self.line.flowing)
        mixed = [[jnp.zeros((b.size, slots))] * self.functions for b in self.blocks]
        own = [jnp.zeros((slots, slots))] * self.functions
        for i, (block, move) in enumerate(zip(self.blocks, self.moves, strict=True)):
            seats = self.line.seats[i]
            at = jnp.asarray(seats.index)[self.line.slots]
            share = jnp.asarray(seats.share)[self.line.slots] * flowing
            among = share[:, None] * block.prior[at]
            columns = move.joint[gap][:, None, None] * among.T[None]
            mixed[i][block.function] = columns.reshape(block.size, slots)
            own[block.function] += move.own[gap] * (among[:, at] * share[None, :])
        beside = jnp.block(mixed)
        below = jax.scipy.linalg.block_diag(*own)
        n = self.moving
        prior = self.prior.at[:n, n:].set(beside).at[n:, :n].set(beside.T)
        return prior.at[n:, n:].set(below)

    def spread(self, covariance: Float[Array, "n n"], gap: Int[Array, ""]) -> Float[Array, "n n"]:
        """Return the covariance of states after a gap.

        What is known of them beyond the prior is moved; a difference of covariances of the noise
        is never formed.
        """
        known = self.moved(self.moved(covariance - self.prior, gap).T, gap)
        # What rounding makes of a covariance must stay symmetric: nothing damps the rest.
        return 0.5 * (known + known.T) + self.arriving(gap)


def blocks_of(
    kernels: Sequence[Kernel], time: int, seats: Sequence[Groups], rule: Rule
) -> tuple[Block, ...]:
    """Return the states of all terms of some kernels, each at places of its own."""
    blocks, first, places = [], 0, iter(seats)
    for q, kernel in enumerate(kernels):
        for term in separated(kernel, time):
            groups = next(places)
            space = CONSTANT if term.time is None else state_space(term.time)
            prior = jnp.ones((1, 1))
            if term.space:
                prior = jnp.block(full_covariance(term.kernel, groups, rule))
            prior = jnp.asarray(term.coefficient) * prior
            blocks.append(Block(q, first, space, prior, groups))
            first += blocks[-1].size
    return tuple(blocks)


def _moves(space: StateSpace, gaps: Float[AnyArray, " u"], flows: bool) -> Moves:
    gaps = jnp.asarray(gaps)
    transition = jax.vmap(space.transition)(gaps)
    if not flows:
        return Moves(transition, None, None, None)
    once, twice = jax.vmap(space.integrals)(gaps)
    reads, after = space.reads, space.stationary @ space.reads
    return Moves(transition, reads @ once, once @ after, 2.0 * (reads @ twice) @ after)


class Sight(NamedTuple):
    """What rows see: states by number, each times a coefficient."""

    states: Int[Array, "n e"]
    coefficient: Float[Array, "n e"]


def sight_of(dynamics: Dynamics, ratios: Float[Array, "n q"]) -> Sight:
    """Return what the rows of a timeline see, with the ratio of each latent function."""
    line = dynamics.line
    place, slot, scale = (jnp.asarray(x) for x in (line.place, line.slot, line.scale))
    index, coefficient = [], []
    for block, seats in zip(dynamics.blocks, line.seats, strict=True):
        at = jnp.asarray(seats.index)[place]
        base = jnp.where(slot < 0, jnp.asarray(seats.share)[place] * scale, 0.0)
        for d in np.flatnonzero(block.space.reads):
            index.append(block.first + int(d) * block.prior.shape[0] + at)
            coefficient.append(base * ratios[:, block.function])
    if line.slots.shape[0]:
        base = jnp.where(slot < 0, 0.0, scale)
        for q in range(dynamics.functions):
            first = dynamics.moving + q * line.slots.shape[0]
            index.append(first + jnp.maximum(slot, 0))
            coefficient.append(base * ratios[:, q])
    return Sight(jnp.stack(index, 1), jnp.stack(coefficient, 1))


class Seen(NamedTuple):
    """The rows of every step: which there are, what they see, their noise and values."""

    there: Float[Array, "t b"]
    states: Int[Array, "t b e"]
    coefficient: Float[Array, "t b e"]
    noise: Float[Array, "t b"]
    values: Float[Array, "t b c"]


def seen_of(line: Timeline, sight: Sight, noise: Array, values: Float[Array, "n c"]) -> Seen:
    """Arrange rows by step; where a step has fewer, what is not there sees nothing."""
    rows = jnp.asarray(line.rows)
    there = rows < line.count
    at = jnp.where(there, rows, 0)
    return Seen(
        there.astype(float),
        sight.states[at],
        jnp.where(there[..., None], sight.coefficient[at], 0.0),
        jnp.where(there, noise[at], 1.0),
        jnp.where(there[..., None], values[at], 0.0),
    )


class Belief(NamedTuple):
    """Mean (a column for each set of values) and covariance of the states."""

    mean: Float[Array, "n c"]
    covariance: Float[Array, "n n"]


def looked_at(belief: Belief, seen: Seen) -> tuple[Belief, Array, Array, Array]:
    """Condition on the rows of a step; return the belief, white values, and G and L.

    G = L^-1 H P for the root L of the covariance of what was seen.
    """
    rows = _weighted_rows(seen, belief.covariance)
    among = jnp.einsum("be,abe->ab", seen.coefficient, rows[:, seen.states])
    total = among + jnp.where(jnp.eye(len(among), dtype=bool), seen.noise[:, None], 0.0)
    root = cholesky(total)
    gain = solve_lower(root, rows)
    white = solve_lower(root, seen.values - _weighted_rows(seen, belief.mean))
    mean = belief.mean + gain.T @ white
    return Belief(mean, belief.covariance - gain.T @ gain), white, gain, root


def _weighted_rows(seen: Seen, states: Float[Array, "n c"]) -> Float[Array, "b c"]:
    """Return H states, as sums of few of its rows."""
    pairs = zip(seen.coefficient.T, seen.states.T, strict=True)
    parts = (coefficient[:, None] * states[at] for coefficient, at in pairs)
    return functools.reduce(jnp.add, parts)


class Step(NamedTuple):
    """What a step of the filter is given."""

    gap: Int[Array, ""]
    seen: Seen
    keep: Any
    jump: Any


def steps_of(line: Timeline, seen: Seen) -> Step:
    """Return all steps, to be scanned over."""
    keep, jump = (None if x is None else jnp.asarray(x) for x in (line.keep, line.jump))
    return Step(jnp.asarray(line.gap), seen, keep, jump)


def arrived(dynamics: Dynamics, belief: Belief, step: Step) -> Belief:
    """Move a belief to the time of a step, before anything is seen there."""
    mean = dynamics.moved(belief.mean, step.gap)
    covariance = dynamics.spread(belief.covariance, step.gap)
    if step.jump is None:
        return Belief(mean, covariance)
    covariance = dynamics.jumped(dynamics.jumped(covariance, step.jump).T, step.jump).T
    return Belief(dynamics.jumped(mean, step.jump), covariance)


def emptied(dynamics: Dynamics, belief: Belief, step: Step) -> Belief:
    """Empty the accumulators that a step empties."""
    if step.keep is None:
        return belief
    kept = jnp.concatenate([jnp.ones(dynamics.moving), jnp.tile(step.keep, dynamics.functions)])
    return Belief(kept[:, None] * belief.mean, kept[:, None] * belief.covariance * kept[None, :])


def beginning(dynamics: Dynamics, columns: int) -> Belief:
    """Return the prior."""
    return Belief(jnp.zeros((len(dynamics.prior), columns)), dynamics.prior)


def whitened(
    dynamics: Dynamics, seen: Seen
) -> tuple[Float[Array, "t b c"], Float[Array, ""], Belief]:
    """Return values made white, the log determinant of their covariance, and the last belief.

    They are R^-1 y for the root R of the covariance of all values in the order of time. Of the
    states on the way only those at the ends of segments are kept for a gradient.
    """

    @jax.checkpoint
    def step(belief: Belief, one: Step) -> tuple[Belief, tuple[Array, Array]]:
        found, white, _, root = looked_at(arrived(dynamics, belief, one), one.seen)
        size = 2.0 * jnp.sum(jnp.log(jnp.diag(root)))
        return emptied(dynamics, found, one), (white, size)

    @jax.checkpoint
    def segment(belief: Belief, part: Step) -> tuple[Belief, tuple[Array, Array]]:
        return jax.lax.scan(step, belief, part)

    steps = steps_of(dynamics.line, seen)
    count = steps.gap.shape[0]
    length = int(np.ceil(np.sqrt(count)))
    whole = count // length * length
    start = beginning(dynamics, seen.values.shape[2])
    parts = jax.tree.map(lambda x: x[:whole].reshape(-1, length, *x.shape[1:]), steps)
    rest = jax.tree.map(lambda x: x[whole:], steps)
    belief, (white, size) = jax.lax.scan(segment, start, parts)
    belief, (last, more) = segment(belief, rest)
    white = jnp.concatenate([white.reshape(-1, *white.shape[2:]), last])
    return white, jnp.sum(size) + jnp.sum(more), belief
