"""What a person who waits for a command reads."""

import contextlib
import itertools
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mrgp
from mrgp.cli import command
from mrgp.inference import lbfgs, progress


@pytest.fixture
def impatient(monkeypatch):
    """Say something after a fraction of a second, every line of a stage, and take some time."""
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.05)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)

    def slowly(work):
        def waited(*arguments, **settings):
            time.sleep(0.5)
            return work(*arguments, **settings)

        return waited

    monkeypatch.setattr(mrgp, "predict", slowly(mrgp.predict))
    monkeypatch.setattr(lbfgs.Direct, "__call__", slowly(lbfgs.Direct.__call__))


def test_a_fit_says_what_it_does_and_converged_only_at_its_end(impatient, workplace, capsys):
    assert command(["fit", "city.toml"]) == 0
    told = capsys.readouterr()
    assert re.search(r"^fit: compiling, first step \(\d+ s so far\)$", told.err, re.M)
    assert re.search(r"^fit: step 1 of at most 3, bound -?[\d.]+$", told.err, re.M)
    assert re.search(r"^fit: step \d of at most 3, bound", told.err, re.M)
    assert "converged" not in told.err
    assert "MRGP, step limit: 3 steps" in told.out


def test_a_prediction_says_what_it_does(impatient, city, tmp_path, capsys):
    grid = "lon=-0.3:0:0.1,lat=51.5,time=2022-02-19T01:00"
    asked = ["predict", str(city.fit), "--grid", grid, "--out", str(tmp_path / "map.nc")]
    assert command(asked) == 0
    assert re.search(r"^predicting 4 places", capsys.readouterr().err, re.M)
    assert command([*asked, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_words_of_a_fault_come_after_the_waiting(impatient, workplace, capsys):
    assert command(["fit", "nowhere.toml"]) == 1
    assert "nowhere.toml" in capsys.readouterr().err.splitlines()[-1]


MOST_SILENT = 10.0
"""Seconds, of the CPU or of the clock, whichever are fewer: threads and other work add to each."""
OF_TESTS = ("JAX_", "XLA_", "TF_CPP")


def network(folder):
    """Write hourly values at twelve sites, and a biased product on four cells."""
    rng = np.random.default_rng(0)
    hours = pd.DataFrame({"time": pd.date_range("2022-02-19", periods=24, freq="h")})
    sites = pd.DataFrame({"site": [f"S{i}" for i in range(12)]})
    sites["lon"], sites["lat"] = rng.uniform(-0.3, 0.1, 12), rng.uniform(51.4, 51.6, 12)
    frame = sites.merge(hours, how="cross")
    daily = 10 * np.sin(2 * np.pi * frame["time"].dt.hour / 24)
    frame["no2"] = (30 + daily + 40 * frame["lon"] + rng.normal(0, 2, len(frame))).round(2)
    frame.to_csv(folder / "sensors.csv", index=False)
    cells = pd.DataFrame({"lon_min": [-0.3, -0.1] * 2, "lat_min": [51.4] * 2 + [51.5] * 2})
    cells = cells.assign(lon_max=cells["lon_min"] + 0.2, lat_max=cells["lat_min"] + 0.1)
    cells = cells.merge(hours, how="cross")
    level = 10 * np.sin(2 * np.pi * cells["time"].dt.hour / 24)
    cells["no2"] = (20 + 0.6 * level + rng.normal(0, 1, len(cells))).round(2)
    cells.to_csv(folder / "model.csv", index=False)


def silences(folder, arguments, terminal):
    """Run a command as a person does, and return how long it said nothing, time after time."""
    said = {k: v for k, v in os.environ.items() if not k.startswith(OF_TESTS)}
    said["JAX_COMPILATION_CACHE_DIR"] = str(folder / "cache")
    mine, theirs = pty.openpty() if terminal else os.pipe()
    command = [sys.executable, "-m", "mrgp.cli", *arguments]
    running = subprocess.Popen(
        command, cwd=folder, env=said, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL
    )
    os.close(theirs)
    used, marks = seconds_of(running.pid), []
    text = b""
    while True:
        marks.append((time.monotonic(), used()))
        try:
            chunk = os.read(mine, 65536)
        except OSError:  # how a terminal says that nobody writes any more
            chunk = b""
        if not chunk:
            break
        text += chunk
    assert running.wait() == 0, text.decode()
    os.close(mine)
    steps = itertools.pairwise(marks)
    return [min(b - a for a, b in zip(*pair, strict=True)) for pair in steps], text.decode()


def seconds_of(pid):
    """Return what tells how much of the CPU a process has taken, as long as it is there."""
    last = 0.0

    def used():
        nonlocal last
        with contextlib.suppress(OSError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            last = max(last, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
        return last

    return used


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="reads the time of a process from /proc")
def test_no_command_is_silent_for_ten_seconds(tmp_path):
    """Nothing is compiled beforehand, and the model is chosen: most of a minute or two."""
    pytest.importorskip("plotly")
    network(tmp_path)
    assert silences(tmp_path, ["init", "sensors.csv", "model.csv"], terminal=False)
    gaps, text = silences(tmp_path, ["fit", "mrgp.toml"], terminal=False)
    assert "wrote fit.mrgp" in text
    assert max(gaps) < MOST_SILENT
    assert len(gaps) > 8
    gaps, text = silences(tmp_path, ["report", "fit.mrgp"], terminal=True)
    assert "wrote report.html" in text
    assert max(gaps) < MOST_SILENT
