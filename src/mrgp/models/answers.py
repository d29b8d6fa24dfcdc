"""What a model is asked and what it answers: components of a prediction, region by region."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.distributions import GAUSSIANS, Distribution
from mrgp.likelihoods import Likelihood
from mrgp.supports import Support

CHUNK_BYTES = 2**26
SMALLEST_CHUNK, LARGEST_CHUNK = 2**6, 2**14
LARGEST_JOINT = 5000


class Question(NamedTuple):
    """Which task, as which source reports it, and how: with which draws, region by region or not.

    `samples` is the number of draws that a model may mix, its own where it is None. `exposure` and
    `trials` are those of new observations, region by region.

    >>> Question("no2", None, jax.random.key(0)).joint
    False
    """

    task: str
    source: str | None
    key: Array
    samples: int | None = None
    joint: bool = False
    exposure: Any = None
    trials: Any = None


class Components(eqx.Module):
    """A mixture for each region, without noise; rows are regions.

    `covariance` is there where the regions were asked for jointly. `experts` has the means and
    variances of each expert's own components, all of equal weight, and `shares` its weight.

    >>> found = Components.gaussian(np.array([3.0]), np.array([4.0]))
    >>> found.means, found.weights
    (array([[3.]]), array([[1.]]))
    """

    weights: Float[AnyArray, "n k"]
    means: Float[AnyArray, "n k"]
    variances: Float[AnyArray, "n k"]
    covariance: Float[AnyArray, "n n"] | None = None
    experts: Mapping[str, tuple[Float[AnyArray, "n j"], Float[AnyArray, "n j"]]] = eqx.field(
        default_factory=dict
    )
    shares: Mapping[str, Float[AnyArray, " n"]] = eqx.field(default_factory=dict)
    distribution: Distribution = eqx.field(static=True, default=GAUSSIANS)

    @classmethod
    def gaussian(cls, mean: Float[AnyArray, " n"], spread: Float[AnyArray, "n *n"]) -> "Components":
        """Return one Gaussian for each region, by its variance or the covariance of all."""
        mean, spread = np.asarray(mean), np.asarray(spread)
        variance = spread if spread.ndim == 1 else np.diag(spread).copy()
        covariance = None if spread.ndim == 1 else spread
        return cls(np.ones((len(mean), 1)), mean[:, None], variance[:, None], covariance)

    def observed(self, likelihood: Likelihood, noise: Any) -> "Components":
        """Return the components of new values, with the noise of each, or of each component."""
        noise = np.asarray(noise).T

        def seen(weights: Any, means: Any, variances: Any) -> Any:
            parts = np.asarray(weights).T, np.asarray(means).T, np.asarray(variances).T
            return tuple(part.T for part in likelihood.observe(parts, noise, self.distribution))

        weights, means, variances = seen(self.weights, self.means, self.variances)
        covariance = self.covariance
        if covariance is not None:
            if means.shape[1] != 1:
                raise ValueError(
                    f"predict: joint=True with noise=True is for Gaussian noise; the source has"
                    f" {likelihood.name!r}. Leave one out."
                )
            added = variances[:, 0] - np.asarray(self.variances)[:, 0]
            covariance = np.asarray(covariance) + np.diag(added)
        equal = {label: np.ones(np.shape(means)) for label, (means, _) in self.experts.items()}
        return dataclasses.replace(
            self,
            weights=weights,
            means=means,
            variances=variances,
            covariance=covariance,
            experts={label: seen(equal[label], *p)[1:] for label, p in self.experts.items()},
            distribution=likelihood.distribution,
        )

    def scaled(self, by: Float[np.ndarray, " n"]) -> "Components":
        """Return the components of regions that see so many times the field."""
        each = np.asarray(by)[:, None]
        covariance = self.covariance
        if covariance is not None:
            covariance = np.asarray(covariance) * each * each.T
        return dataclasses.replace(
            self,
            means=np.asarray(self.means) * each,
            variances=np.asarray(self.variances) * each**2,
            covariance=covariance,
        )


def in_chunks(answer: Callable[[Support], Any], support: Support, columns: int) -> Any:
    """Answer for regions chunk by chunk, so that memory is bounded and code compiled once.

    `columns` is how many numbers a region needs. The last chunk is filled up with its last region.

    >>> from mrgp import points
    >>> in_chunks(lambda part: 2 * part.x[:, 0], points([[1.0], [2.0]]), columns=1).tolist()
    [2.0, 4.0]
    """

    def parts() -> Iterator[Any]:
        n, size = len(support), _chunk_size(len(support), columns)
        for start in range(0, max(n, 1), size):
            rows = np.minimum(np.arange(start, start + size), n - 1)
            found, kept = answer(as_arrays(support[rows])), min(size, n - start)
            yield jax.tree.map(lambda x, kept=kept: np.asarray(x)[:kept], found)

    return jax.tree.map(lambda *several: np.concatenate(several), *parts())


def _chunk_size(regions: int, columns: int) -> int:
    wanted = min(CHUNK_BYTES // (8 * columns), regions, LARGEST_CHUNK)
    size = SMALLEST_CHUNK
    while size < wanted:
        size *= 2
    return size


def columns_of(state: Any) -> int:
    """Return how many numbers a region needs for a prediction from a posterior state.

    Posteriors that take points a few at a time by themselves do not count.

    >>> columns_of({"alpha": np.zeros(5), "root": np.zeros((3, 7))})
    7
    """

    def bounded(part: Any) -> bool:
        return getattr(part, "most_nodes", None) is not None

    leaves = [x for x in jax.tree.leaves(state, is_leaf=bounded) if not bounded(x)]
    return max((leaf.shape[-1] for leaf in leaves if np.ndim(leaf)), default=1)


def check_joint(regions: int) -> None:
    """Refuse covariances among too many regions.

    >>> check_joint(10)
    """
    if regions > LARGEST_JOINT:
        raise ValueError(
            f"predict: joint=True keeps a matrix of {regions} x {regions} numbers; at most"
            f" {LARGEST_JOINT} regions are allowed. Predict fewer at a time."
        )


def as_arrays(tree: Any) -> Any:
    """Turn numbers into JAX arrays, so that compiled functions take them as arguments.

    >>> isinstance(as_arrays([np.ones(2)])[0], jax.Array)
    True
    """
    numbers = np.ndarray | np.generic | float

    def leaf(x: Any) -> Any:
        return jax.device_put(np.asarray(x)) if isinstance(x, numbers) else x

    return jax.tree.map(leaf, tree)
