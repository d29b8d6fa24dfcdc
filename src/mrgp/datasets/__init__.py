"""Simulated worlds with a known truth, and recorded data with values held out."""

from mrgp.datasets.recorded import (
    Recording,
    folds,
    inter_task,
    inter_task_laqn,
    laqn_sites,
    window_means,
)
from mrgp.datasets.simulators import (
    Simulation,
    biased,
    city,
    dependent,
    dependent_map,
    mcmc_dependent,
    mixing,
)

__all__ = [
    "Recording",
    "Simulation",
    "biased",
    "city",
    "dependent",
    "dependent_map",
    "folds",
    "inter_task",
    "inter_task_laqn",
    "laqn_sites",
    "mcmc_dependent",
    "mixing",
    "window_means",
]
