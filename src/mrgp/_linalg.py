"""Cholesky with escalating jitter, triangular solves, Gaussian densities and divergences."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from mrgp._types import AnyArray, Number, Square

JITTER = 1e-10
"""Jitter added to a prior covariance, relative to its mean diagonal."""

ESCALATION = 10.0
CEILING = 1e-3
_SMALL = 128


def add_diagonal(matrix: Square, diagonal: Float[Array, " n"] | Number | float) -> Square:
    """Add a vector, or one number, to the diagonal."""
    # A masked sum fuses with its neighbours; a scatter onto the diagonal would not.
    column = jnp.broadcast_to(jnp.asarray(diagonal, matrix.dtype), matrix.shape[:1])[:, None]
    return matrix + jnp.where(jnp.eye(matrix.shape[0], dtype=bool), column, 0.0)


@jax.custom_jvp
def cholesky(matrix: Square) -> Square:
    """Factor a positive definite matrix, adding jitter only where the plain factor fails.

    The derivative is that of the factor found; the escalated jitter counts as a constant.
    """
    factor = jnp.linalg.cholesky(matrix)
    scale = jnp.trace(matrix) / matrix.shape[0]

    def failed(state: tuple[Array, Array]) -> Array:
        relative, candidate = state
        return (relative < CEILING) & ~jnp.all(jnp.isfinite(candidate))

    def grow(state: tuple[Array, Array]) -> tuple[Array, Array]:
        relative = state[0] * ESCALATION
        return relative, jnp.linalg.cholesky(add_diagonal(matrix, relative * scale))

    start = jnp.full((), JITTER / ESCALATION, matrix.dtype)
    return jax.lax.while_loop(failed, grow, (start, factor))[1]


@cholesky.defjvp
def _cholesky_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (matrix,), (tangent,) = primals, tangents
    factor = cholesky(matrix)
    inner = solve_lower(factor, solve_lower(factor, tangent).T)
    return factor, factor @ _half(inner)


def whitener(covariance: Square, jitter: float = JITTER) -> Square:
    """Return L^-1 for a covariance L L^T, to which `jitter` times its mean diagonal is added.

    L^-1 u is white for u with this covariance. Where the jitter is not enough it grows, as in
    `cholesky`; past 1e-3 the result is NaN, which the fit reports as a numerical failure.
    """
    scale = jnp.trace(covariance) / covariance.shape[0]
    return _inverse_factor(add_diagonal(covariance, jitter * scale))


@jax.custom_jvp
def _inverse_factor(matrix: Square) -> Square:
    return inverse_lower(cholesky(matrix))


@_inverse_factor.defjvp
def _inverse_factor_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    # Matrix products alone: several times faster than triangular solves on small matrices.
    (matrix,), (tangent,) = primals, tangents
    inverse = _inverse_factor(matrix)
    return inverse, -_half(inverse @ tangent @ inverse.T) @ inverse


def _half(symmetric: Square) -> Square:
    """Return the lower triangle X with X + X^T = symmetric."""
    n = symmetric.shape[0]
    return symmetric * (jnp.tri(n, dtype=float) - 0.5 * jnp.eye(n))


def solve_lower(factor: Square, right: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
    """Solve L x = b."""
    return solve_triangular(factor, right, lower=True)


def inverse_lower(factor: Square) -> Square:
    """Return L^-1, by halves, as matrix products: a third of the work of solving L X = I."""
    n = factor.shape[0]
    if n <= _SMALL:
        return solve_lower(factor, jnp.eye(n))
    half = n // 2
    first, last = inverse_lower(factor[:half, :half]), inverse_lower(factor[half:, half:])
    below = -last @ factor[half:, :half] @ first
    return jnp.block([[first, jnp.zeros((half, n - half))], [below, last]])


def solve_upper(factor: Square, right: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
    """Solve L^T x = b for lower-triangular L."""
    return solve_triangular(factor, right, lower=True, trans="T")


def log_determinant(factor: Square) -> Number:
    """Return log |L L^T|."""
    return 2.0 * jnp.sum(jnp.log(jnp.diag(factor)))


@jax.custom_jvp
def log_density(residual: Float[Array, " n"], covariance: Square) -> Number:
    """Return log N(residual | 0, covariance), without the constant, n/2 log 2 pi."""
    factor = cholesky(covariance)
    white = solve_lower(factor, residual)
    return -0.5 * (jnp.vdot(white, white) + log_determinant(factor))


@log_density.defjvp
def _log_density_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Number, Number]:
    # The derivative is known: one inverse, instead of a way back through factor and solves.
    (residual, covariance), (moved, changed) = primals, tangents
    factor = cholesky(covariance)
    root = solve_lower(factor, jnp.eye(len(residual)))
    white = root @ residual
    alpha, precision = root.T @ white, root.T @ root
    value = -0.5 * (jnp.vdot(white, white) + log_determinant(factor))
    slope = 0.5 * (alpha[:, None] * alpha[None, :] - precision)
    return value, jnp.sum(slope * changed) - jnp.vdot(alpha, moved)


def eigh(symmetric: Square) -> tuple[Float[Array, " n"], Square]:
    """Return eigenvalues and eigenvectors."""
    return jnp.linalg.eigh(symmetric)


def block_diagonal(blocks: Sequence[Square]) -> Square:
    """Put matrices on the diagonal of one."""
    return jax.scipy.linalg.block_diag(*blocks)


def gaussian_kl(mean: Float[AnyArray, " n"], trace: Number, log_det: Number) -> Number:
    """Return KL(N(mean, S) || N(0, I)) from the trace and log determinant of S."""
    return 0.5 * (trace + jnp.vdot(mean, mean) - mean.shape[0] - log_det)


def moments_from_natural(
    shift: Float[AnyArray, " n"], precision: Float[AnyArray, "n n"]
) -> tuple[Float[Array, " n"], Square, Number]:
    """Return mean, covariance and log |S| of a Gaussian by its natural parameters S^-1 m, S^-1."""
    factor = cholesky(jnp.asarray(precision))
    inverse = inverse_lower(factor)
    covariance = inverse.T @ inverse
    return covariance @ shift, covariance, -log_determinant(factor)
