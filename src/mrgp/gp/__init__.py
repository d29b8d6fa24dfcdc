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
    averages_exactly,
    cross_covariance,
    full_covariance,
    quadrature_error,
    variance,
)
from mrgp.gp.inducing import Inducing, place

__all__ = [
    "Inducing",
    "LinearGaussian",
    "Posterior",
    "QuadratureError",
    "averages_exactly",
    "collapsed_log_evidence",
    "collapsed_posterior",
    "cross_covariance",
    "exact_log_evidence",
    "exact_posterior",
    "full_covariance",
    "place",
    "quadrature_error",
    "variance",
]
