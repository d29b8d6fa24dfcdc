"""Kill commands at random moments: files stay whole, and what is started again ends the same."""

import multiprocessing
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
from outcomes import LONGEST, Tried, note_size

CONFIG = """
inputs = ["lon", "lat", "time"]
[sources.sensors]
file = "sensors.csv"
task = "no2"
y = "no2"
x = ["lon", "lat", "time"]
crs = "EPSG:4326"
[model]
recipe = "MRGP"
[model.optimiser]
name = "LBFGS"
max_steps = 30
starts = 2
"""
GRID = "lon=-0.3:0.1:0.01,lat=51.4:51.6:0.01,time=2022-02-19T01:00"
MAP = ["predict", "known.mrgp", "--grid", GRID, "--quiet"]
COMMANDS = {
    "fit": ["fit", "city.toml", "-o", "fit.mrgp", "--quiet"],
    "fit, auto": ["fit", "auto.toml", "-o", "auto.mrgp", "--quiet"],
    "predict": [*MAP, "-o", "map.nc"],
    "predict, zarr": [*MAP, "--tile", "100", "-o", "map.zarr"],
    "predict, tiled nc": [*MAP, "--tile", "100", "-o", "tiles.nc"],
    "predict, tif": [*MAP, "-o", "map.tif"],
    "data": ["data", "aurn", "aurn.csv", "--species", "NO2", "-o", "no2.parquet"],
    "report": ["report", "known.mrgp", "-o", "page.html", "--quiet"],
    "run": ["run", "dependent", "--quick", "--seeds", "2", "--models", "single-gp", "--quiet"],
}
WROTE = {
    "fit": "fit.mrgp",
    "fit, auto": "auto.mrgp",
    "predict": "map.nc",
    "predict, zarr": "map.zarr",
    "predict, tiled nc": "tiles.nc",
    "predict, tif": "map.tif",
    "data": "no2.parquet",
    "report": "page.html",
    "run": "results/dependent/scores.csv",
}


LONGEST_WHOLE, MOST_TIMES = 600.0, 5.0
"""Seconds for a command, and how many times as long as usual a killed one may take with its end."""

MOST_ATTEMPTS = 4
"""How many times more often than there are to be kills a command is started: some end before."""


def work(folder, arguments):
    """Run one command in a folder as the command line does, its journal written at every step."""
    import os

    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import mrgp
    from mrgp.cli import command
    from mrgp.inference import journal

    mrgp.compilation_cache()
    journal.EVERY = 0.0
    sys.exit(command(arguments))


def prepare(folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"lon": rng.uniform(-0.3, 0.1, 60), "lat": rng.uniform(51.4, 51.6, 60)})
    frame["time"] = pd.date_range("2022-02-19", periods=60, freq="10min")
    frame["no2"] = 30 + 40 * frame["lon"] + rng.normal(0, 1, 60)
    frame.to_csv(folder / "sensors.csv", index=False)
    (folder / "city.toml").write_text(CONFIG)
    (folder / "auto.toml").write_text(CONFIG.partition("[model]")[0])
    hours = pd.concat([frame.assign(code=f"S{k}", lat=frame["lat"] + k / 50) for k in range(90)])
    hours["date"] = hours.pop("time")
    hours.to_csv(folder / "aurn.csv", index=False)


class Killer:
    """Starts commands in processes that have the libraries loaded, and kills them."""

    def __init__(self, folder):
        self.folder = folder
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["mrgp.cli", "plotly.offline"])

    def start(self, arguments):
        process = self.context.Process(target=work, args=(str(self.folder), arguments))
        process.start()
        return process

    def seen(self, process, seconds):
        """Wait for a process, and note how large it becomes."""
        end = time.perf_counter() + seconds
        while process.is_alive() and (left := end - time.perf_counter()) > 0:
            process.join(min(0.2, left))
            note_size(process.pid)

    def whole(self, arguments):
        """Run a command to its end; return how long it took."""
        began, process = time.perf_counter(), self.start(arguments)
        self.seen(process, LONGEST_WHOLE)
        if process.exitcode != 0:
            raise RuntimeError(f"{arguments[0]} ended with {process.exitcode}")
        return time.perf_counter() - began

    def killed(self, arguments, after):
        """Kill a command after some seconds; tell whether it was still running."""
        process = self.start(arguments)
        self.seen(process, after)
        alive = process.is_alive()
        process.kill()
        process.join()
        return alive


def content(path, name):
    """Return what must be the same in two files that were written by the same command."""
    if name.startswith("fit"):
        import mrgp

        fit = mrgp.load(path)
        values = {key: value.tolist() for key, value in fit.parameters().items()}
        return values, fit.history.tolist(), str(fit.status)
    if path.name == "tiles.nc":
        import xarray

        # HDF5 notes the second in which a variable was made.
        with xarray.open_dataset(path) as found:
            return found.to_dict()
    if path.is_dir():
        return {str(file): file.read_bytes() for file in path.rglob("*") if file.is_file()}
    return path.read_bytes()


def forget(name, out):
    """Remove what a fit that was killed left to go on with."""
    if name.startswith("fit"):
        Path(f"{out}.journal").unlink(missing_ok=True)


def try_command(name, count, seed):
    """Kill one command many times; after each kill, look at its file and let it end."""
    tried, rng = Tried("kills", f"mrgp {name}"), np.random.default_rng(seed)
    folder = Path(tempfile.mkdtemp())
    try:
        prepare(folder)
        killer, out = Killer(folder), folder / WROTE[name]
        if name.startswith(("predict", "report")):
            killer.whole([*COMMANDS["fit"][:3], "known.mrgp", "--quiet"])
        killer.whole(COMMANDS[name])
        usual = killer.whole([*COMMANDS[name], *(["--fresh"] if name == "run" else [])])
        right = content(out, name)
        number, longest = 0, max(LONGEST, MOST_TIMES * usual)
        while tried.inputs < count and number < MOST_ATTEMPTS * count:
            began, number = time.perf_counter(), number + 1
            fresh = ["--fresh"] if name == "run" else []
            after = float(rng.uniform(0.05, max(0.1, usual)))
            if not killer.killed([*COMMANDS[name], *fresh], after):
                # It had ended by itself; the next time it takes so long is nearer.
                usual *= 0.98
                forget(name, out)
                continue
            try:
                if content(out, name) != right:
                    tried.fail(f"kill {number} of seed {seed}: the old file has changed")
                resumed = ["--resume"] if name.startswith("fit") else []
                killer.whole([*COMMANDS[name], *resumed])
                same = content(out, name) == right
                left = [p.name for p in out.parent.iterdir() if p.name.startswith(".")]
                if not same or left:
                    tried.fail(f"kill {number} of seed {seed}: same {same}, left {left}")
                else:
                    tried.answer()
            except Exception:
                tried.fail(f"kill {number} of seed {seed}: {traceback.format_exc()[-300:]}")
            tried.timed(began, longest)
            forget(name, out)
        if tried.inputs < count:
            tried.fail(f"only {tried.inputs} of {count} kills found {name} alive")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return tried


def main():
    tried = try_command(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    tried.say()


if __name__ == "__main__":
    main()
