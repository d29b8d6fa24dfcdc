"""Fit counts of regions behind a log link: one natural step, one slope by parameters, a whole fit.

Prints its measurements as JSON. `run.py` runs it with the right environment.
"""

import dataclasses
import json
import sys
from typing import Any

import jax
import numpy as np
from measure import medians, peak_resident, repeat

import mrgp
from mrgp.inference import Problem
from mrgp.inference.settling import Settled, settled

MOST_SECONDS = 120.0
LENGTHSCALE, SPREAD, WAVES = 8.0, 0.6, 60


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How many regions and nodes in each, how many inducing inputs, how often a step is timed."""

    regions: int = 3000
    nodes: int = 50
    inducing: int = 300
    repeats: int = 3


QUICK = Sizes(regions=60, nodes=4, inducing=20, repeats=1)


def make_data(sizes: Sizes) -> tuple[mrgp.Dataset, np.ndarray]:
    """Simulate cases among the births of unit squares, and return the rates of the squares."""
    rng = np.random.default_rng(0)
    side = int(np.ceil(np.sqrt(sizes.regions)))
    corner = np.stack(np.meshgrid(*[np.arange(float(side))] * 2, indexing="ij"), -1)
    corner = corner.reshape(-1, 1, 2)[: sizes.regions]
    x = corner + rng.uniform(0.0, 1.0, (sizes.regions, sizes.nodes, 2))
    waves = rng.standard_normal((2, WAVES)) / LENGTHSCALE
    f = np.cos(x @ waves + rng.uniform(0.0, 2 * np.pi, WAVES)).sum(-1)
    rate = np.exp(SPREAD * np.sqrt(2 / WAVES) * f).mean(1)
    births = rng.gamma(2.0, 2.0, sizes.regions) + 0.1
    seen = mrgp.Observations(
        mrgp.nodes(x, inputs=("east", "north")),
        rng.poisson(births * rate),
        likelihood=mrgp.Poisson(),
        exposure=births,
    )
    return mrgp.Dataset([seen]), rate


def time_steps(sizes: Sizes, data: mrgp.Dataset) -> dict[str, dict[str, float]]:
    """Time one natural step, and one value of the best bound with its slopes by parameters."""
    loss = Settled(Problem.of(mrgp.MRGP(inducing=sizes.inducing), data).objective())
    start, never = loss.objective.start, jax.device_put(np.asarray(np.inf))

    def step() -> None:
        jax.block_until_ready(settled(loss.filled, start, loss.now, never, 1, effort=loss.effort))

    def evaluation() -> None:
        loss.last = None
        jax.block_until_ready(loss(start))

    rows = {}
    for name, call in {"natural step": step, "evaluation of a fit": evaluation}.items():
        call()
        rows[name] = medians(repeat(call, sizes.repeats))
    return rows


def fit_whole(sizes: Sizes, data: mrgp.Dataset, rate: np.ndarray) -> dict[str, float]:
    """Fit as a user would, compilation included; return time, memory and error."""
    found: list[Any] = []
    model = mrgp.MRGP(inducing=sizes.inducing)
    seconds = repeat(lambda: found.append(mrgp.fit(model, data, progress=None)), 1)
    error = mrgp.predict(found[0], data["source"].support).mean - rate
    rmse = float(np.sqrt(np.mean(error**2)))
    return medians(seconds) | {"rmse": rmse, "peak MB": peak_resident()}


def measure(sizes: Sizes) -> dict[str, Any]:
    """Fit once, then time steps."""
    data, rate = make_data(sizes)
    whole = fit_whole(sizes, data, rate)
    with jax.enable_x64(True):
        rows = {"whole fit": whole} | time_steps(sizes, data)
    wanted = {
        "what": "whole fit",
        "unit": "cpu seconds",
        "measured": whole["cpu seconds"],
        "most": MOST_SECONDS,
    }
    return {
        "sizes": dataclasses.asdict(sizes),
        "rows": rows,
        "requirements": [wanted] if sizes == Sizes() else [],
    }


if __name__ == "__main__":
    print(json.dumps(measure(QUICK if "--quick" in sys.argv else Sizes())))
