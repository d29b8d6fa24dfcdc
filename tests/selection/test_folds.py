"""Folds of a source's values."""

import numpy as np
import pytest

import mrgp
from mrgp.selection import make_folds


def stations(sites=4, hours=6):
    t, s = np.meshgrid(np.arange(float(hours)), np.arange(float(sites)))
    x = np.column_stack([t.ravel(), s.ravel(), 2 * s.ravel()])
    support = mrgp.points(x, inputs=("time", "lon", "lat"))
    return mrgp.Observations(support, np.arange(float(len(x))), name="sites", task="no2"), x


def test_random_folds_share_the_values_evenly_and_missing_ones_have_none():
    observed, _ = stations()
    y = observed.y.copy()
    y[3] = np.nan
    found = make_folds(observed.replace(y=y), "random", number=5, key=1)
    assert found[3] == -1
    counts = np.bincount(np.delete(found, 3))
    assert counts.sum() == 23
    assert counts.max() - counts.min() <= 1
    again = make_folds(observed.replace(y=y), "random", number=5, key=1)
    np.testing.assert_array_equal(found, again)
    assert not np.array_equal(found, make_folds(observed.replace(y=y), "random", number=5, key=2))


def test_sites_stay_together_and_times_are_stretches():
    observed, x = stations()
    by_site = make_folds(observed, "site", number=2)
    assert all(len(set(by_site[x[:, 1] == s])) == 1 for s in range(4))
    assert np.bincount(by_site).tolist() == [12, 12]
    by_time = make_folds(observed, "time", number=3)
    np.testing.assert_array_equal(by_time, x[:, 0] // 2)
    assert set(make_folds(observed, "site", number=9)) == {0, 1, 2, 3}


def test_labels_are_folds():
    observed, x = stations()
    labels = np.where(x[:, 1] > 1, "east", "west")
    found = make_folds(observed, labels)
    np.testing.assert_array_equal(found, x[:, 1] <= 1)


def test_dates_are_known_by_their_axis():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"when": pd.date_range("2022-01-01", periods=6, freq="h", tz="UTC"), "y": range(6)}
    )
    observed = mrgp.from_frame(frame, x=["when"], y="y", name="a", task="u")
    np.testing.assert_array_equal(make_folds(observed, "time", number=2), [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize(
    ("folds", "number", "text"),
    [
        ("places", 5, r"folds= is one of \('random', 'site', 'time'\), or a label"),
        ("random", 1, "number= of folds must be 2 or more; got 1"),
        ([0, 1], 5, r"labels of shape \(2,\); source 'sites', task 'no2' has 24 values"),
        (["one"] * 24, 5, "has 1 group to hold out with folds=labels"),
    ],
)
def test_folds_that_cannot_be_made_are_told(folds, number, text):
    with pytest.raises(ValueError, match=text):
        make_folds(stations()[0], folds, number)


def test_inputs_that_folds_need_are_asked_for():
    flat = mrgp.Observations(mrgp.points(np.random.default_rng(0).normal(size=(9, 2))), range(9))
    with pytest.raises(ValueError, match='folds="time" needs an input of time'):
        make_folds(flat, "time")
    line = mrgp.Observations(mrgp.points(np.arange(9.0)[:, None], inputs="time"), range(9))
    with pytest.raises(ValueError, match='"site" needs an input beside time'):
        make_folds(line, "site")
