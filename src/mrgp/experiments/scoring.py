"""Fit one model of an experiment to one case, and score it."""

import dataclasses
import time
import warnings
from typing import Any

import numpy as np

from mrgp.datasets import Recording, Simulation
from mrgp.evaluation import evaluate
from mrgp.experiments.metering import metered
from mrgp.experiments.spec import ModelSpec
from mrgp.inference import Fit
from mrgp.prediction import Prediction, predict

Scores = dict[str, float]


def score(spec: ModelSpec, case: Simulation | Recording, key: int, *, timed: bool = True) -> Scores:
    """Fit one model to one case and score it on all values held out.

    Plain names are scores of noisy predictions against held-out observations; names that end in
    `_clean` are scores of the latent prediction against the noise-free function, where it is known.
    `n` is how many values were recorded and held out. `seconds` and `peak_mb` are the wall time and
    the peak memory of the fit, compilation included; `cpu_seconds` is the process time of a second
    identical fit, when everything is compiled, and is left out unless `timed`.
    """
    fitted, costs = _fit(spec, case, key, timed)
    noisy = _noisy(fitted, case, key)
    return _scores(noisy, case.y, isinstance(case, Recording)) | _clean(fitted, case, key) | costs


def score_by_site(
    spec: ModelSpec,
    case: Simulation | Recording,
    key: int,
    *,
    timed: bool = True,
    earlier: Fit | None = None,
) -> tuple[list[dict[str, Any]], Fit]:
    """Return what `score` does as one row, or as one for each site, and the fit.

    What belongs to the fit, such as its seconds, is in the first row alone. Parts of an `earlier`
    fit that had the same data are taken over.
    """
    fitted, costs = _fit(spec, case, key, timed, earlier)
    noisy = _noisy(fitted, case, key)
    if not isinstance(case, Recording) or case.site is None:
        found = _scores(noisy, case.y, isinstance(case, Recording))
        return [found | _clean(fitted, case, key) | costs], fitted
    labels = np.array(case.site)
    rows: list[dict[str, Any]] = []
    for site in dict.fromkeys(case.site):
        mine = np.flatnonzero(labels == site)
        rows.append({"site": site} | _scores(_part(noisy, mine), case.y[mine], True))
    rows[0] |= costs
    return rows, fitted


def _fit(
    spec: ModelSpec,
    case: Simulation | Recording,
    key: int,
    timed: bool,
    earlier: Fit | None = None,
) -> tuple[Fit, Scores]:
    """Fit a model, and return what goes with the fit: costs, and the mean composite weight."""
    data = spec.view(case.data)
    fitted, costs = metered(lambda: spec.fit(data, key, earlier))
    if timed:
        start = time.process_time()
        fitted = spec.fit(data, key)
        costs["cpu_seconds"] = time.process_time() - start
    return fitted, {"weight": float(np.mean(list(fitted.weights.values())))} | costs


def _noisy(fitted: Fit, case: Simulation | Recording, key: int) -> Prediction:
    asked = {"task": case.task, "source": case.target, "key": key}
    return predict(fitted, case.support, noise=True, **asked)


def _part(prediction: Prediction, rows: np.ndarray) -> Prediction:
    """Return the prediction of some regions, without its experts."""
    names = ("component_weights", "means", "variances")
    arrays = {name: getattr(prediction, name)[:, rows] for name in names}
    alone = {"covariance": None, "experts": {}, "weights": {}}
    return dataclasses.replace(prediction, support=prediction.support[rows], **alone, **arrays)


def _scores(prediction: Prediction, y: np.ndarray, counted: bool) -> Scores:
    found = evaluate_quietly(prediction, y)
    left_out = ("missing",) if counted else ("n", "missing")
    return {k: float(v) if k != "n" else int(v) for k, v in found.items() if k not in left_out}


def _clean(fitted: Fit, case: Simulation | Recording, key: int) -> Scores:
    if not isinstance(case, Simulation):
        return {}
    found = evaluate_quietly(predict(fitted, case.support, task=case.task, key=key), case.truth)
    kept = {k: float(v) for k, v in found.items() if k not in ("n", "missing", "mape")}
    return {f"{k}_clean": v for k, v in kept.items()}


def evaluate_quietly(prediction: Any, y: np.ndarray) -> Scores:
    """Evaluate without the warning that mape says little near zero."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="mape divides")
        return evaluate(prediction, y)
