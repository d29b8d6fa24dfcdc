"""Sample the posterior of one model of an experiment."""

import time
import warnings
from typing import Any

import numpy as np

from mrgp.datasets import Simulation
from mrgp.evaluation import evaluate_quietly
from mrgp.experiments.scoring import LATENT, Scored
from mrgp.experiments.spec import ModelSpec, stop_if_stopped
from mrgp.inference import Chains, sample_posterior
from mrgp.prediction import Prediction, predict

SCORED = ("rmse", "coverage_95", "width_95")
PARAMETERS = {
    "sigma_1": "noise of the fine source, σ₁",
    "A": "variance of the kernel, A",
    "l": "lengthscale, l",
}


def sample(spec: ModelSpec, case: Simulation, key: int, settings: dict[str, Any]) -> Scored:
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
        chains = sample_posterior(
            spec.build(), data, weights=weights, key=key, progress=None, **settings
        )
    seconds = time.process_time() - start
    stop_if_stopped(chains.status)
    latent = predict(chains, case.support, task=case.task)
    found = evaluate_quietly(latent, case.truth)
    scores = {f"{name}_clean": float(found[name]) for name in SCORED}
    draws = _draws(chains, case.target)
    for name, values in draws.items():
        scores |= {name: float(values.mean()), f"{name}_sd": float(values.std())}
    size = chains.effective_sample_size()[f"noise_variance[{case.target}]"]
    scores |= {
        "sd_f": float(np.mean(latent.std)),
        "weight": 1.0 if weights is None else float(np.mean(list(weights.values()))),
        "r_hat": float(max(np.nanmax(v) for v in chains.r_hat().values() if np.isfinite(v).any())),
        "ess": float(np.min(size)),
    }
    return Scored([scores], {"cpu_seconds": seconds}, {LATENT: _moments(latent)}, draws)


def _moments(latent: Prediction) -> Prediction:
    """Return a Gaussian with the mean and variance of a mixture of many."""
    mean = latent.mean[None]
    return Prediction(
        latent.support,
        latent.task,
        latent.source,
        latent.units,
        np.ones_like(mean),
        mean,
        latent.variance[None],
    )


def _draws(chains: Chains, target: str) -> dict[str, np.ndarray]:
    """Return the noise of the target and the paper's kernel A exp(-(x - x')^2 / l)."""
    found = chains.parameters
    return {
        "sigma_1": np.sqrt(found[f"noise_variance[{target}]"]).ravel(),
        "A": found["kernel.variance"].ravel(),
        "l": 2.0 * found["kernel.lengthscale"].ravel() ** 2,
    }
