"""Mixtures whose components have a mean and a variance, and the Gaussian ones.

Each family finds its own parameters from these two numbers, so that a prediction is the same three
arrays whatever it is of: weights, means and variances, components along the first axis.
"""

import dataclasses
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

BISECTIONS = 60
GRID = 400
TINY = np.finfo(float).tiny

Mixed = Float[np.ndarray, "k n"]
Parts = tuple[Mixed, Mixed, Mixed]
"""Weights, means and variances of the components."""

Cut = Float[np.ndarray, "c n"]
Pieces = tuple[Cut, Cut, Cut]
"""The same of more components."""

Known = tuple[Mixed, Mixed]
"""What a family has of its components instead of means and variances."""

Draws = Float[np.ndarray, "j n"]
Matrix = Float[np.ndarray, "a b"]
Vector = Float[np.ndarray, " n"]


@runtime_checkable
class Distribution(Protocol):
    """What is predicted of every region: a mixture whose components have a mean and a variance.

    >>> isinstance(Gaussians(), Distribution)
    True
    """

    @property
    def discrete(self) -> bool:
        """Whether values are whole numbers."""
        ...

    def moments(self, parts: Parts) -> tuple[Vector, Vector]:
        """Return mean and variance of each region."""
        ...

    def cdf(self, parts: Parts, value: Any) -> Vector:
        """Return P(value <= t)."""
        ...

    def exceedance(self, parts: Parts, value: Any) -> Vector:
        """Return P(value > t), as exact in the tail as `cdf` is in its own."""
        ...

    def log_density(self, parts: Parts, value: Any) -> Vector:
        """Return the log density, or log probability, of a value."""
        ...

    def quantile(self, parts: Parts, q: float) -> Vector:
        """Return the q-quantile."""
        ...

    def crps(self, parts: Parts, value: Any) -> Vector:
        """Return the continuous ranked probability score of a value."""
        ...

    def sample(self, parts: Parts, rng: np.random.Generator, count: int) -> Draws:
        """Draw values, independent from region to region."""
        ...

    def sample_jointly(
        self, mean: Vector, covariance: Matrix, rng: np.random.Generator, count: int
    ) -> Draws:
        """Draw values of regions that depend on one another."""
        ...

    def pieces(self, parts: Parts) -> Pieces:
        """Return narrow components with the same mixture, for what scatters about its values."""
        ...


class Mixtures:
    """What all mixtures have in common, given what one component is.

    >>> one = np.ones((1, 1))
    >>> Gaussians().moments((one, 3 * one, one))
    (array([3.]), array([1.]))
    """

    discrete = False

    def moments(self, parts: Parts) -> tuple[Vector, Vector]:
        """Return mean and variance of each region."""
        weights, means, variances = parts
        mean = (weights * means).sum(0)
        return mean, (weights * (variances + (means - mean) ** 2)).sum(0)

    def cdf(self, parts: Parts, value: Any) -> Vector:
        """Return P(value <= t)."""
        return (parts[0] * self._cdf(self._known(parts), as_number(value))).sum(0)

    def exceedance(self, parts: Parts, value: Any) -> Vector:
        """Return P(value > t)."""
        return (parts[0] * self._above(self._known(parts), as_number(value))).sum(0)

    def log_density(self, parts: Parts, value: Any) -> Vector:
        """Return the log density, or log probability, of a value."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            found = self._log_density(self._known(parts), as_number(value))
            return np.logaddexp.reduce(np.log(parts[0]) + found, axis=0)

    def quantile(self, parts: Parts, q: float) -> Vector:
        """Return the q-quantile, which lies between those of the components."""
        weights, known = parts[0], self._known(parts)
        ends = self._quantile(known, q)
        low, high = ends.min(0), ends.max(0)
        if len(weights) == 1:
            return low
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            below = (weights * self._cdf(known, middle)).sum(0) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)

    def crps(self, parts: Parts, value: Any) -> Vector:
        """Return the integral of (F - 1[y <= t])^2 over t, numerically (theory 8)."""
        y = np.broadcast_to(as_number(value), parts[1].shape[1:])
        low = np.minimum(self.quantile(parts, 1e-7), y)
        high = np.maximum(self.quantile(parts, 1 - 1e-7), y)
        unit, share = np.polynomial.legendre.leggauss(GRID)
        known, total = self._known(parts), np.zeros_like(y)
        for start, end, step in ((low, y, 0.0), (y, high, 1.0)):
            for u, s in zip(0.5 * (unit + 1), 0.5 * share, strict=True):
                below = (parts[0] * self._cdf(known, start + u * (end - start))).sum(0)
                total += s * (end - start) * (below - step) ** 2
        return total

    def sample(self, parts: Parts, rng: np.random.Generator, count: int) -> Draws:
        """Draw values, independent from region to region."""
        weights = parts[0]
        shape = (count, weights.shape[1])
        cumulative = np.cumsum(weights, 0)[:, None, :]
        component = (rng.uniform(size=shape)[None] > cumulative[:-1]).sum(0)
        columns = np.arange(shape[1])
        first, second = (part[component, columns] for part in self._known(parts))
        return self._draw(first, second, rng)

    def sample_jointly(
        self, mean: Vector, covariance: Matrix, rng: np.random.Generator, count: int
    ) -> Draws:
        """Refuse: only fields are drawn jointly."""
        raise ValueError(
            "sample: new observations of this kind are drawn region by region; predict the field"
            " with joint=True and without noise=True."
        )

    def pieces(self, parts: Parts) -> Pieces:
        """Return the components themselves."""
        return parts

    def _known(self, parts: Parts) -> Known:
        """Return what the components are made of: by default their means and variances."""
        return parts[1], parts[2]

    def _above(self, known: Known, value: Any) -> Mixed:
        return 1.0 - self._cdf(known, value)

    def _cdf(self, known: Known, value: Any) -> Mixed:
        raise NotImplementedError

    def _log_density(self, known: Known, value: Any) -> Mixed:
        raise NotImplementedError

    def _quantile(self, known: Known, q: float) -> Mixed:
        raise NotImplementedError

    def _draw(self, first: Draws, second: Draws, rng: np.random.Generator) -> Draws:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Gaussians(Mixtures):
    """Mixtures of Gaussians, of which one Gaussian is the simplest.

    >>> one = np.ones((1, 1))
    >>> float(Gaussians().crps((one, 0 * one, one), [0.0])[0].round(3))
    0.234
    """

    def crps(self, parts: Parts, value: Any) -> Vector:
        """Return E|X - y| - E|X - X'| / 2, in closed form (theory 8)."""
        weights, means, variances = parts
        away = means - as_number(value)
        to_value = (weights * _mean_absolute(away, variances)).sum(0)
        apart = (
            w * (weights * _mean_absolute(m - means, v + variances)).sum(0)
            for w, m, v in zip(*parts, strict=True)
        )
        return to_value - 0.5 * sum(apart)

    def sample_jointly(
        self, mean: Vector, covariance: Matrix, rng: np.random.Generator, count: int
    ) -> Draws:
        """Draw from one Gaussian of all regions."""
        return mean + rng.standard_normal((count, len(mean))) @ root_of(covariance).T

    def _cdf(self, known: Known, value: Any) -> Mixed:
        return ndtr(standardised(*known, value))

    def _above(self, known: Known, value: Any) -> Mixed:
        return ndtr(-standardised(*known, value))

    def _log_density(self, known: Known, value: Any) -> Mixed:
        squares = standardised(*known, value) ** 2
        return -0.5 * (squares + np.log(2 * np.pi * np.maximum(known[1], TINY)))

    def _quantile(self, known: Known, q: float) -> Mixed:
        return known[0] + ndtri(q) * np.sqrt(known[1])

    def _draw(self, first: Draws, second: Draws, rng: np.random.Generator) -> Draws:
        return first + np.sqrt(second) * rng.standard_normal(first.shape)


GAUSSIANS = Gaussians()


def as_number(value: Any) -> Any:
    """Return values in double precision."""
    return np.asarray(value, np.float64)


def root_of(covariance: Matrix) -> Matrix:
    """Return a root of a covariance, which rounding may have made indefinite."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def standardised(means: Mixed, variances: Mixed, value: Any) -> Mixed:
    """Return (value - mean) / sd; a sd of zero counts as the smallest number."""
    sd = np.sqrt(np.maximum(variances, TINY))
    with np.errstate(over="ignore"):
        return (value - means) / sd


def _mean_absolute(mean: Mixed, variance: Mixed) -> Mixed:
    """Return E|N(m, v)| = m (2 Phi(m / s) - 1) + 2 s phi(m / s)."""
    sd = np.sqrt(np.maximum(variance, TINY))
    with np.errstate(over="ignore"):
        z = mean / sd
        density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return mean * (2 * ndtr(z) - 1) + 2 * sd * density
