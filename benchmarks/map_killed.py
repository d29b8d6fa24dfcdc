"""Write a map of ten million cells with two workers, and kill it three times on the way.

Prints its measurements as JSON. `run.py` runs it with the right environment.
"""

import dataclasses
import filecmp
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from predict_million import SIDE, make_fit
from predict_million import Sizes as FitSizes

import mrgp

MOST_MEGABYTES = 1500.0
MOST_SHARE = 0.6
KILLS = 3


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Cells along each side of the map, cells of a tile, and the fit."""

    side: int = 3163
    tile: int = 2**18
    sensors: int = 3000
    inducing: int = 300


QUICK = Sizes(side=120, tile=1000, sensors=300, inducing=50)


class Run:
    """One command that writes a map, and the most memory that each of its processes held."""

    def __init__(self, fit: Path, out: Path, sizes: Sizes, workers: int):
        step = SIDE / (sizes.side - 1)
        grid = f"x1=0:{SIDE}:{step!r},x2=0:{SIDE}:{step!r}"
        command = [sys.executable, "-m", "mrgp.cli", "predict", fit, "--grid", grid, "-o", out]
        command += ["--tile", str(sizes.tile), "--workers", str(workers), "--quiet"]
        self.out, self.started, self.peaks = out, time.perf_counter(), {}
        self.process = subprocess.Popen(command)

    def watch(self, until: int | None = None) -> float:
        """Wait for the end, or kill when so many tiles are there; return the seconds."""
        while self.process.poll() is None:
            self.measure()
            if until is not None and self.tiles() >= until:
                self.process.send_signal(signal.SIGKILL)
            time.sleep(0.01)
        return time.perf_counter() - self.started

    def tiles(self) -> int:
        """Return how many tiles of an unfinished map are there."""
        return len(list(self.out.parent.glob(f".{self.out.name}.*.part/done/*")))

    def measure(self) -> None:
        """Read the peaks of the process and of all that it started."""
        for process in family(self.process.pid):
            try:
                lines = Path(f"/proc/{process}/status").read_text().splitlines()
            except OSError:
                continue
            found = [line for line in lines if line.startswith("VmHWM:")]
            if found:
                peak = 1024 * int(found[0].split()[1]) / 1e6
                self.peaks[process] = max(peak, self.peaks.get(process, 0.0))


def family(process: int) -> list[int]:
    """Return a process and all that descend from it."""
    found, left = [], [process]
    while left:
        found.append(left.pop())
        try:
            tasks = Path(f"/proc/{found[-1]}/task").iterdir()
            for task in tasks:
                left += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def same(one: Path, other: Path) -> bool:
    """Tell whether two stores have the same files, byte by byte."""
    names = [
        sorted(str(p.relative_to(f)) for p in f.rglob("*") if p.is_file()) for f in (one, other)
    ]
    if names[0] != names[1]:
        return False
    _, different, lost = filecmp.cmpfiles(one, other, names[0], shallow=False)
    return not different and not lost


def measure(sizes: Sizes) -> dict[str, Any]:
    """Write the map with one worker, with two, and with two and kills; compare."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.mrgp"
        mrgp.save(make_fit(FitSizes(sizes.sensors, sizes.inducing)), path)
        rows, peak = {}, 0.0
        for workers in (1, 2):
            run = Run(path, Path(folder) / f"{workers}.zarr", sizes, workers)
            seconds = run.watch()
            rows[f"{workers} workers"] = {"seconds": seconds, "peak MB": max(run.peaks.values())}
            peak = max(peak, *run.peaks.values())
        killed = Path(folder) / "killed.zarr"
        tiles = len(list((Path(folder) / "2.zarr" / "mean" / "c").rglob("*")))
        before = []
        for chosen in sorted(rng.sample(range(1, max(4, tiles // 2)), KILLS)):
            run = Run(path, killed, sizes, 2)
            run.watch(until=chosen)
            before.append(run.tiles())
            time.sleep(2.0)  # workers notice that they are alone
        rows["after kills"] = {"seconds": Run(path, killed, sizes, 2).watch()}
        whole = Path(folder) / "2.zarr"
        if not (same(killed, whole) and same(Path(folder) / "1.zarr", whole)):
            raise SystemExit("The map that was killed is not the one that was not.")
    share = rows["2 workers"]["seconds"] / rows["1 workers"]["seconds"]
    wanted = [
        {
            "what": "most memory of a process",
            "unit": "MB",
            "measured": peak,
            "most": MOST_MEGABYTES,
        },
        {
            "what": "time with two workers",
            "unit": "of one's",
            "measured": share,
            "most": MOST_SHARE,
        },
    ]
    return {
        "sizes": dataclasses.asdict(sizes) | {"cells": sizes.side**2, "tiles at kills": before},
        "rows": rows,
        "requirements": wanted if sizes == Sizes() else [],
    }


if __name__ == "__main__":
    print(json.dumps(measure(QUICK if "--quick" in sys.argv else Sizes())))
