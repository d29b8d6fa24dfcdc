"""`predict` a task on any support."""

import dataclasses
from typing import Any, overload

import numpy as np

from mrgp._types import float64
from mrgp.data import Observations, as_key
from mrgp.devices import alone
from mrgp.models import Components, Process, Question
from mrgp.prediction.alignment import aligned
from mrgp.prediction.predictor import Predictor
from mrgp.prediction.values import Prediction
from mrgp.supports import Support


@overload
def predict(
    fit: Predictor,
    support: Support,
    task: str | None = None,
    source: str | None = None,
    noise: bool = False,
    key: Any = 0,
    samples: int | None = None,
    *,
    joint: bool = False,
    exposure: Any = None,
    trials: Any = None,
) -> Prediction: ...


@overload
def predict(
    fit: Predictor,
    support: Any,
    task: str | None = None,
    source: str | None = None,
    noise: bool = False,
    key: Any = 0,
    samples: int | None = None,
    *,
    joint: bool = False,
    exposure: Any = None,
    trials: Any = None,
    chunks: Any = None,
    scheduler: Any = None,
) -> Any: ...


@float64
def predict(
    fit: Predictor,
    support: Any,
    task: str | None = None,
    source: str | None = None,
    noise: bool = False,
    key: Any = 0,
    samples: int | None = None,
    *,
    joint: bool = False,
    exposure: Any = None,
    trials: Any = None,
    chunks: Any = None,
    scheduler: Any = None,
) -> Any:
    """Predict a task on any support, or on the cells of a grid.

    Without a `source` the prediction is of the quantity of interest; with one it is what that
    source would report, bias included, without noise unless `noise=True`. `joint=True` adds the
    covariance between regions. Under a link the prediction is the field, which is positive or a
    probability. A new count has the `exposure` of its region, if the source's counts had one, and
    new successes have `trials`, each one number or one for each region.

    Mean and variance are in closed form. What a network of GPs predicts is not Gaussian: its shape
    is that of a mixture over `samples` draws of the weights W (default 50; 0 gives one Gaussian),
    made with `key` at the inducing variables, so that a region gets the same answer alone or among
    others. What a deep model predicts is a mixture over its experts and `samples` paths through
    the tree (default: those of the recipe), with `experts` and `weights` beside it. With
    `joint=True`, and for other models, the prediction is one Gaussian. From chains it is a mixture
    over `samples` of their draws (default 100).

    Instead of a support, an xarray grid may be given, whose dimensions are the inputs: the result
    is a Dataset as of `to_grid(like=grid)`. `exposure` and `trials` may then be variables of the
    grid, or their names. Where the grid is backed by Dask, or `chunks` are given
    (by dimension as in xarray, or "auto"), nothing is computed until values are asked for, chunk by
    chunk; then by the workers of `scheduler`, a client of a Dask cluster or its address, if given.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors]))
    >>> len(mrgp.predict(fit, mrgp.intervals([0.0], [2.0])))
    1
    """
    if not isinstance(fit, Predictor):
        raise TypeError(
            f"predict takes a fit as first argument; got {type(fit).__name__}. Call"
            " mrgp.fit(model, data) first."
        )
    task, source = resolve(fit, task, source, noise)
    _check_samples(samples)
    if type(support).__module__.partition(".")[0] == "xarray":
        from mrgp.io.tiles import predict_grid

        _refuse({"joint": joint}, "goes with a support")
        asked = {"task": task, "source": source, "noise": noise, "key": key, "samples": samples}
        asked |= {"exposure": exposure, "trials": trials}
        return predict_grid(fit, support, asked, chunks, scheduler)
    _refuse({"chunks": chunks, "scheduler": scheduler}, "goes with an xarray grid")
    if not isinstance(support, Support):
        raise TypeError(
            "predict takes a support such as mrgp.points(x), or an xarray grid; got"
            f" {type(support).__name__}."
        )
    centred = aligned(fit, support)
    if len(support) == 0:
        found = Components.gaussian(np.zeros(0), np.zeros((0, 0) if joint else 0))
    else:
        beside = rows_beside(fit, (str(source), task), noise, exposure, trials, len(support))
        asked = Question(task, source, as_key(key), samples, joint, *beside)
        with alone():
            found = fit.components(centred, asked, noise)
    level = fit.scaling.offset[fit.scaling.index(task)] * np.asarray(centred.total)
    about = (fit.labelled(support), task, source, fit.units.get(task))

    def made_of(shares: Any, means: Any, variances: Any, **more: Any) -> Prediction:
        components = (x.T for x in (shares, means + level[:, None], variances))
        return Prediction(*about, *components, distribution=found.distribution, **more)

    experts = {
        label: made_of(np.full(means.shape, 1.0 / means.shape[1]), means, variances)
        for label, (means, variances) in found.experts.items()
    }
    beside = {"covariance": found.covariance, "experts": experts, "weights": dict(found.shares)}
    return made_of(found.weights, found.means, found.variances, **beside)


def predict_values(fit: Predictor, observed: Observations, key: Any = 0) -> Prediction:
    """Predict values of a source that was fitted, with their own noise where it is known.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors]))
    >>> new = mrgp.Observations(mrgp.points([[0.5], [0.5]]), [0.4, 0.9], noise_variance=[1.0, 4.0])
    >>> np.diff(predict_values(fit, new).variance).round(9)
    array([3.])
    """
    known = observed.noise_variance
    asked: dict[str, Any] = {"task": observed.task, "source": observed.name, "key": key}
    asked |= {"exposure": observed.exposure, "trials": observed.trials}
    found = predict(fit, observed.support, **asked, noise=known is None)
    if known is None:
        return found
    # A missing value may have no noise; it is not scored either.
    added = np.where(np.isnan(known), 0.0, known)[None]
    parts = observed.likelihood.observe(found.components, added, found.distribution)
    names = ("component_weights", "means", "variances")
    seen = dict(zip(names, parts, strict=True)) | {"distribution": observed.likelihood.distribution}
    return dataclasses.replace(found, **seen)


def rows_beside(
    fit: Predictor, process: Process, noise: bool, exposure: Any, trials: Any, regions: int
) -> tuple[Any, Any]:
    """Return the exposure and the trials of every region, or say what is missing."""
    if process not in fit.processes:
        if exposure is not None or trials is not None:
            raise ValueError("predict: exposure= and trials= go with source=, which has them.")
        return None, None
    likelihood = fit.likelihoods[process]
    binomial = likelihood.domain == "successes"
    if noise and exposure is None and process in fit.exposed:
        raise ValueError(
            f"predict: the values of {process[0]!r} had an exposure, and a new one needs it too:"
            " give exposure=, one number or one for each region."
        )
    if noise and trials is None and binomial:
        raise ValueError(
            f"predict: new successes of {process[0]!r} need trials=, one number or one for each"
            " region."
        )
    if trials is not None and not binomial:
        raise ValueError(f"predict: {process[0]!r} has no trials; leave trials= out.")
    if exposure is not None and likelihood.scale == "real" and process not in fit.exposed:
        raise ValueError(f"predict: {process[0]!r} has no exposure; leave exposure= out.")
    return _positive(exposure, regions, "exposure"), _positive(trials, regions, "trials")


def _check_samples(samples: Any) -> None:
    whole = isinstance(samples, int | np.integer) and not isinstance(samples, bool)
    if samples is not None and not (whole and samples >= 0):
        raise ValueError(f"predict: samples must be a whole number, or None; got {samples!r}.")


def _refuse(arguments: dict[str, Any], why: str) -> None:
    given = [name for name, value in arguments.items() if value is not None and value is not False]
    if given:
        raise ValueError(f"predict: {given[0]}= {why}; leave it out.")


def _positive(given: Any, regions: int, name: str) -> Any:
    if given is None:
        return None
    values = np.asarray(given, np.float64)
    if values.shape not in ((), (regions,)) or not np.all(values > 0):
        raise ValueError(
            f"predict: {name}= must be one positive number, or {regions}, one for each region."
        )
    return np.broadcast_to(values, (regions,))


def resolve(
    fit: Predictor, task: str | None, source: str | None, noise: bool
) -> tuple[str, str | None]:
    """Return the task and source meant, or say which there are."""
    if task is None:
        if len(fit.tasks) > 1:
            raise ValueError(f"predict: say which task; the fit has {fit.tasks}.")
        task = next(iter(fit.tasks))
    if task not in fit.tasks:
        raise ValueError(f"predict: no task is named {task!r}; the fit has {fit.tasks}.")
    sources = [s for s, t in fit.processes if t == task]
    if source is not None and source not in sources:
        raise ValueError(
            f"predict: no source of task {task!r} is named {source!r}; it has {sources}."
        )
    if noise and source is None:
        if len(sources) > 1:
            raise ValueError(
                f"predict: noise=True needs source=, since the sources of task {task!r} differ in"
                f" noise; they are {sources}."
            )
        source = sources[0]
    return task, source
