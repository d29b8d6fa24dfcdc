"""A dataset as a model smooths it, for the scores of its clusters (theory 4.3)."""

from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset, Scaling
from mrgp.gp import Smoother
from mrgp.inference.objectives import build_objective
from mrgp.inference.sandwich import Rows, Sandwich, freed_residuals, sandwich
from mrgp.supports import Clusters


@eqx.filter_jit
def _smoother(model: Any, records: Any) -> Smoother:
    return model.smoother(records)


class Smoothed(NamedTuple):
    """A dataset as a model smooths it: residuals freed of shrinkage, by source and cluster.

    `basis` and `lift` are those of the smoother; `leverage` is how much of itself a cluster
    explains at most.
    """

    basis: Float[np.ndarray, "m n"]
    lift: Float[np.ndarray, "a m"]
    residual: Float[np.ndarray, " n"]
    leverage: float
    sources: Rows
    clusters: Rows

    @classmethod
    def of(cls, model: Any, data: Dataset, clusters: Clusters) -> "Smoothed":
        """Smooth a dataset by a model with these parameters."""
        records = build_objective(model, data, Scaling.of(data), None).records
        basis, residual, lift = (np.asarray(x) for x in _smoother(model, records))
        rows = np.concatenate(clusters.labels)
        freed, leverage = freed_residuals(basis, residual, rows)
        return cls(basis, lift, freed, leverage, source_rows(data), rows)

    def sandwich(self) -> Sandwich:
        """Return information and variance of the scores."""
        number = int(self.sources.max()) + 1
        return sandwich(self.basis, self.residual, self.sources, self.clusters, number)


def source_rows(data: Dataset) -> Rows:
    """Return the number of the process of every observed value."""
    return np.repeat(np.arange(len(data)), [int(o.observed.sum()) for o in data])
