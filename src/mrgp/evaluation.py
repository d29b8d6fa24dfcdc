"""Scores of predictions against held-out values (theory 8)."""

import warnings
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from mrgp.data import as_values
from mrgp.prediction import Prediction

LEVELS = (50, 80, 95)


def evaluate(prediction: Prediction, y: Any) -> dict[str, float]:
    """Score a prediction against values on the same regions.

    Returns rmse, mse, mae, mape (a fraction), nlpd, crps, coverage and width of the 50, 80 and
    95 % intervals, the number `n` of values scored and `missing`, the number of NaN values left
    out. Mixtures are scored as mixtures, in closed form.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors]))
    >>> mrgp.evaluate(mrgp.predict(fit, mrgp.points([[0.5]])), [0.6])["n"]
    1
    """
    if not isinstance(prediction, Prediction):
        raise TypeError(
            f"evaluate takes a Prediction first and values second; got {type(prediction).__name__}"
            " first."
        )
    values = as_values(y, "evaluate: y")
    if values.shape != (len(prediction),):
        raise ValueError(
            f"evaluate: y must have shape ({len(prediction)},), one value for each region"
            f" predicted; got {values.shape}."
        )
    if np.isinf(values).any():
        raise ValueError("evaluate: y has infinite values; use NaN for missing ones.")
    seen = ~np.isnan(values)
    if not seen.any():
        raise ValueError("evaluate: all values of y are missing (NaN).")
    error = (prediction.mean - values)[seen]
    scores = {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mse": float(np.mean(error**2)),
        "mae": float(np.mean(np.abs(error))),
        "mape": _mape(error, values[seen]),
        "nlpd": float(-np.mean(prediction.log_density(values)[seen])),
        "crps": float(np.mean(crps(prediction, values)[seen])),
    }
    for level in LEVELS:
        low, high = prediction.interval(level / 100)
        inside = (low <= values) & (values <= high)
        scores[f"coverage_{level}"] = float(inside[seen].mean())
        scores[f"width_{level}"] = float((high - low)[seen].mean())
    return scores | {"n": int(seen.sum()), "missing": int((~seen).sum())}


def evaluate_quietly(prediction: Prediction, y: Any) -> dict[str, float]:
    """Evaluate without the warning that mape says little near zero.

    >>> import mrgp
    >>> one = np.ones((1, 1))
    >>> pred = mrgp.Prediction(mrgp.points([[0.0]]), "no2", None, None, one, 0 * one, one)
    >>> evaluate_quietly(pred, [0.0])["rmse"]
    0.0
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="mape divides")
        return evaluate(prediction, y)


def crps(prediction: Prediction, y: Any) -> Float[np.ndarray, " n"]:
    """Return the continuous ranked probability score of each value, for Gaussian mixtures.

    E|X - y| - E|X - X'| / 2, with E|N(m, v)| = m (2 Phi(m / s) - 1) + 2 s phi(m / s).

    >>> import mrgp
    >>> one = np.ones((1, 1))
    >>> pred = mrgp.Prediction(mrgp.points([[0.0]]), "no2", None, None, one, 0 * one, one)
    >>> crps(pred, [0.0]).round(3)
    array([0.234])
    """
    w, m, v = prediction.component_weights, prediction.means, prediction.variances
    to_value = (w * _mean_absolute(m - np.asarray(y, np.float64), v)).sum(0)
    spread = sum(w[i] * (w * _mean_absolute(m[i] - m, v[i] + v)).sum(0) for i in range(len(w)))
    return to_value - 0.5 * spread


def pit(prediction: Prediction, y: Any) -> Float[np.ndarray, " n"]:
    """Return the probability integral transform of each value: uniform if calibrated.

    >>> import mrgp
    >>> one = np.ones((1, 1))
    >>> pred = mrgp.Prediction(mrgp.points([[0.0]]), "no2", None, None, one, 0 * one, one)
    >>> pit(pred, [0.0])
    array([0.5])
    """
    return prediction.cdf(y)


def _mean_absolute(
    mean: Float[np.ndarray, "*k"], variance: Float[np.ndarray, "*k"]
) -> Float[np.ndarray, "*k"]:
    sd = np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    with np.errstate(over="ignore"):
        z = mean / sd
        density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return mean * (2 * ndtr(z) - 1) + 2 * sd * density


def _mape(error: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"]) -> float:
    size = np.abs(values)
    if np.any(size < 0.05 * np.median(size)) or not np.all(size > 0):
        warnings.warn(
            "mape divides by values near zero; it says little about these data.", stacklevel=3
        )
    return float(np.mean(np.abs(error) / size)) if np.all(size > 0) else float("inf")
