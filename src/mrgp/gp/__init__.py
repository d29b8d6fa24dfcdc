"""Kernel MEETS support: covariances of aggregates, conditioning, inducing inputs."""

from mrgp.gp.chunks import map_rows, rows_at_a_time, sum_rows
from mrgp.gp.conditioning import (
    Information,
    Kernels,
    LinearGaussian,
    Posterior,
    Sources,
    collapsed_log_evidence,
    collapsed_posterior,
    exact_log_evidence,
    exact_posterior,
    information,
    prior_covariance,
    whiteners,
)
from mrgp.gp.covariance import (
    QuadratureError,
    cross_covariance,
    full_covariance,
    needs_nodes,
    quadrature_error,
    variance,
)
from mrgp.gp.inducing import Inducing, place, start_locations
from mrgp.gp.mixtures import EntropyBound, Mixture
from mrgp.gp.products import (
    AtNodes,
    Marginal,
    block_information,
    mean_at_nodes,
    product_covariance,
    sum_of_products,
    too_few_nodes,
)
from mrgp.gp.smoother import Smoother, exact_smoother, sparse_smoother
from mrgp.gp.variational import Moments, Natural, Whitened, expected_log_likelihood

__all__ = [
    "AtNodes",
    "EntropyBound",
    "Inducing",
    "Information",
    "Kernels",
    "LinearGaussian",
    "Marginal",
    "Mixture",
    "Moments",
    "Natural",
    "Posterior",
    "QuadratureError",
    "Smoother",
    "Sources",
    "Whitened",
    "block_information",
    "collapsed_log_evidence",
    "collapsed_posterior",
    "cross_covariance",
    "exact_log_evidence",
    "exact_posterior",
    "exact_smoother",
    "expected_log_likelihood",
    "full_covariance",
    "information",
    "map_rows",
    "mean_at_nodes",
    "needs_nodes",
    "place",
    "prior_covariance",
    "product_covariance",
    "quadrature_error",
    "rows_at_a_time",
    "sparse_smoother",
    "start_locations",
    "sum_of_products",
    "sum_rows",
    "too_few_nodes",
    "variance",
    "whiteners",
]
