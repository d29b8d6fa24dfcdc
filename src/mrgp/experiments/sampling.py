"""Sample the posterior of one model of an experiment, and draw posteriors beside one another."""

import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mrgp.datasets import Simulation
from mrgp.experiments.scoring import Scores, evaluate_quietly
from mrgp.experiments.spec import ModelSpec
from mrgp.inference import Chains, sample_posterior
from mrgp.plotting import plot_posteriors
from mrgp.prediction import Prediction, predict

SCORED = ("rmse", "coverage_95", "width_95")
NAMES = {
    "sigma_1": "noise of the fine source, σ₁",
    "A": "variance of the kernel, A",
    "l": "lengthscale, l",
}


class Sampled(NamedTuple):
    """What one model's chains say of the latent function, and of the paper's parameters."""

    latent: Prediction
    draws: dict[str, np.ndarray]


def sample(
    spec: ModelSpec, case: Simulation, key: int, settings: dict[str, Any]
) -> tuple[Scores, Sampled]:
    """Sample one model for one case, and summarise what its chains say.

    `sd_f` is the mean posterior sd of the latent function; `r_hat` is the largest of all
    parameters; `ess` is that of the noise of the target.
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
        "cpu_seconds": seconds,
    }
    return scores, Sampled(latent, draws)


def _draws(chains: Chains, target: str) -> dict[str, np.ndarray]:
    """Return the noise of the target and the paper's kernel A exp(-(x - x')^2 / l)."""
    found = chains.parameters
    return {
        "sigma_1": np.sqrt(found[f"noise_variance[{target}]"]).ravel(),
        "A": found["kernel.variance"].ravel(),
        "l": 2.0 * found["kernel.lengthscale"].ravel() ** 2,
    }


def draw(path: Path, case: Simulation, by_model: dict[str, Sampled]) -> None:
    """Draw the posteriors of all models: the function, and the parameters."""
    import matplotlib.pyplot as plt

    figure = plot_posteriors(
        case.support,
        {name: sampled.latent for name, sampled in by_model.items()},
        {name: sampled.draws for name, sampled in by_model.items()},
        NAMES,
        truth=case.truth,
    )
    figure.savefig(path, dpi=120)
    plt.close(figure)
