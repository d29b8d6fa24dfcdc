"""Checks of a fit: leave-one-out, variogram, shared errors, learned maps, effects."""

from mrgp.checks.bias import BiasMap, bias_map
from mrgp.checks.cautions import cautions
from mrgp.checks.dense import is_dense
from mrgp.checks.dependence import Dependence, Pair, dependence
from mrgp.checks.estimates import effects, has_effects
from mrgp.checks.leave_one_out import LeaveOneOut, leave_one_out
from mrgp.checks.variogram import Variogram, variogram

__all__ = [
    "BiasMap",
    "Dependence",
    "LeaveOneOut",
    "Pair",
    "Variogram",
    "bias_map",
    "cautions",
    "dependence",
    "effects",
    "has_effects",
    "is_dense",
    "leave_one_out",
    "variogram",
]
