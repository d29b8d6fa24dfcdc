"""Gaussian posteriors of whitened inducing variables (theory 2.5), and natural gradients (3.6)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp._linalg import (
    cholesky,
    gaussian_kl,
    log_determinant,
    moments_from_natural,
)
from mrgp._types import AnyArray, Scalar
from mrgp.gp.conditioning import Information, LinearGaussian, features
from mrgp.kernels import Kernel
from mrgp.supports import DEFAULT_RULE, Rule


class Whitened(eqx.Module):
    """q(u~) = N(mean, root root^T), where u = Lz u~ are the inducing variables."""

    mean: Any
    root: Any

    @property
    def covariance(self) -> Float[AnyArray, "m m"]:
        """S = root root^T."""
        return self.root @ self.root.T

    @property
    def divergence(self) -> Float[Array, ""]:
        """KL(q || N(0, I))."""
        logarithm = jnp.sum(jnp.log(jnp.diag(self.root) ** 2))
        return gaussian_kl(self.mean, jnp.sum(self.root**2), logarithm)


class Natural(eqx.Module):
    """The same q by its natural parameters: `shift` = S^-1 m and `precision` = S^-1."""

    shift: Float[AnyArray, " m"]
    precision: Float[AnyArray, "m m"]

    @classmethod
    def standard(cls, size: int) -> "Natural":
        """Return the prior N(0, I)."""
        return cls(jnp.zeros(size), jnp.eye(size))

    @classmethod
    def optimal(cls, known: Information) -> "Natural":
        """Return the q that maximises the bound, given what all data say (theory 2.4)."""
        return cls(known.score, jnp.eye(len(known.score)) + known.precision)

    def moments(self) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
        """Return mean and covariance."""
        return moments_from_natural(self.shift, self.precision)

    @property
    def divergence(self) -> Float[Array, ""]:
        """KL(q || N(0, I))."""
        mean, covariance = self.moments()
        logarithm = -log_determinant(cholesky(self.precision))
        return gaussian_kl(mean, jnp.trace(covariance), logarithm)

    def step(
        self,
        mean: Float[Array, " m"],
        slope_mean: Float[Array, " m"],
        slope_covariance: Float[Array, "m m"],
        rate: Scalar,
    ) -> "Natural":
        """Take a natural-gradient step on the bound (theory 3.6).

        Slopes are those of the expected log likelihood with respect to mean and covariance, at
        this q. With one Gaussian likelihood a step of size one lands on the optimum.
        """
        slope = 0.5 * (slope_covariance + slope_covariance.T)
        shift = (1 - rate) * self.shift + rate * (slope_mean - 2 * slope @ mean)
        target = jnp.eye(len(mean)) - 2 * slope
        return Natural(shift, (1 - rate) * self.precision + rate * target)


def expected_log_likelihood(
    kernel: Kernel,
    data: LinearGaussian,
    weight: Float[AnyArray, " n"],
    locations: Float[AnyArray, "m d"],
    prior: Float[Array, "m m"],
    mean: Float[AnyArray, " m"],
    covariance: Float[AnyArray, "m m"],
    rule: Rule = DEFAULT_RULE,
) -> Float[Array, ""]:
    """Return E_q[log p(y | L f)] of one source, each row times its weight (theory 2.5).

    `prior` is the Cholesky factor of the inducing variables' covariance. The noise here is that of
    the likelihood, not divided by weights.
    """
    alpha, own = features(kernel, data, locations, prior, rule)
    centre = alpha.T @ mean
    spread = own - jnp.sum(alpha**2, 0) + jnp.sum(alpha * (covariance @ alpha), 0)
    squares = (data.residual - centre) ** 2 + spread
    terms = -0.5 * (jnp.log(2.0 * jnp.pi * data.noise) + squares / data.noise)
    return jnp.sum(weight * terms)
