"""How parameters are found: objectives, optimisers, progress, fits."""

from mrgp.inference.ascent import Training
from mrgp.inference.bias import BiasMap
from mrgp.inference.composite import CompositeWeights, composite_weights
from mrgp.inference.curvature import adjust_curvature
from mrgp.inference.dependence import Dependence, dependence
from mrgp.inference.fits import Fit, FitError
from mrgp.inference.fitting import Evidence, fit, greatest_evidence
from mrgp.inference.leave_one_out import LeaveOneOut
from mrgp.inference.mcmc import Chains, sample_posterior
from mrgp.inference.objectives import Objective, objective
from mrgp.inference.optimisers import LBFGS, Status
from mrgp.inference.progress import Bar, Lines, Progress, Silent, as_progress
from mrgp.inference.stochastic import Adam, State, init, step
from mrgp.inference.variogram import Variogram, variogram

__all__ = [
    "LBFGS",
    "Adam",
    "Bar",
    "BiasMap",
    "Chains",
    "CompositeWeights",
    "Dependence",
    "Evidence",
    "Fit",
    "FitError",
    "LeaveOneOut",
    "Lines",
    "Objective",
    "Progress",
    "Silent",
    "State",
    "Status",
    "Training",
    "Variogram",
    "adjust_curvature",
    "as_progress",
    "composite_weights",
    "dependence",
    "fit",
    "greatest_evidence",
    "init",
    "objective",
    "sample_posterior",
    "step",
    "variogram",
]
