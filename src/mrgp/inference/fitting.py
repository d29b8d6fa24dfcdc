"""`fit`: from a recipe and a dataset to a `Fit` that can predict."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from mrgp._compiled import make_room
from mrgp._types import float64, to_numpy
from mrgp.data import Dataset, Scaling, as_seed
from mrgp.inference.ascent import Training, ascend
from mrgp.inference.composite import check_words, weigh_for_fit
from mrgp.inference.fits import Fit, FitError, checksum_of, counts_of
from mrgp.inference.objectives import (
    Objective,
    build_objective,
    check_model,
    is_deep,
    replace_q,
)
from mrgp.inference.optimisers import LBFGS, Direct, Optimum, Status, maximise
from mrgp.inference.progress import as_progress
from mrgp.inference.separate import with_weights
from mrgp.inference.stages import (
    begun,
    check_schedule,
    count,
    log_unit,
    optimise_network,
    warn_of_wide_regions,
)
from mrgp.inference.stochastic import Adam
from mrgp.inference.trees import BRIEF, Gardener, fit_tree
from mrgp.models import Network, conditioned
from mrgp.parameters import log_prior
from mrgp.supports import bounds_of

NETWORK_LIMIT = 5000
NETWORK_SETTINGS = LBFGS(tolerance=2e-5, starts=1, candidates=0)


@float64
def fit(
    model: Any,
    data: Dataset,
    key: Any = 0,
    weights: Mapping[Any, float] | str | None = None,
    hyperparameters: str = "refit",
    *,
    optimiser: Any = None,
    progress: Any = "auto",
    throw: bool = True,
    reuse: Fit | None = None,
) -> Fit:
    """Fit a model to data, or the one that `choose` picks for them ("auto").

    `weights` are composite weights, by (source, task) or by source; "auto" finds them with
    `composite_weights`. `hyperparameters="keep"` holds the parameters at those of each source on
    its own, from which the weights come; "refit" fits them to the weighted data. `optimiser` is
    `LBFGS` or `Adam` with settings of your own; the default is L-BFGS, and Adam on minibatches for
    `method="svgp"`. `progress` is "auto", "bar", "lines", None or an object; Ctrl-C stops the fit
    and keeps the best parameters. `reuse` is an earlier fit of a deep model: parts of it that had
    the same data and settings, such as the base of a source, are taken as they are. A numerical
    failure raises `FitError` unless `throw=False`, and is then told by `Fit.status`.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors])).status.code
    'converged'
    """
    if isinstance(model, Dataset):
        raise TypeError("fit takes the model first and the data second: fit(model, data).")
    if not isinstance(data, Dataset):
        raise TypeError(
            f"fit takes a Dataset as second argument; got {type(data).__name__}. Wrap"
            " Observations as mrgp.Dataset([observations])."
        )
    if isinstance(model, str):
        settings = {"optimiser": optimiser, "progress": progress, "throw": throw, "reuse": reuse}
        return _fit_chosen(model, data, key, weights, hyperparameters, settings)
    check_model(model, weights)
    if not isinstance(optimiser, LBFGS | Adam | None):
        raise TypeError(f"optimiser= takes mrgp.LBFGS() or mrgp.Adam(); got {optimiser!r}.")
    check_words(weights, hyperparameters, optimiser)
    _check_deep(model, hyperparameters, reuse)
    make_room()
    seen = model.view(data)
    if is_deep(model):
        data = Dataset([data[process] for process in seen.processes])
        return _fit_tree(model, data, seen, key, weights, optimiser, progress, throw, reuse)
    scaling = Scaling.of(seen)
    by_source, alone = weigh_for_fit(model, data, weights, hyperparameters, key, progress)
    if alone is not None:
        return _keep(model, data, seen, scaling, by_source, alone, throw)
    built = model.build(seen, key)
    is_network = isinstance(built, Network)
    settings = optimiser or _usual_optimiser(built, seen)
    stopped = None
    if is_network:
        check_schedule(built, settings)
        built, stopped = begun(model, built, seen, key, by_source, settings, progress)
    target = build_objective(built, seen, scaling, by_source)
    if isinstance(settings, LBFGS) and target.has_q and not is_network:
        # The best q(u) of all is known, and with it the bound is the collapsed one.
        parts = (replace_q(tree, None) for tree in (target.start, target.frozen))
        target = Objective(*parts, records=target.records)
    if stopped is None:
        optimum = _optimise(target, settings, as_seed(key), progress, scaling, seen)
    else:
        optimum = _optimise(target, BRIEF, as_seed(key), None, scaling, seen)
        optimum = dataclasses.replace(optimum, status=stopped)
    return _finish(model, data, seen, target, optimum, settings, scaling, throw)


class Evidence(NamedTuple):
    """The greatest log evidence of a model, with the log prior of its parameters and alone.

    >>> Evidence(with_prior=-3.0, alone=-1.0).alone
    -1.0
    """

    with_prior: float
    alone: float


@float64
def greatest_evidence(model: Any, data: Dataset, optimiser: LBFGS, key: Any = 0) -> Evidence:
    """Return the log evidence of an exact or collapsed model at its best parameters.

    It is what `fit` ends with, without the posterior; a failed search gives minus infinity.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> data, quick = mrgp.Dataset([sensors]), LBFGS(max_steps=5, starts=1, candidates=0)
    >>> found = greatest_evidence(mrgp.MRGP(), data, quick)
    >>> float(round(found.with_prior - mrgp.fit(mrgp.MRGP(), data, optimiser=quick).history[-1], 6))
    0.0
    """
    make_room()
    seen = model.view(data)
    scaling = Scaling.of(seen)
    target = build_objective(model.build(seen, key), seen, scaling, None)
    optimum = _optimise(target, optimiser, as_seed(key), None, scaling, seen)
    if not optimum.status.ok:
        return Evidence(-np.inf, -np.inf)
    with_prior = float(optimum.history[-1])
    return Evidence(with_prior, with_prior - float(log_prior(optimum.model)))


def _fit_chosen(
    word: str, data: Dataset, key: Any, weights: Any, hyperparameters: str, settings: dict[str, Any]
) -> Fit:
    from mrgp.selection import choose

    if word != "auto":
        raise TypeError(
            f'fit: the first argument must be a model such as mrgp.MRGP(), or "auto"; got {word!r}.'
        )
    choice = choose(data, key=as_seed(key), progress=settings["progress"])
    weights = choice.weights if weights is None else weights
    done = fit(choice.recipe, data, key, weights, hyperparameters, **settings)
    return dataclasses.replace(done, reasons=choice.reasons)


def resume(fit: Fit, data: Dataset, optimiser: Any, progress: Any, throw: bool) -> Fit:
    """Go on with a fit on the same data."""
    if fit.treatment != "refit":
        what = {"keep": 'with hyperparameters="keep"', "adjusted": "by adjust_curvature"}
        raise ValueError(
            f"resume: this fit was made {what[fit.treatment]}, and has nothing to go on with."
        )
    if is_deep(fit.recipe):
        data = Dataset([data[p] for p in fit.processes if p in data.processes])
    data = fit.same_data(data)
    seen = fit.recipe.view(data)
    if fit.parts:
        return _fit_tree(
            fit.recipe, data, seen, fit.key, fit.weights, optimiser, progress, throw, fit, True
        )
    settings = _same_settings(fit, optimiser or fit.optimiser)
    natural = fit.training is not None and fit.training.natural
    model = fit.model.with_q() if natural else fit.model
    target = build_objective(model, seen, fit.scaling, fit.weights)
    optimum = _optimise(target, settings, 0, progress, fit.scaling, seen, fit.training)
    return _finish(fit.recipe, data, seen, target, optimum, settings, fit.scaling, throw)


def _same_settings(fit: Fit, settings: Any) -> LBFGS | Adam:
    if type(settings) is not type(fit.optimiser):
        raise ValueError(
            f"resume: the fit was made with {type(fit.optimiser).__name__}; got"
            f" {type(settings).__name__}."
        )
    if isinstance(settings, LBFGS):
        return dataclasses.replace(settings, starts=1, candidates=0)
    free = {"steps": settings.steps, "halvings": settings.halvings}
    if dataclasses.replace(fit.optimiser, **free) != settings:
        raise ValueError(
            f"resume: only steps and halvings may differ from the first run's {fit.optimiser}."
        )
    return settings


def _check_deep(recipe: Any, hyperparameters: str, reuse: Fit | None) -> None:
    """Refuse what only deep models, or only others, can do."""
    name = type(recipe).__name__
    if is_deep(recipe) and hyperparameters != "refit":
        raise ValueError(
            f'{name}: hyperparameters="keep" is for models that sources share; here each source has'
            " parameters of its own."
        )
    if reuse is not None and not (is_deep(recipe) and isinstance(reuse, Fit)):
        raise ValueError(
            f"fit: reuse= takes an earlier fit of a deep model; got {type(reuse).__name__} for"
            f" {name}."
        )


def _fit_tree(
    recipe: Any,
    data: Dataset,
    seen: Dataset,
    key: Any,
    weights: Any,
    optimiser: Any,
    progress: Any,
    throw: bool,
    earlier: Fit | None,
    go_on: bool = False,
) -> Fit:
    parts = {} if earlier is None else earlier.parts
    gardener = Gardener(fit, key, optimiser, progress, parts, go_on)
    inner = getattr(recipe, "model", recipe)
    optimum, state, target = fit_tree(inner, seen, weights, gardener)
    settings = optimiser or LBFGS()
    scaling = Scaling.plain(seen)
    found = _finish(recipe, data, seen, target, optimum, settings, scaling, throw, state)
    return dataclasses.replace(found, parts=gardener.parts, key=as_seed(key))


def _keep(
    recipe: Any,
    data: Dataset,
    seen: Dataset,
    scaling: Scaling,
    weights: Any,
    alone: Optimum,
    throw: bool,
) -> Fit:
    """Condition on the weighted data with the parameters of each source on its own."""
    target = build_objective(alone.model, seen, scaling, weights)
    target = build_objective(with_weights(alone.model, target), seen, scaling, weights)
    model, loss = target.model(target.start), Direct(target)
    history = np.array([-float(loss(target.start)[0]) * loss.size])
    optimum = dataclasses.replace(alone, model=model, history=history)
    kept = _finish(recipe, data, seen, target, optimum, LBFGS(), scaling, throw)
    return dataclasses.replace(kept, treatment="keep")


def _usual_optimiser(model: Any, data: Dataset) -> LBFGS | Adam:
    """Return L-BFGS, or Adam where the data are too many for every step to see all."""
    if isinstance(model, Network):
        return NETWORK_SETTINGS if count(data) <= NETWORK_LIMIT else Adam()
    return Adam() if getattr(model, "q", None) is not None else LBFGS()


def _optimise(
    target: Objective,
    settings: LBFGS | Adam,
    seed: int,
    progress: Any,
    scaling: Scaling,
    data: Dataset,
    training: Training | None = None,
) -> Optimum:
    unit = log_unit(scaling, data)
    shown = as_progress(progress)
    if isinstance(settings, Adam):
        return ascend(target, unit, settings, seed, shown, training)
    if isinstance(target.frozen, Network):
        return optimise_network(target, unit, settings, seed, shown)
    return maximise(target, unit, settings, seed, shown)


def _finish(
    recipe: Any,
    data: Dataset,
    seen: Dataset,
    target: Objective,
    optimum: Optimum,
    settings: LBFGS | Adam,
    scaling: Scaling,
    throw: bool,
    state: Any = None,
) -> Fit:
    """Condition on all the data with the parameters found, and say how it went."""
    state = to_numpy(conditioned(optimum.model, target.records)) if state is None else state
    if isinstance(optimum.model, Network):
        warn_of_wide_regions(to_numpy(optimum.model), seen)
    status = optimum.status
    if status.ok and not _is_finite(state):
        status = Status("failed", "the posterior is not finite")
    if throw and not status.ok:
        raise FitError(_diagnosis(seen, status))
    return Fit(
        recipe=recipe,
        model=to_numpy(optimum.model),
        state=state,
        scaling=scaling,
        inputs=data.inputs,
        units=data.units,
        counts=counts_of(data),
        weights={p: float(r.weight) for p, r in zip(seen.processes, target.records, strict=True)},
        history=optimum.history,
        status=status,
        optimiser=settings,
        training=optimum.training,
        axes=data.axes,
        covariates=data.covariates,
        checksum=checksum_of(data),
        bounds=np.stack(bounds_of(data.supports)),
    )


def _is_finite(tree: Any) -> bool:
    return all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(tree))


def _diagnosis(data: Dataset, status: Status) -> str:
    ranges = (f"{o.label}: {np.nanmin(o.y):.4g} to {np.nanmax(o.y):.4g}" for o in data)
    return (
        f"The fit failed: {status.message}. Values range over {'; '.join(ranges)}. Look for extreme"
        " values, or starting values and known noise variances far from the data's scale."
    )
