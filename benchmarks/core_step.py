"""One core step: value and gradient of the collapsed bound (theory 2.4), beside GPflow's.

Prints its measurements as JSON. `run.py` runs it with the right environment.
"""

import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from environments import peer_environment, peer_python
from measure import MEGABYTE, Seconds, medians, peak_growth, repeat

import mrgp

HERE = Path(__file__).parent
PEER_SCRIPT = HERE / "peers" / "gpflow_core_step.py"
PEER = "GPflow (XLA)"
PEER_WAYS = {PEER: "xla", "GPflow (no XLA)": "graph"}
TOLERANCE = 1e-6
SOURCE = "regions"

MOST_MEGABYTES = 30.0
MOST_OF_PEER = {"mrgp nodes": 0.65, "mrgp boxes": 0.25}

Evaluated = tuple[float, dict[str, np.ndarray]]


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How large the problem is, and how often each step is timed in each of its two runs."""

    regions: int = 500
    grid: tuple[int, int, int] = (5, 5, 4)
    inducing: int = 300
    repeats: int = 11


QUICK = Sizes(regions=60, grid=(2, 2, 2), inducing=40, repeats=3)


def make_objectives(sizes: Sizes) -> dict[str, mrgp.inference.Objective]:
    """Simulate means of a field over boxes, seen as nodes, as boxes, and as exact nodes."""
    rng = np.random.default_rng(0)
    lower = rng.uniform(0.0, 0.9, (sizes.regions, 3))
    boxes = mrgp.boxes(lower, lower + rng.uniform(0.05, 0.15, lower.shape))
    nodes = boxes.quadrature(mrgp.Midpoint(sizes.grid))
    y = np.sin(6 * nodes.x.sum(-1)).mean(1) + 0.1 * rng.standard_normal(sizes.regions)
    model = mrgp.MRGP(
        kernel=mrgp.RBF(lengthscale=[0.2, 0.25, 0.3], variance=1.0),
        method="collapsed",
        inducing=mrgp.Inducing(locations=rng.uniform(0, 1, (sizes.inducing, 3)), train=True),
        mean="zero",
        priors=False,
    )
    supports = {
        "mrgp nodes": nodes,
        "mrgp boxes": boxes,
        "reference": boxes.quadrature(mrgp.GaussLegendre(6)),
    }
    return {
        name: mrgp.objective(model, mrgp.Dataset([mrgp.Observations(support, y, name=SOURCE)]))
        for name, support in supports.items()
    }


def parameters(model: Any) -> dict[str, Any]:
    """Return the parameters that the gradient is taken by."""
    return {
        "lengthscale": model.kernel.lengthscale,
        "variance": model.kernel.variance,
        "noise_variance": model.noise.learned[model.processes[0]],
        "locations": model.solver.locations,
    }


class Step:
    """The compiled value and gradient of an objective, data and parameters as arguments."""

    def __init__(self, objective: mrgp.inference.Objective):
        self.objective = objective
        self.arrays, self.static = eqx.partition(objective, eqx.is_array)
        self.peak_growth = peak_growth(self._compile_and_take)

    def _compile_and_take(self) -> None:
        def value_and_gradient(arrays: Any, trained: Any) -> tuple[jax.Array, Any]:
            return jax.value_and_grad(eqx.combine(arrays, self.static))(trained)

        start = time.perf_counter()
        lowered = jax.jit(value_and_gradient).lower(self.arrays, self.objective.start)
        self.compiled = lowered.compile()
        self.compile_seconds = time.perf_counter() - start
        self()

    def __call__(self) -> tuple[jax.Array, Any]:
        """Take the step and wait for it."""
        return jax.block_until_ready(self.compiled(self.arrays, self.objective.start))

    def evaluate(self) -> Evaluated:
        """Return the value, and the gradient by parameter values instead of raw coordinates."""
        value, gradient = self()
        start = parameters(self.objective.model(self.objective.start))
        slopes = parameters(self.objective.model(gradient))
        return float(value), {
            name: np.asarray(slopes[name].raw / _rate(p)) for name, p in start.items()
        }

    def temporary_megabytes(self) -> float:
        """Return the memory XLA sets aside for intermediate results."""
        return self.compiled.memory_analysis().temp_size_in_bytes / MEGABYTE


def _rate(parameter: Any) -> jax.Array:
    """Return d value / d raw of an elementwise transform."""
    return jax.jvp(parameter.transform.forward, (parameter.raw,), (jnp.ones_like(parameter.raw),))[
        1
    ]


def check_agreement(what: str, found: Evaluated, expected: Evaluated) -> dict[str, float]:
    """Return relative differences of value and gradient; stop where they are not the same."""
    differences = {"value": abs(found[0] - expected[0]) / abs(expected[0])}
    for name, slope in expected[1].items():
        differences[name] = float(np.abs(found[1][name] - slope).max() / np.abs(slope).max())
    if not max(differences.values()) <= TOLERANCE:
        raise SystemExit(f"{what}: they do not compute the same; {differences}")
    return differences


def run_peer(objective: mrgp.inference.Objective, way: str, repeats: int) -> dict[str, Any]:
    """Run one way of the peer on the data and parameters of an objective, centred."""
    record = objective.records[0]
    model = objective.model(objective.start)
    residual = np.asarray(record.y) - np.asarray(model.readout.mean.value)[0]
    values = parameters(model)
    problem = {name: np.asarray(p.value) for name, p in values.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        np.savez(path, x=np.asarray(record.support.x), y=residual, **problem)
        command = [peer_python("gpflow"), PEER_SCRIPT, path, way, str(repeats)]
        done = subprocess.run(command, env=peer_environment(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"The peer failed:\n{done.stderr}")
    return json.loads(done.stdout)


def run_peers(steps: dict[str, Step], repeats: int) -> dict[str, dict[str, Any]]:
    """Run every way of the peer on the nodes."""
    objective = steps["mrgp nodes"].objective
    return {name: run_peer(objective, way, repeats) for name, way in PEER_WAYS.items()}


def check(steps: dict[str, Step], reference: Evaluated, with_peer: bool) -> dict[str, Any]:
    """Check boxes against exact nodes, and nodes against every way to run the peer."""
    what = "mrgp boxes and Gauss-Legendre nodes"
    agreement = {what: check_agreement(what, steps["mrgp boxes"].evaluate(), reference)}
    peers = run_peers(steps, repeats=0) if with_peer else {}
    for name, peer in peers.items():
        what = f"mrgp nodes and {name}"
        expected = peer["value"], {k: np.asarray(g) for k, g in peer["gradient"].items()}
        agreement[what] = check_agreement(what, steps["mrgp nodes"].evaluate(), expected)
    return agreement


def time_steps(steps: dict[str, Step], repeats: int) -> dict[str, Seconds]:
    """Time every step."""
    return {name: repeat(step, repeats) for name, step in steps.items()}


def requirements(rows: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """State what must hold of the full-size measurement."""
    memory = {
        "what": "mrgp nodes: temporary memory",
        "unit": "MB",
        "measured": rows["mrgp nodes"]["temporary MB"],
        "most": MOST_MEGABYTES,
    }
    times = [
        {
            "what": f"{name}: time over {PEER}",
            "unit": "ratio",
            "measured": rows[name]["ratio"],
            "most": most,
        }
        for name, most in MOST_OF_PEER.items()
    ]
    return [memory, *times]


def measure(sizes: Sizes, with_peer: bool) -> dict[str, Any]:
    """Check that all compute the same, then time them, the peer between two runs of mrgp."""
    objectives = make_objectives(sizes)
    reference = Step(objectives.pop("reference")).evaluate()
    steps = {name: Step(objective) for name, objective in objectives.items()}
    agreement = check(steps, reference, with_peer)
    before = time_steps(steps, sizes.repeats)
    peers = run_peers(steps, sizes.repeats) if with_peer else {}
    after = time_steps(steps, sizes.repeats)
    rows = {
        name: medians(before[name] + after[name])
        | {
            "compile seconds": step.compile_seconds,
            "temporary MB": step.temporary_megabytes(),
            "compile and first step MB": step.peak_growth,
        }
        for name, step in steps.items()
    }
    rows |= {name: peer["row"] for name, peer in peers.items()}
    for row in rows.values() if with_peer else ():
        row["ratio"] = row["seconds"] / rows[PEER]["seconds"]
    return {
        "sizes": dataclasses.asdict(sizes) | {"nodes": int(np.prod(sizes.grid)), "inputs": 3},
        "versions": peers[PEER]["versions"] if with_peer else {},
        "agreement": agreement,
        "rows": rows,
        "requirements": requirements(rows) if with_peer else [],
    }


if __name__ == "__main__":
    quick = "--quick" in sys.argv[1:]
    with jax.enable_x64(True):
        print(json.dumps(measure(QUICK if quick else Sizes(), with_peer=not quick)))
