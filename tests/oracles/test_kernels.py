"""Kernels against GPJax and tinygp, on random inputs."""

import gpjax.kernels
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tinygp
from tinygp.kernels.distance import L2Distance

import mrgp

RNG = np.random.default_rng(3)
X, Z = RNG.normal(size=(9, 3)), RNG.normal(size=(7, 3))
Z[0] = X[0]
SCALES = [0.6, 1.1, 2.5]


def ours(kernel, x=X, z=Z):
    return kernel(x, z)


def gpjax_matrix(kernel, x=X, z=Z):
    return np.asarray(kernel.cross_covariance(jnp.asarray(x), jnp.asarray(z)))


def tinygp_matrix(kernel, x=X, z=Z):
    return np.asarray(kernel(jnp.asarray(x), jnp.asarray(z)))


def scaled(kernel, scales):
    """Give a tinygp kernel one lengthscale for each input."""
    return tinygp.transforms.Linear(1.0 / jnp.asarray(scales), kernel)


STATIONARY = ["RBF", "Matern12", "Matern32", "Matern52"]
TINYGP = {
    "RBF": tinygp.kernels.ExpSquared,
    "Matern12": tinygp.kernels.Exp,
    "Matern32": tinygp.kernels.Matern32,
    "Matern52": tinygp.kernels.Matern52,
}


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("scales", [0.8, SCALES])
@pytest.mark.parametrize("name", STATIONARY)
def test_stationary_kernels_equal_gpjax(name, scales):
    lengthscale = jnp.asarray(scales)
    theirs = getattr(gpjax.kernels, name)(lengthscale=lengthscale, variance=1.7, n_dims=3)
    kernel = getattr(mrgp, name)(lengthscale=scales, variance=1.7)
    assert_close(ours(kernel), gpjax_matrix(theirs))


@pytest.mark.parametrize("scales", [0.8, SCALES])
@pytest.mark.parametrize("name", STATIONARY)
def test_stationary_kernels_equal_tinygp(name, scales):
    each = np.broadcast_to(scales, (3,))
    theirs = 1.7 * scaled(TINYGP[name](distance=L2Distance()), each)
    kernel = getattr(mrgp, name)(lengthscale=scales, variance=1.7)
    assert_close(ours(kernel), tinygp_matrix(theirs))


@pytest.mark.parametrize("name", STATIONARY[1:])
def test_product_materns_equal_products_of_one_dimensional_kernels(name):
    kernel = getattr(mrgp, name)(lengthscale=SCALES, variance=1.7, product=True)
    gpjax_product, tinygp_product = 1.7, 1.7
    for d, scale in enumerate(SCALES):
        one = getattr(gpjax.kernels, name)(active_dims=[d], lengthscale=scale)
        other = TINYGP[name](scale=scale, distance=L2Distance())
        gpjax_product = gpjax_product * gpjax_matrix(one)
        tinygp_product = tinygp_product * tinygp_matrix(other, X[:, d : d + 1], Z[:, d : d + 1])
    assert_close(ours(kernel), gpjax_product)
    assert_close(ours(kernel), tinygp_product)


def test_periodic_equals_gpjax_at_half_the_lengthscale():
    theirs = gpjax.kernels.Periodic(lengthscale=0.45, variance=1.7, period=1.3, n_dims=3)
    assert_close(ours(mrgp.Periodic(1.3, lengthscale=0.9, variance=1.7)), gpjax_matrix(theirs))


def test_periodic_equals_tinygp_with_gamma_two_over_squared_lengthscale():
    x, z = X[:, :1], Z[:, :1]
    theirs = 1.7 * tinygp.kernels.ExpSineSquared(scale=1.3, gamma=2 / 0.9**2)
    kernel = mrgp.Periodic(1.3, lengthscale=0.9, variance=1.7)
    assert_close(ours(kernel, x, z), tinygp_matrix(theirs, x, z))


def test_linear_equals_both_about_the_origin():
    kernel = mrgp.Linear(1.7, 0.0)
    assert_close(ours(kernel), gpjax_matrix(gpjax.kernels.Linear(variance=1.7, n_dims=3)))
    assert_close(ours(kernel), tinygp_matrix(1.7 * tinygp.kernels.DotProduct()))


def test_linear_about_another_origin_is_linear_in_moved_inputs():
    origin = np.array([0.3, -0.2, 1.0])
    theirs = gpjax.kernels.Linear(variance=1.7, n_dims=3)
    assert_close(ours(mrgp.Linear(1.7, origin)), gpjax_matrix(theirs, X - origin, Z - origin))


@pytest.mark.parametrize("scales", [0.8, SCALES])
def test_rational_quadratic_equals_both(scales):
    kernel = mrgp.RationalQuadratic(scales, 0.7, variance=1.7)
    theirs = gpjax.kernels.RationalQuadratic(
        lengthscale=jnp.asarray(scales), variance=1.7, alpha=0.7, n_dims=3
    )
    assert_close(ours(kernel), gpjax_matrix(theirs))
    tiny = tinygp.kernels.RationalQuadratic(alpha=0.7, distance=L2Distance())
    assert_close(ours(kernel), tinygp_matrix(1.7 * scaled(tiny, np.broadcast_to(scales, (3,)))))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_polynomial_equals_both(degree):
    kernel = mrgp.Polynomial(degree, 0.4, weight_variance=0.8, variance=1.0)
    theirs = gpjax.kernels.Polynomial(degree=degree, shift=0.4, variance=0.8, n_dims=3)
    assert_close(ours(kernel), gpjax_matrix(theirs))
    tiny = tinygp.kernels.Polynomial(order=degree, scale=0.8**-0.5, sigma=0.4**0.5)
    assert_close(ours(kernel), tinygp_matrix(tiny))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_equals_gpjax(order):
    kernel = mrgp.ArcCosine(order, 0.4, weight_variance=SCALES, variance=1.7)
    theirs = gpjax.kernels.ArcCosine(
        order=order, weight_variance=jnp.asarray(SCALES), bias_variance=0.4, variance=1.7, n_dims=3
    )
    # Their arccosine has half the digits where inputs are equal or nearly so.
    np.testing.assert_allclose(ours(kernel), gpjax_matrix(theirs), rtol=1e-6)
    np.testing.assert_allclose(ours(kernel, X, Z[1:]), gpjax_matrix(theirs, X, Z[1:]), rtol=1e-10)


def test_spectral_mixture_equals_products_of_tinygp_waves():
    weights, frequency, bandwidth = [1.0, 3.0], [0.4, 0.9], [0.2, 0.05]
    kernel = mrgp.SpectralMixture(2, weights, frequency, bandwidth, variance=1.7)
    expected = np.zeros((len(X), len(Z)))
    for weight, f, s in zip(weights, frequency, bandwidth, strict=True):
        fading = tinygp.kernels.ExpSquared(scale=1 / (2 * np.pi * s))
        wave = fading * tinygp.kernels.Cosine(scale=1 / f)
        parts = [tinygp_matrix(wave, X[:, d : d + 1], Z[:, d : d + 1]) for d in range(3)]
        expected += 1.7 * weight / 4.0 * np.prod(parts, axis=0)
    assert_close(ours(kernel), expected)


def test_constant_and_white_equal_gpjax():
    assert_close(ours(mrgp.Constant(1.7)), gpjax_matrix(gpjax.kernels.Constant(constant=1.7)))
    white = gpjax.kernels.White(variance=1.7)
    expected = [[float(white(jnp.asarray(a), jnp.asarray(b))) for b in Z] for a in X]
    assert_close(ours(mrgp.White(1.7)), expected)


def test_constant_equals_tinygp():
    assert_close(ours(mrgp.Constant(1.7)), tinygp_matrix(tinygp.kernels.Constant(1.7)))


@pytest.mark.parametrize("dims", [[0], [2, 0]])
def test_chosen_inputs_equal_active_dims(dims):
    scales = jnp.asarray(SCALES[: len(dims)])
    theirs = gpjax.kernels.Matern32(active_dims=dims, lengthscale=scales)
    kernel = mrgp.Matern32(np.asarray(scales), variance=1.0, dims=tuple(dims))
    assert_close(ours(kernel), gpjax_matrix(theirs))


def test_sums_and_products_equal_both():
    kernel = 2.0 * mrgp.RBF(0.8, variance=1.0) + mrgp.Matern12(0.5, variance=0.7) * mrgp.Linear(
        0.3, 0.0
    )
    rbf = gpjax.kernels.RBF(lengthscale=0.8, variance=2.0, n_dims=3)
    rough = gpjax.kernels.Matern12(lengthscale=0.5, variance=0.7, n_dims=3)
    theirs = rbf + rough * gpjax.kernels.Linear(variance=0.3, n_dims=3)
    assert_close(ours(kernel), gpjax_matrix(theirs))
    tiny = 2.0 * tinygp.kernels.ExpSquared(scale=0.8) + 0.7 * tinygp.kernels.Exp(
        scale=0.5, distance=L2Distance()
    ) * (0.3 * tinygp.kernels.DotProduct())
    assert_close(ours(kernel), tinygp_matrix(tiny))
