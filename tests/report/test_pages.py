"""Pages as a reader uses them: in a browser, by mouse, keyboard and on a phone."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest

import mrgp
from groups import rest_thorough
from mrgp.datasets import city
from mrgp.report import write_report
from mrgp.report.layout import Grid, Layout
from report.cases import HOSTILE, amiss, degrees
from report.conftest import QUICK

PHONE = {"width": 375, "height": 740}
MOST_BYTES = 15_000_000
MOST_SECONDS = 2.0
"""Of CPU, to open the largest page."""
KINDS = ("city", "curve", "deep", "london")


class Pages(dict):
    """The pages of all kinds of fits, each written when it is first asked for."""

    def __init__(self, fits, folder):
        self.fits, self.folder = fits, folder

    def __missing__(self, kind):
        fits, options = self.fits, {}
        if kind == "city":
            options = {"grid": city(0).support[::4]}
        elif kind == "deep":
            options = {"data": fits.deep_data}
        elif kind == "london":
            held_out = fits.london_data.select(source="laqn")
            options = {"data": fits.london_data, "held_out": held_out}
        path = self.folder / f"{kind}.html"
        write_report(getattr(fits, kind), path, **options)
        return self.setdefault(kind, path)


@pytest.fixture(scope="session")
def pages(fits, plotly, tmp_path_factory):
    return Pages(fits, tmp_path_factory.mktemp("pages"))


each_kind = pytest.mark.parametrize("kind", rest_thorough(KINDS, "city"))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing_amiss_on_any_kind_of_page(kind, pages, opened):
    assert amiss(opened(pages[kind], axe=True)) == {}


@each_kind
def test_a_page_is_complete_in_itself_and_says_nothing_to_the_console(kind, pages, opened):
    shown = opened(pages[kind])
    assert shown.said == []
    assert shown.asked == [shown.address]
    assert shown.page.evaluate("window.hit") is None
    assert shown.page.title() == shown.page.inner_text("h1")


def test_no_button_would_send_the_data_away(pages, opened):
    page = opened(pages["city"]).page
    titles = "Array.from(document.querySelectorAll('.modebar-btn'), (b) => b.dataset.title)"
    known = {"Download plot as a PNG", "Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes"}
    assert set(page.evaluate(titles)) == known
    away = "document.querySelectorAll('a[href]:not([href^=\"#\"]), form[action]').length"
    assert page.evaluate(away) == 0
    policy = page.get_attribute("meta[http-equiv]", "content")
    assert policy.startswith("default-src 'none'")


@each_kind
def test_a_page_is_marked_up_for_all_readers(kind, pages, opened):
    page = opened(pages[kind]).page
    levels = page.evaluate("Array.from(document.querySelectorAll('h1,h2,h3,h4'), (h) => h.tagName)")
    numbers = [int(tag[1]) for tag in levels]
    assert numbers[0] == 1
    assert numbers.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(numbers))
    lacking = (
        "Array.from(document.querySelectorAll('input,select'), (e) => e.labels.length)"
        ".filter((count) => count === 0).length"
    )
    assert page.evaluate(lacking) == 0
    bare = "document.querySelectorAll('table').length - document.querySelectorAll('caption').length"
    assert page.evaluate(bare) == 0
    drawings = "Array.from(document.querySelectorAll('.chart,.view'), (e) => e.ariaLabel)"
    assert all(page.evaluate(drawings))


@each_kind
def test_nothing_is_wider_than_a_phone(kind, pages, opened):
    shown = opened(pages[kind])
    shown.page.set_viewport_size(PHONE)
    shown.settle()
    assert shown.wide == 0
    for name in ("#threshold", "input[value=above]", "#view"):
        box = shown.page.locator(name).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
    shown.page.set_viewport_size({"width": 1280, "height": 900})
    shown.settle()


def at_cells(fit, support, **asked):
    """Return a prediction, and the order in which a page has its cells."""
    index = Grid.of(support, Layout.of(fit)).index
    return mrgp.predict(fit, support, **asked), index


def test_layers_and_thresholds_are_those_of_the_prediction(fits, pages, opened):
    shown = opened(pages["city"])
    found, index = at_cells(fits.city, city(0).support[::4])
    np.testing.assert_allclose(shown.layer("mean"), found.mean[index[0]], rtol=1e-5)
    np.testing.assert_allclose(shown.layer("sd"), found.std[index[0]], rtol=1e-5)
    for threshold in (20.0, 27.5, 34.0):
        shown.type(threshold)
        expected = found.exceedance(threshold)[index[0]]
        np.testing.assert_allclose(shown.layer("above"), expected, atol=2e-5)
    assert "27" not in shown.readout
    assert "P(no2 > 34 ug/m3) = " in shown.readout
    shown.page.fill("#threshold", "")
    assert shown.page.get_attribute("#threshold", "aria-invalid") == "true"
    shown.type(34)
    assert shown.page.get_attribute("#threshold", "aria-invalid") == "false"
    shown.layer("mean")


def test_pointing_at_a_cell_tells_its_values(fits, pages, opened):
    shown = opened(pages["city"])
    shown.layer("mean")
    before = shown.readout
    for label in shown.page.locator("#shown-sources label").all():
        label.locator("input").uncheck()
    shown.settle()
    assert shown.page.evaluate("byId('view').data.length") == 2
    plot = shown.page.locator("#view .nsewdrag").first.bounding_box()
    place = (plot["x"] + 0.3 * plot["width"], plot["y"] + 0.3 * plot["height"])
    shown.page.mouse.move(place[0] - 20, place[1])
    shown.page.mouse.move(*place, steps=3)
    shown.page.wait_for_function("(old) => byId('readout').textContent !== old", arg=before)
    east, north, mean = map(
        float, re.search(r"east (.*?), north (.*?): mean (.*?) ug", shown.readout).groups()
    )
    found = mrgp.predict(fits.city, mrgp.points([[east, north]], inputs=("east", "north")))
    assert mean == pytest.approx(float(found.mean[0]), rel=1e-3)
    assert "hoverlayer" in shown.page.inner_html("#view")
    for label in shown.page.locator("#shown-sources label").all():
        label.locator("input").check()
    shown.settle()
    assert shown.page.evaluate("byId('view').data.length") > 2


@pytest.mark.thorough
def test_the_keyboard_reaches_and_moves_everything(pages, opened):
    page = opened(pages["london"]).page
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    page.locator("nav a").last.focus()
    reached = []
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.type"))
    # The map comes first, its slider, and then the controls.
    order = ["view", "slider", "site", "radio", "threshold", "checkbox", "marks", "pick", "csv"]
    assert sorted(order, key=reached.index) == order
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    page.focus("#slider")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(outline) == "solid"
    assert page.inner_text("#slider-value") == "2022-02-19 01:00"
    assert page.get_attribute("#slider", "aria-valuetext") == "2022-02-19 01:00"
    page.focus("input[value=mean]")
    page.keyboard.press("ArrowDown")
    assert page.is_checked("input[value=sd]")
    page.keyboard.press("ArrowUp")
    before = page.inner_text("#readout")
    page.focus("#view")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    page.wait_for_function("(old) => byId('readout').textContent !== old", arg=before)
    page.focus("#slider")
    page.keyboard.press("Home")


@pytest.mark.thorough
def test_the_slider_goes_through_time_with_the_sources_beside(fits, pages, opened):
    shown = opened(pages["london"])
    axes = shown.page.evaluate("[content.grid.x.values, content.grid.y.values]")
    hours = pd.date_range("2022-02-19", periods=4, freq="h")
    assert shown.page.get_attribute("#slider", "max") == "3"
    for step in (2, 0):
        shown.page.locator("#slider").fill(str(step))
        shown.settle()
        support = degrees(axes[0], axes[1], hours[[step]])
        found, index = at_cells(fits.london, support)
        np.testing.assert_allclose(shown.layer("mean"), found.mean[index[0]], rtol=1e-4)
        marks = "byId('view').data.find((t) => t.name === 'laqn').customdata"
        there = fits.london_frame[fits.london_frame["time"] == hours[step]].dropna()
        np.testing.assert_allclose(
            np.sort(shown.page.evaluate(marks)), np.sort(there["no2"]), rtol=1e-6
        )
    labels = shown.page.locator("#shown-sources label").all_inner_texts()
    assert labels[1].strip().endswith(HOSTILE)
    assert shown.page.locator("td, th", has_text="<script>").count() > 0


@pytest.mark.thorough
def test_one_input_is_a_curve_with_its_band_and_data(fits, pages, opened):
    shown = opened(pages["curve"])
    shown.page.check("input[value=mean]")
    shown.settle()
    assert not shown.page.is_visible("#slider")
    traces = shown.page.evaluate("byId('view').data.map((t) => ({name: t.name, x: t.x, y: t.y}))")
    named = {trace.get("name"): trace for trace in traces}
    assert {"mean", "95 % interval", "s", "w"} <= set(named)
    found = mrgp.predict(
        fits.curve, mrgp.points(np.array(named["mean"]["x"])[:, None], inputs="hour")
    )
    np.testing.assert_allclose(named["mean"]["y"], found.mean, atol=1e-4)
    np.testing.assert_allclose(named["95 % interval"]["y"], found.interval(0.95)[1], atol=1e-4)
    shown.type(0.25)
    shown.page.check("input[value=above]")
    shown.settle()
    curve = shown.page.evaluate("Array.from(byId('view').data[0].y)")
    np.testing.assert_allclose(curve, found.exceedance(0.25), atol=1e-4)


@pytest.mark.thorough
def test_a_mixture_is_as_close_as_the_page_says(fits, pages, opened):
    shown = opened(pages["deep"])
    error, most = shown.page.evaluate(
        "[content.spans[0].fields[0].error, content.spans[0].fields[0].most]"
    )
    assert most == 40
    assert shown.page.evaluate("content.biased") == ["coarse"]
    assert error < 0.02
    x = np.array(shown.page.evaluate("content.grid.x.values"))
    found = mrgp.predict(fits.deep, mrgp.points(x[:, None]))
    for threshold in (0.0, 0.4, 0.8):
        shown.type(threshold)
        shown.page.check("input[value=above]")
        shown.settle()
        curve = shown.page.evaluate("Array.from(byId('view').data[0].y)")
        np.testing.assert_allclose(curve, found.exceedance(threshold), atol=max(2 * error, 1e-4))
    assert "mixture of 40 Gaussians" in shown.page.inner_text("#about")
    assert shown.page.locator("#bias-0 .main-svg").count() > 0
    assert "In sample" in shown.page.inner_text("main")


def sites_and_hours():
    """Return three days of hourly values at sixty sites of London."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"lon": rng.uniform(-0.3, 0.1, 60), "lat": rng.uniform(51.4, 51.6, 60)})
    hours = pd.DataFrame({"time": pd.date_range("2022-02-19", periods=72, freq="h")})
    frame = frame.merge(hours, how="cross")
    frame["no2"] = rng.normal(30, 5, len(frame))
    about = {"crs": "EPSG:4326", "name": "laqn", "units": "µg/m³"}
    return mrgp.Dataset([mrgp.from_frame(frame, ["lon", "lat", "time"], "no2", **about)])


@pytest.fixture(scope="module")
def large(plotly, tmp_path_factory):
    """Write the largest page that is promised; the fit has every twelfth hour of its sites."""
    data = sites_and_hours()
    rows = np.arange(60 * 72) % 72 % 12 == 0
    seen = mrgp.Dataset([data["laqn"][rows]])
    fit = mrgp.fit(mrgp.MRGP(mrgp.Matern12()), seen, optimiser=QUICK)
    east, north = np.linspace(-0.3, 0.1, 100), np.linspace(51.4, 51.6, 100)
    support = degrees(east, north, pd.date_range("2022-02-19", periods=72, freq="h"))
    path = tmp_path_factory.mktemp("large") / "large.html"
    return fit, support, write_report(fit, path, grid=support, held_out=data)


@pytest.mark.thorough
def test_a_hundred_by_a_hundred_cells_three_days_and_sixty_sites_open_at_once(large, opened):
    fit, support, written = large
    assert written.size < MOST_BYTES
    shown = opened(written.path, measured=True)
    assert shown.seconds < MOST_SECONDS
    assert shown.said == []
    assert shown.asked == [shown.address]
    # The sites that were fitted, and the same as held out; the first option is none.
    assert shown.page.locator("#site option").count() == 121
    shown.page.locator("#slider").fill("50")
    shown.settle()
    assert shown.page.inner_text("#slider-value") == "2022-02-21 02:00"
    found = mrgp.predict(fit, support[50::72])
    ends = shown.page.evaluate("content.spans[0].fields[0].range.mean")
    expected = found.mean.reshape(100, 100).T
    np.testing.assert_allclose(shown.layer("mean"), expected, atol=(ends[1] - ends[0]) / 65535)
    assert shown.said == []


@pytest.mark.thorough
def test_axe_finds_nothing_amiss_on_the_largest_page(large, opened):
    assert amiss(opened(large[2].path, axe=True)) == {}
