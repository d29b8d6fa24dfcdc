"""Integrals of polynomials over polygons, edge by edge.

By Green's theorem the integral of x^p y^q over a region is that of x^(p+1) y^q / (p+1) dy along
its outline, anticlockwise, with holes clockwise.
"""

import itertools

import numpy as np
import shapely


def integral(shape, p, q):
    """Return the integral of x^p y^q over a polygon or multipolygon."""
    total = 0.0
    for polygon in shapely.get_parts(shape):
        for number, ring in enumerate([polygon.exterior, *polygon.interiors]):
            signed = sum(_along(a, b, p, q) for a, b in itertools.pairwise(ring.coords))
            anticlockwise = shapely.is_ccw(ring)
            total += signed if anticlockwise == (number == 0) else -signed
    return total


def mean(shape, p, q):
    """Return the mean of x^p y^q over a polygon or multipolygon."""
    return integral(shape, p, q) / integral(shape, 0, 0)


def _along(a, b, p, q):
    """Integrate along an edge by Gauss-Legendre, exact for these polynomials."""
    t, weights = np.polynomial.legendre.leggauss((p + q + 3) // 2 + 1)
    x, y = (a[d] + 0.5 * (t + 1.0) * (b[d] - a[d]) for d in (0, 1))
    return np.sum(0.5 * weights * x ** (p + 1) * y**q) * (b[1] - a[1]) / (p + 1)
