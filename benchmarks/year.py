"""A year of a network fitted along time, on the accelerator that there is or on processors.

The field is that of `keeping_up.py`: 60 sites by the hour, a twentieth of the values missing.
Prints its measurements as JSON. `run.py` keeps to processors; on an accelerator run this file.
"""

import json
import resource
import sys
import time
from typing import Any

import jax
from keeping_up import network, seen

import mrgp

SITES, HOURS = 60, 8760
QUICK = (8, 96)
REPEATS = 5
MOST = {"gpu": {"value and gradient": 2.0, "fit": 60.0}}
"""Seconds of wall time at most, by kind of machine, for a whole year."""


def evaluation(recipe: mrgp.MRGP, data: mrgp.Dataset) -> dict[str, float]:
    """Measure the evidence with its gradient, at the parameters at which a fit begins."""
    found = mrgp.objective(recipe, data)
    with jax.enable_x64(True):
        start = time.perf_counter()
        step = jax.jit(jax.value_and_grad(found)).lower(found.start).compile()
        compiling = time.perf_counter() - start
        seconds = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            jax.block_until_ready(step(found.start))
            seconds.append(time.perf_counter() - start)
    spare = step.memory_analysis().temp_size_in_bytes
    return {"seconds": min(seconds), "compiling": compiling, "temporary bytes": spare}


def measure(sites: int, hours: int) -> dict[str, Any]:
    """Evaluate, and fit."""
    places, y = network(sites, hours)
    year, recipe = seen(places, y, 0), mrgp.MRGP(method="markov")
    rows = {"value and gradient": evaluation(recipe, year)}
    start = time.perf_counter()
    fit = mrgp.fit(recipe, year, progress=None)
    rows["fit"] = {"seconds": time.perf_counter() - start, "steps": len(fit.history)}
    backend = jax.default_backend()
    most = MOST.get(backend, {}) if hours == HOURS else {}
    return {
        "sizes": {"sites": sites, "hours": hours, "values": int(fit.counts["sites", "value"][0])},
        "device": str(jax.devices()[0]),
        "peak bytes of the host": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "rows": rows,
        "status": str(fit.status),
        "requirements": [
            {"what": what, "unit": "s", "measured": rows[what]["seconds"], "most": limit}
            for what, limit in most.items()
        ],
    }


if __name__ == "__main__":
    print(json.dumps(measure(*(QUICK if "--quick" in sys.argv else (SITES, HOURS)))))
