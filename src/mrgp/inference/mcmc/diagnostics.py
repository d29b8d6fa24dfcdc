"""Have chains mixed? Rank-normalised split R-hat and bulk effective sample size (theory 7.3)."""

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

Draws = Float[np.ndarray, "c n"]
Halves = Float[np.ndarray, "h t"]


def r_hat(draws: Draws) -> float:
    """Return the larger of the bulk and the folded R-hat; NaN where draws do not vary.

    One is perfect; more than 1.01 says that chains have not seen the same distribution, in
    location or in spread.

    >>> rng = np.random.default_rng(0)
    >>> r_hat(rng.standard_normal((4, 500))) < 1.01 < r_hat(rng.standard_normal((4, 500)).cumsum(1))
    True
    """
    if not _varies(draws):
        return float("nan")
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves))
    return max(_plain_r_hat(_rank_normalised(halves)), _plain_r_hat(_rank_normalised(folded)))


def effective_sample_size(draws: Draws) -> float:
    """Return how many independent draws would tell the bulk as well; NaN where draws do not vary.

    >>> rng = np.random.default_rng(0)
    >>> 1500 < effective_sample_size(rng.standard_normal((4, 500))) < 2500
    True
    """
    if not _varies(draws):
        return float("nan")
    return _plain_size(_rank_normalised(_split(draws)))


def _varies(draws: Draws) -> bool:
    return bool(draws.shape[1] >= 4 and np.isfinite(draws).all() and np.ptp(draws) > 0)


def _split(draws: Draws) -> Halves:
    """Return the first and last halves of all chains as chains of their own."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _rank_normalised(draws: Draws) -> Draws:
    _, inverse, counts = np.unique(draws, return_inverse=True, return_counts=True)
    # Equal draws share the mean of their ranks.
    ranks = (np.cumsum(counts) - 0.5 * (counts - 1))[inverse].reshape(draws.shape)
    return ndtri((ranks - 0.375) / (draws.size + 0.25))


def _plain_r_hat(draws: Draws) -> float:
    n = draws.shape[1]
    within = draws.var(1, ddof=1).mean()
    if within == 0:
        return float("inf")
    between = draws.mean(1).var(ddof=1)
    return float(np.sqrt((n - 1) / n + between / within))


def _plain_size(draws: Draws) -> float:
    """Sum autocorrelations while pairs of them are positive and fall (Geyer's sequence)."""
    chains, n = draws.shape
    covariance = _autocovariance(draws).mean(0)
    within = covariance[0] * n / (n - 1)
    total = within * (n - 1) / n + draws.mean(1).var(ddof=1)
    correlation = 1 - (within - covariance * n / (n - 1)) / total
    correlation[0] = 1.0
    even = correlation[: 2 * (n // 2)].reshape(-1, 2)
    pairs = even.sum(1)
    stop = int(np.argmax(pairs < 0)) if (pairs < 0).any() else len(pairs)
    falling = np.minimum.accumulate(pairs[:stop])
    after = max(even[stop, 0], 0.0) if stop < len(even) else 0.0
    time = -1 + 2 * falling.sum() + after
    return float(chains * n / max(time, 1 / np.log10(chains * n)))


def _autocovariance(draws: Draws) -> Draws:
    """Return sum_t (x_t - mean)(x_t+k - mean) / n for every lag k, by the fast transform."""
    n = draws.shape[1]
    centred = draws - draws.mean(1, keepdims=True)
    power = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    return np.fft.irfft(power, 2 * n)[:, :n] / n
