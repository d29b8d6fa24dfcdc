"""What `mrgp init` guesses of files as people have them."""

import json
import tomllib

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from mrgp.cli import command
from mrgp.config.checking import read_config
from mrgp.config.names import kind_of, match
from mrgp.config.schema import ConfigError
from mrgp.io.guessing import guess
from mrgp.io.sources import read_data

FIRST = "2022-02-19T00:00"


def guessed(folder, name, text, encoding="utf-8"):
    """Write a file, guess a configuration of it, read the data by that, and return both."""
    (folder / name).write_bytes(text.encode(encoding))
    (folder / "guessed.toml").write_text(guess([folder / name], folder), encoding="utf-8")
    config = read_config(folder / "guessed.toml")
    return next(iter(config.sources.values())), read_data(config)


@pytest.mark.parametrize(
    ("header", "x", "y", "task", "units"),
    [
        ("time,lon,lat,no2", ["lon", "lat", "time"], "no2", "no2", None),
        ("Date,Longitude,Latitude,NO2", ["Longitude", "Latitude", "Date"], "NO2", "no2", None),
        ("TIME,LNG,LAT,PM10", ["LNG", "LAT", "TIME"], "PM10", "pm10", None),
        (
            "timestamp,Longitude (deg),Latitude (deg),no2 (ug/m3)",
            ["Longitude (deg)", "Latitude (deg)", "timestamp"],
            "no2 (ug/m3)",
            "no2",
            "ug/m3",
        ),
        (
            "time_utc,site lon,site lat,O3 [ppb]",
            ["site lon", "site lat", "time_utc"],
            "O3 [ppb]",
            "o3",
            "ppb",
        ),
        (
            'time, lon, lat, "a ""quoted"" name"',
            ["lon", "lat", "time"],
            'a "quoted" name',
            None,
            None,
        ),
    ],
)
def test_names_of_columns(tmp_path, header, x, y, task, units):
    rows = f"{FIRST},-0.1,51.5,30.5\n{FIRST},0.1,51.6,\n"
    source, data = guessed(tmp_path, "Sites é 2.csv", f"{header}\n{rows}")
    assert (source.x, source.y, source.units) == (x, y, units)
    assert task is None or source.task == task
    assert data.inputs == ("lon", "lat", "time")
    np.testing.assert_array_equal(data.observations[0].y, [30.5, np.nan])
    lon = data.observations[0].support.axes[0]
    assert (lon.quantity, round(lon.origin, 9)) == ("longitude", 0.0)


@pytest.mark.parametrize(
    ("start", "end"), [("start", "end"), ("Start Time", "End Time"), ("time", "end")]
)
def test_windows(tmp_path, start, end):
    text = f"{start},{end},lon,lat,no2\n{FIRST},2022-02-19T01:00,0.1,51.5,30\n"
    source, data = guessed(tmp_path, "w.csv", text)
    assert (source.start, source.end, source.x) == ([start], [end], ["lon", "lat"])
    lower, upper = data.observations[0].support.bounds
    assert float(upper[0, 2] - lower[0, 2]) == 1.0


def test_one_of_several_columns_is_chosen_and_the_others_named(tmp_path):
    text = f"site_id,time,lon,lat,no2,pm10,temp\n1,{FIRST},0.1,51.5,30,20,5\n"
    source, _ = guessed(tmp_path, "s.csv", text)
    assert source.y == "no2"
    assert "# other columns of numbers: pm10, temp" in (tmp_path / "guessed.toml").read_text()


@pytest.mark.parametrize(
    "text",
    [
        "\ufefftime,lon,lat,no2\n2022-02-19T00:00,0.5,51.5,30.5\n",
        "time;lon;lat;no2\n2022-02-19T00:00;0.5;51.5;30.5\n",
        "time;lon;lat;no2\n2022-02-19T00:00;0,5;51,5;30,5\n",
        "time\tlon\tlat\tno2\n2022-02-19T00:00\t0,5\t51,5\t30,5\n",
        "time,lon,lat,no2\r\n2022-02-19T00:00Z,0.5,51.5,30.5\r\n",
        'time,lon,lat,no2\n"2022-02-19 01:00+01:00", 0.5, 51.5, 30.5\n',
    ],
    ids=["mark", "semicolon", "comma", "tab", "windows", "zone"],
)
def test_ways_of_writing_a_table(tmp_path, text):
    _, data = guessed(tmp_path, "s.csv", text)
    found = data.observations[0].to_frame()
    assert found["no2"].tolist() == [30.5]
    assert found[["lon", "lat"]].round(9).to_numpy().tolist() == [[0.5, 51.5]]
    assert pd.to_datetime(found["time"], utc=True)[0] == pd.Timestamp(FIRST, tz="UTC")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("time,lon,lat,no2\n2022-02-19,0,5,51,5,30,5\n", "need a semicolon between columns"),
        ('time,lon,lat,no2\n2022-02-19,"0,5","51,5","30,5"\n', "line 2: '30,5' is no number"),
        ("a,b\n1,2\n", "no column looks like a place or a time; the columns are a, b."),
        ("time,lon,lat\n2022-02-19,1,2\n", "no column of numbers is left for the values"),
        ("", "the file is empty"),
        ("time,no2\n", "no rows"),
        ("time,no2\n19/02/2022,3\n", "column 'time', line 2: '19/02/2022' is neither"),
    ],
)
def test_what_cannot_be_guessed(tmp_path, text, told):
    (tmp_path / "s.csv").write_text(text)
    with pytest.raises(ConfigError) as error:
        guess([tmp_path / "s.csv"], tmp_path)
    assert told in str(error.value)
    assert "s.csv" in str(error.value)


def test_files_with_other_names_of_the_same_inputs_go_together(workplace):
    with xr.open_dataset("sat.nc") as grid:
        turned = grid.load().rename(lon="longitude", lat="latitude").expand_dims(level=[0.0])
    turned["other"] = turned["no2"] * 2
    turned.to_netcdf("cams.nc", engine="h5netcdf")
    assert command(["init", "sensors.csv", "cams.nc", "--quiet"]) == 0
    text = (workplace / "mrgp.toml").read_text()
    assert tomllib.loads(text)["sources"]["cams"]["units"] == "ug/m3"
    assert "# other variables: other" in text
    data = read_data(read_config(workplace / "mrgp.toml"))
    wanted = read_data(read_config(workplace / "city.toml"))
    for one, other in zip(data, wanted, strict=True):
        np.testing.assert_allclose(one.support.bounds, other.support.bounds, atol=1e-9)
        np.testing.assert_array_equal(one.y, other.y)


def test_files_with_other_inputs_are_refused(workplace, capsys):
    (workplace / "hours.csv").write_text(f"time,no2\n{FIRST},3\n")
    assert command(["init", "sensors.csv", "hours.csv"]) == 1
    said = capsys.readouterr().err
    assert "sensors has lon, lat, time; hours has time." in said


def test_init_writes_over_nothing_unless_told_to(workplace, capsys):
    assert command(["init", "sensors.csv", "sat.nc", "--out", "new/a.toml"]) == 0
    said = capsys.readouterr().out
    assert "next: mrgp fit new/a.toml" in said
    assert read_data(read_config(workplace / "new" / "a.toml")).sources == ("sensors", "sat")
    assert command(["init", "sensors.csv", "--out", "new/a.toml"]) == 1
    assert "new/a.toml is there already" in capsys.readouterr().err
    assert command(["init", "sensors.csv", "--out", "new/a.toml", "--force"]) == 0
    assert read_data(read_config(workplace / "new" / "a.toml")).sources == ("sensors",)
    assert command(["init", "sensor.csv", "--force"]) == 1
    assert "Did you mean 'sensors.csv'?" in capsys.readouterr().err


def test_names_are_matched_by_meaning_and_then_by_place():
    assert kind_of("Site Longitude") == "lon"
    assert kind_of("depth") is None
    assert match(["t", "depth"], ["depth", "hour"]) == {"t": "hour", "depth": "depth"}
    assert match(["latitude"], ["lon", "time"]) == {}
    assert json.dumps(match(["b", "a"], ["p", "q"])) == '{"b": "p", "a": "q"}'


@pytest.mark.parametrize("units", ["ug m-3", "µg/m³", "μg m⁻³", "microgram m^-3", "ug m**-3"])
def test_micrograms_have_one_spelling(tmp_path, units):
    source, _ = guessed(tmp_path, "a.csv", f"time,lon,lat,no2 ({units})\n{FIRST},0.1,51.5,30.0\n")
    assert source.units == "ug/m3"
    source, _ = guessed(tmp_path, "a.csv", f"time,lon,lat,t (degC)\n{FIRST},0.1,51.5,30.0\n")
    assert source.units == "degC"


HOURS = [f"2022-02-19T{hour:02}:00" for hour in range(4)]


def test_cells_of_columns_are_recognised(tmp_path):
    text = "lon_min,lon_max,lat_min,lat_max,no2\n0.0,0.1,51.4,51.5,3\n0.1,0.2,51.4,51.5,4.5\n"
    source, data = guessed(tmp_path, "cells.csv", text)
    assert (source.start, source.end) == (["lon_min", "lat_min"], ["lon_max", "lat_max"])
    assert source.crs == "EPSG:4326"
    assert data.inputs == ("lon", "lat")
    lower, upper = (np.asarray(side) for side in data["cells"].support.bounds)
    assert np.all(upper > lower)


def test_eastings_and_northings_are_places(tmp_path):
    source, data = guessed(
        tmp_path, "p.csv", "x,y,date,pm25\n1,2,2004-06-01,3.5\n4,5,2004-06-02,4\n"
    )
    assert (source.y, source.x) == ("pm25", ["x", "y", "date"])
    assert data.inputs == ("x", "y", "time")


@pytest.mark.parametrize(
    ("name", "times", "window"),
    [
        ("no2", ["2022-02-19", "2022-02-20", "2022-02-21"], "1D"),
        ("hourly mean no2", HOURS, "1h"),
        ("no2", HOURS, None),
        ("no2", ["2022-02-19T00:07", "2022-02-19T01:00", "2022-02-19T05:11"], None),
    ],
)
def test_means_over_days_and_hours_are_recognised(tmp_path, name, times, window):
    rows = [f"{time},{value + 0.5}" for value, time in enumerate(times)]
    file = tmp_path / "m.csv"
    file.write_text("\n".join([f"time,{name}", *rows, ""]))
    text = guess([file], tmp_path)
    assert (f'\nwindow = "{window}"' in text) == (window is not None)
    offered = '# window = "1h"   # if values are means over 1h from each time on'
    assert (offered in text) == (window is None and times is HOURS)


def test_the_attribute_of_a_grid_tells_means(workplace):
    with xr.open_dataset("sat.nc") as opened:
        grid = opened.load()
    grid["no2"].attrs["cell_methods"] = "time: mean"
    grid.to_netcdf("mean.nc", engine="h5netcdf")
    assert '\nwindow = "1h"' in guess([workplace / "mean.nc"], workplace)
    assert '\n# window = "1h"' in guess([workplace / "sat.nc"], workplace)


COUNTS = "lon,lat,deaths_74,births_74,births_of_boys_79\n0.0,51.4,3,40,50\n0.1,51.5,0,30,60\n"


def test_counts_are_recognised_with_what_they_are_out_of(tmp_path):
    source, data = guessed(tmp_path, "c.csv", COUNTS)
    assert (source.y, source.likelihood, source.exposure) == ("deaths_74", "poisson", "births_74")
    assert data["c"].likelihood.name == "poisson"


def test_whole_numbers_may_be_counts(tmp_path):
    (tmp_path / "w.csv").write_text("lon,lat,birds\n0.0,51.4,3\n0.1,51.5,0\n")
    assert '# likelihood = "poisson"   # whole numbers' in guess([tmp_path / "w.csv"], tmp_path)
    (tmp_path / "v.csv").write_text("lon,lat,no2\n0.0,51.4,3\n0.1,51.5,0\n")
    assert "poisson" not in guess([tmp_path / "v.csv"], tmp_path)


@pytest.mark.parametrize(("name", "active"), [("site_type", True), ("region", False)])
def test_kinds_of_places_are_covariates(tmp_path, name, active):
    rows = [f"S{i},{(i % 2 and 'road') or 'park'},{i / 10},51.5,{i + 0.5}" for i in range(6)]
    (tmp_path / "s.csv").write_text("\n".join([f"site,{name},lon,lat,no2", *rows, ""]))
    text = guess([tmp_path / "s.csv"], tmp_path)
    assert f'\n{"" if active else "# "}covariates = ["{name}"]' in text
    assert '"site"' not in text
    if active:
        assert "a grid has one, as site_type=park" in text


@pytest.mark.parametrize(
    ("header", "inputs", "y"),
    [("time,x,y", ["time"], "y"), ("time,x,y,no2", ["x", "y", "time"], "no2")],
)
def test_x_and_y_are_places_where_another_column_has_the_values(tmp_path, header, inputs, y):
    row = ",".join(f"{n}.5" for n in range(header.count(",")))
    config = tomllib.loads(guess_of(tmp_path, f"{header}\n{FIRST},{row}\n"))
    assert (config["inputs"], config["sources"]["s"]["y"]) == (inputs, y)


def guess_of(folder, text, **wanted):
    (folder / "s.csv").write_text(text)
    return guess([folder / "s.csv"], folder, **wanted)


def test_values_that_are_in_no_file_are_refused(tmp_path):
    text = "site_id,lon,lat,no2,pm10\n1,0.0,51.4,3.5,7\n"
    assert 'y = "pm10"' in guess_of(tmp_path, text, wanted=["pm10"])
    told = r"--value 'pm1O' is no column or variable of numbers in .*s\.csv; there are no2, pm10\."
    with pytest.raises(ConfigError, match=f"{told} Did you mean 'pm10'"):
        guess_of(tmp_path, text, wanted=["pm1O"])


def test_several_columns_are_asked_for_or_listed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.csv").write_text("lon,lat,rain,wind\n0.0,51.4,3.5,7\n0.1,51.5,0.5,8\n")
    assert command(["init", "w.csv"]) == 0
    told = "# other columns of numbers: rain; is y the right one? mrgp init --value NAME"
    assert told in (tmp_path / "mrgp.toml").read_text()
    assert command(["init", "w.csv", "--force", "--value", "rain"]) == 0
    assert 'y = "rain"' in (tmp_path / "mrgp.toml").read_text()
    # At a terminal a person is asked, and asked again where the answer is none.
    answers = iter(["snow", "1"])
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    assert command(["init", "w.csv", "--force"]) == 0
    assert 'y = "rain"' in (tmp_path / "mrgp.toml").read_text()
    said = capsys.readouterr().err
    assert "w.csv: several columns may have the values." in said
    assert "2  wind" in said
    assert "There is no 'snow' among them." in said


def test_different_tasks_are_told(tmp_path):
    (tmp_path / "a.csv").write_text("lon,lat,no2\n0.0,51.4,3\n0.1,51.5,1\n")
    (tmp_path / "b.csv").write_text("lon,lat,column\n0.0,51.4,3.1\n0.1,51.5,1\n")
    text = guess([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path)
    assert "# Tasks are no2, column: sources that measure the same have one task." in text
