"""Fuse observation processes of different resolution, noise and bias with Gaussian processes."""

from mrgp.data import Dataset, Observations
from mrgp.evaluation import evaluate
from mrgp.gp import Inducing, quadrature_error
from mrgp.inference import LBFGS, Fit, FitError, fit, objective
from mrgp.io import load, save
from mrgp.kernels import (
    RBF,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    White,
    separable,
)
from mrgp.models import MRGP, CenterPoint, VBAgg
from mrgp.parameters import (
    Gamma,
    HalfNormal,
    InverseGamma,
    LogNormal,
    bounded,
    fixed,
    lower_triangular,
    positive,
)
from mrgp.prediction import Prediction, predict
from mrgp.supports import (
    GaussLegendre,
    Midpoint,
    Sobol,
    boxes,
    concat,
    intervals,
    nodes,
    points,
)

__version__ = "0.1.0"

__all__ = [
    "LBFGS",
    "MRGP",
    "RBF",
    "CenterPoint",
    "Constant",
    "Dataset",
    "Fit",
    "FitError",
    "Gamma",
    "GaussLegendre",
    "HalfNormal",
    "Inducing",
    "InverseGamma",
    "Linear",
    "LogNormal",
    "Matern12",
    "Matern32",
    "Matern52",
    "Midpoint",
    "Observations",
    "Periodic",
    "Prediction",
    "Sobol",
    "VBAgg",
    "White",
    "bounded",
    "boxes",
    "concat",
    "evaluate",
    "fit",
    "fixed",
    "intervals",
    "load",
    "lower_triangular",
    "nodes",
    "objective",
    "points",
    "positive",
    "predict",
    "quadrature_error",
    "save",
    "separable",
]
