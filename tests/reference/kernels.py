"""Kernels as written on paper: one pair of inputs at a time, in plain Python and NumPy.

A kernel here is a function of two sequences of numbers. `matrix` loops it over rows, `only` shows
it some of the inputs.
"""

import math

import numpy as np


def matrix(kernel, x, z):
    """Return [kernel(row of x, row of z)] by a double loop."""
    values = np.empty((len(x), len(z)))
    for n, a in enumerate(x):
        for m, b in enumerate(z):
            values[n, m] = kernel(a, b)
    return values


def only(kernel, *dims):
    """Return the kernel applied to some of the inputs."""
    return lambda a, b: kernel([a[d] for d in dims], [b[d] for d in dims])


def add(*kernels):
    """Return the sum of kernels."""
    return lambda a, b: sum(k(a, b) for k in kernels)


def multiply(*kernels):
    """Return the product of kernels."""
    return lambda a, b: math.prod(k(a, b) for k in kernels)


def _each(value, inputs):
    """Return one number for each input, from one for all or one for each."""
    return [float(v) for v in np.broadcast_to(value, (inputs,))]


def _distance(a, b, lengthscale):
    total = 0.0
    for x, z, scale in zip(a, b, _each(lengthscale, len(a)), strict=True):
        total += ((x - z) / scale) ** 2
    return math.sqrt(total)


def _rbf_profile(r):
    return math.exp(-0.5 * r * r)


def _matern12_profile(r):
    return math.exp(-r)


def _matern32_profile(r):
    return (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r)


def _matern52_profile(r):
    return (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r)


PROFILES = {
    "RBF": _rbf_profile,
    "Matern12": _matern12_profile,
    "Matern32": _matern32_profile,
    "Matern52": _matern52_profile,
}


def radial(name, lengthscale=1.0, variance=1.0):
    """Return a kernel of the scaled distance: RBF, Matern12, Matern32 or Matern52."""
    return lambda a, b: variance * PROFILES[name](_distance(a, b, lengthscale))


def product(name, lengthscale=1.0, variance=1.0):
    """Return the product over the inputs of one-dimensional kernels of the distance."""

    def kernel(a, b):
        value = variance
        for x, z, scale in zip(a, b, _each(lengthscale, len(a)), strict=True):
            value *= PROFILES[name](abs(x - z) / scale)
        return value

    return kernel


def periodic(period, lengthscale=1.0, variance=1.0):
    """Return exp(-2 sin^2(pi (x - z) / period) / lengthscale^2), multiplied over the inputs."""

    def kernel(a, b):
        value = variance
        for x, z in zip(a, b, strict=True):
            value *= math.exp(-2 * math.sin(math.pi * (x - z) / period) ** 2 / lengthscale**2)
        return value

    return kernel


def linear(variance=1.0, origin=0.0):
    """Return the sum over the inputs of variance (x - origin) (z - origin)."""

    def kernel(a, b):
        variances, origins = _each(variance, len(a)), _each(origin, len(a))
        terms = zip(a, b, variances, origins, strict=True)
        return sum(v * (x - o) * (z - o) for x, z, v, o in terms)

    return kernel


def constant(variance=1.0):
    """Return the same number everywhere."""
    return lambda a, b: variance


def white(variance=1.0):
    """Return the variance where the inputs are equal, and zero elsewhere."""
    return lambda a, b: variance if all(x == z for x, z in zip(a, b, strict=True)) else 0.0


def rational_quadratic(lengthscale=1.0, alpha=1.0, variance=1.0):
    """Return (1 + r^2 / (2 alpha))^-alpha of the scaled distance r."""
    return lambda a, b: variance * (1 + _distance(a, b, lengthscale) ** 2 / (2 * alpha)) ** -alpha


def rational_quadratic_product(lengthscale=1.0, alpha=1.0, variance=1.0):
    """Return the product over the inputs of one-dimensional rational quadratics."""

    def kernel(a, b):
        value = variance
        for x, z, scale in zip(a, b, _each(lengthscale, len(a)), strict=True):
            value *= rational_quadratic(scale, alpha)([x], [z])
        return value

    return kernel


def polynomial(degree, offset=1.0, weight=1.0, variance=1.0, origin=0.0):
    """Return (offset + sum weight (x - origin) (z - origin))^degree."""
    return lambda a, b: variance * (offset + linear(weight, origin)(a, b)) ** degree


def arc_cosine(order, bias=1.0, weight=1.0, variance=1.0, origin=0.0):
    """Return |x|^n |z|^n J_n(theta) / pi, lengths and angle taken with bias and weights."""

    def inner(x, z):
        return bias + linear(weight, origin)(x, z)

    def kernel(a, b):
        lengths = math.sqrt(inner(a, a) * inner(b, b))
        theta = math.acos(min(1.0, max(-1.0, inner(a, b) / lengths)))
        rest, sine, cosine = math.pi - theta, math.sin(theta), math.cos(theta)
        j = (rest, sine + rest * cosine, 3 * sine * cosine + rest * (1 + 2 * cosine**2))[order]
        return variance / math.pi * lengths**order * j

    return kernel


def spectral_mixture(weights, frequencies, bandwidths, variance=1.0):
    """Return the weighted mean over components of products over inputs of fading cosines."""

    def kernel(a, b):
        total = 0.0
        for weight, frequency, bandwidth in zip(weights, frequencies, bandwidths, strict=True):
            value = weight / sum(weights)
            for x, z, f, s in zip(a, b, frequency, bandwidth, strict=True):
                value *= math.exp(-2 * math.pi**2 * s**2 * (x - z) ** 2)
                value *= math.cos(2 * math.pi * f * (x - z))
            total += value
        return variance * total

    return kernel


def elliptic(x, z, lengths, angle, profile):
    """Return a kernel of the distance in an ellipse, first axis `angle` from the first input."""
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    found = np.empty((len(x), len(z)))
    for i, a in enumerate(x):
        for j, b in enumerate(z):
            found[i, j] = profile(np.sqrt(np.sum((turn @ (a - b) / lengths) ** 2)))
    return found
