"""Linear-Gaussian conditioning: evidence and posterior, exact and collapsed (theory 2.2 to 2.4)."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp._linalg import (
    add_diagonal,
    cholesky,
    gaussian_log_density,
    jittered_cholesky,
    log_determinant,
    solve_lower,
    solve_upper,
)
from mrgp._types import AnyArray
from mrgp.gp.covariance import cross_covariance, full_covariance, variance
from mrgp.kernels import Kernel
from mrgp.supports import DEFAULT_RULE, Points, Rule, Support


class LinearGaussian(NamedTuple):
    """Residuals e = r L f + noise of several sources.

    `noise` is the effective noise variance of every row, s2 / phi under a composite weight phi;
    rows of all sources follow one another in the order of `supports`.
    """

    supports: tuple[Support, ...]
    ratios: tuple[Float[AnyArray, ""], ...]
    residual: Float[Array, " n"]
    noise: Float[Array, " n"]


class Posterior(eqx.Module):
    """A Gaussian process given data, as covariances with a set of anchors.

    With k the covariances between L f and the anchors: mean k^T alpha, variance
    var(L f) - |root k|^2. Anchors are inducing inputs, or the data's own supports. `unexplained` is
    the prior variance that inducing inputs cannot express, as a share of the noise, on average.
    """

    anchors: tuple[Support, ...]
    ratios: tuple[Float[AnyArray, ""], ...]
    alpha: Float[AnyArray, " m"]
    root: Float[AnyArray, "r m"]
    unexplained: Float[AnyArray, ""]

    def moments(
        self, kernel: Kernel, support: Support, rule: Rule = DEFAULT_RULE
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return mean and variance of L f on a support."""
        cross = self._cross(kernel, support, rule)
        explained = jnp.sum((cross @ self.root.T) ** 2, 1)
        return cross @ self.alpha, jnp.maximum(variance(kernel, support, rule) - explained, 0.0)

    def joint(
        self, kernel: Kernel, support: Support, rule: Rule = DEFAULT_RULE
    ) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """Return mean and full covariance of L f on a support."""
        cross = self._cross(kernel, support, rule)
        explained = cross @ self.root.T
        prior = cross_covariance(kernel, support, support, rule)
        return cross @ self.alpha, prior - explained @ explained.T

    def _cross(self, kernel: Kernel, support: Support, rule: Rule) -> Float[Array, "n m"]:
        blocks = (
            r * cross_covariance(kernel, support, anchor, rule)
            for anchor, r in zip(self.anchors, self.ratios, strict=True)
        )
        return jnp.concatenate(list(blocks), 1)


def exact_log_evidence(
    kernel: Kernel, data: LinearGaussian, rule: Rule = DEFAULT_RULE
) -> Float[Array, ""]:
    """Return the log evidence under the dense covariance (theory 2.3)."""
    return gaussian_log_density(data.residual, _exact_factor(kernel, data, rule))


def exact_posterior(kernel: Kernel, data: LinearGaussian, rule: Rule = DEFAULT_RULE) -> Posterior:
    """Condition on the data, anchored at the data's own supports."""
    factor = _exact_factor(kernel, data, rule)
    root = solve_lower(factor, jnp.eye(factor.shape[0]))
    alpha = root.T @ (root @ data.residual)
    return Posterior(data.supports, data.ratios, alpha, root, jnp.zeros(()))


def _exact_factor(kernel: Kernel, data: LinearGaussian, rule: Rule) -> Float[Array, "n n"]:
    blocks = full_covariance(kernel, data.supports, rule)
    scaled = [
        [a * b * block for b, block in zip(data.ratios, row, strict=True)]
        for a, row in zip(data.ratios, blocks, strict=True)
    ]
    return cholesky(add_diagonal(jnp.block(scaled), data.noise))


class _Projection(NamedTuple):
    """The data seen through inducing variables, noise-standardised (theory 2.4)."""

    prior: Float[Array, "m m"]
    basis: Float[Array, "m n"]
    factor: Float[Array, "m m"]
    residual: Float[Array, " n"]
    unexplained: Float[Array, ""]


def _project(
    kernel: Kernel, data: LinearGaussian, locations: Float[AnyArray, "m d"], rule: Rule
) -> _Projection:
    inducing = Points(locations, jnp.ones(locations.shape[0]))
    prior = jittered_cholesky(kernel.cross(locations, locations))
    pairs = list(zip(data.supports, data.ratios, strict=True))
    cross = jnp.concatenate([r * cross_covariance(kernel, s, inducing, rule) for s, r in pairs])
    own = jnp.concatenate([r**2 * variance(kernel, s, rule) for s, r in pairs])
    root_precision = 1.0 / jnp.sqrt(data.noise)
    basis = solve_lower(prior, (cross * root_precision[:, None]).T)
    factor = cholesky(add_diagonal(basis @ basis.T, 1.0))
    unexplained = jnp.sum(own * root_precision**2) - jnp.sum(basis**2)
    return _Projection(prior, basis, factor, data.residual * root_precision, unexplained)


def collapsed_log_evidence(
    kernel: Kernel,
    data: LinearGaussian,
    locations: Float[AnyArray, "m d"],
    rule: Rule = DEFAULT_RULE,
) -> Float[Array, ""]:
    """Return the collapsed lower bound on the log evidence (theory 2.4)."""
    p = _project(kernel, data, locations, rule)
    projected = solve_lower(p.factor, p.basis @ p.residual)
    quadratic = jnp.vdot(p.residual, p.residual) - jnp.vdot(projected, projected)
    log_noise = jnp.sum(jnp.log(2.0 * jnp.pi * data.noise))
    return -0.5 * (quadratic + log_determinant(p.factor) + log_noise + p.unexplained)


def collapsed_posterior(
    kernel: Kernel,
    data: LinearGaussian,
    locations: Float[AnyArray, "m d"],
    rule: Rule = DEFAULT_RULE,
) -> Posterior:
    """Condition through inducing inputs with the optimal q(u) of the collapsed bound."""
    p = _project(kernel, data, locations, rule)
    whitened = solve_upper(p.factor, solve_lower(p.factor, p.basis @ p.residual))
    # I - (I + B B^T)^-1 by eigenvectors: one root, so that prediction is one matrix product.
    eigenvalues, vectors = jnp.linalg.eigh(p.basis @ p.basis.T)
    shrink = jnp.maximum(eigenvalues, 0.0) / (1.0 + jnp.maximum(eigenvalues, 0.0))
    inverse = solve_lower(p.prior, jnp.eye(locations.shape[0]))
    root = (jnp.sqrt(shrink)[:, None] * vectors.T) @ inverse
    anchors = (Points(locations, jnp.ones(locations.shape[0])),)
    alpha = solve_upper(p.prior, whitened)
    return Posterior(anchors, (jnp.ones(()),), alpha, root, p.unexplained / len(data.residual))
