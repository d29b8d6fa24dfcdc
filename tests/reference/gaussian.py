"""Slow, obvious NumPy: linear functionals by quadrature, dense Gaussian conditioning."""

import numpy as np

ORDER = 12


def rbf(x, z, lengthscale, variance):
    """Return the squared-exponential kernel matrix."""
    difference = (x[:, None, :] - z[None, :, :]) / lengthscale
    return variance * np.exp(-0.5 * (difference**2).sum(-1))


def functionals(support):
    """Write every region as (nodes [k, d], weights [k]); boxes by tensor Gauss-Legendre."""
    atoms = support.atoms()
    out = []
    for lower, upper, weights in zip(atoms.lower, atoms.upper, atoms.weights, strict=True):
        parts = [box_nodes(a, b, w) for a, b, w in zip(lower, upper, weights, strict=True)]
        out.append((np.concatenate([x for x, _ in parts]), np.concatenate([w for _, w in parts])))
    return out


def box_nodes(lower, upper, weight):
    """Return tensor Gauss-Legendre nodes of one box; one node along sides of zero width."""
    t, c = np.polynomial.legendre.leggauss(ORDER)
    nodes, weights = [np.zeros(0)], [weight]
    for a, b in zip(lower, upper, strict=True):
        x, w = ([a], [1.0]) if a == b else ((a + b) / 2 + (b - a) / 2 * t, c / 2)
        nodes = [np.append(row, value) for row in nodes for value in x]
        weights = [u * v for u in weights for v in w]
    return np.array(nodes), np.array(weights)


def covariance(kernel, first, second):
    """Return cov(L f, L' f) by the double sum over nodes."""
    return np.array([[u @ kernel(x, z) @ v for z, v in second] for x, u in first])


def totals(parts):
    """Return L 1."""
    return np.array([w.sum() for _, w in parts])


def moments(parts):
    """Return L x."""
    return np.array([w @ x for x, w in parts])


def log_normal(residual, cov):
    """Return log N(residual | 0, cov)."""
    sign, logdet = np.linalg.slogdet(cov)
    assert sign > 0
    quadratic = residual @ np.linalg.solve(cov, residual)
    return -0.5 * (quadratic + logdet + len(residual) * np.log(2 * np.pi))


def tempering(noise, weight):
    """Return log of N(y|m,s2)^phi / N(y|m,s2/phi), summed over rows (theory 2.2)."""
    log = np.log
    terms = -weight / 2 * log(2 * np.pi * noise) + 0.5 * log(2 * np.pi * noise / weight)
    return terms.sum()


def exact(kernel, rows, residual, ratios, noise, weight):
    """Return log evidence and the matrix K + R of the dense model (theory 2.3)."""
    prior = np.outer(ratios, ratios) * covariance(kernel, rows, rows)
    total = prior + np.diag(noise / weight)
    return log_normal(residual, total) + tempering(noise, weight), total


def posterior(kernel, rows, residual, ratios, total, test):
    """Return posterior mean and covariance of L f on test functionals."""
    cross = covariance(kernel, test, rows) * ratios
    mean = cross @ np.linalg.solve(total, residual)
    return mean, covariance(kernel, test, test) - cross @ np.linalg.solve(total, cross.T)


def collapsed(kernel, rows, residual, ratios, noise, weight, z, jitter=1e-10):
    """Return the Titsias bound by dense N x N algebra (theory 2.4)."""
    kzz = kernel(z, z)
    kzz = kzz + jitter * np.trace(kzz) / len(z) * np.eye(len(z))
    points = [(row[None], np.ones(1)) for row in z]
    kxz = ratios[:, None] * covariance(kernel, rows, points)
    q = kxz @ np.linalg.solve(kzz, kxz.T)
    own = np.array([u @ kernel(x, x) @ u for x, u in rows]) * ratios**2
    trace = np.sum(weight / noise * (own - np.diag(q)))
    density = log_normal(residual, q + np.diag(noise / weight))
    return density - 0.5 * trace + tempering(noise, weight)
