"""Slow, obvious NumPy: dependent noise place by place, grids of hyperparameters, R-hat and ESS."""

import math

import numpy as np
from scipy.stats import norm

from reference import gaussian


def dependent_noise(fine_x, coarse_nodes, coarse_weights, fine_noise, coarse_noise):
    """Return the covariance of errors of fine points and of averages, pair by pair (theory 7.2)."""

    def parts(i):
        """Return the places that enter a value, with their shares."""
        if i < len(fine_x):
            return [(fine_x[i], 1.0)]
        j = i - len(fine_x)
        return list(zip(coarse_nodes[j], coarse_weights[j], strict=True))

    n = len(fine_x) + len(coarse_nodes)
    out = np.zeros((n, n))
    for i in range(n):
        for k in range(n):
            for x, w in parts(i):
                for z, v in parts(k):
                    if np.allclose(x, z, rtol=0, atol=1e-9):
                        out[i, k] += fine_noise * w * v
            if i == k and i >= len(fine_x):
                out[i, k] += coarse_noise
    return out


def grid_posterior(log_density, *axes):
    """Return probabilities on a grid."""
    shape = [len(axis) for axis in axes]
    logs = np.array([log_density(*point) for point in _points(axes)]).reshape(shape)
    found = np.exp(logs - logs.max())
    return found / found.sum()


def _points(axes):
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([m.ravel() for m in mesh], -1)


def log_normal_prior(value, median, sd):
    """Return the density of log value, up to nothing."""
    return norm.logpdf(math.log(value), math.log(median), sd)


def rank_normalised(draws):
    """Return normal scores of the ranks, one number at a time; ties share their mean rank."""
    flat = draws.ravel()
    scores = []
    for value in flat:
        rank = (flat < value).sum() + ((flat == value).sum() + 1) / 2
        scores.append(norm.ppf((rank - 3 / 8) / (len(flat) + 1 / 4)))
    return np.array(scores).reshape(draws.shape)


def halves(draws):
    """Return half chains."""
    n = draws.shape[1] // 2
    return np.array([part for chain in draws for part in (chain[:n], chain[-n:])])


def plain_r_hat(chains):
    """Return sqrt(total variance / within variance)."""
    n = len(chains[0])
    within = np.mean([np.var(c, ddof=1) for c in chains])
    between = n * np.var([np.mean(c) for c in chains], ddof=1)
    return math.sqrt(((n - 1) / n * within + between / n) / within)


def r_hat(draws):
    """Return the larger of the R-hats of draws and of their distance to the median."""
    split = halves(draws)
    folded = np.abs(split - np.median(split))
    return max(plain_r_hat(rank_normalised(split)), plain_r_hat(rank_normalised(folded)))


def effective_sample_size(draws):
    """Return the bulk effective sample size, lag by lag."""
    chains = rank_normalised(halves(draws))
    m, n = chains.shape

    def autocovariance(chain, lag):
        away = chain - chain.mean()
        return sum(away[t] * away[t + lag] for t in range(n - lag)) / n

    within = np.mean([np.var(c, ddof=1) for c in chains])
    total = (n - 1) / n * within + np.var([c.mean() for c in chains], ddof=1)

    def rho(lag):
        if lag == 0:
            return 1.0
        mean = np.mean([autocovariance(c, lag) * n / (n - 1) for c in chains])
        return 1 - (within - mean) / total

    time, least, lag = -1.0, np.inf, 0
    while lag + 1 < n:
        pair = rho(lag) + rho(lag + 1)
        if pair < 0:
            time += max(rho(lag), 0.0)
            break
        least = min(least, pair)
        time += 2 * least
        lag += 2
    return m * n / max(time, 1 / math.log10(m * n))


def log_evidence(rows, y, noise, kernel):
    """Return log N(y | 0, K + noise) for functionals and a dense noise covariance."""
    return gaussian.log_normal(y, gaussian.covariance(kernel, rows, rows) + noise)
