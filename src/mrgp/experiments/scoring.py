"""Fit one model of an experiment to one case, and score it."""

import dataclasses
import time
from typing import Any, NamedTuple

import numpy as np

from mrgp.datasets import Recording, Simulation
from mrgp.evaluation import evaluate_quietly
from mrgp.experiments.metering import metered
from mrgp.experiments.spec import ModelSpec, stop_if_stopped
from mrgp.inference import Fit
from mrgp.prediction import Prediction, predict

Scores = dict[str, float]
NOISY, LATENT = "noisy", "latent"


class Scored(NamedTuple):
    """What one model gives for one case.

    `rows` are of the whole case, or of each of its sites. `predictions` has "noisy" ones of new
    observations, "latent" ones of the function where it is known, and those of the case's maps by
    their titles; `draws` has what was sampled.

    >>> Scored(rows=[{"rmse": 0.5}], costs={"seconds": 2.0}, predictions={}, draws={}).fit is None
    True
    """

    rows: list[dict[str, Any]]
    costs: Scores
    predictions: dict[str, Prediction]
    draws: dict[str, np.ndarray]
    fit: Fit | None = None


def score(
    spec: ModelSpec,
    case: Simulation | Recording,
    key: int,
    *,
    timed: bool = True,
    earlier: Fit | None = None,
) -> Scored:
    """Fit one model to one case and score it on all values held out, or on those of each site.

    Plain names are scores of noisy predictions against held-out observations; names that end in
    `_clean` are scores of the latent prediction against the noise-free function, where it is known.
    `n` is how many values were recorded and held out. Of the costs, `seconds` and `peak_mb` are the
    wall time and the peak memory of the fit, and those of `predict_` of the prediction, compilation
    included; `cpu_seconds` is the process time of a second identical fit, when everything is
    compiled, and is left out unless `timed`. Parts of an `earlier` fit that had the same data are
    taken over.

    >>> import mrgp
    >>> spec = ModelSpec(recipe="MRGP", kernel="RBF", sources=["fine"])
    >>> found = score(spec, mrgp.datasets.dependent(0), key=0, timed=False)
    >>> bool(found.rows[0]["rmse_clean"] < 0.5)
    True
    """
    fitted, costs = _fit(spec, case, key, timed, earlier)
    asked = {"task": case.task, "key": key}
    sees = asked | {"source": case.target, "noise": True}
    noisy, of_predicting = metered(lambda: predict(fitted, case.support, **sees))
    costs |= {f"predict_{name}": value for name, value in of_predicting.items()}
    predictions = {NOISY: noisy}
    weight = {"weight": float(np.mean(list(fitted.weights.values())))}
    if isinstance(case, Simulation):
        predictions[LATENT] = predict(fitted, case.support, **asked)
        whole = _scores(noisy, case.y, "n") | _clean(predictions[LATENT], case.truth)
        return Scored([whole | weight], costs, predictions, {}, fitted)
    for title, support in case.maps.items():
        predictions[title] = predict(fitted, support, **asked, source=case.target)
    rows = [_scores(noisy, case.y)] if case.site is None else _by_site(noisy, case.y, case.site)
    rows[0] |= weight
    return Scored(rows, costs, predictions, {}, fitted)


def _fit(
    spec: ModelSpec, case: Simulation | Recording, key: int, timed: bool, earlier: Fit | None
) -> tuple[Fit, Scores]:
    data = spec.view(case.data)
    fitted, costs = metered(lambda: spec.fit(data, key, earlier))
    stop_if_stopped(fitted.status)
    if timed:
        start = time.process_time()
        fitted = spec.fit(data, key)
        costs["cpu_seconds"] = time.process_time() - start
        stop_if_stopped(fitted.status)
    return fitted, costs


def _by_site(noisy: Prediction, y: np.ndarray, site: tuple[str, ...]) -> list[dict[str, Any]]:
    labels = np.array(site)
    rows = []
    for name in dict.fromkeys(site):
        mine = np.flatnonzero(labels == name)
        rows.append({"site": name} | _scores(_part(noisy, mine), y[mine]))
    return rows


def _part(prediction: Prediction, rows: np.ndarray) -> Prediction:
    """Return the prediction of some regions, without its experts."""
    names = ("component_weights", "means", "variances")
    arrays = {name: getattr(prediction, name)[:, rows] for name in names}
    alone = {"covariance": None, "experts": {}, "weights": {}}
    return dataclasses.replace(prediction, support=prediction.support[rows], **alone, **arrays)


def _scores(prediction: Prediction, y: np.ndarray, *left_out: str) -> Scores:
    found = evaluate_quietly(prediction, y)
    kept = {k: v for k, v in found.items() if k not in ("missing", *left_out)}
    return {k: int(v) if k == "n" else float(v) for k, v in kept.items()}


def _clean(latent: Prediction, truth: np.ndarray) -> Scores:
    return {f"{k}_clean": v for k, v in _scores(latent, truth, "n", "mape").items()}
