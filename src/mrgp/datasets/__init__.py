"""Simulated worlds with a known truth, and recorded data with values held out."""

from mrgp.datasets.recorded import (
    Recording,
    folds,
    inter_task,
    inter_task_laqn,
    laqn_sites,
    window_means,
)
from mrgp.datasets.simulators import Simulation, biased, city, dependent, mixing

__all__ = [
    "Recording",
    "Simulation",
    "biased",
    "city",
    "dependent",
    "folds",
    "inter_task",
    "inter_task_laqn",
    "laqn_sites",
    "mixing",
    "window_means",
]
