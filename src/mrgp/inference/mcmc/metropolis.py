"""Random walks that learn their shape during warm-up, and the marginal sampler (theory 7.3)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._linalg import add_diagonal, cholesky
from mrgp.inference.mcmc.target import Target, Theta

WANTED_ACCEPTANCE = 0.3
FIRST_SD = 0.3
LEAST_VARIANCE = 1e-8


class Gain(NamedTuple):
    """How much one move may teach: about the size of steps, and about their shape."""

    size: Any
    shape: Any


class Draw(NamedTuple):
    """One draw: raw parameters, the whitened field or None, and the share of moves accepted."""

    theta: Theta
    z: Float[Array, " m"] | None
    accepted: dict[str, Float[Array, ""]]


COOLING_MOVES, LEAST_SHARE = 1000, 0.05
COOLING_GAIN = Gain(size=0.1, shape=0.02)


def gains(warmup: int, steps: int, moves: int) -> Gain:
    """Return how much moves may teach: less and less in warm-up, and then nothing.

    Shapes are means over about the last half of all moves; sizes are quicker to follow.
    """
    step, rest = np.arange(warmup), np.zeros(steps - warmup)
    size, shape = (step + 10.0) ** -0.6, 2.0 / (moves * step + 20.0)
    return Gain(np.concatenate([size, rest]), np.concatenate([shape, rest]))


class Walk(eqx.Module):
    """A Gaussian step of the shape of the posterior, as far as it is known (Haario's rule).

    Its size goes up or down until about a third of the steps are accepted.
    """

    mean: Theta
    covariance: Float[Array, "p p"]
    log_size: Float[Array, ""]

    @classmethod
    def at(cls, theta: Theta) -> "Walk":
        """Start with a small round step."""
        p = theta.shape[0]
        return cls(theta, FIRST_SD**2 * jnp.eye(p), jnp.asarray(np.log(2.38 / np.sqrt(max(p, 1)))))

    def propose(self, key: Array, theta: Theta) -> Theta:
        """Return a neighbour."""
        step = cholesky(add_diagonal(self.covariance, LEAST_VARIANCE)) @ jax.random.normal(
            key, theta.shape
        )
        return theta + jnp.exp(self.log_size) * step

    def learn(self, theta: Theta, acceptance: Float[Array, ""], gain: Gain) -> "Walk":
        """Return the walk with one more draw taken into account."""
        away = theta - self.mean
        outer = away[:, None] * away[None, :]
        return Walk(
            self.mean + gain.shape * away,
            self.covariance + gain.shape * (outer - self.covariance),
            self.log_size + gain.size * (acceptance - WANTED_ACCEPTANCE),
        )


def accept(key: Array, log_ratio: Float[Array, ""], new: Any, old: Any) -> tuple[Any, Array]:
    """Return the new state or the old one, and the probability of the new."""
    probability = jnp.exp(jnp.minimum(jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio), 0.0))
    chosen = jax.random.uniform(key) < probability
    return jax.tree.map(lambda a, b: jnp.where(chosen, a, b), new, old), probability


def cool(target: Target, theta: Theta, key: Array) -> Theta:
    """Walk while the evidence comes to count, from little to in full, and return where it ends.

    Modes of the posterior may lie so far apart that no walk crosses between them. With little
    evidence they are one, and the walk is drawn to where most of the posterior is.
    """

    def move(carry: Any, told: Any) -> tuple[Any, None]:
        (theta, prior, evidence), walk = carry
        key, share = told
        first, second = jax.random.split(key)
        new = walk.propose(first, theta)
        prior_new = target.log_prior(new)
        evidence_new = target.log_marginal(new) - prior_new
        ratio = prior_new - prior + share * (evidence_new - evidence)
        here, probability = accept(
            second, ratio, (new, prior_new, evidence_new), (theta, prior, evidence)
        )
        return (here, walk.learn(here[0], probability, COOLING_GAIN)), None

    if not target.size:
        return theta
    prior = target.log_prior(theta)
    start = (theta, prior, target.log_marginal(theta) - prior), Walk.at(theta)
    shares = jnp.asarray(np.geomspace(LEAST_SHARE, 1.0, COOLING_MOVES))
    found, _ = jax.lax.scan(move, start, (jax.random.split(key, COOLING_MOVES), shares))
    return found[0][0]


class MarginalState(NamedTuple):
    """Parameters, their log density, and how to walk from them."""

    theta: Theta
    log_density: Float[Array, ""]
    walk: Walk


class MarginalWalk(eqx.Module):
    """Walk through the parameters with the field integrated out, some moves a draw."""

    moves: int = eqx.field(static=True, default=8)
    stretch: int = eqx.field(static=True, default=50)

    def schedule(self, warmup: int, steps: int) -> Any:
        """Return what each step is told."""
        return gains(warmup, steps, self.moves)

    def init(self, target: Target, theta: Theta, key: Array) -> MarginalState:
        """Start at some parameters."""
        return MarginalState(theta, target.log_marginal(theta), Walk.at(theta))

    def step(
        self, target: Target, state: MarginalState, key: Array, gain: Gain
    ) -> tuple[MarginalState, Draw]:
        """Make some moves."""

        def move(state: MarginalState, key: Array) -> tuple[MarginalState, Array]:
            first, second = jax.random.split(key)
            theta = state.walk.propose(first, state.theta)
            density = target.log_marginal(theta)
            (theta, density), probability = accept(
                second,
                density - state.log_density,
                (theta, density),
                (state.theta, state.log_density),
            )
            walk = state.walk.learn(theta, probability, gain)
            return MarginalState(theta, density, walk), probability

        if not target.size:
            return state, Draw(state.theta, None, {})
        state, accepted = jax.lax.scan(move, state, jax.random.split(key, self.moves))
        return state, Draw(state.theta, None, {"parameters": accepted.mean()})

    def settle(self, state: MarginalState) -> MarginalState:
        """Go over from warm-up to sampling."""
        return state
