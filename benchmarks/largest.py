"""Measure how the memory of fits grows with values, each in a fresh process.

Prints its measurements as JSON. `run.py` runs it with the right environment.
"""

import json
import subprocess
import sys
from typing import Any

import numpy as np
from measure import peak_growth, repeat

import mrgp

FULL = (("exact", 1500), ("exact", 3000), ("exact", 5000), ("collapsed", 50_000))
FULL += (("collapsed", 200_000),)
QUICK = (("exact", 200), ("collapsed", 500))
INDUCING = 200


def measure_fit(method: str, count: int) -> dict[str, float]:
    """Fit points with three inputs for two steps."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 10.0, (count, 3))
    y = np.sin(x).sum(1) + 0.1 * rng.standard_normal(count)
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), y)])
    sparse = {} if method == "exact" else {"inducing": min(INDUCING, count // 5)}
    model = mrgp.MRGP(mrgp.RBF(), method=method, **sparse)
    brief, seconds = mrgp.LBFGS(max_steps=2, starts=1, candidates=0), []

    def fit() -> None:
        mrgp.fit(model, data, optimiser=brief, progress=None, throw=False)

    grown = peak_growth(lambda: seconds.extend(repeat(fit, 1)))
    return {"MB": grown, "cpu seconds": seconds[0][1]}


def measure(sizes: tuple[tuple[str, int], ...]) -> dict[str, Any]:
    """Measure every fit in a process of its own."""
    rows = {}
    for method, count in sizes:
        command = [sys.executable, "-W", "ignore", __file__, "--fit", method, str(count)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        rows[f"{method}, {count:,} values"] = json.loads(done.stdout)
    return {"sizes": {"inputs": 3, "inducing": INDUCING}, "rows": rows, "requirements": []}


def main(arguments: list[str]) -> None:
    """Measure, or, as a fresh process, fit."""
    if arguments[:1] == ["--fit"]:
        print(json.dumps(measure_fit(arguments[1], int(arguments[2]))))
    else:
        print(json.dumps(measure(QUICK if "--quick" in arguments else FULL)))


if __name__ == "__main__":
    main(sys.argv[1:])
