"""Wrong shapes are refused, in words at the API and by shape checks inside."""

import jax
import numpy as np
import pytest
from jaxtyping import TypeCheckError

import mrgp
from mrgp.kernels import Binding
from mrgp.parameters import unwrap
from mrgp.supports import Geometry

TWO, THREE = np.zeros((4, 2)), np.zeros((4, 3))
KERNELS = [
    mrgp.RBF(1.0),
    mrgp.Matern32(1.0, product=True),
    mrgp.Periodic(1.0),
    mrgp.RationalQuadratic(1.0),
    mrgp.SpectralMixture(2),
    mrgp.Linear(1.0),
    mrgp.Polynomial(2),
    mrgp.ArcCosine(1),
    mrgp.Constant(1.0),
    mrgp.White(1.0),
    mrgp.RBF(1.0) + 0.5,
    2.0 * mrgp.RBF(1.0),
    mrgp.RBF(1.0) * mrgp.Linear(1.0),
]


@pytest.mark.parametrize("x", [0.0, np.zeros(4), np.zeros((4, 2, 2))])
def test_inputs_must_be_rows(x):
    with pytest.raises(ValueError, match=r"x must have shape \[n, d\]; got \("):
        mrgp.RBF()(x)
    with pytest.raises(ValueError, match=r"z must have shape \[n, d\]; got \("):
        mrgp.RBF()(TWO, x)


def test_both_arguments_must_have_the_same_inputs():
    with pytest.raises(ValueError, match="x has 2 inputs and z has 3; they must agree"):
        mrgp.RBF()(TWO, THREE)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_bound_kernels_refuse_inputs_of_different_number(kernel):
    with jax.enable_x64(True):
        bound = unwrap(kernel.bind(Binding(Geometry.unit(2))))
        with pytest.raises(TypeCheckError, match="pair"):
            bound.pair(TWO, THREE)
        with pytest.raises(TypeCheckError, match="cross"):
            bound.cross(TWO, THREE)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_pair_broadcasts_over_leading_axes(kernel):
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(3, 1, 2)), rng.normal(size=(1, 4, 2))
    with jax.enable_x64(True):
        bound = unwrap(kernel.bind(Binding(Geometry.unit(2))))
        found = np.asarray(bound.pair(x, z))
        single = [[float(bound.pair(x[i, 0], z[0, j])) for j in range(4)] for i in range(3)]
    np.testing.assert_allclose(found, single, rtol=1e-14)


def test_results_are_double_precision_numpy():
    values = mrgp.RBF()(TWO.astype(np.float32))
    assert isinstance(values, np.ndarray)
    assert values.dtype == np.float64
