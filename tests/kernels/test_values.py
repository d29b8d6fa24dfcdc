"""Kernel matrices against explicit loops: leaves, chosen inputs, sums, products, separable."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import example, given, settings

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


@pytest.mark.parametrize("lengthscale", [0.8, ARD])
@pytest.mark.parametrize("alpha", [0.05, 1.0, 30.0])
def test_rational_quadratic_kernel(lengthscale, alpha):
    for product, expected in (
        (False, plain.rational_quadratic),
        (True, plain.rational_quadratic_product),
    ):
        kernel = mrgp.RationalQuadratic(lengthscale, alpha, variance=1.7, product=product)
        assert_equals(kernel, expected(lengthscale, alpha, 1.7))


def test_rational_quadratic_of_large_alpha_is_rbf():
    kernel = mrgp.RationalQuadratic(ARD, 1e9, variance=1.7)
    np.testing.assert_allclose(kernel(X, Z), mrgp.RBF(ARD, variance=1.7)(X, Z), rtol=1e-7)


@pytest.mark.parametrize("degree", [1, 2, 5])
@pytest.mark.parametrize(("weight", "origin", "offset"), [(0.6, 0.0, 1.0), (ARD, [0.1, -1, 2], 0)])
def test_polynomial_kernel(degree, weight, origin, offset):
    kernel = mrgp.Polynomial(degree, offset, weight_variance=weight, variance=1.7, origin=origin)
    assert_equals(kernel, plain.polynomial(degree, offset, weight, 1.7, origin))


def test_polynomial_of_degree_one_is_linear_plus_a_constant():
    kernel = mrgp.Polynomial(1, 0.4, weight_variance=ARD, variance=1.0, origin=0.3)
    np.testing.assert_allclose(kernel(X, Z), mrgp.Linear(ARD, 0.3)(X, Z) + 0.4, rtol=1e-13)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize(("weight", "origin", "bias"), [(0.6, 0.0, 1.0), (ARD, [0.1, -1, 2], 0.2)])
def test_arc_cosine_kernel(order, weight, origin, bias):
    kernel = mrgp.ArcCosine(order, bias, weight_variance=weight, variance=1.7, origin=origin)
    expected = plain.matrix(plain.arc_cosine(order, bias, weight, 1.7, origin), X, Z)
    # The arccosine of the reference has half the digits at equal inputs, the first pair.
    expected[0, 0] = kernel(X[:1])[0, 0]
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_of_an_input_with_itself(order):
    kernel = mrgp.ArcCosine(order, 0.2, weight_variance=ARD, variance=1.7)
    length = 0.2 + (X**2) @ np.array(ARD)
    expected = 1.7 * (np.ones(len(X)), length, 3 * length**2)[order]
    np.testing.assert_allclose(np.diag(kernel(X)), expected, rtol=1e-14)


def test_arc_cosine_is_a_mean_over_random_units():
    draws = np.random.default_rng(0).normal(size=(400_000, 4)) * np.sqrt([0.2, *ARD])
    for order in (0, 1, 2):
        rectified = [np.maximum(draws[:, 0] + draws[:, 1:] @ p, 0) for p in (X[1], Z[1])]
        units = [(s > 0) * s**order for s in rectified]
        found = mrgp.ArcCosine(order, 0.2, weight_variance=ARD)(X[1:2], Z[1:2])[0, 0]
        np.testing.assert_allclose(found, 2 * np.mean(units[0] * units[1]), rtol=0.05)


WEIGHTS, FREQUENCY = [1.0, 3.0], [[0.4, 0.2, 0.7], [0.9, 1.1, 0.1]]
BANDWIDTH = [[0.2, 0.1, 0.3], [0.05, 0.2, 0.4]]


def test_spectral_mixture_kernel():
    kernel = mrgp.SpectralMixture(2, WEIGHTS, FREQUENCY, BANDWIDTH, variance=1.7)
    assert_equals(kernel, plain.spectral_mixture(WEIGHTS, FREQUENCY, BANDWIDTH, 1.7))
    np.testing.assert_allclose(np.diag(kernel(X)), 1.7, rtol=1e-15)


def test_spectral_mixture_shares_numbers_among_inputs_and_takes_zero_frequencies():
    kernel = mrgp.SpectralMixture(2, WEIGHTS, fixed([0.0, 0.7]), [0.2, 0.1], variance=1.7)
    expected = plain.spectral_mixture(WEIGHTS, [[0.0] * 3, [0.7] * 3], [[0.2] * 3, [0.1] * 3], 1.7)
    assert_equals(kernel, expected)


def test_spectral_mixture_at_frequency_zero_is_rbf():
    kernel = mrgp.SpectralMixture(1, frequency=fixed([0.0]), bandwidth=[1 / (2 * np.pi * 0.8)])
    np.testing.assert_allclose(kernel(X, Z), mrgp.RBF(0.8)(X, Z), rtol=1e-12)


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


def test_dims_choose_the_inputs_of_polynomials_networks_and_waves():
    pair = {"dims": (2, 0)}
    assert_equals(
        mrgp.Polynomial(2, 0.3, weight_variance=ARD[:2], **pair),
        plain.only(plain.polynomial(2, 0.3, ARD[:2]), 2, 0),
    )
    rows = [row[:2] for row in FREQUENCY], [row[:2] for row in BANDWIDTH]
    assert_equals(
        mrgp.SpectralMixture(2, WEIGHTS, *rows, **pair),
        plain.only(plain.spectral_mixture(WEIGHTS, *rows), 2, 0),
    )
    assert_equals(
        mrgp.RationalQuadratic(ARD[:2], 0.4, **pair),
        plain.only(plain.rational_quadratic(ARD[:2], 0.4), 2, 0),
    )
    found = on_named_inputs(mrgp.ArcCosine(1, weight_variance=ARD[:2], origin=0.3, dims=("lat", 0)))
    centre = 0.5 * (X.min(0) + X.max(0))[[2, 0]]
    expected = plain.arc_cosine(1, 1.0, ARD[:2], origin=0.3 - centre)
    np.testing.assert_allclose(found[1:], plain.matrix(plain.only(expected, 2, 0), X, Z)[1:])


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
        (lambda: mrgp.RBF(positive([1.0] * 4)), r"lengthscale must be one number or 3.*\(4,\)"),
        (lambda: mrgp.RBF(-1.0), "RBF: lengthscale must be positive and finite; got -1.0"),
        (lambda: mrgp.Periodic(0.0), "Periodic: period must be positive and finite; got 0.0"),
        (lambda: mrgp.RationalQuadratic(1, 0.0), "RationalQuadratic: alpha must be positive and"),
        (lambda: mrgp.RationalQuadratic(1, positive([1.0, 2.0])), r"alpha must be one number; got"),
        (lambda: mrgp.Polynomial(0), "degree must be a whole number, at least 1; got 0"),
        (lambda: mrgp.Polynomial(2.0), "degree must be a whole number, at least 1; got 2.0"),
        (lambda: mrgp.Polynomial(2, -1.0), "Polynomial: offset must be finite and not negative"),
        (lambda: mrgp.Polynomial(2, None), "offset must be finite and not negative; got None"),
        (lambda: mrgp.Polynomial(2, fixed(-1.0)), "offset must not be negative; got -1.0"),
        (lambda: mrgp.Polynomial(2, (1.0, 2.0)), r"Polynomial: offset must be one number; got"),
        (lambda: mrgp.Polynomial(origin=[0.0, 1.0]), "Polynomial: origin must be one number or 3"),
        (lambda: mrgp.Linear(origin=fixed(1.0)), "Linear: origin is a plain number, or one for"),
        (lambda: mrgp.ArcCosine(3), "ArcCosine: order must be 0, 1 or 2; got 3"),
        (lambda: mrgp.ArcCosine(True), "ArcCosine: order must be 0, 1 or 2; got True"),
        (lambda: mrgp.ArcCosine(1, "two"), "ArcCosine: bias_variance must be finite and not neg"),
        (
            lambda: mrgp.ArcCosine(weight_variance=0.0),
            "weight_variance must be positive and finite",
        ),
        (lambda: mrgp.SpectralMixture(0), "components must be a whole number, at least 1; got 0"),
        (lambda: mrgp.SpectralMixture(2, [1.0, -1.0]), "weight must be positive and finite; got"),
        (
            lambda: mrgp.SpectralMixture(2, [1.0]),
            r"SpectralMixture: weight must be 2 numbers, one for each component; got shape \(1,\)",
        ),
        (
            lambda: mrgp.SpectralMixture(2, frequency=positive([[1.0], [2.0]])),
            r"frequency must be 2 numbers, one for each component, or a row of 3 for each; got",
        ),
        (lambda: mrgp.SpectralMixture(2, bandwidth=1.0), r"bandwidth must be 2 numbers.* \(\)"),
    ],
)
def test_wrong_recipes_say_what_is_wrong(recipe, text):
    with pytest.raises(ValueError, match=text):
        on_named_inputs(recipe())


def test_a_wrong_number_of_lengthscales_says_how_many_are_meant():
    with pytest.raises(ValueError, match="lengthscale must be one number or 3, one for each input"):
        on_named_inputs(mrgp.RBF([1.0] * 4))


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_period_given_as_a_parameter_must_be_positive_too(value):
    with pytest.raises(ValueError, match="period must be positive"):
        mrgp.Periodic(fixed(value))(X, Z)


OPEN = {
    "leaf": mrgp.Matern52(),
    "rational quadratic": mrgp.RationalQuadratic(),
    "spectral mixture": mrgp.SpectralMixture(3),
    "product with waves": mrgp.RBF() * mrgp.SpectralMixture(3),
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
        time, lon, lat = geometry.typical
        expected = [time, np.sqrt(lon * lat)]
        np.testing.assert_allclose(bound.lengthscale.value, expected, rtol=1e-12)
        np.testing.assert_allclose(bound.lengthscale.prior.median, expected, rtol=1e-12)
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
    "RationalQuadratic": mrgp.RationalQuadratic(0.5, 0.3),
    "RationalQuadratic product": mrgp.RationalQuadratic(0.5, 0.3, product=True),
    "SpectralMixture": mrgp.SpectralMixture(2, [1.0, 3.0], [[0.4, 0.2], [0.9, 1.1]], [0.2, 0.1]),
    "Polynomial": mrgp.Polynomial(3, 0.5, weight_variance=0.2, origin=0.3),
    "ArcCosine 0": mrgp.ArcCosine(0, weight_variance=[0.5, 1.0]),
    "ArcCosine 0 without bias": mrgp.ArcCosine(0, 0.0),
    "ArcCosine 1": mrgp.ArcCosine(1, 0.0),
    "ArcCosine 2": mrgp.ArcCosine(2, 0.3, origin=0.3),
    "White": mrgp.White(1.0),
    "composed": 2.0 * mrgp.RBF(0.8) * mrgp.Linear(0.5, 0.3) + mrgp.Matern12(0.4) + 0.5,
}


@pytest.mark.parametrize("name", LAWFUL)
@settings(max_examples=15, deadline=None)
@given(x=inputs)
@example(x=np.array([[2.0, 1.0], [2.0**-52, 0.0], [1.0, 0.0], [0.0, 0.0]]))
def test_every_matrix_is_symmetric_and_positive_semidefinite(name, x):
    matrix = LAWFUL[name](x)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-14)
    assert np.linalg.eigvalsh(matrix).min() >= -1e-10 * max(1.0, np.trace(matrix))


STILL = [name for name, kernel in LAWFUL.items() if mrgp.kernels.is_stationary(kernel)]


@pytest.mark.parametrize("name", STILL)
@settings(max_examples=10, deadline=None)
@given(x=inputs, shift=hnp.arrays(np.float64, (1, 2), elements=st.integers(-9, 9)))
def test_stationary_kernels_do_not_change_when_all_inputs_move(name, x, shift):
    kernel = LAWFUL[name]
    x = np.round(x, 3)
    moved = kernel(x * 1024.0 + shift) if name == "White" else kernel(x + shift)
    still = kernel(x * 1024.0) if name == "White" else kernel(x)
    np.testing.assert_allclose(moved, still, rtol=1e-10, atol=1e-12)
