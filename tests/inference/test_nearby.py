"""Places next to those of the data are told of, where what is local matters."""

import warnings

import numpy as np
import pandas as pd
import pytest

import mrgp

INPUTS = ("east", "north", "hour")
SITES = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [7.0, 7.0]])


def seen():
    x = np.array([[a, b, t] for t in range(12) for a, b in SITES])
    y = np.tile([5.0, 1.0, -2.0, 0.0], 12) + np.sin(x[:, 2] / 3)
    return mrgp.Dataset([mrgp.Observations(mrgp.points(x, inputs=INPUTS), y, name="sites")])


@pytest.fixture(scope="module")
def network():
    where = ("east", "north")
    local = mrgp.White(dims=where) * mrgp.Matern12(dims="hour")
    kernel = mrgp.Matern12(dims=where) * mrgp.Matern12(dims="hour") + local
    quick = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
    return mrgp.fit(mrgp.MRGP(kernel, method="exact"), seen(), optimiser=quick)


def at(*places):
    return mrgp.points([[*place, 3.0] for place in places], inputs=INPUTS)


def test_places_next_to_those_of_the_data_are_told_of(network):
    text = r"predict: 1 of 2 places lie next to places of the data, but not at them \(the first by"
    with pytest.warns(UserWarning, match=text + r" 0\.005\): what is local"):
        mrgp.predict(network, at((10.0, 0.005), (3.0, 3.0)))


def test_places_of_the_data_and_far_ones_need_no_word(network):
    smooth = mrgp.fit(
        mrgp.MRGP(mrgp.RBF(), method="exact"),
        seen(),
        optimiser=mrgp.LBFGS(max_steps=1, starts=1, candidates=0),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mrgp.predict(network, at((10.0, 0.0), (10.0, 0.000001), (3.0, 3.0)))
        lower = np.array([[9.9, 0.0, 1.0]])
        mrgp.predict(network, mrgp.boxes(lower, lower + 0.2, inputs=INPUTS))
        mrgp.predict(smooth, at((10.0, 0.005)))


ROUNDED = {
    "points": lambda x: mrgp.points(x, inputs=INPUTS),
    "windows": lambda x: mrgp.boxes(x - [0, 0, 1], x + [0, 0, 1], inputs=INPUTS),
    "products": lambda x: mrgp.product(
        mrgp.points(x[:, :2], inputs=INPUTS[:2]),
        mrgp.intervals(x[:, 2] - 1, x[:, 2] + 1, inputs=INPUTS[2:]),
    ),
}


@pytest.mark.parametrize("kind", ROUNDED)
def test_places_that_differ_by_rounding_are_the_places_of_the_data(network, kind):
    x = np.array([[10.0, 0.0, 3.0], [7.0, 7.0, 4.0]])
    exact, rounded = (ROUNDED[kind](x + by) for by in (0.0, [3e-9, -2e-9, 0.0]))
    one, two = (mrgp.predict(network, support) for support in (exact, rounded))
    np.testing.assert_allclose(two.mean, one.mean, rtol=1e-6)
    np.testing.assert_allclose(two.variance, one.variance, rtol=1e-6)


def test_a_site_is_known_whatever_other_rows_its_table_has():
    """Each table has a plane of its own, about its own rows, before it comes to that of the fit."""
    rng = np.random.default_rng(0)
    sites = pd.DataFrame(rng.uniform([-0.3, 51.3], [0.2, 51.7], (12, 2)), columns=["lon", "lat"])
    times = pd.DataFrame({"time": pd.date_range("2022-03-22", periods=12, freq="h")})
    frame = sites.assign(level=rng.normal(0, 5, 12)).merge(times, how="cross")
    frame["no2"] = 40 + frame["level"] + rng.normal(0, 0.5, len(frame))
    columns, about = ["lon", "lat", "time"], {"crs": "EPSG:4326"}
    data = mrgp.Dataset([mrgp.from_frame(frame, columns, "no2", **about)])
    fit = mrgp.fit(mrgp.MRGP(method="exact"), data, optimiser=mrgp.LBFGS(max_steps=20, starts=1))
    asked = sites.assign(time=times["time"][5])
    whole = mrgp.predict(fit, mrgp.from_frame(asked, columns, **about))
    for some in ([0], [3, 10], [1, 4, 9], [5, 2, 7, 8]):
        part = mrgp.predict(fit, mrgp.from_frame(asked.iloc[some], columns, **about))
        np.testing.assert_allclose(part.mean, whole.mean[some], rtol=1e-6)
        np.testing.assert_allclose(part.std, whole.std[some], rtol=1e-6)
