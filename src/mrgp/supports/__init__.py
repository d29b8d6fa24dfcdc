"""WHERE a value lives: points, nodes, boxes, polygons, products; quadrature; overlap clusters."""

from mrgp.supports.axes import Axis, same_turn
from mrgp.supports.clusters import Clusters, overlap_clusters
from mrgp.supports.concat import concat
from mrgp.supports.congruence import Shapes, congruent, shared_places
from mrgp.supports.covariates import Field, Grid, extend_all, same_fields
from mrgp.supports.geometry import Geometry, bounds_of
from mrgp.supports.polygons import Polygons, polygons
from mrgp.supports.product import Products, product
from mrgp.supports.quadrature import DEFAULT_RULE, GaussLegendre, Midpoint, Rule, Sobol, along
from mrgp.supports.regions import boxes, intervals, nodes, points
from mrgp.supports.support import Atoms, Boxes, Kind, Nodes, Partition, Points, Support

__all__ = [
    "DEFAULT_RULE",
    "Atoms",
    "Axis",
    "Boxes",
    "Clusters",
    "Field",
    "GaussLegendre",
    "Geometry",
    "Grid",
    "Kind",
    "Midpoint",
    "Nodes",
    "Partition",
    "Points",
    "Polygons",
    "Products",
    "Rule",
    "Shapes",
    "Sobol",
    "Support",
    "along",
    "bounds_of",
    "boxes",
    "concat",
    "congruent",
    "extend_all",
    "intervals",
    "nodes",
    "overlap_clusters",
    "points",
    "polygons",
    "product",
    "same_fields",
    "same_turn",
    "shared_places",
]
