"""WHERE a value lives: points, nodes, boxes, intervals, and quadrature on them."""

from mrgp.supports.base import Atoms, Kind, Support
from mrgp.supports.geometry import Geometry
from mrgp.supports.quadrature import (
    DEFAULT_RULE,
    GaussLegendre,
    Midpoint,
    Rule,
    Sobol,
    gauss_legendre,
)
from mrgp.supports.regions import Boxes, Nodes, Points, boxes, concat, intervals, nodes, points

__all__ = [
    "DEFAULT_RULE",
    "Atoms",
    "Boxes",
    "GaussLegendre",
    "Geometry",
    "Kind",
    "Midpoint",
    "Nodes",
    "Points",
    "Rule",
    "Sobol",
    "Support",
    "boxes",
    "concat",
    "gauss_legendre",
    "intervals",
    "nodes",
    "points",
]
