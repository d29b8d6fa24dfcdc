"""Fit by minibatches: time per step as the data grow, and memory and error of one whole fit.

Prints its measurements as JSON. `run.py` runs it with the right environment.
"""

import dataclasses
import json
import subprocess
import sys
from typing import Any

import jax
import numpy as np
from measure import Seconds, medians, peak_resident, repeat

import mrgp
from mrgp.inference.batches import Batches
from mrgp.inference.stochastic import run_chunk
from mrgp.models import as_arrays

MOST_MEGABYTES = 1500.0
MOST_GROWTH = 1.2
SIDE = 10.0
NOISE = 0.1
CHECKED = 2000


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Regions, fewest first; nodes along each side of one; steps timed together, and of the fit."""

    regions: tuple[int, ...] = (1_000, 10_000, 100_000)
    grid: int = 5
    inducing: int = 300
    batch: int = 256
    steps: int = 50
    repeats: int = 7
    fit_steps: int = 500


QUICK = Sizes(regions=(200, 400), grid=2, inducing=20, batch=64, steps=10, repeats=2, fit_steps=100)


def field(x: np.ndarray) -> np.ndarray:
    """Return the field that is observed."""
    return np.sin(x[..., 0]) * np.cos(x[..., 1]) + 0.5 * np.sin(2.0 * x[..., 0] + x[..., 1])


def make_data(regions: int, grid: int) -> mrgp.Dataset:
    """Simulate noisy means of the field over boxes of many sizes, as nodes."""
    rng = np.random.default_rng(0)
    lower = rng.uniform(0.0, SIDE - 1.0, (regions, 2))
    boxes = mrgp.boxes(lower, lower + rng.uniform(0.2, 1.0, lower.shape))
    nodes = boxes.quadrature(mrgp.Midpoint((grid, grid)))
    y = field(nodes.x).mean(1) + NOISE * rng.standard_normal(regions)
    return mrgp.Dataset([mrgp.Observations(nodes, y)])


class Stretches:
    """A fit by minibatches in stretches of steps, each with the drawing of its batches."""

    def __init__(self, regions: int, sizes: Sizes):
        self.steps, self.taken = sizes.steps, 0
        model = mrgp.MRGP(method="svgp", inducing=sizes.inducing)
        self.objective = mrgp.objective(model, make_data(regions, sizes.grid))
        self.batches = Batches((regions,), (min(sizes.batch, regions),), 0)
        self.state = as_arrays(mrgp.init(self.objective, mrgp.Adam(natural=0.1)))
        self.compile_and_first = repeat(self, 1)[0][0]

    def __call__(self) -> None:
        """Draw batches, take the steps on them, and wait."""
        rows = as_arrays(self.batches.rows(self.taken, self.steps))
        found = run_chunk(self.objective, self.state, rows, self.steps)
        self.state, bounds = jax.block_until_ready(found)
        self.taken += self.steps
        if not np.isfinite(bounds).all():
            raise SystemExit("The bound is not finite.")


def time_steps(sizes: Sizes) -> dict[int, dict[str, float]]:
    """Time stretches of all sizes in turns, so that what else the machine does falls on all."""
    fits = {n: Stretches(n, sizes) for n in sizes.regions}
    seconds: dict[int, Seconds] = {n: [] for n in fits}
    for _ in range(sizes.repeats):
        for n, fit in fits.items():
            seconds[n] += repeat(fit, 1)
    rows = {}
    for n, fit in fits.items():
        total = medians(seconds[n])
        rows[n] = {
            "ms per step": 1e3 * total["seconds"] / sizes.steps,
            "cpu ms per step": 1e3 * total["cpu seconds"] / sizes.steps,
            "compile seconds": max(0.0, fit.compile_and_first - total["seconds"]),
        }
    return rows


def fit_whole(regions: int, grid: int, inducing: int, batch: int, steps: int) -> dict[str, float]:
    """Fit and predict as a user would; return time, error, and the most memory ever held."""
    imported = peak_resident()
    data, found = make_data(regions, grid), []
    model = mrgp.MRGP(method="svgp", inducing=inducing)
    optimiser = mrgp.Adam(steps=steps, batch=batch)
    seconds = repeat(
        lambda: found.append(mrgp.fit(model, data, optimiser=optimiser, progress="lines")), 1
    )
    x = np.random.default_rng(1).uniform(0.5, SIDE - 0.5, (CHECKED, 2))
    error = np.asarray(mrgp.predict(found[0], mrgp.points(x)).mean) - field(x)
    return medians(seconds) | {
        "steps": found[0].training.steps,
        "rmse": float(np.sqrt(np.mean(error**2))),
        "MB after import": imported,
        "peak MB": peak_resident(),
    }


def fit_in_child(sizes: Sizes) -> dict[str, float]:
    """Fit the most regions in a process that holds nothing else."""
    numbers = (sizes.regions[-1], sizes.grid, sizes.inducing, sizes.batch, sizes.fit_steps)
    command = [sys.executable, __file__, "--fit", *map(str, numbers)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def measure(sizes: Sizes) -> dict[str, Any]:
    """Fit once in a child, then time steps here."""
    whole = fit_in_child(sizes)
    with jax.enable_x64(True):
        steps = time_steps(sizes)
    rows = {f"steps, {n:,} regions": row for n, row in steps.items()}
    rows[f"whole fit, {sizes.regions[-1]:,} regions"] = whole
    return {
        "sizes": dataclasses.asdict(sizes) | {"nodes": sizes.grid**2, "inputs": 2},
        "rows": rows,
        "requirements": requirements(steps, whole) if sizes == Sizes() else [],
    }


def requirements(
    steps: dict[int, dict[str, float]], whole: dict[str, float]
) -> list[dict[str, Any]]:
    """State what must hold of the full-size measurement, on either clock."""
    few, many = min(steps), max(steps)
    growth = [
        {
            "what": f"svgp: time per step, {many:,} over {few:,} regions",
            "unit": f"ratio of {clock}",
            "measured": steps[many][clock] / steps[few][clock],
            "most": MOST_GROWTH,
        }
        for clock in ("ms per step", "cpu ms per step")
    ]
    memory = {
        "what": "svgp: memory of a whole fit, imports included",
        "unit": "MB",
        "measured": whole["peak MB"],
        "most": MOST_MEGABYTES,
    }
    return [*growth, memory]


def main(arguments: list[str]) -> None:
    """Measure, or, as the fresh process, fit."""
    if arguments[:1] == ["--fit"]:
        result = fit_whole(*map(int, arguments[1:]))
    else:
        result = measure(QUICK if "--quick" in arguments else Sizes())
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
