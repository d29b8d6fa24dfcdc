"""How much scores of clusters vary, against the information they carry (theory 4.2 to 4.4)."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from mrgp.gp import Smoother

CHUNK_BYTES = 2**26
CLOSEST = 1e-8

Rows = Int[np.ndarray, " n"]


@dataclasses.dataclass(frozen=True, eq=False)
class Sandwich:
    """Information H and variance J of the score, and what each cluster b and source a adds to J.

    `own[b, a]` is |g_ba|^2 and `shared[b, a]` is g_ba . g_b, for g_b = sum_a g_ba, the score of a
    cluster. Coordinates are such that H plus the prior's information is the identity.
    `leverage` is the largest eigenvalue of S in any cluster: how much of itself a cluster explains.
    """

    information: Float[np.ndarray, "m m"]
    variability: Float[np.ndarray, "m m"]
    own: Float[np.ndarray, "k a"]
    shared: Float[np.ndarray, "k a"]
    leverage: float

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return len(self.own)

    @property
    def freedom(self) -> float:
        """Effective degrees of freedom, tr S."""
        return float(np.trace(self.information))

    def leading(self) -> tuple[Float[np.ndarray, "m k"], Float[np.ndarray, " k"]]:
        """Return the directions most is known of, at most half as many as clusters.

        J has no more independent directions than there are clusters; its inverse is of use where
        there are clearly fewer.
        """
        eigenvalues, vectors = np.linalg.eigh(self.information)
        count = max(1, min(self.clusters // 2, int(np.sum(eigenvalues > CLOSEST))))
        return vectors[:, ::-1][:, :count], eigenvalues[::-1][:count]


def sandwich(smoother: Smoother, sources: Rows, clusters: Rows, number: int) -> Sandwich:
    """Sum scores in clusters, their residuals freed of shrinkage as CR2 estimators do.

    `sources` and `clusters` number the source and the cluster of every observation.
    """
    basis, residual = np.asarray(smoother.basis), np.asarray(smoother.residual)
    m, count = len(basis), int(clusters.max()) + 1
    own, shared = np.zeros((count, number)), np.zeros((count, number))
    variability, leverage = np.zeros((m, m)), 0.0
    for which, rows in _of_equal_size(clusters, m):
        pull = np.moveaxis(basis[:, rows], 0, 1)
        freed, largest = _freed(pull, residual[rows])
        leverage = max(leverage, largest)
        parts = np.stack(
            [np.einsum("bmn,bn->bm", pull, freed * (sources[rows] == a)) for a in range(number)], 1
        )
        total = parts.sum(1)
        own[which] = np.sum(parts**2, -1)
        shared[which] = np.einsum("bam,bm->ba", parts, total)
        variability += total.T @ total
    return Sandwich(basis @ basis.T, variability, own, shared, leverage)


def _of_equal_size(clusters: Rows, features: int) -> Iterator[tuple[Any, Any]]:
    """Group clusters of one size, so many that their features stay within some memory."""
    order = np.argsort(clusters, kind="stable")
    sizes = np.bincount(clusters)
    starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes > 0]):
        which = np.flatnonzero(sizes == size)
        at_once = max(1, CHUNK_BYTES // (8 * features * int(size)))
        for first in range(0, len(which), at_once):
            chosen = which[first : first + at_once]
            yield chosen, order[starts[chosen][:, None] + np.arange(size)[None]]


def _freed(
    pull: Float[np.ndarray, "b m n"], residual: Float[np.ndarray, "b n"]
) -> tuple[Float[np.ndarray, "b n"], float]:
    """Return (I - S_bb)^-1/2 r_b for every cluster, and the largest eigenvalue of the S_bb."""
    if pull.shape[2] <= pull.shape[1]:
        eigenvalues, vectors = np.linalg.eigh(np.einsum("bmi,bmj->bij", pull, pull))
        kept = np.clip(1.0 - eigenvalues, CLOSEST, None)
        inner = np.einsum("bni,bn->bi", vectors, residual) / np.sqrt(kept)
        return np.einsum("bni,bi->bn", vectors, inner), float(eigenvalues.max())
    # More rows than features: outside their span nothing is explained.
    _, singular, right = np.linalg.svd(pull, full_matrices=False)
    kept = np.clip(1.0 - singular**2, CLOSEST, None)
    inner = np.einsum("bin,bn->bi", right, residual) * (1.0 / np.sqrt(kept) - 1.0)
    return residual + np.einsum("bin,bi->bn", right, inner), float(singular.max() ** 2)
