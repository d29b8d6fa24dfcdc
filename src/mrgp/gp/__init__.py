"""Kernel MEETS support: covariances of aggregates, conditioning, inducing inputs."""

from mrgp.gp.chunks import map_rows, rows_at_a_time, sum_rows
from mrgp.gp.covariance import (
    QuadratureError,
    cross_covariance,
    full_covariance,
    needs_nodes,
    quadrature_error,
    variance,
)
from mrgp.gp.inducing import Inducing, start_locations
from mrgp.gp.mixtures import EntropyBound, Mixture
from mrgp.gp.products import (
    AtNodes,
    Marginal,
    block_information,
    mean_at_nodes,
    node_roots,
    nodes_of,
    posterior_at_nodes,
    product_covariance,
    sum_of_products,
    too_few_nodes,
)
from mrgp.gp.readings import Kernels, Posterior, Reading, Readings, Smoother, prior_covariance
from mrgp.gp.solvers import Collapsed, Exact, Solver, smoother_of
from mrgp.gp.variational import Moments, Natural, Sites, Whitened

__all__ = [
    "AtNodes",
    "Collapsed",
    "EntropyBound",
    "Exact",
    "Inducing",
    "Kernels",
    "Marginal",
    "Mixture",
    "Moments",
    "Natural",
    "Posterior",
    "QuadratureError",
    "Reading",
    "Readings",
    "Sites",
    "Smoother",
    "Solver",
    "Whitened",
    "block_information",
    "cross_covariance",
    "full_covariance",
    "map_rows",
    "mean_at_nodes",
    "needs_nodes",
    "node_roots",
    "nodes_of",
    "posterior_at_nodes",
    "prior_covariance",
    "product_covariance",
    "quadrature_error",
    "rows_at_a_time",
    "smoother_of",
    "start_locations",
    "sum_of_products",
    "sum_rows",
    "too_few_nodes",
    "variance",
]
