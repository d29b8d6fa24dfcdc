"""What a reader does with a page: sites, limits, averages, transects, files; one page for all."""

import csv
import io
import itertools
import re

import numpy as np
import pandas as pd
import pytest
from scipy.io import netcdf_file
from scipy.stats import norm

import mrgp
from groups import rest_thorough
from mrgp.prediction import predict_values
from mrgp.report import write_report
from mrgp.selection import best_rule
from report.cases import COAST, amiss
from report.hands import choose, click, saved, traces

PHONE = {"width": 375, "height": 740}
LOOKS = ("light", "dark", "phone")
FEW = mrgp.LBFGS(max_steps=2, starts=1, candidates=0)


def map_support(fits, start, end=None):
    """Return the cells of the map at one time, or over a window."""
    lower, upper = (np.array(bound) for bound in fits.coast_grid[0::4].bounds)
    axis = fits.coast_grid.axes[2]
    ends = [pd.Timestamp(t, tz="UTC").timestamp() for t in (start, end or start)]
    lower[:, 2], upper[:, 2] = ((t - axis.origin) / axis.step for t in ends)
    made = mrgp.boxes(lower, upper, inputs=("lon", "lat", "time"))
    return type(made)(**(vars(made) | {"axes": fits.coast_grid.axes}))


def on_map(values):
    return values.reshape(9, 7).T


def test_the_title_says_what_where_and_when(shown):
    assert shown.page.inner_text("h1") == (
        "NO2, 5 sites and a grid of 4 cells, 1 to 1.6° E, 51 to 51.4° N, 19 to 20 February 2022"
    )
    assert "one task" in shown.page.inner_text("header")


def test_the_answer_comes_first_with_the_rule_and_all_warnings(fits, shown):
    first = shown.page.locator("main > section").first
    assert first.locator("h2").inner_text() == "In short"
    text = first.inner_text()
    loo = fits.coast.leave_one_out()["laqn"]
    assert f"80 of laqn are off by {loo.rmse:.3g} ug/m3 (rmse)" in text
    assert "% of them lie inside their 95 % intervals" in text
    assert "Mind the <gap>." in fits.coast.warnings
    for words in (*fits.coast.warnings, str(fits.coast.status)):
        assert words in text


@pytest.mark.thorough
def test_the_margin_to_the_best_simple_rule_is_that_of_places_left_out(fits, shown):
    frame, data, sites = fits.coast_parts
    errors = []
    for site in sites["site"]:
        gone = (frame["site"] == site).to_numpy()
        rest = mrgp.Dataset([data["laqn"][~gone], data["cams"]])
        found = predict_values(fits.coast.condition(rest), data["laqn"][gone])
        errors.append(found.mean - frame["no2"][gone])
    rmse = np.sqrt(np.mean(np.concatenate(errors) ** 2))
    best = best_rule(data, 5, ("laqn", "no2"))
    text = shown.page.inner_text("section:has(#short)")
    said = re.search(r"left out, a fifth at a time, the model is off by (\S+) ug/m3", text)
    assert float(said[1]) == pytest.approx(rmse, rel=5e-3)
    assert f"{best.rule.meaning} ({best.rmse:.3g} ug/m3)" in text


def test_the_coast_is_under_the_map_and_attributed(shown):
    coast = traces(shown, "view")["coast"]
    x = np.array([v for v in coast["x"] if v is not None])
    y = np.array([v for v in coast["y"] if v is not None])
    inside = (x > COAST[0]) & (x < COAST[1]) & (y > COAST[2]) & (y < COAST[3])
    assert inside.sum() > 20
    # Dover's cliffs are in it.
    assert np.hypot(x - 1.34, y - 51.13).min() < 0.03
    assert "Natural Earth (public domain)" in shown.page.inner_text("#about")


def test_a_site_by_name_has_measurements_the_band_other_sources_and_residuals(fits, shown):
    choose(shown, "site", label="Bay")
    frame = fits.coast_parts[0]
    own = np.flatnonzero(frame["site"] == "Bay")
    loo = fits.coast.leave_one_out()["laqn"]
    _, high = loo.prediction().interval(0.95)
    found = traces(shown, "series")
    np.testing.assert_allclose(found["measured, laqn"]["y"], frame["no2"][own], rtol=1e-6)
    assert found["measured, laqn"]["x"][1] == "2022-02-19 03:00"
    band = next(trace for name, trace in found.items() if name.startswith("95 %"))
    np.testing.assert_allclose(band["y"][:16], high[own], rtol=1e-5)
    says = next(trace for name, trace in found.items() if name.startswith("cams says"))
    cells = fits.coast_parts[1]["cams"]
    np.testing.assert_allclose(says["y"], cells.y[32:48], rtol=1e-6)
    assert {"predicted for each value", "the map at its cell"} <= set(found)
    # Bars at both ends are whole.
    boxes = (
        "(of) => Array.from(byId('residuals').querySelectorAll(of), (e) =>"
        " e.getBoundingClientRect()).map((box) => [box.left, box.right])"
    )
    bars, (plot,) = (shown.page.evaluate(boxes, of) for of in (".point path", ".nsewdrag"))
    assert len(bars) == 16
    assert plot[0] - 1 <= min(bars)[0] < max(bars)[1] <= plot[1] + 1
    assert np.ptp([right - left for left, right in bars]) < 2
    residuals = traces(shown, "residuals")["residual"]["y"]
    np.testing.assert_allclose(residuals, loo.residuals[own], rtol=1e-4, atol=1e-5)
    assert says["name"].endswith(", bias included")
    assert shown.page.inner_text("#site-title") == "Bay (laqn)"
    error = loo.y[own] - loo.mean[own]
    assert f"rmse {np.sqrt(np.mean(error**2)):.4g}"[:9] in shown.page.inner_text("#site-words")


def test_a_site_is_chosen_by_a_click_and_left_by_another(shown):
    click(shown, 1.4, 51.35)
    assert shown.page.inner_text("#site-title") == "Dune (laqn)"
    click(shown, 1.525, 51.067)
    assert shown.page.input_value("#site") == ""
    assert not shown.page.is_visible("#residuals")


def test_scores_by_site_are_in_a_table_and_on_the_map(fits, shown):
    loo, frame = fits.coast.leave_one_out()["laqn"], fits.coast_parts[0]
    rmse = np.sqrt(pd.Series((loo.y - loo.mean) ** 2).groupby(frame["site"]).mean())
    table = shown.page.locator("table", has_text="laqn, no2: each value predicted").first
    rows = dict(re.findall(r"^(.+?)\t16\t\S+\t\S+\t(\S+)\t", table.inner_text(), re.MULTILINE))
    assert {name: float(v) for name, v in rows.items()} == pytest.approx(rmse.to_dict(), rel=1e-3)
    choose(shown, "marks", value="rmse")
    marks = traces(shown, "view")["scores of laqn"]
    np.testing.assert_allclose(np.sort(marks["colour"]), np.sort(rmse), rtol=1e-4)


def test_colours_are_for_all_times_or_for_the_time_shown(shown):
    ends = "[byId('view').data[0].zmin, byId('view').data[0].zmax]"
    everywhere = shown.page.evaluate(ends)
    shown.page.check("input[name=colours][value=shown]")
    shown.settle()
    values = shown.values()
    low, high = shown.page.evaluate(ends)
    assert (low, high) == pytest.approx((values.min(), values.max()), rel=1e-5)
    assert high - low < everywhere[1] - everywhere[0]


@pytest.mark.thorough
def test_a_legal_limit_of_daily_means_uses_the_joint_hours(fits, shown):
    shown.page.select_option("#limit", label=limit_of(shown, "WHO 2021 guideline: 25 ug/m3"))
    shown.settle()
    assert shown.page.input_value("#threshold") == "25"
    assert shown.page.inner_text("#slider-value") == "2022-02-19"
    day = mrgp.predict(fits.coast, map_support(fits, "2022-02-19", "2022-02-20"))
    np.testing.assert_allclose(shown.values(), on_map(day.exceedance(25.0)), atol=2e-4)
    hours = pd.date_range("2022-02-19", periods=24, freq="h")
    each = [mrgp.predict(fits.coast, map_support(fits, hour)).exceedance(25.0) for hour in hours]
    assert np.abs(shown.values() - on_map(np.mean(each, 0))).max() > 0.02
    shown.page.locator("#slider").fill("1")
    shown.settle()
    later = mrgp.predict(fits.coast, map_support(fits, "2022-02-20", "2022-02-21"))
    np.testing.assert_allclose(shown.values(), on_map(later.exceedance(25.0)), atol=2e-4)
    assert "daily mean" in shown.page.inner_text("#readout")


def test_a_change_of_the_averaging_time_keeps_the_date_and_no_limit_of_another(shown):
    shown.page.locator("#slider").fill("2")
    limit = limit_of(shown, "WHO 2021 guideline: 25 ug/m3")
    dates = []
    for of in ("values at a time", "mean of all times", "daily mean", "values at a time"):
        choose(shown, "limit", label=limit)
        dates.append(shown.page.inner_text("#slider-value"))
        choose(shown, "span", label=of)
        dates.append(shown.page.inner_text("#slider-value"))
        kept = shown.page.input_value("#limit") != ""
        assert shown.page.inner_text("#limit-words") == (limit if kept else "")
        assert kept == (of == "daily mean")
    day, hour = "2022-02-19", "2022-02-19 18:00"
    assert dates == [day, hour, day, "2022-02-19 00:00 to 2022-02-21 00:00", day, day, day, hour]
    assert shown.page.input_value("#threshold") == "25"
    choose(shown, "span", label="daily mean")
    shown.page.locator("#slider").fill("1")
    choose(shown, "span", label="values at a time")
    assert shown.page.inner_text("#slider-value") == "2022-02-20 00:00"


def limit_of(shown, begins):
    labels = shown.page.locator("#limit option").all_inner_texts()
    return next(label for label in labels if label.startswith(begins))


def test_limits_are_named_and_those_of_a_year_need_one(shown):
    assert "18 hours a year may exceed it" in limit_of(shown, "EU 2008/50/EC: 200 ug/m3")
    yearly = shown.page.locator("#limit option", has_text="mean of a year")
    assert yearly.count() == 4
    assert all(option.is_disabled() for option in yearly.all())


def test_probabilities_of_values_with_noise(fits, shown):
    shown.type(30)
    shown.page.check("#noise")
    found = mrgp.predict(
        fits.coast, map_support(fits, "2022-02-19T06:00"), source="laqn", noise=True
    )
    expected = norm.sf((30 - found.mean) / found.std)
    np.testing.assert_allclose(shown.layer("above"), on_map(expected), atol=2e-4)
    assert "with the noise of laqn" in shown.readout


def test_a_transect_between_two_clicks(fits, shown):
    shown.page.click("#pick")
    click(shown, 1.0, 51.0)
    click(shown, 1.6, 51.0)
    along = traces(shown, "transect")["mean along the transect"]
    np.testing.assert_allclose(along["y"], shown.values()[0], rtol=1e-5)
    # 0.6 degrees of longitude at 51.2 degrees north.
    assert along["x"][-1] == pytest.approx(0.6 * 111.2 * np.cos(np.radians(51.2)), rel=0.01)
    assert "(km)" in shown.page.evaluate("byId('transect').layout.xaxis.title.text")


def test_what_is_shown_can_be_kept_as_a_table_a_grid_and_a_picture(shown):
    shown.page.locator("#slider").fill("2")
    shown.settle()
    values = shown.values()
    table = saved(shown, "csv")
    assert table.suggested_filename == "no2-2022-02-19-18-00.csv"
    rows = list(csv.DictReader(io.StringIO(table.path().read_text())))
    assert len(rows) == 63
    np.testing.assert_allclose([float(r["mean"]) for r in rows], values.ravel(), rtol=1e-6)
    assert {row["time"] for row in rows} == {"2022-02-19 18:00"}
    grid = saved(shown, "netcdf")
    with netcdf_file(grid.path(), mmap=False) as read:
        assert read.dimensions == {"lat": 7, "lon": 9}
        np.testing.assert_allclose(read.variables["lon"][:], np.linspace(1.0, 1.6, 9), rtol=1e-6)
        np.testing.assert_allclose(read.variables["mean"][:], values, rtol=1e-6)
        assert read.variables["mean"].units == b"ug/m3"
        assert b"2022-02-19 18:00" in read.time
    picture = saved(shown, "png")
    assert picture.path().read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_source_tells_what_the_spread_would_be_without_it(fits, shown):
    click(shown, 1.3, 51.2)
    place = map_support(fits, "2022-02-19T06:00")[4 * 7 + 3 : 4 * 7 + 4]
    alone = {}
    data = fits.coast_parts[1]
    for source in ("laqn", "cams"):
        # A single value, told to be noise and nothing else, stands for none.
        noise = np.full(1, 1e12)
        none = data[source][:1].replace(noise_variance=noise)
        others = mrgp.Dataset([none if o.name == source else o for o in data])
        alone[source] = mrgp.predict(fits.coast.condition(others), place).std[0]
    text = shown.page.inner_text("#tells")
    assert "tells at lon 1.3, lat 51.2, 2022-02-19 06:00, the nearest place" in text
    with_all = mrgp.predict(fits.coast, place).std[0]
    assert f"the sd is {with_all:.4g}"[:14] in text
    for source, sd in alone.items():
        words = rf"without {source} (\S+) ug/m3 \(with {source} that variance is (\d+) %"
        said = re.search(words, text)
        assert float(said[1]) == pytest.approx(sd, rel=1e-3)
        assert int(said[2]) == pytest.approx(100 * (1 - (with_all / sd) ** 2), abs=0.6)
    # Of four times three were computed.
    steps, times = shown.page.evaluate("[content.tells[0].steps, content.spans[0].values]")
    other = next(step for step in range(4) if step not in steps)
    shown.page.locator("#slider").fill(str(other))
    shown.settle()
    known = "; ".join(times[step] for step in steps)
    said = f"What each source tells here was computed for some times alone: {known}."
    assert shown.page.inner_text("#tells") == said


def test_values_with_a_bias_are_not_judged_by_the_map(shown):
    hover = "byId('view').data.find((t) => t.name === 'cams').hovertemplate"
    assert "as the source says, bias included" in shown.page.evaluate(hover)
    assert {"laqn", "cams"} <= set(traces(shown, "view"))
    shown.layer("above")
    assert "laqn" in traces(shown, "view")
    assert "cams" not in traces(shown, "view")
    shown.layer("mean")
    choose(shown, "site", label="cams 1")
    names = traces(shown, "series")
    assert "cams, as the source says, bias included" in names
    assert not any(name.startswith("measured") for name in names)
    assert "Values of cams are shown as the source says" in shown.page.inner_text("#about")


def test_what_is_left_out_is_said(shown):
    assert "The slider has 4 of the 16 times of laqn" in shown.page.inner_text("#about")


def test_pointing_at_a_site_tells_its_name_units_and_time(shown):
    click(shown, 1.35, 51.15)
    text = shown.page.locator("#view .hoverlayer").text_content()
    assert "Cliff" in text
    assert "ug/m3" in text
    assert "2022-02-19 06:00" in text


def test_names_are_text_and_nothing_else(shown):
    options = shown.page.locator("#site option").all_inner_texts()
    assert "Elm & <Oak>" in options


def test_a_source_without_units_is_not_called_by_those_of_the_target(fits, shown):
    text = shown.page.locator("table", has_text="means over cells").first.inner_text()
    row = next(line for line in text.splitlines() if line.startswith("cams"))
    assert row.split("\t")[5] == "–"
    assert "cams, no2: 64 values\n" in fits.coast.summary() + "\n"
    assert "laqn, no2: 80 values in ug/m3" in fits.coast.summary()


def test_the_colours_of_scores_are_below_the_axis_and_leave_the_map_its_room(coast_page, opened):
    size = "[byId('view')._fullLayout._size.h, byId('view')._fullLayout._size.w]"
    edges = (
        "[[byId('view').querySelector('.xtitle'), 'bottom'],"
        " [byId('view').querySelectorAll('.colorbar')[1], 'top'],"
        " [byId('view').querySelectorAll('.colorbar')[1], 'bottom'], [byId('view'), 'bottom']]"
        ".map(([element, edge]) => element.getBoundingClientRect()[edge])"
    )
    for look in ({}, PHONE):
        found = opened(coast_page, **look)
        before = found.page.evaluate(size)
        choose(found, "marks", value="error")
        assert found.page.evaluate(size) == pytest.approx(before, abs=12)
        title, top, bottom, end = found.page.evaluate(edges)
        assert title <= top + 2 < bottom <= end
        choose(found, "marks", value="values")


def test_on_a_phone_the_map_comes_before_the_controls(coast_page, opened):
    page = opened(coast_page, **PHONE).page
    boxes = {name: page.locator(f"#{name}").bounding_box() for name in ("view", "controls")}
    assert boxes["view"]["y"] + boxes["view"]["height"] <= boxes["controls"]["y"]
    assert boxes["controls"]["width"] <= PHONE["width"]
    assert opened(coast_page, **PHONE).wide <= 0


@pytest.mark.parametrize("look", rest_thorough(LOOKS, "light"))
def test_axe_finds_nothing_amiss(coast_page, opened, look):
    size = PHONE if look == "phone" else {}
    found = opened(coast_page, axe=True, scheme="dark" if look == "dark" else "light", **size)
    choose(found, "site", label="Bay")
    assert amiss(found) == {}


@pytest.mark.thorough
def test_two_tasks_are_spoken_of_as_two(fits, plotly, opened, tmp_path):
    path = tmp_path / "two.html"
    write_report(fits.two_tasks, path)
    page = opened(path).page
    assert page.inner_text("h1").startswith("NO2 and PM10, 12 sites")
    assert "two tasks: no2 and pm10" in page.inner_text("header")
    assert "There are two tasks: no2 and pm10." in page.inner_text("main")
    assert "all sources are taken to see the same field" not in page.inner_text("main")
    first = opened(path).values()
    page.select_option("#task", label="pm10 (ug/m3)")
    opened(path).settle()
    assert np.abs(opened(path).values() - first).max() > 0
    labels = page.locator("#limit option").all_inner_texts()
    assert any("50 ug/m3, mean of a day; 35 days" in label for label in labels)
    for look in ({}, PHONE):
        assert amiss(opened(path, axe=True, **look)) == {}
    write_report(fits.two_tasks, path, task="no2")
    text = path.read_text()
    assert "of which no2 is shown" in text
    assert "Not shown of this fit: pm10." in text


@pytest.mark.thorough
def test_a_figure_to_explore_is_drawn_without_a_network(fits, browser, opened, tmp_path):
    rows = fits.coast_grid
    figure = mrgp.predict(fits.coast, rows).explore(fits.coast_parts[1])
    path = tmp_path / "explored.html"
    drawn = figure._repr_mimebundle_(include=None, exclude=None)["text/html"]
    ready = "<script>document.documentElement.dataset.complete = 'yes'</script>"
    path.write_text(f"<!DOCTYPE html><meta charset='utf-8'>{drawn}{ready}")
    shown = opened(path)
    shown.page.wait_for_selector(".js-plotly-plot .heatmaplayer image", state="attached")
    assert shown.said == []
    assert shown.asked == [shown.address]
    plot = "document.querySelector('.js-plotly-plot')"
    steps = shown.page.evaluate(f"{plot}._fullLayout.sliders[0].steps.map((step) => step.label)")
    assert steps[:2] == ["2022-02-19 06:00", "2022-02-19 12:00"]
    visible = f"{plot}._fullData.map((trace) => trace.visible)"
    before = shown.page.evaluate(visible)
    shown.page.locator(".slider-grip-rect").press("ArrowRight")
    shown.page.locator(".slider-rail-touch-rect").first.click(force=True)
    shown.settle()
    assert shown.page.evaluate(visible) != before
    found = mrgp.predict(fits.coast, map_support(fits, "2022-02-19T06:00"))
    np.testing.assert_allclose(np.array(figure.data[0].z), on_map(found.mean), rtol=1e-9)
    assert "ug/m3" in figure.data[0].hovertemplate
    assert "2022-02-19 06:00" in figure.data[0].hovertemplate


def test_times_are_kept_in_seconds_whatever_their_zone(plotly, opened, tmp_path):
    hours = pd.date_range("2022-07-01T12:00", periods=4, freq="h", tz="Europe/London")
    seen = mrgp.from_frame(pd.DataFrame({"time": hours, "y": range(4)}), ["time"], "y")
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), optimiser=FEW)
    write_report(fit, tmp_path / "page.html", grid=seen.support)
    shown = opened(tmp_path / "page.html")
    assert shown.page.evaluate("content.grid.x.values[0]") == "2022-07-01 12:00"
    with netcdf_file(saved(shown, "netcdf").path(), mmap=False) as read:
        there = pd.to_datetime(read.variables["time"][:], unit="s", utc=True)
    assert list(there) == list(hours)


def test_counts_of_a_site_are_not_drawn_beside_the_rate_of_the_map(plotly, opened, tmp_path):
    days = pd.date_range("2022-02-19", periods=3, freq="D")
    sites = itertools.product(days, [(0.0, 51.0), (0.2, 51.0), (0.0, 51.2), (0.2, 51.2)])
    frame = pd.DataFrame([(day, *place, 3, 100.0) for day, place in sites])
    frame.columns = ["time", "lon", "lat", "cases", "people"]
    about = {"likelihood": mrgp.Poisson(), "crs": "EPSG:4326", "units": "1/person"}
    seen = mrgp.from_frame(frame, ["lon", "lat", "time"], "cases", exposure="people", **about)
    data = mrgp.Dataset([seen])
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=FEW)
    write_report(fit, tmp_path / "page.html", data=data, grid=seen.support)
    shown = opened(tmp_path / "page.html")
    shown.page.set_default_timeout(5000)
    assert "mean at the marked place" in traces(shown, "series")
    rate = "cases per unit of exposure"
    assert f"P({rate} > " in shown.readout
    bar = "byId('view').data[0].colorbar.title.text"
    assert shown.page.evaluate(bar) == "mean of cases<br>per unit of exposure (1/person)"
    assert "counts at points" in shown.page.inner_text("section:has(#data)")
    shown.page.select_option("#site", "0/0")
    shown.settle()
    names = traces(shown, "series")
    assert "measured, source" in names
    assert "the map at its cell" not in names
    title = "byId('series').layout.yaxis.title.text"
    assert "1/person" not in shown.page.evaluate(title)
