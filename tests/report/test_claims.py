"""What a page may claim: averaging times, gaps, noise, calibration, units, blank cells."""

import csv
import dataclasses
import io
import re

import numpy as np
import pandas as pd
import pytest
from scipy.io import netcdf_file

import mrgp
from mrgp.distributions import COUNTS
from mrgp.inference import Silent
from mrgp.prediction import Prediction
from mrgp.report import write_report
from mrgp.report.contents import Contents
from mrgp.report.layout import Grid, Layout
from mrgp.report.misgivings import calibration_doubts
from mrgp.report.overlays import outside
from mrgp.report.periods import Clock, clock_of, spans
from mrgp.report.sections import model_section, recipe_words, support_words, whole_numbers
from mrgp.report.sites import sites_of
from mrgp.report.verdicts import Check
from mrgp.supports import Axis
from report.conftest import QUICK
from report.hands import choose, saved, traces

PHONE = {"width": 375, "height": 740, "touch": True}
GAPS = {0: (2, 3), 1: (5,)}
"""Days on which sites have no values."""


def plain_days():
    """Return values of four sites on ten days in plain numbers, some days left out."""
    places = [(0.0, 0.0), (90.0, 10.0), (10.0, 80.0), (95.0, 90.0)]
    rows = [
        (*place, day)
        for i, place in enumerate(places)
        for day in range(10)
        if day not in GAPS.get(i, ())
    ]
    x = np.array(rows, float)
    y = 10 + np.sin(x[:, 2]) + 0.02 * x[:, 0]
    support = mrgp.points(x, inputs=("x", "y", "day"))
    return mrgp.Observations(support, y, name="aqs", task="pm25", units="ug/m3")


def on_days(days):
    side = np.linspace(0.0, 100.0, 6)
    mesh = np.meshgrid(side, side, days, indexing="ij")
    return mrgp.points(np.column_stack([m.ravel() for m in mesh]), inputs=("x", "y", "day"))


@pytest.fixture(scope="module")
def days(plotly, opened, tmp_path_factory):
    path = tmp_path_factory.mktemp("days") / "days.html"
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([plain_days()]), optimiser=QUICK)
    write_report(fit, path, grid=on_days([0.0, 1.0, 2.0, 5.0, 6.0, 7.0]))
    return opened(path)


def test_no_limit_is_offered_where_days_are_plain_numbers(days):
    options = days.page.locator("#limit option").all()[1:]
    assert len(options) == 8
    assert all(option.is_disabled() for option in options)
    said = ", not offered: over how long the values shown are means is not known"
    assert all(said in option.inner_text() for option in options)


@pytest.mark.parametrize(("hours", "over"), [(1, "hour"), (3, ""), (8, "8 hours"), (24, "day")])
def test_windows_are_of_the_averaging_time_that_they_last(fits, hours, over):
    layout, given = Layout.of(fits.coast), fits.coast_grid
    lower, upper = (np.array(bound) for bound in given.bounds)
    upper[:, 2] += hours * 3600.0 / given.axes[2].step
    boxes = mrgp.boxes(lower, upper, inputs=given.inputs)
    grid = Grid.of(dataclasses.replace(boxes, axes=given.axes), layout)
    data = fits.coast_parts[1]
    made = Contents(fits.coast, ("no2",), data, grid, Silent())
    assert made._over(clock_of(data, grid, "no2")) == over
    assert (" 1 hour about" in made.notices()[0]) == (hours == 1)
    label = {1: "hourly mean"}.get(hours, f"{hours}-hour mean")
    assert made._times(over).label == label


def test_a_map_of_instants_beside_values_of_windows_is_of_no_averaging_time(fits):
    grid = Grid.of(fits.coast_grid, Layout.of(fits.coast))
    made = Contents(fits.coast, ("no2",), fits.coast_parts[1], grid, Silent())
    instants = clock_of(fits.coast_parts[1], grid, "no2")
    assert made._over(instants) == "hour"
    assert made._over(instants._replace(length=3600.0)) == ""


def test_the_mean_of_all_times_is_over_the_windows_of_the_values():
    middles = pd.Timestamp("2022-02-19T00:30", tz="UTC").timestamp() + 3600.0 * np.arange(72)
    clock = Clock(Axis("time", 0.0, 3600.0, "h"), middles, 3600.0, 3600.0)
    whole = spans(clock, "no2")[-1]
    assert whole.names == ["2022-02-19 00:00 to 2022-02-22 00:00"]
    assert whole.ends == [(middles[0] - 1800.0, middles[-1] + 1800.0)]


def test_a_tap_on_a_phone_is_one_end_of_a_transect(coast_page, opened):
    """It comes as a touch and as a click, and may be told where the tap before it was."""
    shown = opened(coast_page, **PHONE)
    page = shown.page
    page.tap("#pick")
    for lon, lat, count in ((1.225, 51.2, 1), (1.525, 51.067, 2)):
        page.evaluate("byId('view').scrollIntoView()")
        for _ in range(4):
            shown.settle()
            x, y = page.evaluate(
                "([lon, lat]) => { const { xaxis, yaxis } = byId('view')._fullLayout; const box ="
                " byId('view').getBoundingClientRect(); return [box.left + xaxis._offset +"
                " xaxis.l2p(lon), box.top + yaxis._offset + yaxis.l2p(lat)]; }",
                [lon, lat],
            )
            page.touchscreen.tap(x, y)
            page.wait_for_timeout(300)
            shown.settle()
            if page.evaluate("chosen.ends.length") == count:
                break
        assert page.evaluate("chosen.ends.length") == count
    first, last = page.evaluate("endPlaces().map((end) => [end.x, end.y])")
    # A finger is wider than a cell of the map on a phone.
    assert first == pytest.approx([1.225, 51.2], abs=0.16)
    assert last == pytest.approx([1.525, 51.067], abs=0.16)


def test_lines_and_bands_of_a_site_are_broken_at_days_without_values(days):
    choose(days, "site", label="aqs 1")
    found = traces(days, "series")
    expected = [0, 1, None, 4, 5, 6, 7, 8, 9]
    assert found["predicted for each value"]["x"] == expected
    band = next(trace for name, trace in found.items() if name.startswith("95 %"))
    assert band["x"] == [0, 1, 1, 0, None, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4]
    # The map leaves out days that the data have.
    assert found["the map at its cell"]["x"] == [0, 1, 2, None, 5, 6, 7]
    choose(days, "site", value="")
    assert traces(days, "series")["mean at the marked place"]["x"] == [0, 1, 2, None, 5, 6, 7]
    assert days.said == []


def test_a_time_in_plain_numbers_is_told_with_its_name(days):
    days.page.locator("#slider").fill("3")
    days.settle()
    hover = days.page.evaluate("byId('view').data[0].hovertemplate")
    assert hover.split("<br>")[1:3] == ["x %{x:.0~f}, y %{y:.0~f}", "day 5"]
    assert "<br>day 5<br>" in days.page.evaluate(
        "byId('view').data.find((t) => t.name === 'aqs').hovertemplate"
    )
    assert "<br>day %{x}<br>" in days.page.evaluate("byId('series').data.at(-1).hovertemplate")
    assert ", day 5: mean " in days.readout
    assert saved(days, "csv").suggested_filename == "pm25-day-5.csv"


def test_probabilities_beyond_four_decimals_are_said_to_be(days):
    for threshold, said in ((-1e6, "> 0.9999"), (1e6, "< 0.0001")):
        days.type(threshold)
        assert days.readout.endswith(said)
    days.type(11)
    assert days.page.evaluate("chance(0.25)") == "= 0.2500"


def test_long_titles_are_broken_between_words(days):
    title = "P(deaths per unit of exposure &gt; 3.5 per 1000 births)"
    lines = days.page.evaluate("(title) => wrapped(title, 20)", title)
    assert " ".join(lines) == title
    assert len(lines) == 3


@pytest.mark.thorough
def test_the_title_of_the_colours_is_within_the_drawing(coast_page, opened):
    shown = opened(coast_page)
    shown.page.evaluate(
        "fieldNow().label = 'a quantity of a rather long name ' + 'word '.repeat(9)"
    )
    shown.layer("sd")
    inside = (
        "() => { const of = (e) => e.getBoundingClientRect(); const all = of(byId('view'));"
        " const title = of(byId('view').querySelector('.cbtitle')); return title.top >= all.top - 1"
        " && title.bottom <= all.bottom + 1 && title.right <= all.right + 1; }"
    )
    assert shown.page.evaluate(inside)
    shown.page.evaluate("fieldNow().label = 'no2'")
    shown.layer("mean")


def test_the_noise_is_named_wherever_it_is_in_what_is_shown(shown):
    noise = "with the noise of laqn"
    title = "byId('view').data[0].colorbar.title.text.replaceAll('<br>', ' ')"
    for on in (False, True):
        shown.page.set_checked("#noise", on)
        for layer in ("mean", "sd", "above"):
            shown.layer(layer)
            assert (noise in shown.page.evaluate(title)) == (on and layer != "mean")
        rows = csv.reader(io.StringIO(saved(shown, "csv").path().read_text()))
        columns = next(rows)[3:]
        assert [noise in column for column in columns] == [False, on, on]
        with netcdf_file(saved(shown, "netcdf").path(), mmap=False) as read:
            names = [read.variables[v].long_name.decode() for v in ("mean", "sd", "above")]
        assert [noise in name for name in names] == [False, on, on]
        assert (noise in shown.readout) == on


def test_marks_beside_probabilities_have_a_key(shown):
    assert not shown.page.is_visible("#marks-key")
    shown.layer("above")
    assert "yellow, a value above the threshold" in shown.page.inner_text("#marks-key")
    choose(shown, "marks", value="rmse")
    assert not shown.page.is_visible("#marks-key")


def test_a_picture_of_the_map_has_a_title_and_the_time(shown):
    shown.page.evaluate(
        "() => { window.kept = Plotly.downloadImage; Plotly.downloadImage = (figure) =>"
        " (window.figure = figure.layout); }"
    )
    shown.page.click("#png")
    shown.page.evaluate("() => { Plotly.downloadImage = window.kept; }")
    title, height, drawn = shown.page.evaluate(
        "[figure.title.text.replaceAll('<br>', ' '), figure.height, byId('view').clientHeight]"
    )
    assert title.startswith("NO2, 5 sites and a grid of 4 cells")
    assert title.endswith("mean of no2 (ug/m3), 2022-02-19 06:00")
    assert height > drawn


def test_tables_say_on_a_phone_that_there_are_more_columns(coast_page, opened):
    cue = (
        "Array.from(document.querySelectorAll('.wide'), (wide) => [wide.scrollWidth >"
        " wide.clientWidth + 1, getComputedStyle(wide, '::before').content.includes('sideways')])"
    )
    found = opened(coast_page, **PHONE).page.evaluate(cue)
    assert all(hidden == told for hidden, told in found)
    assert any(hidden for hidden, _ in found)


def counted_register():
    """Return few counts at many places, with exposures."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 4, (30, 2))
    about = {"name": "s", "task": "cases", "units": "per 1000 births"}
    given = {"exposure": np.full(30, 0.5), "likelihood": mrgp.Poisson()}
    support = mrgp.points(x, inputs=("east", "north"))
    return mrgp.Observations(support, rng.poisson(1.0, 30), **about, **given)


def test_parameters_behind_a_link_have_its_scale(fits):
    def units(fit):
        cells = r">([^<]*)</th><td[^>]*>[^<]*</td><td>([^<]*)</td>"
        return dict(re.findall(cells, model_section(fit)))

    assert units(fits.coast)["noise_variance[laqn]"] == "(ug/m3)²"
    behind = units(dataclasses.replace(fits.coast, recipe=mrgp.MRGP(link="log")))
    assert behind["mean.constant"] == "log of the field"
    assert behind["noise_variance[laqn]"] == "(ug/m3)²"


@pytest.mark.thorough
def test_parameters_of_counts_and_shares_have_the_scale_of_their_link():
    seen = counted_register()
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), optimiser=QUICK)
    rows = model_section(fit)
    row = next(line for line in rows.splitlines() if "mean.constant" in line)
    assert "log of the rate" in row
    assert "births" not in rows.split("Parameters</caption>")[1]
    assert "(log of the rate)²" in rows
    shares = {"trials": np.full(30, 9), "exposure": None, "likelihood": mrgp.Binomial()}
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen.replace(**shares)]), optimiser=QUICK)
    assert "probit of the field" in model_section(fit)


def test_intervals_of_counts_say_why_they_hold_more():
    seen = counted_register()
    one = np.ones((1, 30))
    found = Prediction(seen.support, "cases", "s", None, one, one, one, distribution=COUNTS)
    check = Check.of("left out", {seen.process: (found, seen.y)})
    (said,) = whole_numbers(check)
    closed = check.scores[seen.process]["coverage_50"]
    drawn = check.curves()[0]["inside"][9]
    assert closed > drawn
    assert f"The table counts so: {closed:.2g} inside those of 50 %." in said
    assert said.endswith(f"on the dashed lines: {drawn:.2g}.")


def narrow_middle(fits):
    """Return a check whose values are too near, at one site too far, and once very far."""
    found = fits.coast.leave_one_out()["laqn"].prediction()
    frame = fits.coast_parts[0]
    z = 0.2 * np.random.default_rng(0).standard_normal(len(frame))
    site = (frame["site"] == "Cliff").to_numpy()
    z[site] = 3.0 * (-1.0) ** np.arange(site.sum())
    z[np.flatnonzero(site)[5]] = 15.0
    return Check.of("left out", {("laqn", "no2"): (found, found.mean + z * found.std)})


def test_bad_calibration_is_named_by_interval_site_and_value(fits):
    check, layout = narrow_middle(fits), Layout.of(fits.coast)
    names = fits.coast_parts[2]
    places = Grid.of(fits.coast_grid, layout)
    book = names[["lon", "lat"]].to_numpy(float), list(names["site"])
    sites, _ = sites_of(fits.coast, [check], places, book)
    middle, all_of_them, site, value = calibration_doubts(fits.coast, [check], sites, layout)
    assert middle == (
        "Intervals of laqn are too wide in the middle: those of 50 % hold 80 % of the values."
    )
    assert all_of_them == (
        "Intervals of laqn are too narrow: those of 95 % hold 80 % of the values."
    )
    assert site.startswith("At single places of laqn the 95 % intervals hold far fewer values")
    assert site.endswith(": Cliff (0 %).")
    assert value.startswith("The largest residual of laqn is +15.0 sd, Cliff, 2022-02-19 15:00: ")
    # Of a place without a name its coordinates are told.
    said = calibration_doubts(fits.coast, [check], [], layout)[-1]
    assert "sd, lon 1.35, lat 51.15, 2022-02-19 15:00: " in said


def test_values_as_the_model_expects_raise_no_doubts(fits):
    found = fits.coast.leave_one_out()["laqn"].prediction()
    z = np.random.default_rng(1).standard_normal(len(found))
    check = Check.of("left out", {("laqn", "no2"): (found, found.mean + z * found.std)})
    layout = Layout.of(fits.coast)
    sites, _ = sites_of(fits.coast, [check], Grid.of(fits.coast_grid, layout), None)
    assert calibration_doubts(fits.coast, [check], sites, layout) == []


def test_windows_at_points_are_no_cells():
    at = mrgp.boxes([[0.0, 1.0, 0.0]], [[0.0, 1.0, 1.0]], inputs=("x", "y", "day"))
    cells = mrgp.boxes([[0.0, 1.0, 0.0]], [[1.0, 2.0, 1.0]], inputs=("x", "y", "day"))
    words = [support_words(mrgp.Observations(support, [1.0])) for support in (at, cells)]
    assert words == ["means over windows at points", "means over cells"]


def test_a_bias_is_told_in_words(fits):
    fit = dataclasses.replace(fits.coast, recipe=mrgp.MRGP(bias="field", target="laqn"))
    said = recipe_words(fit)
    assert "bias" not in said
    assert "report an offset, a multiple of the field, and a field of their own" in said
    assert "an offset and a multiple of the field." in recipe_words(fits.coast)


def two_areas():
    """Return data of two areas, places of a grid about them, and which of its cells they touch."""
    shapely = pytest.importorskip("shapely")
    shapes = [shapely.box(0.1, 0.1, 2, 1.9), shapely.box(2, 0.1, 3.9, 1.9)]
    areas = mrgp.polygons(shapes, inputs=("east", "north"))
    side = np.arange(-1.5, 6.0)
    mesh = np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2)
    east, north = np.meshgrid((side > 0) & (side < 4), (side > 0) & (side < 2))
    seen = mrgp.Observations(areas, [1.0, 2.0], name="d", task="no2")
    return seen, mrgp.points(mesh, inputs=("east", "north")), east & north


def test_cells_that_no_area_touches_are_known_where_all_data_are_areas():
    seen, given, touched = two_areas()
    grid = Grid.of(given, Layout(("east", "north"), (None, None), (0, 1), None, ()))
    assert outside(mrgp.Dataset([seen]), grid) == np.flatnonzero(~touched).tolist()
    site = mrgp.Observations(given[:3], [1.0, 2.0, 3.0], name="s", task="no2")
    assert outside(mrgp.Dataset([seen, site]), grid) == []
    far = Grid.of(given.affine(np.ones(2), np.full(2, 50.0)), grid.layout)
    assert outside(mrgp.Dataset([seen]), far) == []
    assert outside(None, grid) == []


@pytest.mark.thorough
def test_cells_outside_all_areas_are_blank(plotly, opened, tmp_path):
    seen, given, touched = two_areas()
    data = mrgp.Dataset([seen])
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK)
    write_report(fit, tmp_path / "page.html", data=data, grid=given)
    shown = opened(tmp_path / "page.html")
    found = shown.values().astype(float)
    np.testing.assert_array_equal(np.isnan(found), ~touched)
    ends = shown.page.evaluate("[byId('view').data[0].zmin, byId('view').data[0].zmax]")
    assert ends == pytest.approx([np.nanmin(found), np.nanmax(found)], rel=1e-6)
    assert "outside all areas of the data are left blank" in shown.page.inner_text("#about")
    rows = list(csv.DictReader(io.StringIO(saved(shown, "csv").path().read_text())))
    assert [row["mean"] == "" for row in rows] == np.isnan(found).ravel().tolist()
    shown.page.evaluate("Object.assign(chosen, {row: 7, column: 7}); redraw()")
    shown.settle()
    assert shown.readout.endswith(": outside all areas of the data")
    assert shown.said == []
