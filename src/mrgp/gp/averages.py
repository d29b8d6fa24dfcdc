"""Means of one-dimensional kernels over pairs of intervals, in closed form (theory 1.4).

Every function takes intervals with broadcasting ends and treats zero width as a point. Branches
are guarded on both sides (`where` around the argument and around the result), so gradients stay
finite in the branch not taken.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import erf, erfc
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.kernels import (
    RBF,
    Constant,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    White,
)
from mrgp.supports import gauss_legendre

Values = Float[AnyArray, "..."]

ROOT_HALF_PI = math.sqrt(math.pi / 2)
ROOT_TWO_PI = math.sqrt(2 * math.pi)
SERIES_TERMS = 18
SMALL = 1e-2
HARMONICS = 64
DEFAULT_ORDER = 16


class Interval(NamedTuple):
    """Ends of intervals; `flat` says that every one of them is a point."""

    lower: Float[AnyArray, "..."]
    upper: Float[AnyArray, "..."]
    flat: bool

    @property
    def centre(self) -> Float[AnyArray, "..."]:
        """Midpoints."""
        return 0.5 * (self.lower + self.upper)

    @property
    def width(self) -> Float[AnyArray, "..."]:
        """Lengths."""
        return self.upper - self.lower


def interval_mean(
    kernel: Kernel, first: Interval, second: Interval, order: int = DEFAULT_ORDER
) -> Values:
    """Average a kernel of one input over pairs of intervals.

    Pass one object twice for the mean over an interval and itself, which is cheaper.
    Kernels without a closed form use Gauss-Legendre quadrature with `order` nodes an interval.
    """
    if first.flat and second.flat:
        return kernel.pair(first.lower[..., None], second.lower[..., None])
    closed = CLOSED.get(type(kernel))
    if closed is None:
        return _quadrature(kernel, first, second, order)
    return closed(kernel, first, second)


def _quadrature(kernel: Kernel, first: Interval, second: Interval, order: int) -> Values:
    nodes, weights = gauss_legendre(order)

    def over_first(x: Values) -> Values:
        if second.flat:
            return kernel.pair(x[..., None], second.lower[..., None])

        def step(t: Any) -> Values:
            return kernel.pair(x[..., None], (second.lower + t * second.width)[..., None])

        return _weighted(step, nodes, weights)

    if first.flat:
        return over_first(first.lower)
    return _weighted(lambda t: over_first(first.lower + t * first.width), nodes, weights)


def _weighted(step: Callable[[Any], Values], nodes: AnyArray, weights: AnyArray) -> Values:
    """Sum weights times step(node), one node in memory at a time."""

    def body(total: Values, node: tuple[Array, Array]) -> tuple[Values, None]:
        return total + node[1] * step(node[0]), None

    start = jnp.zeros_like(step(jnp.asarray(nodes[0])))
    return jax.lax.scan(jax.checkpoint(body), start, (jnp.asarray(nodes), jnp.asarray(weights)))[0]


def _rbf(kernel: RBF, first: Interval, second: Interval) -> Values:
    scale = kernel.lengthscale
    # Ends are subtracted first, so that equal far-away intervals do not cancel.
    u = jnp.abs((first.lower - second.lower) + (first.upper - second.upper)) / (2.0 * scale)
    if first.flat or second.flat:
        width = (second if first.flat else first).width / scale
        return kernel.variance * _rbf_single(u, width)
    a, b = first.width / scale, second.width / scale
    return kernel.variance * _rbf_double(u, jnp.maximum(a, b), jnp.minimum(a, b))


_GAUSS_X, _GAUSS_W = gauss_legendre(8)


@jax.custom_jvp
def _rbf_single(u: Values, w: Values) -> Values:
    """Average exp(-t^2/2) over an interval of width w about u >= 0."""
    wide = w > 1.0
    return jnp.where(wide, _rbf_wide(u, jnp.where(wide, w, 2.0)), _rbf_narrow(u, w)[0])


@_rbf_single.defjvp
def _rbf_single_jvp(
    primals: tuple[Values, Values], tangents: tuple[Values, Values]
) -> tuple[Values, Values]:
    (u, w), (du, dw) = primals, tangents
    wide = w > 1.0
    width = jnp.where(wide, w, 2.0)
    value, by_u, by_w = _rbf_narrow(u, jnp.where(wide, 0.0, w))
    analytic = _rbf_wide(u, width)
    upper, lower = jnp.exp(-0.5 * (u + 0.5 * width) ** 2), jnp.exp(-0.5 * (u - 0.5 * width) ** 2)
    value = jnp.where(wide, analytic, value)
    by_u = jnp.where(wide, (upper - lower) / width, by_u)
    by_w = jnp.where(wide, (0.5 * (upper + lower) - analytic) / width, by_w)
    return value, by_u * du + by_w * dw


def _rbf_wide(u: Values, w: Values) -> Values:
    p, q = (u + 0.5 * w) / math.sqrt(2), (u - 0.5 * w) / math.sqrt(2)
    return ROOT_HALF_PI / w * jnp.where(q > 0.0, erfc(q) - erfc(p), erf(p) - erf(q))


def _rbf_narrow(u: Values, w: Values) -> tuple[Values, Values, Values]:
    """Return the mean and its derivatives in u and w, by 8-point Gauss-Legendre."""
    value = by_u = by_w = jnp.zeros(())
    for node, weight in zip(_GAUSS_X - 0.5, _GAUSS_W, strict=True):
        t = u + float(node) * w
        density = float(weight) * jnp.exp(-0.5 * t**2)
        value, by_u, by_w = value + density, by_u - t * density, by_w - float(node) * t * density
    return value, by_u, by_w


def _rbf_double(u: Values, w: Values, v: Values) -> Values:
    """Average exp(-(s-t)^2/2) over intervals of widths w >= v whose centres are u >= 0 apart."""
    wide = v > 1.0
    big, small = jnp.where(wide, w, 2.0), jnp.where(wide, v, 2.0)
    p, m = 0.5 * (big + small), 0.5 * (big - small)
    overlap = jnp.clip(p - u, 0.0, small)
    ends = _tail(u + p) - _tail(u + m) - _tail(jnp.abs(u - m)) + _tail(jnp.abs(u - p))
    analytic = (ROOT_TWO_PI * overlap + ends) / (big * small)
    narrow = jnp.where(wide, 0.0, v)

    def step(t: Any) -> Values:
        return _rbf_single(jnp.abs(u + (t - 0.5) * narrow), w)

    return jnp.where(wide, analytic, _weighted(step, _GAUSS_X, _GAUSS_W))


def _tail(t: Values) -> Values:
    return jnp.exp(-0.5 * t**2) - ROOT_HALF_PI * t * erfc(t / math.sqrt(2))


class _Polynomial(NamedTuple):
    """A Matern profile: (p0 + p1 t + p2 t^2) exp(-t) at t = rate * |x - z| / lengthscale."""

    rate: float
    p0: float
    p1: float
    p2: float


_MATERN = {
    Matern12: _Polynomial(1.0, 1.0, 0.0, 0.0),
    Matern32: _Polynomial(math.sqrt(3), 1.0, 1.0, 0.0),
    Matern52: _Polynomial(math.sqrt(5), 1.0, 1.0, 1.0 / 3.0),
}


def _matern(kernel: Matern12 | Matern32 | Matern52, first: Interval, second: Interval) -> Values:
    poly = _MATERN[type(kernel)]
    rate = poly.rate / kernel.lengthscale
    if first is second:
        return kernel.variance * _self(poly, rate * first.width)
    if first.flat or second.flat:
        point, interval = (first, second) if first.flat else (second, first)
        return kernel.variance * _matern_single(poly, rate, point, interval)
    return kernel.variance * _matern_double(poly, rate, first, second)


def _matern_single(poly: _Polynomial, rate: Values, point: Interval, interval: Interval) -> Values:
    """Average the profile between points and intervals."""
    z = point.lower
    gap = jnp.maximum(interval.lower - z, z - interval.upper)
    outside = gap >= 0.0
    distant = _gap(poly, rate * jnp.maximum(gap, 0.0), _moments(rate * interval.width), _POINT)
    left = jnp.where(outside, 0.0, z - interval.lower)
    right = jnp.where(outside, 0.0, interval.upper - z)
    width = jnp.where(interval.width > 0.0, interval.width, 1.0)
    near = left * _edge(poly, rate * left) + right * _edge(poly, rate * right)
    return jnp.where(outside, distant, near / width)


def _matern_double(poly: _Polynomial, rate: Values, first: Interval, second: Interval) -> Values:
    """Average the profile over two intervals, split where they start and stop to overlap."""
    a, b, a2, b2 = first.lower, first.upper, second.lower, second.upper
    gap = jnp.maximum(a2 - b, a - b2)
    apart = gap >= 0.0
    distant = _gap(
        poly,
        rate * jnp.maximum(gap, 0.0),
        _moments(rate * first.width),
        _moments(rate * second.width),
    )
    low, high = jnp.maximum(a, a2), jnp.minimum(b, b2)
    shared = jnp.maximum(high - low, 0.0)
    left = jnp.where(apart, 0.0, (low - a) + (low - a2))
    right = jnp.where(apart, 0.0, (b - high) + (b2 - high))
    l1, o1, r1 = _shares(first, low, shared, high)
    l2, o2, r2 = _shares(second, low, shared, high)
    inner, outer_left, outer_right = (_moments(rate * w) for w in (shared, left, right))
    zero = jnp.zeros_like(shared)
    overlapping = (
        o1 * o2 * _self(poly, rate * shared)
        + (l1 * o2 + o1 * l2) * _gap(poly, zero, inner, outer_left)
        + (r1 * o2 + o1 * r2) * _gap(poly, zero, inner, outer_right)
        + (l1 * r2 + r1 * l2) * _gap(poly, rate * shared, outer_left, outer_right)
    )
    return jnp.where(apart, distant, overlapping)


def _shares(
    interval: Interval, low: Values, shared: Values, high: Values
) -> tuple[Values, Values, Values]:
    """Split an interval into the shares left of, inside and right of the overlap."""
    point = interval.width == 0.0
    width = jnp.where(point, 1.0, interval.width)
    return (
        jnp.where(point, 0.0, (low - interval.lower) / width),
        jnp.where(point, 1.0, shared / width),
        jnp.where(point, 0.0, (interval.upper - high) / width),
    )


Moments = tuple[Values, Values, Values]
_POINT = (1.0, 0.0, 0.0)


def _gap(poly: _Polynomial, g: Values, first: Moments, second: tuple[Any, Any, Any]) -> Values:
    """Average the profile over two intervals, given by their moments, a gap g apart."""
    (m0, m1, m2), (w0, w1, w2) = first, second
    _, p0, p1, p2 = poly
    inside = (p0 + p1 * g + p2 * g**2) * m0 * w0
    if p1:
        inside += (p1 + 2 * p2 * g) * (m1 * w0 + m0 * w1)
    if p2:
        inside += p2 * (m2 * w0 + 2 * m1 * w1 + m0 * w2)
    return jnp.exp(-g) * inside


def _edge(poly: _Polynomial, x: Values) -> Values:
    """Average the profile between an interval of width x and one of its ends."""
    return _combine(poly, _moments(x))


def _combine(poly: _Polynomial, moments: Moments) -> Values:
    return poly.p0 * moments[0] + poly.p1 * moments[1] + poly.p2 * moments[2]


def _self(poly: _Polynomial, x: Values) -> Values:
    """Average the profile over an interval of width x and itself."""
    return _combine(poly, _double_moments(x))


@jax.custom_jvp
def _moments(x: Values) -> Moments:
    """Return (1/x) times the integral of t^j exp(-t) over [0, x], j = 0, 1, 2.

    The recursion in j keeps the absolute error at rounding level, which is what averages need.
    """
    e = jnp.exp(-x)
    m0 = jnp.where(x > 0.0, -jnp.expm1(-x) / jnp.where(x > 0.0, x, 1.0), 1.0)
    m1 = m0 - e
    return m0, m1, 2.0 * m1 - x * e


@_moments.defjvp
def _moments_jvp(primals: tuple[Values], tangents: tuple[Values]) -> tuple[Moments, Moments]:
    (x,), (dx,) = primals, tangents
    m0, m1, m2 = _moments(x)
    e = jnp.exp(-x)
    large = x > SMALL
    closed, series = (e - m0) / jnp.where(large, x, 1.0), _horner(_SLOPE, jnp.where(large, 0.0, x))
    d0 = jnp.where(large, closed, series)
    d1 = d0 + e
    d2 = 2.0 * d1 - e + x * e
    return (m0, m1, m2), (d0 * dx, d1 * dx, d2 * dx)


@jax.custom_jvp
def _double_moments(x: Values) -> Moments:
    """Return the mean of |s-t|^j exp(-|s-t|) over s, t in [0, x], j = 0, 1, 2."""
    large, big, small = _split(x)
    e = jnp.exp(-big)
    closed = (
        2.0 * (big - 1.0 + e) / big**2,
        2.0 * (big - 2.0 + (big + 2.0) * e) / big**2,
        2.0 * (2.0 * big - 6.0 + (big**2 + 4.0 * big + 6.0) * e) / big**2,
    )
    return _choose(large, closed, small, _DOUBLE)


@_double_moments.defjvp
def _double_moments_jvp(primals: tuple[Values], tangents: tuple[Values]) -> tuple[Moments, Moments]:
    (x,), (dx,) = primals, tangents
    double = _double_moments(x)
    large, big, small = _split(x)
    closed = tuple(2.0 * (m - n) / big for m, n in zip(_moments(x), double, strict=True))
    slopes = _choose(large, closed, small, _DOUBLE_SLOPE)
    d0, d1, d2 = slopes
    return double, (d0 * dx, d1 * dx, d2 * dx)


def _split(x: Values) -> tuple[Any, Values, Values]:
    """Send each value to the closed form (x >= 1) or to the series, and a safe number elsewhere."""
    large = x >= 1.0
    return large, jnp.where(large, x, 1.0), jnp.where(large, 0.0, x)


def _choose(
    large: Array, closed: tuple[Values, ...], small: Values, series: list[list[float]]
) -> Moments:
    m0, m1, m2 = (
        jnp.where(large, exact, _horner(coefficients, small))
        for exact, coefficients in zip(closed, series, strict=True)
    )
    return m0, m1, m2


def _horner(coefficients: list[float], x: Values) -> Values:
    total = jnp.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def _series(j: int) -> list[float]:
    """Power-series coefficients of the j-th double moment, constant term first."""
    tail = [
        2 * (-1) ** i / (math.factorial(i) * (i + j + 1) * (i + j + 2)) for i in range(SERIES_TERMS)
    ]
    return [0.0] * j + tail


_DOUBLE = [_series(j) for j in range(3)]
_DOUBLE_SLOPE = [[i * c for i, c in enumerate(series)][1:] for series in _DOUBLE]
_SLOPE = [(-1) ** i * i / math.factorial(i + 1) for i in range(1, 8)]


def _constant(kernel: Constant, first: Interval, second: Interval) -> Values:
    return kernel.pair(first.lower[..., None], second.lower[..., None])


def _linear(kernel: Linear, first: Interval, second: Interval) -> Values:
    return kernel.pair(first.centre[..., None], second.centre[..., None])


def _white(kernel: White, first: Interval, second: Interval) -> Values:
    points = (first.width == 0.0) & (second.width == 0.0)
    return jnp.where(points, kernel.pair(first.lower[..., None], second.lower[..., None]), 0.0)


def _periodic(kernel: Periodic, first: Interval, second: Interval) -> Values:
    """Average each harmonic of the kernel's Fourier series; it is a cosine times two sincs.

    Coefficients come from equally spaced samples of one period, which is spectrally accurate.
    """
    period = kernel.period
    phase = jnp.arange(4.0 * HARMONICS) / (4 * HARMONICS)
    profile = kernel.pair((phase * period)[:, None], jnp.zeros((1, 1)))
    order = jnp.arange(HARMONICS + 1.0)
    waves = jnp.cos(2.0 * jnp.pi * order[:, None] * phase[None, :])
    weights = jnp.where(order == 0, 1.0, 2.0) * (waves @ profile) / (4 * HARMONICS)
    lag = 2.0 * jnp.pi * (first.centre - second.centre) / period
    u, v = first.width / period, second.width / period

    def harmonic(h: Any) -> Values:
        return jnp.cos(h * lag) * jnp.sinc(h * u) * jnp.sinc(h * v)

    return _weighted(harmonic, order, weights)


CLOSED: dict[type[Kernel], Callable[[Any, Interval, Interval], Values]] = {
    RBF: _rbf,
    Matern12: _matern,
    Matern32: _matern,
    Matern52: _matern,
    Constant: _constant,
    Linear: _linear,
    White: _white,
    Periodic: _periodic,
}
