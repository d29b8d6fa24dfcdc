"""A dataset as a model smooths it, for the scores of its clusters (theory 4.3)."""

from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset, Records
from mrgp.gp import Grouped, Smoother
from mrgp.models import Composite, as_arrays
from mrgp.supports import Clusters
from mrgp.weighting.clustering import cluster_rows
from mrgp.weighting.sandwich import (
    CLUSTERS_EACH,
    Rows,
    Sandwich,
    freed_residuals,
    kept,
    leading_directions,
    of_equal_size,
)

LARGEST = 256
"""Values that a cluster may have along time."""


@eqx.filter_jit
def _smoother(model: Composite, records: Records) -> Smoother:
    return model.smoother(records)


class Smoothed(NamedTuple):
    """A dataset as a model smooths it: residuals freed of shrinkage, by source and cluster.

    `basis` and `lift` are those of the smoother; `leverage` is how much of itself a cluster
    explains at most.

    >>> import jax, mrgp
    >>> from mrgp.data import Scaling
    >>> seen = mrgp.Dataset([mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 1.0])])
    >>> places, records = mrgp.overlap_clusters(seen), Scaling.of(seen).records(seen)
    >>> with jax.enable_x64(True):
    ...     Smoothed.of(mrgp.MRGP().build(seen), records, places).clusters
    array([0, 1])
    """

    basis: Float[np.ndarray, "m n"]
    lift: Float[np.ndarray, "a m"]
    residual: Float[np.ndarray, " n"]
    leverage: float
    sources: Rows
    clusters: Rows

    @classmethod
    def of(cls, model: Composite, records: Records, clusters: Clusters) -> "Smoothed":
        """Smooth records by a model with these parameters."""
        found = _smoother(as_arrays(model), as_arrays(records))
        basis, residual, lift = (np.asarray(x) for x in found)
        rows = np.concatenate(clusters.labels)
        freed, leverage = freed_residuals(basis, residual, rows)
        return cls(basis, lift, freed, leverage, source_rows(records), rows)

    def sandwich(self) -> Sandwich:
        """Return information and variance of the scores F u, summed in clusters."""
        information = self.basis @ self.basis.T
        count, number = (int(of.max()) + 1 for of in (self.clusters, self.sources))
        directions, strength = leading_directions(information, count // CLUSTERS_EACH)
        own, shared = np.zeros((count, number)), np.zeros((count, number))
        variability, leading = np.zeros_like(information), np.zeros((count, len(strength)))
        for which, rows in of_equal_size(self.clusters, len(self.basis)):
            pull = np.moveaxis(self.basis[:, rows], 0, 1)
            mine = np.arange(number)[:, None, None] == self.sources[rows]
            parts = np.einsum("bmn,abn->bam", pull, self.residual[rows] * mine)
            total = parts.sum(1)
            own[which] = np.sum(parts**2, -1)
            shared[which] = np.einsum("bam,bm->ba", parts, total)
            variability += total.T @ total
            leading[which] = total @ directions
        dimension = float(np.trace(information))
        return Sandwich(information, variability, own, shared, dimension, strength, leading)


class InBlocks(NamedTuple):
    """A dataset as a model along time smooths it: the blocks S_bb of clusters, and no more.

    `blocks` has the rows of each cluster and how they smooth one another. Directions of the whole
    field are not known, so that of information and variance of the scores there are traces alone.
    """

    blocks: list[tuple[Rows, Float[np.ndarray, "k k"]]]
    residual: Float[np.ndarray, " n"]
    leverage: float
    sources: Rows
    clusters: Rows

    @classmethod
    def of(cls, found: Grouped, sources: Rows, clusters: Rows) -> "InBlocks":
        """Free residuals of shrinkage, cluster by cluster.

        >>> one = np.ones(1)
        >>> found = Grouped(one, [(np.array([0]), np.array([[0.75]]))], one, 2 * one)
        >>> InBlocks.of(found, np.zeros(1, int), np.zeros(1, int)).residual  # 1 / sqrt(1 - 0.75)
        array([2.])
        """
        unit, leverage, blocks = 1.0 / np.sqrt(found.noise), 0.0, []
        residual, freed = unit * (found.residual - found.mean), np.zeros(len(unit))
        for rows, covariance in found.blocks:
            block = unit[rows, None] * covariance * unit[None, rows]
            eigenvalues, vectors = np.linalg.eigh(block)
            freed[rows] = vectors @ ((vectors.T @ residual[rows]) / kept(eigenvalues))
            leverage = max(leverage, float(eigenvalues[-1]))
            blocks.append((rows, block))
        return cls(blocks, freed, leverage, sources, clusters)

    def sandwich(self) -> Sandwich:
        """Return information and variance of the scores, summed in clusters."""
        count, number = (int(of.max()) + 1 for of in (self.clusters, self.sources))
        own, shared, dimension = np.zeros((count, number)), np.zeros((count, number)), 0.0
        for rows, block in self.blocks:
            of, left = self.clusters[rows[0]], self.residual[rows]
            parts = left * (np.arange(number)[:, None] == self.sources[rows])
            own[of] = np.einsum("an,nm,am->a", parts, block, parts)
            shared[of] = parts @ (block @ left)
            dimension += float(np.trace(block))
        traces = np.full((1, 1), dimension), np.full((1, 1), shared.sum())
        none = np.zeros(0), np.zeros((count, 0))
        return Sandwich(*traces, own, shared, dimension, *none)


def smoothed_by(
    model: Composite, records: Records, data: Dataset, clusters: Any, groups: Clusters
) -> tuple[Clusters, Any]:
    """Smooth records by a model with these parameters, in groups that may have to be smaller.

    Along time values are too many for all directions of the field; there clusters of overlapping
    values are split at a largest size.

    >>> import jax, mrgp
    >>> from mrgp.data import Scaling
    >>> seen = mrgp.Dataset([mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 1.0])])
    >>> groups, records = cluster_rows(seen, "overlap"), Scaling.of(seen).records(seen)
    >>> with jax.enable_x64(True):
    ...     smoothed_by(mrgp.MRGP().build(seen), records, seen, "overlap", groups)[0].count
    2
    """
    linear: Any = model.linear
    rows = np.concatenate(groups.labels)
    if linear is None or not linear.goes_in_groups(len(rows)):
        return groups, Smoothed.of(model, records, groups)
    if groups.sizes.max() > LARGEST and clusters == "overlap":
        groups = cluster_rows(data, clusters, LARGEST)
        rows = np.concatenate(groups.labels)
    if groups.sizes.max() > LARGEST:
        raise ValueError(
            f"clusters= has a cluster of {groups.sizes.max()} values; of {len(rows)} values along"
            f' time, clusters have at most {LARGEST}. Give finer labels, or clusters="overlap".'
        )
    return groups, InBlocks.of(linear.in_groups(records, rows), source_rows(records), rows)


def source_rows(records: Records) -> Rows:
    """Return the number of the process of every observed value."""
    return np.repeat(np.arange(len(records)), [len(record) for record in records])
