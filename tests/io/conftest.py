"""A small city in files, and one fit of it that all tests share."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from mrgp.cli import command

MODEL = """
[model]
recipe = "MRGP"

[model.optimiser]
name = "LBFGS"
max_steps = 3
starts = 1
candidates = 0
"""
HEAD = 'inputs = ["lon", "lat", "time"]\nkey = 0\n'
SENSORS = """
[sources.sensors]
file = "sensors.csv"
task = "no2"
y = "no2"
x = ["lon", "lat", "time"]
crs = "EPSG:4326"
units = "ug/m3"
"""
SAT = """
[sources.sat]
file = "sat.nc"
task = "no2"
variable = "no2"
crs = "EPSG:4326"
"""
CONFIG = HEAD + SENSORS + SAT + MODEL


def sensors(seed=0, sites=8):
    rng = np.random.default_rng(seed)
    places = {"lon": rng.uniform(-0.3, 0.1, sites), "lat": rng.uniform(51.4, 51.6, sites)}
    frame = pd.DataFrame(places | {"site": [f"S{i}" for i in range(sites)]})
    hours = pd.DataFrame({"time": pd.date_range("2022-02-19", periods=3, freq="h")})
    frame = frame.merge(hours, how="cross")
    hour = frame["time"].dt.hour
    frame["no2"] = 30 + 3 * hour + 40 * frame["lon"] + rng.normal(0, 1, len(frame)).round(2)
    return frame[["site", "time", "lon", "lat", "no2"]]


def satellite():
    rng = np.random.default_rng(1)
    values = 20 + rng.normal(0, 3, (3, 3, 4))
    return xr.Dataset(
        {"no2": (("time", "lat", "lon"), values, {"units": "ug/m3"})},
        {
            "time": pd.date_range("2022-02-19", periods=3, freq="h"),
            "lat": [51.4, 51.5, 51.6],
            "lon": [-0.3, -0.2, -0.1, 0.0],
        },
    )


def write_city(folder: Path):
    sensors().to_csv(folder / "sensors.csv", index=False)
    sensors(seed=5, sites=3).to_csv(folder / "test.csv", index=False)
    satellite().to_netcdf(folder / "sat.nc", engine="h5netcdf")
    (folder / "city.toml").write_text(CONFIG)


@pytest.fixture(scope="session")
def city(tmp_path_factory):
    """The files of a city and a fit of them, for reading alone."""
    folder = tmp_path_factory.mktemp("city")
    write_city(folder)
    code = command(["fit", str(folder / "city.toml"), "-o", str(folder / "fit.mrgp"), "--quiet"])
    assert code == 0
    return SimpleNamespace(folder=folder, fit=folder / "fit.mrgp", config=folder / "city.toml")


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder of one's own, with the files of the city."""
    write_city(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
