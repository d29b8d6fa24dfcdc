"""From a recipe and a dataset to chains of draws."""

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._compiled import make_room
from mrgp._types import to_numpy
from mrgp.data import Dataset, Records, Scaling, as_key
from mrgp.inference.fits import FitError
from mrgp.inference.loop import Say, Status, run
from mrgp.inference.mcmc.chains import FAIR, Chains, worst_r_hat
from mrgp.inference.mcmc.gibbs import Gibbs
from mrgp.inference.mcmc.metropolis import Draw, MarginalWalk, cool
from mrgp.inference.mcmc.nuts import NUTS
from mrgp.inference.mcmc.target import Target
from mrgp.inference.problem import Problem
from mrgp.inference.progress import as_progress
from mrgp.models import Linear, Model, Recipe, as_arrays

Method = Literal["marginal", "gibbs", "nuts"]

WALKERS, CANDIDATES, SPREAD = 8, 4, 0.5
FAR_BELOW = 10.0


def draw_posterior(
    recipe: Recipe,
    data: Dataset,
    method: str = "marginal",
    weights: Mapping[Any, float] | None = None,
    chains: int = 4,
    samples: int = 1000,
    warmup: int = 1000,
    key: Any = 0,
    exact_f: bool = False,
    progress: Any = "auto",
) -> Chains:
    """Draw from the posterior of a model of one latent field, hyperparameters included.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> with jax.enable_x64(True):
    ...     found = draw_posterior(mrgp.MRGP(), Dataset([seen]), chains=2, samples=500, warmup=500)
    >>> found.theta.shape[:2]
    (2, 500)
    """
    make_room()
    problem = Problem.of(recipe, data, weights, key)
    model = problem.build()
    target = Target.of(
        problem.objective(_exact(model, problem.records)), latent=method != "marginal"
    )
    first, second = jax.random.split(as_key(key))
    starts = _starts(target, first, chains)
    sampling = _Sampling(
        sampler_of(method, exact_f), target, problem.scaling, starts, second, warmup, samples
    )
    status = run(sampling, "sample", as_progress(progress))
    if status.code == "step limit":
        warnings.warn(f"sample_posterior: {status.message}.", stacklevel=4)
    draws, parameters = sampling.collected()
    return Chains(
        parameters=parameters,
        acceptance={name: np.asarray(values).mean(1) for name, values in draws.accepted.items()},
        status=status,
        method=method,
        recipe=recipe,
        target=to_numpy(target),
        theta=np.asarray(draws.theta),
        z=None if draws.z is None else np.asarray(draws.z),
        scaling=problem.scaling,
        inputs=data.inputs,
        units=data.units,
        weights=problem.weights,
        axes=data.axes,
        covariates=data.covariates,
        likelihoods={o.process: o.likelihood for o in data},
    )


def sampler_of(method: str, exact_f: bool) -> MarginalWalk | Gibbs | NUTS:
    """Return the sampler of a name, or say which there are.

    >>> type(sampler_of("gibbs", exact_f=True)).__name__
    'Gibbs'
    """
    if method not in get_args(Method):
        raise ValueError(f"sample_posterior: method= is one of {get_args(Method)}; got {method!r}.")
    if exact_f and method != "gibbs":
        raise ValueError(
            f'sample_posterior: exact_f=True belongs to method="gibbs"; got method={method!r}.'
        )
    if method == "gibbs":
        return Gibbs(exact_f=exact_f)
    return MarginalWalk() if method == "marginal" else NUTS()


def _exact(model: Model, records: Records) -> Linear:
    """Return the model, if it is one whose posterior can be sampled as it is."""
    linear: Any = model.linear
    if linear is None or len(linear.solver.kernels) != 1:
        raise TypeError(
            "sample_posterior samples models of one latent field, MRGP and Dependent. Fit others"
            " with mrgp.fit."
        )
    if not linear.solver.keeps_data:
        raise ValueError(
            "sample_posterior is exact, and this model is sparse: by method= or inducing= of its"
            ' recipe, or for the size of the data. Thin the data, or use MRGP(method="exact").'
        )
    solver = linear.solver.dense(sum(map(len, records)), "sample_posterior")
    return dataclasses.replace(linear, solver=solver)


def _starts(target: Target, key: Array, chains: int) -> Float[Array, "c p"]:
    """Return starting points: where walks from about the recipe's values end.

    Walks that end where the density is lower by far than at the end of another are left out: they
    stay about a mode that does not count.
    """
    walkers = max(chains, WALKERS)
    shape = (walkers, CANDIDATES, target.size)
    moved = target.start[None, None, :] + SPREAD * jax.random.normal(key, shape)
    candidates = jnp.clip(moved, target.low[None, None, :], target.high[None, None, :])
    densities = _densities(target, candidates)
    if not jnp.all(jnp.isfinite(densities.max(1))):
        raise FitError(
            "sample_posterior: the posterior density is not finite about the starting values. Look"
            " for extreme values, or starting values far from the data's scale."
        )
    best = candidates[jnp.arange(walkers), jnp.argmax(densities, 1)]
    ends = _cooled(target, best, jax.random.split(jax.random.fold_in(key, 0), walkers))
    heights = np.asarray(_densities(target, ends[:, None, :]))[:, 0]
    kept = np.flatnonzero(heights >= heights.max() - (FAR_BELOW + target.size))
    return ends[np.resize(kept, chains)]


@eqx.filter_jit
def _cooled(target: Target, starts: Float[Array, "c p"], keys: Array) -> Float[Array, "c p"]:
    return jax.lax.map(lambda a: cool(target, *a), (starts, keys))


@eqx.filter_jit
def _densities(target: Target, candidates: Float[Array, "c k p"]) -> Float[Array, "c k"]:
    chains, number, p = candidates.shape
    flat = candidates.reshape(chains * number, p)
    return jax.lax.map(target.log_marginal, flat).reshape(chains, number)


@eqx.filter_jit
def _reported(target: Target, theta: Float[Array, "c t p"], scaling: Scaling) -> Any:
    return jax.vmap(jax.vmap(lambda t: target.model(t).values(scaling)))(theta)


@eqx.filter_jit
def _init(sampler: Any, target: Target, starts: Array, keys: Array) -> Any:
    return jax.lax.map(lambda a: sampler.init(target, *a), (starts, keys))


@eqx.filter_jit
def _stretch(sampler: Any, target: Target, states: Any, keys: Array, told: Any) -> Any:
    """Advance every chain by some steps; chains go one after the other."""

    def chain(arguments: Any) -> Any:
        state, key = arguments
        keys = jax.random.split(key, sampler.stretch)
        return jax.lax.scan(lambda s, a: sampler.step(target, s, *a), state, (keys, told))

    return jax.lax.map(chain, (states, keys))


class _Sampling:
    """Warm-up and sampling in stretches of one length, so that the code is compiled once."""

    def __init__(
        self,
        sampler: Any,
        target: Target,
        scaling: Scaling,
        starts: Float[Array, "c p"],
        key: Array,
        warmup: int,
        samples: int,
    ):
        self.sampler, self.target, self.scaling = sampler, target, scaling
        self.starts, self.key, self.samples = starts, key, samples
        self.before, after = -(-warmup // sampler.stretch), -(-samples // sampler.stretch)
        self.stretches = self.before + after
        self.told = as_arrays(sampler.schedule(warmup, self.stretches * sampler.stretch))
        self.done, self.states, self.draws = 0, None, []

    @property
    def total(self) -> int:
        """The steps of warm-up and sampling."""
        return self.before * self.sampler.stretch + self.samples

    def advance(self, say: Say) -> Status | None:
        """Go on with every chain by one stretch; at the end judge how they have mixed."""
        i, length, chains = self.done, self.sampler.stretch, len(self.starts)
        if self.states is None:
            keys = jax.random.split(self.key, chains)
            self.states = _init(self.sampler, self.target, self.starts, keys)
        if i == self.before:
            self.states = self.sampler.settle(self.states)
        part = jax.tree.map(lambda t: t[i * length : (i + 1) * length], self.told)
        keys = jax.random.split(jax.random.fold_in(self.key, i), chains)
        self.states, draw = _stretch(self.sampler, self.target, self.states, keys, part)
        if i >= self.before:
            self.draws.append(to_numpy(draw))
        self.done += 1
        steps = min(self.done * length, self.total)
        say(steps, f"{'warm-up' if i < self.before else 'draws'}, {steps} of {self.total}")
        if self.done < self.stretches:
            return None
        draws, parameters = self.collected()
        return _judged(parameters, draws)

    def interrupted(self) -> Status:
        """Keep the draws made so far, once there are any."""
        if not self.draws:
            raise KeyboardInterrupt
        count = len(self.draws) * self.sampler.stretch
        return Status("interrupted", f"stopped by the user after {count} draws")

    def collected(self) -> tuple[Draw, dict[str, np.ndarray]]:
        """Return all draws, and the parameters by name in the user's units."""
        joined = jax.tree.map(
            lambda *parts: np.concatenate(parts, 1)[:, : self.samples], *self.draws
        )
        theta = jnp.asarray(joined.theta)
        return joined, to_numpy(_reported(self.target, theta, as_arrays(self.scaling)))


def _judged(parameters: dict[str, np.ndarray], draws: Draw) -> Status:
    """Judge by the parameters, by two numbers of the field where it was drawn, and by moves."""
    theta = np.asarray(draws.theta)
    if np.any(np.ptp(theta, axis=1) == 0) or not np.isfinite(theta).all():
        return Status("step limit", "a parameter has not moved in one of the chains; raise warmup=")
    if draws.z is not None:
        z = np.asarray(draws.z)
        parameters = parameters | {"the field": np.stack([z.mean(-1), (z**2).mean(-1)], -1)}
    name, worst = worst_r_hat(parameters)
    if worst > FAIR:
        return Status(
            "step limit", f"R-hat of {name} is {worst:.2f}; raise warmup= and samples= to go on"
        )
    return Status("converged", f"the largest R-hat is {worst:.3f}")
