"""Two writers of one file, a disk that is full, places that cannot be written."""

import contextlib
import functools
import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from outcomes import Tried
from readers import grid, quick_fit, shapes, table, write_aurn

import mrgp
from mrgp.cli import command
from mrgp.experiments.results import write_tables
from mrgp.io.exports import write
from mrgp.io.stores import to_netcdf
from mrgp.report import write_report

SAVE = """
import sys, mrgp
fit = mrgp.load(sys.argv[1])
for _ in range(int(sys.argv[3])):
    mrgp.save(fit, sys.argv[2])
"""
WRITERS = {
    "a.mrgp": lambda path: mrgp.save(quick_fit(), path),
    "a.csv": lambda path: write(pd.concat([table()] * 500), path),
    "a.parquet": lambda path: write(pd.DataFrame({"a": np.sin(np.arange(5000.0))}), path),
    "a.nc": lambda path: write(grid().interp(lat=np.linspace(51.4, 51.6, 400)), path),
    "a.tif": lambda path: write(one_map(), path),
    "a.zarr": lambda path: write_tiles(path),
    "tiled.nc": lambda path: to_netcdf(known_store(), path),
    "aurn.parquet": lambda path: asked(["data", "aurn", aurn_file(), "--species", "NO2"], path),
    "cams.nc": lambda path: asked(["data", "cams", cams_file(), "--species", "NO2"], path),
    "a.geojson": lambda path: write(pd.concat([shapes()] * 100), path),
    "a.html": lambda path: write_report(quick_fit(), path),
    "scores.csv": lambda path: write_tables(path.parent, ABOUT, [ROW] * 2000, [ROW] * 2000),
}
ABOUT = SimpleNamespace(name="a", shown=None)
ROW = {"variant": "a", "model": "b", "seed": 1, "rmse": 0.123456789}
SMALL = 1000
KEPT = Path(tempfile.gettempdir()) / f"soak-{os.getpid()}"


def asked(arguments, path):
    """Run a command that writes to a path, and raise what it says."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = command([*arguments, "-o", str(path)])
    if code:
        raise OSError(said.getvalue().replace("\n", " "))


@functools.cache
def aurn_file():
    KEPT.mkdir(exist_ok=True)
    write_aurn(KEPT / "a.csv")
    return str(KEPT / "a.csv")


@functools.cache
def cams_file():
    KEPT.mkdir(exist_ok=True)
    grid("no2_conc").rename(lat="latitude", lon="longitude").to_netcdf(KEPT / "a.nc")
    return str(KEPT / "a.nc")


@functools.cache
def known_store():
    """Return a store of a map that is whole."""
    KEPT.mkdir(exist_ok=True)
    write_tiles(KEPT / "known.zarr")
    return KEPT / "known.zarr"


def write_tiles(path):
    fit = KEPT / "known.mrgp"
    asked(["predict", str(fit), "--grid", "x1=0:5:0.001", "--tile", "2000", "--quiet"], path)


def one_map():
    import rioxarray

    assert rioxarray
    flat = grid().isel(time=0, drop=True).interp(lat=np.linspace(51.4, 51.6, 200))
    return flat.rio.set_spatial_dims("lon", "lat").rio.write_crs("EPSG:4326")


def content(path):
    """Return what is at a path, of a folder every file."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return {str(file.relative_to(path.parent)): file.read_bytes() for file in files}


def two_writers(count, seed):
    """Let two processes save to one path while this one reads."""
    tried = Tried("writers", "two processes save one fit, a third loads it")
    folder = Path(tempfile.mkdtemp())
    path, known = folder / "shared.mrgp", folder / "known.mrgp"
    mrgp.save(quick_fit(), known)
    shutil.copy(known, path)
    begin = [sys.executable, "-c", SAVE, str(known), str(path), str(count)]
    both = [subprocess.Popen(begin, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    while any(writer.poll() is None for writer in both):
        start = time.perf_counter()
        try:
            mrgp.load(path)
            tried.answer()
        except Exception as error:
            tried.fail(f"a torn read: {error}")
        tried.timed(start)
    for writer in both:
        if writer.returncode:
            tried.fail(writer.communicate()[1][-300:])
    if len(list(folder.iterdir())) != 2:
        tried.fail(f"left behind: {sorted(p.name for p in folder.iterdir())}")
    shutil.rmtree(folder)
    return tried


@contextlib.contextmanager
def small_disk(folder):
    """Mount a small file system in memory at a folder where that is allowed; tell whether it is."""
    command = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)]
    allowed = os.geteuid() == 0 and shutil.which("mount") is not None
    if not (allowed and subprocess.run(command, capture_output=True, check=False).returncode == 0):
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextlib.contextmanager
def no_room(folder, mounted):
    """Leave no room in a folder: fill its disk, or else limit how large files may become."""
    if mounted:
        with (folder / "ballast").open("wb", buffering=0) as ballast:
            for size in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        ballast.write(bytes(size))
        try:
            yield
        finally:
            (folder / "ballast").unlink()
        return
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def full_disk(_, seed):
    """Write every kind of file where there is no room for it."""
    folder = Path(tempfile.mkdtemp())
    with small_disk(folder) as mounted:
        how = "a file system that is full" if mounted else f"files of {SMALL} bytes at most"
        tried = Tried("writers", f"every kind of file on a full disk ({how})")
        write_all(tried, folder, mounted)
    shutil.rmtree(folder)
    shutil.rmtree(KEPT)
    return tried


def write_all(tried, folder, mounted):
    """Write every kind of file over an old one, each without room."""
    KEPT.mkdir(exist_ok=True)
    mrgp.save(quick_fit(), KEPT / "known.mrgp")
    for made in (known_store, aurn_file, cams_file):
        made()
    for name, writer in WRITERS.items():
        path, start = folder / name, time.perf_counter()
        if name.endswith(".zarr"):
            shutil.copytree(known_store(), path)
        else:
            path.write_bytes(b"old")
        old = content(path)
        try:
            with no_room(folder, mounted):
                writer(path)
            tried.fail(f"{name} was written on a full disk")
        except OSError as error:
            tried.tell(str(error), name)
        except Exception as error:
            tried.fail(f"{name}: {type(error).__name__}: {error}")
        left = [p.name for p in folder.iterdir() if p.name.startswith(".part")]
        if content(path) != old or left:
            tried.fail(f"{name}: the old file is lost, or a draft is left: {left}")
        tried.timed(start)
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def read_only(_, seed):
    """Ask commands for files where nothing can be written: they say so before they begin."""
    tried = Tried("writers", "commands whose place cannot be written")
    folder = Path(tempfile.mkdtemp())
    mrgp.save(quick_fit(), folder / "a.mrgp")
    (folder / "file").write_text("")
    places = ["/proc/nowhere", f"{folder}/file", *([] if os.geteuid() == 0 else ["/usr"])]
    fit = str(folder / "a.mrgp")
    for place in places:
        for arguments in (
            ["predict", fit, "--grid", "x1=0:1:0.1", "-o", f"{place}/a.csv"],
            ["report", fit, "-o", f"{place}/a.html"],
            ["fit", f"{folder}/none.toml", "-o", f"{place}/a.mrgp"],
            ["init", f"{folder}/none.csv", "-o", f"{place}/a.toml"],
        ):
            start, said = time.perf_counter(), io.StringIO()
            with contextlib.redirect_stderr(said):
                code = command(arguments)
            if code != 1 or "Traceback" in said.getvalue():
                tried.fail(f"{arguments}: {code} {said.getvalue()[-200:]}")
            else:
                tried.tell(said.getvalue().replace("\n", " "), "cannot be written")
            tried.timed(start)
    shutil.rmtree(folder)
    return tried


PARTS = {"two": two_writers, "full": full_disk, "read-only": read_only}


def main():
    tried = PARTS[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))
    tried.say()


if __name__ == "__main__":
    main()
