"""Files that would unfold into gigabytes are refused before they do, in a sentence."""

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mrgp.config.checking import read_config
from mrgp.datasets import aurn, cams
from mrgp.inference.journal import Journal, kept, new_page
from mrgp.io import probing
from mrgp.io.files import read_frame, read_grid

SOAK = Path(__file__).parents[2] / "soak"
NAMES = {"csv": "csv", "aurn": "csv", "parquet": "parquet", "netcdf-3": "nc", "netcdf-4": "nc"}
NAMES |= {
    "configuration": "toml",
    "cams": "nc",
    "zarr": "zarr",
    "geojson": "geojson",
    "geopackage": "gpkg",
}
TOLD = r"(has [\d,]+ values, and [\d,]+ are the most for a file|grows to over [\d,]+ bytes|hangs"
TOLD += r"|no names of columns|not a CSV file|thousands of digits|over 30 dots|no key 'keys')"


def bombs():
    found = importlib.util.spec_from_file_location("bombs", SOAK / "bombs.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.BOMBS


def reader_of(kind):
    if kind == "configuration":
        return read_config
    if kind in ("aurn", "cams"):
        return {"aurn": aurn, "cams": cams}[kind]
    return read_grid if NAMES[kind] in ("nc", "zarr") else read_frame


CASES = [(kind, i) for kind, several in bombs().items() for i in range(len(several))]


@pytest.mark.parametrize(("kind", "number"), [c for c in CASES if c[0] != "journal"], ids=str)
def test_a_small_file_that_unfolds_is_refused(kind, number, tmp_path, monkeypatch):
    monkeypatch.setattr(probing, "SECONDS", 2.0)
    path = tmp_path / f"bomb.{NAMES[kind]}"
    bombs()[kind][number](path, np.random.default_rng(number))
    assert probing.size_of(path) < 2e6
    read, began = reader_of(kind), time.process_time()
    with pytest.raises(ValueError, match=rf"bomb\.{NAMES[kind]}.*{TOLD}"):
        read(path, "NO2") if kind in ("aurn", "cams") else read(path)
    assert time.process_time() - began < 5


def test_a_journal_that_is_packed_is_none(tmp_path):
    path = tmp_path / "a.journal"
    book = Journal(path, "a fit", every=0.0)
    with kept(book):
        page = new_page()
        page.add(np.zeros(2), 1.0, np.zeros(2))
        page.offer(list, ended=True)
    assert Journal(path, "a fit").read()
    with np.load(path) as file:
        arrays = {name: file[name] for name in file}
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays | {"0/memory/0": np.zeros(10**5)})
    assert not Journal(path, "a fit").read()


def test_the_child_needs_nothing_of_mrgp():
    code = "import sys; sys.argv = ['x']; exec(open(%r).read()); assert 'jax' not in sys.modules"
    trial = str(probing.CHILD)
    done = subprocess.run([sys.executable, "-P", "-c", code % trial], input="", text=True)
    assert done.returncode == 0
