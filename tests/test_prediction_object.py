"""A `Prediction` made by hand: moments, probabilities, quantiles and samples of mixtures."""

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings

import mrgp

WEIGHTS = np.array([[0.2, 0.5, 1.0], [0.5, 0.5, 0.0], [0.3, 0.0, 0.0]])
MEANS = np.array([[-1.0, 0.0, 5.0], [0.5, 3.0, 9.0], [4.0, 7.0, 9.0]])
VARIANCES = np.array([[0.25, 1.0, 4.0], [1.0, 0.01, 1.0], [0.04, 1.0, 1.0]])


def prediction(weights=WEIGHTS, means=MEANS, variances=VARIANCES, **changes):
    weights, means, variances = (np.array(v, float) for v in (weights, means, variances))
    support = mrgp.points(np.arange(float(means.shape[1]))[:, None])
    given = {"support": support, "task": "no2", "source": None, "units": None}
    return mrgp.Prediction(
        **(given | {"component_weights": weights, "means": means, "variances": variances} | changes)
    )


def gaussian(means, variances, **changes):
    return prediction(np.ones((1, len(means))), [means], [variances], **changes)


def density(t, n, weights=WEIGHTS, means=MEANS, variances=VARIANCES):
    """Return the density of region n at t, component by component."""
    total = 0.0
    for w, m, v in zip(weights[:, n], means[:, n], variances[:, n], strict=True):
        total = total + w * np.exp(-0.5 * (t - m) ** 2 / v) / np.sqrt(2 * np.pi * v)
    return total


GRID = np.linspace(-15, 25, 200_001)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_moments_are_integrals_of_the_density(n):
    p, f = prediction(), density(GRID, n)
    mean = np.trapezoid(GRID * f, GRID)
    variance = np.trapezoid((GRID - mean) ** 2 * f, GRID)
    np.testing.assert_allclose(p.mean[n], mean, rtol=1e-8)
    np.testing.assert_allclose(p.variance[n], variance, rtol=1e-8)
    np.testing.assert_allclose(p.std[n], np.sqrt(variance), rtol=1e-8)


@pytest.mark.parametrize("t", [-1.0, 0.7, 3.0, 8.0])
def test_cdf_exceedance_and_density_agree_with_the_density(t):
    p, below = prediction(), np.linspace(-15, t, 100_001)
    for n in range(3):
        area = np.trapezoid(density(below, n), below)
        np.testing.assert_allclose(p.cdf(t)[n], area, atol=1e-6)
        np.testing.assert_allclose(p.exceedance(t)[n], 1 - area, atol=1e-6)
        np.testing.assert_allclose(p.log_density(t)[n], np.log(density(t, n)), rtol=1e-12)


def test_one_value_for_each_region():
    p, t = prediction(), np.array([0.0, 3.0, 6.0])
    for function in (p.cdf, p.exceedance, p.log_density):
        each = [function(value)[n] for n, value in enumerate(t)]
        np.testing.assert_array_equal(function(t), each)


def test_tails_keep_their_digits():
    p = gaussian([0.0], [1.0])
    np.testing.assert_allclose(p.exceedance(10.0), [scipy.stats.norm.sf(10.0)], rtol=1e-12)
    np.testing.assert_allclose(p.cdf(-10.0), [scipy.stats.norm.cdf(-10.0)], rtol=1e-12)
    np.testing.assert_allclose(p.log_density(50.0), [scipy.stats.norm.logpdf(50.0)], rtol=1e-12)


probabilities = st.floats(1e-4, 1 - 1e-4)


@settings(max_examples=60, deadline=None)
@given(
    raw=st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
    means=st.lists(st.floats(-10, 10), min_size=3, max_size=3),
    sds=st.lists(st.floats(0.1, 5), min_size=3, max_size=3),
    q=probabilities,
)
def test_quantiles_invert_the_cdf(raw, means, sds, q):
    weights = np.array(raw) / np.sum(raw)
    p = prediction(*(np.array(v)[:, None] for v in (weights, means, np.array(sds) ** 2)))
    np.testing.assert_allclose(p.cdf(p.quantile(q)), [q], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("q", [0.001, 0.3, 0.5, 0.999])
def test_quantiles_of_a_gaussian_are_closed_form(q):
    p = gaussian([1.0, -2.0], [4.0, 0.25])
    expected = scipy.stats.norm([1.0, -2.0], [2.0, 0.5]).ppf(q)
    np.testing.assert_allclose(p.quantile(q), expected, rtol=1e-12)


def test_quantiles_grow_with_the_probability():
    values = [prediction().quantile(q) for q in (0.01, 0.1, 0.4, 0.5, 0.9, 0.99)]
    assert (np.diff(values, axis=0) > 0).all()


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_central_intervals_hold_their_probability_with_equal_tails(level):
    p = prediction()
    low, high = p.interval(level)
    np.testing.assert_allclose(p.cdf(high) - p.cdf(low), np.full(3, level), rtol=1e-8)
    np.testing.assert_allclose(p.cdf(low), p.exceedance(high), rtol=1e-8)


def test_the_default_interval_is_95_percent():
    np.testing.assert_array_equal(prediction().interval(), prediction().interval(0.95))


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_impossible_probabilities_are_refused(q):
    with pytest.raises(ValueError, match=r"quantile: q must be one number between 0 and 1; got"):
        prediction().quantile(q)
    with pytest.raises(
        ValueError, match=r"interval: the level must be one number between 0 and 1; got"
    ):
        prediction().interval(q)


def test_samples_of_a_mixture_have_its_distribution():
    p = prediction()
    draws = p.sample(1, 40_000)
    assert draws.shape == (40_000, 3)
    error = p.std / np.sqrt(len(draws))
    assert (np.abs(draws.mean(0) - p.mean) < 5 * error).all()
    np.testing.assert_allclose(draws.var(0), p.variance, rtol=0.05)
    for n in range(3):
        distance = scipy.stats.kstest(draws[:, n], lambda t, n=n: cdf_of(p, t, n)).statistic
        assert distance < 2.0 / np.sqrt(len(draws))


def cdf_of(p, t, n):
    scaled = (t[:, None] - p.means[:, n]) / np.sqrt(p.variances[:, n])
    return (p.component_weights[:, n] * scipy.stats.norm.cdf(scaled)).sum(1)


def test_samples_are_independent_between_regions_without_a_covariance():
    draws = gaussian([0.0, 0.0], [1.0, 1.0]).sample(2, 40_000)
    assert abs(np.corrcoef(draws.T)[0, 1]) < 0.02


def test_samples_are_joint_with_a_covariance():
    root = np.random.default_rng(0).normal(size=(3, 3))
    covariance = root @ root.T
    p = gaussian([1.0, 2.0, 3.0], np.diag(covariance), covariance=covariance)
    draws = p.sample(3, 60_000)
    assert (np.abs(draws.mean(0) - [1, 2, 3]) < 5 * p.std / np.sqrt(len(draws))).all()
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.05 * np.trace(covariance))


def test_samples_of_a_singular_covariance_move_together():
    p = gaussian([0.0, 0.0], [1.0, 4.0], covariance=np.array([[1.0, 2.0], [2.0, 4.0]]))
    draws = p.sample(0, 100)
    np.testing.assert_allclose(draws[:, 1], 2 * draws[:, 0], atol=1e-6)


def test_samples_depend_on_the_key_alone():
    p = prediction()
    np.testing.assert_array_equal(p.sample(5, 4), p.sample(5, 4))
    np.testing.assert_array_equal(p.sample(5, 4), p.sample(jax.random.key(5), 4))
    assert not np.array_equal(p.sample(5, 4), p.sample(6, 4))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "Prediction(no2, 2 regions: mean 1 to 3, sd 0.5 to 2)"),
        ({"units": "K"}, "Prediction(no2, 2 regions: mean 1 to 3 K, sd 0.5 to 2 K)"),
        ({"source": "sat"}, "Prediction(no2 as sat reports it, 2 regions: mean 1 to 3, sd 0.5 to"),
    ],
)
def test_repr_tells_what_and_how_far(changes, text):
    assert repr(gaussian([1.0, 3.0], [0.25, 4.0], **changes)).startswith(text)


def test_repr_of_no_regions():
    assert repr(gaussian([], [])) == "Prediction(no2, no regions)"


def some_regions():
    one = np.ones((2, 4)) / 2
    means, variances = np.arange(8.0).reshape(2, 4), 1.0 + np.arange(8.0).reshape(2, 4)
    support = mrgp.points(np.arange(4.0)[:, None])
    expert = mrgp.Prediction(support, "no2", None, None, one, means, variances)
    return mrgp.Prediction(
        support,
        "no2",
        "sites",
        "ppb",
        one,
        means,
        variances,
        covariance=np.arange(16.0).reshape(4, 4),
        experts={"sites": expert},
        weights={"sites": np.array([0.1, 0.2, 0.3, 0.4])},
    )


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        (slice(1, 3), [1, 2]),
        (np.array([True, False, False, True]), [0, 3]),
        (np.array([2, 0]), [2, 0]),
        (-1, [3]),
    ],
)
def test_some_regions_of_a_prediction_are_a_prediction(rows, chosen):
    whole = some_regions()
    part = whole[rows]
    assert (part.task, part.source, part.units, len(part)) == ("no2", "sites", "ppb", len(chosen))
    np.testing.assert_array_equal(part.support.x, whole.support.x[chosen])
    np.testing.assert_array_equal(part.mean, whole.mean[chosen])
    np.testing.assert_array_equal(part.quantile(0.9), whole.quantile(0.9)[chosen])
    np.testing.assert_array_equal(part.covariance, whole.covariance[np.ix_(chosen, chosen)])
    np.testing.assert_array_equal(part.experts["sites"].std, whole.experts["sites"].std[chosen])
    np.testing.assert_array_equal(part.weights["sites"], whole.weights["sites"][chosen])


def test_a_region_that_is_not_there_is_an_error():
    with pytest.raises(IndexError):
        some_regions()[4]
