"""WHERE a value lives: points, nodes, boxes, polygons, products; quadrature; overlap clusters."""

from mrgp.supports.axes import Axis, Side, same_turn, time_column
from mrgp.supports.clusters import Clusters, overlap_clusters
from mrgp.supports.concat import concat
from mrgp.supports.congruence import Shapes, congruent, shared_places
from mrgp.supports.covariates import Column, Field, Grid, extend_all, same_fields
from mrgp.supports.geometry import Geometry, bounds_of
from mrgp.supports.lattices import Lattice, lattice_of
from mrgp.supports.places import place_in_words
from mrgp.supports.polygons import Polygons, polygons
from mrgp.supports.product import Products, product
from mrgp.supports.quadrature import DEFAULT_RULE, GaussLegendre, Midpoint, Rule, Sobol, along
from mrgp.supports.regions import boxes, intervals, nodes, points
from mrgp.supports.spaces import Spaces, check_space, grouped
from mrgp.supports.support import Atoms, Boxes, Kind, Nodes, Partition, Points, Support
from mrgp.supports.tables import neutral, recoded, with_common_tables, with_rows
from mrgp.supports.timing import Places, Timed, distinct, number_values, taken_apart

__all__ = [
    "DEFAULT_RULE",
    "Atoms",
    "Axis",
    "Boxes",
    "Clusters",
    "Column",
    "Field",
    "GaussLegendre",
    "Geometry",
    "Grid",
    "Kind",
    "Lattice",
    "Midpoint",
    "Nodes",
    "Partition",
    "Places",
    "Points",
    "Polygons",
    "Products",
    "Rule",
    "Shapes",
    "Side",
    "Sobol",
    "Spaces",
    "Support",
    "Timed",
    "along",
    "bounds_of",
    "boxes",
    "check_space",
    "concat",
    "congruent",
    "distinct",
    "extend_all",
    "grouped",
    "intervals",
    "lattice_of",
    "neutral",
    "nodes",
    "number_values",
    "overlap_clusters",
    "place_in_words",
    "points",
    "polygons",
    "product",
    "recoded",
    "same_fields",
    "same_turn",
    "shared_places",
    "taken_apart",
    "time_column",
    "with_common_tables",
    "with_rows",
]
