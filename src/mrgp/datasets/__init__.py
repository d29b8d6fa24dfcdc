"""Simulated worlds with a known truth, and recorded data with values held out."""

from mrgp.datasets.aurn import aurn
from mrgp.datasets.cams import cams
from mrgp.datasets.carolina import counts, counts_draws
from mrgp.datasets.cases import Case, Known, Recording, Simulation
from mrgp.datasets.fusion import fusion, fusion_folds
from mrgp.datasets.gauntlet import gauntlet, gauntlet_starts
from mrgp.datasets.laqn import laqn
from mrgp.datasets.loaded import Loaded
from mrgp.datasets.london import london_folds, london_no2
from mrgp.datasets.london_year import london_year, london_year_folds
from mrgp.datasets.recorded import folds, inter_task, inter_task_laqn, laqn_sites, window_means
from mrgp.datasets.simulators import (
    biased,
    biases,
    city,
    dependent,
    dependent_map,
    mcmc_dependent,
    mixing,
    outliers,
    scaling,
)

__all__ = [
    "Case",
    "Known",
    "Loaded",
    "Recording",
    "Simulation",
    "aurn",
    "biased",
    "biases",
    "cams",
    "city",
    "counts",
    "counts_draws",
    "dependent",
    "dependent_map",
    "folds",
    "fusion",
    "fusion_folds",
    "gauntlet",
    "gauntlet_starts",
    "inter_task",
    "inter_task_laqn",
    "laqn",
    "laqn_sites",
    "london_folds",
    "london_no2",
    "london_year",
    "london_year_folds",
    "mcmc_dependent",
    "mixing",
    "outliers",
    "scaling",
    "window_means",
]
