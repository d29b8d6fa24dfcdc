"""Predict a map of a million points from a fit with 300 inducing inputs, in a fresh process.

Prints its measurements as JSON. `run.py` runs it with the right environment.
"""

import dataclasses
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from measure import medians, peak_growth, repeat

import mrgp

MOST_MEGABYTES = 1000.0
MOST_SECONDS = 60.0
SIDE = 10.0


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sensors that are fitted, inducing inputs, and points along each side of the map."""

    sensors: int = 3000
    inducing: int = 300
    side: int = 1000


QUICK = Sizes(sensors=300, inducing=50, side=100)


def make_fit(sizes: Sizes) -> mrgp.Fit:
    """Fit simulated sensors in the plane for a few steps."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, SIDE, (sizes.sensors, 2))
    y = np.sin(x[:, 0]) * np.cos(x[:, 1]) + 0.1 * rng.standard_normal(sizes.sensors)
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), y)])
    model = mrgp.MRGP(method="collapsed", inducing=sizes.inducing)
    optimiser = mrgp.LBFGS(max_steps=10, starts=1, candidates=0)
    return mrgp.fit(model, data, optimiser=optimiser, progress=None)


def predict_map(path: Path, side: int) -> dict[str, float]:
    """Load a fit and predict the map once, compilation included."""
    fit = mrgp.load(path)
    axis = np.linspace(0.0, SIDE, side)
    grid = mrgp.points(np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2))
    seconds, predictions = [], []

    def predict() -> None:
        predictions.append(mrgp.predict(fit, grid))

    peak = peak_growth(lambda: seconds.extend(repeat(predict, 1)))
    check_alone(fit, grid, predictions[0])
    return medians(seconds) | {"peak MB above baseline": peak}


def check_alone(fit: mrgp.Fit, grid: Any, together: mrgp.Prediction) -> None:
    """Stop where points predicted alone get another answer than in the map."""
    some = np.arange(0, len(grid), max(1, len(grid) // 100))
    alone = mrgp.predict(fit, grid[some])
    for name in ("mean", "variance"):
        found, expected = getattr(alone, name), getattr(together, name)[some]
        if not np.allclose(found, expected, rtol=1e-6, atol=1e-9):
            raise SystemExit(f"The {name} of a point depends on the others predicted with it.")


def measure(sizes: Sizes) -> dict[str, Any]:
    """Fit here, and predict in a process that holds nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.mrgp"
        mrgp.save(make_fit(sizes), path)
        command = [sys.executable, __file__, "--predict", path, str(sizes.side)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    row = json.loads(done.stdout)
    points = sizes.side**2
    return {
        "sizes": dataclasses.asdict(sizes) | {"points": points},
        "rows": {f"mrgp predict, {points:,} points": row},
        "requirements": requirements(row) if sizes == Sizes() else [],
    }


def requirements(row: dict[str, float]) -> list[dict[str, Any]]:
    """State what must hold of the full-size measurement."""
    memory, seconds = row["peak MB above baseline"], row["seconds"]
    return [
        {
            "what": "predict: memory above baseline",
            "unit": "MB",
            "measured": memory,
            "most": MOST_MEGABYTES,
        },
        {"what": "predict: time", "unit": "s", "measured": seconds, "most": MOST_SECONDS},
    ]


def main(arguments: list[str]) -> None:
    """Measure, or, as the fresh process, predict."""
    if arguments[:1] == ["--predict"]:
        result = predict_map(Path(arguments[1]), int(arguments[2]))
    else:
        result = measure(QUICK if "--quick" in arguments else Sizes())
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
