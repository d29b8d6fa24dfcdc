"""Scores, H, J and weights by loops over clusters (theory 4.2 to 4.4)."""

import numpy as np
from scipy.linalg import sqrtm


def smoother(prior, noise):
    """Return S = C (C + I)^-1 for C = R^-1/2 K R^-1/2."""
    scale = np.sqrt(noise)
    c = prior / np.outer(scale, scale)
    return c @ np.linalg.inv(c + np.eye(len(c)))


def freed(s, values, clusters):
    """Return u_b = (I - S_bb)^-1/2 r_b, cluster by cluster."""
    residual = values - s @ values
    found = np.zeros(len(values))
    for b in np.unique(clusters):
        rows = np.flatnonzero(clusters == b)
        inner = np.eye(len(rows)) - s[np.ix_(rows, rows)]
        found[rows] = np.linalg.inv(np.real(sqrtm(inner))) @ residual[rows]
    return found


def sums(s, u, sources, clusters):
    """Return sum_b u_ba^T S_(ba,ba) u_ba and sum_b u_ba^T S_(ba,b) u_b for every source a."""
    count = sources.max() + 1
    own, shared = np.zeros(count), np.zeros(count)
    for b in np.unique(clusters):
        rows = np.flatnonzero(clusters == b)
        for a in range(count):
            mine = np.array([n for n in rows if sources[n] == a], int)
            own[a] += u[mine] @ s[np.ix_(mine, mine)] @ u[mine]
            shared[a] += u[mine] @ s[np.ix_(mine, rows)] @ u[rows]
    return own, shared


def ratio(s, u, sources, clusters):
    own, shared = sums(s, u, sources, clusters)
    return own.sum() / shared.sum()


def ratio_per_source(s, u, sources, clusters):
    own, shared = sums(s, u, sources, clusters)
    return own / shared


def ribatet(s, u, sources, clusters):
    _, shared = sums(s, u, sources, clusters)
    return np.trace(s) / shared.sum()


def lyddon(information, scores, directions):
    """Return tr(H J^-1 H) / tr H along so many leading eigenvectors of H, J^-1 made unbiased."""
    values, vectors = np.linalg.eigh(information)
    chosen = np.argsort(values)[::-1][:directions]
    h = np.diag(values[chosen])
    j = sum(np.outer(g, g) for g in scores @ vectors[:, chosen])
    clusters = len(scores)
    unbiased = np.linalg.inv(j) * (clusters - directions - 1) / clusters
    return np.trace(h @ unbiased @ h) / np.trace(h)


def log_evidence(prior, noise, values):
    covariance = prior + np.diag(noise)
    return -0.5 * (
        values @ np.linalg.solve(covariance, values)
        + np.linalg.slogdet(covariance)[1]
        + len(values) * np.log(2 * np.pi)
    )
