"""What inference along time costs: by the number of steps, for a month and a year, for maps.

The field is that of `keeping_up.py`. Everything runs on one core, and what memory is measured of in
a process of its own. Prints its measurements as JSON; `run.py` runs it with the right environment.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
from keeping_up import INPUTS, network, seen, timed
from measure import peak_resident

import mrgp

STEPS, FEW = (200, 600, 2000, 6000, 20_000), 12
SITES, MONTH, YEAR, SIDE = 60, 720, 8760, 100
QUICK = {"steps": (50, 100, 200), "few": 4, "sites": 6, "month": 48, "year": 96, "side": 5}
FULL = {"steps": STEPS, "few": FEW, "sites": SITES, "month": MONTH, "year": YEAR, "side": SIDE}
MOST = {
    "exponent in steps": ("", 1.1),
    "month: value and gradient": ("cpu s", 2.5),
    "month: fit": ("cpu s", 150.0),
    "year: peak memory": ("MB", 6000.0),
    "year: saved": ("MB", 50.0),
}
BRIEF = mrgp.LBFGS(max_steps=1, starts=1, candidates=0)
RECIPE = mrgp.MRGP(method="markov")
Row = dict[str, float]


def evaluation(sites: int, hours: int) -> Row:
    """Measure the evidence with its gradient, at the parameters at which a fit begins."""
    found = mrgp.objective(RECIPE, seen(*network(sites, hours), 0))
    with jax.enable_x64(True):
        step, compiling = timed(jax.jit(jax.value_and_grad(found)).lower(found.start).compile)
        runs = [timed(lambda: jax.block_until_ready(step(found.start)))[1] for _ in range(3)]
    return {"cpu seconds": min(runs), "compiling": compiling, "peak MB": peak_resident()}


def whole(sites: int, hours: int) -> Row:
    """Measure a fit, compilation included."""
    data = seen(*network(sites, hours), 0)
    fit, seconds = timed(lambda: mrgp.fit(RECIPE, data, progress=None))
    return {"cpu seconds": seconds, "steps": len(fit.history), "peak MB": peak_resident()}


def begun(sites: int, hours: int) -> Row:
    """Measure a fit of one step: every part of a fit, but few evaluations; and what is saved."""
    data = seen(*network(sites, hours), 0)
    fit, seconds = timed(lambda: mrgp.fit(RECIPE, data, optimiser=BRIEF, progress=None))
    with tempfile.TemporaryDirectory() as folder:
        mrgp.save(fit, Path(folder) / "fit")
        size = sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file())
    return {"cpu seconds": seconds, "peak MB": peak_resident(), "saved MB": size / 1e6}


def mapped(sites: int, hours: int, side: int) -> Row:
    """Measure a map of cells in every hour, and the rows themselves apart."""
    places, y = network(sites, hours)
    fit = mrgp.fit(RECIPE, seen(places, y, 0), optimiser=BRIEF, progress=None)
    edge = np.linspace(0.0, 40.0, side + 1)
    east, north = (m.ravel() for m in np.meshgrid(edge[:-1], edge[:-1], indexing="ij"))
    lower = np.empty((hours, side**2, 3))
    lower[..., 0], lower[..., 1], lower[..., 2] = np.arange(hours)[:, None], east, north
    lower = lower.reshape(-1, 3)
    cells = mrgp.boxes(lower, lower + [0.0, edge[1], edge[1]], inputs=INPUTS)
    before = peak_resident()
    found, seconds = timed(lambda: mrgp.predict(fit, cells))
    peak = peak_resident()
    return {"cpu seconds": seconds, "cells": len(found.mean), "peak MB": peak, "before MB": before}


def windows(sites: int, hours: int) -> Row:
    """Measure daily means at all sites."""
    places, y = network(sites, hours)
    fit = mrgp.fit(RECIPE, seen(places, y, 0), optimiser=BRIEF, progress=None)
    lower = np.array([[t, *place] for t in range(0, hours, 24) for place in places])
    days = mrgp.boxes(lower, lower + [24.0, 0.0, 0.0], inputs=INPUTS)
    found, seconds = timed(lambda: mrgp.predict(fit, days))
    return {"cpu seconds": seconds, "windows": len(found.mean), "peak MB": peak_resident()}


PARTS = {f.__name__: f for f in (evaluation, whole, begun, mapped, windows)}


def alone(part: str, *sizes: int) -> Row:
    """Measure a part in a process of its own, on one core."""
    command = [sys.executable, "-W", "ignore", __file__, "--part", part, *map(str, sizes)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def measure(sizes: dict[str, Any]) -> dict[str, Any]:
    """Measure all parts."""
    sites, month, year = sizes["sites"], sizes["month"], sizes["year"]
    rows = {f"{t} steps": alone("evaluation", sizes["few"], t) for t in sizes["steps"]}
    costs = [row["cpu seconds"] for row in rows.values()]
    rows["month: value and gradient"] = alone("evaluation", sites, month)
    rows["month: fit"] = alone("whole", sites, month)
    rows["month: map of cells"] = alone("mapped", sites, month, sizes["side"])
    rows["month: daily means"] = alone("windows", sites, month)
    rows["year: fit of one step"] = alone("begun", sites, year)
    rows["year: daily means"] = alone("windows", sites, year)
    found = {
        "exponent in steps": float(np.polyfit(np.log(sizes["steps"]), np.log(costs), 1)[0]),
        "month: value and gradient": rows["month: value and gradient"]["cpu seconds"],
        "month: fit": rows["month: fit"]["cpu seconds"],
        "year: peak memory": rows["year: fit of one step"]["peak MB"],
        "year: saved": rows["year: fit of one step"]["saved MB"],
    }
    wanted = [
        {"what": what, "unit": unit, "measured": found[what], "most": most}
        for what, (unit, most) in MOST.items()
    ]
    return {"sizes": sizes, "rows": rows, "requirements": wanted if sizes == FULL else []}


def main(arguments: list[str]) -> None:
    """Measure all, or one part in this process."""
    if arguments[:1] == ["--part"]:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(json.dumps(PARTS[arguments[1]](*map(int, arguments[2:]))))
    else:
        print(json.dumps(measure(QUICK if "--quick" in arguments else FULL)))


if __name__ == "__main__":
    main(sys.argv[1:])
