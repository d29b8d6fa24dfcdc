"""Means over pairs of intervals against 80-digit antiderivatives and dense quadrature."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import integrate

from groups import rest_thorough
from mrgp.gp.averages import Interval, interval_mean
from mrgp.kernels import (
    RBF,
    Binding,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    White,
)
from mrgp.parameters import unwrap
from mrgp.supports import Geometry
from reference import averages as reference
from reference import kernels as plain

KERNELS = {"RBF": RBF, "Matern12": Matern12, "Matern32": Matern32, "Matern52": Matern52}
LENGTHSCALE = 0.7
WIDTHS = (0.0, 1e-6, 1e-3, 0.3, 1.0, 1.0000001, 5.0, 1e3)
FEW_WIDTHS = (0.0, 1e-3, 1.0, 5.0)

each_kernel = pytest.mark.parametrize("name", KERNELS)


def starts(w, v):
    """Name the layouts of a second interval of width v beside a first one, [0, w]."""
    return {
        "same centre": 0.5 * (w - v),
        "touching": w,
        "touching + 1e-9": w + 1e-9,
        "touching - 1e-9": w - 1e-9,
        "touching + 1e-7": w + 1e-7,
        "touching - 1e-7": w - 1e-7,
        "partly overlapping": w - 0.5 * min(w, v),
        "nested at the start": 0.0,
        "nested at the end": w - v,
        "gap 0.5": w + 0.5,
        "gap 3": w + 3.0,
        "gap 40": w + 40.0,
    }


PAIRS = [(w, v, name) for w, v in itertools.product(WIDTHS, WIDTHS) for name in starts(w, v)]


def layouts(origin=0.0):
    """Return the names of all layouts, and their ends as an array [layout, (a, b, c, d)]."""
    names, ends = [], []
    for w, v, name in PAIRS:
        start = starts(w, v)[name]
        names.append(f"{name}, widths {w:g} and {v:g}")
        ends.append([0.0, w, start, start + v])
    return np.array(names), origin + LENGTHSCALE * np.array(ends)


@functools.cache
def true_means(name, origin=0.0):
    _, ends = layouts(origin)
    return np.array([float(reference.interval_mean(name, LENGTHSCALE, *row)) for row in ends])


@functools.cache
def true_slopes(name):
    """Return which layouts have widths in `FEW_WIDTHS`, and their derivatives."""
    _, ends = layouts()
    few = np.isin([w for w, _, _ in PAIRS], FEW_WIDTHS) & np.isin(
        [v for _, v, _ in PAIRS], FEW_WIDTHS
    )
    return few, np.array([reference.slopes(name, LENGTHSCALE, *row) for row in ends[few]])


def bound(recipe):
    """Fill a one-input recipe in and turn it into arrays; inside double precision."""
    return unwrap(recipe.bind(Binding(Geometry.unit(1))))


def one_input(name, lengthscale):
    return KERNELS[name](lengthscale=lengthscale, variance=jnp.ones(()), dims=(0,))


@functools.partial(jax.jit, static_argnames=("name", "flat"))
def means_and_slopes(name, ends, flat):
    """Return means, and derivatives in (lengthscale, a, b, c, d), a row for each layout."""

    def means(scale, ends):
        a, b, c, d = (ends[:, i] for i in range(4))
        first, second = Interval(a, b, flat[0]), Interval(c, d, flat[1])
        return interval_mean(one_input(name, scale), first, second)

    scale, one = jnp.asarray(LENGTHSCALE), jnp.ones(())
    values, by_scale = jax.jvp(lambda s: means(s, ends), (scale,), (one,))
    by_ends = jax.grad(lambda e: jnp.sum(means(scale, e)))(ends)
    return values, jnp.concatenate([by_scale[:, None], by_ends], 1)


@functools.cache
def found(name, flat=(False, False), origin=0.0):
    with jax.enable_x64(True):
        results = means_and_slopes(name, jnp.asarray(layouts(origin)[1]), flat)
    return [np.asarray(result) for result in results]


def assert_close(names, values, expected, relative=1e-10, absolute=1e-14):
    """Compare row by row; say which layout is furthest off."""
    excess = np.abs(np.asarray(values) - expected) - (relative * np.abs(expected) + absolute)
    excess = excess.reshape(len(names), -1).max(1)
    where = f"off by {excess.max():.1e} more than allowed: {names[excess.argmax()]}"
    assert (excess <= 0).all(), where


@each_kernel
def test_antiderivatives_agree_with_numerical_integrals(name):
    with mp.workdps(30):
        scale, z = mpf("0.7"), mpf("0.6")
        single = mp.quad(lambda x: reference.profile(name, scale, x - z), [0.5, z, 2]) / 1.5
        found = reference.interval_mean(name, scale, z, z, 0.5, 2)
        assert abs(found - single) < mpf(10) ** -25
        double = mp.quad(lambda t: reference.interval_mean(name, scale, t, t, 0, 1), [0.5, 1, 2])
        found = reference.interval_mean(name, scale, 0, 1, 0.5, 2)
        assert abs(found - double / 1.5) < mpf(10) ** -25


@each_kernel
@pytest.mark.parametrize("origin", [0.0, 12345.678])
def test_closed_form_equals_high_precision_in_every_layout(name, origin):
    values, _ = found(name, origin=origin)
    assert_close(layouts()[0], values, true_means(name, origin))


@each_kernel
@pytest.mark.parametrize("flat", [(True, False), (False, True), (True, True)])
def test_points_marked_flat_equal_points_of_zero_width(name, flat):
    names, ends = layouts()
    points = np.ones(len(ends), bool)
    for is_flat, (low, high) in zip(flat, ((0, 1), (2, 3)), strict=True):
        points &= (ends[:, low] == ends[:, high]) | (not is_flat)
    values, _ = found(name, flat)
    assert_close(names[points], values[points], true_means(name)[points])


@functools.partial(jax.jit, static_argnames="name")
def mean_with_itself(name, ends):
    def mean(ends):
        interval = Interval(ends[:, 0], ends[:, 1], False)
        return interval_mean(one_input(name, jnp.asarray(LENGTHSCALE)), interval, interval)

    return mean(ends), jax.grad(lambda e: jnp.sum(mean(e)))(ends)


@each_kernel
def test_mean_over_an_interval_and_itself_equals_the_general_form(name):
    names, ends = layouts()
    same = (ends[:, 0] == ends[:, 2]) & (ends[:, 1] == ends[:, 3])
    with jax.enable_x64(True):
        itself, _ = mean_with_itself(name, jnp.asarray(ends))
    assert_close(names[same], itself[same], true_means(name)[same])
    assert_close(names[same], itself[same], found(name)[0][same])


@each_kernel
def test_gradient_of_an_interval_with_itself_equals_differences(name):
    _, ends = layouts()
    with jax.enable_x64(True):
        _, slopes = mean_with_itself(name, jnp.asarray(ends))
    for w in WIDTHS[1:]:
        row = int(np.argmax(ends[:, 1] == LENGTHSCALE * w))
        _, a, b, c, d = reference.slopes(name, LENGTHSCALE, *(0.0, ends[row, 1]) * 2)
        np.testing.assert_allclose(slopes[row, :2], [a + c, b + d], rtol=1e-6, atol=1e-9)


@each_kernel
def test_mean_is_symmetric_in_the_two_intervals(name):
    with jax.enable_x64(True):
        swapped, _ = means_and_slopes(
            name, jnp.asarray(layouts()[1][:, [2, 3, 0, 1]]), (False, False)
        )
    assert_close(layouts()[0], found(name)[0], np.asarray(swapped), absolute=1e-15)


@each_kernel
def test_variance_multiplies_the_mean(name):
    ends = (0.0, 1.0, 0.5, 3.0)
    with jax.enable_x64(True):
        a, b, c, d = ends_of(*ends)
        kernel = KERNELS[name](lengthscale=jnp.asarray(2.0), variance=jnp.asarray(3.0), dims=(0,))
        mean = interval_mean(kernel, Interval(a, b, False), Interval(c, d, False))
    expected = 3.0 * float(reference.interval_mean(name, 2.0, *ends))
    np.testing.assert_allclose(mean, [expected], rtol=1e-12)


@each_kernel
@pytest.mark.parametrize("flat", [(False, False), (True, False), (False, True), (True, True)])
def test_gradients_are_finite_in_every_layout(name, flat):
    bad = ~np.isfinite(found(name, flat)[1]).all(1)
    assert not bad.any(), layouts()[0][bad]


def slopes_where(name, keep, flat=(False, False)):
    """Return names, found and true derivatives of the few layouts whose ends `keep` takes."""
    few, expected = true_slopes(name)
    names, ends = layouts()
    kept = keep(*ends[few].T)
    assert kept.sum() > 10
    return names[few][kept], found(name, flat)[1][few][kept], expected[kept]


def aligned(a, b, c, d):
    """Tell where an end of one interval is an end of the other: kinks of some derivative."""
    return (a == c) | (a == d) | (b == c) | (b == d)


@each_kernel
def test_gradient_in_the_lengthscale_equals_differences_in_every_layout(name):
    names, slopes, expected = slopes_where(name, lambda a, b, c, d: a == a)
    assert_close(names, slopes[:, 0], expected[:, 0], 1e-6, 1e-9)


@each_kernel
def test_gradients_in_the_ends_equal_differences_away_from_kinks(name):
    def smooth(a, b, c, d):
        return ~aligned(a, b, c, d) & (a < b) & (c < d)

    names, slopes, expected = slopes_where(name, smooth)
    assert_close(names, slopes, expected, 1e-6, 1e-8)


@each_kernel
def test_gradient_of_moving_an_interval_of_any_width_equals_differences(name):
    names, slopes, expected = slopes_where(name, lambda *ends: ~aligned(*ends))
    for pair in ([1, 2], [3, 4]):
        assert_close(names, slopes[:, pair].sum(1), expected[:, pair].sum(1), 1e-6, 1e-8)


@each_kernel
def test_gradients_in_the_ends_of_aligned_intervals_equal_differences(name):
    # The mean over two intervals of positive width is once differentiable everywhere, also where
    # they touch or share an end: ties in max, min and abs must not show.
    def touching(a, b, c, d):
        return aligned(a, b, c, d) & (a < b) & (c < d)

    names, slopes, expected = slopes_where(name, touching)
    assert_close(names, slopes, expected, 1e-6, 1e-8)


@each_kernel
def test_gradient_of_moving_a_point_equals_differences_also_on_an_edge(name):
    # What trains inducing inputs.
    names, slopes, expected = slopes_where(
        name, lambda a, b, c, d: (a == b) & (c < d), flat=(True, False)
    )
    assert_close(names, slopes[:, 1:3].sum(1), expected[:, 1:3].sum(1), 1e-6, 1e-8)


def midpoint_mean(kernel, row, count):
    """Average a NumPy kernel over two intervals by the midpoint rule."""
    steps = (np.arange(count) + 0.5) / count
    x, z = (
        low + (high - low) * steps[: count if high > low else 1] for low, high in (row[:2], row[2:])
    )
    return np.mean(plain.matrix(kernel, x[:, None], z[:, None]))


def dense_mean(kernel, row, count=40):
    """Average by the midpoint rule twice, and extrapolate the error of order h^2 away."""
    return (4 * midpoint_mean(kernel, row, 2 * count) - midpoint_mean(kernel, row, count)) / 3


def fourier_mean(period, lengthscale, row):
    """Average the periodic kernel by its Fourier series, with Bessel coefficients from mpmath."""
    a, b, c, d = (mpf(v) for v in row)
    s = 1 / mpf(lengthscale) ** 2
    total = mp.exp(-s) * mp.besseli(0, s)
    for h in range(1, 120):
        omega = 2 * mp.pi * h / period
        wave = mp.cos(omega * ((a + b) - (c + d)) / 2)
        wave *= mp.sinc(omega * (b - a) / 2) * mp.sinc(omega * (d - c) / 2)
        total += 2 * mp.exp(-s) * mp.besseli(h, s) * wave
    return float(total)


PERIODIC_ENDS = np.array(
    [
        [0.0, 0.0, 0.3, 0.3],
        [0.0, 0.0, 0.3, 1.0],
        [0.0, 0.7, 0.2, 0.9],
        [0.0, 2.0, 1.0, 1.5],
        [0.0, 7.3, 2.0, 2.0],
        [0.0, 1e-6, 3.0, 3.5],
        [-5.0, 6.1, 40.0, 47.3],
    ]
)


@jax.jit
def periodic_mean(values):
    """Average over the ends in columns 2 to 5, with the period and lengthscale in 0 and 1."""
    period, lengthscale, a, b, c, d = (values[i] for i in range(6))
    kernel = Periodic(period, lengthscale=lengthscale, variance=jnp.asarray(1.5), dims=(0,))
    return interval_mean(kernel, Interval(a, b, False), Interval(c, d, False))


def periodic_means(lengthscale):
    with jax.enable_x64(True):
        rows = [jnp.asarray([2.0, lengthscale, *row]) for row in PERIODIC_ENDS]
        return np.array([periodic_mean(row) for row in rows])


@pytest.mark.parametrize("lengthscale", rest_thorough([0.15, 0.5, 1.0, 3.0], 1))
def test_periodic_mean_equals_its_fourier_series(lengthscale):
    expected = [1.5 * fourier_mean(2.0, lengthscale, row) for row in PERIODIC_ENDS]
    np.testing.assert_allclose(periodic_means(lengthscale), expected, rtol=1e-10, atol=1e-13)


def test_periodic_mean_equals_dense_quadrature():
    kernel = plain.periodic(2.0, 0.5, 1.5)
    expected = [dense_mean(kernel, row) for row in PERIODIC_ENDS]
    np.testing.assert_allclose(periodic_means(0.5), expected, atol=1e-3, rtol=1e-3)


def test_periodic_mean_of_points_is_the_kernel_at_a_short_lengthscale():
    kernel = plain.periodic(1.0, 0.05, 1.5)
    with jax.enable_x64(True):
        x, z = np.array([0.0, 0.0, 0.2]), np.array([0.0, 0.01, 0.23])
        rows = [jnp.asarray([1.0, 0.05, a, a, b, b]) for a, b in zip(x, z, strict=True)]
        found = [float(periodic_mean(row)) for row in rows]
    expected = [kernel([a], [b]) for a, b in zip(x, z, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_periodic_gradients_are_finite_and_match_differences():
    slope = jax.jit(jax.grad(periodic_mean))
    with jax.enable_x64(True):
        at = jnp.asarray([2.0, 0.6, 0.0, 0.7, 0.2, 1.9])
        steps = 1e-5 * jnp.eye(6)
        differences = [periodic_mean(at + h) - periodic_mean(at - h) for h in steps]
        np.testing.assert_allclose(slope(at), np.array(differences) / 2e-5, atol=1e-8)
        assert np.isfinite(slope(jnp.asarray([2.0, 0.6, 0.0, 0.0, 0.0, 0.0]))).all()


def ends_of(*row):
    return [jnp.asarray([value]) for value in row]


def test_linear_mean_is_the_product_of_the_centres():
    with jax.enable_x64(True):
        a, b, c, d = ends_of(1.0, 3.0, -1.0, 4.0)
        kernel = bound(Linear(variance=2.0, origin=0.5))
        found = interval_mean(kernel, Interval(a, b, False), Interval(c, d, False))
    dense = dense_mean(plain.linear(2.0, 0.5), [1.0, 3.0, -1.0, 4.0], 50)
    np.testing.assert_allclose(found, [2.0 * (2.0 - 0.5) * (1.5 - 0.5)], rtol=1e-14)
    np.testing.assert_allclose(found, [dense], rtol=1e-12)


def test_constant_mean_is_the_constant():
    with jax.enable_x64(True):
        a, b, c, d = ends_of(1.0, 3.0, -1.0, 4.0)
        found = interval_mean(bound(Constant(2.5)), Interval(a, b, False), Interval(c, d, False))
    assert found.tolist() == [2.5]


def test_white_mean_is_zero_unless_both_are_the_same_point():
    with jax.enable_x64(True):
        a, b = jnp.asarray([0.0, 0.0, 1.0, 1.0]), jnp.asarray([1.0, 1.0, 1.0, 1.0])
        c, d = jnp.asarray([0.0, 1.0, 1.0, 2.0]), jnp.asarray([1.0, 1.0, 1.0, 2.0])
        kernel = bound(White(2.5))
        found = interval_mean(kernel, Interval(a, b, False), Interval(c, d, False))
        itself = interval_mean(kernel, *(Interval(a, b, False),) * 2)
    assert found.tolist() == [0.0, 0.0, 2.5, 0.0]
    assert itself.tolist() == [0.0, 0.0, 2.5, 2.5]


PRODUCT_ENDS = np.array(
    [[0.0, 1.5, 0.5, 2.5], [0.0, 0.0, 0.5, 2.0], [0.0, 1.0, 3.0, 3.0], [0.0, 2.0, 0.0, 2.0]]
)


@functools.partial(jax.jit, static_argnames="order")
def product_mean(ends, order):
    """Average RBF * Periodic on one input, given as the only factor of its sum of products."""
    kernel = bound(RBF(lengthscale=1.3, variance=1.2) * Periodic(2.0, lengthscale=0.9))
    ((coefficient, ((dims, factor),)),) = kernel.sum_of_products()
    assert dims == (0,)
    a, b, c, d = (ends[:, i] for i in range(4))
    first, second = Interval(a, b, False), Interval(c, d, False)
    return coefficient * interval_mean(factor, first, second, order)


def test_two_factors_on_one_input_are_averaged_by_quadrature():
    kernel = plain.multiply(plain.radial("RBF", 1.3, 1.2), plain.periodic(2.0, 0.9))
    with jax.enable_x64(True):
        mean = product_mean(jnp.asarray(PRODUCT_ENDS), 16)
    expected = [dense_mean(kernel, row) for row in PRODUCT_ENDS]
    np.testing.assert_allclose(mean, expected, atol=1e-5)


def test_quadrature_converges_with_its_order():
    with jax.enable_x64(True):
        values = [product_mean(jnp.asarray(PRODUCT_ENDS), order) for order in (4, 8, 16, 40)]
    errors = [np.abs(np.asarray(v) - np.asarray(values[-1])).max() for v in values[:-1]]
    assert errors[0] > 10 * errors[1] > 100 * errors[2]
    assert errors[2] < 1e-9


ROUGH_ENDS = np.array(
    [
        [0.0, 1.5, 0.5, 2.5],
        [0.0, 1.5, 1.5, 2.5],
        [0.0, 2.0, 0.5, 0.9],
        [0.0, 2.0, 0.0, 2.0],
        [0.7, 0.7, 0.0, 2.0],
        [0.0, 0.0, 0.0, 2.0],
        [0.3, 0.3, 0.5, 0.5],
        [0.0, 1.0, 3.0, 9.5],
    ]
)


def split_mean(kernel, row):
    """Average a kernel with a kink at lag zero by adaptive quadrature, split at the kink."""
    a, b, c, d = row

    def over(function, low, high, kink):
        if low == high:
            return function(low)
        points = [kink] if low < kink < high else None
        return integrate.quad(function, low, high, points=points, epsabs=1e-12)[0] / (high - low)

    def inner(x):
        return over(lambda z: kernel([x], [z]), c, d, x)

    edges = sorted({a, b, *(e for e in (c, d) if a < e < b)})
    if a == b:
        return inner(a)
    parts = [over(inner, low, high, low) * (high - low) for low, high in itertools.pairwise(edges)]
    return sum(parts) / (b - a)


@jax.jit
def rough_mean(ends):
    kernel = bound(Matern12(0.8, variance=1.2) * Periodic(2.0, lengthscale=0.9))
    ((coefficient, ((_, factor),)),) = kernel.sum_of_products()
    a, b, c, d = (ends[:, i] for i in range(4))
    return coefficient * interval_mean(factor, Interval(a, b, False), Interval(c, d, False))


def test_two_factors_with_a_kink_are_averaged_accurately():
    kernel = plain.multiply(plain.radial("Matern12", 0.8, 1.2), plain.periodic(2.0, 0.9))
    expected = [split_mean(kernel, row) for row in ROUGH_ENDS]
    with jax.enable_x64(True):
        mean = rough_mean(jnp.asarray(ROUGH_ENDS))
        slope = jax.jit(jax.grad(lambda e: jnp.sum(rough_mean(e))))(jnp.asarray(ROUGH_ENDS))
    np.testing.assert_allclose(mean, expected, rtol=1e-9)
    assert np.isfinite(slope).all()
