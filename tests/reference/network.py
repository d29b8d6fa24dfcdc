"""Slow, obvious NumPy: a network of GPs, node by node (theory 3.3 to 3.7)."""

import itertools

import numpy as np


def conditional(kernel, z, mean, cov, x, jitter=1e-10):
    """Return mean [s] and covariance [s, s] of f at x for whitened q(u) = N(mean, cov)."""
    kzz = np.array([[kernel(a, b) for b in z] for a in z])
    lz = np.linalg.cholesky(kzz + jitter * np.trace(kzz) / len(z) * np.eye(len(z)))
    kzx = np.array([[kernel(a, b) for b in x] for a in z])
    alpha = np.linalg.solve(lz, kzx)
    kxx = np.array([[kernel(a, b) for b in x] for a in x])
    return alpha.T @ mean, kxx - alpha.T @ alpha + alpha.T @ cov @ alpha


def exponential(mean, cov):
    """Return mean and covariance of exp(w) for Gaussian w."""
    s = len(mean)
    centre = np.array([np.exp(mean[i] + cov[i, i] / 2) for i in range(s)])
    spread = np.zeros((s, s))
    for i, j in itertools.product(range(s), range(s)):
        spread[i, j] = centre[i] * centre[j] * (np.exp(cov[i, j]) - 1)
    return centre, spread


def moments(weights, factors):
    """Return mean and variance of sum_s weights_s sum_q w_q(s) f_q(s).

    `factors` lists (f mean, f cov, w mean, w cov) for every latent function.
    """
    mean = variance = 0.0
    for mf, cf, mw, cw in factors:
        for s in range(len(weights)):
            mean += weights[s] * mw[s] * mf[s]
            for t in range(len(weights)):
                pair = cw[s, t] * cf[s, t] + mf[s] * mf[t] * cw[s, t] + mw[s] * mw[t] * cf[s, t]
                variance += weights[s] * weights[t] * pair
    return mean, variance


def coupled_moments(weights, mf, cf, mw, cw):
    """The same for latent functions that covary: mf [q, s], cf [q, s, q, s], and so for w."""
    latents, nodes = mf.shape
    mean = variance = 0.0
    every = list(itertools.product(range(latents), range(nodes)))
    for q, s in every:
        mean += weights[s] * mw[q, s] * mf[q, s]
        for r, t in every:
            f, w = cf[q, s, r, t], cw[q, s, r, t]
            pair = f * w + mf[q, s] * mf[r, t] * w + mw[q, s] * mw[r, t] * f
            variance += weights[s] * weights[t] * pair
    return mean, variance


def expected_log_density(y, noise, mean, variance):
    """Return E[log N(y | g, noise)] for g with these moments."""
    return -0.5 * np.log(2 * np.pi * noise) - ((y - mean) ** 2 + variance) / (2 * noise)


def cross(mean, cov):
    """Return E[log N(u | 0, I)] under N(mean, cov)."""
    m = len(mean)
    return -0.5 * m * np.log(2 * np.pi) - 0.5 * mean @ mean - 0.5 * np.trace(cov)


def normal_log_density(x, mean, cov):
    """Return log N(x | mean, cov)."""
    d = x - mean
    return -0.5 * (
        len(x) * np.log(2 * np.pi) + np.linalg.slogdet(cov)[1] + d @ np.linalg.solve(cov, d)
    )


def entropy_paper(weights, components):
    """Return the paper's bound; `components` lists for each k the blocks (mean, cov)."""
    total = 0.0
    for k, pk in enumerate(weights):
        inner = 0.0
        for j, pj in enumerate(weights):
            density = 1.0
            for (mk, sk), (mj, sj) in zip(components[k], components[j], strict=True):
                density *= np.exp(normal_log_density(mk, mj, sk + sj))
            inner += pj * density
        total -= pk * np.log(inner)
    return total


def entropy_bhattacharyya(weights, components):
    """Return the bound by Bhattacharyya distances (theory 3.5)."""
    total = 0.0
    for k, pk in enumerate(weights):
        for _, cov in components[k]:
            total += pk * 0.5 * np.linalg.slogdet(2 * np.pi * np.e * cov)[1]
        inner = 0.0
        for j, pj in enumerate(weights):
            distance = 0.0
            for (mk, sk), (mj, sj) in zip(components[k], components[j], strict=True):
                sb, d = (sk + sj) / 2, mk - mj
                logs = np.linalg.slogdet(sb)[1] - 0.5 * (
                    np.linalg.slogdet(sk)[1] + np.linalg.slogdet(sj)[1]
                )
                distance += d @ np.linalg.solve(sb, d) / 8 + 0.5 * logs
            inner += pj * np.exp(-distance)
        total -= pk * np.log(inner)
    return total
