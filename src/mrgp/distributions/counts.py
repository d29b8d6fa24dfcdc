"""Mixtures of whole numbers: Poisson, negative binomial and binomial components."""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import betainc, gammaincc, gammaln, xlog1py

from mrgp.distributions.gaussians import (
    TINY,
    Draws,
    Gaussians,
    Known,
    Mixed,
    Mixtures,
    Parts,
    Vector,
    as_number,
)

MOST_COUNTS = 20_000


@dataclasses.dataclass(frozen=True)
class Counts(Mixtures):
    """Mixtures of whole numbers: Poisson, negative binomial and binomial components.

    Which of them a component is follows from its variance, which equals the mean, or is above it,
    or below.

    >>> one = np.ones((1, 1))
    >>> float(Counts().cdf((one, one, one), [0.0])[0].round(3))  # Poisson: 1 / e
    0.368
    >>> Counts().quantile((one, 4 * one, 4 * one), 0.975)
    array([8.])
    """

    discrete = True

    def quantile(self, parts: Parts, q: float) -> Vector:
        """Return the least count with P(value <= count) of at least q."""
        mean, variance = self.moments(parts)
        low = np.full(mean.shape, -1.0)
        high = np.ceil(mean + 10 * np.sqrt(variance) + 10)
        while np.any(self.cdf(parts, high) < q):
            high = np.where(self.cdf(parts, high) < q, 2 * high, high)
        while np.any(high - low > 1):
            middle = np.floor(0.5 * (low + high))
            below = self.cdf(parts, middle) < q
            wide = high - low > 1
            low, high = np.where(wide & below, middle, low), np.where(wide & ~below, middle, high)
        return high

    def crps(self, parts: Parts, value: Any) -> Vector:
        """Return the sum of (F(k) - 1[y <= k])^2 over all counts k."""
        y = np.broadcast_to(as_number(value), parts[1].shape[1:])
        top = np.maximum(self.quantile(parts, 1 - 1e-9), np.nan_to_num(y))
        found = np.full(y.shape, np.nan)
        # Large counts are as good as continuous, and their sums long.
        large = top > MOST_COUNTS
        if large.any():
            found[large] = Gaussians().crps(_some(parts, large), y[large])
        for n in np.flatnonzero(~large & ~np.isnan(y)):
            k = np.arange(top[n] + 1)
            mean, variance = (np.repeat(p[:, [n]], len(k), 1) for p in self._known(parts))
            below = (parts[0][:, [n]] * self._cdf((mean, variance), k)).sum(0)
            found[n] = np.sum((below - (k >= y[n])) ** 2) + max(-y[n], 0.0)
        return found

    def _known(self, parts: Parts) -> Known:
        return np.maximum(parts[1], TINY), parts[2]

    def _cdf(self, known: Known, value: Any) -> Mixed:
        mean, variance, k = np.broadcast_arrays(*known, np.floor(value))
        found = np.zeros(mean.shape)
        for kind, of in zip(_kinds(mean, variance), CDFS, strict=True):
            found[kind] = of(mean[kind], variance[kind], np.maximum(k[kind], 0.0))
        return np.where(k < 0, 0.0, np.where(np.isnan(k), np.nan, found))

    def _log_density(self, known: Known, value: Any) -> Mixed:
        mean, variance, k = np.broadcast_arrays(*known, value)
        found = np.zeros(mean.shape)
        for kind, of in zip(_kinds(mean, variance), LOGS, strict=True):
            found[kind] = of(mean[kind], variance[kind], np.maximum(k[kind], 0.0))
        whole = (k >= 0) & (k == np.floor(k))
        return np.where(np.isnan(k), np.nan, np.where(whole, found, -np.inf))

    def _draw(self, first: Draws, second: Draws, rng: np.random.Generator) -> Draws:
        mean, variance, found = first, second, np.zeros(first.shape)
        plain, wide, narrow = _kinds(mean, variance)
        found[plain] = rng.poisson(mean[plain])
        size = mean[wide] ** 2 / (variance[wide] - mean[wide])
        found[wide] = rng.poisson(rng.gamma(size) * mean[wide] / size)
        share, trials = _binomial(mean[narrow], variance[narrow])
        found[narrow] = rng.binomial(trials.astype(int), share)
        return found


COUNTS = Counts()


def _some(parts: Parts, rows: Any) -> Parts:
    weights, means, variances = parts
    return weights[:, rows], means[:, rows], variances[:, rows]


def _kinds(mean: Any, variance: Any) -> tuple[Any, Any, Any]:
    """Tell Poisson, wider and narrower components apart."""
    wide, narrow = variance > mean * (1 + 1e-9), variance < mean * (1 - 1e-12)
    return ~(wide | narrow), wide, narrow


def _poisson_cdf(mean: Any, _: Any, k: Any) -> Any:
    return gammaincc(k + 1, mean)


def _poisson_log(mean: Any, _: Any, k: Any) -> Any:
    return k * np.log(mean) - mean - gammaln(k + 1)


def _wide_cdf(mean: Any, variance: Any, k: Any) -> Any:
    size = mean**2 / (variance - mean)
    return betainc(size, k + 1, size / (size + mean))


def _wide_log(mean: Any, variance: Any, k: Any) -> Any:
    size = mean**2 / (variance - mean)
    ways = gammaln(k + size) - gammaln(size) - gammaln(k + 1)
    return ways - size * np.log1p(mean / size) - k * np.log1p(size / mean)


def _binomial(mean: Any, variance: Any) -> tuple[Any, Any]:
    share = np.clip(1.0 - variance / mean, 1e-12, 1.0)
    return share, np.round(mean / share)


def _narrow_cdf(mean: Any, variance: Any, k: Any) -> Any:
    share, trials = _binomial(mean, variance)
    inside = betainc(np.maximum(trials - k, 0.5), k + 1, 1.0 - share)
    return np.where(k >= trials, 1.0, inside)


def _narrow_log(mean: Any, variance: Any, k: Any) -> Any:
    share, trials = _binomial(mean, variance)
    left = np.maximum(trials - k, 0.0)
    ways = gammaln(trials + 1) - gammaln(k + 1) - gammaln(left + 1)
    found = ways + k * np.log(share) + xlog1py(left, -share)
    return np.where(k > trials, -np.inf, found)


CDFS = (_poisson_cdf, _wide_cdf, _narrow_cdf)
LOGS = (_poisson_log, _wide_log, _narrow_log)
