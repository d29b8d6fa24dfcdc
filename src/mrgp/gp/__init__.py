"""Kernel MEETS support: covariances of aggregates, conditioning, inducing inputs."""

from mrgp.gp.conditioning import (
    LinearGaussian,
    Posterior,
    collapsed_log_evidence,
    collapsed_posterior,
    exact_log_evidence,
    exact_posterior,
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

__all__ = [
    "Inducing",
    "LinearGaussian",
    "Posterior",
    "QuadratureError",
    "collapsed_log_evidence",
    "collapsed_posterior",
    "cross_covariance",
    "exact_log_evidence",
    "exact_posterior",
    "full_covariance",
    "needs_nodes",
    "place",
    "quadrature_error",
    "variance",
]
