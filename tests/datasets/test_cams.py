"""The CAMS loader: both layouts, both formats of NetCDF, and files that are not whole."""

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mrgp
from mrgp.cli import command
from mrgp.datasets import cams
from mrgp.datasets.loaded import Loaded
from mrgp.io.guessing import guess

LON = np.array([0.15, 0.25, 359.75, 359.85, 359.95, 0.05])
LAT = np.array([51.65, 51.55, 51.45, 51.35])
ENGINES = ["scipy", "h5netcdf"]
TRUE_LON = np.array([-0.25, -0.15, -0.05, 0.05, 0.15, 0.25])


@pytest.fixture(params=ENGINES)
def engine(request):
    if request.param == "h5netcdf":
        pytest.importorskip("h5netcdf")
    return request.param


def truth(hour, lon, lat):
    return 100 * hour + 10 * lon + lat


def forecast(levels=(0.0, 50.0), hours=(0, 1, 2)):
    """The layout of the European forecasts: levels, north first, longitudes from 0 to 360."""
    hours = np.array(hours, dtype=np.float32)
    true = np.where(LON > 180, LON - 360, LON)
    values = truth(hours[:, None, None], true[None, None], LAT[None, :, None])
    values = values[:, None] + 1000 * np.array(levels)[None, :, None, None]
    values[0, 0, 1, 1] = np.nan
    return xr.Dataset(
        {
            "no2_conc": (
                ("time", "level", "latitude", "longitude"),
                values.astype(np.float32),
                {"species": "Nitrogen Dioxide", "units": "µg/m3", "value": "hourly values"},
            )
        },
        {
            "time": ("time", hours, {"long_name": "FORECAST time from 20220219", "units": "hours"}),
            "level": ("level", np.array(levels, dtype=np.float32), {"units": "m"}),
            "latitude": ("latitude", LAT.astype(np.float32), {"units": "degrees_north"}),
            "longitude": ("longitude", LON.astype(np.float32), {"units": "degrees_east"}),
        },
    )


def reanalysis(units="hours since 2018-01-01 00:00:00"):
    """The layout of reanalyses: no levels, lat and lon, and times with a date in their units."""
    hours = np.array([3, 4], dtype=np.int32)
    values = truth(hours[:, None, None], TRUE_LON[None, None], LAT[None, :, None])
    data = {"no2": (("time", "lat", "lon"), values, {"units": "ug m**-3"})}
    for name in ("pm2p5", "go3"):
        data[name] = (("time", "lat", "lon"), -values, {"units": "kg m**-3"})
    return xr.Dataset(
        data,
        {"time": ("time", hours, {"units": units}), "lat": LAT, "lon": TRUE_LON},
    )


def write(data, path, engine, **options):
    encoding = {v: {"_FillValue": -999.0} for v in data.data_vars}
    data.to_netcdf(path, engine=engine, encoding=encoding, **options)
    return path


def test_a_forecast_comes_in_order_with_its_dates(tmp_path, engine):
    grid = cams(write(forecast(), tmp_path / "f.nc", engine), "NO2")
    assert grid.dims == ("time", "lon", "lat")
    assert grid.name == "no2"
    np.testing.assert_array_equal(grid["lon"], TRUE_LON)
    np.testing.assert_array_equal(grid["lat"], LAT[::-1])
    np.testing.assert_array_equal(grid["time"], pd.date_range("2022-02-19", periods=3, freq="h"))
    expected = truth(np.arange(3)[:, None, None], TRUE_LON[:, None], LAT[::-1])
    missing = np.isnan(grid.to_numpy())
    assert missing.sum() == grid.attrs["missing"] == 1
    assert np.isnan(grid.sel(time="2022-02-19 00:00", lon=0.25, lat=51.55))
    np.testing.assert_allclose(grid.to_numpy()[~missing], expected[~missing], rtol=1e-6)
    wanted = {"units": "ug/m3", "long_name": "Nitrogen Dioxide", "source": "f.nc", "level": 0}
    assert wanted.items() <= grid.attrs.items()


def test_cells_are_boxes_of_a_tenth_of_a_degree(tmp_path, engine):
    grid = cams(write(forecast(), tmp_path / "f.nc", engine), "no2")
    o = mrgp.from_grid(grid, name="cams")
    assert (o.task, o.units, o.support.inputs) == ("no2", "ug/m3", ("time", "lon", "lat"))
    assert o.support.flat == (True, False, False)
    assert len(o) == 72
    assert int(o.observed.sum()) == 71
    lower, upper = o.support.bounds
    degrees = [axis.step for axis in o.support.axes[1:]]
    np.testing.assert_allclose((upper - lower)[:, 1:] * degrees, 0.1, rtol=1e-9)
    back = o.to_frame()
    np.testing.assert_allclose(back["lon_lower"].min(), -0.3, atol=1e-9)
    np.testing.assert_allclose(back["lat_upper"].max(), 51.7, atol=1e-9)
    hours = np.stack([grid["time"], grid["time"] + np.timedelta64(1, "h")], 1)
    windows = mrgp.from_grid(grid, bounds={"time": hours})
    assert windows.support.flat == (False, False, False)


def test_levels_are_heights(tmp_path, engine):
    path = write(forecast(), tmp_path / "f.nc", engine)
    np.testing.assert_allclose(
        cams(path, "no2", level=50)[1:] - cams(path, "no2")[1:], 50000, rtol=1e-5
    )
    with pytest.raises(ValueError, match=r"has the levels \[0.0, 50.0\]; got level=10\. Give one"):
        cams(path, "no2", level=10)
    with pytest.raises(ValueError, match=r"r\.nc has no levels, so level= is 0; got 50"):
        cams(write(reanalysis(), tmp_path / "r.nc", engine), "no2", level=50)


def test_a_reanalysis_is_read_alike(tmp_path, engine):
    path = write(reanalysis(), tmp_path / "r.nc", engine)
    grid = cams(path, "NO2")
    assert grid.dims == ("time", "lon", "lat")
    times = pd.to_datetime(["2018-01-01 03:00", "2018-01-01 04:00"])
    np.testing.assert_array_equal(grid["time"], times)
    expected = truth(np.array([3, 4])[:, None, None], TRUE_LON[:, None], LAT[::-1])
    np.testing.assert_allclose(grid, expected)
    assert (grid.attrs["units"], grid.attrs["missing"]) == ("ug/m3", 0)
    for species, name in {"PM2.5": "pm25", "o3": "o3", "pm2p5": "pm2p5"}.items():
        other = cams(path, species)
        assert (other.name, other.attrs["units"]) == (name, "kg m**-3")
        np.testing.assert_allclose(other, -expected)
    with pytest.raises(ValueError, match=r"no variable of 'CO', which .* co_conc or co; it has \["):
        cams(path, "CO")


def test_a_model_and_monitors_share_a_dataset(tmp_path):
    grid = cams(write(forecast(), tmp_path / "f.nc", "scipy"), "no2")
    time = pd.date_range("2022-02-19", periods=3, freq="h", tz="UTC")
    frame = pd.DataFrame({"site": "AA1", "time": time, "end": time + pd.Timedelta("1h")})
    frame = frame.assign(lat=51.5, lon=-0.1, no2=[1.0, 2.0, 3.0])
    monitors = Loaded(frame, "no2", "ug/m3", 0, {}, "here", "laqn").observations()
    data = mrgp.Dataset([mrgp.from_grid(grid, name="cams"), monitors])
    assert len({support.axes for support in data.supports}) == 1
    np.testing.assert_allclose(data["laqn"].to_frame()["lon"], -0.1, atol=1e-9)


@pytest.mark.parametrize(
    ("units", "name", "first"),
    [
        ("hours", "FORECAST time from 2022021912", "2022-02-19 12:00"),
        ("hours", "ANALYSIS time from 2022-02-19", "2022-02-19 00:00"),
        ("hours since 2022-02-19T06:00:00+02:00", "time", "2022-02-19 04:00"),
        ("days since 1900-01-01", "time from 20220219", "1900-01-01"),
    ],
)
def test_dates_stand_in_the_units_or_in_the_long_name(tmp_path, units, name, first):
    data = forecast()
    data["time"].attrs = {"units": units, "long_name": name}
    grid = cams(write(data, tmp_path / "f.nc", "scipy"), "no2")
    assert grid["time"].to_numpy()[0] == np.datetime64(first)


@pytest.mark.parametrize(
    "attrs",
    [
        {"units": "hours"},
        {"units": "hours", "long_name": "FORECAST time from 20229919"},
        {"units": "steps", "long_name": "FORECAST time from 20220219"},
        {"units": "hours since the start"},
        {"units": "hours since 2022-02-19", "calendar": "360_day"},
    ],
)
def test_times_without_a_date_are_refused(tmp_path, attrs):
    data = forecast()
    data["time"].attrs = attrs
    path = write(data, tmp_path / "f.nc", "scipy")
    with pytest.raises(ValueError, match=r"does not say when its times are: .*FORECAST time from"):
        cams(path, "no2")


@pytest.mark.parametrize("unlimited", [(), ("time",)], ids=["fixed", "growing"])
@pytest.mark.parametrize("part", [0.0, 0.02, 0.1, 0.3, 0.5, 0.8, 0.99, 0.9999])
def test_a_half_written_file_is_a_clear_error(tmp_path, engine, part, unlimited):
    data = forecast(hours=range(48))
    path = write(data, tmp_path / "f.nc", engine, unlimited_dims=unlimited)
    body = path.read_bytes()
    path.write_bytes(body[: int(part * len(body))])
    text = r"f\.nc is (cut short or damaged|not a NetCDF file of version 3 or 4): .*ownload it"
    with pytest.raises(ValueError, match=text):
        cams(path, "no2")


def test_times_that_were_never_written_are_refused(tmp_path, engine):
    data = forecast()
    hours = np.array([0, 1, 9.96921e36], dtype=np.float32)
    data = data.assign_coords(time=("time", hours, data["time"].attrs))
    with pytest.raises(ValueError, match="damaged: some times were never written"):
        cams(write(data, tmp_path / "f.nc", engine), "no2")


def test_repeated_and_empty_coordinates_are_refused(tmp_path, engine):
    path = write(forecast(hours=(0, 1, 1)), tmp_path / "f.nc", engine)
    with pytest.raises(ValueError, match="repeats some of its coordinates time"):
        cams(path, "no2")
    write(forecast().isel(time=slice(0)), path, engine, unlimited_dims=["time"])
    with pytest.raises(ValueError, match="has none of its coordinates time, of which there are 0"):
        cams(path, "no2")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"PK\x03\x04rest", "looks like a zip file: unpack it"),
        (b"<html>", r"its 6 bytes begin with b'<html>'\. Download it again, as NetCDF"),
        (b"", "its 0 bytes begin with b''"),
    ],
)
def test_files_of_another_format_are_refused(tmp_path, body, text):
    path = tmp_path / "f.nc"
    path.write_bytes(body)
    with pytest.raises(ValueError, match=text):
        cams(path, "no2")


def test_other_dimensions_and_missing_files_are_named(tmp_path):
    data = forecast().rename(latitude="rlat").drop_vars("rlat")
    path = write(data, tmp_path / "f.nc", "scipy")
    with pytest.raises(ValueError, match=r"'no2_conc' along .*'rlat'.* expected time, latitude"):
        cams(path, "no2")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.nc"):
        cams(tmp_path / "none.nc", "no2")


@pytest.fixture
def real():
    path = Path(os.environ.get("MRGP_DATA") or "-") / "format_samples/cams_eac4_brussels_2018.nc"
    if not path.is_file():
        pytest.skip("MRGP_DATA names no folder of real data")
    pytest.importorskip("h5netcdf")
    return path


def test_a_real_reanalysis(real, tmp_path):
    grid = cams(real, "NO2")
    assert grid.sizes == {"time": 2920, "lon": 3, "lat": 3}
    assert (grid.attrs["units"], grid.attrs["missing"]) == ("ug/m3", 0)
    with xr.open_dataset(real, engine="h5netcdf") as data:
        expected = data["no2"].rename(latitude="lat", longitude="lon").load()
    np.testing.assert_array_equal(grid["time"], expected["time"])
    same = expected.sortby(["lon", "lat"]).transpose("time", "lon", "lat")
    np.testing.assert_array_equal(grid, same)
    o = mrgp.from_grid(grid[:8])
    lower, upper = o.support.bounds
    degrees = [axis.step for axis in o.support.axes[1:]]
    np.testing.assert_allclose((upper - lower)[:, 1:] * degrees, 0.75, rtol=1e-9)
    half = tmp_path / "half.nc"
    shutil.copy(real, half)
    half.chmod(0o600)
    half.write_bytes(real.read_bytes()[: real.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"half\.nc is cut short or damaged: .*download it again"):
        cams(half, "no2")


def test_the_command_line_writes_a_grid_that_init_knows(tmp_path, capsys):
    pytest.importorskip("h5netcdf")
    forecast().to_netcdf(tmp_path / "cams.nc", engine="h5netcdf")
    arguments = ["data", "cams", str(tmp_path / "cams.nc"), "--species", "NO2"]
    assert command([*arguments, "--out", str(tmp_path / "no2.nc")]) == 0
    with xr.open_dataset(tmp_path / "no2.nc", engine="h5netcdf") as written:
        expected = cams(tmp_path / "cams.nc", "NO2")
        np.testing.assert_array_equal(written["no2"], expected)
    assert "no2: {'time': 3, 'lon': 6, 'lat': 4}" in capsys.readouterr().out
    text = guess([tmp_path / "no2.nc"], tmp_path)
    assert 'variable = "no2"' in text
    assert 'units = "ug/m3"' in text
    assert command([*arguments, "--out", "no2.csv"]) == 1
