"""Do overlapping sources share errors? Correlations of their residuals (theory 4.3)."""

import dataclasses
import itertools
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp._types import float64
from mrgp.data import Dataset
from mrgp.inference import Problem, as_progress
from mrgp.models import Recipe
from mrgp.supports import Clusters
from mrgp.weighting import alone_optimum, cluster_rows, smoothed_by

FEWEST = 4
CLEAR = 2.0
VAGUE = 0.25


@dataclasses.dataclass(frozen=True, eq=False)
class Pair:
    """Residuals of two sources, one number each for every cluster in which both observe.

    Residuals are in units of their standard deviation, summed in a cluster and scaled alike.

    >>> residuals = np.array([[1.0, 1.0], [-2.0, -2.0], [0.5, 0.5], [3.0, 3.0]])
    >>> round(Pair("one", "copy", residuals).correlation, 6)
    1.0
    """

    first: str
    second: str
    residuals: Float[np.ndarray, "k 2"]

    @property
    def correlation(self) -> float:
        """The correlation of the residuals; NaN where too few clusters have both."""
        if len(self.residuals) < FEWEST or np.any(self.residuals.std(0) == 0):
            return float("nan")
        return float(np.corrcoef(self.residuals.T)[0, 1])

    @property
    def standard_error(self) -> float:
        """How far from zero the correlation of independent residuals would typically be."""
        return float(1.0 / np.sqrt(max(len(self.residuals) - 2, 1)))

    @property
    def verdict(self) -> str:
        """What the correlation means for the fit."""
        if len(self.residuals) < FEWEST:
            return f"too few clusters have both ({len(self.residuals)})"
        if not np.isfinite(self.correlation):
            return "the residuals of one are all equal, and say nothing"
        if self.correlation > CLEAR * self.standard_error:
            return 'they share errors: fit with weights="auto"'
        if self.correlation < -2 * CLEAR * self.standard_error:
            return "they disagree: look for a bias, or for a model too stiff"
        if self.standard_error > VAGUE:
            return f"undecided: only {len(self.residuals)} clusters have both"
        return "no sign that they share errors"


@dataclasses.dataclass(frozen=True, eq=False)
class Dependence:
    """Pairs of sources with their residuals, and the clusters they come from.

    >>> import mrgp
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.standard_normal((40, 1)) * np.ones(2)
    >>> places = mrgp.points(np.arange(40.0)[:, None])
    >>> Dependence((Pair("one", "copy", shared),), mrgp.overlap_clusters([places, places]))
    Dependence(one and copy: 1.00)
    """

    pairs: tuple[Pair, ...]
    clusters: Clusters

    def summary(self) -> str:
        """Tell for each pair of sources whether they share errors."""
        if not self.pairs:
            return "Dependence: there is one source, and so nothing to compare"
        lines = [f"Residuals of overlapping sources, {self.clusters.count} clusters"]
        met = [pair for pair in self.pairs if len(pair.residuals)]
        lines += [
            f"  {pair.first} and {pair.second}: correlation {pair.correlation:.2f}"
            f" +- {pair.standard_error:.2f} in {len(pair.residuals)} clusters; {pair.verdict}"
            for pair in met
        ]
        if len(met) < len(self.pairs):
            lines.append(f"  {len(self.pairs) - len(met)} pairs of sources never overlap")
        if len(self.sources) > 2 and any("weights=" in pair.verdict for pair in met):
            lines.append(
                "  Not all sources need be to blame: composite_weights(..., per_source=True) weighs"
                " each."
            )
        return "\n".join(lines)

    @property
    def sources(self) -> set[str]:
        """Names of the sources compared."""
        return {name for pair in self.pairs for name in (pair.first, pair.second)}

    def __repr__(self) -> str:
        met = [p for p in self.pairs if len(p.residuals)]
        found = (f"{p.first} and {p.second}: {p.correlation:.2f}" for p in met)
        return f"Dependence({', '.join(found)})"

    def plot(self) -> Any:
        """Draw the residuals of every pair against one another; return the figure."""
        from mrgp.plotting import plot_dependence

        return plot_dependence(self)


@float64
def dependence(
    model: Recipe, data: Dataset, clusters: Any = "overlap", *, key: Any = 0, progress: Any = "auto"
) -> Dependence:
    """Compare the residuals of sources that see the same places.

    Parameters are those of each source on its own, residuals those of all sources together, freed
    of shrinkage. Sources with errors of their own have uncorrelated residuals; correlated ones say
    the same thing twice, and the product of their likelihoods is overconfident. `clusters` are as
    in `composite_weights`.

    >>> import numpy as np, mrgp
    >>> x = np.linspace(0.0, 9.0, 40)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> twice = [mrgp.Observations(mrgp.points(x), y, name=name) for name in ("one", "copy")]
    >>> mrgp.dependence(mrgp.MRGP(), mrgp.Dataset(twice))
    Dependence(one and copy: 1.00)
    """
    if not isinstance(data, Dataset):
        raise TypeError(f"dependence takes a Dataset; got {type(data).__name__}.")
    problem = Problem.of(model, data, key=key)
    groups, seen = cluster_rows(data, clusters), problem.seen
    optimum = alone_optimum(problem, as_progress(progress), "dependence")
    groups, smoothed = smoothed_by(optimum.model, problem.records, problem.data, clusters, groups)
    places = smoothed.clusters, smoothed.sources
    sums = np.zeros((groups.count, len(seen)))
    counts = np.zeros_like(sums)
    np.add.at(sums, places, smoothed.residual)
    np.add.at(counts, places, 1.0)
    means = np.divide(sums, np.sqrt(counts), out=sums, where=counts > 0)
    names = [o.name if len(seen.tasks) == 1 else f"{o.name}, {o.task}" for o in seen]
    pairs = []
    for a, b in itertools.combinations(range(len(names)), 2):
        both = (counts[:, a] > 0) & (counts[:, b] > 0)
        pairs.append(Pair(names[a], names[b], means[both][:, [a, b]]))
    return Dependence(tuple(pairs), groups)
