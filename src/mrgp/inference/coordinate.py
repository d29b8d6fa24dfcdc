"""Coordinate ascent for q of a network, under L-BFGS for its parameters (theory 3.6)."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._compiled import Compiled, effort_of
from mrgp._types import to_numpy
from mrgp.gp import Moments, Natural, Whitened
from mrgp.inference.lbfgs import LBFGS, Direct, maximise
from mrgp.inference.loop import Optimum, Status
from mrgp.inference.objectives import Objective
from mrgp.inference.profiles import Profile
from mrgp.inference.progress import Progress
from mrgp.models import Factors, Network, as_arrays, naturals_of, spread_q, trained_q
from mrgp.models.factors import SPREAD
from mrgp.parameters import log_prior, real, unwrap

TURNS = 3
SETTLING = 20
SETTLED = 1e-3
BACKTRACKS = 5
RANDOM_WEIGHTS = 1.0


class Block(NamedTuple):
    """A Gaussian factor of q by natural parameters, with its moments and KL(q || prior)."""

    natural: Natural
    moments: Moments
    divergence: Float[Array, ""]

    @classmethod
    def of(cls, natural: Natural) -> "Block":
        """Find the moments of a factor."""
        return cls(natural, *natural.moments())


def bound(model: Network, q: Factors, records: Any) -> Float[Array, ""]:
    """Return the bound of a network with one component, given by its blocks."""
    divergence = jnp.sum(jnp.stack([block.divergence for block in q.parts()]))
    return model.expected_log_likelihood(moments_of(q), records) - divergence


def moments_of(q: Factors) -> Factors:
    """Return all blocks by mean and covariance."""
    return q.map(lambda block: block.moments)


def sweep(model: Network, q: Factors, records: Any) -> Factors:
    """Go through all blocks once, each to its best given the others.

    Groups of latent functions go in turn, each before its weights, of which those of different
    tasks go together: all at once would overshoot. exp(W) has no explicit optimum; its weights
    take a natural-gradient step, halved until it does not lower the bound.
    """
    seen = unwrap(model).aggregates()
    for group in range(len(model.groups)):
        q = q.with_f(group, Block.of(seen.best_f(moments_of(q), records, group)))
        if model.positive:
            q = _natural_step(model, q, records, group)
        else:
            best = seen.best_w(moments_of(q), records, group)
            q = q.with_w(group, [Block.of(natural) for natural in best])
    return q


def _natural_step(model: Network, q: Factors, records: Any, group: int) -> Factors:
    moments = moments_of(q)
    before = tuple(row[group] for row in q.w)

    def expected(weights: tuple[Moments, ...]) -> Array:
        return model.expected_log_likelihood(moments.with_w(group, weights), records)

    slopes = jax.grad(expected)(tuple(block.moments for block in before))
    start = bound(model, q, records)

    def moved(rate: Array) -> Factors:
        pairs = zip(before, slopes, strict=True)
        steps = [Block.of(b.natural.step(b.moments, slope, rate)) for b, slope in pairs]
        return q.with_w(group, steps)

    def lower(state: tuple[Array, Array]) -> Array:
        rate, value = state
        return ~(value >= start) & (rate > 0.5**BACKTRACKS)

    def halve(state: tuple[Array, Array]) -> tuple[Array, Array]:
        rate = 0.5 * state[0]
        return rate, bound(model, moved(rate), records)

    rate, value = jax.lax.while_loop(lower, halve, (jnp.full((), 2.0), jnp.full((), -jnp.inf)))
    return moved(jnp.where(value >= start, rate, 0.0))


@Compiled
def settle(objective: Objective, trained: Any, q: Factors) -> tuple[Factors, Array]:
    """Sweep until the bound has settled; return q and the bound after each sweep."""
    model = objective.model(trained)
    size = sum(jnp.sum(jnp.where(r.weights > 0, 1.0, 0.0)) for r in objective.records)

    def rising(state: tuple[Any, Array, Array]) -> Array:
        _, history, count = state
        gain = history[count] - history[count - 1]
        return (count < SETTLING) & ((count < 2) | (gain > SETTLED * size))

    def again(state: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
        q, history, count = state
        q = sweep(model, q, objective.records)
        history = history.at[count + 1].set(bound(model, q, objective.records))
        return q, history, count + 1

    history = jnp.full(SETTLING + 1, jnp.nan).at[0].set(bound(model, q, objective.records))
    q, history, _ = jax.lax.while_loop(rising, again, (q, history, jnp.zeros((), int)))
    return q, history + log_prior(model)


class Relative(eqx.Module):
    """A Gaussian in the coordinates of another: mean m0 + L0 m and root L0 L.

    Near the other, one unit is one posterior standard deviation in every direction, so that a
    quasi-Newton method finds well-scaled coordinates whatever the data say.
    """

    origin: Whitened
    mean: Any
    root: Any

    @classmethod
    def to(cls, moments: Moments) -> "Relative":
        """Start at a Gaussian given by its moments."""
        size = moments.mean.shape[0]
        root = np.linalg.cholesky(np.asarray(moments.covariance))
        origin = Whitened(np.asarray(moments.mean), root)
        return cls(origin, real(np.zeros(size)), real(np.eye(size)))

    @property
    def whitened(self) -> Whitened:
        """The Gaussian itself (of unwrapped coordinates)."""
        root = self.origin.root
        return Whitened(self.origin.mean + root @ self.mean, root @ jnp.tril(self.root))


Weights = tuple[tuple[Any, ...], ...]


def _whitened(weights: Weights) -> Weights:
    return tuple(tuple(unwrap(relative).whitened for relative in row) for row in weights)


@Compiled
def profile(
    objective: Objective, trained: Any, latent: tuple[Block, ...], size: Array
) -> tuple[Array, Any, tuple[Block, ...]]:
    """Return the negative bound at the best q of the latent functions, its slope, and that q.

    `trained` are the parameters and the q of the weights. With q of the latent functions at its
    best, the slope of the bound at fixed q is that of the best bound.
    """
    model = objective.model(trained)
    seen = unwrap(model.with_q(None)).aggregates()
    q = Factors(latent, _whitened(model.q))
    # One group is at its best after one pass; several take turns.
    for _ in range(1 if len(latent) == 1 else TURNS):
        for group in range(len(latent)):
            moments = Factors(tuple(block.moments for block in q.f), q.w)
            best = Block.of(seen.best_f(moments, objective.records, group))
            q = q.with_f(group, best)
    latent = jax.lax.stop_gradient(q.f)

    def loss(trained: Any) -> Array:
        model = objective.model(trained)
        weights = _whitened(model.q)
        moments = Factors(tuple(block.moments for block in latent), weights)
        divergence = sum(block.divergence for block in latent)
        divergence += sum(w.divergence for row in weights for w in row)
        network = model.with_q(None)
        expected = network.expected_log_likelihood(moments, objective.records)
        return -(expected - divergence + log_prior(network)) / size

    value, slope = eqx.filter_value_and_grad(loss)(trained)
    return value, slope, latent


class Profiled(Profile):
    """The best bound over q of the latent functions."""

    def __init__(self, objective: Objective, latent: tuple[Block, ...]):
        super().__init__(objective, objective.filled(), latent)

    def evaluate(self, trained: Any, size: Array) -> tuple[Array, Any, tuple[Block, ...]]:
        """Return loss and slope at some parameters, and q of the latent functions."""
        effort = effort_of(self.objective.count)
        return profile(self.filled, trained, self.now, size, effort=effort)

    def model(self, trained: Any) -> Any:
        """Return the network with the best parameters and their q."""
        model = self.objective.model(trained)
        q = Factors(tuple(block.moments for block in self.best), _whitened(model.q))
        return model.with_q(trained_q(q))


def maximise_network(
    objective: Objective,
    log_unit: float,
    settings: LBFGS,
    seed: int,
    progress: Progress,
    title: str = "fit",
) -> Optimum:
    """Maximise the bound of a network of one component over its parameters and q.

    Coordinate ascent settles q first. Then L-BFGS takes the parameters and the q of the weights,
    while the q of the latent functions is at its best at every step.
    """
    model = objective.model(objective.start)
    once = dataclasses.replace(settings, starts=1, candidates=0)
    best = None
    starts = _starts(objective, settings, seed)
    for number, q in enumerate(starts, 1):
        named = f"{title}, start {number} of {len(starts)}" if len(starts) > 1 else title
        weights = q.map(lambda block: Relative.to(block.moments)).w
        target = Objective.of(model.with_q(weights), objective.records)
        found = maximise(target, log_unit, once, 0, progress, named, Profiled(target, q.f))
        if best is None or found.bound > best.bound:
            best = found
        if found.status.code == "interrupted":
            break
    assert best is not None
    return best


@Compiled
def blocks_of(q: Any) -> Factors:
    """Return a q of one component by its blocks."""
    return naturals_of(unwrap(q)).map(Block.of)


def _starts(objective: Objective, settings: LBFGS, seed: int) -> list[Factors]:
    """Settle the model's own q, then others with random weights; return as many as to follow.

    Its own comes first; of the others, those with the best bound.
    """
    model = objective.model(objective.start)
    own = blocks_of(model.q, effort="least")
    plain, effort = objective.without_q().filled(), effort_of(objective.count)
    rng = np.random.default_rng(seed)

    def moved(block: Block) -> Block:
        mean = block.moments.mean + RANDOM_WEIGHTS * rng.standard_normal(block.moments.mean.shape)
        moments = Moments(mean, block.moments.covariance)
        natural = Natural(block.natural.precision @ mean, block.natural.precision)
        change = 0.5 * (jnp.vdot(mean, mean) - jnp.vdot(block.moments.mean, block.moments.mean))
        return Block(natural, moments, block.divergence + change)

    first, _ = settle(plain, plain.start, own, effort=effort)
    others = []
    for _ in range(settings.candidates if settings.starts > 1 else 0):
        rows = tuple(tuple(moved(block) for block in row) for row in own.w)
        found, history = settle(plain, plain.start, Factors(own.f, rows), effort=effort)
        bounds = np.asarray(history)
        others.append((float(np.max(bounds[np.isfinite(bounds)], initial=-np.inf)), found))
    order = np.argsort([-bound for bound, _ in others], kind="stable")
    return [first, *(others[i][1] for i in order[: settings.starts - 1])]


def with_settled_q(model: Network, records: Any) -> Network:
    """Return a network with the q that its parameters have, given records."""
    own, plain = blocks_of(as_arrays(model.q), effort="least"), to_numpy(model.with_q(None))
    target = Objective.of(plain, records)
    settled, _ = settle(target.filled(), target.start, own, effort=effort_of(target.count))
    return plain.with_q(trained_q(moments_of(settled)))


def with_components(objective: Objective, seed: int, spread: float = SPREAD) -> Objective:
    """Return an objective whose q has as many components as the model wants, about its one."""
    model = to_numpy(objective.model(objective.start))
    if model.q.logits.raw.shape[0] == model.components:
        return objective
    q = spread_q(model.q, model.components, seed, spread)
    return Objective.of(model.with_q(q), objective.records)


def maximise_mixture(
    objective: Objective, log_unit: float, settings: LBFGS, seed: int, progress: Progress
) -> Optimum:
    """Maximise the bound of a network of several components over all its numbers.

    It starts about the one component of the objective; where it does not get above that, copies
    of the one are returned.
    """
    once = dataclasses.replace(settings, starts=1, candidates=0)
    target = with_components(objective, seed)
    found = maximise(target, log_unit, once, seed, progress, "mixture")
    if target is objective:
        return found
    copies = with_components(objective, seed, spread=0.0)
    bound = -float(Direct(copies)(copies.start)[0]) * Direct(copies).size
    if found.bound >= bound or found.status.code == "interrupted":
        return found
    status = Status(found.status.code, f"{found.status.message}; its components are equal")
    return Optimum(copies.start, copies.model(copies.start), np.array([bound]), status)
