"""Fuzz every reader: files with bits flipped, cut, spliced and filled with extremes.

`python soak/readers.py KIND COUNT SEED` tries one kind and prints what came of it as JSON. The
process is of its own: one that hangs or is killed is the finding.
"""

import contextlib
import io
import json
import re
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import shapely
import xarray as xr
from bombs import BOMBS
from outcomes import Tried, fault_of

import mrgp
from mrgp.config.checking import read_config
from mrgp.datasets import aurn, cams
from mrgp.datasets.laqn import _records, _sites
from mrgp.inference.journal import Journal, kept
from mrgp.io import probing
from mrgp.io.guessing import guess
from mrgp.io.queries import grid_support
from mrgp.io.sources import read_data

EXPECTED = (ValueError, TypeError, OSError)
EXTREMES = (
    b"1e309",
    b"-1e309",
    b"nan",
    b"1e-320",
    b"9" * 400,
    b"-9999",
    b"9.96921e36",
    b"",
    b"\x00",
)
EXTREMES += (
    b"2262-04-12",
    b"0000-00-00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b'"',
    b"'",
    b"\n" * 9,
    b"=",
)
CONFIG = """
inputs = ["lon", "lat", "time"]
key = 0
[sources.a]
file = "FILE"
task = "no2"
crs = "EPSG:4326"
KEYS
"""
GRID = "lon=-0.3:0.1:0.1,lat=51.4:51.6:0.1,time=2022-02-19T00:00/2022-02-19T02:00/1h"


def table():
    rng = np.random.default_rng(0)
    times = pd.date_range("2022-02-19", periods=12, freq="h")
    places = {"lon": rng.uniform(-0.3, 0.1, 12), "lat": rng.uniform(51.4, 51.6, 12)}
    return pd.DataFrame({"time": times, **places, "no2": rng.normal(30, 5, 12).round(2)})


def grid(name="no2"):
    axes = {
        "time": pd.date_range("2022-02-19", periods=3, freq="h"),
        "lat": [51.4, 51.5, 51.6],
        "lon": [-0.3, -0.2, -0.1, 0.0],
    }
    values = np.random.default_rng(1).normal(20, 3, (3, 3, 4))
    return xr.Dataset({name: (tuple(axes), values, {"units": "ug/m3"})}, axes)


def shapes():
    boxes = [shapely.box(i / 10, 51.4, i / 10 + 0.1, 51.5) for i in range(4)]
    times = pd.date_range("2022-02-19", periods=4, freq="h").astype(str)
    columns = {"no2": np.arange(4.0), "time": times}
    return geopandas.GeoDataFrame(columns, geometry=boxes, crs="EPSG:4326")


def quick_fit():
    x = np.linspace(0, 5, 12)[:, None]
    seen = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]))
    few = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
    return mrgp.fit(mrgp.MRGP(mrgp.RBF()), mrgp.Dataset([seen]), optimiser=few, progress=None)


def with_config(keys):
    """Return a reader that goes the way of `mrgp init` and of `mrgp fit`."""

    def read(path):
        try:
            guess([path], path.parent)
        except EXPECTED as error:
            if (fault := fault_of(str(error), path.stem)) is not None:
                raise AssertionError(f"what guesses: {fault}") from error
        config = path.parent / "config.toml"
        config.write_text(CONFIG.replace("FILE", path.name).replace("KEYS", keys))
        read_data(read_config(config))

    return read


def city(folder):
    """Return a fit over places and times, for grids written as text."""
    table().to_csv(folder / "a.csv", index=False)
    config = folder / "config.toml"
    config.write_text(CONFIG.replace("FILE", "a.csv").replace("KEYS", KEYS["table"]))
    few = mrgp.LBFGS(max_steps=1, starts=1, candidates=0)
    data = read_data(read_config(config))
    return mrgp.fit(mrgp.MRGP(mrgp.RBF()), data, optimiser=few, progress=None)


KEYS = {
    "table": 'y = "no2"\nx = ["lon", "lat", "time"]',
    "grid": 'variable = "no2"',
    "shapes": 'y = "no2"\nx = ["time"]',
}
LAQN = {"@SiteCode": "MY1", "@SpeciesCode": "NO2"}
HOURS = [{"@MeasurementDateGMT": f"2022-02-19 0{h}:00:00", "@Value": f"{h}.5"} for h in range(9)]
SITE = {"@SiteCode": "MY1", "@Latitude": "51.5", "@Longitude": "-0.1", "@SiteName": "a"}
SITE |= {"@DateOpened": "2000-01-01 00:00:00", "@DateClosed": "", "@SiteType": "Roadside"}


def write_journal(path):
    with kept(Journal(path, "a fit", every=0.0)):
        quick_fit()
    book = Journal(path, "a fit")
    assert book.read()
    read_journal.right = book.kept


def read_journal(path):
    """Take up a journal: all that was written, or nothing, and then a fit begins anew."""
    book = Journal(path, "a fit")
    if not book.read():
        raise ValueError(f"{path.name} is left, and the fit begins anew")
    same = [sorted(page) for page in book.kept] == [sorted(page) for page in read_journal.right]
    for page, right in zip(book.kept, read_journal.right, strict=False):
        same = same and all(np.array_equal(page[name], right[name]) for name in right)
    if not same:
        raise AssertionError("a journal says what was not written")


def read_text_grid(path):
    grid_support(path.read_bytes().decode("utf-8", "replace"), read_text_grid.fit)


def write_text_grid(path):
    read_text_grid.fit = city(path.parent)
    path.write_text(GRID)


def write_aurn(path):
    frame = table().rename(columns={"time": "date", "lat": "latitude", "lon": "longitude"})
    frame.assign(code="KC1").to_csv(path, index=False)


KINDS = {
    "csv": ("a.csv", lambda p: table().to_csv(p, index=False), with_config(KEYS["table"])),
    "parquet": ("a.parquet", lambda p: table().to_parquet(p), with_config(KEYS["table"])),
    "netcdf-3": (
        "a.nc",
        lambda p: grid().to_netcdf(p, engine="scipy"),
        with_config(KEYS["grid"]),
    ),
    "netcdf-4": (
        "a.nc",
        lambda p: grid().to_netcdf(p, engine="h5netcdf"),
        with_config(KEYS["grid"]),
    ),
    "zarr": ("a.zarr", lambda p: grid().to_zarr(p, mode="w"), with_config(KEYS["grid"])),
    "geojson": ("a.geojson", lambda p: shapes().to_file(p), with_config(KEYS["shapes"])),
    "geopackage": ("a.gpkg", lambda p: shapes().to_file(p), with_config(KEYS["shapes"])),
    "shapefile": ("a.shp", lambda p: shapes().to_file(p), with_config(KEYS["shapes"])),
    "configuration": (
        "a.toml",
        lambda p: p.write_text(CONFIG.replace("FILE", "a.csv").replace("KEYS", KEYS["table"])),
        read_config,
    ),
    "saved fit": ("a.mrgp", lambda p: mrgp.save(quick_fit(), p), mrgp.load),
    "journal": ("a.journal", write_journal, read_journal),
    "aurn": ("a.csv", write_aurn, lambda p: aurn(p, "NO2")),
    "cams": (
        "a.nc",
        lambda p: grid("no2_conc").to_netcdf(p, engine="h5netcdf"),
        lambda p: cams(p, "NO2"),
    ),
    "laqn records": (
        "a.json",
        lambda p: p.write_text(json.dumps({"RawAQData": LAQN | {"Data": HOURS}})),
        lambda p: _records(p.read_bytes(), code="MY1", species="NO2"),
    ),
    "laqn sites": (
        "a.json",
        lambda p: p.write_text(json.dumps({"Sites": {"Site": [SITE]}})),
        lambda p: _sites(p.read_bytes()),
    ),
    "--grid": ("a.txt", write_text_grid, read_text_grid),
}
BOMB_EVERY = 500
HANG = 2.0
"""Seconds after which a small file hangs, here: one in a hundred does, and there are many."""

NAMELESS = ("laqn records", "laqn sites", "--grid")
"""Texts that are no files: what is wrong with them is told without a name."""


def mutated(content, rng):
    """Damage some bytes in one of the ways in which files are damaged, or attacked."""
    data, n = bytearray(content), len(content)
    at = int(rng.integers(n))
    end = min(n, at + int(rng.integers(1, 1 + max(2, n // 8))))
    way = int(rng.integers(8))
    if way == 0:
        data[at] ^= 1 << int(rng.integers(8))
    elif way == 1:
        del data[at:]
    elif way == 2:
        del data[at:end]
    elif way == 3:
        data[at:at] = data[at:end] * int(rng.integers(1, 20))
    elif way == 4:
        data[at:end] = bytes(end - at)
    elif way == 5:
        data[at:end] = rng.bytes(end - at)
    elif way == 6:
        data[at:end] = EXTREMES[int(rng.integers(len(EXTREMES)))]
    else:
        numbers = [*re.finditer(rb"-?\d+(\.\d+)?", bytes(data))]
        if numbers:
            one = numbers[int(rng.integers(len(numbers)))]
            data[one.start() : one.end()] = EXTREMES[int(rng.integers(len(EXTREMES)))]
    return bytes(data)


def damage(path, whole, rng):
    """Write a damaged copy of a file, or of one of the files of a store."""
    for file, content in whole.items():
        file.write_bytes(content)
    file = sorted(whole)[int(rng.integers(len(whole)))]
    changed = mutated(whole[file], rng) if whole[file] else b"x"
    file.write_bytes(changed)
    return changed != whole[file]


def try_kind(kind, count, seed, folder):
    """Try many damaged inputs of one kind."""
    name, write, read = KINDS[kind]
    rng, tried = np.random.default_rng(seed), Tried("readers", kind)
    path = folder / name
    write(path)
    read(path)
    stem = path.stem
    mine = [path, *path.parent.glob(f"{stem}.[ds]*"), *path.rglob("*")]
    whole = {file: file.read_bytes() for file in mine if file.is_file()}
    for number in range(count):
        several = BOMBS.get(kind, ())
        if number % BOMB_EVERY < len(several):
            shutil.rmtree(folder / "bomb", ignore_errors=True)
            (folder / "bomb").mkdir()
            at, changed = folder / "bomb" / name, True
            several[number % BOMB_EVERY](at, rng)
        else:
            at, changed = path, damage(path, whole, rng)
        (folder / "last").write_text(f"{kind} {number} {seed}")
        start = time.perf_counter()
        try:
            read(at)
            if kind == "saved fit" and changed:
                tried.fail(f"input {number} of seed {seed} loads, and was not saved so")
            tried.answer()
        except EXPECTED as error:
            tried.tell(str(error), None if kind in NAMELESS else stem)
        except Exception:
            tried.fail(f"input {number} of seed {seed}: {traceback.format_exc()[-350:]}")
        tried.timed(start)
    return tried


def main():
    kind, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    probing.SECONDS = HANG
    folder = Path(tempfile.mkdtemp())
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            tried = try_kind(kind, count, seed, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    tried.say()


if __name__ == "__main__":
    main()
