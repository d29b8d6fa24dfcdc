"""Means of one-dimensional kernels over pairs of intervals, in closed form (theory 1.4).

Every function takes intervals with broadcasting ends and treats zero width as a point. Branches
are guarded on both sides (`where` around the argument and around the result), so gradients stay
finite in the branch not taken.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import erfc
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.gp import matern, waves
from mrgp.kernels import RBF, Constant, Kernel, Linear, Matern12, Matern32, Matern52, Periodic
from mrgp.kernels.nonstationary import Polynomial
from mrgp.kernels.spectral import SpectralMixture
from mrgp.kernels.structured import Category, White, has_white, is_stationary
from mrgp.supports.quadrature import gauss_legendre

Values = Float[AnyArray, "..."]
Means = tuple[Callable[..., Values], Callable[..., Values]]

ROOT_HALF_PI = math.sqrt(math.pi / 2)
ROOT_TWO_PI = math.sqrt(2 * math.pi)
HARMONICS = 128
DEFAULT_ORDER = 40
PRODUCT_ORDER = 24


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
    Kernels without a closed form use Gauss-Legendre quadrature: over the lag with `order` nodes a
    segment where they are stationary, over both intervals otherwise.
    """
    if first.flat and second.flat:
        return _at_start(kernel, first, second)
    closed = CLOSED.get(type(kernel))
    if closed is not None:
        return closed(kernel, first, second)
    if has_white(kernel):
        return _white(kernel, first, second)
    if is_stationary(kernel):
        return _by_lag(kernel, first, second, order)
    return _by_nodes(kernel, first, second, PRODUCT_ORDER)


def _by_lag(kernel: Kernel, first: Interval, second: Interval, order: int) -> Values:
    """Average a stationary kernel over the lag between two intervals, whose density is a trapezoid.

    Segments end where the density bends and where the kernel may have a kink, at lag zero.
    """
    starts, ends = first.lower - second.lower, first.upper - second.upper
    knots = (
        first.lower - second.upper,
        jnp.minimum(starts, ends),
        jnp.maximum(starts, ends),
        first.upper - second.lower,
    )
    width = jnp.maximum(first.width, second.width)
    height = 1.0 / jnp.where(width > 0.0, width, 1.0)
    nodes, weights = gauss_legendre(order)

    def density(lag: Values, rising: int) -> Values:
        if rising == 0:
            return jnp.ones_like(lag)
        near, far = (knots[0], knots[1]) if rising > 0 else (knots[3], knots[2])
        span = jnp.where(near == far, 1.0, far - near)
        return (lag - near) / span

    def step(t: Any) -> Values:
        total = jnp.zeros(())
        for low, high, rising in zip(knots[:3], knots[1:], (1, 0, -1), strict=True):
            kink = jnp.clip(0.0, low, high)
            for a, b in ((low, kink), (kink, high)):
                lag = a + t * (b - a)
                value = kernel.pair(lag[..., None], jnp.zeros_like(lag)[..., None])
                total = total + (b - a) * density(lag, rising) * value
        return total

    points = kernel.pair(starts[..., None], jnp.zeros_like(starts)[..., None])
    return jnp.where(width > 0.0, height * _weighted(step, nodes, weights), points)


def _by_nodes(kernel: Kernel, first: Interval, second: Interval, order: int) -> Values:
    def over(interval: Interval, value: Callable[[Values], Values]) -> Values:
        if interval.flat:
            return value(interval.lower)
        return _weighted(lambda t: value(interval.lower + t * interval.width), *rule)

    rule = gauss_legendre(order)
    return over(first, lambda x: over(second, lambda z: kernel.pair(x[..., None], z[..., None])))


def _weighted(step: Callable[[Any], Values], nodes: AnyArray, weights: AnyArray) -> Values:
    """Sum weights times step(node), one node in memory at a time."""

    def body(total: Values, node: tuple[Array, Array]) -> tuple[Values, None]:
        return total + node[1] * step(node[0]), None

    start = jnp.zeros_like(step(jnp.asarray(nodes[0])))
    return jax.lax.scan(jax.checkpoint(body), start, (jnp.asarray(nodes), jnp.asarray(weights)))[0]


def _by_width(means: Means, first: Interval, second: Interval, rate: Values) -> Values:
    """Average by the distance of two centres and the widths, in units of 1 / rate, larger first.

    The means are those between a point and an interval, and between two intervals.
    """
    single, double = means
    # Ends are subtracted first, so that equal far-away intervals do not cancel.
    u = 0.5 * rate * jnp.abs((first.lower - second.lower) + (first.upper - second.upper))
    if first.flat or second.flat:
        return single(u, rate * (second if first.flat else first).width)
    a, b = rate * first.width, rate * second.width
    return double(u, jnp.maximum(a, b), jnp.minimum(a, b))


def _rbf(kernel: RBF, first: Interval, second: Interval) -> Values:
    rate = 1.0 / kernel.lengthscale
    return kernel.variance * _by_width((_rbf_single, _rbf_double), first, second, rate)


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
    # erfc keeps tails relative to their size, and for u < w/2 the difference is of order one.
    upper, lower = (u + 0.5 * w) / math.sqrt(2), (u - 0.5 * w) / math.sqrt(2)
    return ROOT_HALF_PI / w * (erfc(lower) - erfc(upper))


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
    overlap, distances = waves.overlap_and_distances(u, big, small)
    a, b, c, d = map(_tail, distances)
    analytic = (ROOT_TWO_PI * overlap + ((a - b) + (c - d))) / (big * small)
    return jnp.where(wide, analytic, _rbf_ramps(u, w, jnp.where(wide, 0.0, v)))


def _rbf_ramps(u: Values, w: Values, v: Values) -> Values:
    """Average over the lag: its density is flat, with a ramp as long as v on either side."""
    share = v / jnp.where(w > 0.0, w, 1.0)
    flat, ramps = 0.5 * (w - v), jnp.zeros(())
    for node, weight in zip(_GAUSS_X, _GAUSS_W * (1.0 - _GAUSS_X), strict=True):
        far = flat + float(node) * v
        ends = jnp.exp(-0.5 * (u + far) ** 2) + jnp.exp(-0.5 * (u - far) ** 2)
        ramps = ramps + float(weight) * ends
    return (1.0 - share) * _rbf_single(u, w - v) + share * ramps


def _tail(t: Values) -> Values:
    return jnp.exp(-0.5 * t**2) - ROOT_HALF_PI * t * erfc(t / math.sqrt(2))


_PROFILES = {
    Matern12: matern.Profile(1.0, 1.0, 0.0, 0.0),
    Matern32: matern.Profile(math.sqrt(3), 1.0, 1.0, 0.0),
    Matern52: matern.Profile(math.sqrt(5), 1.0, 1.0, 1.0 / 3.0),
}


def _matern(kernel: Matern12 | Matern32 | Matern52, first: Interval, second: Interval) -> Values:
    profile = _PROFILES[type(kernel)]
    rate = profile.rate / kernel.lengthscale
    if first is second:
        mean = matern.itself(profile, rate * first.width)
    elif first.flat or second.flat:
        point, interval = (first, second) if first.flat else (second, first)
        mean = matern.single(profile, rate, point.lower, interval.lower, interval.upper)
    else:
        mean = matern.double(profile, rate, first[:2], second[:2])
    return kernel.variance * mean


def _at_start(kernel: Kernel, first: Interval, second: Interval) -> Values:
    """Return the kernel between the lower ends, which is the mean where intervals are points."""
    return kernel.pair(first.lower[..., None], second.lower[..., None])


def _linear(kernel: Linear, first: Interval, second: Interval) -> Values:
    return kernel.pair(first.centre[..., None], second.centre[..., None])


def _polynomial(kernel: Polynomial, first: Interval, second: Interval) -> Values:
    """Expand the power; as many nodes as half the degree make the moments of intervals exact."""
    nodes, weights = gauss_legendre(kernel.degree // 2 + 1)
    (origin,), (slope,) = kernel.per_input(kernel.origin), kernel.per_input(kernel.weight_variance)

    def moments(interval: Interval) -> list[Values]:
        places = [interval.lower + float(t) * interval.width - origin for t in nodes]
        pairs = list(zip(weights, places, strict=True))
        powers = ([float(w) * x**j for w, x in pairs] for j in range(kernel.degree + 1))
        return [functools.reduce(jnp.add, power) for power in powers]

    total = jnp.zeros(())
    for j, (a, b) in enumerate(zip(moments(first), moments(second), strict=True)):
        low = math.comb(kernel.degree, j) * kernel.offset ** (kernel.degree - j)
        total = total + low * slope**j * a * b
    return kernel.variance * total


def _spectral(kernel: SpectralMixture, first: Interval, second: Interval) -> Values:
    shares, frequencies, bandwidths = kernel.bands()

    def component(frequency: Values, bandwidth: Values) -> Values:
        rate, phase = 2.0 * jnp.pi * bandwidth, frequency / bandwidth
        single, double = (functools.partial(f, r=phase) for f in (waves.single, waves.double))
        return _by_width((single, double), first, second, rate)

    means = jax.vmap(component)(frequencies[:, 0], bandwidths[:, 0])
    return kernel.variance * jnp.tensordot(shares, means, 1)


def _white(kernel: Kernel, first: Interval, second: Interval) -> Values:
    points = (first.width == 0.0) & (second.width == 0.0)
    return jnp.where(points, _at_start(kernel, first, second), 0.0)


def _periodic(kernel: Periodic, first: Interval, second: Interval) -> Values:
    """Average each harmonic of the kernel's Fourier series; it is a cosine times two sincs.

    Coefficients come from equally spaced samples of one period, which is spectrally accurate. The
    cosine of a difference splits into products, so that all pairs are one matrix product.
    """
    period = kernel.period
    phase = jnp.arange(4.0 * HARMONICS) / (4 * HARMONICS)
    profile = kernel.pair((phase * period)[:, None], jnp.zeros((1, 1)))
    order = jnp.arange(HARMONICS + 1.0)
    waves = jnp.cos(2.0 * jnp.pi * order[:, None] * phase[None, :])
    weights = jnp.where(order == 0, 1.0, 2.0) * (waves @ profile) / (4 * HARMONICS)

    def features(interval: Interval) -> Values:
        turns = interval.centre / period
        angle = 2.0 * jnp.pi * _outer(turns - jnp.round(turns), order)
        damping = jnp.sinc(_outer(interval.width / period, order))
        return jnp.concatenate([jnp.cos(angle) * damping, jnp.sin(angle) * damping], -1)

    both = jnp.tile(weights, 2)
    left, right = features(first) * both.reshape((1,) * first.lower.ndim + (-1,)), features(second)
    if left.ndim > 1 and left.shape[-2] == 1 and all(n == 1 for n in right.shape[:-2]):
        return left[..., 0, :] @ right.reshape(right.shape[-2:]).T
    return jnp.sum(left * right, -1)


def _outer(values: Values, order: Float[Array, " h"]) -> Values:
    return jnp.asarray(values)[..., None] * order.reshape((1,) * jnp.ndim(values) + (-1,))


CLOSED: dict[type[Kernel], Callable[[Any, Interval, Interval], Values]] = {
    RBF: _rbf,
    Matern12: _matern,
    Matern32: _matern,
    Matern52: _matern,
    Constant: _at_start,
    Category: _at_start,
    Linear: _linear,
    Polynomial: _polynomial,
    SpectralMixture: _spectral,
    White: _white,
    Periodic: _periodic,
}
