"""Damaged and hostile files end in one sentence with their name, and before memory is taken."""

import json
from types import SimpleNamespace

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

from mrgp.cli import command
from mrgp.config.checking import read_config
from mrgp.config.schema import ConfigError
from mrgp.datasets import aurn
from mrgp.io import files, probing
from mrgp.io.files import read_frame, read_grid
from mrgp.io.queries import _dates, _numbers

SOURCE = '[sources.a]\nfile = "a.csv"\ntask = "no2"\n'
FRAME = pd.DataFrame({"lon": np.arange(50.0), "no2": np.arange(50.0) / 7})


def said_of(read, path):
    """Return what a reader says of a file, its name where it reads it."""
    try:
        read(path)
    except ConfigError as error:
        return str(error)
    return str(path)


def test_a_cut_netcdf_3_file_is_named(tmp_path):
    path = tmp_path / "a.nc"
    xr.Dataset({"a": (("y", "x"), np.ones((5, 6)))}).to_netcdf(path, engine="scipy")
    whole = path.read_bytes()
    for end in range(4, len(whole), 7):
        path.write_bytes(whole[:end])
        with pytest.raises(ConfigError, match=r"a.nc \(\d+ bytes\) cannot be read as a grid"):
            read_grid(path)


def test_damaged_parquet_is_named_or_read_as_it_was(tmp_path):
    path, rng = tmp_path / "a.parquet", np.random.default_rng(0)
    FRAME.to_parquet(path)
    whole = path.read_bytes()
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        assert str(path) in said_of(read_frame, path)


@pytest.mark.filterwarnings("ignore:Non closed ring")
def test_an_open_ring_is_named(tmp_path):
    path = tmp_path / "a.geojson"
    ring = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1]]]}
    feature = {"type": "Feature", "properties": {"no2": 1.0}, "geometry": ring}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    with pytest.raises(ConfigError, match=r"a.geojson: it cannot be read: .*closed"):
        read_frame(path)


def test_a_configuration_nested_without_end_is_named(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("a = " + "[" * 100_000)
    with pytest.raises(ConfigError, match=r"a.toml is not a configuration: it is nested too deep"):
        read_config(path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("key = " + "9" * 5000, r"it has a number of thousands of digits"),
        ("a" + ".a" * 40 + " = 1", r"line 1: a key has over 30 dots"),
        ("\n[b" + ' . "c"' * 40 + "]", r"line 2: a key has over 30 dots"),
        ("# " + "x" * (1 << 20), r"it has over 1,048,576 bytes"),
        ("k" * 10_000 + " = 1", r"there is no key 'k{80}\.\.\.'"),
        (SOURCE + "[model]\nrecipe = 0x" + "f" * 5000, r"got a number of thousands of"),
    ],
    ids=["digits", "dots", "dots of a table", "bytes", "name", "number repeated"],
)
def test_a_configuration_beyond_all_bounds_is_named(text, told, tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=rf"a\.toml.*{told}") as raised:
        read_config(path)
    assert len(str(raised.value)) < 500


def test_dots_within_a_configuration_are_no_keys(tmp_path):
    path = tmp_path / "a.toml"
    dots = "... " + "a.b " * 40 + "1.5, " * 40
    path.write_text(f'# {dots}\nfolder = "{dots}"\n[sources]\na.b.c.d = 1\n')
    with pytest.raises(ConfigError, match=r"line 4: there is no key 'sources.a.b'"):
        read_config(path)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_rows_are_counted_whatever_ends_them(end, tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_bytes(("a,b" + end + ("1,2" + end) * 5).encode())
    monkeypatch.setenv(probing.VARIABLE, "12")
    assert len(read_frame(path)) == 5
    monkeypatch.setenv(probing.VARIABLE, "11")
    with pytest.raises(ConfigError, match=r"a.csv: it says that it has 12 values, and 11 are"):
        read_frame(path)


def test_an_end_of_a_line_between_two_parts_is_one(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    first = b"n" * ((1 << 20) - 1)
    path.write_bytes(first + b"\r\n1\r\n")
    monkeypatch.setenv(probing.VARIABLE, "2")
    files.check_table(path, 1)
    monkeypatch.setenv(probing.VARIABLE, "1")
    with pytest.raises(ValueError, match="has 2 values"):
        files.check_table(path, 1)


@pytest.mark.parametrize("read", [read_frame, lambda path: aurn(path, "NO2")], ids=["csv", "aurn"])
def test_a_name_that_is_too_long_for_a_field_is_told_with_its_file(read, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("no2," + "x" * 140_000 + "\n1,2\n")
    with pytest.raises(ValueError, match=r"a\.csv.*field larger than field limit \(131072\)"):
        read(path)


def test_a_last_line_without_its_end_is_named(tmp_path):
    path = tmp_path / "a.csv"
    FRAME.to_csv(path, index=False)
    read_frame(path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.warns(UserWarning, match=r"a.csv: the last line, '49.0,7', has no end"):
        read_frame(path)


def test_a_table_of_very_many_columns_is_refused(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text(",".join(f"c{i}" for i in range(200_000)) + "\n")
    assert command(["init", str(path), "-o", str(tmp_path / "a.toml")]) == 1
    assert "a.csv: it has 200,000 columns, and 10,000 are the most" in capsys.readouterr().err
    path.write_text("x" * (files.LONGEST_LINE + 1))
    with pytest.raises(ConfigError, match="its first line does not end"):
        read_frame(path)


def test_values_that_a_file_only_claims_are_not_waited_for(tmp_path):
    with h5py.File(tmp_path / "a.nc", "w") as file:
        file.create_dataset("a", shape=(500_000, 500_000), chunks=(100, 100), dtype="f8")
    zarr.open_group(tmp_path / "a.zarr", mode="w").create_array(
        "a", shape=(500_000, 500_000), chunks=(1000, 1000), dtype="f8"
    )
    for name in ("a.nc", "a.zarr"):
        with pytest.raises(ConfigError, match=r"a\..* 250,000,000,000 values, and 3,000,000 are"):
            read_grid(tmp_path / name)


def test_a_file_that_is_right_may_be_let_in(tmp_path, monkeypatch):
    FRAME.to_parquet(tmp_path / "a.parquet")
    monkeypatch.setenv(probing.VARIABLE, "90")
    told = r"a.parquet: .* has 100 values, and 90 are the most for a file of .* MRGP_MOST_VALUES="
    with pytest.raises(ConfigError, match=told):
        read_frame(tmp_path / "a.parquet")
    monkeypatch.setenv(probing.VARIABLE, "many")
    with pytest.raises(ConfigError, match="MRGP_MOST_VALUES must be a whole number; got 'many'"):
        read_frame(tmp_path / "a.parquet")
    monkeypatch.setenv(probing.VARIABLE, "100")
    assert len(read_frame(tmp_path / "a.parquet")) == 50


@pytest.mark.parametrize(
    ("does", "told"),
    [("import time; time.sleep(60)", "hangs"), ("import os; os.abort()", "crashes")],
    ids=["hangs", "crashes"],
)
def test_a_file_on_which_the_library_hangs_or_crashes_is_named(tmp_path, monkeypatch, does, told):
    (tmp_path / "child.py").write_text(f"import sys\nsys.stdin.readline()\n{does}")
    monkeypatch.setattr(probing, "CHILD", tmp_path / "child.py")
    monkeypatch.setattr(probing, "SECONDS", 0.5)
    monkeypatch.setattr(probing, "_prober", probing.Prober())
    (tmp_path / "a.nc").write_bytes(b"\x89HDF")
    FRAME.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.geojson").write_text("{}")
    (tmp_path / "a.zarr").mkdir()
    readers = {"nc": read_grid, "zarr": read_grid, "parquet": read_frame, "geojson": read_frame}
    for kind, read in readers.items():
        with pytest.raises(ConfigError, match=rf"a.{kind}.* the library that reads it {told}"):
            read(tmp_path / f"a.{kind}")


def test_no_file_is_waited_for_longer_than_half_a_minute(tmp_path, monkeypatch):
    waited = []
    prober = SimpleNamespace(ask=lambda line, seconds: waited.append(seconds) or "ok")
    monkeypatch.setattr(probing, "_prober", prober)
    path = tmp_path / "a.nc"
    with path.open("wb") as file:
        file.truncate(10**11)
    probing.probe(path, "hdf5")
    assert waited == [30.0]


def test_a_file_of_shapes_that_is_of_another_kind_is_not_read(tmp_path):
    path = tmp_path / "a.geojson"
    path.write_text("<OGRVRTDataSource></OGRVRTDataSource>")
    with pytest.raises(ConfigError, match=r"a.geojson: it does not begin as .geojson files do"):
        read_frame(path)


def test_long_texts_are_not_repeated_in_full(tmp_path):
    column = pd.Series(["x" * 10**5], name="lon")
    for read in (files.read_coordinate, files.check_numbers):
        with pytest.raises(ConfigError, match=r"'x{80}' is n") as raised:
            read(column, "column 'lon'")
        assert len(str(raised.value)) < 500


def test_flipped_bits_of_netcdf_4_never_hang_or_crash(tmp_path, monkeypatch):
    monkeypatch.setattr(probing, "SECONDS", 2.0)
    path, rng = tmp_path / "a.nc", np.random.default_rng(1)
    xr.Dataset({"a": (("y", "x"), np.ones((5, 6)))}).to_netcdf(path, engine="h5netcdf")
    whole = path.read_bytes()
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        assert str(path) in said_of(read_grid, path)


def test_grids_of_dates_are_counted_before_they_are_made():
    with pytest.raises(ConfigError, match=r"1us has 31,536,000,000,001 steps\. Step wider"):
        _dates("time", "2022-01-01/2023-01-01/1us")
    for step in ("0h", "-1h"):
        with pytest.raises(ConfigError, match="neither a date such as"):
            _dates("time", f"2022-01-01/2023-01-01/{step}")
    assert len(_dates("time", "2022-01-01/2022-06-01/MS")) == 6


def test_steps_of_a_grid_are_as_small_as_numbers_tell_apart():
    np.testing.assert_allclose(_numbers("x", "0:2e-12:1e-12"), [0, 1e-12, 2e-12], rtol=1e-9)
    assert len(set(_numbers("x", "0:1e-9:1e-11"))) == 101
    with pytest.raises(ConfigError, match="steps too small to tell places apart at 1e"):
        _numbers("x", "1e6:1000000.000000001:1e-10")
    for span in ("0:1:inf", "0:1:0", "0:1:nan", "0:inf:1"):
        with pytest.raises(ConfigError, match="neither a number nor first:last:step"):
            _numbers("x", span)
