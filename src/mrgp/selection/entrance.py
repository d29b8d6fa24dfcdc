"""The entrance: fit a model, or the one that the data choose."""

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any

from mrgp.data import Dataset, as_seed, cautions_of
from mrgp.gp import Markov
from mrgp.inference import Fit
from mrgp.inference.shortfall import shortfalls
from mrgp.models import Recipe
from mrgp.selection.choosing import choose
from mrgp.weighting import check_data, fit_weighted


def fit(
    model: Recipe | str,
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
    check_data(data, "fit")
    recipe: Any = model
    reasons: tuple[str, ...] = ()
    if isinstance(model, str):
        if model != "auto":
            raise TypeError(
                "fit: the first argument must be a model such as mrgp.MRGP(), or"
                f' "auto"; got {model!r}.'
            )
        choice = choose(data, key=as_seed(key), progress=progress)
        recipe, reasons = choice.recipe, choice.reasons
        weights = choice.weights if weights is None else weights
    found = fit_weighted(
        recipe, data, key, weights, hyperparameters, optimiser, progress, throw, reuse
    )
    if found.status.ok:
        for text in (*cautions_of(data), *shortfalls(found)):
            warnings.warn(text, stacklevel=2)
    linear = found.model.linear
    if reasons and linear is not None and isinstance(linear.solver, Markov):
        reasons = (
            *reasons,
            f"How it is solved: {linear.solver.account(found.state).split(';')[0]}.",
        )
    return dataclasses.replace(found, reasons=reasons)
