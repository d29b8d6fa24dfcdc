"""Fit or sample a model with composite weights that are given, or found from the data."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mrgp._types import float64
from mrgp.data import Dataset
from mrgp.inference import (
    LBFGS,
    Adam,
    Chains,
    Fit,
    Optimum,
    Problem,
    as_progress,
    check_recipe,
    draw_posterior,
    fit_problem,
    keep,
)
from mrgp.inference.mcmc import sampler_of
from mrgp.models import Recipe, Weights
from mrgp.weighting.composite import (
    Asked,
    alone_optimum,
    composite_weights,
    say_cautions,
    weigh_sources,
)


@float64
def fit_weighted(
    recipe: Recipe,
    data: Dataset,
    key: Any = 0,
    weights: Weights = None,
    hyperparameters: str = "refit",
    optimiser: Any = None,
    progress: Any = "auto",
    throw: bool = True,
    reuse: Fit | None = None,
) -> Fit:
    """Fit a recipe to data, with weights that are given or, for "auto", found.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5], name="tubes")
    >>> fit_weighted(mrgp.MRGP(), Dataset([seen]), weights={"tubes": 0.5}).weights
    {('tubes', 'value'): 0.5}
    """
    check_data(data, "fit")
    _check_words(recipe, weights, hyperparameters, optimiser, reuse)
    problem, alone = _weighted(recipe, data, weights, hyperparameters, key, progress)
    if alone is not None:
        return keep(problem, alone, throw)
    return fit_problem(problem, optimiser, progress, throw, reuse)


@float64
def sample_posterior(
    model: Recipe,
    data: Dataset,
    method: str = "marginal",
    *,
    exact_f: bool = False,
    weights: Mapping[Any, float] | str | None = None,
    key: Any = 0,
    chains: int = 4,
    samples: int = 1000,
    warmup: int = 1000,
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
    sampler_of(method, exact_f)
    counts = (("chains", chains, 1), ("samples", samples, 4), ("warmup", warmup, 0))
    for name, number, least in counts:
        if not isinstance(number, int | np.integer) or number < least:
            raise ValueError(
                f"sample_posterior: {name}= is a whole number, at least {least}; got {number!r}."
            )
    check_data(data, "sample_posterior")
    if method == "nuts" and warmup == 0:
        raise ValueError('sample_posterior: method="nuts" needs a warmup= to find its step size.')
    check_recipe(model, weights)
    if isinstance(weights, str):
        _check_weights(weights)
        weights = composite_weights(model, data, key=key, progress=progress)
    return draw_posterior(
        model, data, method, weights, chains, samples, warmup, key, exact_f, progress
    )


def check_data(data: Any, where: str) -> None:
    """Refuse what is not a dataset.

    >>> check_data([1.0, 2.0], "fit")
    Traceback (most recent call last):
    TypeError: fit takes a Dataset as second argument; got list. Wrap Observations as ...
    """
    if not isinstance(data, Dataset):
        raise TypeError(
            f"{where} takes a Dataset as second argument; got {type(data).__name__}. Wrap"
            " Observations as mrgp.Dataset([observations])."
        )


def _check_weights(weights: Any) -> None:
    if isinstance(weights, str) and weights != "auto":
        raise ValueError(f'weights= takes a mapping, or "auto"; got {weights!r}.')


def _check_words(
    recipe: Recipe, weights: Weights, hyperparameters: Any, optimiser: Any, reuse: Any
) -> None:
    """Refuse what `fit` does not know, and settings without a use."""
    check_recipe(recipe, weights)
    if not isinstance(optimiser, LBFGS | Adam | None):
        raise TypeError(f"optimiser= takes mrgp.LBFGS() or mrgp.Adam(); got {optimiser!r}.")
    _check_weights(weights)
    if hyperparameters not in ("refit", "keep"):
        raise ValueError(f"hyperparameters= is 'refit' or 'keep'; got {hyperparameters!r}.")
    if hyperparameters == "keep" and optimiser is not None:
        raise ValueError('optimiser= has no use with hyperparameters="keep"; leave one out.')
    name, in_parts = type(recipe).__name__, recipe.fitted == "parts"
    if in_parts and hyperparameters != "refit":
        raise ValueError(
            f'{name}: hyperparameters="keep" is for models that sources share; here each source has'
            " parameters of its own."
        )
    if reuse is not None and not (in_parts and isinstance(reuse, Fit)):
        raise ValueError(
            f"fit: reuse= takes an earlier fit of a deep model; got {type(reuse).__name__} for"
            f" {name}."
        )


def _weighted(
    recipe: Recipe, data: Dataset, weights: Weights, hyperparameters: str, key: Any, progress: Any
) -> tuple[Problem, Optimum | None]:
    """Return the problem with its weights, and parameters of each source alone to be kept.

    They are where the user wants them, and where the user stopped the work at this stage.
    """
    kept = hyperparameters == "keep"
    if not isinstance(weights, str):
        problem = Problem.of(recipe, data, weights, key, stored=not kept)
        if not kept:
            return problem, None
        return problem, alone_optimum(problem.weighted(None), as_progress(progress), "fit")
    problem = Problem.of(recipe, data, key=key)
    found, alone = weigh_sources(problem, Asked(), as_progress(progress))
    say_cautions(found, stacklevel=5)
    stopped = alone.status.code == "interrupted"
    return problem.weighted(found), alone if kept or stopped else None
