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


Kernels = tuple[Kernel, ...]
"""The kernels of independent GPs, f_1 to f_Q (bound and unwrapped)."""

Ratio = Float[AnyArray, " q"]


class LinearGaussian(NamedTuple):
    """Residuals e = sum_q r_q L f_q + noise of one source, for independent GPs f_q.

    `noise` is the effective noise variance of every row, s2 / phi under a composite weight phi.

    >>> from mrgp import points
    >>> x, e = points([[0.0], [1.0]]), jnp.array([2.0, 3.0])
    >>> data = LinearGaussian(x, ratio=jnp.ones(1), residual=e, noise=jnp.ones(2))
    >>> data.take(jnp.array([1])).residual.tolist()
    [3.0]
    """

    support: Support
    ratio: Ratio
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
    """Gaussian processes given data, as covariances with a set of anchors.

    With k the covariances between g = sum_q r_q L f_q and the anchors: mean k^T alpha, variance
    var(g) - |root k|^2. Anchors are inducing inputs of each f_q, or the data's own supports, with
    ratios of their own. `unexplained` is the prior variance that inducing inputs cannot express,
    as a share of the noise, on average.

    >>> from mrgp import RBF, points
    >>> kernels, x, one = (RBF(1.0, variance=1.0, dims=0),), points([[0.0]]), jnp.ones(1)
    >>> posterior = exact_posterior(kernels, (LinearGaussian(x, one, 2 * one, noise=one),))
    >>> [round(float(moment[0]), 3) for moment in posterior.moments(kernels, one, x)]
    [1.0, 0.5]
    """

    anchors: tuple[Support, ...]
    ratios: tuple[Ratio, ...]
    alpha: Float[AnyArray, " m"]
    root: Float[AnyArray, "r m"]
    unexplained: Float[AnyArray, ""]

    def moments(
        self, kernels: Kernels, ratio: Ratio, support: Support, rule: Rule = DEFAULT_RULE
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return mean and variance of sum_q r_q L f_q on a support."""
        cross = self.cross(kernels, ratio, support, rule)
        explained = jnp.sum((cross @ self.root.T) ** 2, 1)
        parts = (r**2 * variance(k, support, rule) for k, r in zip(kernels, ratio, strict=True))
        prior = functools.reduce(jnp.add, parts)
        return cross @ self.alpha, jnp.maximum(prior - explained, 0.0)

    def joint(
        self, kernels: Kernels, ratio: Ratio, support: Support, rule: Rule = DEFAULT_RULE
    ) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """Return mean and full covariance of sum_q r_q L f_q on a support."""
        cross = self.cross(kernels, ratio, support, rule)
        explained = cross @ self.root.T
        prior = _mixed(kernels, ratio, support, ratio, support, rule)
        return cross @ self.alpha, prior - explained @ explained.T

    def cross(
        self, kernels: Kernels, ratio: Ratio, support: Support, rule: Rule = DEFAULT_RULE
    ) -> Float[Array, "n m"]:
        """Return the covariance between sum_q r_q L f_q and the anchors."""
        blocks = (
            _mixed(kernels, ratio, support, r, anchor, rule)
            for anchor, r in zip(self.anchors, self.ratios, strict=True)
        )
        return jnp.concatenate(list(blocks), 1)


Sources = tuple[LinearGaussian, ...]


def _mixed(
    kernels: Kernels, ratio: Ratio, first: Support, other: Ratio, second: Support, rule: Rule
) -> Float[Array, "n m"]:
    """Return the covariance between sum_q r_q L f_q and sum_q r'_q L' f_q."""
    parts = (
        r * s * cross_covariance(k, first, second, rule)
        for k, r, s in zip(kernels, ratio, other, strict=True)
    )
    return functools.reduce(jnp.add, parts)


def exact_log_evidence(
    kernels: Kernels,
    sources: Sources,
    rule: Rule = DEFAULT_RULE,
    shared: Float[Array, "n n"] | None = None,
) -> Float[Array, ""]:
    """Return the log evidence under the dense covariance (theory 2.3).

    `shared` is the covariance of errors that values have in common, beyond the noise of each.

    >>> from mrgp import RBF, points
    >>> kernels, one = (RBF(1.0, variance=1.0, dims=0),), jnp.ones(1)
    >>> data = LinearGaussian(points([[0.0]]), one, residual=2 * one, noise=one)
    >>> round(float(exact_log_evidence(kernels, (data,))), 3)  # log N(2 | 0, 1 + 1)
    -2.266
    """
    residual = jnp.concatenate([s.residual for s in sources])
    return gaussian_log_density(residual, _exact_factor(kernels, sources, rule, shared))


def exact_posterior(
    kernels: Kernels,
    sources: Sources,
    rule: Rule = DEFAULT_RULE,
    shared: Float[Array, "n n"] | None = None,
) -> Posterior:
    """Condition on the data, anchored at the data's own supports.

    >>> from mrgp import RBF, points
    >>> kernels, one = (RBF(1.0, variance=1.0, dims=0),), jnp.ones(1)
    >>> data = LinearGaussian(points([[0.0]]), one, residual=2 * one, noise=one)
    >>> exact_posterior(kernels, (data,)).alpha.round(3).tolist()  # 2 / (1 + 1)
    [1.0]
    """
    factor = _exact_factor(kernels, sources, rule, shared)
    root = inverse_lower(factor)
    alpha = root.T @ (root @ jnp.concatenate([s.residual for s in sources]))
    anchors, ratios = zip(*((s.support, s.ratio) for s in sources), strict=True)
    return Posterior(anchors, ratios, alpha, root, jnp.zeros(()))


def prior_covariance(kernels: Kernels, sources: Sources, rule: Rule) -> Float[Array, "n n"]:
    """Return the covariance of what all sources see, without noise.

    >>> from mrgp import RBF, points
    >>> x, one = points([[0.0]]), jnp.ones(1)
    >>> twice = LinearGaussian(x, 2 * one, residual=one, noise=one)
    >>> once = twice._replace(ratio=one)
    >>> prior_covariance((RBF(1.0, variance=1.0, dims=0),), (once, twice), DEFAULT_RULE).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    total = jnp.zeros(())
    for q, kernel in enumerate(kernels):
        blocks = full_covariance(kernel, tuple(s.support for s in sources), rule)
        scaled = [
            [a.ratio[q] * b.ratio[q] * block for b, block in zip(sources, row, strict=True)]
            for a, row in zip(sources, blocks, strict=True)
        ]
        total = total + jnp.block(scaled)
    return total


def _exact_factor(
    kernels: Kernels, sources: Sources, rule: Rule, shared: Float[Array, "n n"] | None
) -> Float[Array, "n n"]:
    noise = jnp.concatenate([s.noise for s in sources])
    total = add_diagonal(prior_covariance(kernels, sources, rule), noise)
    return cholesky(total if shared is None else total + shared)


Whiteners = tuple[Float[Array, "m m"], ...]


def whiteners(kernels: Kernels, locations: Float[AnyArray, "m d"]) -> Whiteners:
    """Return what turns the inducing variables of each GP white.

    >>> from mrgp import RBF
    >>> (white,) = whiteners((RBF(1.0, variance=4.0, dims=0),), jnp.zeros((1, 1)))
    >>> white.round(3).tolist()
    [[0.5]]
    """
    return tuple(whitener(k.cross(locations, locations)) for k in kernels)


def features(
    kernels: Kernels,
    data: LinearGaussian,
    locations: Float[AnyArray, "m d"],
    whiten: Whiteners,
    rule: Rule = DEFAULT_RULE,
) -> tuple[Float[Array, "qm n"], Float[Array, " n"]]:
    """Return the covariance of sum_q r_q L f_q with whitened inducing variables, and its variance.

    Inducing variables of all GPs are stacked, those of the first GP first.
    """
    inducing = Points(locations, jnp.ones(locations.shape[0]))
    stacked, own = [], jnp.zeros(len(data.support))
    for kernel, ratio, white in zip(kernels, jnp.asarray(data.ratio), whiten, strict=True):
        stacked.append(white @ (ratio * cross_covariance(kernel, data.support, inducing, rule)).T)
        own = own + ratio**2 * variance_by_shape(kernel, data.support, data.shapes, rule)
    return jnp.concatenate(stacked), own


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
    kernels: Kernels,
    sources: Sources,
    locations: Float[AnyArray, "m d"],
    whiten: Whiteners,
    rule: Rule = DEFAULT_RULE,
) -> Information:
    """Sum the information of all rows, so many at a time that memory does not grow with n.

    >>> from mrgp import RBF, points
    >>> kernels, one, z = (RBF(1.0, variance=1.0, dims=0),), jnp.ones(1), jnp.zeros((1, 1))
    >>> data = LinearGaussian(points([[0.0]]), one, residual=2 * one, noise=one)
    >>> known = information(kernels, (data,), z, whiteners(kernels, z))
    >>> round(float(known.score[0]), 3), round(float(known.squares), 3)
    (2.0, 4.0)
    """
    m = len(kernels) * locations.shape[0]
    size = max(1, BLOCK_BYTES // (8 * m))

    def of_rows(data: LinearGaussian, used: Float[Array, " b"]) -> Information:
        alpha, own = features(kernels, data, locations, whiten, rule)
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
    kernels: Kernels,
    sources: Sources,
    locations: Float[AnyArray, "m d"],
    rule: Rule = DEFAULT_RULE,
) -> Float[Array, ""]:
    """Return the collapsed lower bound on the log evidence (theory 2.4).

    >>> from mrgp import RBF, points
    >>> kernels, one = (RBF(1.0, variance=1.0, dims=0),), jnp.ones(1)
    >>> data = LinearGaussian(points([[0.0]]), one, residual=2 * one, noise=one)
    >>> round(float(collapsed_log_evidence(kernels, (data,), jnp.zeros((1, 1)))), 3)
    -2.266
    """
    whiten = whiteners(kernels, locations)
    return information(kernels, sources, locations, whiten, rule).log_evidence


def collapsed_posterior(
    kernels: Kernels,
    sources: Sources,
    locations: Float[AnyArray, "m d"],
    rule: Rule = DEFAULT_RULE,
) -> Posterior:
    """Condition through inducing inputs with the optimal q(u) of the collapsed bound.

    >>> from mrgp import RBF, points
    >>> kernels, x, one = (RBF(1.0, variance=1.0, dims=0),), points([[0.0]]), jnp.ones(1)
    >>> data = LinearGaussian(x, one, residual=2 * one, noise=one)
    >>> found = collapsed_posterior(kernels, (data,), locations=jnp.zeros((1, 1)))
    >>> [round(float(moment[0]), 3) for moment in found.moments(kernels, one, x)]
    [1.0, 0.5]
    """
    whiten = whiteners(kernels, locations)
    known = information(kernels, sources, locations, whiten, rule)
    count = sum(s.residual.shape[0] for s in sources)
    # A root of B B^T by eigenvectors, which has no more rows than B.
    eigenvalues, vectors = jnp.linalg.eigh(known.precision)
    basis = vectors * jnp.sqrt(jnp.maximum(eigenvalues, 0.0))[None, :]
    return inducing_posterior(known.score, basis, locations, whiten, known.unexplained / count)


def inducing_posterior(
    score: Float[Array, " qm"],
    basis: Float[Array, "qm r"],
    locations: Float[AnyArray, "m d"],
    whiten: Whiteners,
    unexplained: Float[AnyArray, ""],
) -> Posterior:
    """Return the posterior of whitened inducing variables of precision I + B B^T and given score.

    I - (I + B B^T)^-1 = B (I + B^T B)^-1 B^T: prediction is one matrix product.

    >>> one, whiten = jnp.ones((1, 1)), (jnp.ones((1, 1)),)
    >>> found = inducing_posterior(2 * one[0], one, jnp.zeros((1, 1)), whiten, jnp.zeros(()))
    >>> found.alpha.round(3).tolist()  # 2 / (1 + 1)
    [1.0]
    """
    factor = cholesky(add_diagonal(basis @ basis.T, 1.0))
    whitened = solve_upper(factor, solve_lower(factor, score))
    inner = cholesky(add_diagonal(basis.T @ basis, 1.0))
    white = jax.scipy.linalg.block_diag(*whiten)
    root = solve_lower(inner, basis.T) @ white
    anchors = (Points(locations, jnp.ones(locations.shape[0])),) * len(whiten)
    return Posterior(anchors, tuple(jnp.eye(len(whiten))), white.T @ whitened, root, unexplained)
