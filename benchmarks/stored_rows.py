"""Fit a table of twenty million rows, which stays in a Zarr store, in a process of its own.

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
import xarray as xr
from measure import MEGABYTE, medians, peak_resident, repeat

import mrgp

MOST_MEGABYTES = 2000.0
NOISE = 0.5


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Rows of the table and of a chunk, further columns beside the four read, and the fit."""

    rows: int = 20_000_000
    chunk: int = 500_000
    beside: int = 15
    inducing: int = 200
    steps: int = 2000


QUICK = Sizes(rows=40_000, chunk=5_000, beside=2, inducing=20, steps=50)


def truth(x: np.ndarray, y: np.ndarray, hour: np.ndarray) -> np.ndarray:
    """Return a field that is smooth in space and time."""
    return 20 + 5 * np.sin(x / 2) * np.cos(y / 2) + 2 * np.sin(hour / 8)


def write(sizes: Sizes, path: Path) -> float:
    """Write the table chunk by chunk, as a satellite's columns; return its megabytes."""
    for number, start in enumerate(range(0, sizes.rows, sizes.chunk)):
        rng = np.random.default_rng(number)
        count = min(sizes.chunk, sizes.rows - start)
        x, y = rng.uniform(0, 10, (2, count))
        # As an orbit does, a chunk has some hours of its own.
        hour = 48.0 * (start + np.arange(count)) / sizes.rows
        columns = {"x": x, "y": y, "hour": hour}
        columns["aod"] = truth(x, y, hour) + NOISE * rng.standard_normal(count)
        columns |= {f"beside{k}": rng.standard_normal(count) for k in range(sizes.beside)}
        rows = {name: ("row", values) for name, values in columns.items()}
        encoding = {name: {"chunks": (sizes.chunk,), "compressors": None} for name in rows}
        end = {"append_dim": "row"} if start else {"encoding": encoding}
        xr.Dataset(rows).to_zarr(path, consolidated=False, **end)
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / MEGABYTE


def fit_table(path: Path, sizes: Sizes) -> dict[str, Any]:
    """Read a sample, fit all rows by minibatches, and say how far off the map is."""
    found: list[Any] = []
    table = xr.open_zarr(path, consolidated=False)[["x", "y", "hour", "aod"]].to_dask_dataframe()

    def read() -> None:
        found.append(mrgp.from_frame(table, ["x", "y", "hour"], "aod", name="satellite"))

    reading = medians(repeat(read, 1))
    recipe = mrgp.MRGP(method="svgp", inducing=sizes.inducing)
    optimiser = mrgp.Adam(steps=sizes.steps)

    def fit() -> None:
        found.append(mrgp.fit(recipe, mrgp.Dataset(found), optimiser=optimiser, progress=None))

    fitting = medians(repeat(fit, 1))
    rng = np.random.default_rng(1)
    x = rng.uniform([0, 0, 0], [10, 10, 48], (2000, 3))
    pred = mrgp.predict(found[1], mrgp.points(x, inputs=("x", "y", "hour")))
    error = pred.mean - truth(*x.T)
    return {
        "rows": {"reading a sample": reading, "fit": fitting},
        "values": found[0].count,
        "status": str(found[1].status),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "sd of the truth": float(np.std(truth(*x.T))),
        "peak MB": peak_resident(),
    }


def measure(sizes: Sizes) -> dict[str, Any]:
    """Write the table here, and fit it in a process that holds nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.zarr"
        megabytes = write(sizes, path)
        given = json.dumps(dataclasses.asdict(sizes))
        command = [sys.executable, __file__, "--fit", str(path), given]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    most = {"what": "peak memory", "unit": "MB", "measured": found["peak MB"]}
    return {
        "sizes": dataclasses.asdict(sizes) | {"MB of the table": megabytes},
        **found,
        "requirements": [most | {"most": MOST_MEGABYTES}],
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        print(json.dumps(fit_table(Path(sys.argv[2]), Sizes(**json.loads(sys.argv[3])))))
    else:
        print(json.dumps(measure(QUICK if "--quick" in sys.argv[1:] else Sizes())))
