"""Values of either sign about mu: Gaussian noise, and noise with heavy tails."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc, gammaln, log_ndtr
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.distributions import (
    GAUSSIANS,
    Distribution,
    Parts,
    Pieces,
)
from mrgp.likelihoods.families import OfReals
from mrgp.likelihoods.likelihood import Rows, Values, by_quadrature

RARE = 46.0
MIXED = 0.6
LOGS = (-40.0, 4.0, 0.5)


@dataclasses.dataclass(frozen=True)
class Gaussian(OfReals):
    """Values with independent Gaussian noise: y = mu + N(0, s2).

    >>> one = np.ones(1)
    >>> found = Gaussian().expected_log_prob(one, one, one, one)
    >>> round(float(found[0]), 3)  # log N(1 | 1, 1) - 1/2
    -1.419
    """

    name = "gaussian"
    conjugate = True

    def log_prob(self, y: Rows, mu: Rows, noise: Rows) -> Values:
        """Return log N(y | mu, s2)."""
        return self.expected_log_prob(y, mu, jnp.zeros(()), noise)

    def expected_log_prob(
        self, y: Rows, mean: Rows, variance: Float[AnyArray, "*n"], noise: Rows
    ) -> Values:
        """Return E[log N(y | mu, s2)] for mu ~ N(mean, variance)."""
        squares = (jnp.asarray(y) - mean) ** 2 + variance
        return -0.5 * (jnp.log(2.0 * jnp.pi * jnp.asarray(noise)) + squares / noise)

    def expected_log_tail(
        self, limit: Rows, mean: Rows, variance: Rows, noise: Rows, side: Rows
    ) -> Values:
        """Return E[log Phi(side (mu - limit) / s)] (theory 11.4)."""
        return by_quadrature(
            lambda mu: log_ndtr(side * (mu - jnp.asarray(limit)) / jnp.sqrt(noise)), mean, variance
        )

    def observe(self, parts: Parts, noise: Any, of: Distribution = GAUSSIANS) -> Pieces:
        """Return the components of a new value: wider by the noise."""
        weights, means, variances = of.pieces(parts)
        return weights, means, variances + noise


@dataclasses.dataclass(frozen=True)
class StudentT(OfReals):
    """Values with heavy-tailed noise, by whose few outliers the field is not moved.

    `degrees` are those of freedom, above 2; the noise variance that is learned is the square of
    the t distribution's scale.

    >>> one, far = np.ones(1), np.full(1, 50.0)
    >>> round(float(StudentT().log_prob(far, 0 * one, one)[0]), 1)  # a Gaussian has -1251
    -17.1
    """

    degrees: float = 4.0
    name = "student_t"
    conjugate = False

    def __post_init__(self) -> None:
        if not 2 < float(self.degrees) < np.inf:
            raise ValueError(f"StudentT: degrees must exceed 2; got {self.degrees!r}.")
        object.__setattr__(self, "degrees", float(self.degrees))

    def log_prob(self, y: Rows, mu: Rows, noise: Rows) -> Values:
        """Return the log density of Student's t."""
        squares = (jnp.asarray(y) - mu) ** 2 / noise
        return self._constant(noise) - 0.5 * (self.degrees + 1) * jnp.log1p(squares / self.degrees)

    def expected_log_prob(self, y: Rows, mean: Rows, variance: Rows, noise: Rows) -> Values:
        """Return the expectation, from log(1 + x) as an integral of exponentials (theory 11.3).

        Their expectations are closed, and smooth however wide the field is beside the noise.
        """
        nu, noise = self.degrees, jnp.asarray(noise)
        squares = (jnp.asarray(y) - mean) ** 2

        def gap(log_t: Array) -> Array:
            rate = jnp.exp(log_t) / (nu * noise)
            wide = 1.0 + 2.0 * rate * variance
            # 1 - exp(-rate squares / wide) / sqrt(wide), exact for small rates too.
            return -jnp.expm1(-rate * squares / wide - 0.5 * jnp.log(wide))

        logs = jnp.arange(*LOGS)
        each = jax.vmap(gap)(logs)
        total = LOGS[2] * jnp.exp(-jnp.exp(logs)) @ each
        return self._constant(noise) - 0.5 * (nu + 1) * total

    def _constant(self, noise: Rows) -> Values:
        nu = self.degrees
        ways = gammaln(0.5 * (nu + 1)) - gammaln(0.5 * nu)
        return ways - 0.5 * jnp.log(nu * jnp.pi * jnp.asarray(noise))

    def expected_log_tail(
        self, limit: Rows, mean: Rows, variance: Rows, noise: Rows, side: Rows
    ) -> Values:
        """Return the expected log probability beyond a limit."""

        def log_tail(mu: Array) -> Array:
            z = side * (mu - jnp.asarray(limit)) / jnp.sqrt(noise)
            half = 0.5 * betainc(0.5 * self.degrees, 0.5, self.degrees / (self.degrees + z**2))
            return jnp.log(jnp.where(z > 0, 1.0 - half, half))

        return by_quadrature(log_tail, mean, variance)

    def observe(self, parts: Parts, noise: Any, of: Distribution = GAUSSIANS) -> Pieces:
        """Return a Gaussian for each of some precisions of the scale mixture."""
        nu = self.degrees
        step = MIXED * np.sqrt(2 / nu)
        logs = np.arange(-RARE / nu, np.log1p(RARE / nu), step)
        share = np.exp(0.5 * nu * (logs - np.exp(logs) + 1))
        share = (share / share.sum())[:, None, None]
        weights, means, variances = of.pieces(parts)
        wide = variances[None] + np.exp(-logs)[:, None, None] * noise
        found = (share * weights[None], np.broadcast_to(means, wide.shape), wide)
        weights, means, variances = (part.reshape(-1, part.shape[-1]) for part in found)
        return weights, means, variances


GAUSSIAN = Gaussian()
