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
    assert (source.start, source.end, source.x) == (start, end, ["lon", "lat"])
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
