"""Slow, obvious NumPy: the uncollapsed bound of a sparse GP, row by row (theory 2.5)."""

import numpy as np

from reference.gaussian import covariance


def expected_log_likelihood(kernel, rows, residual, noise, weight, z, mean, cov, jitter=1e-10):
    """Return sum_n phi_n E_q[log N(e_n | L f, s2_n)] for whitened q(u) = N(mean, cov)."""
    points = [(x[None, :], np.ones(1)) for x in z]
    kzz = covariance(kernel, points, points)
    lz = np.linalg.cholesky(kzz + jitter * np.trace(kzz) / len(z) * np.eye(len(z)))
    total = 0.0
    for row, e, s2, phi in zip(rows, residual, noise, weight, strict=True):
        alpha = np.linalg.solve(lz, covariance(kernel, [row], points)[0])
        centre = alpha @ mean
        spread = covariance(kernel, [row], [row])[0, 0] - alpha @ alpha + alpha @ cov @ alpha
        density = -0.5 * np.log(2 * np.pi * s2) - 0.5 * (e - centre) ** 2 / s2
        total += phi * (density - 0.5 * spread / s2)
    return total


def divergence(mean, cov):
    """Return KL(N(mean, cov) || N(0, I))."""
    return 0.5 * (np.trace(cov) + mean @ mean - len(mean) - np.linalg.slogdet(cov)[1])
