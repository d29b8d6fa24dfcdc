"""Whole numbers: counts, and successes among trials."""

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax.scipy.special import gammaln, log_ndtr
from jaxtyping import Array

from mrgp.distributions import (
    COUNTS,
    LOG_NORMALS,
    Distribution,
    Parts,
    Pieces,
)
from mrgp.likelihoods.families import OfCounts
from mrgp.likelihoods.likelihood import Domain, Rows, Values, by_quadrature
from mrgp.links import Scale


@dataclasses.dataclass(frozen=True)
class Poisson(OfCounts):
    """Counts whose variance is their mean mu: cases, births, collisions, photons.

    `bound="jensen"` takes the expectation of log mu over a region from below, so that the bound of
    a fit is a true one; "matched" takes it from a log-normal with the mean and the variance of mu,
    which is nearer (theory 11.3).

    >>> import numpy as np
    >>> one = np.ones(1)
    >>> found = Poisson().expected_log_prob(2 * one, 0 * one, 0 * one, one)
    >>> round(float(found[0]), 3)  # log(e^-1 / 2)
    -1.693
    """

    bound: str = "matched"
    name = "poisson"
    own = None

    def __post_init__(self) -> None:
        if self.bound not in ("matched", "jensen"):
            raise ValueError(f"Poisson: bound= is 'matched' or 'jensen'; got {self.bound!r}.")

    def expected_log_prob(self, y: Rows, mean: Rows, variance: Rows, noise: Rows) -> Values:
        """Return y E[log mu] - E[mu] - log y!."""
        y = jnp.asarray(y)
        return y * mean - jnp.exp(mean + 0.5 * jnp.asarray(variance)) - gammaln(y + 1.0)

    def observe(self, parts: Parts, noise: Any, of: Distribution = LOG_NORMALS) -> Pieces:
        """Return counts about narrow pieces of mu."""
        weights, means, variances = of.pieces(parts)
        return weights, means, means + variances


@dataclasses.dataclass(frozen=True)
class NegativeBinomial(OfCounts):
    """Counts that vary more than Poisson's: variance mu + mu^2 / r, with the dispersion r learned.

    >>> import numpy as np
    >>> one = np.ones(1)
    >>> round(float(NegativeBinomial().log_prob(0 * one, one, one)[0]), 3)  # log 1/2
    -0.693
    """

    name = "negative_binomial"
    own = "dispersion"

    def expected_log_prob(self, y: Rows, mean: Rows, variance: Rows, noise: Rows) -> Values:
        """Return the expectation over log mu ~ N(mean, variance), by quadrature."""
        y, noise = jnp.asarray(y), jnp.asarray(noise)
        return by_quadrature(lambda at: self._log_prob(y, at, noise), mean, variance)

    def _log_prob(self, y: Array, log_mu: Array, r: Array) -> Array:
        ways = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0)
        return ways + y * log_mu + r * jnp.log(r) - (y + r) * jnp.logaddexp(jnp.log(r), log_mu)

    def observe(self, parts: Parts, noise: Any, of: Distribution = LOG_NORMALS) -> Pieces:
        """Return counts about narrow pieces of mu."""
        weights, means, variances = of.pieces(parts)
        return weights, means, means + variances + (means**2 + variances) / noise


@dataclasses.dataclass(frozen=True)
class Binomial:
    """Successes among the `trials` of each row; the field is their probability.

    >>> import numpy as np
    >>> one = np.ones(1)
    >>> round(float(Binomial().log_prob(one, 0.5 * one, 2 * one)[0]), 3)  # log 1/2
    -0.693
    """

    name = "binomial"
    conjugate = False
    own = None
    distribution = COUNTS

    @property
    def scale(self) -> Scale:
        """The scale on which mu is Gaussian."""
        return "probit"

    @property
    def domain(self) -> Domain:
        """Which values there are."""
        return "successes"

    def log_prob(self, y: Rows, mu: Rows, noise: Rows) -> Values:
        """Return the log probability of y successes in `noise` trials."""
        y, mu, trials = jnp.asarray(y), jnp.asarray(mu), jnp.asarray(noise)
        return self._ways(y, trials) + y * jnp.log(mu) + (trials - y) * jnp.log1p(-mu)

    def expected_log_prob(self, y: Rows, mean: Rows, variance: Rows, noise: Rows) -> Values:
        """Return the expectation over z ~ N(mean, variance), mu = Phi(z), by quadrature."""
        y, trials = jnp.asarray(y), jnp.asarray(noise)

        def at(z: Array) -> Array:
            return y * log_ndtr(z) + (trials - y) * log_ndtr(-z)

        return self._ways(y, trials) + by_quadrature(at, mean, variance)

    def _ways(self, y: Array, trials: Array) -> Array:
        return gammaln(trials + 1.0) - gammaln(y + 1.0) - gammaln(trials - y + 1.0)

    def observe(self, parts: Parts, noise: Any, of: Distribution = LOG_NORMALS) -> Pieces:
        """Return successes at single probabilities."""
        weights, means, _ = of.pieces(parts)
        return weights, noise * means, noise * means * (1 - means)
