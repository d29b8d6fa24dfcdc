"""Mistakes of every day: each ends in a few lines that say what, where, and what to do."""

import dataclasses
import json
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
from mrgp.cli.saved import check_asked

pytestmark = pytest.mark.usefixtures("as_users_see_it")
GRID = "lon=-0.2:0:0.1,lat=51.5,time=2022-02-19T01:00"
MOST_LINES = 6


def fail(arguments, capsys, code=1):
    """Run a command that must fail, and return what it says."""
    capsys.readouterr()
    assert command(list(map(str, arguments))) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    assert "fault of mrgp" not in said.err
    assert "pydantic" not in said.err
    assert 1 <= len(said.err.splitlines()) <= MOST_LINES
    return said.err


def edit(old, new, file="city.toml"):
    def change(folder):
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new, 1))

    return change


def write(file, text):
    return lambda folder: (folder / file).write_text(text)


def both(*changes):
    def change(folder):
        for one in changes:
            one(folder)

    return change


def table(**columns):
    def change(folder):
        frame = pd.read_csv(folder / "sensors.csv")
        frame.assign(**columns).to_csv(folder / "sensors.csv", index=False)

    return change


def swap(low):
    """Write longitudes as latitudes, about another place on Earth."""

    def change(folder):
        frame = pd.read_csv(folder / "sensors.csv")
        frame["lon"], frame["lat"] = frame["lat"].copy(), frame["lon"] + low
        frame.to_csv(folder / "sensors.csv", index=False)

    return change


def half(folder):
    whole = (folder / "sat.nc").read_bytes()
    (folder / "sat.nc").write_bytes(whole[: len(whole) // 2])


def half_of_netcdf3(folder):
    with xr.open_dataset(folder / "sat.nc") as grid:
        grid.load()
    grid.to_netcdf(folder / "sat.nc", engine="scipy")
    half(folder)


def flat(folder):
    with xr.open_dataset(folder / "sat.nc") as grid:
        grid.load()
    grid.isel(time=0, drop=True).to_netcdf(folder / "sat.nc", engine="h5netcdf")


X = 'x = ["lon", "lat", "time"]'
WRONG = {
    "column": (edit('y = "no2"', 'y = "NO_2"'), "no column 'NO_2', which y = names", "mean 'no2'"),
    "column of x": (edit(X, 'x = ["long", "lat", "time"]'), "'long', which x =", "mean 'lon'"),
    "date": (
        table(time="19/02/2022"),
        "sensors.csv: column 'time', line 2: '19/02/2022'",
        "2022-02-19T13:00",
    ),
    "one date": (
        edit("S1,2022-02-19 01:00:00", "S1,yesterday", "sensors.csv"),
        "line 6: 'yesterday' is neither a number nor a date",
        "rewrite",
    ),
    "latitude": (swap(100), "latitudes 99.7", "swapped columns"),
    "swapped": (swap(0), "source 'sat'", "the other way round. Swap the names"),
    "text": (
        edit("S2,2022-02-19 00:00:00", "S2,2022-02-19 00:00:00,0.1,51.5,n.d.,", "sensors.csv"),
        "fields",
        "sensors.csv",
    ),
    "values": (table(no2="low"), "column 'no2', line 2: 'low' is no number", "empty"),
    "below a limit": (table(no2="<0.5"), "'<0.5' is no number", "limit = 0.5"),
    "likelihood": (
        edit('y = "no2"', 'y = "no2"\nlikelihood = "poison"'),
        "city.toml, line 8",
        "Did you mean 'poisson'",
    ),
    "counts": (
        edit('y = "no2"', 'y = "no2"\nlikelihood = "poisson"'),
        "source 'sensors'",
        "counts must be whole numbers",
    ),
    "units": (edit('variable = "no2"', 'variable = "no2"\nunits = "ppb"'), "'ppb'", "Convert"),
    "half": (half, "source 'sat'", "half written"),
    "half of NetCDF 3": (half_of_netcdf3, "source 'sat'", "half written"),
    "key": (edit("units =", "unit ="), "city.toml, line 10: there is no key", "mean 'units'"),
    "key of all": (edit("inputs =", "input ="), "line 1: there is no key 'input'", "'inputs'"),
    "recipe": (edit('"MRGP"', '"MRPG"'), "line 19: model.recipe: must be 'MRGP'", "mean 'MRGP'"),
    "option": (
        edit('"MRGP"', '"MRGP"\noptions = { latents = 2 }'),
        "line 18: model: MRGP has no latents=",
        "it has kernel",
    ),
    "optimiser": (edit("max_steps", "max_stepz"), "LBFGS has no setting 'max_stepz'", "line 1"),
    "of experiments": (
        edit('"MRGP"', '"MRGP"\nweights = "ratio"'),
        "model: weights = has no meaning here",
        "before the tables",
    ),
    "model": (edit("[model]\n", 'model = "autoo"\n[nothing]\n'), "there is no key", "model"),
    "TOML": (edit('y = "no2"', "y = no2"), "city.toml is not valid TOML", "line 7"),
    "number": (edit("key = 0", "key = -1"), "line 2: key: must be 0 or more; got -1", "got"),
    "list": (edit(X, 'x = "lon"'), "sources.sensors.x: must be a list, such as", "got 'lon'"),
    "missing file": (edit("sensors.csv", "sensor.csv"), "no file", "Did you mean 'sensors.csv'?"),
    "suffix": (edit("sensors.csv", "sensors.xlsx"), "line 5", "ends in '.xlsx'; files end in .csv"),
    "empty": (write("sensors.csv", ""), "source 'sensors'", "the file is empty"),
    "header": (
        write("sensors.csv", "time,lon,lat,no2\n"),
        "sensors.csv: there are names",
        "no rows",
    ),
    "missing": (
        table(no2=np.nan),
        "sensors.csv: task 'no2': all 24 values are missing",
        "Leave the source out",
    ),
    "no time": (edit(X, 'x = ["lon", "lat"]'), "'time' is missing", "All sources need the same"),
    "no time in a grid": (flat, "dimensions of 'no2' are 2 (lat, lon)", "'time' is missing"),
    "twice": (edit("site,", "no2,", "sensors.csv"), "2 columns are named 'no2'", "Rename"),
    "noise": (edit('y = "no2"', 'y = "no2"\nnoise_variance = -1.0'), "'sensors'", "noise_variance"),
    "variable": (edit('variable = "no2"', 'variable = "no"'), "no variable 'no'", "mean 'no2'"),
    "CRS": (edit("EPSG:4326", "EPSG:99999"), "source 'sensors'", "'EPSG:99999'"),
    "width": (
        edit('variable = "no2"', 'variable = "no2"\nwidth = { time = 1 }'),
        "width of 'time' must be a duration",
        'such as "1h"; got 1',
    ),
    "window": (edit('y = "no2"', 'y = "no2"\nend = "time"'), "end = needs start = too", "sensors"),
    "gap": (edit("S1,2022-02-19 01:00:00", "S1,", "sensors.csv"), "line 6", "remove those rows"),
    "table": (
        edit("[sources.sat]", "[source.sat]"),
        "line 12: there is no key 'source'",
        "sources",
    ),
    "weights": (
        edit("key = 0", "weights = { satt = 0.5 }"),
        "line 2: weights: 'satt' is no source",
        "sensors, sat",
    ),
    "no sources": (write("city.toml", "key = 0\n"), "the key 'sources' is missing", "city.toml"),
    "sources": (write("city.toml", "sources = {}\n"), "line 1: sources: needs one", "city.toml"),
    "not text": (lambda f: (f / "city.toml").write_bytes(b"\xff\xfe"), "UTF-8", "city.toml"),
    "letters": (
        lambda f: (f / "sensors.csv").write_bytes("time,lon,lat,no2 (µg)\n".encode("cp1252")),
        "not in UTF-8",
        "Save the file",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_in_a_file_is_told_before_anything_is_fitted(mistake, workplace, capsys):
    change, what, cure = WRONG[mistake]
    change(workplace)
    said = fail(["fit", "city.toml"], capsys)
    assert what in said
    assert cure in said
    assert not (workplace / "fit.mrgp").exists()


ASKED = {
    "grid": (["--grid", "lon=0:1"], "lon=0:1 is neither a number nor first:last:step", "0:1:0.1"),
    "grid of a name": (["--grid", "lom=0:1:0.1"], "--grid has 'lom=0:1:0.1'", "mean 'lon'"),
    "grid of nothing": (["--grid", ""], "--grid lacks the input 'lon'", "Add lon=first:last:step"),
    "grid without time": (["--grid", GRID[:24]], "--grid lacks the input 'time'", "Add time=2022"),
    "grid of a date": (
        ["--grid", GRID.replace("2022-02-19T01:00", "19/02/2022")],
        "time=19/02/2022",
        "first/last/step",
    ),
    "grid of points": (["--grid", "lon=0:1:1e-9,lat=0,time=2022-02-19"], "steps", "Step wider"),
    "grid far away": (["--grid", GRID.replace("51.5", "11.5")], "lat", "degrees"),
    "columns": (["--at", "places.csv"], "a column 'lon' is needed", "the columns are x, y"),
    "no time": (["--polygons", "areas.geojson"], "column 'time' is needed beside", "or --times"),
    "missing file": (["--at", "tests.csv"], "no file tests.csv", "Did you mean 'test.csv'?"),
    "suffix of places": (["--at", "sat.nc"], "ends in '.nc'", "tables and shapes end in .csv"),
    "both": (["--grid", GRID, "--at", "test.csv"], "got --grid and --at", "Give one of"),
    "none": ([], "got none of them", "--polygons"),
    "out": (["--at", "test.csv", "-o", "p.xlsx"], "--out p.xlsx", "files end in .csv"),
    "out of points": (["--at", "test.csv", "-o", "p.nc"], "the places are no grid", ".csv"),
    "picture": (["--at", "test.csv", "--picture", "p.doc"], "must end in .png", "--picture p.doc"),
    "task": (["--at", "test.csv", "--task", "no"], "--task 'no' was not fitted", "mean 'no2'"),
    "source": (["--at", "test.csv", "--source", "sats"], "--source 'sats'", "mean 'sat'"),
    "noise": (["--at", "test.csv", "--noise"], "say whose with --source", "sensors, sat"),
}


@pytest.mark.parametrize("mistake", ASKED)
def test_a_mistake_in_what_is_asked_is_told(mistake, city, workplace, capsys):
    asks, what, cure = ASKED[mistake]
    (workplace / "places.csv").write_text("x,y\n1,2\n")
    areas = geopandas.GeoDataFrame(
        {"name": ["a"]}, geometry=[shapely.box(-0.2, 51.4, 0, 51.5)], crs="EPSG:4326"
    )
    areas.to_file(workplace / "areas.geojson")
    said = fail(["predict", city.fit, *asks, "--quiet"], capsys)
    assert what in said
    assert cure in said


def test_a_file_that_is_no_fit_is_told(workplace, capsys):
    for name in ("predict", "evaluate", "info"):
        more = {"predict": ["--at", "test.csv"], "evaluate": ["test.csv"], "info": []}[name]
        assert "sensors.csv is not a fit" in fail([name, "sensors.csv", *more], capsys)
        assert "there is no file nothing.mrgp" in fail([name, "nothing.mrgp", *more], capsys)


def test_evaluate_tells_of_sources_and_files(city, workplace, capsys):
    said = fail(["evaluate", city.fit, "test.csv", "--source", "satt"], capsys)
    assert "--source 'satt' was not fitted; the fit has sensors, sat. Did you mean 'sat'?" in said
    said = fail(["evaluate", city.fit, "test.txt"], capsys)
    assert "ends in '.txt'" in said
    edit("[sources.sat]", "[sources.moon]")(workplace)
    said = fail(["evaluate", city.fit, "city.toml"], capsys)
    assert "city.toml" in said
    assert "'moon'" in said
    assert "was not fitted" in said


def test_several_tasks_need_one_to_be_named(workplace, capsys, monkeypatch):
    processes = (("sensors", "no2"), ("sensors", "o3"), ("sat", "o3"))
    fit = SimpleNamespace(processes=processes, tasks=("no2", "o3"))
    monkeypatch.setattr("mrgp.load", lambda _: fit)
    said = fail(["predict", "fit.mrgp", "--at", "test.csv"], capsys)
    assert "several tasks, no2, o3: say which with --task" in said
    said = fail(["predict", "fit.mrgp", "--at", "test.csv", "--source", "sensors"], capsys)
    assert "say which with --task" in said
    assert check_asked(fit, None, "sat", True) == "o3"


def test_verbose_adds_the_traceback(workplace, capsys):
    assert command(["fit", "nothing.toml", "--verbose"]) == 1
    said = capsys.readouterr().err
    assert "Traceback (most recent call last)" in said
    assert "error: The configuration nothing.toml is not there" in said
    assert "mrgp init FILES" in said


def test_a_wrong_command_has_a_code_of_its_own(capsys):
    assert command(["fitt"]) == 2
    assert command(["fit"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_stop_has_a_code_of_its_own(workplace, capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("mrgp.cli.workflow.read_config", stop)
    assert command(["fit", "city.toml"]) == 130


def test_a_fit_that_was_stopped_is_kept(workplace, capsys, monkeypatch):
    def stopped(*arguments, **settings):
        done = fit(*arguments, **settings)
        return dataclasses.replace(
            done, status=dataclasses.replace(done.status, code="interrupted")
        )

    fit = mrgp.fit
    monkeypatch.setattr("mrgp.fit", stopped)
    assert command(["fit", "city.toml", "--quiet"]) == 130
    assert (workplace / "fit.mrgp").is_file()


def test_a_fault_of_our_own_is_told_as_such(workplace, capsys, monkeypatch):
    def fault(*_, **__):
        raise LookupError("inside")

    monkeypatch.setattr("mrgp.cli.workflow.read_config", fault)
    assert command(["fit", "city.toml"]) == 1
    assert "LookupError: inside" in (said := capsys.readouterr().err)
    assert "--verbose" in said


def test_outputs_are_refused_before_the_fit(workplace, capsys):
    (workplace / "folder").mkdir()
    assert "is a folder" in fail(["fit", "city.toml", "-o", "folder"], capsys)
    (workplace / "city.mrgp.toml").write_text((workplace / "city.toml").read_text())
    said = fail(["fit", "city.mrgp.toml", "-o", "city.mrgp"], capsys)
    assert "would write over city.mrgp.toml" in said


@pytest.mark.filterwarnings("default")
def test_warnings_are_told_in_a_line_and_units_that_are_missing_too(workplace, capsys, monkeypatch):
    edit('units = "ug/m3"\n', "")(workplace)

    def fit(*_, **__):
        warnings.warn("look at this", stacklevel=1)
        raise ValueError("enough")

    monkeypatch.setattr("mrgp.fit", fit)
    assert command(["fit", "city.toml"]) == 1
    said = capsys.readouterr().err
    assert "warning: look at this\n" in said
    assert "note: source 'sensors', task 'no2' has no units; they are taken as ug/m3." in said


@pytest.mark.filterwarnings("default")
def test_fill_values_in_files_are_taken_as_missing_and_said(workplace, capsys):
    frame = pd.read_csv("sensors.csv")
    frame.loc[[3, 5], "no2"] = -9999.0
    frame.to_csv("sensors.csv", index=False)
    with xr.open_dataset("sat.nc", engine="h5netcdf") as opened:
        grid = opened.load()
    grid["no2"][0, 0, 0] = 9.96921e36
    grid.to_netcdf("sat.nc", engine="h5netcdf")
    assert command(["fit", "city.toml", "--json"]) == 0
    said = capsys.readouterr()
    assert "column 'no2': 2 of 24 values are -9999, in lines 5, 7, which looks like" in said.err
    assert "variable 'no2': 1 of 36 values are 9.96921e+36" in said.err
    assert json.loads(said.out)["missing"] == {"sensors, no2": 2, "sat, no2": 1}
