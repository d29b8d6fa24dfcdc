"""A kernel equals the sum over its terms of coefficient times product of factors."""

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given, settings

import mrgp
from mrgp.kernels import Binding
from mrgp.parameters import unwrap
from mrgp.supports import Geometry

RNG = np.random.default_rng(11)
X, Z = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 3))
Z[0] = X[0]
Z[1, :2] = X[1, :2]


def bound(recipe):
    return unwrap(recipe.bind(Binding(Geometry.unit(3))))


def by_terms(terms):
    """Multiply and add up the terms, factor by factor."""
    total = np.zeros(len(X))
    for term in terms:
        value = np.full(len(X), float(term.coefficient))
        for dims, kernel in term.factors:
            columns = list(dims)
            value = value * np.asarray(kernel.pair(X[:, columns], Z[:, columns]))
        total += value
    return total


def dims_of(recipe):
    """Return, for each term, the inputs of its factors."""
    with jax.enable_x64(True):
        return [tuple(f.dims for f in term.factors) for term in bound(recipe).sum_of_products()]


def assert_terms_make_the_kernel(recipe):
    with jax.enable_x64(True):
        kernel = bound(recipe)
        terms = kernel.sum_of_products()
        np.testing.assert_allclose(by_terms(terms), kernel.pair(X, Z), rtol=1e-12, atol=1e-14)
    for term in terms:
        used = [d for f in term.factors for d in f.dims]
        assert len(used) == len(set(used)), "factors of a term share an input"


RADIAL = mrgp.Matern32([0.6, 1.1], variance=1.3, dims=(2, 0))
LEAVES = {
    "RBF": mrgp.RBF([0.6, 1.1, 2.0], variance=1.3),
    "RBF on two": mrgp.RBF(0.7, variance=1.3, dims=(2, 0)),
    "radial": RADIAL,
    "product": mrgp.Matern52([0.6, 1.1, 2.0], variance=1.3, product=True),
    "one input": mrgp.Matern12(0.6, variance=1.3, dims=1),
    "periodic": mrgp.Periodic(1.5, 0.8, variance=1.3),
    "linear": mrgp.Linear([0.5, 1.0, 2.0], [0.1, 0.2, 0.3]),
    "linear on one": mrgp.Linear(0.5, 0.3, dims=2),
    "rational quadratic": mrgp.RationalQuadratic([0.6, 1.1, 2.0], 0.7, variance=1.3),
    "product of rational quadratics": mrgp.RationalQuadratic(
        [0.6, 1.1, 2.0], 0.7, variance=1.3, product=True
    ),
    "spectral mixture": mrgp.SpectralMixture(
        2, [1.0, 3.0], [[0.4, 0.2, 0.7], [0.9, 1.1, 0.1]], [0.2, 0.5], variance=1.3
    ),
    "spectral mixture on one": mrgp.SpectralMixture(3, variance=1.3, dims=1),
    "polynomial": mrgp.Polynomial(
        3, 0.7, weight_variance=[0.5, 1.0, 2.0], variance=1.3, origin=[0.1, 0.2, 0.3]
    ),
    "polynomial on two": mrgp.Polynomial(2, 0.0, weight_variance=0.5, dims=(2, 0)),
    "polynomial on one": mrgp.Polynomial(4, 0.7, weight_variance=0.5, variance=1.3, dims=1),
    "arc cosine": mrgp.ArcCosine(1, 0.7, weight_variance=[0.5, 1.0, 2.0], variance=1.3),
    "constant": mrgp.Constant(1.3),
    "white": mrgp.White(1.3),
    "white on two": mrgp.White(1.3, dims=(0, 1)),
}
COMPOSED = {
    "sum": LEAVES["RBF"] + LEAVES["radial"] + 0.5,
    "product of disjoint": LEAVES["radial"] * LEAVES["one input"],
    "two factors on one input": LEAVES["one input"] * mrgp.Periodic(1.5, 0.8, dims=1),
    "three factors on one input": LEAVES["one input"]
    * mrgp.Periodic(1.5, 0.8, dims=1)
    * mrgp.Linear(0.5, 0.3, dims=1),
    "overlapping radial": RADIAL * mrgp.Matern12(0.7, variance=1.0, dims=(0, 1)),
    "a factor that joins two": mrgp.RBF(0.7, variance=1.0, dims=0)
    * mrgp.RBF(0.9, variance=1.0, dims=1)
    * mrgp.Matern12(0.7, variance=1.0, dims=(1, 0)),
    "same kernel twice": RADIAL * RADIAL,
    "product of sums": (LEAVES["RBF"] + LEAVES["periodic"]) * (LEAVES["linear"] + 0.5),
    "scaled product of sums": 2.0 * (LEAVES["one input"] + 0.5) * (3.0 * LEAVES["radial"] + 0.1),
    "polynomial times wave": LEAVES["polynomial on two"] * LEAVES["spectral mixture"],
    "separable with waves": mrgp.separable(
        x2=mrgp.SpectralMixture(2) + mrgp.RationalQuadratic(0.7, 0.5),
        rest=mrgp.Polynomial(2) * mrgp.ArcCosine(0),
    ),
    "separable": mrgp.separable(
        x2=mrgp.RBF(0.7, variance=1.0) + mrgp.Periodic(1.5, 0.8, variance=1.0), rest=mrgp.Matern32()
    ),
    "white beside": LEAVES["RBF"] + 0.1 * LEAVES["white"],
}


@pytest.mark.parametrize("name", LEAVES)
def test_terms_of_leaves_make_the_kernel(name):
    assert_terms_make_the_kernel(LEAVES[name])


@pytest.mark.parametrize("name", COMPOSED)
def test_terms_of_composed_kernels_make_the_kernel(name):
    assert_terms_make_the_kernel(COMPOSED[name])


def test_products_go_down_to_single_inputs_and_radial_kernels_stay_whole():
    singles = [((0,), (1,), (2,))]
    assert dims_of(LEAVES["RBF"]) == dims_of(LEAVES["product"]) == singles
    assert dims_of(LEAVES["periodic"]) == dims_of(LEAVES["white"]) == singles
    assert dims_of(LEAVES["linear"]) == [((0,),), ((1,),), ((2,),)]
    assert dims_of(LEAVES["product of rational quadratics"]) == singles
    assert dims_of(LEAVES["spectral mixture"]) == 2 * singles
    assert dims_of(LEAVES["spectral mixture on one"]) == [((1,),)]
    assert dims_of(LEAVES["polynomial on one"]) == [((1,),)]
    assert dims_of(LEAVES["polynomial on two"]) == [
        ((0,),),
        ((2,), (0,)),
        ((2,),),
        ((0,),),
        ((2,),),
        (),
    ]
    assert dims_of(LEAVES["constant"]) == [()]
    assert dims_of(LEAVES["rational quadratic"]) == dims_of(LEAVES["arc cosine"]) == [((0, 1, 2),)]
    assert dims_of(LEAVES["radial"]) == [((2, 0),)]


def test_factors_that_share_an_input_become_one_over_their_joint_inputs():
    assert dims_of(COMPOSED["two factors on one input"]) == [((1,),)]
    assert dims_of(COMPOSED["overlapping radial"]) == [((0, 1, 2),)]
    assert dims_of(COMPOSED["a factor that joins two"]) == [((0, 1),)]


def test_a_product_of_sums_has_a_term_for_every_choice():
    assert len(dims_of(COMPOSED["product of sums"])) == 2 * 4


# Strategies draw functions that make kernels, for kernels are to be made inside the test.
numbers = st.sampled_from([0.5, 0.9, 1.7])
some_dims = st.sampled_from([None, 0, 1, 2, (0, 1), (2, 1)])
makers = {
    "RBF": lambda s, d: mrgp.RBF(s, variance=1.2, dims=d),
    "radial": lambda s, d: mrgp.Matern32(s, variance=1.2, dims=d),
    "product": lambda s, d: mrgp.Matern12(s, variance=1.2, dims=d, product=True),
    "periodic": lambda s, d: mrgp.Periodic(1.5, s, variance=1.2, dims=d),
    "linear": lambda s, d: mrgp.Linear(s, 0.3, dims=d),
    "constant": lambda s, d: mrgp.Constant(s, dims=d),
    "rational": lambda s, d: mrgp.RationalQuadratic(s, 0.8, variance=1.2, dims=d, product=True),
    "spectral": lambda s, d: mrgp.SpectralMixture(2, [s, 1.0], variance=1.2, dims=d),
    "polynomial": lambda s, d: mrgp.Polynomial(2, s, weight_variance=0.4, dims=d),
    "arc cosine": lambda s, d: mrgp.ArcCosine(1, s, variance=1.2, dims=d),
}
leaves = st.builds(
    lambda name, s, d: lambda: makers[name](s, d), st.sampled_from(list(makers)), numbers, some_dims
)
composed = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda a, b: lambda: a() + b(), inner, inner),
        st.builds(lambda a, b: lambda: a() * b(), inner, inner),
        st.builds(lambda s, k: lambda: s * k(), numbers, inner),
    ),
    max_leaves=4,
)


@settings(max_examples=40, deadline=None)
@given(composed)
def test_terms_make_any_kernel(make):
    assert_terms_make_the_kernel(make())


def test_terms_of_a_joint_factor_make_it_again():
    with jax.enable_x64(True):
        kernel = bound(COMPOSED["overlapping radial"])
        ((coefficient, ((_, factor),)),) = kernel.sum_of_products()
        again = float(coefficient) * by_terms(factor.sum_of_products())
        np.testing.assert_allclose(again, kernel.pair(X, Z), rtol=1e-12)


class Custom(mrgp.kernels.Kernel):
    """A user's kernel that is built from nothing of ours, and is not stationary."""

    def pair(self, x, z):
        return x[..., 0] * z[..., 0]

    def bind(self, binding):
        return self

    def on(self, *dims):
        return self

    def sum_of_products(self):
        return (mrgp.kernels.Term(1.0, (mrgp.kernels.Factor((0,), self),)),)


def test_a_kernel_that_is_not_known_is_not_taken_for_stationary():
    known = mrgp.RBF() * mrgp.Periodic(2) + mrgp.White()
    assert mrgp.kernels.is_stationary(known)
    assert mrgp.kernels.has_white(known)
    mixed = mrgp.RationalQuadratic() * mrgp.SpectralMixture()
    assert mrgp.kernels.is_stationary(mixed)
    inner = (mrgp.Linear(), mrgp.Polynomial(), mrgp.ArcCosine())
    for unknown in (Custom(), known * Custom(), *(mrgp.RBF() + k for k in inner)):
        assert not mrgp.kernels.is_stationary(unknown)
    assert not any(mrgp.kernels.has_white(k) for k in (mixed, *inner))
