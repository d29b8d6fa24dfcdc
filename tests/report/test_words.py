"""What a page says and offers without a browser: titles, limits, periods, names of sites."""

import dataclasses
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mrgp
from mrgp.cli import saved
from mrgp.gp import Markov
from mrgp.report import sites, verdicts, write_report
from mrgp.report.backdrop import ATTRIBUTION, backdrop, extent_of
from mrgp.report.beside import beside_rules
from mrgp.report.headline import _when, short_section, title_of
from mrgp.report.layout import Grid, Layout, default_grid
from mrgp.report.legal import LIMITS, limits_for
from mrgp.report.periods import Clock, spans
from mrgp.report.sections import checks_section, own_sds, sources_section
from mrgp.report.sites import book_of
from mrgp.report.verdicts import checks as check_fit
from mrgp.supports import Axis
from report.cases import amiss, hours
from report.conftest import QUICK

DAY = 86400.0


def clock(start, days, step):
    first = pd.Timestamp(start, tz="UTC").timestamp()
    return Clock(Axis("time", 0.0, 3600.0, "h"), first + np.arange(0, days * DAY, step), step)


def test_the_title_names_the_city_the_sites_and_the_dates(fits):
    layout = Layout.of(fits.london)
    box = extent_of(Grid.of(default_grid(layout, fits.london_data), layout))
    found = title_of(fits.london, fits.london.tasks, fits.london_data, layout, box)
    assert found == "NO2, 6 sites and a grid of 4 cells, London, 19 February 2022"


def test_a_title_without_degrees_has_the_extent_of_the_inputs(fits):
    data = fits.curve.kept_data()
    title = title_of(fits.curve, fits.curve.tasks, data, Layout.of(fits.curve), None)
    assert title == "Value, 25 values of s and four values of w, hour 0 to 6"


def test_days_need_values_most_of_the_time(fits):
    hourly = spans(clock("2022-02-19T10:00", 3.0, 3600.0), "no2")
    assert [span.label for span in hourly] == ["daily mean", "mean of all times"]
    # The first day has 14 hours, and the last 10.
    assert hourly[0].names == ["2022-02-20", "2022-02-21"]
    assert hourly[0].sizes == [24, 24]
    start, end = hourly[0].ends[0]
    assert end - start == DAY


def test_a_year_of_hours_has_its_annual_mean_and_ozone_its_eight_hours():
    found = {span.over: span for span in spans(clock("2022-01-01", 365.0, 3600.0), "no2")}
    assert found["year"].names == ["2022"]
    assert found["day"].left_out == "24 of 365 are shown."
    short = {span.over: span for span in spans(clock("2022-06-01", 2.0, 3600.0), "o3")}
    assert len(short["8 hours"].names) == 6
    assert "year" not in short


def test_daily_values_are_not_averaged_over_days_but_over_years():
    assert clock("2022-01-01", 365.0, DAY).over == "day"
    assert [s.over for s in spans(clock("2022-01-01", 365.0, DAY), "pm10")] == ["year"]
    assert spans(clock("2022-01-01", 30.0, DAY), "pm10") == []


def test_days_of_a_zone_are_its_own():
    axis = Axis("time", 0.0, 3600.0, "h", "America/New_York")
    found = spans(clock("2004-06-01T04:00", 2.0, 3600.0)._replace(axis=axis), "no2")[0]
    assert found.names == ["2004-06-01", "2004-06-02"]
    assert found.ends[0][0] == pd.Timestamp("2004-06-01T04:00", tz="UTC").timestamp()


@pytest.mark.parametrize("zone", ["Africa/Cairo", "America/Santiago", "America/Havana"])
def test_days_begin_where_midnight_is_skipped_or_comes_twice(zone):
    axis = Axis("time", 0.0, 3600.0, "h", zone)
    year = clock("2024-01-02", 363.0, 3600.0)._replace(axis=axis)
    lengths = np.diff([end for span in spans(year, "no2")[:1] for end in span.ends])
    assert set(lengths.ravel()) <= {23 * 3600.0, DAY, 25 * 3600.0}


def test_a_day_without_its_midnight_has_23_hours():
    axis = Axis("time", 0.0, 3600.0, "h", "Africa/Cairo")
    days = clock("2024-04-24T22:00", 3.0, 3600.0)._replace(axis=axis)
    assert [(end - start) / 3600 for start, end in spans(days, "no2")[0].ends] == [24, 23, 24]


def test_eight_hours_begin_at_the_same_hours_after_a_clock_change():
    axis = Axis("time", 0.0, 3600.0, "h", "Europe/London")
    days = clock("2022-03-25", 5.0, 3600.0)._replace(axis=axis)
    eights = next(span for span in spans(days, "o3") if span.over == "8 hours")
    assert {name[-5:] for name in eights.names} == {"00:00", "08:00", "16:00"}


def test_a_window_that_ends_at_midnight_ends_the_day_before():
    days = pd.DataFrame({"start": pd.date_range("2022-01-01", periods=31, freq="D"), "y": 1.0})
    days = days.assign(end=days["start"] + pd.Timedelta("1D"), lon=0.1, lat=51.0)
    units = {"inputs": ["lon", "lat", "time"], "crs": "EPSG:4326"}
    seen = mrgp.from_frame(days, ["lon", "lat"], "y", start="start", end="end", **units)
    layout = Layout(seen.support.input_names, seen.support.axes, (0, 1), 2, ())
    assert _when([seen], layout) == "1 to 31 January 2022"
    at = mrgp.from_frame(days, ["lon", "lat", "end"], "y", crs="EPSG:4326")
    assert _when([at], layout) == "2 January to 1 February 2022"


def test_limits_are_by_unit():
    assert {limit.over for limit in limits_for("no2", "µg/m³")} == {"hour", "day", "year"}
    ppb = limits_for("NO2", "ppb")[0].value
    assert ppb == pytest.approx(200 / 1.9125)
    assert limits_for("no2", "K") == limits_for("temperature", "ug/m3") == ()
    ours = {(limit.value, limit.over) for limit in limits_for("no2", "ppb") if "US" in limit.name}
    assert ours == {(100.0, "hour"), (53.0, "year")}
    assert limits_for("o3", "ppm")[-1].value == pytest.approx(0.07)
    assert not any("US" in limit.name for limit in limits_for("no2", "ug/m3"))
    particles = {
        (name, *limit[1:3])
        for name in ("pm2.5", "pm10")
        for limit in limits_for(name, "ug/m3")
        if "US" in limit.name
    }
    assert particles == {("pm2.5", 35.0, "day"), ("pm2.5", 9.0, "year"), ("pm10", 150.0, "day")}
    assert all(limit.value > 0 for several in LIMITS.values() for limit in several)


def test_lines_are_clipped_to_the_extent():
    box = (-84.5, -75.0, 33.5, 37.0)
    found = backdrop(box)
    assert found is not None
    assert {line["kind"] for line in found["lines"]} == {"coast", "state"}
    assert "U.S. Census Bureau" in found["words"]
    for line in found["lines"]:
        x = np.array([v for v in line["x"] if v is not None])
        assert len(x) < 3000
        assert np.mean((x >= box[0]) & (x <= box[1])) > 0.9
    assert backdrop(None) is None


def test_the_reason_of_a_choice_is_the_margin(fits):
    said = "Beside the best simple rule at 40 values: rmse 1 and crps 1, beside 2 and 2"
    chosen = dataclasses.replace(fits.curve, reasons=("There is one source.", said))
    assert beside_rules(chosen, None) == [(said, -0.5, "")]


@pytest.mark.parametrize(
    ("scores", "higher"),
    [
        ("rmse 7.85 and crps 4.3, beside 7.45 and 4.27", 5),
        ("rmse 1.05 and crps 4, beside 1.01 and 4; rmse is 3 % higher and crps is the same", 3),
        ("rmse 1.02 and crps 4, beside 1.01 and 4; rmse is 1 % higher and crps is the same", None),
    ],
)
def test_a_simple_rule_that_is_better_is_told_first_and_again_under_careful(fits, scores, higher):
    said = f"Beside the best simple rule at the places of 40 values: {scores}."
    chosen = dataclasses.replace(fits.curve, reasons=(said,))
    good, careful = short_section(chosen, [], None, beside_rules(chosen, None)).split("careful of")
    plain = f"A simple rule is better at places held out: the rmse of the model is {higher} %"
    assert (plain in good) == (plain in careful) == (higher is not None)
    first = [] if higher is None else [plain]
    places = [good.index(words) for words in (*first, said, "no values to score it by")]
    assert places == sorted(places)


def careful(fit, data=None, checks=()):
    return short_section(fit, list(checks), data, beside_rules(fit, data)).split("careful of")[1]


def test_what_the_checks_find_amiss_is_to_be_careful_of(fits):
    data = hours()
    ended = dataclasses.replace(fits.curve.status, code="converged")
    calm = dataclasses.replace(fits.curve, status=ended)
    assert "found anything amiss" in careful(calm, data, check_fit(calm, data, None))
    wild = data["s"].y.copy()
    wild[12] += 5.0
    found = calm.condition(mrgp.Dataset([data["s"].replace(y=wild), data["w"]]))
    told = careful(found, data, check_fit(found, data, None))
    assert "Of s, each value predicted from all the others: " in told
    assert "far outside, which is rare: look for faults" in told
    assert "found anything amiss" not in told


def test_counts_that_vary_and_sources_without_a_covariate_are_to_be_careful_of(fits):
    said = "Counts of cases vary 2.3 times as much as with one rate for all."
    assert said in careful(dataclasses.replace(fits.curve, reasons=("One field.", said)))
    x = np.arange(4.0)[:, None]
    kinds = mrgp.points(x, inputs="hour", covariates={"type": list("abab")})
    sites = mrgp.Observations(kinds, x[:, 0], name="sites")
    cells = mrgp.Observations(mrgp.points(x, inputs="hour"), x[:, 0], name="cells")
    with pytest.warns(UserWarning, match="reads the field without"):
        data = mrgp.Dataset([sites, cells])
    compared = ("Beside the best simple rule, it is better.",)
    told = careful(dataclasses.replace(fits.curve, reasons=compared), data)
    assert "cells has no type, and is read without its effect." in told
    assert "sites has no" not in told


def test_a_table_of_sites_needs_places_and_names(fits, plotly, tmp_path):
    path = tmp_path / "page.html"
    with pytest.raises(ValueError, match="it lacks 'lat'"):
        write_report(fits.coast, path, grid=fits.coast_grid, sites=pd.DataFrame({"lon": [1.0]}))
    places = pd.DataFrame({"lon": [1.0], "lat": [51.0]})
    with pytest.raises(ValueError, match="needs a column of names"):
        write_report(fits.coast, path, grid=fits.coast_grid, sites=places)
    assert not path.exists()


INPUTS = 'inputs = ["lon", "lat", "time"]\n'
SITES = """
[sources.sites]
file = "sites.csv"
y = "no2"
x = ["northing", "easting", "time"]
crs = "EPSG:27700"
"""
CELLS = """
[sources.cells]
file = "cells.csv"
y = "no2"
x = ["time"]
start = ["lon_min", "lat_min"]
end = ["lon_max", "lat_max"]
crs = "EPSG:4326"
"""


def test_names_beside_a_fit_are_of_places_in_degrees_and_of_no_cells(fits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fit.mrgp.toml").write_text(INPUTS + SITES + CELLS)
    day = "2022-02-19"
    (tmp_path / "sites.csv").write_text(
        f"site,time,northing,easting,no2\nA,{day},180000,530000,1\nA,{day},180000,530000,2\n"
    )
    (tmp_path / "cells.csv").write_text(
        f"id,time,lon_min,lon_max,lat_min,lat_max,no2\n7,{day},0,1,51,52,3\n"
    )
    layout = Layout.of(fits.london)
    places, names = book_of(saved.sites_beside(tmp_path / "fit.mrgp", fits.london), layout)
    assert names == ["A"]
    np.testing.assert_allclose(places, [[-0.1285, 51.5037]], atol=1e-3)
    (tmp_path / "fit.mrgp.toml").write_text(INPUTS + CELLS)
    assert saved.sites_beside(tmp_path / "fit.mrgp", fits.london) is None


def test_values_with_an_exposure_are_drawn_as_rates(plotly, tmp_path):
    from mrgp.report.overlays import overlays

    x = mrgp.points([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], inputs=("x", "y"))
    about = {"likelihood": mrgp.Poisson(), "exposure": [10.0, 20.0, 10.0, 5.0], "name": "register"}
    data = mrgp.Dataset([mrgp.Observations(x, [1.0, 4.0, 3.0, 0.0], **about)])
    layout = Layout(("x", "y"), (None, None), (0, 1), None, ())
    found = overlays(data, Grid.of(default_grid(layout, data), layout))[0]
    from mrgp.report.packing import unpacked

    np.testing.assert_allclose(np.sort(unpacked(found["values"])), [0.0, 0.1, 0.2, 0.3], rtol=1e-6)


def test_fits_without_units_say_so_after_save_and_load(fits, tmp_path):
    mrgp.save(fits.coast, tmp_path / "fit.mrgp")
    again = mrgp.load(tmp_path / "fit.mrgp")
    assert [again.units_of(p) for p in again.processes] == ["ug/m3", None]
    kept = again.kept_data()
    assert kept is not None
    assert [o.units for o in kept] == ["ug/m3", None]


def test_a_browser_that_is_asked_for_is_not_skipped(monkeypatch):
    monkeypatch.setitem(sys.modules, "axe_playwright_python", None)
    monkeypatch.setitem(sys.modules, "axe_playwright_python.sync_playwright", None)
    monkeypatch.setenv("MRGP_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="axe-playwright-python is not installed"):
        amiss(None)
    monkeypatch.delenv("MRGP_REQUIRE_BROWSER")
    with pytest.raises(pytest.skip.Exception):
        amiss(None)


def test_the_notice_of_the_outlines_goes_with_the_package():
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["license-files"] == ["LICENSE", "NOTICE"]
    said = (root / "NOTICE").read_text()
    for owner in set(ATTRIBUTION.values()):
        assert owner.removesuffix(" (public domain)") in said
    assert "Copyright 2013-2019 Michael Bostock" in said
    assert 'THE SOFTWARE IS PROVIDED "AS IS"' in said


def test_sites_beyond_the_room_of_a_page_are_fewer_or_said_to_be_left_out(fits, monkeypatch):
    found = check_fit(fits.coast, fits.coast_parts[1], None)
    grid = Grid.of(fits.coast_grid, Layout.of(fits.coast))

    def kept(room):
        monkeypatch.setattr(sites, "MOST_VALUES", room)
        shown, left = sites.sites_of(fits.coast, found, grid, None)
        return [(s.source, len(s.names), s.count, len(s.y)) for s in shown], left

    whole = ("laqn", 5, 5, 80)
    assert kept(1000) == ([whole, ("cams", 4, 4, 64)], [])
    assert kept(100) == ([whole, ("cams", 1, 4, 16)], [])
    shown, left = kept(85)
    assert shown == [whole]
    assert left == [
        "No place of cams can be chosen: a page carries 85 values of sites, and those of one place"
        " are more than what others leave of them."
    ]


@pytest.mark.thorough
def test_values_along_time_left_out_one_by_one_are_those_of_the_dense_covariance(fits, monkeypatch):
    data = fits.coast_parts[1]
    recipe = mrgp.MRGP(bias="affine", target="laqn", method="markov")
    fit = mrgp.fit(recipe, data, weights={"cams": 0.5}, optimiser=QUICK)
    expected = fit.leave_one_out()
    monkeypatch.setattr(Markov, "most_dense", 10)
    (check,) = check_fit(fit, data, None)
    assert check.name == "left out"
    for part in expected:
        found, y = check.pairs[part.source, part.task]
        np.testing.assert_allclose(y, part.y)
        np.testing.assert_allclose(found.mean, part.mean, rtol=1e-6)
        np.testing.assert_allclose(found.variance, part.variance, rtol=1e-6)


def test_a_sample_of_the_values_that_were_fitted_is_called_one(fits, monkeypatch):
    (whole,) = check_fit(fits.deep, fits.deep_data, None)
    assert (whole.name, whole.sample) == ("in sample", "")
    monkeypatch.setattr(verdicts, "MOST_VALUES", 10)
    (some,) = check_fit(fits.deep, fits.deep_data, None)
    kept = sum(len(y) for _, y in some.pairs.values())
    there = sum(o.count for o in fits.deep_data)
    assert kept < there
    assert some.sample == f"a sample of {kept} of {there} values, drawn at random"
    assert f"These are {some.sample}." in checks_section([some])


@pytest.mark.parametrize("bias", ["affine", "field"])
def test_how_far_a_source_is_off_by_itself_is_told(bias):
    x = np.linspace(0.0, 6.0, 12)[:, None]
    here, off = np.sin(x[:, 0]), np.cos(2.0 * x[:, 0])
    seen = mrgp.Observations(mrgp.points(x), here, name="sites")
    model = mrgp.Observations(mrgp.points(x), 1.0 + 0.5 * here + off, name="model")
    fit = mrgp.fit(
        mrgp.MRGP(bias=bias), mrgp.Dataset([seen, model]), optimiser=QUICK, progress=None
    )
    told = sources_section(fit, [], {})
    assert (
        ("sd of its own" in told) == ("a field of their own as well" in told) == (bias == "field")
    )
    if bias == "field":
        known = {s: fit.parameters()[f"own[{s}].kernel.variance"] for s in ("sites", "model")}
        assert own_sds(fit) == {s: pytest.approx(variance**0.5) for s, variance in known.items()}
    else:
        assert own_sds(fit) == {}


def test_of_many_values_along_time_no_dense_covariance_is_made(monkeypatch):
    x = [[float(p), float(t)] for t in range(4) for p in range(2)]
    seen = mrgp.Observations(mrgp.points(x, inputs=("x", "time")), np.sin(np.arange(8.0)))
    data = mrgp.Dataset([seen])
    fit = mrgp.fit(mrgp.MRGP(method="markov"), data, optimiser=QUICK, progress=None)
    (dense,) = check_fit(fit, data, None)
    monkeypatch.setattr(verdicts, "MOST_DENSE", 7)
    monkeypatch.setattr(type(fit), "leave_one_out", None)
    (along,) = check_fit(fit, data, None)
    assert along.name == dense.name == "left out"
    for score, value in dense.scores["source", "value"].items():
        assert along.scores["source", "value"][score] == pytest.approx(value, rel=1e-5)
