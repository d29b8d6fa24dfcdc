"""Real files through frames and grids; skipped where the folder of data is not there."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mrgp

HOUR = pd.Timedelta("1h")


@pytest.fixture(scope="module")
def folder():
    path = os.environ.get("MRGP_DATA")
    if not path or not Path(path).is_dir():
        pytest.skip("MRGP_DATA names no folder of real data")
    return Path(path)


def aurn(folder):
    sites = pd.read_csv(folder / "aurn_london_2018" / "sites.csv")
    hours = pd.read_csv(
        folder / "aurn_london_2018" / "window_2018-06-18_to_28.csv", parse_dates=["date"]
    )
    merged = hours.merge(sites, left_on="code", right_on="aurn_code")
    return merged.assign(date=merged["date"].dt.as_unit("ns"))


def test_hourly_means_of_monitors(folder):
    frame = aurn(folder)
    frame = frame.assign(date_end=frame["date"] + HOUR)
    pm10, fine = mrgp.from_frame(
        frame,
        ["longitude", "latitude"],
        ["pm10", "pm2.5"],
        start="date",
        end="date_end",
        crs="EPSG:4326",
        inputs=("lon", "lat", "time"),
        name="aurn",
        units="ug/m3",
    )
    assert pm10.support is fine.support
    assert pm10.support.flat == (True, True, False)
    assert [o.task for o in (pm10, fine)] == ["pm10", "pm2.5"]
    np.testing.assert_array_equal(fine.observed, frame["pm2.5"].notna())
    lower, upper = pm10.support.bounds
    np.testing.assert_array_equal(upper[:, 2] - lower[:, 2], 1.0)
    assert 0 < np.ptp(lower[:, 0]) < 60
    back = pm10.to_frame()
    np.testing.assert_array_equal(back["lon"], frame["longitude"])
    pd.testing.assert_series_equal(back["time_start"], frame["date"], check_names=False)
    pd.testing.assert_series_equal(back["pm10"], frame["pm10"])


def test_networks_with_different_centres_share_a_dataset(folder):
    frame = aurn(folder)
    sites = pd.read_csv(folder / "laqn_2022" / "laqn_site_metadata.csv")
    values = pd.read_csv(
        folder / "laqn_2022" / "window_pm10_2022-06-18_to_28.csv", parse_dates=["time"]
    ).merge(sites, left_on="site", right_on="@SiteCode")
    values = values.rename(columns={"@Latitude": "latitude", "@Longitude": "longitude"})
    read = {"y": "pm10", "crs": 4326, "inputs": ("lon", "lat", "time")}
    data = mrgp.Dataset(
        [
            mrgp.from_frame(frame, ["longitude", "latitude", "date"], name="aurn", **read),
            mrgp.from_frame(
                values,
                ["longitude", "latitude", "time"],
                name="laqn",
                time_unit="D",
                **read,
            ),
        ]
    )
    assert len({s.axes for s in data.supports}) == 1
    back = data["laqn"].to_frame()
    np.testing.assert_allclose(back["lat"], values["latitude"], atol=1e-9)
    np.testing.assert_array_equal(back["time"], values["time"])
    # The same monitor in both networks is at one place, to the accuracy of the registers.
    north, east = (frame.loc[frame["code"] == "KC1", c].iloc[0] for c in ("latitude", "longitude"))
    same = values["site"] == "KC1"
    if same.any():
        gap = back.loc[same.to_numpy(), ["lon", "lat"]].iloc[0] - [east, north]
        assert np.abs(gap).max() < 1e-3


def test_cells_of_a_chemistry_model(folder):
    pytest.importorskip("pyarrow")
    frame = pd.read_parquet(folder / "seus_pm25_june2004" / "cmaq_grid.parquet")
    day = pd.to_datetime(frame["date"])
    frame = frame.assign(time_start=day, time_end=day + pd.Timedelta("1D"))
    for side in ("x", "y"):
        frame[f"{side}_lower"], frame[f"{side}_upper"] = frame[side] - 6, frame[side] + 6
    names = ("x", "y", "time")
    starts, ends = (
        [f"x{a}", f"y{a}", f"time{b}"] for a, b in (("_lower", "_start"), ("_upper", "_end"))
    )
    o = mrgp.from_frame(frame, y="ctm", start=starts, end=ends, name="cmaq", time_unit="D")
    assert len(o) == len(frame)
    assert o.support.inputs == names
    lower, upper = o.support.bounds
    np.testing.assert_allclose(upper - lower, [[12, 12, 1]] * len(o), rtol=1e-9)
    np.testing.assert_array_equal(o.y, frame["ctm"])


def test_cells_of_a_grid_in_degrees(folder):
    frame = pd.read_csv(folder / "grids_and_sites" / "cams_0p1deg_london_grid_8x4.csv")
    support = mrgp.from_frame(
        frame, start=["lon_min", "lat_min"], end=["lon_max", "lat_max"], crs="EPSG:4326"
    )
    values = np.arange(float(len(frame)))
    grid = mrgp.Observations(support, values, task="no2").to_grid()
    assert grid.sizes == {"lon": 8, "lat": 4}
    np.testing.assert_array_equal(grid["lon"], np.unique(frame["lon_c"]))
    found = grid.sel(lon=xr.DataArray(frame["lon_c"]), lat=xr.DataArray(frame["lat_c"]))
    np.testing.assert_array_equal(found, values)
    read = mrgp.from_grid(grid)
    np.testing.assert_allclose(np.sort(read.support.lower, 0), np.sort(support.lower, 0), atol=1e-9)


def test_a_reanalysis_file(folder):
    pytest.importorskip("h5py")
    path = folder / "format_samples" / "cams_eac4_brussels_2018.nc"
    with xr.open_dataset(path, engine="h5netcdf") as data:
        name = next(n for n, v in data.data_vars.items() if v.ndim == 3)
        array = data[name].isel({data[name].dims[0]: slice(8)}).load()
    back = mrgp.from_grid(array).to_grid(like=array)
    np.testing.assert_array_equal(back, array)
