"""Averages of Matern profiles over intervals, from moments of t^j exp(-t) (theory 1.4).

The four-point difference of second antiderivatives cancels badly for narrow intervals; sums over
the overlap and the parts outside it do not.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from mrgp._types import AnyArray

Values = Float[AnyArray, "..."]
Triple = tuple[Values, ...]
"""Moments of order 0, 1 and 2, or shares to the left, inside and to the right."""

SERIES_TERMS = 14
TURN = 0.5
SMALL = 1e-2


class Profile(NamedTuple):
    """A Matern correlation: (p0 + p1 t + p2 t^2) exp(-t) at t = rate * |x - z| / lengthscale."""

    rate: float
    p0: float
    p1: float
    p2: float


def single(profile: Profile, rate: Values, z: Values, lower: Values, upper: Values) -> Values:
    """Average the profile between points z and intervals."""
    gap = jnp.maximum(lower - z, z - upper)
    outside = gap >= 0.0
    whole = upper - lower
    distance = rate * jnp.where(outside, gap, 0.0)
    distant = _gap(profile, distance, _moments(rate * whole), _POINT)
    left, right = jnp.where(outside, 0.0, z - lower), jnp.where(outside, 0.0, upper - z)
    # Between an interval and one of its ends.
    to_left, to_right = (side * _combine(profile, _moments(rate * side)) for side in (left, right))
    near = (to_left + to_right) / jnp.where(whole > 0.0, whole, 1.0)
    return jnp.where(outside, distant, near)


def double(
    profile: Profile, rate: Values, first: tuple[Values, Values], second: tuple[Values, Values]
) -> Values:
    """Average the profile over pairs of intervals, split where they start and stop to overlap."""
    (a, b), (a2, b2) = first, second
    gap = jnp.maximum(a2 - b, a - b2)
    apart = gap >= 0.0
    outer = (_moments(rate * (b - a)), _moments(rate * (b2 - a2)))
    distant = _gap(profile, rate * jnp.where(apart, gap, 0.0), *outer)
    low, high = jnp.maximum(a, a2), jnp.minimum(b, b2)
    shared = jnp.maximum(high - low, 0.0)
    left = jnp.where(apart, 0.0, (low - a) + (low - a2))
    right = jnp.where(apart, 0.0, (b - high) + (b2 - high))
    l1, o1, r1 = _shares(a, b, low, shared, high)
    l2, o2, r2 = _shares(a2, b2, low, shared, high)
    inner, on_left, on_right = (_moments(rate * width) for width in (shared, left, right))
    zero = jnp.zeros_like(shared)
    overlapping = (
        o1 * o2 * itself(profile, rate * shared)
        + (l1 * o2 + o1 * l2) * _gap(profile, zero, inner, on_left)
        + (r1 * o2 + o1 * r2) * _gap(profile, zero, inner, on_right)
        + (l1 * r2 + r1 * l2) * _gap(profile, rate * shared, on_left, on_right)
    )
    return jnp.where(apart, distant, overlapping)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def itself(profile: Profile, x: Values) -> Values:
    """Average the profile over an interval of width x and itself."""
    _, p0, p1, p2 = profile
    large = x >= TURN
    w = jnp.where(large, x, 1.0)
    constant = p0 + 2.0 * p1 + 6.0 * p2
    tail = (constant + (p1 + 4.0 * p2) * w + p2 * w**2) * jnp.exp(-w)
    closed = 2.0 * ((p0 + p1 + 2.0 * p2) * w - constant + tail) / w**2
    return jnp.where(large, closed, _horner(_series(profile), jnp.where(large, 0.0, x)))


@itself.defjvp
def _itself_jvp(
    profile: Profile, primals: tuple[Values], tangents: tuple[Values]
) -> tuple[Values, Values]:
    (x,), (dx,) = primals, tangents
    value = itself(profile, x)
    large = x >= TURN
    closed = 2.0 * (_combine(profile, _moments(x)) - value) / jnp.where(large, x, 1.0)
    slope = [i * c for i, c in enumerate(_series(profile))][1:]
    return value, jnp.where(large, closed, _horner(slope, jnp.where(large, 0.0, x))) * dx


def _shares(lower: Values, upper: Values, low: Values, shared: Values, high: Values) -> Triple:
    """Split an interval into the shares left of, inside and right of the overlap."""
    point = upper == lower
    width = jnp.where(point, 1.0, upper - lower)
    parts = ((0.0, low - lower), (1.0, shared), (0.0, upper - high))
    return tuple(jnp.where(point, of_point, part / width) for of_point, part in parts)


_POINT = (1.0, 0.0, 0.0)


def _gap(profile: Profile, g: Values, first: Triple, second: tuple[Any, ...]) -> Values:
    """Average the profile over two intervals, given by their moments, a gap g apart."""
    (m0, m1, m2), (w0, w1, w2) = first, second
    _, p0, p1, p2 = profile
    inside = (p0 + p1 * g + p2 * g**2) * m0 * w0
    if p1:
        inside += (p1 + 2 * p2 * g) * (m1 * w0 + m0 * w1)
    if p2:
        inside += p2 * (m2 * w0 + 2 * m1 * w1 + m0 * w2)
    return jnp.exp(-g) * inside


def _combine(profile: Profile, moments: Triple) -> Values:
    return profile.p0 * moments[0] + profile.p1 * moments[1] + profile.p2 * moments[2]


@jax.custom_jvp
def _moments(x: Values) -> Triple:
    """Return (1/x) times the integral of t^j exp(-t) over [0, x], j = 0, 1, 2.

    The recursion in j keeps the absolute error at rounding level, which is what averages need.
    """
    e = jnp.exp(-x)
    m0 = jnp.where(x > 0.0, -jnp.expm1(-x) / jnp.where(x > 0.0, x, 1.0), 1.0)
    m1 = m0 - e
    return m0, m1, 2.0 * m1 - x * e


@_moments.defjvp
def _moments_jvp(primals: tuple[Values], tangents: tuple[Values]) -> tuple[Triple, Triple]:
    (x,), (dx,) = primals, tangents
    m0, m1, m2 = _moments(x)
    e = jnp.exp(-x)
    large = x > SMALL
    closed, series = (e - m0) / jnp.where(large, x, 1.0), _horner(_SLOPE, jnp.where(large, 0.0, x))
    d0 = jnp.where(large, closed, series)
    d1 = d0 + e
    d2 = 2.0 * d1 - e + x * e
    return (m0, m1, m2), (d0 * dx, d1 * dx, d2 * dx)


def _horner(coefficients: list[float], x: Values) -> Values:
    total = jnp.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def _series(profile: Profile) -> list[float]:
    """Power-series coefficients of the mean over an interval and itself, constant term first."""
    found = [0.0] * (SERIES_TERMS + 2)
    for j, p in enumerate(profile[1:]):
        for i in range(SERIES_TERMS):
            share = math.factorial(i) * (i + j + 1) * (i + j + 2)
            found[i + j] += p * 2 * (-1) ** i / share
    return found


_SLOPE = [(-1) ** i * i / math.factorial(i + 1) for i in range(1, 8)]
