"""What pointing tells and what can be kept: names, units and times; series, transects, periods."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

from mrgp.report import write_report
from report.cases import degrees
from report.hands import choose, click, saved, traces

LAYER = ".hoverlayer"


def tells(shown, chart, name):
    """Return what pointing at a trace says: its words, with the place of the value left open."""
    found = shown.page.evaluate(
        "([id, name]) => byId(id).data.find((t) => (t.name || '').startsWith(name)).hovertemplate",
        [chart, name],
    )
    return found.removesuffix("<extra></extra>").split("<br>")


def rows_of(shown, button):
    file = saved(shown, button)
    return file.suggested_filename, list(csv.DictReader(io.StringIO(file.path().read_text())))


def test_pointing_at_a_series_tells_whose_it_is_when_and_in_which_unit(shown):
    assert tells(shown, "series", "mean at the marked place") == [
        "mean of no2, lon 1.3, lat 51.2",
        "%{x}",
        "%{y:.4g} ug/m3",
    ]
    choose(shown, "site", label="Bay")
    place, when, value = tells(shown, "series", "measured")
    assert (place, when, value) == ("Bay (laqn), measured", "%{x}", "%{y:.4g} ug/m3")
    assert tells(shown, "series", "predicted")[0] == "Bay (laqn), predicted"
    assert tells(shown, "series", "the map")[0] == "Bay (laqn), the map at its cell"
    # The cells came without units.
    assert tells(shown, "series", "cams says")[0::2] == [
        "cams 2 says, bias included",
        "%{y:.4g}",
    ]
    assert tells(shown, "residuals", "residual") == ["Bay (laqn), residual", "%{x}", "%{y:.2f} sd"]


def test_a_pointer_on_a_series_shows_these_words(shown):
    choose(shown, "site", label="Bay")
    page = shown.page
    page.locator("#series").scroll_into_view_if_needed()
    at = page.evaluate(
        "() => { const chart = byId('series'); const own = chart.data.find((t) =>"
        " (t.name || '').startsWith('measured')); const { xaxis, yaxis } = chart._fullLayout;"
        " const box = chart.getBoundingClientRect(); return [box.left + xaxis._offset +"
        " xaxis.d2p(own.x[8]), box.top + yaxis._offset + yaxis.d2p(own.y[8])]; }"
    )
    page.mouse.move(at[0] - 6, at[1])
    page.mouse.move(*at, steps=3)
    page.wait_for_function("document.querySelectorAll('#series .hoverlayer text').length > 0")
    said = page.locator(f"#series {LAYER}").text_content()
    assert "Bay (laqn)" in said
    assert "ug/m3" in said
    # Plotly shortens a time at midnight to its date.
    assert "2022" in said


def test_pointing_at_a_transect_tells_what_where_and_when(shown):
    shown.page.click("#pick")
    click(shown, 1.0, 51.0)
    click(shown, 1.6, 51.4)
    what, where, when, value = tells(shown, "transect", "mean along")
    assert what == "mean of no2 (ug/m3)"
    assert where == "%{text}, %{x:.4g} km along the transect"
    assert (when, value) == ("2022-02-19 06:00", "%{y:.4g} ug/m3")
    texts = shown.page.evaluate("byId('transect').data.at(-1).text")
    assert texts[0] == "lon 1, lat 51"
    name, rows = rows_of(shown, "transect-csv")
    assert name == "no2-transect-2022-02-19-06-00.csv"
    drawn = traces(shown, "transect")["mean along the transect"]
    np.testing.assert_allclose([float(r["mean"]) for r in rows], drawn["y"], rtol=1e-5)
    np.testing.assert_allclose([float(r["km"]) for r in rows], drawn["x"], rtol=1e-5, atol=1e-9)
    assert (rows[-1]["lon"], rows[-1]["lat"]) == ("1.6", "51.4")
    assert {row["time"] for row in rows} == {"2022-02-19 06:00"}
    assert saved(shown, "transect-png").path().read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_pointing_at_a_score_tells_what_it_is_of(shown):
    choose(shown, "marks", value="error")
    assert tells(shown, "view", "scores of laqn") == [
        "%{text} (laqn)",
        "mean error of no2: %{customdata[0]:.4g} ug/m3",
        "of %{customdata[1]} values, each value predicted from all the others",
    ]
    data = "byId('view').data.find((t) => t.name === 'scores of laqn').customdata.map((c) => c[1])"
    assert shown.page.evaluate(data) == [16] * 5


def test_marks_of_daily_means_are_means_of_the_day_and_say_so(fits, shown):
    choose(shown, "span", label="daily mean")
    shown.page.locator("#slider").fill("1")
    shown.settle()
    assert tells(shown, "view", "laqn") == [
        "%{text}",
        "daily mean, 2022-02-20",
        "mean of its values then: %{customdata:.4g} ug/m3",
    ]
    frame = fits.coast_parts[0]
    day = frame[frame["time"] >= "2022-02-20"].groupby("site")["no2"].mean()
    marks = "byId('view').data.find((t) => t.name === 'laqn')"
    found = shown.page.evaluate(f"[{marks}.customdata, {marks}.text, {marks}.marker.color]")
    by_name = {
        text.split(" (")[0].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"): v
        for v, text in zip(found[0], found[1], strict=True)
    }
    assert by_name == pytest.approx(day.to_dict(), rel=1e-5)
    # They have the colours of the map, as values at a time have.
    assert found[2] == found[0]


def test_a_series_is_kept_as_a_table_and_as_pictures(fits, shown):
    choose(shown, "site", label="Bay")
    name, rows = rows_of(shown, "series-csv")
    assert name == "no2-Bay-laqn-series.csv"
    frame = fits.coast_parts[0]
    own = np.flatnonzero(frame["site"] == "Bay")
    loo = fits.coast.leave_one_out()["laqn"]
    assert [row["time"] for row in rows][:2] == ["2022-02-19 00:00", "2022-02-19 03:00"]
    expected = {"value": loo.y, "predicted": loo.mean, "residual (sd)": loo.residuals}
    for column, values in expected.items():
        found = [float(row[column]) for row in rows]
        np.testing.assert_allclose(found, values[own], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        [float(row["cams 2"]) for row in rows], fits.coast_parts[1]["cams"].y[32:48], rtol=1e-6
    )
    # The map has four of the sixteen times.
    assert sum(row["map mean"] != "" for row in rows) == 4
    for button in ("series-png", "residuals-png"):
        assert saved(shown, button).path().read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    choose(shown, "site", value="")
    name, rows = rows_of(shown, "series-csv")
    assert name == "no2-marked-place-series.csv"
    assert list(rows[0]) == ["time", "map mean", "map sd"]
    assert not shown.page.is_visible("#residuals-png")
    assert not shown.page.is_visible("#transect-csv") or shown.page.is_visible("#transect")


def colour_title(shown):
    return shown.page.evaluate("byId('view').data[0].colorbar.title.text").replace("<br>", " ")


def test_colours_for_all_times_are_kept_with_the_noise(fits, shown):
    ends = "[byId('view').data[0].zmin, byId('view').data[0].zmax]"
    shown.layer("sd")
    alone = shown.page.evaluate(ends)
    shown.page.check("#noise")
    shown.settle()
    assert "with the noise of laqn" in colour_title(shown)
    low, high = shown.page.evaluate(ends)
    noise = np.sqrt(fits.coast.model.observation_noise(("laqn", "no2")))
    assert (low, high) == pytest.approx(tuple(np.hypot(alone, noise)), rel=1e-5)
    first = shown.values()
    shown.page.locator("#slider").fill("3")
    shown.settle()
    assert shown.page.evaluate(ends) == pytest.approx([low, high])
    assert low - 1e-4 <= min(first.min(), shown.values().min())
    assert max(first.max(), shown.values().max()) <= high + 1e-4
    shown.page.check("input[name=colours][value=shown]")
    shown.settle()
    values = shown.values()
    assert shown.page.evaluate(ends) == pytest.approx([values.min(), values.max()], rel=1e-5)
    shown.layer("mean")
    shown.page.check("input[name=colours][value=all]")
    shown.settle()
    kept = shown.page.evaluate(ends)
    shown.page.uncheck("#noise")
    shown.settle()
    assert shown.page.evaluate(ends) == kept


@pytest.mark.thorough
def test_a_site_has_its_series_where_the_map_has_one_time(fits, plotly, opened, tmp_path):
    grid = degrees([1.1, 1.3, 1.5], [51.1, 51.3], pd.to_datetime(["2022-02-19T06:00"]))
    write_report(fits.coast, tmp_path / "one.html", grid=grid, sites=fits.coast_parts[2])
    shown = opened(tmp_path / "one.html")
    assert not shown.page.is_visible("#series")
    choose(shown, "site", label="Bay")
    found = traces(shown, "series")
    frame = fits.coast_parts[0]
    own = frame[frame["site"] == "Bay"]["no2"]
    np.testing.assert_allclose(found["measured, laqn"]["y"], own, rtol=1e-6)
    assert found["the map at its cell"]["x"] == ["2022-02-19 06:00"]
    assert len(traces(shown, "residuals")["residual"]["y"]) == 16
    assert shown.page.is_visible("#residuals")
    choose(shown, "site", value="")
    assert not shown.page.is_visible("#series")
    assert shown.said == []


@pytest.mark.thorough
def test_dots_beside_a_curve_have_their_units(fits, plotly, opened, tmp_path):
    write_report(fits.curve, tmp_path / "curve.html")
    shown = opened(tmp_path / "curve.html")
    assert tells(shown, "view", "s") == ["s", "hour %{x}", "%{y:.4g} m"]
    assert tells(shown, "view", "mean") == ["mean of value", "hour %{x}", "%{y:.4g} m"]
    shown.type(0.25)
    shown.page.check("input[value=above]")
    shown.settle()
    assert tells(shown, "view", "probability") == ["P(value &gt; 0.25 m)", "hour %{x}", "%{y:.4g}"]


def test_names_that_look_like_a_template_are_shown_as_they_are(fits, shown):
    said = shown.page.evaluate("told({}, 'a %{x} <b>', '%{y}').hovertemplate")
    assert said == "a %&#123;x} &lt;b&gt;<br>%{x}<br>%{y:.4g} %&#123;y}<extra></extra>"
