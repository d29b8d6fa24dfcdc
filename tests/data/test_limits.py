"""Detection limits: what is refused, with which advice, and what takes the place of values."""

import numpy as np
import pytest

import mrgp

X = mrgp.points(np.arange(4.0)[:, None])


def test_values_at_or_beyond_a_limit_are_censored():
    o = mrgp.Observations(X, [3.0, 0.5, np.nan, 0.2], limit=0.5, upper_limit=3.0)
    np.testing.assert_array_equal(o.y, [3.0, 0.5, np.nan, 0.5])
    np.testing.assert_array_equal(o.censored, [1.0, -1.0, 0.0, -1.0])
    np.testing.assert_array_equal(o[1:].censored, [-1.0, 0.0, -1.0])
    assert not o.conjugate
    inside = mrgp.Observations(X, [3.0, 0.6, np.nan, 0.7], limit=0.5)
    assert inside.censored is None
    assert inside.conjugate


def test_values_above_the_limit_are_taken_and_the_limit_goes_along():
    limits = [0.1, 0.2, 0.3, 0.4]
    o = mrgp.Observations(X, [3.0, 0.5, np.nan, 0.7], limit=limits)
    np.testing.assert_array_equal(o.limit, limits)
    np.testing.assert_array_equal(o[1:].limit, limits[1:])
    np.testing.assert_array_equal(o.dropna().limit, [0.1, 0.2, 0.4])
    assert mrgp.Observations(X, np.ones(4)).limit is None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"upper_limit": np.inf}, "upper_limit must be one finite number or 4"),
        ({"limit": 2.0, "upper_limit": 1.0}, "limit must lie below upper_limit"),
        ({"limit": 2.0, "likelihood": "gamma"}, "'student_t' and 'log_normal'; got 'gamma'"),
    ],
)
def test_limits_that_make_no_sense(given, text):
    with pytest.raises(ValueError, match=f"source 's', task 'value': .*{text}"):
        mrgp.Observations(X, np.ones(4), name="s", **given)


@pytest.mark.parametrize("limit", [0.0, -1.0, np.nan, np.inf])
def test_a_limit_is_positive(limit):
    with pytest.raises(ValueError, match="source 's', task 'value': a detection limit must be"):
        mrgp.Observations(X, np.ones(4), limit=limit, name="s")


def test_limits_have_the_shape_of_the_values():
    with pytest.raises(ValueError, match=r"limit must be one number or 4, .* shape \(2,\)"):
        mrgp.Observations(X, np.ones(4), limit=[0.1, 0.2])


def test_half_the_limit_with_the_variance_of_a_uniform_value():
    y, noise = mrgp.below_limit([3.0, 0.5, np.nan, 0.2], [0.5, 0.5, 0.5, 0.8], 0.04)
    np.testing.assert_array_equal(y, [3.0, 0.25, np.nan, 0.4])
    np.testing.assert_allclose(noise, [0.04, 0.04 + 0.25 / 12, 0.04, 0.04 + 0.64 / 12])
    draws = np.random.default_rng(0).uniform(0, 0.8, 400_000)
    assert y[3] == pytest.approx(draws.mean(), abs=2e-3)
    assert noise[3] - 0.04 == pytest.approx(draws.var(), rel=0.01)
    each = mrgp.below_limit([3.0, 0.2], 0.5, [0.1, 0.2])[1]
    np.testing.assert_allclose(each, [0.1, 0.2 + 0.25 / 12])


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        (([1.0], 0.5, None), TypeError, "noise_variance= must be given, because .* fit.parameters"),
        (([1.0], 0.5, -1.0), ValueError, "one positive number or 1; got -1.0"),
        (([1.0], 0.0, 0.1), ValueError, "below_limit: a detection limit must be positive"),
        (([[1.0]], 0.5, 0.1), ValueError, r"y must have shape \[n\]; got \(1, 1\)"),
        ((["<0.5"], 0.5, 0.1), TypeError, "below_limit: y must be numbers"),
    ],
)
def test_errors_of_below_limit(arguments, kind, text):
    with pytest.raises(kind, match=text):
        mrgp.below_limit(*arguments)


def test_dropping_values_below_makes_predictions_too_high_and_half_the_limit_less_so():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 20, 150)[:, None]
    truth = lambda t: 1.2 + np.sin(t)  # noqa: E731
    y = np.maximum(truth(x[:, 0]) + 0.1 * rng.standard_normal(150), 0.0)
    limit = 0.8
    at = mrgp.points(np.linspace(0, 20, 200)[:, None])
    bias = {}
    for name in ("dropped", "half"):
        if name == "dropped":
            given = {"y": np.where(y > limit, y, np.nan), "noise_variance": 0.01}
        else:
            given = dict(
                zip(("y", "noise_variance"), mrgp.below_limit(y, limit, 0.01), strict=True)
            )
        data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), **given)])
        error = mrgp.predict(mrgp.fit(mrgp.MRGP(), data), at).mean - truth(at.x[:, 0])
        low = truth(at.x[:, 0]) < limit
        bias[name] = error[low].mean()
    assert bias["dropped"] > 0.2
    assert abs(bias["half"]) < 0.3 * bias["dropped"]
