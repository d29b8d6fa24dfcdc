"""Averages of fading waves exp(-t^2 / 2) cos(r t) over intervals (theory 1.4).

Lengths are in units of the fading length, and r is the phase that passes in one of them. The
antiderivatives of the wave are values of the Faddeeva function w(s) = exp(-s^2) erfc(-i s), at
s = (r + i t) / sqrt(2), which is never large above the real axis. Complex numbers are pairs.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from mrgp._types import AnyArray
from mrgp.supports.quadrature import gauss_legendre

Values = Float[AnyArray, "..."]
Truths = Bool[AnyArray, "..."]
Complex = tuple[Values, Values]

ROOT_PI = math.sqrt(math.pi)
ROOT_TWO = math.sqrt(2)
TERMS = 40
FAR = 64.0
FAR_TERMS = 16
PHASE = 3.0
_NODES, _WEIGHTS = gauss_legendre(8)


def single(u: Values, width: Values, r: Values) -> Values:
    """Average the wave over an interval whose centre is u >= 0 away."""
    wide = _is_wide(width, r)
    w = jnp.where(wide, width, 1.0)
    low = u - 0.5 * w
    inside = low < 0.0
    (near, far), _ = _tails(r, jnp.where(inside, -low, low), u + 0.5 * w)
    near = jnp.where(inside, _whole(r) - near, near)
    narrow = jnp.where(wide, 0.0, width)
    by_nodes = _weighted(u, narrow, r, _NODES - 0.5, _WEIGHTS)
    return jnp.where(wide, (near - far) / w, by_nodes)


def double(u: Values, width: Values, other: Values, r: Values) -> Values:
    """Average the wave over two intervals, of width >= other, whose centres are u >= 0 apart."""
    wide = _is_wide(other, r)
    big, small = jnp.where(wide, width, 1.0), jnp.where(wide, other, 1.0)
    overlap, distances = overlap_and_distances(u, big, small)
    _, (a, b, c, d) = _tails(r, *distances)
    analytic = (_whole(r) * overlap + a - b + c - d) / (big * small)
    return jnp.where(wide, analytic, _double_narrow(u, width, jnp.where(wide, 0.0, other), r))


def overlap_and_distances(u: Values, big: Values, small: Values) -> tuple[Values, list[Values]]:
    """Return how far two intervals overlap, and between their ends u + p, u + m, |u - p|, |u - m|.

    Their centres are u >= 0 apart; p and m are half the sum and half the difference of widths.
    """
    p, m = 0.5 * (big + small), 0.5 * (big - small)
    # Kinks of the overlap and of |u - m|, |u - p| cancel: both must turn at the same comparison.
    inner, outer = u - m > 0.0, u - p > 0.0
    overlap = jnp.where(outer, 0.0, jnp.where(inner, small - (u - m), small))
    return overlap, [u + p, u + m, jnp.where(outer, u - p, p - u), jnp.where(inner, u - m, m - u)]


def _double_narrow(u: Values, width: Values, other: Values, r: Values) -> Values:
    """Average over the lag: its density is flat, with a ramp as long as `other` on either side."""
    ramps = other / jnp.where(width > 0.0, width, 1.0)
    flat = 0.5 * (width - other)
    sides = jnp.stack([u + flat, u - flat]), jnp.stack(jnp.broadcast_arrays(other, -other))
    left, right = _weighted(*sides, r, _NODES, _WEIGHTS * (1.0 - _NODES))
    return (1.0 - ramps) * single(u, width - other, r) + ramps * (left + right)


def _is_wide(width: Values, r: Values) -> Truths:
    """Tell where eight Gauss-Legendre nodes do not reach rounding level."""
    return width * jnp.maximum(1.0, r / PHASE) > 1.0


def _weighted(
    start: Values, length: Values, r: Values, nodes: np.ndarray, weights: np.ndarray
) -> Values:
    """Sum weights times the wave at start + node * length; nodes are an axis, compiled once."""
    start, length = jnp.broadcast_arrays(start, length)
    shape = (-1,) + (1,) * start.ndim
    t = start[None] + jnp.asarray(nodes).reshape(shape) * length[None]
    return jnp.sum(jnp.asarray(weights).reshape(shape) * jnp.exp(-0.5 * t**2) * jnp.cos(r * t), 0)


def _whole(r: Values) -> Values:
    """Return the integral of the wave over the line."""
    return math.sqrt(2 * math.pi) * jnp.exp(-0.5 * r**2)


def _tails(r: Values, *distances: Values) -> tuple[list[Values], list[Values]]:
    """Return, for each t >= 0, the integrals from t on of the wave and of (s - t) times the wave.

    All distances go through one call, which is compiled once.
    """
    t = jnp.stack(jnp.broadcast_arrays(*distances))
    w, rest = _faddeeva(r / ROOT_TWO, t / ROOT_TWO)
    fade, cos, sin = jnp.exp(-0.5 * t**2), jnp.cos(r * t), jnp.sin(r * t)
    first = math.sqrt(math.pi / 2) * fade * (cos * w[0] - sin * w[1])
    second = fade * (cos * rest[0] - sin * rest[1])
    return list(first), list(second)


@jax.custom_jvp
def _faddeeva(x: Values, y: Values) -> tuple[Complex, Complex]:
    """Return w(s) and 1 + i sqrt(pi) s w(s) at s = x + i y, y >= 0.

    Far from zero the second loses its digits in the sum, and comes from its own series instead.
    """
    far = x**2 + y**2 > FAR
    w, rest = _by_polynomial(jnp.where(far, 0.0, x), jnp.where(far, 0.0, y))
    w_far, rest_far = _by_series(jnp.where(far, x, 8.0), jnp.where(far, y, 8.0))
    return _where(far, w_far, w), _where(far, rest_far, rest)


@_faddeeva.defjvp
def _faddeeva_jvp(primals: Complex, tangents: Complex) -> Any:
    """Use w' = 2i / sqrt(pi) rest, and rest' = i sqrt(pi) w - 2 s rest."""
    w, rest = _faddeeva(*primals)
    turned = _times(primals, rest)
    by_w = (-2.0 / ROOT_PI * rest[1], 2.0 / ROOT_PI * rest[0])
    by_rest = (-ROOT_PI * w[1] - 2.0 * turned[0], ROOT_PI * w[0] - 2.0 * turned[1])
    return (w, rest), (_times(by_w, tangents), _times(by_rest, tangents))


@functools.cache
def _coefficients() -> tuple[float, tuple[float, ...]]:
    """Return the scale and the coefficients of Weideman's expansion, highest power first."""
    scale = math.sqrt(TERMS / ROOT_TWO)
    angle = np.pi * np.arange(1 - 2 * TERMS, 2 * TERMS) / (2 * TERMS)
    t = scale * np.tan(0.5 * angle)
    samples = np.exp(-(t**2)) * (scale**2 + t**2)
    waves = np.cos(np.outer(np.arange(TERMS, 0, -1), angle))
    return scale, tuple(float(c) for c in waves @ samples / (4 * TERMS))


def _by_polynomial(x: Values, y: Values) -> tuple[Complex, Complex]:
    scale, coefficients = _coefficients()
    # (scale + i s) / (scale - i s) maps the upper half plane into the unit disc.
    inverse = _inverse((scale + y, -x))
    disc = _times((scale - y, x), inverse)
    total = (jnp.full_like(disc[0], coefficients[0]), jnp.zeros_like(disc[0]))
    for c in coefficients[1:]:
        total = _times(total, disc)
        total = (total[0] + c, total[1])
    square = _times(total, _times(inverse, inverse))
    w = tuple(2.0 * a + b / ROOT_PI for a, b in zip(square, inverse, strict=True))
    turned = _times((x, y), (w[0], w[1]))
    return (w[0], w[1]), (1.0 - ROOT_PI * turned[1], ROOT_PI * turned[0])


def _by_series(x: Values, y: Values) -> tuple[Complex, Complex]:
    """Sum rest = -sum_k (2k - 1)!! / (2 s^2)^k, nested from the last term in."""
    inverse = _inverse((x, y))
    square = _times(inverse, inverse)
    nest = (jnp.zeros_like(x), jnp.zeros_like(y))
    for k in range(FAR_TERMS, 0, -1):
        nest = _times((1.0 + nest[0], nest[1]), ((k - 0.5) * square[0], (k - 0.5) * square[1]))
    turned = _times(inverse, (1.0 + nest[0], nest[1]))
    return (-turned[1] / ROOT_PI, turned[0] / ROOT_PI), (-nest[0], -nest[1])


def _times(a: Complex, b: Complex) -> Complex:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _inverse(a: Complex) -> Complex:
    size = a[0] ** 2 + a[1] ** 2
    return a[0] / size, -a[1] / size


def _where(condition: Truths, a: Complex, b: Complex) -> Complex:
    return jnp.where(condition, a[0], b[0]), jnp.where(condition, a[1], b[1])
