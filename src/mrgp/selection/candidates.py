"""Kernels to try on data, the usual one first."""

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.kernels import RBF, Kernel, Matern12, Matern32, separable
from mrgp.models import plain_kernel
from mrgp.supports import Boxes, Geometry, Polygons

FEWEST = 10
"""Values below which kernels are not told apart."""

LONG = 4000
"""Values of places that repeat from which on kernels are those that go along time."""

MARGIN = 1.0
TURNED = 6.0
"""By how much a kernel has to be ahead of the usual one, and a turned ellipse."""


def families(data: Dataset) -> dict[str, tuple[Kernel | None, float]]:
    """Return kernels of one field to try, the default first, and by how much they must be ahead."""
    found: dict[str, tuple[Kernel | None, float]] = {"Matern-3/2": (None, 0.0)}
    if sum(map(len, data)) < FEWEST:
        return found
    geometry = Geometry.of(data.supports)
    found["RBF"] = plain_kernel(data, geometry, of=RBF), MARGIN
    regions = any(isinstance(o.support, Boxes | Polygons) for o in data)
    found["Matern-1/2"] = plain_kernel(data, geometry, of=Matern12), MARGIN
    names = tuple(geometry.names[d] for d in geometry.open if d not in geometry.covariates)
    if len(names) == 2 and len(geometry.spaces) == 1 and not regions:
        turned = Matern32(dims=names, metric="full")
        found["Matern-3/2 of a turned ellipse"] = turned, TURNED
    return found


def kernels_of(observed: Observations) -> dict[str, Kernel]:
    """Return kernels to try, the usual one first; a few values cannot tell them apart."""
    found: dict[str, Kernel] = {"Matern-3/2": Matern32(product=True)}
    if len(observed) < FEWEST:
        return found
    found["RBF"] = RBF()
    if not isinstance(observed.support, Boxes | Polygons):
        found["Matern-1/2"] = Matern12(product=True)
    support = observed.support
    clock, names = support.clock, support.input_names
    space = tuple(name for i, name in enumerate(names) if i != clock)
    if clock is not None and space:
        places = np.unique(np.delete(np.asarray(support.bounds[0]), clock, axis=1), axis=0)
        if 2 <= len(places) <= len(observed) // 2:
            each = {name: Matern12() for name in space}
            apart = separable(**{names[clock]: Matern32()}, **each)
            constant = Matern12(dims=space, product=True)
            found["a constant of each place, and Matern-3/2 in time"] = constant + apart
            if len(observed) > LONG:
                # The others have states in time, and go along it.
                del found["RBF"]
    return found
