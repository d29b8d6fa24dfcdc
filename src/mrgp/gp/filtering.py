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
from mrgp.gp.leaning import Lean
from mrgp.gp.statespace import CONSTANT, StateSpace, state_space
from mrgp.gp.timeline import Groups, Seats, Timeline, separated
from mrgp.kernels import Kernel
from mrgp.supports import Rule

KEPT_BYTES, KEPT_BYTES_BESIDE = 2**29, 2**34
"""How much of beliefs on the way is kept for a gradient, on a processor and on an accelerator."""


class Block(NamedTuple):
    """The states of one term: a state space at each of its places, from `first` on.

    `prior` is the covariance among places; `function` is the latent function that the term is of.
    Its places are inducing ones where others `lean` on them.
    """

    function: int
    first: int
    space: StateSpace
    prior: Float[Array, "j j"]
    groups: Groups
    lean: Lean | None = None

    @property
    def size(self) -> int:
        """The number of states."""
        return self.space.size * self.prior.shape[0]

    def of(self, states: Float[Array, "n c"]) -> Float[Array, "d j c"]:
        """Return the part of all states that is the block's own."""
        own = states[self.first : self.first + self.size]
        return own.reshape(self.space.size, self.prior.shape[0], -1)

    def at(self, states: Float[Array, "n c"], places: Int[Array, " s"]) -> Float[Array, "d s c"]:
        """Return the states at some places."""
        own = self.of(states)
        if self.lean is None:
            return own[:, places]
        return jnp.einsum("sj,djc->dsc", self.lean.weights[places], own)

    def among(self, places: Int[Array, " s"]) -> tuple[Float[Array, "s j"], Float[Array, "s s"]]:
        """Return the prior covariance of places with the block's own, and with one another."""
        if self.lean is None:
            beside = self.prior[places]
            return beside, beside[:, places]
        weights = self.lean.weights[places]
        beside = weights @ self.prior
        return beside, beside @ weights.T

    @property
    def read(self) -> list[slice]:
        """Where the states are that are read at instants."""
        width = self.prior.shape[0]
        starts = (self.first + int(d) * width for d in np.flatnonzero(self.space.reads))
        return [slice(start, start + width) for start in starts]


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
        groups = [seats.groups for seats in line.seats]
        blocks = blocks_of(kernels, time, groups, rule, line.seats)
        slots = line.slots.shape[0]
        moves = tuple(moves_of(block.space, line.gaps, flows=slots > 0) for block in blocks)
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
            seen = jnp.einsum("d,dsc->sc", rate, block.at(states, at))
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
            beside, among = block.among(at)
            columns = move.joint[gap][:, None, None] * (share[:, None] * beside).T[None]
            mixed[i][block.function] = columns.reshape(block.size, slots)
            own[block.function] += move.own[gap] * (share[:, None] * among * share[None, :])
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
    kernels: Sequence[Kernel],
    time: int,
    seats: Sequence[Groups],
    rule: Rule,
    leaning: Sequence[Seats] | None = None,
) -> tuple[Block, ...]:
    """Return the states of all terms of some kernels, each at places of its own.

    For each of them there may be places `leaning` on those.
    """
    blocks, first, places = [], 0, iter(seats)
    others = iter(leaning or [None] * len(seats))
    for q, kernel in enumerate(kernels):
        for term in separated(kernel, time):
            groups, other = next(places), next(others)
            space = CONSTANT if term.time is None else state_space(term.time)
            prior = jnp.ones((1, 1))
            if term.space:
                prior = jnp.block(full_covariance(term.kernel, groups, rule))
            prior = jnp.asarray(term.coefficient) * prior
            lean = None
            if other is not None and other.leaning:
                lean = Lean.of(term, groups, other.leaning, rule, other.own)
            blocks.append(Block(q, first, space, prior, groups, lean))
            first += blocks[-1].size
    return tuple(blocks)


def moves_of(space: StateSpace, gaps: Float[AnyArray, " u"], flows: bool) -> Moves:
    """Return what steps of some lengths do to states, and to integrals where any are wanted."""
    gaps = jnp.asarray(gaps)
    transition = jax.vmap(space.transition)(gaps)
    if not flows:
        return Moves(transition, None, None, None)
    once, twice = jax.vmap(space.integrals)(gaps)
    reads, after = space.reads, space.stationary @ space.reads
    return Moves(transition, reads @ once, once @ after, 2.0 * (reads @ twice) @ after)


class Sight(NamedTuple):
    """What rows see: states by number, each times a coefficient, and places that lean on others.

    For each block with such places, `leaning` has the number of the place and a coefficient.
    """

    states: Int[Array, "n e"]
    coefficient: Float[Array, "n e"]
    leaning: tuple[tuple[Int[Array, " n"], Float[Array, " n"]], ...]


def sight_of(dynamics: Dynamics, ratios: Float[Array, "n q"]) -> Sight:
    """Return what the rows of a timeline see, with the ratio of each latent function."""
    line = dynamics.line
    place, slot, scale = (jnp.asarray(x) for x in (line.place, line.slot, line.scale))
    index, coefficient, leaning = [], [], []
    for block, seats in zip(dynamics.blocks, line.seats, strict=True):
        at = jnp.asarray(seats.index)[place]
        base = jnp.where(slot < 0, jnp.asarray(seats.share)[place] * scale, 0.0)
        base = base * ratios[:, block.function]
        if block.lean is not None:
            leaning.append((at, base))
            continue
        for own in block.read:
            index.append(own.start + at)
            coefficient.append(base)
    if line.slots.shape[0]:
        base = jnp.where(slot < 0, 0.0, scale)
        for q in range(dynamics.functions):
            first = dynamics.moving + q * line.slots.shape[0]
            index.append(first + jnp.maximum(slot, 0))
            coefficient.append(base * ratios[:, q])
    if not index:
        index, coefficient = [jnp.zeros_like(place)], [jnp.zeros(place.shape)]
    return Sight(jnp.stack(index, 1), jnp.stack(coefficient, 1), tuple(leaning))


class Seen(NamedTuple):
    """The rows of every step: which there are, what they see, their noise and values."""

    there: Float[Array, "t b"]
    states: Int[Array, "t b e"]
    coefficient: Float[Array, "t b e"]
    noise: Float[Array, "t b"]
    values: Float[Array, "t b c"]
    leaning: tuple[tuple[Int[Array, "t b"], Float[Array, "t b"]], ...]


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
        tuple((place[at], jnp.where(there, by[at], 0.0)) for place, by in sight.leaning),
    )


class Belief(NamedTuple):
    """Mean (a column for each set of values) and covariance of the states."""

    mean: Float[Array, "n c"]
    covariance: Float[Array, "n n"]


def looked_at(dynamics: Dynamics, belief: Belief, seen: Seen) -> tuple[Belief, Array, Array, Array]:
    """Condition on the rows of a step; return the belief, white values, and G and L.

    G = L^-1 H P for the root L of the covariance of what was seen.
    """
    leaning = leans_of(dynamics, seen)
    rows = weighted_rows(seen, leaning, belief.covariance)
    among = jnp.einsum("be,abe->ab", seen.coefficient, rows[:, seen.states])
    for own, weights in leaning:
        among = among + rows[:, own] @ weights.T
    total = among + jnp.where(jnp.eye(len(among), dtype=bool), seen.noise[:, None], 0.0)
    root = cholesky(total)
    gain = solve_lower(root, rows)
    white = solve_lower(root, seen.values - weighted_rows(seen, leaning, belief.mean))
    mean = belief.mean + gain.T @ white
    return Belief(mean, belief.covariance - gain.T @ gain), white, gain, root


Leans = list[tuple[slice, Float[Array, "b j"]]]
"""Where states are on which rows lean, and how much."""


def leans_of(dynamics: Dynamics, seen: Seen) -> Leans:
    """Return how the rows of a step lean on states at inducing places."""
    leaning = [(block, block.lean) for block in dynamics.blocks if block.lean is not None]
    return [
        (own, by[:, None] * lean.weights[place])
        for (block, lean), (place, by) in zip(leaning, seen.leaning, strict=True)
        for own in block.read
    ]


def weighted_rows(seen: Seen, leaning: Leans, states: Float[Array, "n c"]) -> Float[Array, "b c"]:
    """Return H states: sums of few of their rows, and of those that are leaned on."""
    pairs = zip(seen.coefficient.T, seen.states.T, strict=True)
    parts = [coefficient[:, None] * states[at] for coefficient, at in pairs]
    parts += [weights @ states[own] for own, weights in leaning]
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


def passed(dynamics: Dynamics, belief: Belief, step: Step) -> Belief:
    """Follow a belief over a step."""
    found = looked_at(dynamics, arrived(dynamics, belief, step), step.seen)[0]
    return emptied(dynamics, found, step)


def beginning(dynamics: Dynamics, columns: int) -> Belief:
    """Return the prior."""
    return Belief(jnp.zeros((len(dynamics.prior), columns)), dynamics.prior)


Whitened = tuple[Belief, tuple[Float[Array, "t b c"], Float[Array, " t"]]]
"""The last belief, values made white, and the log determinant of the covariance of each step."""


def filtered(dynamics: Dynamics, start: Belief, steps: Step) -> Whitened:
    """Follow steps from a belief. For a gradient the beliefs on the way are kept.

    The belief may have more columns than there are values: those of values that are zero.
    """
    more = start.mean.shape[1] - steps.seen.values.shape[-1]

    @jax.checkpoint
    def step(belief: Belief, one: Step) -> tuple[Belief, tuple[Array, Array]]:
        seen = one.seen._replace(values=jnp.pad(one.seen.values, ((0, 0), (0, more))))
        found, white, _, root = looked_at(dynamics, arrived(dynamics, belief, one), seen)
        size = 2.0 * jnp.sum(jnp.log(jnp.diag(root)))
        return emptied(dynamics, found, one), (white, size)

    return jax.lax.scan(step, start, steps)


def filtered_in_parts(dynamics: Dynamics, start: Belief, steps: Step) -> Whitened:
    """Follow steps from a belief. For a gradient few beliefs are kept, the others found again."""

    @jax.checkpoint
    def part_of(belief: Belief, part: Step) -> Whitened:
        return filtered(dynamics, belief, part)

    count = steps.gap.shape[0]
    length = int(np.ceil(np.sqrt(count)))
    whole = count // length * length
    parts = jax.tree.map(lambda x: x[:whole].reshape(-1, length, *x.shape[1:]), steps)
    rest = jax.tree.map(lambda x: x[whole:], steps)
    belief, (white, size) = jax.lax.scan(part_of, start, parts)
    belief, (last, more) = part_of(belief, rest)
    white = jnp.concatenate([white.reshape(-1, *white.shape[2:]), last])
    return belief, (white, jnp.concatenate([size.ravel(), more]))


def followed(dynamics: Dynamics, start: Belief, steps: Step, beside: int = 1) -> Whitened:
    """Follow steps from a belief, in parts where all beliefs are too many to keep for a gradient.

    So many of them go on `beside` one another.
    """
    bytes_of_one = sum(x.size * x.dtype.itemsize for x in start)
    most = KEPT_BYTES if jax.default_backend() == "cpu" else KEPT_BYTES_BESIDE
    few = beside * steps.gap.shape[0] * bytes_of_one <= most
    return (filtered if few else filtered_in_parts)(dynamics, start, steps)


def whitened(
    dynamics: Dynamics, seen: Seen
) -> tuple[Float[Array, "t b c"], Float[Array, ""], Belief]:
    """Return values made white, the log determinant of their covariance, and the last belief.

    They are R^-1 y for the root R of the covariance of all values in the order of time.
    """
    start, steps = beginning(dynamics, seen.values.shape[2]), steps_of(dynamics.line, seen)
    belief, (white, size) = followed(dynamics, start, steps)
    return white, jnp.sum(size), belief
