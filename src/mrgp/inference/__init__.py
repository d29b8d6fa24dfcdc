"""How parameters are found: problems, objectives, optimisers, sampling, fits."""

from mrgp.inference.ascent import Training
from mrgp.inference.densely import densely, has_dense
from mrgp.inference.fits import Fit, FitError
from mrgp.inference.fitting import Evidence, fit_problem, greatest_evidence, keep
from mrgp.inference.lbfgs import LBFGS
from mrgp.inference.loop import Optimum, Status
from mrgp.inference.mcmc import Chains, draw_posterior
from mrgp.inference.objectives import Objective
from mrgp.inference.problem import Problem, check_recipe, objective, recipe_name
from mrgp.inference.progress import Bar, Lines, Progress, Silent, as_progress
from mrgp.inference.stochastic import Adam, State, init, step

__all__ = [
    "LBFGS",
    "Adam",
    "Bar",
    "Chains",
    "Evidence",
    "Fit",
    "FitError",
    "Lines",
    "Objective",
    "Optimum",
    "Problem",
    "Progress",
    "Silent",
    "State",
    "Status",
    "Training",
    "as_progress",
    "check_recipe",
    "densely",
    "draw_posterior",
    "fit_problem",
    "greatest_evidence",
    "has_dense",
    "init",
    "keep",
    "objective",
    "recipe_name",
    "step",
]
