"""What is scored beside models: simple rules, rivals of counts, and a fit that failed."""

from typing import Any

import numpy as np

from mrgp.data import Observations
from mrgp.datasets import Case
from mrgp.evaluation import evaluate
from mrgp.experiments.metering import metered
from mrgp.experiments.risks import counts_about
from mrgp.experiments.rivals import ModelSpec
from mrgp.experiments.scoring import LATENT, NOISY, OF_MEANS, Scored, of_fields, plain, with_suffix
from mrgp.prediction import Prediction
from mrgp.selection.rules import RULES, View

KEPT = (*OF_MEANS, "mse", "mae", "width_95")


def score_rule(name: str, case: Case) -> Scored:
    """Score a simple rule, as a model is scored; `cv_rmse` is its own, at training places.

    A rule that needs covariates, where there are none, is the mean of the other places.

    >>> import mrgp
    >>> row = score_rule("mean", mrgp.datasets.gauntlet("0", "noise")).rows[0]
    >>> 0.7 < row["rmse"] < 1.2
    True
    """
    rule = RULES[name]

    def fitted() -> Any:
        view = View.of(case.data, (case.target, case.task), None)
        return view.fitted(rule if view.serves(rule) else RULES["mean"])

    found, costs = metered(fitted)
    told = _told(case.held_out, *found.predict(case.support))
    row = _scores(told, case.y) | {"cv_rmse": found.rmse}
    for window, mean in case.means.items():
        row |= with_suffix(evaluate(_told(mean, *found.predict(mean.support)), mean.y), window)
    return Scored([row], costs, {NOISY: told}, {})


def score_risk(spec: ModelSpec, case: Case, key: int) -> Scored:
    """Score a rival of models of counts, as a model is scored.

    >>> import mrgp
    >>> cells = mrgp.intervals([0.0, 1.0], [1.0, 2.0])
    >>> about = {"likelihood": mrgp.Poisson(), "exposure": [2.0, 2.0]}
    >>> data = mrgp.Dataset([mrgp.Observations(cells, [4, 4], **about)])
    >>> case = Case(data, cells, np.array([4.0, 4.0]), "source", "value", exposure=np.full(2, 2.0))
    >>> found = score_risk(ModelSpec(recipe="rule", risk="painted"), case, 0)
    >>> round(found.rows[0]["rmse"], 3)  # (4 + 1/2) / 2 x 2
    0.5
    """
    risk, costs = metered(lambda: spec.risk_of(case.data, (case.target, case.task), key))
    predictions = {LATENT: risk.rate(case.support)}
    predictions[NOISY] = counts_about(predictions[LATENT], case.exposure)
    row = plain(evaluate(predictions[NOISY], case.y))
    if case.truth is not None:
        del row["n"]
        clean = plain(evaluate(predictions[LATENT], case.truth), "n", "mape")
        row |= {f"{name}_clean": value for name, value in clean.items()}
    return Scored([row | of_fields(case, risk.rate)], costs, predictions, {})


def score_failure(case: Case, error: Exception) -> Scored:
    """Score a fit that failed as the mean and sd of the target's training values.

    >>> import mrgp
    >>> score_failure(mrgp.datasets.gauntlet("0", "noise"), ValueError("no")).rows[0]["failed"]
    'ValueError: no'
    """
    seen = case.data[case.target, case.task].dropna().y
    level, spread = float(seen.mean()), float(seen.std()) or 1.0
    told = {
        name: _told(gone, np.full(len(gone), level), np.full(len(gone), spread))
        for name, gone in {"": case.held_out, **case.means}.items()
    }
    row: dict[str, Any] = _scores(told[""], case.y)
    for window, mean in case.means.items():
        row |= with_suffix(evaluate(told[window], mean.y), window)
    row["failed"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return Scored([row], {}, {NOISY: told[""]}, {})


def _scores(told: Prediction, y: Any) -> dict[str, Any]:
    found = evaluate(told, y)
    return {name: float(found[name]) for name in KEPT} | {"n": int(found["n"])}


def _told(gone: Observations, mean: np.ndarray, sd: np.ndarray) -> Prediction:
    """Return means and standard deviations as a prediction."""
    # A rule that never errs on training places is still no certainty.
    least = 1e-9 * (1.0 + np.abs(mean).max())
    about = (gone.support, gone.task, gone.name, gone.units)
    return Prediction(*about, np.ones((1, len(mean))), mean[None], np.maximum(sd, least)[None] ** 2)
