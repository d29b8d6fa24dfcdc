"""Short ways to the insides of the library that many tests need."""

from mrgp.inference import Objective
from mrgp.models import as_arrays
from mrgp.parameters import unwrap

__all__ = ["as_arrays", "build_objective", "linear_of"]


def build_objective(model, data, scaling, weights):
    """Return what a fit of a built model maximises."""
    return Objective.of(model, scaling.records(data, weights))


def linear_of(model, records):
    """Return kernels of a linear model as arrays, and the readings of its sources."""
    return unwrap(model.solver.kernels), model.readings(records)
