"""NUTS on raw parameters and the field, whitened given the data, by BlackJAX (theory 7.3)."""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp.inference.mcmc.metropolis import Draw
from mrgp.inference.mcmc.target import Target, Theta

FIRST_STEP, FIRST_SD = 0.3, 0.2
WANTED_ACCEPTANCE = 0.8


def _leniently(function: Any) -> Any:
    """Let BlackJAX mix dtypes and ranks, also in programs that forbid it."""

    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            return function(*arguments)

    return wrapper


class Stage(NamedTuple):
    """What a step of warm-up may learn: the step size, the mass matrix, or neither."""

    learning: Any
    slow: Any
    ends: Any


class NUTSState(NamedTuple):
    """BlackJAX's state, the step size and inverse masses in use, and what warm-up has learned."""

    hmc: Any
    step_size: Float[Array, ""]
    masses: Float[Array, "k k"]
    size_learned: Any
    masses_learned: Any


class NUTS(eqx.Module):
    """Follow the slope of the joint density on trajectories that stop before they turn back."""

    stretch: int = eqx.field(static=True, default=20)

    @_leniently
    def schedule(self, warmup: int, steps: int) -> Stage:
        """Return what each step is told: fast windows at the ends of warm-up, slow ones between."""
        _blackjax()
        from blackjax.adaptation.window_adaptation import build_schedule

        plan = np.zeros((steps, 3), bool)
        if warmup:
            told = np.asarray(build_schedule(warmup), int).reshape(-1, 2)
            plan[:warmup] = np.stack([np.ones(warmup), told[:, 0], told[:, 1]], 1)
        return Stage(*plan.T)

    @_leniently
    def init(self, target: Target, theta: Theta, key: Array) -> NUTSState:
        """Start at some parameters, with the field drawn given them."""
        hmc, size, masses = _blackjax()
        position = jnp.concatenate([theta, jax.random.normal(key, target.x.shape[:1])])
        start = jnp.asarray(FIRST_STEP)
        return NUTSState(
            hmc.init(position, self._density(target)),
            start,
            _masses(FIRST_SD**2 * jnp.eye(target.size), position),
            size[0](start),
            masses[0](target.size),
        )

    @_leniently
    def step(
        self, target: Target, state: NUTSState, key: Array, stage: Stage
    ) -> tuple[NUTSState, Draw]:
        """Follow one trajectory, and learn from it in warm-up."""
        hmc, _, _ = _blackjax()
        moved, info = hmc.build_kernel()(
            key, state.hmc, self._density(target), state.step_size, state.masses
        )
        state = jax.lax.cond(
            stage.learning,
            lambda s: _learn(s, moved.position, target.size, info.acceptance_rate, stage),
            lambda s: s,
            state,
        )
        theta = moved.position[: target.size]
        _, z = target.log_joint(theta, moved.position[target.size :])
        told = {
            "trajectory": jnp.asarray(info.acceptance_rate),
            "divergent": jnp.where(info.is_divergent, 1.0, 0.0),
        }
        return state._replace(hmc=moved), Draw(theta, z, told)

    def settle(self, state: NUTSState) -> NUTSState:
        """Go over from warm-up to sampling, with the step size found on average."""
        size = jnp.exp(state.size_learned.log_step_size_avg)
        return state._replace(step_size=size)

    def _density(self, target: Target) -> Any:
        p = target.size
        return lambda position: target.log_joint(position[:p], position[p:])[0]


def _learn(
    state: NUTSState,
    position: Float[Array, " k"],
    p: int,
    acceptance: Float[Array, ""],
    stage: Stage,
) -> NUTSState:
    _, (size_init, size_update, size_final), (_, mass_update, mass_final) = _blackjax()
    size = size_update(state.size_learned, acceptance)
    masses = jax.lax.cond(
        stage.slow, lambda m: mass_update(m, position[:p]), lambda m: m, state.masses_learned
    )
    learned = state._replace(
        step_size=jnp.exp(size.log_step_size), size_learned=size, masses_learned=masses
    )

    def close(s: NUTSState) -> NUTSState:
        found = mass_final(s.masses_learned)
        start = size_init(size_final(s.size_learned))
        used = _masses(found.inverse_mass_matrix, position)
        return NUTSState(s.hmc, jnp.exp(start.log_step_size), used, start, found)

    return jax.lax.cond(stage.ends, close, lambda s: s, learned)


def _masses(learned: Float[Array, "p p"], position: Float[Array, " k"]) -> Float[Array, "k k"]:
    """Return inverse masses: the covariance of the parameters, and one for the white field."""
    return jax.scipy.linalg.block_diag(learned, jnp.eye(position.shape[0] - learned.shape[0]))


def _blackjax() -> tuple[Any, Any, Any]:
    """Return BlackJAX's NUTS, and its ways of learning step size and masses."""
    try:
        from blackjax.adaptation.mass_matrix import mass_matrix_adaptation
        from blackjax.adaptation.step_size import dual_averaging_adaptation
        from blackjax.mcmc import nuts
    except ImportError:
        raise ImportError(
            'sample_posterior(method="nuts") needs BlackJAX: pip install "mrgp[mcmc]". The methods'
            ' "marginal" and "gibbs" do without.'
        ) from None
    return nuts, dual_averaging_adaptation(WANTED_ACCEPTANCE), mass_matrix_adaptation(False)
