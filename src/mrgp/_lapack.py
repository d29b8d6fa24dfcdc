"""The vocabulary of `_linalg` on the host, by LAPACK: nothing to compile, and no derivatives."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import linalg
from scipy.linalg import lapack

from mrgp._linalg import CEILING, ESCALATION, JITTER

Matrix = Float[np.ndarray, "n n"]
Right = Float[np.ndarray, "n *k"]


def add_diagonal(matrix: Matrix, diagonal: Any) -> Matrix:
    """Add a vector, or one number, to the diagonal."""
    return matrix + np.diag(np.broadcast_to(np.asarray(diagonal), matrix.shape[:1]))


def cholesky(matrix: Matrix) -> Matrix:
    """Factor a positive definite matrix, adding jitter only where the plain factor fails."""
    scale, relative = np.trace(matrix) / len(matrix), JITTER / ESCALATION
    shifted = matrix
    while np.isfinite(scale) and relative < CEILING:
        try:
            return linalg.cholesky(shifted, lower=True, check_finite=False)
        except linalg.LinAlgError:
            relative *= ESCALATION
            shifted = add_diagonal(matrix, relative * scale)
    return np.full_like(matrix, np.nan)


def solve_lower(factor: Matrix, right: Right) -> Right:
    """Solve L x = b."""
    return linalg.solve_triangular(factor, right, lower=True, check_finite=False)


def solve_upper(factor: Matrix, right: Right) -> Right:
    """Solve L^T x = b for lower-triangular L."""
    return linalg.solve_triangular(factor, right, trans=1, lower=True, check_finite=False)


def inverse_lower(factor: Matrix) -> Matrix:
    """Return L^-1."""
    invert: Any = vars(lapack)["dtrtri"]
    return invert(factor, lower=1)[0]


def eigh(symmetric: Matrix) -> tuple[Float[np.ndarray, " n"], Matrix]:
    """Return eigenvalues and eigenvectors, not finite where the matrix is not."""
    if not np.isfinite(symmetric).all():
        return np.full(len(symmetric), np.nan), np.full_like(symmetric, np.nan)
    return linalg.eigh(symmetric, check_finite=False)


def block_diagonal(blocks: Sequence[Any]) -> Float[np.ndarray, "t t"]:
    """Put matrices on the diagonal of one."""
    return np.asarray(linalg.block_diag(*blocks))
