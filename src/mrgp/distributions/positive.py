"""Mixtures of positive values and of probabilities: log-normals, gammas, Phi of Gaussians."""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import gammainc, gammaincc, gammaincinv, gammaln, ndtr, ndtri

from mrgp.distributions.gaussians import (
    BISECTIONS,
    TINY,
    Draws,
    Known,
    Matrix,
    Mixed,
    Mixtures,
    Parts,
    Pieces,
    Vector,
    as_number,
    root_of,
    standardised,
)
from mrgp.links import bivariate_excess

SPACING, REACH, BLUR = 0.4, 5.0, 0.45
FINE_SPACING = 0.15


@dataclasses.dataclass(frozen=True)
class LogNormals(Mixtures):
    """Mixtures of log-normals: positive fields, and values about them.

    >>> one = np.ones((1, 1))
    >>> low, = LogNormals().quantile((one, one, one), 0.025)
    >>> round(float(low), 3)  # exp(-c / 2 - 1.96 sqrt(c)), c = log 2
    0.138
    """

    def crps(self, parts: Parts, value: Any) -> Vector:
        """Return E|X - y| - E|X - X'| / 2, in closed form."""
        weights, means, variances = parts
        y = np.broadcast_to(as_number(value), means.shape[1:])
        location, spread = log_moments(means, variances)
        certain = np.log(np.maximum(y, TINY))[None], np.zeros((1, *y.shape))
        to_value = _apart((location, spread, means), (*certain, np.maximum(y, 0.0)[None]))
        to_value = to_value + np.maximum(-y, 0.0)
        total = (weights * to_value).sum(0)
        for w, *one in zip(weights, location, spread, means, strict=True):
            each = _apart((location, spread, means), tuple(part[None] for part in one))
            total -= 0.5 * w * (weights * each).sum(0)
        return total

    def sample_jointly(
        self, mean: Vector, covariance: Matrix, rng: np.random.Generator, count: int
    ) -> Draws:
        """Draw logarithms from the Gaussian that matches mean and covariance."""
        spread = np.log1p(covariance / np.maximum(np.outer(mean, mean), TINY))
        location = np.log(np.maximum(mean, TINY)) - 0.5 * np.diag(spread)
        return np.exp(location + rng.standard_normal((count, len(mean))) @ root_of(spread).T)

    def pieces(self, parts: Parts) -> Pieces:
        """Return narrow log-normals whose logarithms add up to the Gaussian of each component.

        A Gaussian is a mixture of narrower ones about the nodes of a grid; what scatters about
        narrow ones has a smooth mixture too.
        """
        weights, means, variances = parts
        location, spread = log_moments(means, variances)
        nodes, share = _gaussian_grid(SPACING)
        narrow = np.broadcast_to(BLUR**2 * spread[None], (len(nodes), *spread.shape))
        at = location[None] + nodes[:, None, None] * np.sqrt(spread * (1 - BLUR**2))[None]
        mean = np.exp(at + 0.5 * narrow)
        # Its grid of nodes leaves a trace of an error in the mean, which is known.
        scale = means / np.maximum((share[:, None, None] * mean).sum(0), TINY)
        mean = mean * scale[None]
        return _flat(share[:, None, None] * weights[None], mean, mean**2 * np.expm1(narrow))

    def _known(self, parts: Parts) -> Known:
        return log_moments(*parts[1:])

    def _cdf(self, known: Known, value: Any) -> Mixed:
        return np.where(value > 0, ndtr(standardised(*known, _log(value))), 0.0)

    def _above(self, known: Known, value: Any) -> Mixed:
        return np.where(value > 0, ndtr(-standardised(*known, _log(value))), 1.0)

    def _log_density(self, known: Known, value: Any) -> Mixed:
        squares = standardised(*known, _log(value)) ** 2
        found = -0.5 * (squares + np.log(2 * np.pi * np.maximum(known[1], TINY)))
        return np.where(value > 0, found - _log(value), -np.inf)

    def _quantile(self, known: Known, q: float) -> Mixed:
        return np.exp(known[0] + ndtri(q) * np.sqrt(known[1]))

    def _draw(self, first: Draws, second: Draws, rng: np.random.Generator) -> Draws:
        return np.exp(first + np.sqrt(second) * rng.standard_normal(first.shape))


@dataclasses.dataclass(frozen=True)
class ProbitNormals(Mixtures):
    """Mixtures of Phi(z), z Gaussian: probabilities.

    >>> one = np.ones((1, 1))
    >>> float(ProbitNormals().quantile((one, 0.5 * one, 0.05 * one), 0.5)[0].round(3))
    0.5
    """

    def pieces(self, parts: Parts) -> Pieces:
        """Return single probabilities."""
        weights, means, variances = parts
        location, spread = probit_moments(means, variances)
        nodes, share = _gaussian_grid(FINE_SPACING)
        at = ndtr(location[None] + nodes[:, None, None] * np.sqrt(spread)[None])
        return _flat(share[:, None, None] * weights[None], at, np.zeros_like(at))

    def _known(self, parts: Parts) -> Known:
        return probit_moments(*parts[1:])

    def _cdf(self, known: Known, value: Any) -> Mixed:
        inside = ndtr(standardised(*known, _probit(value)))
        return np.where(value <= 0, 0.0, np.where(value >= 1, 1.0, inside))

    def _log_density(self, known: Known, value: Any) -> Mixed:
        z = _probit(value)
        squares = standardised(*known, z) ** 2 - z**2
        found = -0.5 * (squares + np.log(np.maximum(known[1], TINY)))
        return np.where((value > 0) & (value < 1), found, -np.inf)

    def _quantile(self, known: Known, q: float) -> Mixed:
        return ndtr(known[0] + ndtri(q) * np.sqrt(known[1]))

    def _draw(self, first: Draws, second: Draws, rng: np.random.Generator) -> Draws:
        return ndtr(first + np.sqrt(second) * rng.standard_normal(first.shape))


@dataclasses.dataclass(frozen=True)
class Gammas(Mixtures):
    """Mixtures of gamma distributions: positive values.

    >>> one = np.ones((1, 1))
    >>> float(Gammas().cdf((one, one, one), [1.0])[0].round(3))  # exponential: 1 - 1 / e
    0.632
    """

    def _known(self, parts: Parts) -> Known:
        means, variances = np.maximum(parts[1], TINY), np.maximum(parts[2], TINY)
        return means**2 / variances, means / variances

    def _cdf(self, known: Known, value: Any) -> Mixed:
        return gammainc(known[0], known[1] * np.maximum(value, 0.0))

    def _above(self, known: Known, value: Any) -> Mixed:
        return gammaincc(known[0], known[1] * np.maximum(value, 0.0))

    def _log_density(self, known: Known, value: Any) -> Mixed:
        (shape, rate), y = known, np.maximum(value, TINY)
        found = shape * np.log(rate) - gammaln(shape) + (shape - 1) * np.log(y) - rate * y
        return np.where(value > 0, found, -np.inf)

    def _quantile(self, known: Known, q: float) -> Mixed:
        return gammaincinv(known[0], q) / known[1]

    def _draw(self, first: Draws, second: Draws, rng: np.random.Generator) -> Draws:
        return rng.gamma(first) / second


LOG_NORMALS, PROBIT_NORMALS, GAMMAS = LogNormals(), ProbitNormals(), Gammas()


def log_moments(mean: Any, variance: Any) -> tuple[Any, Any]:
    """Return mean and variance of the logarithm of a log-normal.

    >>> log_moments(np.ones(1), np.zeros(1))
    (array([0.]), array([0.]))
    """
    mean = np.maximum(mean, TINY)
    with np.errstate(over="ignore"):
        spread = np.log1p(np.maximum(variance, 0.0) / mean / mean)
    return np.log(mean) - 0.5 * spread, spread


def probit_moments(mean: Any, variance: Any) -> tuple[Any, Any]:
    """Return mean and variance of z for which Phi(z) has this mean and variance (theory 11.3).

    >>> [round(float(m), 3) for m in probit_moments(0.5, 1 / 12)]  # uniform: z is standard
    [0.0, 1.0]
    """
    h = ndtri(np.clip(mean, 1e-15, 1 - 1e-15))
    low, high = np.zeros_like(h), np.full_like(h, 0.5 * np.pi)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        below = bivariate_excess(h, h, middle) < variance
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    # rho = c / (1 + c) is the correlation of two such z.
    rho = np.minimum(np.sin(0.5 * (low + high)), 1 - 1e-12)
    spread = rho / (1 - rho)
    return h * np.sqrt(1 + spread), spread


def _gaussian_grid(spacing: float) -> tuple[Vector, Vector]:
    nodes = np.arange(-REACH, REACH + 0.5 * spacing, spacing)
    share = np.exp(-0.5 * nodes**2)
    return nodes, share / share.sum()


def _flat(*arrays: Any) -> Any:
    """Join nodes and components into one axis of components."""
    return tuple(a.reshape(-1, a.shape[-1]) for a in arrays)


def _apart(first: tuple[Any, ...], second: tuple[Any, ...]) -> Any:
    """Return E|X - X'| of independent log-normals, by log-mean, log-variance and mean."""
    (a, c, m), (b, d, n) = first, second
    scale = np.sqrt(np.maximum(c + d, TINY))
    with np.errstate(over="ignore"):
        return m * (2 * ndtr((a + c - b) / scale) - 1) - n * (2 * ndtr((a - b - d) / scale) - 1)


def _log(value: Any) -> Any:
    return np.log(np.maximum(value, TINY))


def _probit(value: Any) -> Any:
    return ndtri(np.clip(value, TINY, 1 - 1e-16))
