"""From files to maps and scores, against the same by the functions."""

import json
import re
import warnings
from types import SimpleNamespace

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
import xarray as xr

import mrgp
from mrgp.cli import command
from mrgp.config.checking import read_config
from mrgp.io.sources import read_data

GRID = "time=2022-02-19T00:00/2022-02-19T01:00/1h,lat=51.4:51.6:0.1,lon=-0.3:0:0.1"


@pytest.fixture(scope="module")
def by_hand(city):
    frame = pd.read_csv(city.folder / "sensors.csv", parse_dates=["time"])
    settings = {"crs": "EPSG:4326", "inputs": ["lon", "lat", "time"], "task": "no2"}
    sensors = mrgp.from_frame(
        frame, ["lon", "lat", "time"], "no2", name="sensors", units="ug/m3", **settings
    )
    with xr.open_dataset(city.folder / "sat.nc") as grid:
        sat = mrgp.from_grid(grid.load(), "no2", name="sat", **settings)
    optimiser = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
    return mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors, sat]), optimiser=optimiser, progress=None)


def predict(city, tmp_path, name, *arguments):
    out = tmp_path / name
    assert command(["predict", str(city.fit), "-o", str(out), *map(str, arguments)]) == 0
    return out


def test_a_fit_of_files_is_the_fit_of_the_same_data(city, by_hand):
    loaded = mrgp.load(city.fit)
    for name, value in by_hand.parameters().items():
        np.testing.assert_allclose(loaded.parameters()[name], value, rtol=1e-9)


def test_a_table_of_places_has_the_values_of_predict(city, by_hand, tmp_path, capsys):
    places = pd.read_csv(city.folder / "test.csv", parse_dates=["time"])
    support = mrgp.from_frame(places, ["lon", "lat", "time"], crs="EPSG:4326")
    wanted = mrgp.predict(by_hand, support)
    at = city.folder / "test.csv"
    for name, read in (("p.csv", pd.read_csv), ("p.parquet", pd.read_parquet)):
        out = predict(city, tmp_path, name, "--at", at, "--exceed", 32)
        frame = read(out)
        np.testing.assert_allclose(frame["mean"], wanted.mean, rtol=1e-9)
        np.testing.assert_allclose(frame["std"], wanted.std, rtol=1e-9)
        np.testing.assert_allclose(frame["exceedance"], wanted.exceedance(32.0), atol=1e-9)
        np.testing.assert_allclose(frame["lon"], places["lon"], atol=1e-9)
        assert (pd.to_datetime(frame["time"]) == places["time"]).all()
        assert f"wrote {out}" in capsys.readouterr().out


def test_a_picture_has_the_data_that_the_fit_keeps_and_the_threshold(city, tmp_path, monkeypatch):
    plot, drawn = mrgp.Prediction.plot, []

    def watched(self, *args, **kwargs):
        drawn.append((self, args, kwargs, plot(self, *args, **kwargs)))
        return drawn[-1][-1]

    monkeypatch.setattr(mrgp.Prediction, "plot", watched)
    for places in (["--grid", GRID], ["--at", city.folder / "test.csv"]):
        predict(city, tmp_path, "p.csv", *places, "--exceed", 30, "--picture", tmp_path / "p.png")
        _, (data,), asked, figure = drawn.pop()
        assert asked == {"exceedance": 30.0}
        assert data.processes == (("sensors", "no2"), ("sat", "no2"))
        assert data["sensors"].y.shape == (24,)
        titles = [axes.get_title().split("\n")[0] for axes in figure.axes]
        assert {"mean", "sd", "P(no2 > 30 ug/m3)"} <= set(titles)
        assert (tmp_path / "p.png").stat().st_size > 1000


def test_a_grid_follows_cf_and_has_each_value_in_its_place(city, by_hand, tmp_path):
    picture = tmp_path / "pictures" / "map.png"
    out = predict(
        city, tmp_path, "new/map.nc", "--grid", GRID, "--exceed", 30, "--picture", picture
    )
    assert picture.read_bytes()[:4] == b"\x89PNG"
    with xr.open_dataset(out) as grid:
        assert grid.attrs["Conventions"] == "CF-1.11"
        assert grid["mean"].attrs["units"] == "ug/m3"
        assert grid["exceedance"].attrs["long_name"] == "probability that no2 exceeds 30 ug/m3"
        assert {n: grid[n].attrs["axis"] for n in ("lon", "lat", "time")} == {
            "lon": "X",
            "lat": "Y",
            "time": "T",
        }
        assert grid["lon"].attrs["standard_name"] == "longitude"
        assert grid["lon"].attrs["units"] == "degrees_east"
        assert dict(grid["mean"].sizes) == {"lon": 4, "lat": 3, "time": 2}
        for lon, lat, time in ((-0.3, 51.6, 0), (0.0, 51.4, 1), (-0.1, 51.5, 1)):
            hour = pd.Timestamp("2022-02-19") + pd.Timedelta(time, "h")
            place = pd.DataFrame({"lon": [lon], "lat": [lat], "time": [hour]})
            support = mrgp.from_frame(place, ["lon", "lat", "time"], crs="EPSG:4326")
            alone = mrgp.predict(by_hand, support)
            cell = grid.sel(lon=lon, lat=lat, method="nearest").sel(time=hour)
            np.testing.assert_allclose(cell["mean"], alone.mean[0], rtol=1e-9)
            np.testing.assert_allclose(cell["exceedance"], alone.exceedance(30.0)[0], atol=1e-9)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # inside rasterio
def test_a_geotiff_has_the_map_north_up(city, tmp_path):
    rioxarray = pytest.importorskip("rioxarray")
    asked = ("--grid", GRID.replace("/2022-02-19T01:00/1h", ""), "--exceed", 30)
    out = predict(city, tmp_path, "map.tif", *asked)
    with xr.open_dataset(predict(city, tmp_path, "map.nc", *asked)) as grid:
        wanted = grid.isel(time=0).transpose("lat", "lon").sortby("lat", ascending=False).load()
    with rioxarray.open_rasterio(out) as raster:
        assert raster.rio.crs.to_epsg() == 4326
        np.testing.assert_allclose(raster.rio.bounds(), (-0.35, 51.35, 0.05, 51.65), atol=1e-9)
        assert raster.attrs["long_name"][0] == "no2: mean of the prediction"
        np.testing.assert_allclose(raster[0], wanted["mean"], rtol=1e-9)
        np.testing.assert_allclose(raster[-1], wanted["exceedance"], rtol=1e-9)


def test_places_far_from_the_data_are_named(city, tmp_path, capsys):
    predict(city, tmp_path, "near.csv", "--grid", GRID)
    assert "outside the data" not in capsys.readouterr().err
    late = GRID.replace("51.4:51.6:0.1", "51.5").replace("2022", "2023")
    predict(city, tmp_path, "late.csv", "--grid", late)
    said = capsys.readouterr().err
    assert "note: 8 of 8 places lie outside the data along time" in said
    assert "from 2022-02-19T00:00 to 2022-02-19T02:00 UTC" in said
    predict(city, tmp_path, "far.csv", "--grid", GRID.replace("51.4:51.6", "51.6:51.9"))
    assert "24 of 32 places lie outside the data along lat" in capsys.readouterr().err


def test_values_below_a_limit_are_censored(workplace):
    text = (workplace / "city.toml").read_text()
    known = text.replace('y = "no2"', 'y = "no2"\nlimit = 30.0')
    (workplace / "city.toml").write_text(known)
    with pytest.warns(UserWarning, match="of 24 values are at or beyond a limit;"):
        read = read_data(read_config(workplace / "city.toml"))["sensors"]
    given = pd.read_csv("sensors.csv")["no2"].to_numpy()
    np.testing.assert_array_equal(read.y, np.maximum(given, 30.0))
    np.testing.assert_array_equal(read.censored, np.where(given <= 30, -1.0, 0.0))


def test_a_configuration_of_counts(workplace):
    table = pd.read_csv("sensors.csv").assign(cases=3, people=7.5)
    table.to_csv("sensors.csv", index=False)
    text = (workplace / "city.toml").read_text()
    counts = 'y = "cases"\nlikelihood = "poisson"\nexposure = "people"'
    (workplace / "city.toml").write_text(text.replace('y = "no2"', counts))
    read = read_data(read_config(workplace / "city.toml"))["sensors"]
    assert read.likelihood == mrgp.Poisson()
    np.testing.assert_array_equal(read.exposure, 7.5)


@pytest.mark.filterwarnings("default:.*at or beyond a limit:UserWarning")
def test_values_below_a_limit_are_not_scored(city, workplace, capsys):
    text = (workplace / "city.toml").read_text()
    known = text.replace('y = "no2"', 'y = "no2"\nlimit = 30.0\nnoise_variance = 1.0')
    (workplace / "city.toml").write_text(known)
    assert command(["evaluate", str(city.fit), "city.toml", "--json"]) == 0
    said = capsys.readouterr()
    assert "are at or beyond a limit, and are not scored." in said.err
    below = int((pd.read_csv("sensors.csv")["no2"] <= 30).sum())
    found = json.loads(said.out)["sensors, no2"]
    assert (found["n"], found["missing"]) == (24 - below, below)
    loaded = mrgp.load(city.fit)
    sensors = read_data(read_config(city.config))["sensors"]
    sensors = sensors[np.flatnonzero(sensors.y > 30)]
    field = mrgp.predict(loaded, sensors.support, source="sensors")
    width = 2 * 1.959964 * np.sqrt(field.variance + 1.0)
    np.testing.assert_allclose(found["width_95"], width.mean(), rtol=1e-6)


def test_covariates_that_a_fit_finds_itself_need_not_be_given(tmp_path):
    frame = pd.DataFrame({"lon": [-0.3, -0.1, 0.1], "lat": [51.4, 51.6, 51.5], "no2": [3.0, 4, 6]})
    height = xr.DataArray(
        np.arange(9.0).reshape(3, 3), {"lat": [51.3, 51.5, 51.7], "lon": [-0.4, -0.1, 0.2]}
    )
    seen = mrgp.from_frame(frame, ["lon", "lat"], "no2", crs="EPSG:4326")
    data = mrgp.Dataset([seen]).with_covariates(height.rename("height"))
    optimiser = mrgp.LBFGS(max_steps=2, starts=1, candidates=0)
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=optimiser, progress=None)
    mrgp.save(fit, tmp_path / "fit.mrgp")
    frame[["lon", "lat"]].to_csv(tmp_path / "places.csv", index=False)
    there = SimpleNamespace(fit=tmp_path / "fit.mrgp")
    found = pd.read_csv(predict(there, tmp_path, "p.csv", "--at", tmp_path / "places.csv"))
    wanted = mrgp.predict(fit, seen.support)
    np.testing.assert_allclose(found["mean"], wanted.mean, rtol=1e-9)
    grid = pd.read_csv(predict(there, tmp_path, "g.csv", "--grid", "lon=-0.3,lat=51.4"))
    np.testing.assert_allclose(grid["mean"], wanted.mean[:1], rtol=1e-9)
    given = pd.read_csv(predict(there, tmp_path, "h.csv", "--grid", "lon=0,lat=51.5,height=2.5"))
    assert given["height"].tolist() == [2.5]


def test_a_grid_of_places_in_any_order_has_each_value_in_its_place(city, tmp_path):
    table = pd.read_csv(predict(city, tmp_path, "grid.csv", "--grid", GRID, "--exceed", 30))
    shuffled = table.sample(frac=1.0, random_state=3)[["time", "lat", "lon"]]
    shuffled.to_csv(tmp_path / "places.csv", index=False)
    at = tmp_path / "places.csv"
    with xr.open_dataset(predict(city, tmp_path, "s.nc", "--at", at, "--exceed", 30)) as grid:
        for row in table.itertuples():
            cell = grid.sel(lon=row.lon, lat=row.lat, method="nearest").sel(time=row.time)
            np.testing.assert_allclose(cell["mean"], row.mean, rtol=1e-9)
            np.testing.assert_allclose(cell["exceedance"], row.exceedance, atol=1e-9)


SQUARES = [shapely.box(-0.3, 51.4, -0.1, 51.5), shapely.box(-0.1, 51.45, 0.05, 51.6)]


@pytest.mark.parametrize(
    "shapes", [SQUARES, [s.centroid for s in SQUARES]], ids=["areas", "points"]
)
def test_shapes_of_any_crs_and_format_have_the_same_predictions(city, tmp_path, shapes):
    hours = pd.to_datetime(["2022-02-19T01:00", "2022-02-19T02:00"])
    frame = geopandas.GeoDataFrame({"time": hours}, geometry=shapes, crs="EPSG:4326")
    found = {}
    for crs, suffix in ((4326, "gpkg"), (27700, "gpkg"), (3857, "shp"), (4326, "geojson")):
        file = tmp_path / f"areas{crs}.{suffix}"
        moved = frame.to_crs(crs)
        if suffix == "shp":
            moved["time"] = moved["time"].dt.strftime("%Y-%m-%dT%H:%M")
        moved.to_file(file)
        out = predict(city, tmp_path, f"p{crs}{suffix}.geojson", "--polygons", file)
        found[crs, suffix] = geopandas.read_file(out)
    first = found[4326, "gpkg"]
    for other in found.values():
        np.testing.assert_allclose(other["mean"], first["mean"], rtol=1e-6)
        np.testing.assert_allclose(other["std"], first["std"], rtol=1e-6)
        assert other.crs.to_epsg() == 4326
        gaps = shapely.hausdorff_distance(other.geometry.to_numpy(), frame.geometry.to_numpy())
        assert gaps.max() < 1e-6
    fit = mrgp.load(city.fit)
    support = mrgp.from_frame(frame, "time", geometry="geometry")
    np.testing.assert_allclose(first["mean"], mrgp.predict(fit, support).mean, rtol=1e-9)


@pytest.mark.thorough
def test_eastings_and_windows_of_a_source_are_known_where_predictions_are_wanted(workplace, capsys):
    frame = pd.read_csv("sensors.csv", parse_dates=["time"])
    places = geopandas.points_from_xy(frame["lon"], frame["lat"], crs="EPSG:4326").to_crs(27700)
    frame = frame.assign(x=places.x, y=places.y, Until=frame["time"] + pd.Timedelta("1h"))
    frame.drop(columns=["lon", "lat"]).to_csv("plane.csv", index=False)
    text = (workplace / "city.toml").read_text().replace("sensors.csv", "plane.csv")
    text = text.replace('x = ["lon", "lat", "time"]\ncrs = "EPSG:4326"', PLANE)
    (workplace / "plane.toml").write_text(text.replace('["lon", "lat", "time"]', ORDER))
    assert command(["fit", "plane.toml", "--quiet"]) == 0
    fit = mrgp.load("fit.mrgp")
    assert fit.inputs == ("time", "lon", "lat")
    frame.rename(columns={"time": "time_start", "Until": "time_end"})[
        ["time_start", "time_end", "lon", "lat"]
    ].to_csv("degrees.csv", index=False)
    found = {}
    for name in ("plane", "degrees"):
        assert command(["predict", "fit.mrgp", "--at", f"{name}.csv", "--quiet"]) == 0
        found[name] = pd.read_csv("prediction.csv")
        assert (pd.to_datetime(found[name]["time_end"]) == frame["Until"]).all()
        mine = pd.read_csv(f"{name}.csv")
        pd.testing.assert_frame_equal(found[name][list(mine)], mine)
    np.testing.assert_allclose(found["plane"]["mean"], found["degrees"]["mean"], rtol=1e-6)
    np.testing.assert_allclose(found["plane"]["lon"], frame["lon"], atol=1e-6)


PLANE = 'x = ["x", "y"]\nstart = "time"\nend = "Until"\ncrs = "EPSG:27700"'
ORDER = '["time", "lon", "lat"]'


def test_evaluate_gives_the_scores_of_evaluate(city, by_hand, capsys):
    test = pd.read_csv(city.folder / "test.csv", parse_dates=["time"])
    support = mrgp.from_frame(test, ["lon", "lat", "time"], crs="EPSG:4326")
    found = mrgp.predict(by_hand, support, source="sensors", noise=True)
    wanted = mrgp.evaluate(found, test["no2"].to_numpy())
    capsys.readouterr()
    assert command(["evaluate", str(city.fit), str(city.folder / "test.csv"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == ["sensors, no2"]
    assert printed["sensors, no2"] == pytest.approx(wanted)
    assert command(["evaluate", str(city.fit), str(city.config)]) == 0
    table = capsys.readouterr().out
    assert "sensors" in table
    assert "sat" in table


def test_json_is_one_object_and_progress_goes_to_stderr(city, workplace, capsys):
    assert command(["fit", "city.toml", "-o", "new/again.mrgp", "--json"]) == 0
    said = capsys.readouterr()
    content = json.loads(said.out)
    assert content["recipe"] == "MRGP"
    assert content["values"] == {"sensors, no2": 24, "sat, no2": 36}
    assert said.err
    assert command(["info", "new/again.mrgp", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == content


def test_quiet_says_nothing(city, workplace, capfd):
    calls = (
        ["init", "sensors.csv", "sat.nc"],
        ["fit", "city.toml", "-o", "a.mrgp"],
        ["predict", "a.mrgp", "--at", "test.csv", "--picture", "none.doc"],
        ["predict", "a.mrgp", "--grid", GRID, "--picture", "map.png"],
        ["evaluate", "a.mrgp", "test.csv"],
        ["info", "a.mrgp"],
    )
    codes = [command([*call, "--quiet"]) for call in calls]
    said = capfd.readouterr()
    assert codes == [0, 0, 1, 0, 0, 0]
    assert said.out == ""
    assert said.err.startswith("error: --picture none.doc")
    assert len(said.err.splitlines()) <= 6


def test_a_configuration_named_as_the_fit_is_kept(workplace, capsys):
    before = (workplace / "city.toml").read_text()
    assert command(["fit", "city.toml", "-o", "city.mrgp", "--quiet"]) == 0
    assert (workplace / "city.toml").read_text() == before
    assert (workplace / "city.mrgp.toml").read_text() == before


@pytest.mark.thorough
def test_auto_chooses_fits_and_predicts(workplace, capsys):
    text = 'inputs = ["time"]\n[sources.s]\nfile = "s.csv"\ny = "v"\nx = ["time"]\n'
    rows = [f"2022-02-19T{h:02}:00,{h * 0.5 + 3}" for h in range(6)]
    (workplace / "s.csv").write_text("\n".join(["time,v", *rows, ""]))
    (workplace / "s.toml").write_text(text)
    assert command(["fit", "s.toml", "--quiet"]) == 0
    assert command(["predict", "fit.mrgp", "--grid", "time=2022-02-19T02:00"]) == 0
    frame = pd.read_csv("prediction.csv")
    assert abs(frame["mean"][0] - 4.0) < 0.5


@pytest.mark.parametrize("form", ["nc3", "zarr", "parquet", "geojson", "gpkg", "shp", "turned"])
def test_every_form_of_a_file_gives_the_same_data(workplace, form):
    wanted = read_data(read_config(workplace / "city.toml"))
    text = (workplace / "city.toml").read_text()
    frame = pd.read_csv("sensors.csv", parse_dates=["time"])
    with xr.open_dataset("sat.nc") as opened:
        grid = opened.load()
    with warnings.catch_warnings():
        # Zarr's own, of the version of its format.
        warnings.simplefilter("ignore")
        text = text.replace(*write_as(form, frame, grid))
    if form in ("geojson", "gpkg", "shp"):
        text = text.replace('x = ["lon", "lat", "time"]\ncrs = "EPSG:4326"', 'x = ["time"]')
    (workplace / "other.toml").write_text(text)
    found = read_data(read_config(workplace / "other.toml"))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.support.bounds, other.support.bounds, atol=1e-6)
        np.testing.assert_array_equal(one.y, other.y)
        assert one.support.inputs == other.support.inputs


def test_a_single_time_that_is_no_input_is_left_out(workplace):
    with xr.open_dataset("sat.nc") as opened:
        opened.load().isel(time=[1]).to_netcdf("hour.nc", engine="h5netcdf")
    text = 'inputs = ["lon", "lat"]\n[sources.sat]\nfile = "hour.nc"\nvariable = "no2"\n'
    (workplace / "hour.toml").write_text(text)
    read = read_data(read_config(workplace / "hour.toml"))["sat"]
    assert read.support.inputs == ("lon", "lat")
    with xr.open_dataset("sat.nc") as grid:
        wanted = grid["no2"].isel(time=1).transpose("lon", "lat").to_numpy().ravel()
    np.testing.assert_array_equal(read.y, wanted)


def write_as(form, frame, grid):
    if form == "nc3":
        grid.to_netcdf("sat3.nc", engine="scipy")
        return '"sat.nc"', '"sat3.nc"'
    if form == "zarr":
        grid.to_zarr("sat.zarr")
        return '"sat.nc"', '"sat.zarr"'
    if form == "turned":
        names = {"lon": "longitude", "lat": "latitude"}
        turned = grid.rename(names).transpose("longitude", "time", "latitude")
        turned.expand_dims(level=[0.0]).to_netcdf("turned.nc", engine="h5netcdf")
        return '"sat.nc"', '"turned.nc"'
    if form == "parquet":
        frame.to_parquet("sensors.parquet")
        return '"sensors.csv"', '"sensors.parquet"'
    if form == "shp":
        frame["time"] = frame["time"].dt.strftime("%Y-%m-%dT%H:%M")
    shapes = geopandas.points_from_xy(frame["lon"], frame["lat"])
    frame = frame.drop(columns=["lon", "lat"])
    geopandas.GeoDataFrame(frame, geometry=shapes, crs="EPSG:4326").to_file(f"sensors.{form}")
    return '"sensors.csv"', f'"sensors.{form}"'


@pytest.fixture(scope="module")
def register(tmp_path_factory):
    """A fit of counts with exposures, saved, and a table of places with columns of it."""
    folder = tmp_path_factory.mktemp("register")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"km": np.arange(8.0), "births": rng.integers(20, 60, 8).astype(float)})
    frame["cases"] = rng.poisson(0.2 * frame["births"])
    seen = mrgp.from_frame(
        frame, ["km"], "cases", name="register", likelihood="poisson", exposure="births"
    )
    optimiser = mrgp.LBFGS(max_steps=2, starts=1, candidates=0)
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), optimiser=optimiser, progress=None)
    mrgp.save(fit, folder / "fit.mrgp")
    frame.to_csv(folder / "places.csv", index=False)
    return SimpleNamespace(fit=folder / "fit.mrgp", at=folder / "places.csv", loaded=fit, seen=seen)


def test_new_counts_have_the_exposure_of_a_column_or_of_a_number(register, tmp_path):
    asked = ["--at", register.at, "--source", "register", "--noise", "--exposure"]
    about = {"source": "register", "noise": True}
    for given, exposure in (("births", register.seen.exposure), ("30", 30.0)):
        found = pd.read_csv(predict(register, tmp_path, "p.csv", *asked, given))
        wanted = mrgp.predict(register.loaded, register.seen.support, **about, exposure=exposure)
        np.testing.assert_allclose(found["mean"], wanted.mean, rtol=1e-9)
        np.testing.assert_allclose(found["std"], wanted.std, rtol=1e-9)
        assert np.all(found["upper_95"] % 1 == 0)
    asked = ["--grid", "km=0:7:1", "--source", "register", "--noise", "--exposure", "30"]
    table = pd.read_csv(predict(register, tmp_path, "g.csv", *asked))
    np.testing.assert_allclose(table["mean"], wanted.mean, rtol=1e-9)
    with xr.open_zarr(predict(register, tmp_path, "g.zarr", *asked), consolidated=False) as tiles:
        np.testing.assert_allclose(tiles["std"], wanted.std, rtol=1e-9)


def test_exposures_that_cannot_be_are_refused(register, tmp_path, capsys):
    noisy, at = ["--source", "register", "--noise"], ["--at", str(register.at)]
    for asked, text in (
        ([*at, *noisy], "'register' had exposure, and new ones need it too: add --exposure"),
        ([*at, *noisy, "--exposure", "birth"], "nor a column of .*it has .*mean 'births'"),
        (["--grid", "km=1", *noisy, "--exposure", "births"], "'births' is no number; columns are"),
        ([*at, "--exposure", "3"], "--exposure is of a source's values: say whose with --source"),
        ([*at, *noisy, "--exposure", "-3"], "exposure= must be one positive number"),
        ([*at, *noisy, "--exposure", "3", "--trials", "2"], "'register' has no trials"),
    ):
        out = ["-o", str(tmp_path / "x.csv")]
        assert command(["predict", str(register.fit), *out, *asked]) == 1
        assert re.search(text, " ".join(capsys.readouterr().err.split()))


def test_grids_have_exposures_of_their_own(register):
    """As a number, as a variable, by its name, and chunk by chunk, as a support has them."""
    births = xr.DataArray(np.linspace(10.0, 80.0, 8), {"km": np.arange(8.0)}, name="births")
    grid = births.to_dataset()
    about = {"source": "register", "noise": True}
    cells = mrgp.from_grid(births).support
    wanted = mrgp.predict(register.loaded, cells, **about, exposure=births.to_numpy())
    for given, exposure in ((grid, "births"), (grid, births), (births.chunk(km=3), births)):
        found = mrgp.predict(register.loaded, given, **about, exposure=exposure)
        np.testing.assert_allclose(found["mean"], wanted.mean, rtol=1e-9)
        np.testing.assert_allclose(found["upper"], wanted.interval(0.95)[1])
    one = mrgp.predict(register.loaded, grid, **about, exposure=10.0)["mean"]
    np.testing.assert_allclose(one[0], wanted.mean[0], rtol=1e-9)
    for exposure, text in (
        (None, "a new one needs it too"),
        ("people", "names 'people', which is no variable of the grid; they are births"),
        (births.rename(km="z"), "exposure= has the dimensions z, and the grid has km"),
        (births[:3], "exposure= has 3 values along 'km', and the grid 8"),
        (births - 10, "exposure= must be one positive number, or 8"),
    ):
        with pytest.raises(ValueError, match=text):
            mrgp.predict(register.loaded, grid, **about, exposure=exposure)
