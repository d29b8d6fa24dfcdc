"""The stages of a network's fit: linear start, one component, several components (theory 3.6)."""

import dataclasses
import warnings
from typing import Any

import numpy as np

from mrgp._types import to_numpy
from mrgp.data import Dataset, Scaling, as_seed
from mrgp.gp import too_few_nodes
from mrgp.inference.coordinate import maximise_mixture, maximise_network
from mrgp.inference.objectives import Objective, as_arrays, build_objective
from mrgp.inference.optimisers import LBFGS, Optimum, Status, maximise
from mrgp.inference.progress import Progress, as_progress
from mrgp.inference.stochastic import Adam
from mrgp.models import Network, begin
from mrgp.parameters import partition, unwrap

FORERUNNER_ROWS = 1500


def check_schedule(network: Network, settings: LBFGS | Adam) -> None:
    """Refuse a schedule that the optimiser does not follow."""
    if network.schedule != "joint" and isinstance(settings, Adam):
        raise ValueError(
            f"schedule={network.schedule!r} goes with L-BFGS; give optimiser=mrgp.LBFGS(), or"
            ' leave schedule="joint" with Adam.'
        )


def begun(
    recipe: Any,
    network: Network,
    data: Dataset,
    key: Any,
    weights: Any,
    settings: LBFGS | Adam,
    progress: Any,
) -> tuple[Network, Status | None]:
    """Start a network from the linear coregionalised model, on a sample where there is much.

    The status is there where the user stopped the work.
    """
    linear = getattr(recipe, "model", recipe).forerunner
    sample = sample_of(data, key)
    scaling, unit = Scaling.of(data), log_unit(Scaling.of(data), sample)
    target = build_objective(linear.build(sample, key, like=data), sample, scaling, weights)
    steps = settings.max_steps if isinstance(settings, LBFGS) else LBFGS().max_steps
    limited = LBFGS(max_steps=steps)
    found = maximise(target, unit, limited, as_seed(key), as_progress(progress), "linear start")
    stopped = found.status if found.status.code == "interrupted" else None
    return (begin(network, to_numpy(found.model)) if found.status.ok else network), stopped


def sample_of(data: Dataset, key: Any) -> Dataset:
    """Return as many rows as the linear start looks at."""
    share = max(1, FORERUNNER_ROWS // len(data))
    return data.batch(share, as_seed(key)) if count(data) > FORERUNNER_ROWS else data


def count(data: Dataset) -> int:
    """Return the number of observed values."""
    return sum(int(o.observed.sum()) for o in data)


def log_unit(scaling: Scaling, data: Dataset) -> float:
    """Return the mean log spread of the values."""
    scales = [np.full(len(o.y), scaling.scale[scaling.index(o.task)]) for o in data.dropna()]
    return float(np.mean(np.log(np.concatenate(scales))))


def optimise_network(
    target: Objective, unit: float, settings: LBFGS, seed: int, progress: Progress
) -> Optimum:
    """Fit one component by coordinate ascent, in stages; several then start about it."""
    model = to_numpy(target.model(target.start))

    def stage(model: Any) -> Objective:
        return Objective(*as_arrays(partition(model)), records=target.records)

    def with_noises(model: Any, trained: bool) -> Any:
        return dataclasses.replace(model, tasks=model.tasks.with_noise_trained(trained))

    if model.q.logits.raw.shape[0] > 1:
        return maximise_mixture(target, unit, settings, seed, progress)
    if model.schedule == "noise-last":
        held = stage(with_noises(model, trained=False))
        found = maximise_network(held, unit, settings, seed, progress, "fit, noises held")
        model = with_noises(to_numpy(found.model), trained=True)
        if found.status.code in ("failed", "interrupted"):
            return dataclasses.replace(found, model=model)
        settings = dataclasses.replace(settings, starts=1, candidates=0)
    found = maximise_network(stage(model), unit, settings, seed, progress)
    if model.components == 1 or found.status.code in ("failed", "interrupted"):
        return found
    return maximise_mixture(stage(to_numpy(found.model)), unit, settings, seed, progress)


def warn_of_wide_regions(network: Network, data: Dataset) -> None:
    """Warn of regions that the model's quadrature cannot resolve at the fitted lengthscales."""
    for o in data:
        text = too_few_nodes(unwrap(network.kernels_f), o.support, network.rule)
        if text:
            warnings.warn(f"{o.label}: {text} in MRGPRN.", stacklevel=5)
