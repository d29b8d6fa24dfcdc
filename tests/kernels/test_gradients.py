"""Gradients of kernels in inputs and hyperparameters: finite at zero distance, right elsewhere."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import mrgp
from mrgp.kernels import Binding
from mrgp.models import as_arrays
from mrgp.parameters import partition, positive, unwrap
from mrgp.supports import Geometry

KERNELS = {
    "RBF": mrgp.RBF(lengthscale=[0.8, 1.3], variance=1.5),
    "Matern12": mrgp.Matern12(lengthscale=[0.8, 1.3], variance=1.5),
    "Matern32": mrgp.Matern32(lengthscale=[0.8, 1.3], variance=1.5),
    "Matern52": mrgp.Matern52(lengthscale=0.8, variance=1.5),
    "Matern12 product": mrgp.Matern12(lengthscale=[0.8, 1.3], variance=1.5, product=True),
    "Matern32 product": mrgp.Matern32(lengthscale=0.8, variance=1.5, product=True),
    "Matern52 product": mrgp.Matern52(lengthscale=[0.8, 1.3], variance=1.5, product=True),
    "Periodic": mrgp.Periodic(positive(1.7), lengthscale=0.6, variance=1.5),
    "RationalQuadratic": mrgp.RationalQuadratic([0.8, 1.3], 0.7, variance=1.5),
    "RationalQuadratic product": mrgp.RationalQuadratic(0.8, 0.7, variance=1.5, product=True),
    "SpectralMixture": mrgp.SpectralMixture(
        2, [1.0, 3.0], [[0.4, 0.2], [0.9, 1.1]], [0.2, 0.5], variance=1.5
    ),
    "Linear": mrgp.Linear([0.5, 1.5], 0.2),
    "Polynomial": mrgp.Polynomial(
        3, positive(0.7), weight_variance=[0.5, 1.5], variance=1.5, origin=0.2
    ),
    "ArcCosine 0": mrgp.ArcCosine(0, positive(0.7), weight_variance=[0.5, 1.5], variance=1.5),
    "ArcCosine 1": mrgp.ArcCosine(1, positive(0.7), weight_variance=[0.5, 1.5], variance=1.5),
    "ArcCosine 2": mrgp.ArcCosine(2, positive(0.7), weight_variance=0.8, variance=1.5, origin=0.2),
    "Constant": mrgp.Constant(1.5),
    "White": mrgp.White(1.5),
    "composed": 2.0 * mrgp.RBF([0.8, 1.3]) * mrgp.Linear(0.5, 0.2, dims=0) + mrgp.Matern12(0.5),
}
X = np.array([[0.1, 0.4], [1.2, -0.7], [0.9, 0.4]])
Z = np.array([[0.5, 0.3], [-0.6, 1.4], [2.1, 0.9]])

each_kernel = pytest.mark.parametrize("name", KERNELS)


@functools.cache
def compiled(name):
    """Return the sum of weighted kernel values as a function of one vector, and its gradient.

    The vector holds the kernel's trained parameters, then two sets of inputs.
    """
    kernel = KERNELS[name].bind(Binding(Geometry.unit(2)))
    trained, frozen = as_arrays(partition(kernel))
    start, unravel = ravel_pytree((trained, jnp.asarray(X), jnp.asarray(Z)))
    weights = jnp.asarray(np.random.default_rng(0).normal(size=(len(X), len(Z))))

    def value(vector):
        trained, x, z = unravel(vector)
        return jnp.sum(weights * unwrap(eqx.combine(trained, frozen)).cross(x, z))

    return jax.jit(value), jax.jit(jax.grad(value)), start[: start.size - X.size - Z.size]


def gradient_and_differences(name, x, z):
    """Return the gradient, central differences, and how many entries are parameters."""
    with jax.enable_x64(True):
        value, gradient, parameters = compiled(name)
        at = jnp.concatenate([parameters, jnp.ravel(jnp.asarray(x)), jnp.ravel(jnp.asarray(z))])
        steps = 1e-5 * jnp.eye(at.size)
        differences = [float(value(at + h) - value(at - h)) / 2e-5 for h in steps]
        return np.asarray(gradient(at)), np.array(differences), parameters.size


@each_kernel
def test_gradients_are_finite_at_zero_distance_and_right_in_hyperparameters(name):
    gradient, differences, count = gradient_and_differences(name, X, X)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(gradient[:count], differences[:count], rtol=1e-6, atol=1e-8)


@each_kernel
def test_gradients_equal_central_differences_away_from_zero_distance(name):
    gradient, differences, count = gradient_and_differences(name, X, Z)
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-8)
    assert count > 0
    assert (gradient[:count] != 0).any() == (name != "White")


STATIONARY = [name for name, k in KERNELS.items() if mrgp.kernels.is_stationary(k)]


@pytest.mark.parametrize("name", STATIONARY)
def test_stationary_kernels_have_no_slope_at_zero_distance(name):
    def at(x):
        kernel = unwrap(KERNELS[name].bind(Binding(Geometry.unit(2))))
        return kernel.pair(x, jnp.asarray(X[0]))

    with jax.enable_x64(True):
        assert jax.grad(at)(jnp.asarray(X[0])).tolist() == [0.0, 0.0]


def test_the_stationary_kernels_are_known():
    others = {"Linear", "Polynomial", "ArcCosine 0", "ArcCosine 1", "ArcCosine 2", "composed"}
    assert set(KERNELS) - set(STATIONARY) == others


@pytest.mark.parametrize("bias", [0.0, 0.7])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_has_finite_slopes_at_its_origin_with_and_without_bias(order, bias):
    recipe = mrgp.ArcCosine(order, bias, weight_variance=[0.5, 1.5], variance=1.5)

    def at(x, z):
        return unwrap(recipe.bind(Binding(Geometry.unit(2)))).pair(x, z)

    with jax.enable_x64(True):
        zero, away = jnp.zeros(2), jnp.asarray(X[0])
        for x, z in ((zero, zero), (zero, away), (away, zero), (away, away), (away, -away)):
            assert np.isfinite(jax.grad(at, (0, 1))(x, z)).all()
        half = 0.5 if bias == 0 and order == 0 else 1.0
        level = half * 1.5 * (1.0, bias, 3 * bias**2)[order]
        np.testing.assert_allclose(at(zero, zero), level, rtol=1e-15)
