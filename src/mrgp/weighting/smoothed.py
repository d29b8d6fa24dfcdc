"""A dataset as a model smooths it, for the scores of its clusters (theory 4.3)."""

from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from mrgp.data import Records
from mrgp.gp import Smoother
from mrgp.models import Composite, as_arrays
from mrgp.supports import Clusters
from mrgp.weighting.sandwich import (
    CLUSTERS_EACH,
    Rows,
    Sandwich,
    freed_residuals,
    leading_directions,
    of_equal_size,
)


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


def source_rows(records: Records) -> Rows:
    """Return the number of the process of every observed value."""
    return np.repeat(np.arange(len(records)), [len(record) for record in records])
