"""Gradients of kernels in inputs and hyperparameters: finite at zero distance, right elsewhere."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import mrgp
from mrgp.inference.objectives import as_arrays
from mrgp.kernels import Binding
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
    "Linear": mrgp.Linear([0.5, 1.5], 0.2),
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


@pytest.mark.parametrize("name", [k for k in KERNELS if k not in ("Linear", "composed")])
def test_stationary_kernels_have_no_slope_at_zero_distance(name):
    def at(x):
        kernel = unwrap(KERNELS[name].bind(Binding(Geometry.unit(2))))
        return kernel.pair(x, jnp.asarray(X[0]))

    with jax.enable_x64(True):
        assert jax.grad(at)(jnp.asarray(X[0])).tolist() == [0.0, 0.0]
