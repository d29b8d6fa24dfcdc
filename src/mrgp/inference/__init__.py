"""How parameters are found: objectives, optimisers, progress, fits."""

from mrgp.inference.ascent import Training
from mrgp.inference.fitting import Fit, FitError, fit
from mrgp.inference.objectives import Objective, objective
from mrgp.inference.optimisers import LBFGS, Status
from mrgp.inference.progress import Bar, Lines, Progress, Silent, as_progress
from mrgp.inference.stochastic import Adam, State, init, step

__all__ = [
    "LBFGS",
    "Adam",
    "Bar",
    "Fit",
    "FitError",
    "Lines",
    "Objective",
    "Progress",
    "Silent",
    "State",
    "Status",
    "Training",
    "as_progress",
    "fit",
    "init",
    "objective",
    "step",
]
