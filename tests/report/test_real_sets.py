"""Pages of recorded data: London with cells, counts of counties, monitors beside a model."""

import os
import re

import numpy as np
import pandas as pd
import pytest

import mrgp
from mrgp.datasets import fusion
from mrgp.datasets.cases import data_file
from mrgp.report import write_report
from report.cases import amiss, degrees
from report.hands import choose, traces

PHONE = {"width": 375, "height": 740}
FEW = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.usefixtures("plotly"),
    pytest.mark.skipif("MRGP_DATA" not in os.environ, reason="MRGP_DATA names no recorded data"),
]


def looked_at(opened, path, *words):
    """Open a page on a screen and on a phone, and return it: no fault, nothing from outside."""
    shown = opened(path)
    assert shown.said == []
    assert shown.asked == [shown.address]
    text = shown.page.inner_text("body")
    for word in words:
        assert word in text, word
    assert np.nanmax(shown.layer("above")) <= 1
    shown.layer("mean")
    assert opened(path, **PHONE).wide <= 0
    assert amiss(opened(path, axe=True)) == {}
    return shown


def test_monitors_beside_a_model_in_a_plane_whose_place_on_earth_is_given(opened, tmp_path):
    held = fusion("0", stride=101)
    fit = mrgp.fit(mrgp.MRGP(bias="affine", target="aqs"), held.data, optimiser=FEW)
    aqs = mrgp.Observations(held.support, held.y, task="pm25", name="aqs", units="ug/m3")
    path = tmp_path / "fusion.html"
    about = {"data": held.data, "held_out": mrgp.Dataset([aqs])}
    write_report(fit, path, **about, crs="EPSG:5070 in km")
    shown = looked_at(
        opened, path, "aqs", "cmaq", "Held-out values", "pm25 (ug/m3)", "31 to 36.9° N"
    )
    first = shown.values()
    shown.page.press("#slider", "ArrowRight")
    shown.settle()
    assert np.abs(shown.values() - first).max() > 0
    # The border of Georgia and Alabama meets Tennessee at 85.6 degrees west and 35 north.
    states = traces(shown, "view")["state"]
    x, y = (np.array([np.nan if v is None else v for v in states[side]]) for side in "xy")
    assert np.nanmin(np.hypot(x - 938.6, y - 1375.5)) < 5.0
    labels = shown.page.evaluate("[content.grid.x.label, content.grid.km]")
    assert labels == ["x (km)", [1.0, 1.0]]
    write_report(fit, path, **about)
    text = path.read_text()
    assert "There is no coast on this map: x and y are plain numbers" in text
    assert re.search(r"<title>PM2.5, .*, x \d+ to 1,\d+ and y [\d,]+ to 1,\d+, day 0 to 29<", text)


def test_sensors_of_london_and_a_coarse_source_of_cells(opened, tmp_path):
    table = pd.read_csv(
        data_file("laqn_2022/window_no2_2022-02-19_to_21.csv"), parse_dates=["time"]
    )
    places = pd.read_csv(data_file("laqn_2022/laqn_site_metadata.csv")).set_index("@SiteCode")
    table = (
        table[table["time"] < "2022-02-19T12:00"]
        .rename(columns={"no2": "value"})
        .dropna(subset="value")
    )
    for column, name in (("lon", "@Longitude"), ("lat", "@Latitude"), ("name", "@SiteName")):
        table[column] = table["site"].map(places[name])
    crs = {"crs": "EPSG:4326", "units": "ug/m3"}
    sensors = mrgp.from_frame(
        table, ["lon", "lat", "time"], "value", task="no2", name="laqn", **crs
    )
    cells = table.assign(
        lon_lower=np.floor(table["lon"] / 0.2) * 0.2, lat_lower=np.floor(table["lat"] / 0.2) * 0.2
    )
    cells = cells.groupby(["lon_lower", "lat_lower", "time"], as_index=False)["value"].mean()
    cells = cells.assign(
        lon_upper=cells["lon_lower"] + 0.2,
        lat_upper=cells["lat_lower"] + 0.2,
        time_upper=cells["time"],
    )
    cells["value"] = 0.6 * cells["value"] + 5.0
    ends = {
        "start": ["lon_lower", "lat_lower", "time"],
        "end": ["lon_upper", "lat_upper", "time_upper"],
    }
    blocks = mrgp.from_frame(
        cells, y="value", inputs=("lon", "lat", "time"), name="blocks", task="no2", **ends, **crs
    )
    data = mrgp.Dataset([sensors, blocks])
    fit = mrgp.fit(mrgp.MRGP(bias="affine", target="laqn"), data, optimiser=FEW)
    hour = pd.to_datetime(["2022-02-19T06:00"])
    grid = degrees(np.linspace(-0.5, 0.3, 9), np.linspace(51.3, 51.7, 7), hour)
    names = table[["lon", "lat", "name"]].drop_duplicates()
    write_report(fit, tmp_path / "london.html", data=data, grid=grid, sites=names)
    shown = looked_at(
        opened,
        tmp_path / "london.html",
        "London, 19 February 2022",
        "Each value predicted from all the others",
        "simple rules",
    )
    choose(shown, "site", label="Camden - Bloomsbury")
    own = table[table["name"] == "Camden - Bloomsbury"]
    found = traces(shown, "series")
    np.testing.assert_allclose(found["measured, laqn"]["y"], own["value"], rtol=1e-6)
    assert any(name.startswith("blocks says") for name in found)


def test_counts_of_counties_with_births(opened, tmp_path):
    geopandas = pytest.importorskip("geopandas")
    counties = geopandas.read_file(data_file("nc_sids/nc_sids.geojson"))
    counties["births"] = counties["births_1974_78"] / 1000
    about = {"likelihood": mrgp.Poisson(), "exposure": "births", "name": "register"}
    register = mrgp.from_frame(
        counties, y="sids_1974_78", geometry="geometry", task="infant deaths", **about
    )
    data = mrgp.Dataset([register])
    with pytest.warns(UserWarning, match="equidistant cylindrical projection"):
        fit = mrgp.fit(mrgp.MRGP(), data, optimiser=FEW)
    write_report(fit, tmp_path / "counties.html", data=data)
    shown = looked_at(
        opened,
        tmp_path / "counties.html",
        "Infant deaths, 100 areas, 84.3 to 75.5° W, 33.9 to 36.6° N",
        "The map is of a rate: counts for one unit of their exposure.",
        "the best of three simple rules, the rate of ",
        "times the exposure",
    )
    assert {"coast", "state", "register"} <= set(traces(shown, "view"))
