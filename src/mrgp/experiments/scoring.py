"""Fit or sample one model of an experiment for one case, and score it."""

import dataclasses
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mrgp.data import Observations
from mrgp.datasets import Case
from mrgp.evaluation import attempt, evaluate
from mrgp.experiments.metering import metered
from mrgp.experiments.rivals import ModelSpec, uninterrupted
from mrgp.inference import Chains, Fit
from mrgp.prediction import Prediction, predict
from mrgp.supports import Support
from mrgp.weighting import sample_posterior

Scores = dict[str, float]
NOISY, LATENT = "noisy", "latent"
OF_MEANS = ("rmse", "crps", "coverage_95")
ARRAYS = ("component_weights", "means", "variances")
PARAMETERS = {
    "sigma_1": "noise of the fine source, σ₁",
    "A": "variance of the kernel, A",
    "l": "lengthscale, l",
}


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
    spec: ModelSpec, case: Case, key: int, *, timed: bool = True, earlier: Fit | None = None
) -> Scored:
    """Fit one model to one case and score it on all values held out, or on those of each site.

    Plain names are scores of noisy predictions against held-out observations; names that end in
    `_clean` are scores of the latent prediction against the noise-free function, where it is known.
    `n` is how many values were recorded and held out. Of the costs, `seconds` and `peak_mb` are the
    wall time and the peak memory of the fit, and those of `predict_` of the prediction, compilation
    included; `cpu_seconds` is the process time of a second identical fit, when everything is
    compiled, and is left out unless `timed`. Scores of the case's means have their names behind,
    and so have those of the latent prediction on supports where the field is known.
    Parts of an `earlier` fit that had the same data are taken over.

    >>> import mrgp
    >>> spec = ModelSpec(recipe="MRGP", kernel="RBF", sources=["fine"])
    >>> found = score(spec, mrgp.datasets.dependent(0), key=0, timed=False)
    >>> bool(found.rows[0]["rmse_clean"] < 0.5)
    True
    """
    case = case if spec.covariates else case.bare
    data, held_out = spec.view(case.data), case.held_out
    found = attempt(lambda: uninterrupted(spec.fit(data, key, earlier)), held_out, key, metered)
    fitted, costs = found.fit, found.costs
    if timed:
        start = time.process_time()
        again = spec.fit(data, key)
        costs["cpu_seconds"] = time.process_time() - start
        uninterrupted(again)
    asked = {"task": case.task, "key": key}
    predictions = {NOISY: found.prediction}
    for title, support in case.maps.items():
        predictions[title] = predict(fitted, support, **asked, source=case.target)
    if case.truth is not None:
        predictions[LATENT] = predict(fitted, case.support, **asked)
        clean = plain(evaluate(predictions[LATENT], case.truth), "n", "mape")
        rows = [plain(found.scores, "n") | {f"{name}_clean": v for name, v in clean.items()}]
    elif case.site is None:
        rows = [plain(found.scores)]
    else:
        rows = _by_site(found.prediction, case.y, np.array(case.site))
    rows[0] |= {"weight": float(np.mean(list(fitted.weights.values())))}
    for name, mean in case.means.items():
        rows[0] |= with_suffix(evaluate(_of_means(fitted, mean, key), mean.y), name)
    rows[0] |= of_fields(case, lambda support: predict(fitted, support, **asked))
    return Scored(rows, costs, predictions, {}, fitted)


def of_fields(case: Case, field: Callable[[Support], Prediction]) -> Scores:
    """Score what is predicted of the field on supports where it is known, by their names."""
    found: Scores = {}
    for name, (support, values) in case.fields.items():
        found |= with_suffix(evaluate(field(support), values), name)
    return found


def _of_means(fitted: Fit, mean: Observations, key: int) -> Prediction:
    """Predict averages of noisy values at nodes: noise of its own at each averages out."""
    asked = {"task": mean.task, "source": mean.name, "key": key}
    plain, noisy = (predict(fitted, mean.support, **asked, noise=n) for n in (False, True))
    share = np.sum(np.asarray(mean.support.atoms().weights) ** 2, axis=1)
    variances = plain.variances + share * np.maximum(noisy.variance - plain.variance, 0.0)
    return dataclasses.replace(plain, variances=variances)


def with_suffix(scores: Scores, name: str) -> Scores:
    """Name the scores of means over windows, and of other supports.

    >>> with_suffix({"rmse": 2.0, "n": 3, "mape": 0.1}, "day")
    {'rmse_day': 2.0}
    """
    return {f"{key}_{name}": scores[key] for key in OF_MEANS if key in scores}


def _by_site(noisy: Prediction, y: np.ndarray, site: np.ndarray) -> list[dict[str, Any]]:
    rows = []
    for name in dict.fromkeys(site.tolist()):
        mine = np.flatnonzero(site == name)
        rows.append({"site": name} | plain(evaluate(noisy[mine], y[mine])))
    return rows


def plain(scores: Scores, *left_out: str) -> Scores:
    """Return scores as numbers of Python, without some of them; counts of zero have no mape."""
    gone = ("missing", *left_out, *(() if np.isfinite(scores["mape"]) else ("mape",)))
    kept = {name: value for name, value in scores.items() if name not in gone}
    return {name: int(v) if name == "n" else float(v) for name, v in kept.items()}


def sample(spec: ModelSpec, case: Case, key: int, settings: dict[str, Any]) -> Scored:
    """Sample one model for one case, and summarise what its chains say.

    `sd_f` is the mean posterior sd of the latent function; `r_hat` is the largest of all
    parameters; `ess` is that of the noise of the target. Of the function, the first two moments
    are kept.
    """
    data = spec.view(case.data)
    weights = spec.weigh(data, key)
    start = time.process_time()
    with warnings.catch_warnings():
        # How well chains have mixed is for the table to show.
        warnings.filterwarnings("ignore", message="sample_posterior")
        asked = {"weights": weights, "key": key, "progress": None}
        chains = uninterrupted(sample_posterior(spec.build(), data, **asked, **settings))
    costs = {"cpu_seconds": time.process_time() - start}
    latent = predict(chains, case.support, task=case.task)
    found = evaluate(latent, case.truth)
    row = {f"{name}_clean": float(found[name]) for name in ("rmse", "coverage_95", "width_95")}
    draws = _draws(chains, case.target)
    for name, values in draws.items():
        row |= {name: float(values.mean()), f"{name}_sd": float(values.std())}
    size = chains.effective_sample_size()[f"noise_variance[{case.target}]"]
    row |= {
        "sd_f": float(np.mean(latent.std)),
        "weight": 1.0 if weights is None else float(np.mean(list(weights.values()))),
        "r_hat": float(max(np.nanmax(v) for v in chains.r_hat().values() if np.isfinite(v).any())),
        "ess": float(np.min(size)),
    }
    # Of a mixture of many, a Gaussian with its mean and variance.
    moments = (np.ones((1, len(latent))), latent.mean[None], latent.variance[None])
    kept = dataclasses.replace(latent, **dict(zip(ARRAYS, moments, strict=True)))
    return Scored([row], costs, {LATENT: kept}, draws)


def _draws(chains: Chains, target: str) -> dict[str, np.ndarray]:
    """Return the noise of the target and the paper's kernel A exp(-(x - x')^2 / l)."""
    found = chains.parameters
    return {
        "sigma_1": np.sqrt(found[f"noise_variance[{target}]"]).ravel(),
        "A": found["kernel.variance"].ravel(),
        "l": 2.0 * found["kernel.lengthscale"].ravel() ** 2,
    }
