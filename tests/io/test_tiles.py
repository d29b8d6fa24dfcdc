"""Maps tile by tile: lazily over Dask, and into Zarr on the command line."""

import filecmp
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import dask
import dask.array
import numpy as np
import pytest
import xarray as xr

import mrgp
import zoo
from mrgp.cli import command
from mrgp.cli import tiled as tiled_maps
from mrgp.inference import Lines, Silent
from mrgp.io import stores
from mrgp.io.tiles import spans, tile_shape, tiling_of

GRID = "lon=-0.3:0.1:0.02,lat=51.4:51.6:0.02,time=2022-02-19T01:00"
TILES = ["--grid", GRID, "--tile", "60", "--quiet"]


def line(count=12, **beside):
    return xr.Dataset(coords={"x1": np.linspace(0.0, 5.0, count)} | beside)


def same_files(one, other):
    """Tell whether two folders have the same files, byte by byte."""
    names = [sorted(str(p.relative_to(r)) for p in r.rglob("*")) for r in (one, other)]
    files = [n for n in names[0] if (one / n).is_file()]
    return names[0] == names[1] and filecmp.cmpfiles(one, other, files, shallow=False)[1:] == (
        [],
        [],
    )


@pytest.fixture(scope="module")
def plane():
    """A fit with two inputs and units, and a grid with attributes and a CRS."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 5, (14, 2))
    support = mrgp.points(x, inputs=("a", "b"))
    seen = mrgp.Observations(support, np.sin(x[:, 0]) + x[:, 1], task="no2", units="ppb")
    fit = mrgp.fit(mrgp.MRGP(mrgp.RBF()), mrgp.Dataset([seen]), optimiser=zoo.QUICK, progress=None)
    coords = {
        "b": ("b", np.linspace(0, 5, 4), {"units": "m"}),
        "a": ("a", np.linspace(0, 5, 6), {"long_name": "easting"}),
    }
    grid = xr.DataArray(dask.array.zeros((4, 6), chunks=(3, 6)), coords, ("b", "a"), name="seen")
    grid = grid.assign_coords(spatial_ref=((), 0, {"crs_wkt": "LOCAL_CS[]"}))
    grid.encoding["grid_mapping"] = "spatial_ref"
    return fit, grid


def test_a_grid_in_chunks_stays_lazy_and_is_what_predict_and_to_grid_give(plane):
    fit, grid = plane
    lazy = mrgp.predict(fit, grid)
    assert dask.is_dask_collection(lazy["mean"].data)
    assert lazy["mean"].chunks == ((3, 1), (6,))
    support = mrgp.from_grid(grid, inputs=("a", "b")).support
    wanted = mrgp.predict(fit, support).to_grid(like=grid)
    found = lazy.compute(scheduler="threads")
    for name in ("mean", "std", "lower", "upper"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-9)
        assert found[name].dims == ("b", "a")
        assert found[name].attrs == {"units": "ppb", "grid_mapping": "spatial_ref"}
    for name in ("a", "b", "a_bounds", "b_bounds"):
        xr.testing.assert_identical(found[name].variable, wanted[name].variable)
    assert found["spatial_ref"].attrs == {"crs_wkt": "LOCAL_CS[]"}
    assert found.attrs == wanted.attrs


def test_chunks_do_not_change_what_is_predicted(plane):
    fit, grid = plane
    whole = mrgp.predict(fit, grid.drop_vars("spatial_ref").compute())
    assert not dask.is_dask_collection(whole["mean"].data)
    for chunks in ({"a": 2}, "auto", {"b": -1, "a": (1, 5)}):
        parts = mrgp.predict(fit, grid, chunks=chunks).compute(scheduler="synchronous")
        np.testing.assert_allclose(parts["lower"], whole["lower"], rtol=1e-9)


def test_dimensions_are_matched_with_inputs_by_name_or_kind(city):
    fit = mrgp.load(city.fit)
    coords = {"time": np.array(["2022-02-19T01"], "M8[ns]"), "latitude": [51.4, 51.5, 51.6]}
    grid = xr.Dataset(coords=coords | {"longitude": [-0.2, 0.0]})
    found = mrgp.predict(fit, grid, source="sensors")
    renamed = grid.rename(latitude="lat", longitude="lon")
    support = mrgp.from_grid(renamed, inputs=fit.inputs, crs="EPSG:4326")
    wanted = mrgp.predict(fit, support, source="sensors").to_grid()
    assert found["mean"].dims == ("time", "latitude", "longitude")
    np.testing.assert_allclose(found["mean"], wanted["mean"].transpose("time", "lat", "lon"))
    assert found.attrs == {"task": "no2", "source": "sensors"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"support": line().rename(x1="z")}, "dimensions z are not the fit's inputs, x1"),
        ({"chunks": {"z": 2}}, "chunks= names 'z', but the dimensions are x1"),
        (
            {"scheduler": "tcp://127.0.0.1:1"},
            'scheduler= is for grids in chunks: give chunks="auto"',
        ),
        ({"chunks": "auto", "scheduler": "threads"}, r"\.compute\(scheduler='threads'\)"),
        ({"joint": True}, "joint= goes with a support; leave it out"),
        ({"support": mrgp.points([[0.0]]), "chunks": "auto"}, "chunks= goes with an xarray grid"),
        ({"task": "so2"}, "no task is named 'so2'"),
    ],
)
def test_mistakes_with_grids_are_told_before_anything_is_computed(change, text, as_users_see_it):
    with pytest.raises(ValueError, match=text):
        mrgp.predict(zoo.fit("exact"), **{"support": line()} | change)


def test_a_covariate_of_places_is_a_scalar_coordinate():
    x = np.arange(12.0)[:, None]
    kind = ["park", "road"] * 6
    seen = mrgp.Observations(
        mrgp.points(x, covariates={"type": kind}), np.where(np.array(kind) == "road", 9.0, 5.0)
    )
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), optimiser=zoo.QUICK, progress=None)
    with pytest.raises(ValueError, match=r"covariate 'type'.*assign_coords\(type=\.\.\.\)"):
        mrgp.predict(fit, line())
    road, park = (mrgp.predict(fit, line(type=kind))["mean"] for kind in ("road", "park"))
    assert float((road - park).min()) > 3


@pytest.mark.parametrize("shape", [(7,), (5, 3), (2, 3, 4)])
def test_tiles_cover_every_cell_once(shape):
    count = np.zeros(shape, int)
    steps = tile_shape(shape, 4)
    assert np.prod(steps) <= 4
    for span in spans(shape, steps):
        count[span] += 1
    assert np.all(count == 1)


class Stopping:
    """Work through tasks until a number of them is done, and stop as a kill would."""

    here = True

    def __init__(self, most):
        self.most, self.done = most, 0

    def spread(self, work, shared, tasks):
        for number, task in enumerate(tasks):
            if self.done == self.most:
                raise KeyboardInterrupt
            self.done += 1
            yield number, work(shared, task)


def tiled(path, team, count=12, mark="mark", progress=None):
    grid = line(count)
    asked = {"task": "no2", "source": None, "noise": False, "key": 0, "samples": None}
    tiling = tiling_of(zoo.fit("exact"), grid, asked, exceed=0.5)
    template = stores_template(tiling, grid)
    return stores.write_store(tiling, template, path, mark, team, progress or Silent(), most=4)


def stores_template(tiling, grid):
    from mrgp.cli.tiled import _template

    return _template(tiling, grid)


def test_a_map_that_is_stopped_goes_on_and_ends_the_same(tmp_path):
    assert tiled(tmp_path / "whole.zarr", Stopping(9)) == (3, 0)
    path = tmp_path / "map.zarr"
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            tiled(path, Stopping(1))
        assert not path.exists()
    again = Stopping(9)
    assert tiled(path, again) == (3, 2)
    assert again.done == 1
    assert same_files(tmp_path / "whole.zarr", path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["map.zarr", "whole.zarr"]
    found = xr.open_zarr(path, chunks=None, consolidated=False)
    wanted = mrgp.predict(zoo.fit("exact"), mrgp.from_grid(line()))
    np.testing.assert_allclose(found["mean"], wanted.mean)
    np.testing.assert_allclose(found["exceedance"], wanted.exceedance(0.5))


def test_tiles_are_told_from_the_first_on(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("mrgp.inference.progress.SECONDS_BETWEEN_LINES", -1.0)
    with pytest.raises(KeyboardInterrupt):
        tiled(tmp_path / "map.zarr", Stopping(1))
    tiled(tmp_path / "map.zarr", Stopping(9), progress=Lines())
    assert capsys.readouterr().err.splitlines() == [
        "predict: 1 of 3 tiles",
        "predict: 2 of 3 tiles",
        "predict: 3 of 3 tiles",
        "predict: 3 tiles, 1 of them were there",
    ]


def test_a_whole_store_takes_the_place_of_the_one_that_was_there(tmp_path):
    path = tmp_path / "map.zarr"
    tiled(path, Stopping(9), count=8)
    tiled(path, Stopping(9), count=12)
    assert xr.open_zarr(path, chunks=None, consolidated=False).sizes["x1"] == 12
    assert [p.name for p in tmp_path.iterdir()] == ["map.zarr"]


def test_a_store_is_there_at_every_moment_of_being_replaced(tmp_path, monkeypatch):
    path = tmp_path / "map.zarr"
    tiled(path, Stopping(9), count=8)
    replace, absent = os.replace, []

    def watched(*args):
        replace(*args)
        absent.append(not path.exists())

    monkeypatch.setattr(os, "replace", watched)
    tiled(path, Stopping(9), count=12)
    assert not any(absent)


def test_drafts_of_other_questions_are_removed_where_nobody_writes_them(tmp_path):
    path = tmp_path / "map.zarr"
    with pytest.raises(KeyboardInterrupt):
        tiled(path, Stopping(1), mark="an older fit")
    assert len(list(tmp_path.iterdir())) == 1

    class Meanwhile(Stopping):
        def spread(self, work, shared, tasks):
            tiled(path, Stopping(9), mark="a newer fit")
            yield from super().spread(work, shared, tasks)

    tiled(path, Meanwhile(9))
    assert [p.name for p in tmp_path.iterdir()] == ["map.zarr"]


def limited(size):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.fixture
def room():
    """Set a limit on the size of files, which fails a writer as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.getsignal(signal.SIGXFSZ)
    yield limited
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_ends_in_a_sentence_with_the_name_of_the_map(tmp_path, room):
    path = tmp_path / "map.zarr"
    tiled(path, Stopping(9), count=8)
    old = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    room(100)
    told = r"map\.zarr could not be written: .*The tiles that are there are kept"
    with pytest.raises(OSError, match=told):
        tiled(path, Stopping(9), count=12)
    room(resource.RLIM_INFINITY)
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == old
    tiled(path, Stopping(99), count=300)
    out = tmp_path / "map.nc"
    for size in (1000, 5000, 12_000, 16_000):
        out.write_text("old")
        room(size)
        with pytest.raises(OSError, match=r"map\.nc could not be written: .* is as it was"):
            stores.to_netcdf(path, out)
        room(resource.RLIM_INFINITY)
        assert out.read_text() == "old"
    # HDF5 crashes when Python ends, where a file could not be closed.
    code = f"""
import resource, signal
from pathlib import Path
from mrgp.io.stores import to_netcdf
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for size in (1000, 12_000, 16_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        to_netcdf(Path({str(path)!r}), Path({str(out)!r}))
    except OSError as error:
        assert "map.nc could not be written" in str(error)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    stores.to_netcdf(path, out)
    with xr.open_dataset(out) as found:
        np.testing.assert_array_equal(found["mean"], xr.open_zarr(path, consolidated=False)["mean"])


def test_two_processes_do_not_write_one_map(tmp_path):
    path = tmp_path / "map.zarr"

    class Second:
        here = True

        def spread(self, work, shared, tasks):
            with pytest.raises(OSError, match="is being written by another process"):
                tiled(path, Stopping(9))
            return iter(())

    with pytest.raises(KeyboardInterrupt):
        tiled(path, Stopping(0))
    tiled(path, Second())


def test_the_command_writes_a_store_and_netcdf_from_it(city, tmp_path):
    common = ["predict", str(city.fit), "--exceed", "30"]
    for out in ("map.zarr", "tiles.nc"):
        assert command([*common, *TILES, "-o", str(tmp_path / out)]) == 0
    assert command([*common, "--grid", GRID, "--quiet", "-o", str(tmp_path / "whole.nc")]) == 0
    store = xr.open_zarr(tmp_path / "map.zarr", chunks=None, consolidated=False).load()
    with xr.open_dataset(tmp_path / "tiles.nc") as tiles:
        xr.testing.assert_identical(store, tiles.load())
    with xr.open_dataset(tmp_path / "whole.nc") as whole:
        xr.testing.assert_allclose(store, whole, rtol=1e-9)
        assert store.attrs == whole.attrs
        assert all(store[n].attrs == whole[n].attrs for n in whole.variables)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["map.zarr", "tiles.nc", "whole.nc"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--at", "p.csv", "-o", "m.zarr"], "--out m.zarr is for maps: give --grid."),
        (
            ["--grid", GRID, "-o", "m.csv", "--workers", "2"],
            "--workers is for maps in .zarr and .nc",
        ),
        (["--grid", GRID, "-o", "m.zarr", "--picture", "m.png"], "--picture draws maps"),
        (
            ["--grid", GRID, "-o", "m.zarr", "--workers", "2", "--scheduler", "tcp://a:1"],
            "give a scheduler, or a number of workers to start here; got both",
        ),
        (
            ["--grid", GRID, "-o", "m.zarr", "--scheduler", "nonsense://a"],
            "no Dask scheduler answers at 'nonsense://a'",
        ),
        (["--grid", GRID, "-o", "full.zarr"], "full.zarr is there, and is no Zarr store"),
    ],
)
def test_mistakes_with_maps_are_told(arguments, text, city, workplace, capsys):
    (workplace / "full.zarr").mkdir()
    assert command(["predict", str(city.fit), *arguments]) == 1
    assert text in " ".join(capsys.readouterr().err.split())


def test_a_picture_of_a_map_made_in_tiles_is_refused(city, workplace, monkeypatch, capsys):
    monkeypatch.setattr(tiled_maps, "MOST_PLACES", 10)
    arguments = ["--grid", GRID, "-o", "m.nc", "--picture", "m.png"]
    assert command(["predict", str(city.fit), *arguments]) == 1
    text = " ".join(capsys.readouterr().err.split())
    assert "--picture draws maps that are made in one piece; a grid of " in text
    assert not (workplace / "m.nc").exists()


def test_without_dask_the_extra_is_named(monkeypatch, plane):
    fit, grid = plane
    grid = grid.drop_vars("spatial_ref").compute()
    monkeypatch.setitem(sys.modules, "dask.array", None)
    with pytest.raises(ImportError, match=r'needs dask\.array: pip install "mrgp\[scale\]"'):
        mrgp.predict(fit, grid, chunks="auto")


@pytest.mark.thorough
def test_a_map_killed_again_and_again_equals_one_that_was_not(city, tmp_path):
    begin = [sys.executable, "-m", "mrgp.cli", "predict", str(city.fit), "--grid", GRID]
    begin += ["--tile", "8", "-o"]
    environment = os.environ | {"PYTHONPATH": str(Path(mrgp.__file__).parents[1])}
    subprocess.run([*begin, str(tmp_path / "whole.zarr")], env=environment, check=True)
    path = tmp_path / "map.zarr"
    for tiles in (2, 5):
        process = subprocess.Popen([*begin, str(path)], env=environment)
        while process.poll() is None and len(list(tmp_path.glob(".map*/done/*"))) < tiles:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run([*begin, str(path)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "of which were there" in done.stdout
    assert same_files(tmp_path / "whole.zarr", path)
