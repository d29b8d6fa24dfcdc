"""A field in space and time through inducing places, all matrices written out (theory 10.5)."""

import numpy as np


def through(space, time, inducing, place, when):
    """Return Q, the covariance of values through inducing places, and that of the field itself."""
    cross = np.array([[space(p, z) for z in inducing] for p in place])
    among = np.array([[space(a, b) for b in inducing] for a in inducing])
    own = np.array([[space(a, b) for b in place] for a in place])
    along = np.array([[time(s, t) for t in when] for s in when])
    return cross @ np.linalg.solve(among, cross.T) * along, own * along


def bound(y, q, k, noise):
    """Return log N(y | 0, Q + R) - 1/2 tr(R^-1 (K - Q))."""
    total = q + np.diag(noise)
    size = np.linalg.slogdet(total)[1] + len(y) * np.log(2 * np.pi)
    square = y @ np.linalg.solve(total, y)
    return -0.5 * (size + square + np.sum((np.diag(k) - np.diag(q)) / noise))


def predicted(y, q, k, noise, data, asked):
    """Return mean and covariance of the values `asked`, given the values `data`, by number."""
    total = q[np.ix_(data, data)] + np.diag(noise)
    cross = q[np.ix_(asked, data)]
    mean = cross @ np.linalg.solve(total, y)
    return mean, k[np.ix_(asked, asked)] - cross @ np.linalg.solve(total, cross.T)
