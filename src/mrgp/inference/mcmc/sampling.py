"""`sample_posterior`: from a recipe and a dataset to chains of draws."""

import warnings
from collections.abc import Mapping
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import float64, to_numpy
from mrgp.data import Dataset, Scaling, as_key
from mrgp.inference.composite import composite_weights
from mrgp.inference.fits import FitError
from mrgp.inference.mcmc.chains import FAIR, Chains, worst_r_hat
from mrgp.inference.mcmc.gibbs import Gibbs
from mrgp.inference.mcmc.metropolis import Draw, Marginal, cool
from mrgp.inference.mcmc.nuts import NUTS
from mrgp.inference.mcmc.target import Target
from mrgp.inference.objectives import Objective, as_arrays, build_objective, check_model
from mrgp.inference.optimisers import Status
from mrgp.inference.progress import Progress, as_progress
from mrgp.models import DependentGP, SingleGP

Method = Literal["marginal", "gibbs", "nuts"]

WALKERS, CANDIDATES, SPREAD = 8, 4, 0.5
FAR_BELOW = 10.0


@float64
def sample_posterior(
    model: Any,
    data: Dataset,
    method: str = "marginal",
    *,
    weights: Mapping[Any, float] | str | None = None,
    chains: int = 4,
    samples: int = 1000,
    warmup: int = 1000,
    key: Any = 0,
    exact_f: bool = False,
    progress: Any = "auto",
) -> Chains:
    """Draw from the posterior of an `MRGP` or `Dependent` model, hyperparameters included.

    "marginal" integrates the field out and walks through the parameters; "gibbs" is block
    Metropolis-within-Gibbs on parameters and the field at its nodes, which `exact_f=True` draws
    exactly; "nuts" follows slopes in all of them and needs the extra `mcmc`. `weights` are
    composite weights, or "auto", as in `fit`. A warning tells of chains that have not mixed. Ctrl-C
    keeps the draws made so far, once warm-up is over.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> data = mrgp.Dataset([sensors])
    >>> mrgp.sample_posterior(mrgp.MRGP(), data, samples=500, warmup=500).parameters[
    ...     "kernel.variance"
    ... ].shape
    (4, 500)
    """
    sampler = _sampler(method, exact_f)
    for name, number, least in (
        ("chains", chains, 1),
        ("samples", samples, 4),
        ("warmup", warmup, 0),
    ):
        if not isinstance(number, int | np.integer) or number < least:
            raise ValueError(
                f"sample_posterior: {name}= is a whole number, at least {least}; got {number!r}."
            )
    if not isinstance(data, Dataset):
        raise TypeError(
            f"sample_posterior takes a Dataset as second argument; got {type(data).__name__}. Wrap"
            " Observations as mrgp.Dataset([observations])."
        )
    if method == "nuts" and warmup == 0:
        raise ValueError('sample_posterior: method="nuts" needs a warmup= to find its step size.')
    check_model(model, weights)
    if isinstance(weights, str):
        if weights != "auto":
            raise ValueError(f'weights= takes a mapping, or "auto"; got {weights!r}.')
        weights = composite_weights(model, data, key=key, progress=progress)
    seen = model.view(data)
    scaling = Scaling.of(seen)
    objective = build_objective(_exact(model.build(seen, key)), seen, scaling, weights)
    target = Target.of(objective, latent=method != "marginal")
    first, second = jax.random.split(as_key(key))
    starts = _starts(target, first, chains)
    draws, accepted, status = _run(
        sampler, target, starts, second, warmup, samples, as_progress(progress)
    )
    parameters = to_numpy(_reported(target, jnp.asarray(draws.theta), as_arrays(scaling)))
    ended = status or _judged(parameters, draws)
    if ended.code == "step limit":
        warnings.warn(f"sample_posterior: {ended.message}.", stacklevel=3)
    return Chains(
        parameters=parameters,
        acceptance=accepted,
        status=ended,
        method=method,
        recipe=model,
        target=to_numpy(target),
        theta=np.asarray(draws.theta),
        z=None if draws.z is None else np.asarray(draws.z),
        scaling=scaling,
        inputs=data.inputs,
        units=data.units,
        weights=_weights(seen, objective),
        axes=data.axes,
        covariates=data.covariates,
    )


def _weights(data: Dataset, objective: Objective) -> dict[tuple[str, str], float]:
    pairs = zip(data.processes, objective.records, strict=True)
    return {process: float(record.weight) for process, record in pairs}


def _sampler(method: str, exact_f: bool) -> Marginal | Gibbs | NUTS:
    if method not in get_args(Method):
        raise ValueError(f"sample_posterior: method= is one of {get_args(Method)}; got {method!r}.")
    if exact_f and method != "gibbs":
        raise ValueError(
            f'sample_posterior: exact_f=True belongs to method="gibbs"; got method={method!r}.'
        )
    if method == "gibbs":
        return Gibbs(exact_f=exact_f)
    return Marginal() if method == "marginal" else NUTS()


def _exact(built: Any) -> SingleGP | DependentGP:
    """Return the model, if it is one whose posterior can be sampled as it is."""
    if isinstance(built, DependentGP):
        return built
    if not isinstance(built, SingleGP):
        raise TypeError(
            "sample_posterior samples models of one latent field, MRGP and Dependent. Fit others"
            " with mrgp.fit."
        )
    if built.locations is not None:
        raise ValueError(
            "sample_posterior is exact, and this model is sparse: by method= or inducing= of its"
            ' recipe, or for the size of the data. Thin the data, or use MRGP(method="exact").'
        )
    return built


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


def _run(
    sampler: Any,
    target: Target,
    starts: Float[Array, "c p"],
    key: Array,
    warmup: int,
    samples: int,
    progress: Progress,
) -> tuple[Draw, dict[str, np.ndarray], Status | None]:
    """Run warm-up and sampling in stretches of one length, so that the code is compiled once."""
    chains, length = len(starts), sampler.stretch
    before = -(-warmup // length)
    after = -(-samples // length)
    told = as_arrays(sampler.schedule(warmup, (before + after) * length))
    draws: list[Draw] = []
    status = None
    total = before * length + samples
    progress.start("sample", total)
    try:
        states = _init(sampler, target, starts, jax.random.split(key, chains))
        for i in range(before + after):
            if i == before:
                states = sampler.settle(states)
            part = jax.tree.map(lambda t, i=i: t[i * length : (i + 1) * length], told)
            keys = jax.random.split(jax.random.fold_in(key, i), chains)
            states, draw = _stretch(sampler, target, states, keys, part)
            if i >= before:
                draws.append(to_numpy(draw))
            done = min((i + 1) * length, total)
            progress.update(done, f"{'warm-up' if i < before else 'draws'}, {done} of {total}")
    except KeyboardInterrupt:
        if not draws:
            raise
        status = Status("interrupted", f"stopped by the user after {len(draws) * length} draws")
    finally:
        progress.finish("interrupted" if status else "done")
    joined = jax.tree.map(lambda *parts: np.concatenate(parts, 1)[:, :samples], *draws)
    accepted = {name: values.mean(1) for name, values in joined.accepted.items()}
    return joined, accepted, status


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
