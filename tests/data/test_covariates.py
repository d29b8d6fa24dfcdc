"""Covariates of a dataset: the same fields, in the same numbers, for every source."""

import numpy as np
import pandas as pd
import pytest

import mrgp

pytestmark = pytest.mark.usefixtures("as_users_see_it")


def height(x):
    return x[:, 0] ** 2


def source(support, name):
    return mrgp.Observations(support, np.arange(len(support), dtype=float), name=name)


def test_fields_are_compared_and_not_only_their_names():
    places = mrgp.points([[0.0], [1.0]])
    first = source(places.with_covariates(height, "height"), "a")
    same = source(places.with_covariates(height, "height"), "b")
    assert mrgp.Dataset([first, same]).inputs == ("x1", "height")
    other = source(places.with_covariates(lambda x: x[:, 0], "height"), "b")
    with pytest.raises(ValueError, match=r"has height from other fields. Add them to all sources"):
        mrgp.Dataset([first, other])


def test_a_function_of_other_units_is_refused():
    frame = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=3, freq="h")})
    hours = mrgp.from_frame(frame, "time").with_covariates(height, "c")
    days = mrgp.from_frame(frame, "time", time_unit="D").with_covariates(height, "c")
    with pytest.raises(
        ValueError, match="source 'b', task 'value': its covariates come from a fun"
    ):
        mrgp.Dataset([source(hours, "a"), source(days, "b")])
    bare = [source(mrgp.from_frame(frame, "time", time_unit=u), u) for u in ("h", "D")]
    joined = mrgp.Dataset(bare).with_covariates(height, "c")
    np.testing.assert_allclose(joined["h"].support.x, joined["D"].support.x)


def test_prediction_refuses_covariates_of_another_field():
    places = mrgp.points([[0.0], [1.0], [2.0], [3.0]])
    data = mrgp.Dataset([source(places, "a")]).with_covariates(height, "height")
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=mrgp.LBFGS(max_steps=3, starts=1, candidates=0))
    given = mrgp.predict(fit, places.with_covariates(height, "height"))
    np.testing.assert_allclose(given.mean, mrgp.predict(fit, places).mean)
    other = places.with_covariates(lambda x: x[:, 0], "height")
    with pytest.raises(ValueError, match=r"come from other fields than the fit's. Leave them out"):
        mrgp.predict(fit, other)


def test_covariates_follow_the_numbers_also_where_it_predicts():
    frame = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=6, freq="h")})
    hours, days = (mrgp.from_frame(frame, "time", time_unit=u) for u in ("h", "D"))
    data = mrgp.Dataset([source(hours, "a")]).with_covariates(height, "c")
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=mrgp.LBFGS(max_steps=3, starts=1, candidates=0))
    np.testing.assert_allclose(mrgp.predict(fit, days).mean, mrgp.predict(fit, hours).mean)
    with pytest.raises(ValueError, match="predict: its covariates come from a function of numbers"):
        mrgp.predict(fit, days.with_covariates(height, "c"))


def test_plain_numbers_with_a_function_are_taken_as_they_are():
    frame = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=3, freq="h")})
    hours = mrgp.from_frame(frame, "time").with_covariates(height, "c")
    plain = mrgp.points(hours.x[:, :1], inputs=("time",)).with_covariates(height, "c")
    with pytest.warns(UserWarning, match="source 'b', task 'value': the input 'time' is in plain"):
        joined = mrgp.Dataset([source(hours, "a"), source(plain, "b")])
    np.testing.assert_allclose(joined["a"].support.x, joined["b"].support.x)
