"""WHAT predictions are distributed as: mixtures of Gaussians, positive values, shares, counts."""

from mrgp.distributions.counts import COUNTS, Counts
from mrgp.distributions.gaussians import (
    GAUSSIANS,
    Distribution,
    Gaussians,
    Mixtures,
    Parts,
    Pieces,
)
from mrgp.distributions.positive import (
    GAMMAS,
    LOG_NORMALS,
    PROBIT_NORMALS,
    Gammas,
    LogNormals,
    ProbitNormals,
    log_moments,
    probit_moments,
)

__all__ = [
    "COUNTS",
    "GAMMAS",
    "GAUSSIANS",
    "LOG_NORMALS",
    "PROBIT_NORMALS",
    "Counts",
    "Distribution",
    "Gammas",
    "Gaussians",
    "LogNormals",
    "Mixtures",
    "Parts",
    "Pieces",
    "ProbitNormals",
    "log_moments",
    "probit_moments",
]
