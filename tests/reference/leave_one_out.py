"""Slow, obvious NumPy: condition again without each value in turn, at the same parameters."""

import itertools

import numpy as np


def leave_one_out(prior, residual, noise, weight):
    """Return mean and variance of each noisy value given all others, weighted (theory 2.6).

    The others have the noise s2 / phi; the value itself, when it comes, has s2.
    """
    means, variances = [], []
    for i in range(len(residual)):
        others = np.arange(len(residual)) != i
        total = prior[np.ix_(others, others)] + np.diag((noise / weight)[others])
        cross = prior[i, others]
        means.append(cross @ np.linalg.solve(total, residual[others]))
        variances.append(prior[i, i] - cross @ np.linalg.solve(total, cross) + noise[i])
    return np.array(means), np.array(variances)


def semivariances(residual, covariance, distance, edges):
    """Return lag, number, empirical and expected semivariance of each bin, and its sd, by pairs."""
    rows = []
    for low, high in itertools.pairwise(edges):
        pairs = [
            (i, j)
            for i in range(len(residual))
            for j in range(i)
            if low < distance[i, j] <= high or distance[i, j] == low == edges[0]
        ]
        if not pairs:
            continue
        seen = [0.5 * (residual[i] - residual[j]) ** 2 for i, j in pairs]
        c = covariance
        expected = [0.5 * (c[i, i] + c[j, j]) - c[i, j] for i, j in pairs]
        lag = np.mean([distance[i, j] for i, j in pairs])
        # The squares of Gaussian differences covary by twice the square of their covariance.
        apart = np.array([np.eye(len(c))[i] - np.eye(len(c))[j] for i, j in pairs])
        spread = np.sqrt(2 * np.mean((apart @ c @ apart.T) ** 2)) / 2
        rows.append((lag, len(pairs), np.mean(seen), np.mean(expected), spread))
    return np.array(rows).T
