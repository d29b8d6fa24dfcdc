"""How much scores of clusters vary, against the information they carry (theory 4.2 to 4.4)."""

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

CHUNK_BYTES = 2**26
CLOSEST = 1e-8
MOST_DIRECTIONS = 200
CLUSTERS_EACH = 10

Rows = Int[np.ndarray, " n"]
Grouped = Int[np.ndarray, "b n"]


@dataclasses.dataclass(frozen=True, eq=False)
class Sandwich:
    """Information H and variance J of the score, and what each cluster b and source a adds to J.

    `own[b, a]` is |g_ba|^2 and `shared[b, a]` is g_ba . g_b, for g_b = sum_a g_ba the score of a
    cluster, in coordinates in which the posterior covariance is the identity. `dimension` is the
    number of parameters the data determine, tr S for functions. `leading` are the scores along the
    directions most is known of, eigenvectors of H with eigenvalues `strength`; there are a tenth as
    many as clusters, since J is to be inverted there, and neighbouring clusters pull alike.
    """

    information: Float[np.ndarray, "m m"]
    variability: Float[np.ndarray, "m m"]
    own: Float[np.ndarray, "k a"]
    shared: Float[np.ndarray, "k a"]
    dimension: float
    strength: Float[np.ndarray, " r"]
    leading: Float[np.ndarray, "k r"]

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return len(self.own)


def leading_directions(
    information: Float[np.ndarray, "m m"], most: int
) -> tuple[Float[np.ndarray, "m r"], Float[np.ndarray, " r"]]:
    """Return up to so many directions of which most is known, with their eigenvalues."""
    eigenvalues, vectors = np.linalg.eigh(information)
    most = min(most, int(np.sum(eigenvalues > CLOSEST)), MOST_DIRECTIONS)
    chosen = slice(None, -max(1, most) - 1, -1)
    return vectors[:, chosen], eigenvalues[chosen]


def of_equal_size(clusters: Rows, features: int) -> Iterator[tuple[Rows, Grouped]]:
    """Yield clusters of one size and their rows, so many that their features fit in memory."""
    order = np.argsort(clusters, kind="stable")
    sizes = np.bincount(clusters)
    starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes > 0]):
        which = np.flatnonzero(sizes == size)
        at_once = max(1, CHUNK_BYTES // (8 * features * int(size)))
        for first in range(0, len(which), at_once):
            chosen = which[first : first + at_once]
            yield chosen, order[starts[chosen][:, None] + np.arange(size)[None]]


def freed_residuals(
    basis: Float[np.ndarray, "m n"], residual: Float[np.ndarray, " n"], clusters: Rows
) -> tuple[Float[np.ndarray, " n"], float]:
    """Return u_b = (I - S_bb)^-1/2 r_b for every cluster, as CR2 estimators do.

    Beside them, the largest eigenvalue of any S_bb: how much of itself a cluster explains.
    """
    freed, leverage = np.empty_like(residual), 0.0
    for _, rows in of_equal_size(clusters, len(basis)):
        pull, left = np.moveaxis(basis[:, rows], 0, 1), residual[rows]
        if rows.shape[1] <= len(basis):
            eigenvalues, vectors = np.linalg.eigh(np.einsum("bmi,bmj->bij", pull, pull))
            inner = np.einsum("bni,bn->bi", vectors, left) / kept(eigenvalues)
            freed[rows] = np.einsum("bni,bi->bn", vectors, inner)
        else:
            # More rows than features: outside their span nothing is explained.
            _, singular, right = np.linalg.svd(pull, full_matrices=False)
            eigenvalues = singular**2
            inner = np.einsum("bin,bn->bi", right, left) * (1.0 / kept(eigenvalues) - 1.0)
            freed[rows] = left + np.einsum("bin,bi->bn", right, inner)
        leverage = max(leverage, float(eigenvalues.max()))
    return freed, leverage


def kept(eigenvalues: Float[np.ndarray, "*b i"]) -> Float[np.ndarray, "*b i"]:
    """Return the roots of what smoothing leaves of directions.

    >>> kept(np.array([0.75])).tolist()
    [0.5]
    """
    return np.sqrt(np.clip(1.0 - eigenvalues, CLOSEST, None))
