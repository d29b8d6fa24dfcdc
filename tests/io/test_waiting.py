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


def silences(folder, arguments, terminal, script=None):
    """Run a command as a person does, and return how long it said nothing, time after time.

    With a `script`, it is this that is run.
    """
    said = {k: v for k, v in os.environ.items() if not k.startswith(OF_TESTS)}
    said["JAX_COMPILATION_CACHE_DIR"] = str(folder / "cache")
    mine, theirs = pty.openpty() if terminal else os.pipe()
    command = [
        sys.executable,
        *(["-m", "mrgp.cli", *arguments] if script is None else ["-c", script]),
    ]
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


on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="reads the time of a process from /proc"
)


@pytest.mark.thorough
@on_linux
def test_no_command_is_silent_for_ten_seconds(tmp_path):
    """Nothing is compiled beforehand, and the model is chosen: most of a minute or two."""
    pytest.importorskip("plotly")
    network(tmp_path)
    gaps, text = silences(tmp_path, ["init", "sensors.csv", "model.csv"], terminal=False)
    assert "mrgp.toml" in text
    assert max(gaps) < MOST_SILENT
    gaps, text = silences(tmp_path, ["fit", "mrgp.toml"], terminal=False)
    assert "wrote fit.mrgp" in text
    assert max(gaps) < MOST_SILENT
    assert len(gaps) > 8
    # The steps of a real fit say how long those that are left may take.
    assert re.search(r"step \d+ of at most \d+, bound -?[\d.]+, at most [\d a-z]+ left", text)
    assert re.search(r"held out, fit \d of \d: ", text)
    grid = "lon=-0.3:0.1:0.05,lat=51.4:51.6:0.05,time=2022-02-19T00:00"
    asked = ["predict", "fit.mrgp", "--grid", grid, "--out", "map.csv"]
    gaps, text = silences(tmp_path, asked, terminal=False)
    assert "wrote map.csv" in text
    assert max(gaps) < MOST_SILENT
    gaps, text = silences(tmp_path, ["evaluate", "fit.mrgp", "sensors.csv"], terminal=False)
    assert "rmse" in text
    assert max(gaps) < MOST_SILENT
    tiled = [*asked[:-1], "map.zarr", "--tile", "8"]
    for quick in (["info", "fit.mrgp"], tiled):
        gaps, text = silences(tmp_path, quick, terminal=False)
        assert text
        assert max(gaps) < MOST_SILENT
    gaps, text = silences(tmp_path, ["report", "fit.mrgp"], terminal=True)
    assert "wrote report.html" in text
    assert max(gaps) < MOST_SILENT


@pytest.mark.thorough
@on_linux
def test_no_experiment_is_silent_for_ten_seconds(tmp_path):
    asked = ["run", "dependent", "--quick", "--seeds", "1", "--out", str(tmp_path / "results")]
    gaps, text = silences(tmp_path, asked, terminal=False)
    assert "dependent" in text
    assert max(gaps) < MOST_SILENT


@pytest.mark.thorough
@on_linux
def test_the_demo_is_not_silent_for_ten_seconds(tmp_path):
    gaps, text = silences(tmp_path, ["demo", "--out", "demo"], terminal=False)
    assert "mr-gp" in text
    assert max(gaps) < MOST_SILENT


EVERY_LINE = """
import sys
from mrgp.cli import main
from mrgp.inference import progress
progress.SECONDS_BETWEEN_LINES = 0.0
sys.argv = ["mrgp", "fit", "mrgp.toml"]
main()
"""
"""Lines that come too soon after another are left out, which depends on the machine."""


def kernels(folder):
    """Write values of one source without time: three kernels are tried on them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(0, 10, (40, 2)), columns=["east", "north"])
    frame["no2"] = (20 + 3 * np.sin(frame["east"]) + rng.normal(0, 0.3, 40)).round(3)
    frame.to_csv(folder / "places.csv", index=False)


@pytest.mark.thorough
@on_linux
def test_a_command_says_which_kernel_of_how_many_it_is_at(tmp_path):
    kernels(tmp_path)
    silences(tmp_path, ["init", "places.csv", "--out", "mrgp.toml"], terminal=False)
    gaps, text = silences(tmp_path, [], terminal=False, script=EVERY_LINE)
    assert "wrote fit.mrgp" in text
    assert re.search(r"^choose: kernel 2 of \d \(.+?\): ", text, re.M)
    assert max(gaps) < MOST_SILENT


IN_PYTHON = """
import numpy as np, mrgp
from mrgp.inference import progress
progress.SILENT_SECONDS = {silent}
rng = np.random.default_rng(0)
places, hours = rng.uniform(0, 9, (12, 2)), np.arange(24.0)
where = np.column_stack([np.repeat(places, 24, 0), np.tile(hours, 12)])
sites = mrgp.points(where, inputs=("east", "north", "hour"))
seen = mrgp.Observations(sites, 30 + where[:, 0] + rng.normal(0, 1, len(where)), name="sites")
mrgp.fit("auto", mrgp.Dataset([seen]), progress={progress!r})
"""


@pytest.mark.thorough
@on_linux
def test_a_script_that_asks_for_lines_is_not_silent_for_ten_seconds(tmp_path):
    gaps, text = silences(
        tmp_path, [], terminal=False, script=IN_PYTHON.format(progress="lines", silent=0.5)
    )
    assert "compiling" in text
    assert len(gaps) > 4
    assert max(gaps) < MOST_SILENT


@pytest.mark.thorough
@on_linux
def test_a_notebook_is_not_silent_for_ten_seconds(tmp_path, monkeypatch):
    """What a kernel sends while a cell with progress="auto" runs."""
    manager = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    for name in [name for name in os.environ if name.startswith(OF_TESTS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    started, client = manager.start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    try:
        used, text = seconds_of(started.provisioner.pid), ""
        marks = [(time.monotonic(), used())]
        asked = client.execute(IN_PYTHON.format(progress="auto", silent=8.0))
        while True:
            message = client.get_iopub_msg(timeout=600)
            if message["parent_header"].get("msg_id") != asked:
                continue
            marks.append((time.monotonic(), used()))
            assert message["msg_type"] != "error", message["content"]["traceback"]
            text += message["content"].get("text", "")
            if message["content"].get("execution_state") == "idle":
                break
    finally:
        client.stop_channels()
        started.shutdown_kernel(now=True)
    steps = itertools.pairwise(marks)
    gaps = [min(b - a for a, b in zip(*pair, strict=True)) for pair in steps]
    assert re.search(r"^choose: ", text, re.M)
    assert max(gaps) < MOST_SILENT


def test_lines_say_what_is_done_meanwhile_and_stop_when_work_ends(monkeypatch, capsys):
    """No command is around this fit: the lines see to it themselves."""
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.05)
    lines = progress.Lines()
    # A frame of the library is what the thread looks for.
    work = {"__name__": "mrgp.of_a_test", "lines": lines, "time": time}
    exec("def run():\n    lines.start('fit', 3)\n    time.sleep(0.5)", work)
    work["run"]()
    assert re.search(
        r"^fit: compiling, first step \(\d+ s so far\)$", capsys.readouterr().err, re.M
    )
    deadline = time.monotonic() + 5.0
    while progress.said.watched and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not progress.said.watched
    capsys.readouterr()
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_auto_writes_lines_where_a_kernel_runs(monkeypatch):
    class IPython:
        @staticmethod
        def get_ipython():
            return type("Shell", (), {"kernel": object()})()

    monkeypatch.setitem(sys.modules, "IPython", IPython)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert isinstance(progress.as_progress("auto"), progress.Lines)
    monkeypatch.setattr(IPython, "get_ipython", staticmethod(lambda: None))
    assert isinstance(progress.as_progress("auto"), progress.Silent)
