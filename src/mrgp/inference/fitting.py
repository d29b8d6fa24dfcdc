"""From a problem to a `Fit` that can predict: by its recipe's way, again, or with other data."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from mrgp._compiled import make_room
from mrgp._types import float64
from mrgp.data import Dataset, Observations, harmonise, require_in_memory
from mrgp.inference.coordinate import with_settled_q
from mrgp.inference.finishing import finished
from mrgp.inference.fits import Fit
from mrgp.inference.lbfgs import LBFGS, Direct
from mrgp.inference.loop import Optimum
from mrgp.inference.part_by_part import fit_parts
from mrgp.inference.problem import Problem
from mrgp.inference.progress import Progress, Silent, as_progress
from mrgp.inference.room import CONDITIONED, check_room
from mrgp.inference.settling import with_settled
from mrgp.inference.stages import fit_blocks, optimise_blocks
from mrgp.inference.stochastic import Adam
from mrgp.inference.whole import fit_whole, optimise_whole, resumed
from mrgp.models import Model, Recipe, as_arrays
from mrgp.parameters import log_prior
from mrgp.supports import recoded


def fit_problem(
    problem: Problem,
    optimiser: LBFGS | Adam | None = None,
    progress: Any = "auto",
    throw: bool = True,
    reuse: Fit | None = None,
) -> Fit:
    """Fit a recipe to data in the way that it asks for.

    >>> import jax, mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> with jax.enable_x64(True):
    ...     fit_problem(Problem.of(mrgp.MRGP(), mrgp.Dataset([sensors]))).status.code
    'converged'
    """
    make_room()
    shown = as_progress(progress)
    if problem.recipe.fitted != "whole":
        require_in_memory(problem.data)
    if problem.recipe.fitted == "parts":
        return fit_parts(problem, optimiser, shown, throw, reuse)
    by = fit_blocks if problem.recipe.fitted == "blocks" else fit_whole
    return by(problem, optimiser, shown, throw)


def resume(fit: Fit, data: Dataset, optimiser: Any, progress: Any, throw: bool) -> Fit:
    """Go on with a fit on the same data."""
    if fit.treatment != "refit":
        what = {"keep": 'with hyperparameters="keep"', "adjusted": "by adjust_curvature"}
        raise ValueError(
            f"resume: this fit was made {what[fit.treatment]}, and has nothing to go on with."
        )
    shown = as_progress(progress)
    if fit.recipe.fitted == "parts":
        data = Dataset([data[p] for p in fit.processes if p in data.processes])
        problem = fit.problem(fit.same_data(data))
        return fit_parts(problem, optimiser, shown, throw, fit, go_on=True)
    problem = fit.problem(fit.same_data(data))
    optimise = optimise_blocks if fit.recipe.fitted == "blocks" else optimise_whole
    return resumed(fit, problem, optimiser, shown, throw, optimise)


def keep(problem: Problem, alone: Optimum, throw: bool = True) -> Fit:
    """Condition on weighted data with the parameters of each source on its own.

    >>> import jax, mrgp
    >>> from mrgp.inference.each_alone import composite_optimum
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> problem = Problem.of(mrgp.MRGP(), mrgp.Dataset([sensors]))
    >>> with jax.enable_x64(True):
    ...     keep(problem, composite_optimum(problem, Silent())).treatment
    'keep'
    """
    model = conditioned_model(problem, alone.model)
    loss = Direct(problem.objective(model))
    history = np.array([-float(loss(loss.objective.start)[0]) * loss.size])
    optimum = dataclasses.replace(alone, model=model, history=history)
    return dataclasses.replace(finished(problem, optimum, LBFGS(), throw), treatment="keep")


def condition(fit: Fit, data: Dataset) -> Fit:
    """Return the parameters of a fit with other data of its sources."""
    if fit.recipe.fitted == "parts":
        raise ValueError(
            f"condition: the layers of {fit.name} rest on the values that they were trained on; fit"
            " the other data, with reuse= for parts that have the same."
        )
    if set(data.processes) != set(fit.processes) or data.inputs != fit.inputs:
        raise ValueError(
            f"condition takes data of the sources and inputs of the fit, {fit.processes} over"
            f" {fit.inputs}; got {data.processes} over {data.inputs}."
        )
    ordered = Dataset(
        o.replace(support=harmonise(o.support, fit.axes, o.label))
        for o in (data[process] for process in fit.processes)
    )
    return _with_data(fit, ordered)


def _with_data(fit: Fit, data: Dataset, go_on: bool = False) -> Fit:
    """Return the parameters of a fit with other data, whose first rows may be its own."""
    require_in_memory(data)
    problem = fit.problem(data)
    check_room(fit.model, problem.count, "posterior", CONDITIONED)
    model = conditioned_model(problem, fit.model)
    linear = model.linear if go_on else None
    state = None if linear is None else linear.extended(fit.state, problem.records)
    optimum = Optimum(None, model, fit.history, fit.status)
    found = finished(problem, optimum, fit.optimiser, throw=True, state=state)
    return dataclasses.replace(found, treatment=fit.treatment, reasons=fit.reasons)


def extend(fit: Fit, more: Dataset) -> Fit:
    """Return the parameters of a fit with the data it keeps and more of them."""
    kept = fit.kept_data()
    if kept is None or fit.recipe.fitted == "parts":
        raise ValueError(
            f"extend: this fit of {fit.name} does not keep its data; call condition with all of"
            " them."
        )
    unknown = set(more.processes) - set(fit.processes)
    if unknown or more.inputs != fit.inputs:
        raise ValueError(
            f"extend takes more data of the sources and inputs of the fit, {fit.processes} over"
            f" {fit.inputs}; got {more.processes} over {more.inputs}."
        )
    joined = []
    for o in kept:
        new = more[o.process] if o.process in more.processes else None
        joined.append(o if new is None else o.joined(_alike(fit, o, new)))
    found = _with_data(fit, Dataset(joined), go_on=True)
    counts = {
        p: (used, fit.counts[p][1] + int((~more[p].observed).sum() if p in more.processes else 0))
        for p, (used, _) in found.counts.items()
    }
    return dataclasses.replace(found, counts=counts, covariates=fit.covariates)


def _alike(fit: Fit, kept: Observations, new: Observations) -> Observations:
    """Return what was seen of new values, in the axes and the code book of those that are kept."""
    seen = new.dropna()
    support = recoded(harmonise(seen.support, fit.axes, new.label), fit.covariates, "extend")
    return seen.replace(support=dataclasses.replace(support, covariates=kept.support.covariates))


def conditioned_model(problem: Problem, model: Any) -> Model:
    """Return a model for the records of a problem, its parameters kept."""
    if model.approximate is not None:
        return with_settled(problem, model)
    if problem.recipe.fitted == "blocks":
        return with_settled_q(model, as_arrays(problem.records))
    return model


class Evidence(NamedTuple):
    """The greatest log evidence of a model, with the log prior of its parameters and alone.

    >>> Evidence(with_prior=-3.0, alone=-1.0).alone
    -1.0
    """

    with_prior: float
    alone: float


@float64
def greatest_evidence(
    model: Recipe, data: Dataset, optimiser: LBFGS, key: Any = 0, progress: Progress | None = None
) -> Evidence:
    """Return the log evidence of an exact or collapsed model at its best parameters.

    It is what `fit` ends with, without the posterior; minus infinity where there is no bound.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> data, quick = mrgp.Dataset([sensors]), LBFGS(max_steps=5, starts=1, candidates=0)
    >>> found = greatest_evidence(mrgp.MRGP(), data, quick)
    >>> float(round(found.with_prior - mrgp.fit(mrgp.MRGP(), data, optimiser=quick).history[-1], 6))
    0.0
    """
    make_room()
    problem = Problem.of(model, data, key=key)
    optimum = optimise_whole(problem.objective(), problem, optimiser, progress or Silent())
    # A search that was stopped on a part of the data has no bound of all of them.
    if not optimum.status.ok or not np.isfinite(optimum.bound):
        return Evidence(-np.inf, -np.inf)
    return Evidence(optimum.bound, optimum.bound - float(log_prior(optimum.model)))
