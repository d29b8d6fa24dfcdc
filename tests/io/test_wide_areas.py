"""Areas wider than five degrees on the command line: it works, and the projection is named."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mrgp
from mrgp.cli import command

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("always:The places span")]
SAID = "kilometres of the equidistant cylindrical projection with the standard parallel"


def squares(west, count, width, value):
    """Write a row of squares as shapes."""
    found = []
    for i in range(count):
        left = west + i * width
        ring = [[left, 35.0], [left + width, 35.0], [left + width, 35.0 + width]]
        ring += [[left, 35.0 + width], [left, 35.0]]
        geometry = {"type": "Polygon", "coordinates": [ring]}
        about = {"name": f"area {i}", "rate": value(i)}
        found.append({"type": "Feature", "properties": about, "geometry": geometry})
    return json.dumps({"type": "FeatureCollection", "features": found})


def started(folder, file, capsys, *more):
    """Run init and fit in a folder; return the configuration, and what the fit said."""
    config, out = str(folder / "mrgp.toml"), str(folder / "fit.mrgp")
    assert command(["init", str(file), "--out", config, *more]) == 0
    text = Path(config).read_text()
    capsys.readouterr()
    assert command(["fit", config, "-o", out]) == 0
    return text, " ".join(capsys.readouterr().err.split()), mrgp.load(out)


def test_shapes_over_eight_degrees(tmp_path, capsys):
    (tmp_path / "areas.geojson").write_text(squares(-84.0, 16, 0.5, lambda i: 3 + np.sin(i / 2)))
    _, said, fit = started(tmp_path, tmp_path / "areas.geojson", capsys)
    assert "The places span 8 degrees of longitude" in said
    assert f"{SAID} 35.25" in said
    assert fit.status.code == "converged"
    lower, upper = mrgp.supports.bounds_of([fit.kept_data()["areas"].support])
    # Eight degrees at 35.25 north, in kilometres.
    assert (upper - lower)[0] == pytest.approx(8 * 111.2 * np.cos(np.radians(35.25)), rel=0.01)


def test_a_grid_over_the_benelux_and_beyond(tmp_path, capsys):
    lon, lat = np.arange(2.0, 8.1, 0.75), np.arange(49.25, 53.6, 0.75)
    values = 20 + 2 * np.sin(lon)[None] + 0.5 * lat[:, None]
    field = (("lat", "lon"), values, {"units": "ug/m3"})
    grid = xr.Dataset({"no2": field}, {"lat": lat, "lon": lon})
    grid.to_netcdf(tmp_path / "cams.nc")
    _, said, fit = started(tmp_path, tmp_path / "cams.nc", capsys)
    assert "degrees of longitude and" in said
    assert SAID in said
    map_of = str(tmp_path / "map.nc")
    asked = ["predict", str(tmp_path / "fit.mrgp"), "--grid", "lon=2:8:1,lat=50:53:1"]
    assert command([*asked, "--out", map_of]) == 0
    found = xr.load_dataset(map_of)["mean"].transpose("lat", "lon").to_numpy()
    truth = 20 + 2 * np.sin(np.arange(2.0, 8.1))[None] + 0.5 * np.arange(50.0, 53.1)[:, None]
    assert np.abs(found - truth).max() < 0.5
    assert fit.status.code == "converged"


def test_counties_of_north_carolina(tmp_path, capsys):
    folder = os.environ.get("MRGP_DATA")
    if not folder or not (Path(folder) / "nc_sids/nc_sids.geojson").is_file():
        pytest.skip("MRGP_DATA names no folder with nc_sids/nc_sids.geojson")
    file = Path(folder) / "nc_sids/nc_sids.geojson"
    text, said, fit = started(tmp_path, file, capsys)
    assert 'y = "sids_1974_78"' in text
    assert 'likelihood = "poisson"' in text
    assert 'exposure = "births_1974_78"' in text
    assert "The places span 8.87 degrees of longitude" in said
    assert f"{SAID} 35.24" in said
    assert fit.status.code == "converged"
    # Two deaths in a thousand births, about.
    middle = pd.DataFrame({"lon": [-79.5], "lat": [35.5]})
    there = mrgp.predict(fit, mrgp.from_frame(middle, ["lon", "lat"], crs="EPSG:4326"))
    assert 0.001 < there.mean[0] < 0.005
