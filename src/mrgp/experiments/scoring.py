"""Fit one model of an experiment to one case, and score it."""

import time
import warnings
from typing import Any

import numpy as np

from mrgp.datasets import Recording, Simulation
from mrgp.evaluation import evaluate
from mrgp.experiments.spec import ModelSpec
from mrgp.prediction import predict

Scores = dict[str, float]


def score(spec: ModelSpec, case: Simulation | Recording, key: int, *, timed: bool = True) -> Scores:
    """Fit one model to one case and score it.

    Plain names are scores of noisy predictions against held-out observations; names that end in
    `_clean` are scores of the latent prediction against the noise-free function, where it is known.
    `cpu_seconds` is the process time of a second identical fit, when everything is compiled; it is
    left out unless `timed`.
    """
    data = spec.view(case.data)
    fitted = spec.fit(data, key)
    seconds = {}
    if timed:
        start = time.process_time()
        fitted = spec.fit(data, key)
        seconds = {"cpu_seconds": time.process_time() - start}
    asked = {"task": case.task, "key": key}
    noisy = predict(fitted, case.support, source=case.target, noise=True, **asked)
    found = evaluate_quietly(noisy, case.y)
    scores = {k: float(v) for k, v in found.items() if k not in ("n", "missing")}
    if isinstance(case, Simulation):
        found = evaluate_quietly(predict(fitted, case.support, **asked), case.truth)
        kept = {k: float(v) for k, v in found.items() if k not in ("n", "missing", "mape")}
        scores |= {f"{k}_clean": v for k, v in kept.items()}
    return scores | {"weight": float(np.mean(list(fitted.weights.values())))} | seconds


def evaluate_quietly(prediction: Any, y: np.ndarray) -> Scores:
    """Evaluate without the warning that mape says little near zero."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="mape divides")
        return evaluate(prediction, y)
