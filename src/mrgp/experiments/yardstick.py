"""What is scored beside models: simple rules, and a fit that failed."""

from typing import Any

import numpy as np

from mrgp.data import Observations
from mrgp.datasets import Case
from mrgp.evaluation import evaluate_quietly
from mrgp.experiments.metering import metered
from mrgp.experiments.scoring import NOISY, OF_MEANS, Scored, with_suffix
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
        row |= with_suffix(
            evaluate_quietly(_told(mean, *found.predict(mean.support)), mean.y), window
        )
    return Scored([row], costs, {NOISY: told}, {})


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
        row |= with_suffix(evaluate_quietly(told[window], mean.y), window)
    row["failed"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return Scored([row], {}, {NOISY: told[""]}, {})


def _scores(told: Prediction, y: Any) -> dict[str, Any]:
    found = evaluate_quietly(told, y)
    return {name: float(found[name]) for name in KEPT} | {"n": int(found["n"])}


def _told(gone: Observations, mean: np.ndarray, sd: np.ndarray) -> Prediction:
    """Return means and standard deviations as a prediction."""
    # A rule that never errs on training places is still no certainty.
    least = 1e-9 * (1.0 + np.abs(mean).max())
    about = (gone.support, gone.task, gone.name, gone.units)
    return Prediction(*about, np.ones((1, len(mean))), mean[None], np.maximum(sd, least)[None] ** 2)
