"""How parameters are found: objectives, optimisers, progress, fits."""

from mrgp.inference.fitting import Fit, FitError, fit
from mrgp.inference.objectives import Objective, objective
from mrgp.inference.optimisers import LBFGS, Status
from mrgp.inference.progress import Bar, Lines, Progress, Silent, as_progress

__all__ = [
    "LBFGS",
    "Bar",
    "Fit",
    "FitError",
    "Lines",
    "Objective",
    "Progress",
    "Silent",
    "Status",
    "as_progress",
    "fit",
    "objective",
]
