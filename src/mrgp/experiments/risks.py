"""Simple rivals of a model of counts: Gaussian rates, painted rates, a Poisson regression.

Each says what it takes the rate to be on a support; new counts are Poisson about that, given their
exposure.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree

from mrgp.data import Dataset, Observations
from mrgp.distributions import GAMMAS, GAUSSIANS, LOG_NORMALS, Distribution
from mrgp.inference import Fit
from mrgp.likelihoods import GAUSSIAN, Poisson
from mrgp.prediction import Prediction, predict
from mrgp.supports import Support

RateScale = Literal["plain", "log"]
NEWTON = 50
SAME = 1e-6

Vector = Float[np.ndarray, " n"]


@runtime_checkable
class Risk(Protocol):
    """What a rival makes of counts: the rate on any support.

    >>> isinstance(Painted, Risk)
    True
    """

    def rate(self, support: Support) -> Prediction:
        """Return the rate on a support."""
        ...


def as_rates(data: Dataset, scale: RateScale) -> Dataset:
    """Take counts for Gaussian rates y / e, or for their logarithms, log((y + 1/2) / e).

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0]]), [4], likelihood="poisson", exposure=2.0)
    >>> as_rates(mrgp.Dataset([seen]), "plain")["source"].y
    array([2.])
    """

    def rated(seen: Observations) -> Observations:
        if seen.likelihood.domain != "count":
            return seen
        exposure = 1.0 if seen.exposure is None else seen.exposure
        y = seen.y / exposure if scale == "plain" else np.log((seen.y + 0.5) / exposure)
        return seen.replace(y=y, likelihood=GAUSSIAN, exposure=None)

    return Dataset(map(rated, data))


@dataclasses.dataclass(frozen=True)
class Rated:
    """A model that was fitted to rates as if they were Gaussian, or to their logarithms."""

    fit: Fit
    scale: RateScale
    about: Observations

    def rate(self, support: Support) -> Prediction:
        """Return what the model says of the field, as a rate."""
        found = predict(self.fit, support, task=self.about.task)
        if self.scale == "plain":
            return found
        mean = np.exp(found.means + 0.5 * found.variances)
        moments = {"means": mean, "variances": mean**2 * np.expm1(found.variances)}
        return dataclasses.replace(found, **moments, distribution=LOG_NORMALS)


@dataclasses.dataclass(frozen=True)
class Painted:
    """Every region's own rate, as if it had no neighbours; the rate of all where none was seen.

    Given a count the rate is gamma, of shape y + 1/2.
    """

    seen: Observations

    def rate(self, support: Support) -> Prediction:
        """Return the rate of the region in which each region of a support lies."""
        y, exposure = self.seen.y, np.asarray(self.seen.exposure)
        where, there = (_places(s) for s in (self.seen.support, support))
        x, owner = where
        distance, nearest = KDTree(x).query(there[0][np.unique(there[1], return_index=True)[1]])
        own = distance < SAME * np.ptp(x, axis=0).max()
        shape = np.where(own, y[owner[nearest]], y.sum()) + 0.5
        over = np.where(own, exposure[owner[nearest]], exposure.sum())
        return _told(self.seen, support, shape / over, shape / over**2, GAMMAS)


@dataclasses.dataclass(frozen=True)
class Regressed:
    """A Poisson regression on covariates: log rate = a + b z, with the Gaussian of its estimate."""

    seen: Observations
    coefficients: Vector
    covariance: Float[np.ndarray, "k k"]

    @classmethod
    def of(cls, seen: Observations) -> "Regressed":
        """Fit by Newton's method, with z averaged over regions."""
        y, exposure, z = seen.y, np.asarray(seen.exposure), _design(seen.support)
        found = np.zeros(z.shape[1])
        found[0] = np.log(max(y.sum(), 0.5) / exposure.sum())
        covariance = np.eye(z.shape[1])
        for _ in range(NEWTON):
            mean = exposure * np.exp(z @ found)
            covariance = np.linalg.inv(z.T @ (mean[:, None] * z))
            found = found + covariance @ z.T @ (y - mean)
        return cls(seen, found, covariance)

    def rate(self, support: Support) -> Prediction:
        """Return the rate that goes with the covariates of a support."""
        z = _design(support)
        spread = np.einsum("nk,kl,nl->n", z, self.covariance, z)
        mean = np.exp(z @ self.coefficients + 0.5 * spread)
        return _told(self.seen, support, mean, mean**2 * np.expm1(spread), LOG_NORMALS)


RISKS: dict[str, Callable[[Observations], Risk]] = {
    "painted": Painted,
    "poisson-regression": Regressed.of,
}


def counts_about(rate: Prediction, exposure: Any) -> Prediction:
    """Return new counts: Poisson about exposure x rate, where that is positive.

    >>> import mrgp
    >>> one = np.ones((1, 1))
    >>> rate = Prediction(mrgp.points([[0.0]]), "y", None, None, one, one, 0 * one)
    >>> counts_about(rate, np.array([3.0])).mean.round(6)
    array([3.])
    """
    weights, means, variances = rate.components
    least = 1e-9 * np.abs(means).max()
    if rate.distribution is GAUSSIANS:
        # A rate has no part below zero: a log-normal of the same mean and variance stands in.
        means = np.maximum(means, least)
    scaled = (weights, exposure * means, exposure**2 * variances)
    parts = Poisson().observe(scaled, None, LOG_NORMALS)
    names = ("component_weights", "means", "variances")
    made = dict(zip(names, parts, strict=True)) | {"distribution": Poisson().distribution}
    return dataclasses.replace(rate, **made)


def _told(
    seen: Observations, support: Support, mean: Vector, variance: Vector, of: Distribution
) -> Prediction:
    about = (support, seen.task, None, seen.units)
    parts = (np.ones((1, len(mean))), mean[None], variance[None])
    return Prediction(*about, *parts, distribution=of)


def _places(support: Support) -> tuple[Float[np.ndarray, "k d"], Any]:
    """Return the nodes of regions in space, and whose they are."""
    atoms = support.atoms()
    x, used = np.asarray(atoms.lower), np.asarray(atoms.weights) != 0
    inputs = support.dimension - len(support.covariates or ())
    return x[used][:, :inputs], np.nonzero(used)[0]


def _design(support: Support) -> Float[np.ndarray, "n k"]:
    """Return ones, and the numbers among the covariates."""
    first = support.dimension - len(support.covariates or ())
    columns = [d for d in range(first, support.dimension) if d not in support.categories]
    return np.column_stack([np.ones(len(support)), np.asarray(support.centres)[:, columns]])
