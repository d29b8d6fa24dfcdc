"""Block Metropolis-within-Gibbs: parameters, the field at its nodes, noises (theory 7.3)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp.inference.mcmc.metropolis import WANTED_ACCEPTANCE, Draw, Gain, Walk, accept, gains
from mrgp.inference.mcmc.target import (
    Conditional,
    Root,
    Seen,
    Target,
    Theta,
    White,
    whiten,
)

FIRST_STEP = 0.1


class GibbsState(NamedTuple):
    """Parameters, the whitened field, what is seen of it, and how to walk in each block."""

    theta: Theta
    z: White
    seen: Seen
    walk: Walk
    noises: Walk
    log_step: Float[Array, ""]


class Gibbs(eqx.Module):
    """Sweep through the blocks, with some moves of each.

    `exact_f` draws the field from its Gaussian conditional instead of walking.
    """

    exact_f: bool = eqx.field(static=True, default=False)
    parameter_moves: int = eqx.field(static=True, default=4)
    field_moves: int = eqx.field(static=True, default=30)
    noise_moves: int = eqx.field(static=True, default=6)
    stretch: int = eqx.field(static=True, default=50)

    def schedule(self, warmup: int, steps: int) -> Any:
        """Return what each step is told."""
        return gains(warmup, steps, self.parameter_moves)

    def init(self, target: Target, theta: Theta, key: Array) -> GibbsState:
        """Start at some parameters, with the field drawn given them."""
        seen, root = target.seen(theta), target.root(theta)
        z = _draw_field(seen, root, key)
        noises = Walk.at(theta[jnp.asarray(target.noises, int)])
        return GibbsState(theta, z, seen, Walk.at(theta), noises, jnp.log(jnp.asarray(FIRST_STEP)))

    def step(
        self, target: Target, state: GibbsState, key: Array, gain: Gain
    ) -> tuple[GibbsState, Draw]:
        """Make one sweep."""
        keys = jax.random.split(key, 3)
        accepted = {}
        if target.size:
            state, accepted["parameters"] = self._move_parameters(target, state, keys[0], gain)
        state, accepted["f"] = self._move_field(target, state, keys[1], gain)
        if target.noises:
            state, accepted["noise"] = self._move_noises(target, state, keys[2], gain)
        return state, Draw(state.theta, state.z, accepted)

    def settle(self, state: GibbsState) -> GibbsState:
        """Go over from warm-up to sampling."""
        return state

    def _move_parameters(
        self, target: Target, state: GibbsState, key: Array, gain: Gain
    ) -> tuple[GibbsState, Array]:
        """Walk through all parameters, and take the field along.

        The field is held as noise about what the data say of it, so that it follows when the
        parameters change; with its values held fast they could hardly move.
        """
        root = target.root(state.theta)
        given = Conditional.of(state.seen, root)
        noise = given.noise(whiten(root, state.seen.residual), state.z)

        def move(carry: Any, key: Array) -> tuple[Any, Array]:
            (theta, density, z), walk = carry
            first, second = jax.random.split(key)
            new = walk.propose(first, theta)
            there = (new, *target.log_joint(new, noise))
            here, probability = accept(second, there[1] - density, there, (theta, density, z))
            return (here, walk.learn(here[0], probability, gain)), probability

        start = (state.theta, target.log_joint(state.theta, noise)[0], state.z), state.walk
        keys = jax.random.split(key, self.parameter_moves)
        ((theta, _, z), walk), accepted = jax.lax.scan(move, start, keys)
        moved = state._replace(theta=theta, z=z, seen=target.seen(theta), walk=walk)
        return moved, accepted.mean()

    def _move_field(
        self, target: Target, state: GibbsState, key: Array, gain: Gain
    ) -> tuple[GibbsState, Array]:
        """Draw the field exactly, or walk by steps that leave its prior alone (Crank-Nicolson)."""
        seen, root = state.seen, target.root(state.theta)
        if self.exact_f:
            return state._replace(z=_draw_field(seen, root, key)), jnp.ones(())
        values, basis = whiten(root, seen.residual), whiten(root, seen.signal)

        def misfit(z: White) -> Array:
            error = values - basis @ z
            return 0.5 * jnp.vdot(error, error)

        def move(carry: Any, key: Array) -> tuple[Any, Array]:
            z, cost, log_step = carry
            first, second = jax.random.split(key)
            step = jnp.exp(log_step)
            new = jnp.sqrt(1.0 - step**2) * z + step * jax.random.normal(first, z.shape)
            cost_new = misfit(new)
            (z, cost), probability = accept(second, cost - cost_new, (new, cost_new), (z, cost))
            log_step = jnp.minimum(log_step + gain.size * (probability - WANTED_ACCEPTANCE), -1e-3)
            return (z, cost, log_step), probability

        keys = jax.random.split(key, self.field_moves)
        start = (state.z, misfit(state.z), state.log_step)
        (z, _, log_step), accepted = jax.lax.scan(move, start, keys)
        return state._replace(z=z, log_step=log_step), accepted.mean()

    def _move_noises(
        self, target: Target, state: GibbsState, key: Array, gain: Gain
    ) -> tuple[GibbsState, Array]:
        """Walk through the noise variances given the field."""
        block = jnp.asarray(target.noises, int)
        error = state.seen.residual - state.seen.signal @ state.z

        def density(theta: Theta) -> Array:
            return target.log_prior(theta) + target.log_likelihood(theta, error)

        def move(carry: Any, key: Array) -> tuple[Any, Array]:
            theta, here, walk = carry
            first, second = jax.random.split(key)
            new = theta.at[block].set(walk.propose(first, theta[block]))
            there = density(new)
            (theta, here), probability = accept(second, there - here, (new, there), (theta, here))
            return (theta, here, walk.learn(theta[block], probability, gain)), probability

        start = (state.theta, density(state.theta), state.noises)
        keys = jax.random.split(key, self.noise_moves)
        (theta, _, walk), accepted = jax.lax.scan(move, start, keys)
        return state._replace(theta=theta, noises=walk), accepted.mean()


def _draw_field(seen: Seen, root: Root, key: Array) -> White:
    noise = jax.random.normal(key, (seen.signal.shape[1],))
    return Conditional.of(seen, root).place(whiten(root, seen.residual), noise)
