"""Kernel MEETS support: covariances of aggregates, conditioning, inducing inputs."""

from mrgp.gp.conditioning import (
    Information,
    LinearGaussian,
    Posterior,
    collapsed_log_evidence,
    collapsed_posterior,
    exact_log_evidence,
    exact_posterior,
    information,
)
from mrgp.gp.covariance import (
    QuadratureError,
    cross_covariance,
    full_covariance,
    needs_nodes,
    quadrature_error,
    variance,
)
from mrgp.gp.inducing import Inducing, place
from mrgp.gp.variational import Moments, Natural, Whitened, expected_log_likelihood

__all__ = [
    "Inducing",
    "Information",
    "LinearGaussian",
    "Moments",
    "Natural",
    "Posterior",
    "QuadratureError",
    "Whitened",
    "collapsed_log_evidence",
    "collapsed_posterior",
    "cross_covariance",
    "exact_log_evidence",
    "exact_posterior",
    "expected_log_likelihood",
    "full_covariance",
    "information",
    "needs_nodes",
    "place",
    "quadrature_error",
    "variance",
]
