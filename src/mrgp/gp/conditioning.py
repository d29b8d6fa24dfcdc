"""Linear-Gaussian conditioning: evidence and posterior, exact and collapsed (theory 2.2 to 2.4)."""

import functools
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mrgp._linalg import (
    add_diagonal,
    cholesky,
    gaussian_log_density,
    inverse_lower,
    log_determinant,
    solve_lower,
    solve_upper,
    whitener,
)
from mrgp._types import AnyArray
from mrgp.gp.covariance import cross_covariance, full_covariance, variance, variance_by_shape
from mrgp.kernels import Kernel
from mrgp.supports import DEFAULT_RULE, Points, Rule, Shapes, Support

BLOCK_BYTES = 2**25


class LinearGaussian(NamedTuple):
    """Residuals e = r L f + noise of one source.

    `noise` is the effective noise variance of every row, s2 / phi under a composite weight phi.
    """

    support: Support
    ratio: Float[AnyArray, ""]
    residual: Float[Array, " n"]
    noise: Float[Array, " n"]
    shapes: Shapes | None = None

    def take(self, rows: Int[Array, " b"]) -> "LinearGaussian":
        """Return some rows."""
        shapes = None if self.shapes is None else self.shapes[rows]
        return LinearGaussian(
            self.support[rows], self.ratio, self.residual[rows], self.noise[rows], shapes
        )


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


Sources = tuple[LinearGaussian, ...]


def exact_log_evidence(
    kernel: Kernel, sources: Sources, rule: Rule = DEFAULT_RULE
) -> Float[Array, ""]:
    """Return the log evidence under the dense covariance (theory 2.3)."""
    residual = jnp.concatenate([s.residual for s in sources])
    return gaussian_log_density(residual, _exact_factor(kernel, sources, rule))


def exact_posterior(kernel: Kernel, sources: Sources, rule: Rule = DEFAULT_RULE) -> Posterior:
    """Condition on the data, anchored at the data's own supports."""
    factor = _exact_factor(kernel, sources, rule)
    root = inverse_lower(factor)
    alpha = root.T @ (root @ jnp.concatenate([s.residual for s in sources]))
    anchors, ratios = zip(*((s.support, s.ratio) for s in sources), strict=True)
    return Posterior(anchors, ratios, alpha, root, jnp.zeros(()))


def _exact_factor(kernel: Kernel, sources: Sources, rule: Rule) -> Float[Array, "n n"]:
    blocks = full_covariance(kernel, tuple(s.support for s in sources), rule)
    scaled = [
        [a.ratio * b.ratio * block for b, block in zip(sources, row, strict=True)]
        for a, row in zip(sources, blocks, strict=True)
    ]
    noise = jnp.concatenate([s.noise for s in sources])
    return cholesky(add_diagonal(jnp.block(scaled), noise))


def features(
    kernel: Kernel,
    data: LinearGaussian,
    locations: Float[AnyArray, "m d"],
    whiten: Float[Array, "m m"],
    rule: Rule = DEFAULT_RULE,
) -> tuple[Float[Array, "m n"], Float[Array, " n"]]:
    """Return the covariance of r L f with whitened inducing variables, and its own variance."""
    inducing = Points(locations, jnp.ones(locations.shape[0]))
    ratio = jnp.asarray(data.ratio)
    cross = ratio * cross_covariance(kernel, data.support, inducing, rule)
    own = ratio**2 * variance_by_shape(kernel, data.support, data.shapes, rule)
    return whiten @ cross.T, own


class Information(NamedTuple):
    """What data say of whitened inducing variables (theory 2.4), summed over rows.

    With B the noise-standardised features and e the noise-standardised residuals: `precision` is
    B B^T, `score` is B e, `squares` is e^T e; `unexplained` is the prior variance outside the span
    of the inducing variables, in units of the noise; `log_noise` is the sum of log 2 pi s2.
    """

    precision: Float[Array, "m m"]
    score: Float[Array, " m"]
    squares: Float[Array, ""]
    unexplained: Float[Array, ""]
    log_noise: Float[Array, ""]

    @property
    def log_evidence(self) -> Float[Array, ""]:
        """The collapsed bound."""
        factor = cholesky(add_diagonal(self.precision, 1.0))
        projected = solve_lower(factor, self.score)
        quadratic = self.squares - jnp.vdot(projected, projected)
        return -0.5 * (quadratic + log_determinant(factor) + self.log_noise + self.unexplained)


def information(
    kernel: Kernel,
    sources: Sources,
    locations: Float[AnyArray, "m d"],
    whiten: Float[Array, "m m"],
    rule: Rule = DEFAULT_RULE,
) -> Information:
    """Sum the information of all rows, so many at a time that memory does not grow with n."""
    m = locations.shape[0]
    size = max(1, BLOCK_BYTES // (8 * m))

    def of_rows(data: LinearGaussian, used: Float[Array, " b"]) -> Information:
        alpha, own = features(kernel, data, locations, whiten, rule)
        scale = used / jnp.sqrt(data.noise)
        basis, residual = alpha * scale[None, :], data.residual * scale
        return Information(
            precision=basis @ basis.T,
            score=basis @ residual,
            squares=jnp.vdot(residual, residual),
            unexplained=jnp.sum(own * scale**2) - jnp.sum(basis**2),
            log_noise=jnp.sum(used * jnp.log(2.0 * jnp.pi * data.noise)),
        )

    parts = []
    for data in sources:
        n = data.residual.shape[0]
        if n <= size:
            parts.append(of_rows(data, jnp.ones(n)))
            continue

        # Recomputed in the backward pass: what is kept for it is one small sum a block.
        @jax.checkpoint
        def block(rows: Array, data: LinearGaussian = data, n: int = n) -> Information:
            taken = data.take(jnp.minimum(rows, n - 1))
            return of_rows(taken, jnp.where(rows < n, 1.0, 0.0))

        def add(total: Information, rows: Array, block: Any = block) -> tuple[Information, None]:
            return jax.tree.map(jnp.add, total, block(rows)), None

        blocks = math.ceil(n / size)
        rows = jnp.arange(blocks * math.ceil(n / blocks)).reshape(blocks, -1)
        zero = Information(jnp.zeros((m, m)), jnp.zeros(m), *(jnp.zeros(()) for _ in range(3)))
        parts.append(jax.lax.scan(add, zero, rows)[0])
    return functools.reduce(lambda a, b: jax.tree.map(jnp.add, a, b), parts)


def collapsed_log_evidence(
    kernel: Kernel,
    sources: Sources,
    locations: Float[AnyArray, "m d"],
    rule: Rule = DEFAULT_RULE,
) -> Float[Array, ""]:
    """Return the collapsed lower bound on the log evidence (theory 2.4)."""
    whiten = whitener(kernel.cross(locations, locations))
    return information(kernel, sources, locations, whiten, rule).log_evidence


def collapsed_posterior(
    kernel: Kernel,
    sources: Sources,
    locations: Float[AnyArray, "m d"],
    rule: Rule = DEFAULT_RULE,
) -> Posterior:
    """Condition through inducing inputs with the optimal q(u) of the collapsed bound."""
    whiten = whitener(kernel.cross(locations, locations))
    known = information(kernel, sources, locations, whiten, rule)
    factor = cholesky(add_diagonal(known.precision, 1.0))
    whitened = solve_upper(factor, solve_lower(factor, known.score))
    # I - (I + B B^T)^-1 by eigenvectors: one root, so that prediction is one matrix product.
    eigenvalues, vectors = jnp.linalg.eigh(known.precision)
    shrink = jnp.maximum(eigenvalues, 0.0) / (1.0 + jnp.maximum(eigenvalues, 0.0))
    root = (jnp.sqrt(shrink)[:, None] * vectors.T) @ whiten
    anchors = (Points(locations, jnp.ones(locations.shape[0])),)
    count = sum(s.residual.shape[0] for s in sources)
    alpha = whiten.T @ whitened
    return Posterior(anchors, (jnp.ones(()),), alpha, root, known.unexplained / count)
