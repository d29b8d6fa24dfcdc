"""`predict` a task on any support."""

import dataclasses
from typing import Any

import numpy as np

from mrgp._types import float64
from mrgp.data import Observations, as_key
from mrgp.models import Components, Question
from mrgp.prediction.alignment import aligned
from mrgp.prediction.predictor import Predictor
from mrgp.prediction.values import Prediction
from mrgp.supports import Support


@float64
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
) -> Prediction:
    """Predict a task on any support.

    Without a `source` the prediction is of the quantity of interest; with one it is what that
    source would report, bias included, without noise unless `noise=True`. `joint=True` adds the
    covariance between regions.

    Mean and variance are in closed form. What a network of GPs predicts is not Gaussian: its shape
    is that of a mixture over `samples` draws of the weights W (default 50; 0 gives one Gaussian),
    made with `key` at the inducing variables, so that a region gets the same answer alone or among
    others. What a deep model predicts is a mixture over its experts and `samples` paths through
    the tree (default: those of the recipe), with `experts` and `weights` beside it. With
    `joint=True`, and for other models, the prediction is one Gaussian. From chains it is a mixture
    over `samples` of their draws (default 100).

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
    if not isinstance(support, Support):
        raise TypeError(
            f"predict takes a support such as mrgp.points(x); got {type(support).__name__}."
        )
    task, source = _resolve(fit, task, source, noise)
    whole = isinstance(samples, int | np.integer) and not isinstance(samples, bool)
    if samples is not None and not (whole and samples >= 0):
        raise ValueError(f"predict: samples must be a whole number, or None; got {samples!r}.")
    centred = aligned(fit, support)
    if len(support) == 0:
        found = Components.gaussian(np.zeros(0), np.zeros((0, 0) if joint else 0))
    else:
        asked = Question(task, source, as_key(key), samples, joint)
        found = fit.components(centred, asked, noise)
    level = fit.scaling.offset[fit.scaling.index(task)] * np.asarray(centred.total)

    def made_of(shares: Any, means: Any, variances: Any, **more: Any) -> Prediction:
        components = (x.T for x in (shares, means + level[:, None], variances))
        return Prediction(
            fit.labelled(support),
            task,
            source,
            fit.units.get(task),
            *components,
            distribution=found.distribution,
            **more,
        )

    experts = {
        label: made_of(np.full(means.shape, 1.0 / means.shape[1]), means, variances)
        for label, (means, variances) in found.experts.items()
    }
    return made_of(
        found.weights,
        found.means,
        found.variances,
        covariance=found.covariance,
        experts=experts,
        weights=dict(found.shares),
    )


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
    found = predict(fit, observed.support, **asked, noise=known is None)
    if known is None:
        return found
    # A missing value may have no noise; it is not scored either.
    added = np.where(np.isnan(known), 0.0, known)[None]
    means, variances = observed.likelihood.observe(found.means, found.variances, added)
    seen = observed.likelihood.distribution
    return dataclasses.replace(found, means=means, variances=variances, distribution=seen)


def _resolve(
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
