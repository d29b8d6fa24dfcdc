"""Scores against slow references: integrals, loops and counts."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings

import mrgp
from mrgp.evaluation import crps, pit

RNG = np.random.default_rng(4)
WEIGHTS = np.array([[0.2, 0.5, 1.0, 0.7], [0.5, 0.5, 0.0, 0.1], [0.3, 0.0, 0.0, 0.2]])
MEANS = RNG.normal(size=(3, 4)) * 2 + 5
VARIANCES = RNG.uniform(0.1, 2.0, (3, 4))
Y = np.array([4.0, 6.5, 3.0, 5.5])


def prediction(weights=WEIGHTS, means=MEANS, variances=VARIANCES):
    weights, means, variances = (np.array(v, float) for v in (weights, means, variances))
    support = mrgp.points(np.arange(float(means.shape[1]))[:, None])
    return mrgp.Prediction(support, "no2", None, None, weights, means, variances)


def gaussian(means, variances):
    return prediction(np.ones((1, len(means))), [means], [variances])


def component_cdf(t, w, m, v):
    return sum(a * scipy.stats.norm.cdf(t, b, np.sqrt(c)) for a, b, c in zip(w, m, v, strict=True))


def integrated_crps(y, w, m, v):
    """Integrate (F(t) - 1{t >= y})^2, splitting the line at y."""
    below, above = np.linspace(y - 40, y, 40_001), np.linspace(y, y + 40, 40_001)
    left = np.trapezoid(component_cdf(below, w, m, v) ** 2, below)
    right = np.trapezoid((1 - component_cdf(above, w, m, v)) ** 2, above)
    return left + right


def test_crps_of_a_mixture_is_the_integral_of_the_squared_cdf_error():
    expected = [
        integrated_crps(Y[n], WEIGHTS[:, n], MEANS[:, n], VARIANCES[:, n]) for n in range(4)
    ]
    np.testing.assert_allclose(crps(prediction(), Y), expected, rtol=1e-6)
    np.testing.assert_allclose(mrgp.evaluate(prediction(), Y)["crps"], np.mean(expected), rtol=1e-6)


def test_crps_of_a_gaussian_is_the_known_closed_form():
    mean, sd = np.array([0.0, 1.0, -3.0]), np.array([1.0, 0.2, 5.0])
    y = np.array([0.3, 2.0, 4.0])
    z = (y - mean) / sd
    norm = scipy.stats.norm
    expected = sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    np.testing.assert_allclose(crps(gaussian(mean, sd**2), y), expected, rtol=1e-12)


def test_splitting_a_component_in_two_changes_no_score():
    whole = gaussian(MEANS[0], VARIANCES[0])
    halves = prediction(
        np.full((2, 4), 0.5), np.stack([MEANS[0]] * 2), np.stack([VARIANCES[0]] * 2)
    )
    a, b = mrgp.evaluate(whole, Y), mrgp.evaluate(halves, Y)
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-9, err_msg=name)


def test_nlpd_is_the_mean_negative_log_of_the_mixture_density():
    total = 0.0
    for n in range(4):
        f = sum(
            w * scipy.stats.norm.pdf(Y[n], m, np.sqrt(v))
            for w, m, v in zip(WEIGHTS[:, n], MEANS[:, n], VARIANCES[:, n], strict=True)
        )
        total -= np.log(f)
    np.testing.assert_allclose(mrgp.evaluate(prediction(), Y)["nlpd"], total / 4, rtol=1e-12)


def test_errors_are_those_of_the_mean():
    mean = [sum(w * m for w, m in zip(WEIGHTS[:, n], MEANS[:, n], strict=True)) for n in range(4)]
    error = np.array(mean) - Y
    scores = mrgp.evaluate(prediction(), Y)
    np.testing.assert_allclose(scores["mse"], np.mean(error**2))
    np.testing.assert_allclose(scores["rmse"], np.sqrt(np.mean(error**2)))
    np.testing.assert_allclose(scores["mae"], np.mean(np.abs(error)))
    np.testing.assert_allclose(scores["mape"], np.mean(np.abs(error) / Y))


@pytest.mark.parametrize("level", [50, 80, 95])
def test_coverage_and_width_count_central_intervals(level):
    rng = np.random.default_rng(9)
    mean, sd = rng.normal(size=300) + 10, rng.uniform(0.5, 2, 300)
    y = mean + sd * rng.normal(size=300)
    half = scipy.stats.norm.ppf(0.5 + level / 200) * sd
    inside = sum(m - h <= v <= m + h for m, h, v in zip(mean, half, y, strict=True))
    scores = mrgp.evaluate(gaussian(mean, sd**2), y)
    assert scores[f"coverage_{level}"] == inside / 300
    assert abs(inside / 300 - level / 100) < 0.1
    np.testing.assert_allclose(scores[f"width_{level}"], np.mean(2 * half), rtol=1e-12)


def test_pit_is_the_cdf_at_the_value():
    expected = [component_cdf(Y[n], WEIGHTS[:, n], MEANS[:, n], VARIANCES[:, n]) for n in range(4)]
    np.testing.assert_allclose(pit(prediction(), Y), expected, rtol=1e-12)


@pytest.mark.parametrize("components", [1, 3])
def test_missing_values_are_left_out_and_counted(components):
    y, kept = np.array([4.0, np.nan, 3.0, np.nan]), [0, 2]
    weights = WEIGHTS[:components] / WEIGHTS[:components].sum(0)
    parts = (weights, MEANS[:components], VARIANCES[:components])
    scores = mrgp.evaluate(prediction(*parts), y)
    expected = mrgp.evaluate(prediction(*(part[:, kept] for part in parts)), y[kept])
    assert (scores.pop("n"), scores.pop("missing")) == (2, 2)
    assert (expected.pop("n"), expected.pop("missing")) == (2, 0)
    assert scores == pytest.approx(expected, rel=1e-12)


def test_the_names_of_the_scores():
    assert list(mrgp.evaluate(prediction(), Y)) == [
        "rmse",
        "mse",
        "mae",
        "mape",
        "nlpd",
        "crps",
        "coverage_50",
        "width_50",
        "coverage_80",
        "width_80",
        "coverage_95",
        "width_95",
        "n",
        "missing",
    ]


def test_nobody_is_warned_of_a_mape_that_they_did_not_ask_for(recwarn):
    y = np.array([1e-5, 2.0, 3.0, 4.0])
    scores = mrgp.evaluate(gaussian(y + 0.5, np.ones(4)), y)
    assert not recwarn.list
    np.testing.assert_allclose(scores["mape"], np.mean(0.5 / y))


def test_mape_at_zero_is_infinite_without_touching_the_rest():
    y = np.array([0.0, 2.0, 3.0, 4.0])
    scores = mrgp.evaluate(gaussian(y + 0.5, np.ones(4)), y)
    assert scores["mape"] == np.inf
    np.testing.assert_allclose(scores["mae"], 0.5)


def test_a_certain_prediction_has_the_absolute_error_as_crps():
    # A posterior variance can be exactly zero, for gp.Posterior.moments clips it there.
    found = crps(gaussian([1.0, 2.0], [0.0, 0.0]), [1.5, 2.0])
    np.testing.assert_allclose(found, [0.5, 0.0], atol=1e-15)


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (Y[:3], r"evaluate: y must have shape \(4,\), one value for each region .*got \(3,\)"),
        (Y[:, None], r"evaluate: y must have shape \(4,\).*got \(4, 1\)"),
        (1.0, r"evaluate: y must have shape \(4,\).*got \(\)"),
        (np.array([1.0, np.inf, 2.0, 3.0]), "evaluate: y has infinite values; use NaN for missing"),
        (np.full(4, np.nan), r"evaluate: all values of y are missing \(NaN\)"),
    ],
)
def test_wrong_values_are_refused_in_words(y, text):
    with pytest.raises(ValueError, match=text):
        mrgp.evaluate(prediction(), y)


numbers = st.floats(-10, 10)


@settings(max_examples=40, deadline=None)
@given(mean=numbers, sd=st.floats(0.05, 5), y=numbers, shift=numbers, factor=st.floats(0.1, 10))
def test_crps_scales_with_the_units_and_does_not_move(mean, sd, y, shift, factor):
    here = crps(gaussian([mean], [sd**2]), [y])
    there = crps(gaussian([factor * (mean + shift)], [(factor * sd) ** 2]), [factor * (y + shift)])
    np.testing.assert_allclose(there, factor * here, rtol=1e-7, atol=1e-9)
    assert here >= 0


@settings(max_examples=30, deadline=None)
@given(mean=st.floats(-2, 2), sd=st.floats(0.2, 5))
def test_crps_and_nlpd_are_proper(mean, sd):
    """The true distribution scores best on average over its own quantiles."""
    y = scipy.stats.norm.ppf((np.arange(400) + 0.5) / 400)
    truth, other = gaussian(0 * y, 0 * y + 1), gaussian(0 * y + mean, 0 * y + sd**2)
    assert crps(truth, y).mean() <= crps(other, y).mean() + 1e-4
    assert -truth.log_density(y).mean() <= -other.log_density(y).mean() + 3e-3
