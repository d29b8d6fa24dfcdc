"""Slow, obvious NumPy: a tree of GPs, path by path and node by node (theory 5)."""

import numpy as np
from scipy.special import ndtr

from reference.gaussian import exact, posterior, totals
from reference.variational import divergence, expected_log_likelihood

ROOT_JITTER = 1e-6
JITTER = 1e-10


def points(x):
    """Write rows of x as functionals."""
    return [(row[None], np.ones(1)) for row in x]


def draw(mean, cov, white):
    """Return mean + root(cov) white, jointly over the nodes of a region."""
    if len(mean) == 1:
        return mean + np.sqrt(max(cov[0, 0], 0.0)) * white
    scale = np.diag(cov).max()
    root = np.linalg.cholesky(cov / scale + ROOT_JITTER * np.eye(len(mean)))
    return mean + np.sqrt(scale) * root @ white


class Base:
    """A GP of a source's own values: evidence and posterior by dense algebra (theory 2.3)."""

    def __init__(self, kernel, rows, y, level, noise, weight):
        ones = np.ones(len(rows))
        self.kernel, self.level, self.rows = kernel, level, rows
        self.residual = y - level * totals(rows)
        noise, weight = noise * ones, weight * ones
        self.bound, self.total = exact(kernel, rows, self.residual, ones, noise, weight)

    def at(self, x):
        """Return mean [s] and covariance [s, s] of the field at nodes."""
        ones = np.ones(len(self.rows))
        mean, cov = posterior(
            self.kernel, self.rows, self.residual, ones, self.total, points(np.asarray(x))
        )
        return self.level + mean, cov


class Layer:
    """A sparse GP over values of its parent, at the optimal q(u) (theory 2.4, 2.5 and 5.4).

    `paths` has for every value of the target the nodes' inputs [j, s, c], one for each path, and
    `weights` the nodes' weights. The GP explains what `slope` times the parent leaves; its mean is
    `constant` + inputs @ `slopes`.
    """

    def __init__(self, kernel, z, paths, weights, y, slope, constant, slopes, noise, weight):
        self.kernel, self.z = kernel, z
        self.slope, self.constant, self.slopes = slope, constant, slopes
        self.excess = 0.0
        rows, residual, share = [], [], []
        for inputs, w, value in zip(paths, weights, y, strict=True):
            for along in inputs:
                rows.append((along, w))
                residual.append(value - w @ (slope * along[:, 0] + self.mean(along)))
                share.append(weight / len(inputs))
        residual, share = np.array(residual), np.array(share)
        kzz = kernel(z, z)
        self.lz = np.linalg.cholesky(kzz + JITTER * np.trace(kzz) / len(z) * np.eye(len(z)))
        precision, score = np.eye(len(z)), np.zeros(len(z))
        for (inputs, w), e, phi in zip(rows, residual, share, strict=True):
            alpha = np.linalg.solve(self.lz, kernel(z, inputs) @ w)
            precision += phi / noise * np.outer(alpha, alpha)
            score += phi / noise * e * alpha
        self.cov = np.linalg.inv(precision)
        self.q = self.cov @ score
        self.likelihood = expected_log_likelihood(
            kernel, rows, residual, np.full(len(rows), noise), share, z, self.q, self.cov
        )
        self.bound = self.likelihood - divergence(self.q, self.cov)

    def mean(self, inputs):
        return self.constant + inputs @ self.slopes

    def at(self, inputs):
        """Return mean [s] and covariance [s, s] of the target's field at nodes of one path."""
        alpha = np.linalg.solve(self.lz, self.kernel(self.z, inputs))
        centre = self.slope * inputs[:, 0] + self.mean(inputs) + alpha.T @ self.q
        inner = self.kernel(inputs, inputs) - alpha.T @ alpha + alpha.T @ self.cov @ alpha
        return centre, inner + self.excess


class Tree:
    """Bases, layers over paths of their parents, and mixtures of experts.

    `normals(name, s)` has the white numbers of a node's paths [j, s]; `beside` are the inputs that
    layers see besides values.
    """

    def __init__(self, normals, paths, beside=(), mixing="reliability"):
        self.normals, self.paths, self.beside = normals, paths, list(beside)
        self.mixing = mixing
        self.nodes, self.parents, self.floors, self.mixtures = {}, {}, {}, {}

    @property
    def bound(self):
        """The bounds of all nodes, each given its parent's paths."""
        return sum(node.bound for node in self.nodes.values())

    def inputs(self, parent, x):
        """Return what a layer sees at the nodes of a region, [j, s, c]."""
        h = self.draws(parent, x)
        return np.array([np.column_stack([along, x[:, self.beside]]) for along in h])

    def outcomes(self, name, x):
        """Return mean and covariance at the nodes of a region, for each path."""
        node, parent = self.nodes[name], self.parents[name]
        if parent is None:
            return [node.at(x)] * self.paths
        return [node.at(inputs) for inputs in self.inputs(parent, x)]

    def variances(self, name, x):
        """Return the variance at nodes over all paths."""
        found = self.outcomes(name, x)
        return np.mean([np.diag(cov) for _, cov in found], 0) + np.var([m for m, _ in found], 0)

    def draws(self, name, x):
        """Return values at the nodes of a region along each path, [j, s]."""
        if name not in self.mixtures:
            white = self.normals(name, len(x))
            return np.array(
                [draw(*o, e) for o, e in zip(self.outcomes(name, x), white, strict=True)]
            )
        experts = self.mixtures[name]
        shares = self.shares(experts, x)
        level = self.normals(name, len(x))[:, 0]
        found = np.zeros((self.paths, len(x)))
        for a, expert in enumerate(experts):
            white = self.normals(f"{name} {expert}", len(x))
            for j, outcome in enumerate(self.outcomes(expert, x)):
                values = draw(*outcome, white[j])
                for s in range(len(x)):
                    start, end = shares[:a, s].sum(), shares[: a + 1, s].sum()
                    end = end if a < len(experts) - 1 else np.inf
                    if start <= ndtr(level[j]) < end:
                        found[j, s] = values[s]
        return found

    def reliability(self, name, x):
        """Return how much is known at nodes of what a node, or a mixture, rests on (theory 5.7)."""
        if name in self.mixtures:
            unknown = np.ones(len(x))
            for expert in self.mixtures[name]:
                unknown *= 1 - self.reliability(expert, x)
            return 1 - unknown
        if self.parents[name] is not None:
            return self.reliability(self.parents[name], x)
        base, found = self.nodes[name], []
        for place in x:
            variance, prior = base.at(place[None])[1][0, 0], base.kernel(place[None], place[None])
            found.append(reliability(variance, prior[0, 0], self.floors[name]))
        return np.array(found)

    def shares(self, experts, x):
        """Return the weight of each expert at nodes, [a, s]."""
        if self.mixing == "precision":
            base = self.nodes[experts[0]]
            found = np.full((len(experts), len(x)), 1 / len(experts))
            for s, place in enumerate(x):
                prior = base.kernel(place[None], place[None])[0, 0]
                gained = [max(0, 1 / self.variances(n, x)[s] - 1 / prior) for n in experts]
                if prior * sum(gained) > 1e-12:
                    found[:, s] = np.array(gained) / sum(gained)
            return found
        known = [self.reliability(name, x) for name in experts]
        return np.array([in_order([r[s] for r in known]) for s in range(len(x))]).T

    def overlap(self, name, rows):
        """Return the regions in which a node knows something, on average."""
        known = []
        for x, w in rows:
            known.append(np.abs(w) @ self.reliability(name, x) / np.abs(w).sum())
        return np.flatnonzero(np.array(known) >= 0.5)

    def unexplained(self, name, rows, noise):
        """Return by how much a layer's noise exceeds the target's and its own account of itself."""
        told = []
        for x, w in rows:
            found = self.outcomes(name, x)
            told.append(np.mean([w @ c @ w for _, c in found]) + np.var([w @ m for m, _ in found]))
        return max(0.0, noise - np.mean(told)) / np.mean([w.sum() ** 2 for _, w in rows])

    def components(self, experts, x, weights):
        """Return weights, means and variances of the mixture on one region, slice by slice."""
        outcomes = [self.outcomes(name, x) for name in experts]
        widths, parts = slices(self.shares(experts, x), weights)
        found = []
        for k, width in enumerate(widths):
            for j in range(self.paths):
                mean = variance = 0.0
                for a in range(len(experts)):
                    centre, cov = outcomes[a][j]
                    mine = weights * parts[k][a]
                    mean, variance = mean + mine @ centre, variance + mine @ cov @ mine
                found.append((width / self.paths, mean, variance))
        return np.array(found).T


def floor(base, centres):
    """Return the median posterior variance of a base at the centres of its regions."""
    return np.median([base.at(x[None])[1][0, 0] for x in centres])


def reliability(variance, prior, floor):
    """Return how much a base knows at one place."""
    if prior <= floor:
        return 0.5 * (1 + np.tanh(-5))
    unknown = np.log(variance / floor) / np.log(prior / floor)
    return 0.5 * (1 + np.tanh(10 * (0.5 - min(max(unknown, 0.0), 1.0))))


def in_order(reliabilities):
    """Return b_a = r_a prod_{i<a} (1 - r_i), the last taking what is left."""
    count, found = len(reliabilities), []
    for a in range(count):
        before = np.prod([1 - r for r in reliabilities[:a]])
        found.append(before * (reliabilities[a] if a < count - 1 else 1.0))
    return found


def slices(shares, weights):
    """Return widths [k] of slices of [0, 1], and each expert's part in them at nodes, [k][a][s]."""
    experts, nodes = shares.shape
    size = np.abs(weights) / np.abs(weights).sum()
    widths = [sum(size[s] * shares[k, s] for s in range(nodes)) for k in range(experts)]
    parts = np.zeros((experts, experts, nodes))
    for k in range(experts):
        lower = sum(widths[:k])
        if widths[k] == 0:
            continue
        for a in range(experts):
            for s in range(nodes):
                start = shares[:a, s].sum()
                shared = min(start + shares[a, s], lower + widths[k]) - max(start, lower)
                parts[k, a, s] = max(shared, 0.0) / widths[k]
    return np.array(widths), parts
