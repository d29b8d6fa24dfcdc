"""Transforms, priors, and the trees that hold parameters."""

import equinox as eqx
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings

import mrgp
from mrgp.parameters import (
    FURTHEST,
    Parameter,
    at_limit,
    bounded,
    fixed,
    is_parameter,
    limits,
    log_prior,
    lower_triangular,
    parameters,
    partition,
    positive,
    real,
    unwrap,
)

TRIANGLE = np.array([[1.5, 0.0, 0.0], [-0.3, 0.2, 0.0], [2.0, -1.0, 3.0]])
EXAMPLES = {
    "positive": positive([0.1, 2.0, 30.0]),
    "positive with floor and scale": positive([0.3, 2.0], floor=0.1, scale=5.0),
    "bounded": bounded([0.1, 0.5, 0.99], 0.0, 1.0),
    "bounded elsewhere": bounded([-2.5, 4.0], -3.0, 7.0),
    "real": real([-2.0, 0.0, 5.0], scale=3.0),
    "lower triangular": lower_triangular(TRIANGLE),
    "fixed": fixed([1.0, -2.0]),
    "one number": positive(2.5),
}
VALUES = {
    "positive": [0.1, 2.0, 30.0],
    "positive with floor and scale": [0.3, 2.0],
    "bounded": [0.1, 0.5, 0.99],
    "bounded elsewhere": [-2.5, 4.0],
    "real": [-2.0, 0.0, 5.0],
    "lower triangular": TRIANGLE,
    "fixed": [1.0, -2.0],
    "one number": 2.5,
}
each_example = pytest.mark.parametrize("name", EXAMPLES)


@each_example
def test_the_value_is_what_was_given(name):
    with jax.enable_x64(True):
        np.testing.assert_allclose(EXAMPLES[name].value, VALUES[name], rtol=1e-14, atol=1e-15)


@each_example
def test_only_fixed_parameters_are_not_trained(name):
    assert EXAMPLES[name].trainable == (name != "fixed")


def test_raw_coordinates_are_logs_relative_to_the_scale():
    np.testing.assert_array_equal(positive([0.1, 2.0]).raw, [0.0, 0.0])
    np.testing.assert_allclose(positive(2.0, scale=0.5).raw, np.log(4.0))
    np.testing.assert_allclose(positive(2.0, floor=1.0, scale=0.5).raw, np.log(2.0))
    np.testing.assert_allclose(bounded(0.25, 0.0, 1.0).raw, np.log(1 / 3))
    np.testing.assert_array_equal(real([3.0, 4.0], scale=2.0).raw, [0.0, 0.0])


def _flat(parameter, raw):
    """Return the free entries of a parameter's value at other raw coordinates."""
    value = parameter.transform.forward(raw)
    if value.ndim == 2:
        return value[np.tril_indices(len(value))]
    return jnp.ravel(value)


@each_example
def test_log_jacobian_is_the_log_determinant_of_the_derivative(name):
    parameter = EXAMPLES[name]
    with jax.enable_x64(True):
        raw = jnp.asarray(np.random.default_rng(1).normal(size=np.shape(parameter.raw)))
        matrix = np.atleast_2d(jax.jacfwd(lambda r: _flat(parameter, r))(raw))
        matrix = matrix.reshape(raw.size, raw.size)
        expected = np.linalg.slogdet(matrix)[1]
        found = jnp.sum(parameter.transform.log_jacobian(raw))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


positives = hnp.arrays(np.float64, 3, elements=st.floats(1e-6, 1e6))


@settings(max_examples=40, deadline=None)
@given(values=positives, floor=st.floats(0, 1e-7), scale=st.floats(1e-4, 1e4))
def test_positive_round_trips(values, floor, scale):
    with jax.enable_x64(True):
        again = positive(values, floor=floor, scale=scale)
        np.testing.assert_allclose(again.value, values, rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    share=hnp.arrays(np.float64, 3, elements=st.floats(1e-6, 1 - 1e-6)),
    low=st.floats(-100, 100),
    width=st.floats(0.01, 100),
)
def test_bounded_round_trips_and_stays_inside(share, low, width):
    values = np.clip(low + share * width, np.nextafter(low, np.inf), None)
    values = np.minimum(values, np.nextafter(low + width, -np.inf))
    with jax.enable_x64(True):
        again = bounded(values, low, low + width)
        np.testing.assert_allclose(again.value, values, rtol=1e-9, atol=1e-12 * (1 + abs(low)))
        far = again.transform.forward(jnp.asarray([-15.0, 0.0, 15.0]))
        assert (np.asarray(far) >= low).all()
        assert (np.asarray(far) <= low + width).all()


@settings(max_examples=30, deadline=None)
@given(hnp.arrays(np.float64, (3, 3), elements=st.floats(-5, 5)))
def test_lower_triangular_round_trips(matrix):
    matrix = np.tril(matrix, -1) + np.diag(np.exp(np.diag(matrix)))
    with jax.enable_x64(True):
        np.testing.assert_allclose(lower_triangular(matrix).value, matrix, rtol=1e-13)


PRIORS = {
    "LogNormal": (mrgp.LogNormal(2.0, 0.7), scipy.stats.lognorm(s=0.7, scale=2.0)),
    "Gamma": (mrgp.Gamma(3.0, 0.5), scipy.stats.gamma(3.0, scale=2.0)),
    "InverseGamma": (mrgp.InverseGamma(3.0, 0.5), scipy.stats.invgamma(3.0, scale=0.5)),
    "HalfNormal": (mrgp.HalfNormal(1.5), scipy.stats.halfnorm(scale=1.5)),
}
each_prior = pytest.mark.parametrize("name", PRIORS)


@each_prior
def test_prior_density_is_scipys(name):
    prior, expected = PRIORS[name]
    values = np.array([1e-3, 0.1, 0.9, 2.0, 15.0])
    with jax.enable_x64(True):
        found = prior.log_density(values)
    np.testing.assert_allclose(found, expected.logpdf(values), rtol=1e-12, atol=1e-12)


@each_prior
def test_log_prior_of_a_parameter_includes_the_jacobian(name):
    prior, expected = PRIORS[name]
    with jax.enable_x64(True):
        one = positive([0.5, 2.0], prior, floor=0.1, scale=3.0)
        jacobian = np.log(np.array([0.5, 2.0]) - 0.1)
        density = expected.logpdf([0.5, 2.0])
        np.testing.assert_allclose(one.log_prior(), (density + jacobian).sum(), rtol=1e-12)


@each_prior
def test_prior_in_raw_coordinates_integrates_to_one(name):
    prior, _ = PRIORS[name]
    with jax.enable_x64(True):
        start = positive(1.0, prior)
        raws = jnp.linspace(-30.0, 8.0, 40001)
        logs = prior.log_density(start.transform.forward(raws)) + start.transform.log_jacobian(raws)
        area = np.trapezoid(np.exp(np.asarray(logs)), np.asarray(raws))
    np.testing.assert_allclose(area, 1.0, rtol=1e-6)


def test_bounded_parameters_take_priors():
    with jax.enable_x64(True):
        parameter = bounded(0.25, 0.0, 1.0, mrgp.Gamma(3.0, 0.5))
        density = scipy.stats.gamma(3.0, scale=2.0).logpdf(0.25)
        np.testing.assert_allclose(parameter.log_prior(), density + np.log(0.25 * 0.75))


class Tree(eqx.Module):
    """A small model: parameters at several depths, and other leaves."""

    scale: Parameter
    period: Parameter
    inner: dict
    array: np.ndarray
    label: str = eqx.field(static=True)


def tree():
    return Tree(
        scale=positive([1.0, 2.0], mrgp.LogNormal(1.0, 1.0)),
        period=fixed(24.0),
        inner={"a": bounded(0.5, 0.0, 1.0), "b": [lower_triangular(TRIANGLE), 7.0]},
        array=np.arange(3.0),
        label="x",
    )


def test_unwrap_replaces_parameters_at_any_depth_by_values():
    with jax.enable_x64(True):
        bare = unwrap(tree())
        np.testing.assert_allclose(bare.scale, [1.0, 2.0])
        np.testing.assert_allclose(bare.period, 24.0)
        np.testing.assert_allclose(bare.inner["a"], 0.5)
        np.testing.assert_allclose(bare.inner["b"][0], TRIANGLE)
    assert bare.inner["b"][1] == 7.0
    np.testing.assert_array_equal(bare.array, np.arange(3.0))
    assert not any(is_parameter(leaf) for leaf in jax.tree.leaves(bare, is_leaf=is_parameter))


def test_parameters_are_listed_in_order():
    found = parameters(tree())
    assert [np.shape(p.raw) for p in found] == [(2,), (), (), (6,)]
    assert [p.trainable for p in found] == [True, False, True, True]


def test_partition_takes_trained_raw_arrays_only_and_combine_brings_them_back():
    whole = tree()
    trained, frozen = partition(whole)
    assert [np.shape(leaf) for leaf in jax.tree.leaves(trained)] == [(2,), (), (6,)]
    joined = eqx.combine(trained, frozen)
    assert eqx.tree_equal(joined, whole)
    assert joined.label == "x"


def test_changing_the_trained_part_changes_the_values():
    trained, frozen = partition(tree())
    with jax.enable_x64(True):
        moved = jax.tree.map(lambda raw: jnp.asarray(raw) + 1.0, trained)
        bare = unwrap(eqx.combine(moved, frozen))
        np.testing.assert_allclose(bare.scale, np.e * np.array([1.0, 2.0]))
        np.testing.assert_allclose(bare.inner["a"], np.e / (1 + np.e))
        np.testing.assert_allclose(bare.period, 24.0)


def test_limits_list_the_bounds_of_every_trained_raw_coordinate():
    low, high = limits(tree())
    assert len(low) == len(high) == 2 + 1 + 6
    np.testing.assert_array_equal(low, [-FURTHEST] * 3 + [-np.inf] * 6)
    np.testing.assert_array_equal(high, [FURTHEST] * 3 + [np.inf] * 6)
    assert [bound.tolist() for bound in limits(real(1.0))] == [[-np.inf], [np.inf]]
    assert [bound.tolist() for bound in limits(fixed(1.0))] == [[], []]


def test_a_ceiling_limits_the_value_of_a_positive_parameter():
    parameter = positive([1.0, 2.0], floor=0.5, scale=3.0, ceiling=10.0)
    _, high = limits(parameter)
    with jax.enable_x64(True):
        np.testing.assert_allclose(parameter.transform.forward(jnp.asarray(high)), [10.0, 10.0])


def test_a_parameter_tells_whether_it_ended_at_its_limit():
    free = positive(2.0, ceiling=10.0)
    assert not at_limit(free)
    for raw in (-FURTHEST, np.log(5.0)):
        assert at_limit(eqx.tree_at(lambda p: p.raw, free, np.asarray(raw)))


def test_log_prior_of_a_tree_sums_its_parameters():
    with jax.enable_x64(True):
        found = log_prior(tree())
        densities = scipy.stats.lognorm(s=1.0, scale=1.0).logpdf([1.0, 2.0]) + np.log([1.0, 2.0])
        np.testing.assert_allclose(found, densities.sum(), rtol=1e-12)
        assert float(log_prior({"a": fixed(1.0), "b": 3})) == 0.0


def test_a_parameter_that_is_not_trained_has_no_prior():
    kept = eqx.tree_at(lambda p: p.raw, positive(2.0, mrgp.HalfNormal(1.0)), np.zeros(()))
    frozen = Parameter(kept.raw, kept.transform, kept.prior, trainable=False)
    with jax.enable_x64(True):
        assert float(kept.log_prior()) != 0.0
        assert float(frozen.log_prior()) == 0.0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: positive(0.0), "A positive parameter must exceed 0.0; got 0.0"),
        (lambda: positive([1.0, -1.0]), r"must exceed 0.0; got \[ 1. -1.\]"),
        (lambda: positive(0.5, floor=0.5), "must exceed 0.5; got 0.5"),
        (lambda: positive(np.nan), "A parameter must be finite; got nan"),
        (lambda: fixed([1.0, np.inf]), r"A parameter must be finite; got \[1.0, inf\]"),
        (lambda: bounded(1.0, 0.0, 1.0), "needs low < value < high; got 0.0, 1.0, 1.0"),
        (lambda: bounded(0.5, 1.0, 0.0), "needs low < value < high; got 1.0, 0.5, 0.0"),
        (lambda: lower_triangular([1.0, 2.0]), r"takes a square matrix; got shape \(2,\)"),
        (lambda: lower_triangular(np.ones((2, 3))), r"takes a square matrix; got shape \(2, 3\)"),
        (lambda: lower_triangular(np.ones((2, 2))), "takes zeros above a positive diagonal"),
        (lambda: lower_triangular(-np.eye(2)), "takes zeros above a positive diagonal"),
        (lambda: mrgp.LogNormal(0.0, 1.0), "must be positive and finite; got 0"),
        (lambda: mrgp.LogNormal(1, -1), "must be positive and finite; got -1"),
        (lambda: mrgp.Gamma(1.0, np.inf), "must be positive and finite; got inf"),
        (lambda: mrgp.InverseGamma(-1, 1), "must be positive and finite"),
        (lambda: mrgp.HalfNormal(0), "must be positive and finite; got 0"),
    ],
)
def test_wrong_values_are_refused_in_words(make, text):
    with pytest.raises(ValueError, match=text):
        make()
