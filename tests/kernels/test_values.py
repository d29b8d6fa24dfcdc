"""Kernel matrices against explicit loops: leaves, chosen inputs, sums, products, separable."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given, settings

import mrgp
from mrgp.kernels import Binding
from mrgp.parameters import Parameter, fixed, positive, unwrap
from mrgp.supports import Geometry
from reference import kernels as plain

RNG = np.random.default_rng(7)
X, Z = RNG.normal(size=(5, 3)), RNG.normal(size=(4, 3))
Z[0] = X[0]
ARD = [0.6, 1.1, 2.5]
STATIONARY = {
    "RBF": mrgp.RBF,
    "Matern12": mrgp.Matern12,
    "Matern32": mrgp.Matern32,
    "Matern52": mrgp.Matern52,
}
NAMES = ("time", "lon", "lat")


def assert_equals(kernel, expected):
    np.testing.assert_allclose(kernel(X, Z), plain.matrix(expected, X, Z), rtol=1e-12, atol=1e-15)


def on_named_inputs(kernel):
    """Evaluate a recipe between X and Z on the inputs time, lon, lat."""
    geometry = Geometry.of((mrgp.points(X, inputs=NAMES),))
    with jax.enable_x64(True):
        return np.asarray(unwrap(kernel.bind(Binding(geometry))).cross(X, Z))


@pytest.mark.parametrize("lengthscale", [0.8, ARD])
@pytest.mark.parametrize("name", STATIONARY)
def test_stationary_kernel_is_its_profile_of_the_scaled_distance(name, lengthscale):
    kernel = STATIONARY[name](lengthscale=lengthscale, variance=1.7)
    assert_equals(kernel, plain.radial(name, lengthscale, 1.7))


@pytest.mark.parametrize("lengthscale", [0.8, ARD])
@pytest.mark.parametrize("name", ["Matern12", "Matern32", "Matern52"])
def test_product_matern_multiplies_one_dimensional_materns(name, lengthscale):
    kernel = STATIONARY[name](lengthscale=lengthscale, variance=1.7, product=True)
    assert_equals(kernel, plain.product(name, lengthscale, 1.7))


def test_radial_and_product_materns_are_different_kernels():
    x, z = [[0.0, 0.0]], [[0.7, 0.9]]
    radial = mrgp.Matern32(lengthscale=1.0)(x, z)
    product = mrgp.Matern32(lengthscale=1.0, product=True)(x, z)
    np.testing.assert_allclose([radial[0, 0], product[0, 0]], [0.413, 0.354], atol=5e-4)


def test_rbf_is_both_radial_and_a_product():
    kernel = mrgp.RBF(lengthscale=ARD, variance=1.7)
    assert_equals(kernel, plain.product("RBF", ARD, 1.7))


def test_periodic_kernel():
    assert_equals(mrgp.Periodic(1.3, lengthscale=0.9, variance=1.7), plain.periodic(1.3, 0.9, 1.7))


def test_periodic_kernel_repeats_in_every_input():
    kernel = mrgp.Periodic(1.3, lengthscale=0.9)
    np.testing.assert_allclose(
        kernel(X, Z), kernel(X + 1.3 * np.array([1, -2, 5]), Z), rtol=1e-11, atol=1e-14
    )


@pytest.mark.parametrize(("variance", "origin"), [(1.7, 0.0), (1.7, 0.4), (ARD, [0.1, -0.2, 0.3])])
def test_linear_kernel(variance, origin):
    assert_equals(mrgp.Linear(variance, origin), plain.linear(variance, origin))


def test_constant_and_white_kernels():
    assert_equals(mrgp.Constant(1.7), plain.constant(1.7))
    assert_equals(mrgp.White(1.7), plain.white(1.7))
    assert mrgp.White(1.7)(X, Z)[0, 0] == 1.7


@pytest.mark.parametrize("dims", [(0,), (2, 0), (1, 2)])
def test_dims_by_number_choose_the_inputs_in_order(dims):
    scales = ARD[: len(dims)]
    columns = tuple(dims)
    assert_equals(
        mrgp.Matern32(lengthscale=scales, variance=1.7, dims=dims),
        plain.only(plain.radial("Matern32", scales, 1.7), *columns),
    )
    assert_equals(
        mrgp.Linear(scales, scales, dims=dims), plain.only(plain.linear(scales, scales), *columns)
    )


def test_negative_dims_count_from_the_last_input():
    assert_equals(mrgp.RBF(lengthscale=0.8, dims=-1), plain.only(plain.radial("RBF", 0.8), 2))


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        (mrgp.RBF(lengthscale=0.8, dims="lat"), plain.only(plain.radial("RBF", 0.8), 2)),
        (
            mrgp.Matern12(lengthscale=[0.8, 2.0], dims=("lat", "time")),
            plain.only(plain.radial("Matern12", [0.8, 2.0]), 2, 0),
        ),
        (
            mrgp.Periodic(2.0, lengthscale=0.7, dims="time") * mrgp.White(1.0, dims=("lon", "lat")),
            plain.multiply(
                plain.only(plain.periodic(2.0, 0.7), 0), plain.only(plain.white(), 1, 2)
            ),
        ),
        (
            mrgp.RBF(lengthscale=0.8).on("lon") + mrgp.Matern52(lengthscale=0.9).on("lat", 0),
            plain.add(
                plain.only(plain.radial("RBF", 0.8, 0.5), 1),
                plain.only(plain.radial("Matern52", 0.9, 0.5), 2, 0),
            ),
        ),
    ],
)
def test_dims_by_name_choose_the_inputs(recipe, expected):
    np.testing.assert_allclose(
        on_named_inputs(recipe), plain.matrix(expected, X, Z), rtol=1e-12, atol=1e-15
    )


RBF_1 = mrgp.RBF(lengthscale=0.8, variance=1.2)
MATERN_1 = mrgp.Matern32(lengthscale=ARD, variance=0.7, dims=(0, 1, 2))
PLAIN_RBF, PLAIN_MATERN = plain.radial("RBF", 0.8, 1.2), plain.radial("Matern32", ARD, 0.7)
COMPOSED = {
    "sum": (RBF_1 + MATERN_1, plain.add(PLAIN_RBF, PLAIN_MATERN)),
    "product": (RBF_1 * MATERN_1, plain.multiply(PLAIN_RBF, PLAIN_MATERN)),
    "scaled from the left": (2.0 * RBF_1, plain.multiply(plain.constant(2.0), PLAIN_RBF)),
    "scaled from the right": (RBF_1 * 2, plain.multiply(plain.constant(2.0), PLAIN_RBF)),
    "2 k + 0.5": (
        2.0 * RBF_1 + 0.5,
        plain.add(plain.multiply(plain.constant(2.0), PLAIN_RBF), plain.constant(0.5)),
    ),
    "0.5 + k": (0.5 + RBF_1, plain.add(plain.constant(0.5), PLAIN_RBF)),
    "scaled sum": (
        3.0 * (RBF_1 + MATERN_1),
        plain.multiply(plain.constant(3.0), plain.add(PLAIN_RBF, PLAIN_MATERN)),
    ),
    "sum times kernel": (
        (RBF_1 + 0.5) * MATERN_1,
        plain.multiply(plain.add(PLAIN_RBF, plain.constant(0.5)), PLAIN_MATERN),
    ),
    "three factors": (
        RBF_1 * MATERN_1 * mrgp.Linear(0.3, 0.2),
        plain.multiply(PLAIN_RBF, PLAIN_MATERN, plain.linear(0.3, 0.2)),
    ),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_kernels_compose_values(name):
    assert_equals(*COMPOSED[name])


def test_one_matrix_is_symmetric_in_its_own_rows():
    kernel = 2.0 * RBF_1 + MATERN_1
    np.testing.assert_array_equal(kernel(X), kernel(X, X))
    np.testing.assert_allclose(kernel(X), kernel(X).T, rtol=1e-15)


def test_parameters_may_be_given_as_parameters():
    kernel = mrgp.RBF(lengthscale=positive(ARD), variance=fixed(1.7))
    assert_equals(kernel, plain.radial("RBF", ARD, 1.7))


def test_separable_multiplies_over_named_inputs_and_the_rest():
    kernel = mrgp.separable(
        time=mrgp.Matern12(lengthscale=0.6, variance=1.5),
        space=mrgp.Matern32(lengthscale=[1.1, 2.5], variance=0.5),
    )
    expected = plain.multiply(
        plain.only(plain.radial("Matern12", 0.6, 1.5), 0),
        plain.only(plain.radial("Matern32", [1.1, 2.5], 0.5), 1, 2),
    )
    found = on_named_inputs(kernel)
    np.testing.assert_allclose(found, plain.matrix(expected, X, Z), rtol=1e-12)


def test_separable_takes_sums_and_one_keyword_for_each_input():
    kernel = mrgp.separable(
        lat=mrgp.RBF(lengthscale=0.6, variance=1.0),
        time=mrgp.RBF(lengthscale=1.1, variance=1.0) + mrgp.Periodic(2.0, 0.9, variance=1.0),
        lon=mrgp.Constant(2.0),
    )
    expected = plain.multiply(
        plain.only(plain.radial("RBF", 0.6), 2),
        plain.only(plain.add(plain.radial("RBF", 1.1), plain.periodic(2.0, 0.9)), 0),
        plain.constant(2.0),
    )
    found = on_named_inputs(kernel)
    np.testing.assert_allclose(found, plain.matrix(expected, X, Z), rtol=1e-12)


@pytest.mark.parametrize(
    ("kernels", "text"),
    [
        ({"time": mrgp.RBF()}, r"separable\(time=\) does not fit the inputs \('time', 'lon'"),
        (
            {"hour": mrgp.RBF(), "space": mrgp.RBF()},
            r"separable\(hour=, space=\) does not fit .* give one keyword for each input, with at"
            r" most one \(such as space=\) for all the remaining ones",
        ),
        (
            {"time": mrgp.RBF(), "lon": mrgp.RBF(), "lat": mrgp.RBF(), "space": mrgp.RBF()},
            "Supports name their inputs by inputs=",
        ),
    ],
)
def test_separable_says_when_it_does_not_fit_the_inputs(kernels, text):
    with pytest.raises(ValueError, match=text):
        on_named_inputs(mrgp.separable(**kernels))


def test_separable_needs_a_kernel_and_keeps_its_inputs():
    with pytest.raises(ValueError, match="separable needs at least one kernel, such as time="):
        mrgp.separable()
    with pytest.raises(ValueError, match="A separable kernel already chooses its inputs"):
        mrgp.separable(time=mrgp.RBF()).on("time")


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "two", None])
def test_kernels_combine_only_with_kernels_and_positive_numbers(value):
    for combine in (lambda: RBF_1 * value, lambda: value + RBF_1):
        with pytest.raises(ValueError, match="combined with kernels and positive numbers; got"):
            combine()


@pytest.mark.parametrize(
    ("recipe", "text"),
    [
        (lambda: mrgp.RBF(dims="hour"), "No input is named 'hour'; the inputs are"),
        (lambda: mrgp.RBF(dims=3), "Input 3 does not exist; there are 3 inputs"),
        (lambda: mrgp.RBF(dims=-4), "Input -4 does not exist; there are 3 inputs"),
        (lambda: mrgp.RBF(dims=("lon", 1)), r"RBF: dims=\('lon', 1\) names an input twice"),
        (lambda: mrgp.RBF(dims=()), r"dims= takes input names or numbers; got \(\)"),
        (lambda: mrgp.RBF(dims=(0.5,)), "dims= takes input names or numbers"),
        (lambda: mrgp.RBF(dims=0).on(1), r"RBF already sees the inputs \(0,\)"),
        (lambda: mrgp.RBF(positive([1.0, 2.0])), r"lengthscale must be one number or 3.*\(2,\)"),
        (lambda: mrgp.RBF(-1.0), "RBF: lengthscale must be positive and finite; got -1.0"),
        (lambda: mrgp.Periodic(0.0), "Periodic: period must be positive and finite; got 0.0"),
    ],
)
def test_wrong_recipes_say_what_is_wrong(recipe, text):
    with pytest.raises(ValueError, match=text):
        on_named_inputs(recipe())


def test_a_wrong_number_of_lengthscales_says_how_many_are_meant():
    with pytest.raises(ValueError, match="lengthscale must be one number or 3, one for each input"):
        on_named_inputs(mrgp.RBF([1.0, 2.0]))


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_period_given_as_a_parameter_must_be_positive_too(value):
    with pytest.raises(ValueError, match="period must be positive"):
        mrgp.Periodic(fixed(value))(X, Z)


OPEN = {
    "leaf": mrgp.Matern52(),
    "sum": mrgp.RBF() + mrgp.Matern12() + mrgp.Periodic(2.0),
    "product": mrgp.RBF() * mrgp.Periodic(2.0),
    "scaled": 3.0 * mrgp.RBF(),
    "separable": mrgp.separable(time=mrgp.RBF(), space=mrgp.Matern32()),
}


@pytest.mark.parametrize("name", OPEN)
def test_open_variances_together_make_the_variance_of_the_data(name):
    geometry = Geometry.of((mrgp.points(X, inputs=NAMES),))
    with jax.enable_x64(True):
        kernel = unwrap(OPEN[name].bind(Binding(geometry, variance=4.0)))
        np.testing.assert_allclose(kernel.pair(X, X), np.full(len(X), 4.0), rtol=1e-12)


def test_open_lengthscales_start_between_spacing_and_extent():
    x = np.random.default_rng(0).normal(size=(200, 3)) * np.array([1.0, 10.0, 0.1])
    geometry = Geometry.of((mrgp.points(x, inputs=NAMES),))
    with jax.enable_x64(True):
        bound = mrgp.RBF().bind(Binding(geometry, priors=True))
        assert isinstance(bound.lengthscale, Parameter)
        np.testing.assert_allclose(bound.lengthscale.value, geometry.typical, rtol=1e-12)
        np.testing.assert_allclose(bound.lengthscale.prior.median, geometry.typical, rtol=1e-12)
    assert (geometry.spacing < geometry.typical).all()
    assert (geometry.typical < geometry.extent).all()


inputs = hnp.arrays(np.float64, (4, 2), elements=st.floats(-3, 3, width=32))
LAWFUL = {
    "RBF": mrgp.RBF(lengthscale=[0.8, 1.5]),
    "Matern12": mrgp.Matern12(lengthscale=0.5),
    "Matern32": mrgp.Matern32(lengthscale=0.5, product=True),
    "Matern52": mrgp.Matern52(lengthscale=0.5),
    "Periodic": mrgp.Periodic(1.7, lengthscale=0.8),
    "Linear": mrgp.Linear(0.5, 0.3),
    "White": mrgp.White(1.0),
    "composed": 2.0 * mrgp.RBF(0.8) * mrgp.Linear(0.5, 0.3) + mrgp.Matern12(0.4) + 0.5,
}


@pytest.mark.parametrize("name", LAWFUL)
@settings(max_examples=15, deadline=None)
@given(x=inputs)
def test_every_matrix_is_symmetric_and_positive_semidefinite(name, x):
    matrix = LAWFUL[name](x)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-14)
    assert np.linalg.eigvalsh(matrix).min() >= -1e-10 * max(1.0, np.trace(matrix))


@pytest.mark.parametrize("name", ["RBF", "Matern12", "Matern32", "Matern52", "Periodic", "White"])
@settings(max_examples=10, deadline=None)
@given(x=inputs, shift=hnp.arrays(np.float64, (1, 2), elements=st.integers(-9, 9)))
def test_stationary_kernels_do_not_change_when_all_inputs_move(name, x, shift):
    kernel = LAWFUL[name]
    x = np.round(x, 3)
    moved = kernel(x * 1024.0 + shift) if name == "White" else kernel(x + shift)
    still = kernel(x * 1024.0) if name == "White" else kernel(x)
    np.testing.assert_allclose(moved, still, rtol=1e-10, atol=1e-12)
