"""Codes for missing values are refused, and values far from all others are named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mrgp
from mrgp.data import cautions_of, far_values, fill_values
from mrgp.data.doubts import stands_still

X = np.arange(20.0)[:, None]
Y = 20 + 5 * np.sin(X[:, 0])
QUICK = mrgp.LBFGS(max_steps=2, starts=1, candidates=0)


def observed(y, name="a", support=None):
    return mrgp.Observations(mrgp.points(X) if support is None else support, y, name=name)


def with_value(value, row=7):
    y = Y.copy()
    y[row] = value
    return y


@pytest.mark.parametrize(
    "value",
    [9.96921e36, np.float32(9.96921e36), 1e20, 1e36, -9.99e33, 3.4e38, 1e200, -9999, -999, -32767],
)
def test_fill_values_are_refused_with_their_rows(value):
    with pytest.raises(ValueError, match=r"y is .* in row 7, which looks like a fill value\. Use"):
        observed(with_value(value))
    assert fill_values(with_value(value)).nonzero()[0].tolist() == [7]


@pytest.mark.parametrize("code", [-99.0, -99.9, -99.99, np.float32(-99.99)])
def test_short_codes_are_refused_where_they_are_repeated(code):
    y = with_value(code)
    y[[3, 11]] = code
    with pytest.raises(ValueError, match=r"y is -99.* in rows 3, 7, 11, which looks like a fill"):
        observed(y)
    assert fill_values(y).nonzero()[0].tolist() == [3, 7, 11]
    assert fill_values(np.append(np.linspace(0, 150, 18), [code, code])).sum() == 2


def test_a_short_code_that_comes_once_is_named():
    data = mrgp.Dataset([observed(with_value(-99.99))])
    assert cautions_of(data) == (
        "source 'a', task 'value': y is -99.99 in row 7, apart from all others. If it stands for a"
        " missing value, give NaN.",
    )
    assert cautions_of(mrgp.Dataset([observed(Y)])) == ()


@pytest.mark.parametrize(
    "y",
    [
        np.tile([-9.9, 3.0, 12.5, -4.0], 5),
        np.tile([-9.9, 20.0], 10),
        np.tile([-99.0, -60.0, 40.0, 12.0], 5),
        np.tile([-99.0, -98.5, -100.2, -97.0], 5),
        np.tile([-99.99, -7.0, -120.0, -50.0], 5),
        np.array([-99.0, -99.0, 3.0]),
        np.append(np.linspace(0.0, 150.0, 19), -98.0),
        np.log(np.linspace(1e-40, 1.0, 20)),
    ],
    ids=["cold", "a cold one", "profits", "longitudes", "depths", "few", "no code", "logs"],
)
def test_negative_values_of_their_own_kind_are_no_codes(y):
    assert not fill_values(y).any()


@pytest.mark.parametrize(
    "y",
    [
        np.linspace(-12_000, 3000, 20),
        with_value(-9998),
        with_value(9999) * 1000,
        np.append(np.linspace(9000, 9998, 19), 9999.0),
        np.full(20, 1e22) * (1 + 0.1 * np.sin(X[:, 0])),
    ],
    ids=["within", "no code", "scaled", "the last of its like", "molecules"],
)
def test_values_that_belong_to_the_others_are_kept(y):
    observed(y)


@given(st.lists(st.floats(-1e3, 1e3), min_size=5, max_size=30), st.integers(0, 4))
def test_nothing_ordinary_is_a_fill_value(y, row):
    # Values of a width of 2000 reach beyond the codes of three digits only.
    values = np.array([*y, -1000.0, 1000.0])
    assert not fill_values(values).any()
    values[row] = 9.969209968386869e36
    assert fill_values(values)[row]


def test_values_a_thousand_spreads_apart_are_named():
    assert far_values(with_value(1e15)).nonzero()[0].tolist() == [7]
    assert not far_values(with_value(100)).any()
    assert not far_values(np.array([0.0, 0.0, 0.0, 0.0, 5.0])).any()
    zeros = np.zeros(20)
    zeros[[4, 9]] = 1e15
    assert far_values(zeros).nonzero()[0].tolist() == [4, 9]
    half = np.where(np.arange(20) % 2, 1e15, Y)
    half[3] = np.nan
    assert far_values(half).nonzero()[0].tolist() == [1, *range(5, 20, 2)]
    assert far_values(np.array([3.0, 3.0, 3.0, 3.0, 1e15])).nonzero()[0].tolist() == [4]
    data = mrgp.Dataset([observed(with_value(1e15))])
    with pytest.warns(UserWarning, match=r"'a', task 'value': y is 1e\+15 in row 7, over 1000"):
        mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK)


@pytest.mark.parametrize(
    "y",
    [
        np.where(X[:, 0] > 9, 1e3, 0.0),
        np.where(X[:, 0] > 5, 2e15 + 1e14 * X[:, 0], 0.0),
        1e9 + Y,
        np.append(np.zeros(19), 5e3),
        10.0 ** np.linspace(-3, 3, 20),
        np.exp(3 * np.random.default_rng(0).standard_normal(200)),
        np.full(20, 3.0),
        np.array([0.0, 0.0, 0.0, 0.0, np.nan]),
    ],
    ids=["a step", "columns", "a level", "a count", "decades", "skewed", "constant", "zeros"],
)
def test_values_of_wide_kinds_are_not_far(y):
    assert not far_values(y).any()


def test_sources_on_other_scales_are_named():
    slip = mrgp.Dataset([observed(Y), observed(1000 * Y, "b")])
    assert "'b' has values about 1e+03 times those of 'a'" in cautions_of(slip)[0]
    assert cautions_of(mrgp.Dataset([observed(Y), observed(3 * Y, "b")])) == ()
    # A small spread about another level is a bias, and no slip of units.
    assert cautions_of(mrgp.Dataset([observed(Y), observed(5000 + Y, "b")])) == ()
    other = mrgp.Observations(mrgp.points(X), 1000 * Y, name="b", task="other")
    assert cautions_of(mrgp.Dataset([observed(Y), other])) == ()
    doubled = mrgp.boxes(X, X + 1000, kind="sum")
    assert cautions_of(mrgp.Dataset([observed(Y), observed(1000 * Y, "b", doubled)])) == ()


def test_supports_that_cannot_inform_are_named():
    wide = mrgp.boxes(X * 1e9, X * 1e9 + 1e9)
    found = cautions_of(mrgp.Dataset([observed(Y), observed(Y, "b", wide)]))
    assert "'b' reaches over 2e+10 along x1, 'a' over 19" in found[0]
    near = mrgp.boxes(X - 50, X + 50)
    assert cautions_of(mrgp.Dataset([observed(Y), observed(Y, "b", near)])) == ()


def test_values_too_small_to_square_are_refused():
    with pytest.raises(ValueError, match=r"y is 2.5e-199 at most, .* Give it in smaller units\."):
        observed(Y * 1e-200)
    observed(0 * Y)
    observed(Y * 1e-90)


def test_a_part_of_values_that_were_accepted_is_accepted():
    whole = observed(np.append(np.linspace(0, 9000, 19), 9999.0))
    few = whole[[0, 1, 19]]
    assert few.y.tolist() == [0.0, 500.0, 9999.0]
    assert not few.y.flags.writeable
    assert len(few.support) == 3
    with pytest.raises(ValueError, match="there are no values"):
        whole[[]]


def network(y, **given):
    """Return hourly values of some places, one place after another."""
    places, hours = y.shape
    x = [[float(h), float(p)] for p in range(places) for h in range(hours)]
    support = mrgp.points(x, inputs=("hour", "east"))
    return mrgp.Observations(support, y.ravel(), name="sites", **given)


def test_a_sensor_that_is_stuck_is_named_with_its_place_and_hours():
    y = np.random.default_rng(0).normal(20.0, 3.0, (4, 48))
    assert cautions_of(mrgp.Dataset([network(y)])) == ()
    y[2, 10:34] = y[2, 10]
    (said,) = cautions_of(mrgp.Dataset([network(y)]))
    assert "source 'sites', task 'value': y is" in said
    assert "in 24 values in a row at east 2, from hour 10 to hour 33." in said
    shuffled = network(y)[np.random.default_rng(1).permutation(192)]
    assert cautions_of(mrgp.Dataset([shuffled])) == (said,)
    y[2, 20] = np.nan
    assert "in 23 values in a row" in cautions_of(mrgp.Dataset([network(y)]))[0]


def test_what_stays_by_rounding_by_a_limit_or_by_nature_is_not_stuck():
    rng = np.random.default_rng(0)
    rounded = np.round(rng.normal(5.0, 0.6, (4, 48)))
    assert cautions_of(mrgp.Dataset([network(rounded)])) == ()
    dry = np.maximum(rng.normal(0.0, 3.0, (4, 48)), 0.0)
    dry[1, 5:20] = 0.0
    assert cautions_of(mrgp.Dataset([network(dry)])) == ()
    limited = rng.normal(5.0, 3.0, (1, 48))
    limited[0, 5:20] = 1.0
    assert cautions_of(mrgp.Dataset([network(limited, limit=1.0)])) == ()
    assert cautions_of(mrgp.Dataset([network(np.zeros((2, 48)), likelihood="poisson")])) == ()
    assert cautions_of(mrgp.Dataset([network(np.full((2, 48), 7.0))])) == ()


def hourly(y):
    hours = mrgp.points(np.arange(float(len(y)))[:, None], inputs="time")
    return mrgp.Observations(hours, y, name="gauge")


def test_the_longest_of_two_runs_is_told_as_one():
    moving = np.sin(np.arange(30.0))
    y = np.concatenate([moving, np.full(9, 0.3), 2 + moving, np.full(14, 0.7), 3 + moving])
    assert "y is 0.7 in 14 values in a row, from time 69 to time 82" in stands_still(hourly(y))


def test_dry_days_are_no_stuck_gauge():
    rng = np.random.default_rng(2)
    wet = rng.random(400) < 0.3
    rain = np.where(wet, rng.gamma(1.0, 4.0, 400), 0.0)
    rain[150:190] = 0.0
    assert stands_still(hourly(rain)) is None
