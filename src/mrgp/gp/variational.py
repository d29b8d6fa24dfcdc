"""Gaussian posteriors of whitened inducing variables, and natural gradients (theory 2.5)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp._linalg import gaussian_kl, moments_from_natural
from mrgp._types import AnyArray, Scalar


class Whitened(eqx.Module):
    """q(u~) = N(mean, L L^T) with L the lower triangle of `root`, for inducing u = Lz u~.

    >>> q = Whitened(mean=jnp.array([2.0]), root=jnp.array([[1.0]]))
    >>> float(q.divergence)  # 2^2 / 2
    2.0
    """

    mean: Any
    root: Any

    def quadratic(self, alpha: Float[Array, "m n"]) -> Float[Array, " n"]:
        """Return alpha_n^T S alpha_n."""
        return jnp.sum((jnp.tril(self.root).T @ alpha) ** 2, 0)

    @property
    def divergence(self) -> Float[Array, ""]:
        """KL(q || N(0, I))."""
        logarithm = jnp.sum(jnp.log(jnp.diag(self.root) ** 2))
        return gaussian_kl(self.mean, jnp.sum(jnp.tril(self.root) ** 2), logarithm)


class Moments(eqx.Module):
    """The same q by its mean and covariance, in which natural gradients take their slopes.

    >>> q = Moments(mean=jnp.zeros(2), covariance=jnp.diag(jnp.array([1.0, 3.0])))
    >>> q.quadratic(jnp.array([[1.0], [2.0]])).tolist()
    [13.0]
    """

    mean: Float[AnyArray, " m"]
    covariance: Float[AnyArray, "m m"]

    def quadratic(self, alpha: Float[Array, "m n"]) -> Float[Array, " n"]:
        """Return alpha_n^T S alpha_n."""
        return jnp.sum(alpha * (self.covariance @ alpha), 0)


class Sites(eqx.Module):
    """The same q as the prior times what data could have said: precision I + R R^T, shift S^-1 m.

    R is the lower triangle of `root`. No q of this form is wider than the prior, so that it can be
    held as a `Posterior`.

    >>> Sites(shift=jnp.array([2.0]), root=jnp.array([[1.0]])).natural.precision.tolist()
    [[2.0]]
    """

    shift: Any
    root: Any

    @property
    def natural(self) -> "Natural":
        """The natural parameters."""
        root = jnp.tril(self.root)
        return Natural.optimal(self.shift, root @ root.T)


class Natural(eqx.Module):
    """The same q by its natural parameters: `shift` = S^-1 m and `precision` = S^-1.

    >>> q, _ = Natural(shift=jnp.array([2.0]), precision=jnp.array([[4.0]])).moments()
    >>> q.mean.round(3).tolist(), q.covariance.round(3).tolist()
    ([0.5], [[0.25]])
    """

    shift: Float[AnyArray, " m"]
    precision: Float[AnyArray, "m m"]

    @classmethod
    def standard(cls, size: int) -> "Natural":
        """Return the prior N(0, I)."""
        return cls(jnp.zeros(size), jnp.eye(size))

    @classmethod
    def optimal(cls, score: Float[AnyArray, " m"], precision: Float[AnyArray, "m m"]) -> "Natural":
        """Return the q that maximises the bound, given what all data say (theory 2.4)."""
        return cls(score, jnp.eye(len(score)) + precision)

    def moments(self) -> tuple[Moments, Float[Array, ""]]:
        """Return mean and covariance, and KL(q || N(0, I))."""
        mean, covariance, log_det = moments_from_natural(self.shift, self.precision)
        return Moments(mean, covariance), gaussian_kl(mean, jnp.trace(covariance), log_det)

    def step(self, at: Moments, slopes: Moments, rate: Scalar) -> "Natural":
        """Take a natural-gradient step on the bound (theory 2.5).

        `slopes` are those of the expected log likelihood with respect to the moments `at` this q.
        With a Gaussian likelihood a step of size one lands on the optimum.
        """
        slope = 0.5 * (slopes.covariance + slopes.covariance.T)
        shift = (1 - rate) * self.shift + rate * (slopes.mean - 2 * slope @ at.mean)
        target = jnp.eye(len(at.mean)) - 2 * slope
        return Natural(shift, (1 - rate) * self.precision + rate * target)
