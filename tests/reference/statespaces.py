"""Kernels of time by their formulas, and the integrals of matrices by quadrature, in NumPy."""

import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def matern(order, lengthscale, variance, r):
    """Return a Matern kernel of order 1/2, 3/2 or 5/2 (given as 1, 3, 5) at distances."""
    s = np.sqrt(order) * np.abs(r) / lengthscale
    polynomial = {1: 1.0, 3: 1.0 + s, 5: 1.0 + s + s**2 / 3}[order]
    return variance * polynomial * np.exp(-s)


def periodic(period, lengthscale, variance, r):
    """Return a periodic kernel at distances."""
    return variance * np.exp(-2.0 * np.sin(np.pi * r / period) ** 2 / lengthscale**2)


def once(function, end):
    """Return the integral from 0 to `end` of a function whose values are matrices or numbers."""
    half = 0.5 * end
    return sum(half * w * function(half * (x + 1)) for x, w in zip(NODES, WEIGHTS, strict=True))


def twice(function, end):
    """Return the integral from 0 to `end` of the integral from 0."""
    return once(lambda t: (end - t) * function(t), end)
