"""Means of rational quadratics, polynomials, networks and waves against fine quadrature."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import wofz

import mrgp
from groups import rest_thorough
from mrgp.gp import cross_covariance, variance
from mrgp.gp.averages import Interval, interval_mean
from mrgp.gp.waves import _faddeeva
from mrgp.kernels import Binding
from mrgp.parameters import unwrap
from mrgp.supports import Geometry
from reference import kernels as plain

ENDS = np.array(
    [
        [0.0, 1.5, 0.5, 2.5],
        [0.0, 1.5, 1.5, 2.5],
        [0.0, 2.0, 0.5, 0.9],
        [0.0, 2.0, 0.0, 2.0],
        [0.7, 0.7, 0.0, 2.0],
        [0.0, 1.0, 0.4, 0.4],
        [0.3, 0.3, 0.5, 0.5],
        [0.3, 0.3, 0.3, 0.3],
        [0.2, 0.2 + 1e-6, 0.1, 0.1 + 1e-3],
        [0.0, 1.0, 3.0, 9.5],
        [-8.0, 9.0, -2.0, 0.5],
    ]
)
"""Overlapping, touching, nested and equal intervals, points, narrow, distant and wide ones."""


def fine_mean(kernel, row, panels=40, count=16):
    """Average by panels of Gauss-Legendre nodes, those of the second interval cut at each node."""
    nodes, weights = np.polynomial.legendre.leggauss(count)

    def places(low, high, *cuts):
        if low == high:
            return np.array([low]), np.ones(1)
        edges = np.unique([*np.linspace(low, high, panels + 1), *np.clip(cuts, low, high)])
        half = 0.5 * np.diff(edges)[:, None]
        x = 0.5 * (edges[1:] + edges[:-1])[:, None] + half * nodes
        return x.ravel(), (half * weights).ravel() / (high - low)

    total = 0.0
    for x, share in zip(*places(*row[:2], *row[2:]), strict=True):
        z, weight = places(*row[2:], x)
        total += share * float(weight @ kernel(x, z))
    return total


@functools.partial(jax.jit, static_argnames="flat")
def means(kernel, ends, flat=(False, False)):
    a, b, c, d = (ends[:, i] for i in range(4))
    return interval_mean(kernel, Interval(a, b, flat[0]), Interval(c, d, flat[1]))


def found(recipe, ends=ENDS):
    """Return the means over rows of ends."""
    with jax.enable_x64(True):
        kernel = unwrap(recipe.bind(Binding(Geometry.unit(1))))
        return np.asarray(means(kernel, jnp.asarray(ends)))


def slopes(recipe, ends):
    """Return the gradient of the summed means in the kernel's numbers and in the ends."""
    with jax.enable_x64(True):
        kernel = unwrap(recipe.bind(Binding(Geometry.unit(1))))
        kernel = jax.tree.map(jnp.asarray, kernel)
        return jax.grad(lambda k, e: jnp.sum(means(k, e)), (0, 1))(kernel, jnp.asarray(ends))


@pytest.mark.parametrize(("alpha", "tolerance"), [(0.05, 2e-8), (1.0, 1e-11), (20.0, 1e-12)])
def test_rational_quadratic_means_equal_fine_quadrature(alpha, tolerance):
    def kernel(x, z):
        return 1.5 * (1 + ((x - z) / 0.7) ** 2 / (2 * alpha)) ** -alpha

    expected = [fine_mean(kernel, row) for row in ENDS]
    recipe = mrgp.RationalQuadratic(0.7, alpha, variance=1.5)
    np.testing.assert_allclose(found(recipe), expected, rtol=tolerance)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(slopes(recipe, ENDS)))


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
@pytest.mark.parametrize("offset", [0.0, 0.8])
def test_polynomial_means_are_exact(degree, offset):
    def kernel(x, z):
        return 1.5 * (offset + 0.4 * (x - 0.3) * (z - 0.3)) ** degree

    expected = [fine_mean(kernel, row, panels=2) for row in ENDS]
    recipe = mrgp.Polynomial(degree, offset, weight_variance=0.4, variance=1.5, origin=0.3)
    np.testing.assert_allclose(found(recipe), expected, rtol=1e-11, atol=1e-14)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(slopes(recipe, ENDS)))


@pytest.mark.parametrize(("order", "tolerance"), [(0, 1e-3), (1, 1e-5), (2, 1e-6)])
def test_arc_cosine_means_are_as_good_as_their_docstring_says(order, tolerance):
    def kernel(x, z):
        dot, area = 0.5 + 0.8 * x * z, np.sqrt(0.4) * np.abs(x - z)
        rest = np.arctan2(area, -dot)
        values = (
            rest,
            area + rest * dot,
            3 * area * dot + rest * (area**2 + 3 * dot**2),
        )
        return values[order] / np.pi

    ends = ENDS[:-1]
    expected = [fine_mean(kernel, row, panels=12) for row in ends]
    recipe = mrgp.ArcCosine(order, 0.5, weight_variance=0.8)
    np.testing.assert_allclose(found(recipe, ends), expected, rtol=tolerance)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(slopes(recipe, ends)))


def wave_mean(bandwidth, frequency, row):
    """Average a fading wave by complex error functions, with digits to lose."""
    with mp.workdps(150):
        length, r = 1 / (2 * mp.pi * mpf(bandwidth)), mpf(frequency) / mpf(bandwidth)
        a, b, c, d = (mpf(float(v)) / length for v in row)

        def once(t):
            ends = mp.erf((t - 1j * r) / mp.sqrt(2)) + mp.erf(1j * r / mp.sqrt(2))
            return mp.sqrt(mp.pi / 2) * mp.exp(-(r**2) / 2) * ends

        def twice(t):
            return mp.re((t - 1j * r) * once(t) + mp.exp(-(t**2) / 2 + 1j * r * t) - 1)

        if a == b and c == d:
            return float(mp.exp(-((a - c) ** 2) / 2) * mp.cos(r * (a - c)))
        if a == b:
            a, b, c, d = c, d, a, b
        if c == d:
            return float(mp.re(once(b - c) - once(a - c)) / (b - a))
        corners = twice(b - c) - twice(a - c) - twice(b - d) + twice(a - d)
        return float(corners / ((b - a) * (d - c)))


def band(bandwidth, frequency):
    return mrgp.SpectralMixture(1, None, [frequency], [bandwidth], variance=1.0)


BANDS = [(0.02, 0.01), (0.3, 0.1), (0.05, 0.9), (0.02, 1.1), (1.5, 4.0), (0.4, 8.0), (9.0, 3.0)]


@pytest.mark.parametrize(("bandwidth", "frequency"), BANDS)
def test_wave_means_equal_high_precision_in_every_layout(bandwidth, frequency):
    expected = np.array([wave_mean(bandwidth, frequency, row) for row in ENDS])
    np.testing.assert_allclose(found(band(bandwidth, frequency)), expected, rtol=1e-11, atol=1e-13)
    swapped = found(band(bandwidth, frequency), ENDS[:, [2, 3, 0, 1]])
    np.testing.assert_allclose(swapped, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("frequency", [0.3, 3.0, 30.0, 150.0])
def test_wave_means_equal_brute_force_at_periods_far_shorter_than_intervals(frequency):
    def kernel(x, z):
        return np.exp(-2 * (np.pi * 0.05 * (x - z)) ** 2) * np.cos(2 * np.pi * frequency * (x - z))

    rows = ENDS[[0, 2, 3, 4, 5]]
    expected = [fine_mean(kernel, row, panels=30 + int(frequency), count=14) for row in rows]
    np.testing.assert_allclose(found(band(0.05, frequency), rows), expected, atol=2e-13)


def test_wave_means_of_points_marked_flat_equal_points_of_zero_width():
    kernel = band(0.4, 2.3)
    points = ENDS[ENDS[:, 0] == ENDS[:, 1]]
    with jax.enable_x64(True):
        bound = unwrap(kernel.bind(Binding(Geometry.unit(1))))
        flat = means(bound, jnp.asarray(points), (True, False))
        swapped = means(bound, jnp.asarray(points[:, [2, 3, 0, 1]]), (False, True))
    np.testing.assert_allclose(flat, found(kernel, points), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(swapped, flat, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("bandwidth", "frequency"), rest_thorough([(0.3, 0.1), (0.4, 2.3), (0.02, 1.1)], 0)
)
def test_wave_slopes_equal_differences_and_are_finite_everywhere(bandwidth, frequency):
    # The mean is once differentiable, also where intervals touch or are equal.
    recipe = band(bandwidth, frequency)
    kernel, ends = slopes(recipe, ENDS)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves((kernel, ends)))
    step = 1e-6
    for name in ("frequency", "bandwidth"):
        at = {"frequency": frequency, "bandwidth": bandwidth}
        up, down = (found(band(**at | {name: at[name] + h})).sum() for h in (step, -step))
        np.testing.assert_allclose(getattr(kernel, name), [(up - down) / (2 * step)], rtol=1e-6)
    rows = ENDS[(ENDS[:, 1] - ENDS[:, 0] > 0.1) & (ENDS[:, 3] - ENDS[:, 2] > 0.1)]
    by_ends = slopes(recipe, rows)[1]
    for i in range(4):
        moved = step * np.eye(4)[i]
        change = (found(recipe, rows + moved) - found(recipe, rows - moved)) / (2 * step)
        np.testing.assert_allclose(by_ends[:, i], change, rtol=1e-5, atol=1e-8)


def test_a_mixture_is_the_weighted_mean_of_its_bands():
    bands = [(0.05, 0.9), (1.5, 4.0), (0.3, 0.1)]
    recipe = mrgp.SpectralMixture(
        3, [1.0, 2.0, 5.0], [f for _, f in bands], [b for b, _ in bands], variance=1.6
    )
    parts = [found(band(*b)) for b in bands]
    expected = 1.6 * np.average(parts, 0, [1.0, 2.0, 5.0])
    np.testing.assert_allclose(found(recipe), expected, rtol=1e-13, atol=1e-15)


def test_the_faddeeva_function_equals_scipy_above_the_real_axis():
    rng = np.random.default_rng(0)
    x, y = 10.0 ** rng.uniform(-3, 4, (2, 2000)) * rng.integers(0, 2, (2, 2000))
    expected = wofz(x + 1j * y)
    with jax.enable_x64(True):
        (real, imaginary), _ = _faddeeva(jnp.asarray(x), jnp.asarray(y))
    error = np.abs(np.asarray(real) + 1j * np.asarray(imaginary) - expected)
    assert (error / np.abs(expected)).max() < 1e-13


@pytest.mark.parametrize(("periods", "tolerance"), [(5, 1e-11), (15, 1e-11), (20, 1e-4)])
def test_waves_times_another_kernel_are_good_for_intervals_of_some_periods(periods, tolerance):
    def kernel(x, z):
        t = x - z
        return np.exp(-0.5 * (t / 2) ** 2 - 2 * (np.pi * 0.1 * t) ** 2) * np.cos(
            2 * np.pi * periods * t
        )

    rows = np.array([[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.3, 1.3], [0.0, 1.0, 0.4, 0.4]])
    product = mrgp.RBF(2.0, variance=1.0) * band(0.1, float(periods))
    with jax.enable_x64(True):
        bound = unwrap(product.bind(Binding(Geometry.unit(1))))
        ((coefficient, ((_, factor),)),) = bound.sum_of_products()
        values = coefficient * np.asarray(means(factor, jnp.asarray(rows)))
    expected = [fine_mean(kernel, row) for row in rows]
    np.testing.assert_allclose(values, expected, atol=tolerance)


BOXES = {
    "polynomial": (
        mrgp.Polynomial(3, 0.7, weight_variance=[0.5, 0.2], variance=1.3, origin=[0.2, -0.4]),
        plain.polynomial(3, 0.7, [0.5, 0.2], 1.3, [0.2, -0.4]),
    ),
    "waves": (
        mrgp.SpectralMixture(2, [1.0, 3.0], [[0.4, 0.2], [0.9, 1.1]], [0.2, 0.1], variance=1.3),
        plain.spectral_mixture([1.0, 3.0], [[0.4, 0.2], [0.9, 1.1]], [[0.2, 0.2], [0.1, 0.1]], 1.3),
    ),
    "rational quadratics": (
        mrgp.RationalQuadratic([0.8, 1.4], 0.9, variance=1.3, product=True),
        plain.rational_quadratic_product([0.8, 1.4], 0.9, 1.3),
    ),
    "radial rational quadratic": (
        mrgp.RationalQuadratic([0.8, 1.4], 0.9, variance=1.3),
        plain.rational_quadratic([0.8, 1.4], 0.9, 1.3),
    ),
    "polynomial and waves": (
        mrgp.Polynomial(2, 0.7, weight_variance=0.3, variance=0.5, dims=1)
        * mrgp.SpectralMixture(1, None, [0.6], [0.2], variance=1.0, dims=0),
        plain.multiply(
            plain.only(plain.polynomial(2, 0.7, 0.3, 0.5), 1),
            plain.only(plain.spectral_mixture([1.0], [[0.6]], [[0.2]]), 0),
        ),
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", BOXES)
def test_covariances_of_boxes_equal_tensor_quadrature(name):
    recipe, kernel = BOXES[name]
    boxes = mrgp.boxes([[0.0, 0.0], [0.3, 0.5], [1.0, 1.0]], [[1.0, 2.0], [0.3, 0.8], [1.0, 1.0]])
    rule = mrgp.GaussLegendre(12)
    nodes = boxes.quadrature(rule)
    x, weights = np.asarray(nodes.x), np.asarray(nodes.weights)
    expected = np.array(
        [
            [p @ plain.matrix(kernel, a, b) @ q for b, q in zip(x, weights, strict=True)]
            for a, p in zip(x, weights, strict=True)
        ]
    )
    tolerance = 1e-4 if name == "radial rational quadratic" else 1e-9
    with jax.enable_x64(True):
        bound = unwrap(recipe.bind(Binding(Geometry.unit(2))))
        covariance, diagonal = cross_covariance(bound, boxes, boxes), variance(bound, boxes)
    np.testing.assert_allclose(covariance, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(diagonal, np.diag(expected), rtol=tolerance)
