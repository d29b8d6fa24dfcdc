"""Positive values whose error is relative: gamma and log-normal."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from mrgp.distributions import (
    GAMMAS,
    LOG_NORMALS,
    Distribution,
    Parts,
    Pieces,
    log_moments,
)
from mrgp.likelihoods.families import OfAmounts
from mrgp.likelihoods.likelihood import Rows, Values
from mrgp.likelihoods.noises import GAUSSIAN


@dataclasses.dataclass(frozen=True)
class GammaValues(OfAmounts):
    """Positive values with mean mu and a gamma distribution, whose shape is learned.

    Their standard deviation is mu / sqrt(shape).

    >>> one = np.ones(1)
    >>> round(float(GammaValues().log_prob(one, one, one)[0]), 3)  # exponential
    -1.0
    """

    name = "gamma"
    own = "shape"
    distribution = GAMMAS

    def expected_log_prob(self, y: Rows, mean: Rows, variance: Rows, noise: Rows) -> Values:
        """Return the expectation, with E[1 / mu] that of a log-normal."""
        y, k = jnp.asarray(y), jnp.asarray(noise)
        inverse = jnp.exp(0.5 * jnp.asarray(variance) - mean)
        return k * (jnp.log(k) - mean) - gammaln(k) + (k - 1.0) * jnp.log(y) - k * y * inverse

    def observe(self, parts: Parts, noise: Any, of: Distribution = LOG_NORMALS) -> Pieces:
        """Return gamma distributions about narrow pieces of mu."""
        weights, means, variances = of.pieces(parts)
        return weights, means, variances + (means**2 + variances) / noise


@dataclasses.dataclass(frozen=True)
class LogNormalValues(OfAmounts):
    """Positive values with mean mu whose logarithm is Gaussian, of a variance that is learned.

    >>> one = np.ones(1)
    >>> round(float(LogNormalValues().log_prob(one, one, one)[0]), 3)  # log N(0 | -1/2, 1)
    -1.044
    """

    name = "log_normal"
    own = "log_variance"
    distribution = LOG_NORMALS

    def expected_log_prob(self, y: Rows, mean: Rows, variance: Rows, noise: Rows) -> Values:
        """Return the expectation, in closed form."""
        logs, noise = jnp.log(jnp.asarray(y)), jnp.asarray(noise)
        return GAUSSIAN.expected_log_prob(logs, mean - 0.5 * noise, variance, noise) - logs

    def expected_log_tail(
        self, limit: Rows, mean: Rows, variance: Rows, noise: Rows, side: Rows
    ) -> Values:
        """Return the expected log probability beyond a limit."""
        logs, noise = jnp.log(jnp.asarray(limit)), jnp.asarray(noise)
        return GAUSSIAN.expected_log_tail(logs, mean - 0.5 * noise, variance, noise, side)

    def observe(self, parts: Parts, noise: Any, of: Distribution = LOG_NORMALS) -> Pieces:
        """Return log-normals: a product of two is one again."""
        weights, means, variances = parts
        _, spread = log_moments(means, variances)
        return weights, means, means**2 * np.expm1(spread + noise)
