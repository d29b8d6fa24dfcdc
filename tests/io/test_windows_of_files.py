"""Cells, windows, units and known fields of a configuration, by the command line."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mrgp
from mrgp.cli import command
from mrgp.config.checking import read_config
from mrgp.config.schema import ConfigError
from mrgp.io.sources import read_data

CELLS = """
inputs = ["lon", "lat", "time"]

[sources.cells]
file = "cells.csv"
y = "no2"
start = ["lon_min", "lat_min", "from"]
end = ["lon_max", "lat_max", "until"]
crs = "EPSG:4326"
"""
BRIEF = """
[model]
recipe = "MRGP"
optimiser = { name = "LBFGS", max_steps = 2, starts = 1, candidates = 0 }
"""


def cells():
    low = pd.DataFrame({"lon_min": [-0.2, -0.1, -0.2, -0.1], "lat_min": [51.4, 51.4, 51.5, 51.5]})
    high = pd.DataFrame({"lon_max": low["lon_min"] + 0.1, "lat_max": low["lat_min"] + 0.1})
    start = pd.Timestamp("2022-02-19")
    times = {"from": start, "until": start + pd.Timedelta("1D"), "no2": [3.0, 5.0, 4.0, 6.0]}
    return low.join(high).assign(**times)


def read(folder, text):
    (folder / "other.toml").write_text(text)
    return read_data(read_config(folder / "other.toml"))


def test_cells_are_columns_of_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells().to_csv("cells.csv", index=False)
    found = read(tmp_path, CELLS + BRIEF)["cells"]
    corners = ["lon_min", "lat_min", "from"], ["lon_max", "lat_max", "until"]
    wanted = mrgp.from_frame(cells(), y="no2", start=corners[0], end=corners[1], crs="EPSG:4326")
    assert found.support.inputs == ("lon", "lat", "time")
    np.testing.assert_allclose(found.support.bounds, wanted.support.bounds)
    assert command(["fit", "other.toml", "--quiet"]) == 0
    cells().drop(columns="no2").to_csv("places.csv", index=False)
    assert command(["predict", "fit.mrgp", "--at", "places.csv", "--quiet"]) == 0
    fit = mrgp.load("fit.mrgp")
    means = mrgp.predict(fit, found.support).mean
    np.testing.assert_allclose(pd.read_csv("prediction.csv")["mean"], means, rtol=1e-6)


CENTRES = """
inputs = ["lon", "lat", "time"]

[sources.cells]
file = "centres.csv"
y = "no2"
x = ["Longitude", "lat", "when"]
width = { Longitude = 0.1, lat = 0.1, when = "1D" }
crs = "EPSG:4326"
"""


def test_cells_of_a_table_have_a_width_about_their_centres(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = cells()
    frame.to_csv("cells.csv", index=False)
    centres = {"Longitude": frame["lon_min"] + 0.05, "lat": frame["lat_min"] + 0.05}
    centres |= {"when": frame["from"] + pd.Timedelta("12h"), "no2": frame["no2"]}
    pd.DataFrame(centres).to_csv("centres.csv", index=False)
    found, wanted = (read(tmp_path, text)["cells"].support for text in (CENTRES, CELLS))
    assert found.inputs == wanted.inputs
    np.testing.assert_allclose(found.bounds, wanted.bounds, atol=1e-9)
    for old, new, told in (
        ("lat = 0.1,", "latt = 0.1,", "width = names 'latt', which x = does not; it has"),
        ("lat = 0.1,", 'lat = "1h",', "width of 'lat' must be a number"),
    ):
        (tmp_path / "c.toml").write_text(CENTRES.replace(old, new))
        assert command(["fit", "c.toml"]) == 1
        assert told in capsys.readouterr().err


def test_start_and_end_need_as_many_columns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cells().to_csv("cells.csv", index=False)
    (tmp_path / "c.toml").write_text(CELLS.replace('"lat_max", ', ""))
    assert command(["fit", "c.toml"]) == 1
    said = capsys.readouterr().err
    assert "start = and end = need as many columns; got lon_min, lat_min, from and" in said


@pytest.mark.parametrize(
    ("units", "kept"), [("", "ug/m3"), ('units = "ppb"', "ppb"), ('units = ""', None)]
)
def test_units_of_a_file_are_kept_replaced_or_removed(workplace, units, kept):
    text = (workplace / "city.toml").read_text().split("[sources.sat]")
    alone = 'inputs = ["lon", "lat", "time"]\n[sources.sat]' + text[1].split("[model]")[0]
    assert read(workplace, alone + units)["sat"].units == kept


def test_a_source_with_a_scale_of_its_own_is_not_told_its_units(workplace, capsys):
    with xr.open_dataset("sat.nc") as opened:
        grid = opened.load()
    grid["no2"].attrs["units"] = "1e15 molec/cm2"
    grid.to_netcdf("sat.nc", engine="h5netcdf")
    assert command(["fit", "city.toml"]) == 1
    assert "differ from 'ug/m3'" in (said := capsys.readouterr().err)
    assert 'give units="" to a source that has a scale of its own' in said
    text = (workplace / "city.toml").read_text()
    text = text.replace('variable = "no2"\n', 'variable = "no2"\nunits = ""\n')
    (workplace / "city.toml").write_text(text)
    assert command(["fit", "city.toml"]) == 0
    assert "has no units" not in capsys.readouterr().err


@pytest.mark.parametrize(("window", "first", "last"), [("1h", 0, 1), ("-1h", -1, 0)])
def test_times_begin_or_end_windows(workplace, window, first, last):
    text = (workplace / "city.toml").read_text().replace("crs =", f'window = "{window}"\ncrs =')
    plain, found = read_data(read_config(workplace / "city.toml")), read(workplace, text)
    for source in ("sensors", "sat"):
        time = np.asarray(plain[source].support.bounds[0])[:, 2]
        lower, upper = (np.asarray(side)[:, 2] for side in found[source].support.bounds)
        np.testing.assert_allclose(lower, time + first)
        np.testing.assert_allclose(upper, time + last)


def test_a_window_is_a_duration_and_has_no_ends_beside_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cells().to_csv("cells.csv", index=False)
    for window, told in (("soon", "'soon' is no duration"), ("1h", "exclude each other")):
        (tmp_path / "c.toml").write_text(f'{CELLS}window = "{window}"\n')
        assert command(["fit", "c.toml"]) == 1
        assert told in capsys.readouterr().err


def test_daily_means_at_sites_and_on_a_grid(city, tmp_path):
    sites = pd.DataFrame({"site": ["a", "b"], "lon": [-0.2, 0.0], "lat": [51.45, 51.55]})
    sites.to_csv(tmp_path / "sites.csv", index=False)
    out, fit = tmp_path / "out.csv", mrgp.load(city.fit)
    asked = ["predict", str(city.fit), "--quiet", "--window", "2h", "--exceeds", "30"]
    at = [*asked, "--at", str(tmp_path / "sites.csv"), "--times", "2022-02-19/2022-02-19T02:00/2h"]
    assert command([*at, "--out", str(out)]) == 0
    found = pd.read_csv(out)
    assert found["site"].tolist() == ["a", "a", "b", "b"]
    start = pd.to_datetime(found["time"])
    frame = found[["lon", "lat"]].assign(start=start, end=start + pd.Timedelta("2h"))
    support = mrgp.from_frame(frame, ["lon", "lat"], start="start", end="end", crs="EPSG:4326")
    wanted = mrgp.predict(fit, support)
    np.testing.assert_allclose(found["mean"], wanted.mean, rtol=1e-6)
    np.testing.assert_allclose(found["exceedance"], wanted.exceedance(30.0), atol=1e-6)
    grid = [*asked, "--grid", "lon=-0.2:0.0:0.2,lat=51.45,time=2022-02-19"]
    assert command([*grid, "--out", str(tmp_path / "map.nc")]) == 0
    with xr.open_dataset(tmp_path / "map.nc") as maps:
        np.testing.assert_allclose(maps["mean"].isel(lon=0).item(), wanted.mean[0], rtol=1e-6)
        hours = np.diff(maps["time_bounds"].to_numpy()) / np.timedelta64(1, "h")
        assert hours.ravel().tolist() == [2.0]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--at", "test.csv", "--times", "2022-02-19"], "test.csv has times already"),
        (["--grid", "lon=0", "--times", "2022-02-19"], "--times goes with --at"),
        (["--at", "test.csv", "--window", "long"], "'long' is no duration"),
        (["--at", "sites.csv", "--times", "soon"], "--times: time=soon is neither a date"),
    ],
)
def test_wrong_times_and_windows_are_told(city, workplace, capsys, asked, told):
    (workplace / "sites.csv").write_text("lon,lat\n0.0,51.5\n")
    assert command(["predict", str(city.fit), *asked]) == 1
    assert told in capsys.readouterr().err


def hills(folder, **coords):
    lat, lon = coords.get("lat", [51.3, 51.5, 51.7]), [-0.4, -0.1, 0.2]
    height = xr.DataArray(np.arange(9.0).reshape(3, 3), {"latitude": lat, "longitude": lon})
    grid = xr.Dataset({"dem": height.expand_dims(band=[1]), "other": height})
    grid.to_netcdf(folder / "hills.nc", engine="h5netcdf")
    return height


def test_known_fields_come_from_grids_and_maps_find_them(workplace, capsys):
    height = hills(workplace)
    text = (workplace / "city.toml").read_text().split("[model]")[0]
    known = '[covariates.height]\nfile = "hills.nc"\nvariable = "dem"\n'
    (workplace / "hills.toml").write_text(text + known + BRIEF)
    assert command(["fit", "hills.toml", "--quiet"]) == 0
    fit = mrgp.load("fit.mrgp")
    assert fit.inputs == ("lon", "lat", "time", "height")
    assert list(fit.effects().index) == ["height"]
    grid = "lon=-0.2:0:0.1,lat=51.5,time=2022-02-19T01:00"
    assert command(["predict", "fit.mrgp", "--grid", grid, "--out", "map.nc"]) == 0
    with xr.open_dataset("map.nc") as maps:
        found = maps["mean"].to_numpy().ravel()
    places = pd.DataFrame({"lon": [-0.2, -0.1, 0.0], "lat": 51.5})
    places["time"] = pd.Timestamp("2022-02-19T01:00")
    bare = mrgp.from_frame(places, ["lon", "lat", "time"], crs="EPSG:4326")
    wanted = mrgp.predict(
        fit, bare.with_covariates(height.rename("height", longitude="lon", latitude="lat"))
    )
    np.testing.assert_allclose(found, wanted.mean, rtol=1e-6)
    assert command(["evaluate", "fit.mrgp", "test.csv", "--json"]) == 0


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("hills.nc", "hill.nc", "covariate 'height', hill.nc: There is no file hill.nc. Did you"),
        ("dem", "demm", "there is no variable 'demm'; the variables are"),
        ('variable = "dem"', "", "variable = must name one of"),
        ("hills.nc", "hills.csv", "grids end in .nc, .zarr. Columns of a table are covariates ="),
        ("variable", "varable", "there is no key 'covariates.height.varable'. Did you mean"),
    ],
)
def test_wrong_fields_are_named(workplace, capsys, old, new, told):
    hills(workplace)
    text = (workplace / "city.toml").read_text().split("[model]")[0]
    known = '[covariates.height]\nfile = "hills.nc"\nvariable = "dem"\n'.replace(old, new)
    (workplace / "hills.toml").write_text(text + known)
    assert command(["fit", "hills.toml"]) == 1
    assert told in capsys.readouterr().err


def test_a_field_that_does_not_reach_all_places_is_named(workplace, capsys):
    hills(workplace, lat=[40.0, 40.1, 40.2])
    text = (workplace / "city.toml").read_text().split("[model]")[0]
    known = '[covariates.height]\nfile = "hills.nc"\nvariable = "dem"\n'
    (workplace / "hills.toml").write_text(text + known)
    assert command(["fit", "hills.toml"]) == 1
    said = capsys.readouterr().err
    assert "covariate 'height', hills.nc: The field 'height' is missing" in said


KNOWN = """
inputs = ["lon", "lat"]

[sources.s]
file = "s.csv"
y = "no2"
x = ["lon", "lat"]
crs = "EPSG:4326"

[covariates.height]
file = "known.nc"
"""


def known(folder, dims, values=None):
    """Read heights lon + 10 lat at three sites from a grid with dimensions of some names."""
    side = np.linspace(4.0, 11.0, 8)
    height = side[None, :] + 10 * side[:, None] if values is None else values
    field = xr.Dataset({"height": (dims, height)}, dict.fromkeys(dims, side))
    field.to_netcdf(folder / "known.nc", engine="h5netcdf")
    (folder / "s.csv").write_text("lon,lat,no2\n5,8,1\n6.5,9,2\n7,7,3\n")
    (folder / "known.toml").write_text(KNOWN)
    support = read_data(read_config(folder / "known.toml"))["s"].support
    return np.asarray(support.bounds[0])[:, 2]


@pytest.mark.parametrize("dims", [("y", "x"), ("lat", "lon"), ("northing", "easting")])
def test_the_order_of_dimensions_does_not_turn_a_known_field(tmp_path, dims):
    np.testing.assert_allclose(known(tmp_path, dims), [85.0, 96.5, 77.0])


def test_a_dimension_of_a_known_field_that_means_nothing_is_refused(tmp_path):
    told = "the dimension 'row' of 'height' is none of the inputs, lon, lat. Rename it"
    with pytest.raises(ConfigError, match=told):
        known(tmp_path, ("row", "lon"))


def test_fills_of_a_known_field_are_missing_and_places_are_in_degrees(tmp_path):
    values = np.where(np.arange(8) < 2, -9999.0, np.arange(64.0).reshape(8, 8))
    told = r"'height' is missing .* 1 of 3 regions, first in region 0 at lat 8\.0+, lon 5\.0+"
    with (
        pytest.warns(UserWarning, match="variable 'height': 16 of 64 values are -9999, which"),
        pytest.raises(ValueError, match=told),
    ):
        known(tmp_path, ("lat", "lon"), values)
