"""Probabilities on a page: those of the prediction, whatever it is distributed as."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import mrgp
from groups import rest_thorough
from mrgp.report import write_report
from report.cases import degrees, hours
from report.hands import traces

FEW = mrgp.LBFGS(max_steps=8, starts=1, candidates=0)
SIDE = np.linspace(0.0, 4.0, 9)
MESH = np.stack(np.meshgrid(SIDE, SIDE), -1).reshape(-1, 2)


def behind(family):
    """Return few counts, or successes of few trials, so that the field is far from Gaussian."""
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 4, (12, 2))
    about = {"name": "s", "task": "cases"}
    support = mrgp.points(x, inputs=("east", "north"))
    if family == "log":
        given = {"exposure": np.full(12, 0.5), "likelihood": mrgp.Poisson()}
        counts = rng.poisson(0.5 * np.exp(0.4 * x[:, 0]))
        return mrgp.Observations(support, counts, **about, **given)
    given = {"likelihood": mrgp.Binomial(), "trials": np.full(12, 3)}
    return mrgp.Observations(support, rng.binomial(3, x[:, 0] / 4), **about, **given)


@pytest.mark.parametrize(
    ("family", "limits"),
    rest_thorough([("log", (0.0, 0.5, 2.0, 6.0)), ("probit", (0.0, 0.2, 0.9, 1.0))], 0),
)
def test_a_field_behind_a_link_exceeds_a_value_as_its_prediction_says(
    family, limits, plotly, opened, tmp_path
):
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([behind(family)]), optimiser=FEW)
    places = mrgp.points(MESH, inputs=("east", "north"))
    write_report(fit, tmp_path / "page.html", grid=places)
    found = mrgp.predict(fit, places)
    shown = opened(tmp_path / "page.html")
    np.testing.assert_allclose(shown.layer("mean").ravel(), found.mean, rtol=2e-5)
    np.testing.assert_allclose(shown.layer("sd").ravel(), found.std, rtol=2e-4)
    gaussian = mrgp.prediction.Prediction(
        places, "cases", None, None, *(part.copy() for part in found.components)
    )
    apart = []
    for limit in limits:
        shown.type(limit)
        exceeds = found.exceedance(limit)
        np.testing.assert_allclose(shown.layer("above").ravel(), exceeds, atol=2e-5)
        apart.append(np.abs(exceeds - gaussian.exceedance(limit)).max())
    assert max(apart) > 0.05
    said = float(re.search(r"[=<>] (\d\.\d+)", shown.readout)[1])
    assert said == pytest.approx(found.exceedance(limits[-1])[40], abs=1e-4)
    assert "are those of the fit" in shown.page.inner_text("#about")
    assert shown.said == []


def year():
    """Return a value a day of 300 days of a year, at four sites in turn."""
    rng = np.random.default_rng(4)
    times = pd.date_range("2022-01-01T12:00", periods=300, freq="D")
    place = np.arange(300) % 4
    frame = pd.DataFrame({"lon": np.array([1.1, 1.2, 1.4, 1.5])[place], "time": times})
    frame["lat"] = np.array([51.1, 51.3, 51.15, 51.35])[place]
    season = 6 * np.cos(2 * np.pi * np.arange(300) / 365)
    frame["no2"] = 38 + season + 12 * (frame["lon"] - 1.3) + rng.normal(0, 4, 300)
    about = {"crs": "EPSG:4326", "name": "laqn", "units": "ug/m3"}
    return mrgp.Dataset([mrgp.from_frame(frame, ["lon", "lat", "time"], "no2", **about)])


def over(grid, start, end):
    """Return the places of a grid of one time as boxes from one date to another."""
    lower, upper = (np.array(bound) for bound in grid.bounds)
    axis = grid.axes[2]
    ends = [pd.Timestamp(t, tz="UTC").timestamp() for t in (start, end)]
    lower[:, 2], upper[:, 2] = ((t - axis.origin) / axis.step for t in ends)
    made = mrgp.boxes(lower, upper, inputs=grid.inputs)
    return type(made)(**(vars(made) | {"axes": grid.axes}))


def choose_limit(shown, begins):
    labels = shown.page.locator("#limit option").all_inner_texts()
    shown.page.select_option("#limit", label=next(t for t in labels if t.startswith(begins)))
    shown.settle()


def noisy(found, variance, limit):
    """Return how probably the mean of values, each with noise, exceeds a limit."""
    return norm.sf((limit - found.mean) / np.sqrt(found.variance + variance))


def on_map(values):
    return values.reshape(9, 7).T


EAST, NORTH = np.linspace(1.0, 1.6, 9), np.linspace(51.0, 51.4, 7)


@pytest.mark.thorough
def test_limits_of_annual_means_are_those_of_boxes_over_the_year(plotly, opened, tmp_path):
    fit = mrgp.fit(mrgp.MRGP(), year(), optimiser=FEW)
    place = degrees(EAST, NORTH, pd.DatetimeIndex(["2022-06-01T12:00"]))
    write_report(fit, tmp_path / "year.html", grid=place)
    shown = opened(tmp_path / "year.html")
    choose_limit(shown, "EU 2008/50/EC: 40 ug/m3, mean of a year")
    assert shown.page.inner_text("#span option:checked") == "annual mean"
    found = mrgp.predict(fit, over(place, "2022-01-01", "2023-01-01"))
    exceeds = found.exceedance(40.0)
    assert 0.01 < exceeds.min() < exceeds.max() < 0.99
    np.testing.assert_allclose(shown.values(), on_map(exceeds), atol=2e-4)
    one = fit.model.observation_noise(("laqn", "no2"))
    shown.page.check("#noise")
    shown.settle()
    np.testing.assert_allclose(shown.values(), on_map(noisy(found, one / 300, 40.0)), atol=2e-4)
    # A limit of days is for values as they are: each is the mean of a day.
    choose_limit(shown, "WHO 2021 guideline: 25 ug/m3, mean of a day")
    value = mrgp.predict(fit, place, source="laqn", noise=True)
    np.testing.assert_allclose(shown.values(), on_map(value.exceedance(25.0)), atol=2e-4)


@pytest.mark.thorough
@pytest.mark.parametrize("given", ["windows", "instants"])
def test_values_that_are_means_of_days_are_shown_as_such(given, plotly, opened, tmp_path):
    frame = year()["laqn"][:24].to_frame()
    frame["start"] = pd.to_datetime(frame["time"]).dt.floor("D")
    frame["end"] = frame["start"] + pd.Timedelta("1D")
    about = {"crs": "EPSG:4326", "name": "laqn", "units": "ug/m3", "task": "no2"}
    place = ["lon", "lat"]
    daily = mrgp.from_frame(frame, place, "no2", start="start", end="end", **about)
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([daily]), optimiser=FEW)
    instants = degrees(EAST, NORTH, pd.date_range("2022-01-01T12:00", periods=2, freq="D"))
    asked = {"grid": instants} if given == "instants" else {}
    write_report(fit, tmp_path / "days.html", **asked)
    shown = opened(tmp_path / "days.html")
    choose_limit(shown, "EU 2024/2881, from 2030: 50 ug/m3, mean of a day")
    shown.type(40)
    longitude, latitude = shown.page.evaluate("[content.grid.x.values, content.grid.y.values]")
    noon = degrees(np.array(longitude), np.array(latitude), pd.DatetimeIndex(["2022-01-01T12:00"]))
    day = mrgp.predict(fit, over(noon, "2022-01-01", "2022-01-02"))
    expected = day.exceedance(40.0).reshape(len(longitude), -1).T
    np.testing.assert_allclose(shown.values(), expected, atol=3e-4)
    of = shown.page.evaluate("content.spans.map((span) => span.label)")
    assert of == ["values at a time", "daily mean"][given == "windows" :]
    day = shown.page.inner_text("#slider-value")
    assert day == "2022-01-01"
    assert re.search(r"2022-01-01: daily mean \d", shown.readout)
    # Beside values of days the map stands in the middle of each.
    assert shown.page.evaluate("byId('series').data.at(-1).x[0]") == "2022-01-01 12:00"
    said = "The map has means over 24 hours about the times of the slider."
    assert (said in shown.page.inner_text("#about")) == (given == "windows")


@pytest.mark.thorough
def test_a_daily_mean_of_values_with_noise_is_that_of_the_values_of_the_day(
    fits, plotly, opened, tmp_path
):
    write_report(fits.coast, tmp_path / "coast.html", grid=fits.coast_grid)
    shown = opened(tmp_path / "coast.html")
    choose_limit(shown, "WHO 2021 guideline: 25 ug/m3, mean of a day")
    without = shown.values()
    shown.page.check("#noise")
    shown.settle()
    day = mrgp.predict(fits.coast, over(fits.coast_grid[::4], "2022-02-19", "2022-02-20"))
    one = fits.coast.model.observation_noise(("laqn", "no2"))
    np.testing.assert_allclose(shown.values(), on_map(noisy(day, one / 8, 25.0)), atol=2e-4)
    assert np.abs(shown.values() - without).max() > 1e-3
    # Eight values of the day at one place, drawn together, have a mean that is as likely.
    hours = pd.date_range("2022-02-19T01:30", periods=8, freq="3h")
    values = degrees(EAST[4:5], NORTH[3:4], hours)
    eight = mrgp.predict(fits.coast, values, source="laqn", noise=True, joint=True)
    spread = np.sqrt(eight.covariance.mean())
    likely = norm.sf((25.0 - eight.mean.mean()) / spread)
    assert shown.values()[3, 4] == pytest.approx(likely, abs=0.02)
    # The series below the map has values, not means: each with its own noise.
    band = np.array(traces(shown, "series")["± 2 sd with the noise of laqn"]["y"])
    high, low = band[:4], band[:3:-1]
    row, column = shown.page.evaluate("[chosen.row, chosen.column]")
    there = mrgp.predict(fits.coast, fits.coast_grid, source="laqn", noise=True).std.reshape(
        9, 7, 4
    )[column, row]
    np.testing.assert_allclose(high - low, 4 * there, rtol=1e-4)
    assert "with the noise of laqn" in shown.readout
    assert shown.said == []


WHY = {
    "many": "the fit has 29 values, and it is done for up to 20.",
    "sparse": "this fit would have to be made anew without each of them; exact ones need not.",
}


@pytest.mark.parametrize("why", rest_thorough(WHY, "many"))
def test_what_a_source_tells_is_there_or_the_page_says_why_not(
    why, fits, plotly, opened, monkeypatch, tmp_path
):
    monkeypatch.setattr("mrgp.report.attribution.MOST_VALUES", 20)
    fit = fits.curve
    if why == "sparse":
        fit = mrgp.fit(mrgp.MRGP(method="collapsed", inducing=8), hours(), optimiser=FEW)
    write_report(fit, tmp_path / "curve.html", data=hours())
    shown = opened(tmp_path / "curve.html")
    said = f"What each source tells here was not computed: {WHY[why]}"
    assert shown.page.inner_text("#tells") == said
    assert "is the spread of the field with and without" not in shown.page.inner_text("#about")
    assert shown.said == []
