"""Scores of predictions against held-out values (theory 8), their names and their tables."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from mrgp.data import Observations, as_values
from mrgp.inference import Fit
from mrgp.prediction import Prediction, predict_values

Values = Float[np.ndarray, "*k"]


class Score(NamedTuple):
    """How a table heads a score, what it is, which values are better, and whether it is a mean.

    Means over values can be pooled over groups of them.

    >>> SCORES["coverage_95"].better, SCORES["crps"].meaning
    ('near 0.95', 'continuous ranked probability score')
    """

    heading: str
    meaning: str
    better: str = "lower"
    mean: bool = True


LEVELS = (50, 80, 95)
SCORES = {
    "rmse": Score("rmse", "root of the mean squared error", mean=False),
    "mse": Score("mse", "mean squared error"),
    "mae": Score("mae", "mean absolute error"),
    "mape": Score("mape", "mean absolute error as a fraction of the value", mean=False),
    "nlpd": Score("nlpd", "negative log predictive density"),
    "crps": Score("crps", "continuous ranked probability score"),
}
SCORES |= {
    f"coverage_{p}": Score(f"in {p} %", f"share inside the {p} % interval", f"near {p / 100:g}")
    for p in LEVELS
}
SCORES |= {
    f"width_{p}": Score(f"width of {p} %", f"width of the {p} % interval", "lower at one coverage")
    for p in LEVELS
}
RANKING = tuple(name for name, score in SCORES.items() if score.better == "lower")
TABLE = ("rmse", "mae", "crps", "nlpd", "coverage_50", "coverage_80", "coverage_95", "width_95")
BRIEF = ("rmse", "mae", "crps", "nlpd", "coverage_95", "width_95")
HOW_TO_READ = (
    "Lower rmse, mae, crps and nlpd are better; the shares of values inside the 50, 80 and 95 %"
    " intervals should be 0.5, 0.8 and 0.95."
)


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


class Trial(NamedTuple):
    """A fit, what it predicts of values that were held out, the scores of that, and its costs.

    >>> Trial._fields
    ('fit', 'prediction', 'scores', 'costs')
    """

    fit: Fit
    prediction: Prediction
    scores: dict[str, float]
    costs: dict[str, float]


Meter = Callable[[Callable[[], Any]], tuple[Any, dict[str, float]]]


def _unmetered(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    return work(), {}


def attempt(
    make: Callable[[], Fit], held_out: Observations, key: Any = 0, meter: Meter = _unmetered
) -> Trial:
    """Fit a model, predict values that were held out, with their noise, and score them.

    `make` fits the model. `meter` does some work, and returns what that returned and costs by name.

    >>> import mrgp
    >>> x = np.arange(9.0)[:, None]
    >>> seen = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]))
    >>> train = mrgp.Dataset([seen[:7]])
    >>> attempt(lambda: mrgp.fit(mrgp.MRGP(), train, progress=None), seen[7:]).scores["n"]
    2
    """
    fitted, costs = meter(make)
    found, beside = meter(lambda: predict_values(fitted, held_out, key))
    costs = costs | {f"predict_{name}": cost for name, cost in beside.items()}
    return Trial(fitted, found, evaluate(found, held_out.y), costs)


def tabulate(
    rows: Sequence[Mapping[str, Any]], labels: Sequence[str] = ()
) -> dict[str, dict[str, float]]:
    """Return mean, sd and median of each score over rows that have it, and of how many.

    Where rows say by `n` how many values they are of, scores that are means over values have a
    `pooled` one over all of these, and so has rmse. Infinite scores, such as the mape of a site
    that reports a zero, are left out; `n` is the number of those that are in.

    >>> tabulate([{"rmse": 1.0}, {"rmse": 3.0}])["rmse"]["mean"]
    2.0
    """
    names = dict.fromkeys(n for row in rows for n in row if n not in ("n", *labels))
    table = {name: _spread([row[name] for row in rows if name in row]) for name in names}
    counted = [row for row in rows if "n" in row]
    counts = np.array([row["n"] for row in counted], np.float64)
    for name in table.keys() & SCORES.keys():
        if SCORES[name].mean and counted and all(name in row for row in counted):
            whole = counts @ [row[name] for row in counted] / counts.sum()
            table[name]["pooled"] = float(whole)
    if "rmse" in table and "pooled" in table.get("mse", ()):
        table["rmse"]["pooled"] = table["mse"]["pooled"] ** 0.5
    return table


def _spread(values: Sequence[float]) -> dict[str, float]:
    kept = [value for value in values if np.isfinite(value)] or list(values)
    return {
        "mean": float(np.mean(kept)),
        "sd": float(np.std(kept, ddof=1)) if len(kept) > 1 else 0.0,
        "median": float(np.median(kept)),
        "n": len(kept),
    }


def crps(prediction: Prediction, y: Any) -> Float[np.ndarray, " n"]:
    """Return the continuous ranked probability score of each value, for Gaussian mixtures.

    E|X - y| - E|X - X'| / 2, with E|N(m, v)| = m (2 Phi(m / s) - 1) + 2 s phi(m / s).

    >>> import mrgp
    >>> one = np.ones((1, 1))
    >>> pred = mrgp.Prediction(mrgp.points([[0.0]]), "no2", None, None, one, 0 * one, one)
    >>> crps(pred, [0.0]).round(3)
    array([0.234])
    """
    return prediction.crps(y)


def pit(prediction: Prediction, y: Any, key: int = 0) -> Float[np.ndarray, " n"]:
    """Return the probability integral transform of each value: uniform if calibrated.

    That of a count is drawn between P(value < y) and P(value <= y), with `key`.

    >>> import mrgp
    >>> one = np.ones((1, 1))
    >>> pred = mrgp.Prediction(mrgp.points([[0.0]]), "no2", None, None, one, 0 * one, one)
    >>> pit(pred, [0.0])
    array([0.5])
    """
    if not prediction.distribution.discrete:
        return prediction.cdf(y)
    values = as_values(y, "pit: y")
    below, upto = prediction.cdf(values - 1), prediction.cdf(values)
    return below + np.random.default_rng(key).uniform(size=len(prediction)) * (upto - below)


def _mape(error: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"]) -> float:
    size = np.abs(values)
    return float(np.mean(np.abs(error) / size)) if np.all(size > 0) else float("inf")
