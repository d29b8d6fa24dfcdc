"""Exact fits that cannot fit into memory are refused before they start."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mrgp
from mrgp.inference import room

QUICK = mrgp.LBFGS(max_steps=1, starts=1, candidates=0)


def data(n, inputs=None):
    x = np.linspace(0, 6, n)[:, None]
    return mrgp.Dataset([mrgp.Observations(mrgp.points(x, inputs=inputs), np.sin(x[:, 0]))])


def test_an_exact_fit_without_room_names_the_method_to_take():
    recipe = mrgp.MRGP(method="exact")
    with pytest.raises(ValueError, match=r"300,000 values needs about 4.02e\+03 GiB .*collapsed"):
        mrgp.fit(recipe, data(300_000), optimiser=QUICK)


def test_40_000_values_do_not_fit_where_24_gigabytes_are(monkeypatch):
    monkeypatch.setattr(room, "memory", lambda: 24.0 * 2**30)
    told = r"exact fit of 40,000 values needs about 71.5 GiB of memory, and 24 are free"
    with pytest.raises(ValueError, match=told):
        mrgp.fit(mrgp.MRGP(method="exact"), data(40_000), optimiser=QUICK)


@pytest.mark.parametrize("again", ["condition", "extend", "resume"])
def test_what_goes_on_from_a_fit_needs_room_too(again, monkeypatch):
    fit = mrgp.fit(mrgp.MRGP(method="exact"), data(12), optimiser=QUICK)
    monkeypatch.setattr(room, "memory", lambda: 1000.0)
    what = "fit of 12" if again == "resume" else "posterior of "
    with pytest.raises(ValueError, match=rf"exact {what}.* and 9.31e-07 are free"):
        getattr(fit, again)(data(12))


def test_what_has_room_is_fitted(monkeypatch):
    monkeypatch.setattr(room, "memory", lambda: 1000.0)
    mrgp.fit(mrgp.MRGP(method="collapsed", inducing=5), data(20), optimiser=QUICK)
    with pytest.raises(ValueError, match="exact fit of 20 values"):
        mrgp.fit(mrgp.MRGP(method="exact"), data(20), optimiser=QUICK)


def test_a_filter_along_time_has_no_such_matrices(monkeypatch):
    monkeypatch.setattr(room, "memory", lambda: 1000.0)
    mrgp.fit(mrgp.MRGP(method="markov"), data(20, ("time",)), optimiser=QUICK)


def test_what_others_have_taken_is_not_free(monkeypatch, tmp_path):
    known = tmp_path / "meminfo"
    known.write_text("MemTotal: 99 kB\nMemFree: 1 kB\nMemAvailable: 7 kB\nSwapFree: 5 kB\n")
    monkeypatch.setattr(room, "MEMORY", known)
    assert room.memory() == 7 * 1024
    monkeypatch.setattr(room, "MEMORY", tmp_path / "nowhere")
    assert room.memory() > 1e8


def test_a_limit_of_a_container_counts(monkeypatch, tmp_path):
    monkeypatch.setattr(room, "GROUPS", ((tmp_path, "max", "now"),))
    (tmp_path / "memory.stat").write_text("anon 600\ninactive_file 300\nactive_file 99\n")
    (tmp_path / "now").write_text("900")
    (tmp_path / "max").write_text("1000")
    assert room.memory() == 400
    (tmp_path / "max").write_text("max")
    assert room.memory() > 1e8


def megabytes(count):
    """Return what an exact fit takes in a process of its own, where nothing is left behind."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import largest;"
        "print(largest.measure_fit('exact', int(sys.argv[2]))['MB'])"
    )
    folder = Path(__file__).parents[2] / "benchmarks"
    command = [sys.executable, "-W", "ignore", "-c", code, str(folder), str(count)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="reads peaks of memory from /proc")
def test_an_exact_fit_takes_as_many_matrices_as_are_counted():
    # Compiling takes some memory too, as much for few values as for many.
    few, many = 1500, 3000
    matrices = (megabytes(many) - megabytes(few)) * 1e6 / (8.0 * (many**2 - few**2))
    assert 0.75 * room.FITTED < matrices < 1.1 * room.FITTED
