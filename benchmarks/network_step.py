"""One core step of a network of GPs (theory 3.5), beside GPflow's and GPyTorch's.

Prints its measurements as JSON. `run.py` runs it with the right environment.
"""

import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from core_step import Evaluated, check_agreement
from environments import peer_environment, peer_python
from measure import MEGABYTE, Seconds, medians, peak_growth, repeat

import mrgp
from mrgp._linalg import JITTER
from mrgp.gp import Whitened
from mrgp.inference import Objective
from mrgp.inference.coordinate import Block, bound, moments_of, sweep
from mrgp.models import as_arrays, naturals_of, trained_q
from mrgp.parameters import partition, unwrap

HERE = Path(__file__).parent
TASKS = ("first", "second")
OURS = "mrgp"
PEERS = {
    "GPflow (XLA)": ("gpflow", "xla"),
    "GPflow (no XLA)": ("gpflow", "graph"),
    "GPyTorch (1 thread)": ("gpytorch", "1"),
    "GPyTorch (2 threads)": ("gpytorch", "2"),
}
MOST_MEGABYTES = 30.0
SWEEP = f"{OURS}, sweep over all blocks"
AIM = 0.5


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Regions of both tasks together, nodes along a side, and how often each step is timed.

    What is mrgp's is timed that often in each of its two runs.
    """

    regions: int = 300
    grid: int = 5
    inducing: int = 100
    latents: int = 2
    repeats: int = 11


QUICK = Sizes(regions=20, grid=2, inducing=10, repeats=2)


def make_objective(sizes: Sizes, coupled: bool) -> Objective:
    """Simulate means of two fields over boxes, half of them for each task; q is random."""
    rng = np.random.default_rng(0)
    observed = []
    for i, task in enumerate(TASKS):
        lower = rng.uniform(0.0, 0.9, (sizes.regions // len(TASKS), 2))
        boxes = mrgp.boxes(lower, lower + rng.uniform(0.05, 0.15, lower.shape))
        nodes = boxes.quadrature(mrgp.Midpoint((sizes.grid, sizes.grid)))
        y = np.sin(6 * nodes.x.sum(-1) + i).mean(1) + 0.1 * rng.standard_normal(len(lower))
        observed.append(mrgp.Observations(nodes, y, name="regions", task=task))
    scales = np.array([[0.1, 0.15]]) * np.arange(1, sizes.latents + 1)[:, None]
    locations = rng.uniform(0.0, 1.0, (2, sizes.inducing, 2))
    model = mrgp.MRGPRN(
        latents=sizes.latents,
        kernel_f=[mrgp.RBF(lengthscale=scale, variance=1.0) for scale in scales],
        kernel_w=[mrgp.RBF(lengthscale=scale + 0.2, variance=1.0) for scale in scales],
        inducing_f=mrgp.Inducing(locations=locations[0]),
        inducing_w=mrgp.Inducing(locations=locations[1]),
        coupled=coupled,
        mean="zero",
        priors=False,
    )
    return with_random_q(mrgp.objective(model, mrgp.Dataset(observed)), rng)


def with_random_q(objective: Objective, rng: np.random.Generator) -> Objective:
    """Put a q without zeros in place of the prior."""

    def draw(block: Whitened) -> Whitened:
        size = block.mean.raw.shape[-1]
        lower = np.tril(rng.standard_normal((size, size)), -1)
        return Whitened(rng.standard_normal(size), 0.5 * np.eye(size) + 0.3 * lower / size**0.5)

    model = objective.model(objective.start)
    drawn = model.with_q(trained_q(model.q.blocks.map(draw)))
    return Objective(*as_arrays(partition(drawn)), records=objective.records)


class Compiled:
    """A function of arrays, compiled for its arguments."""

    def __init__(self, function: Callable[..., Any], *arguments: Any):
        self.function, self.arguments = function, arguments
        self.peak_growth = peak_growth(self._compile_and_call)

    def _compile_and_call(self) -> None:
        start = time.perf_counter()
        self.compiled: Any = jax.jit(self.function).lower(*self.arguments).compile()
        self.compile_seconds = time.perf_counter() - start
        self()

    def __call__(self) -> Any:
        """Call it and wait."""
        return jax.block_until_ready(self.compiled(*self.arguments))

    def row(self, seconds: Seconds) -> dict[str, float]:
        """Return what was measured."""
        return medians(seconds) | {
            "compile seconds": self.compile_seconds,
            "temporary MB": self.compiled.memory_analysis().temp_size_in_bytes / MEGABYTE,
            "compile and first step MB": self.peak_growth,
        }


def compile_step(objective: Objective) -> Compiled:
    """Compile value and gradient, data and parameters as arguments."""
    arrays, static = eqx.partition(objective, eqx.is_array)

    def value_and_gradient(arrays: Any, trained: Any) -> tuple[jax.Array, Any]:
        return jax.value_and_grad(eqx.combine(arrays, static))(trained)

    return Compiled(value_and_gradient, arrays, objective.start)


def compile_ascent(objective: Objective) -> dict[str, Compiled]:
    """Compile coordinate ascent of q: of one block, and of all in turn (theory 3.6)."""
    arrays, static = eqx.partition(objective, eqx.is_array)
    start = naturals_of(unwrap(objective.model(objective.start)).q).map(Block.of)

    def network(arrays: Any) -> tuple[Any, Any]:
        whole = eqx.combine(arrays, static)
        return whole.model(whole.start).with_q(None), whole.records

    def one_block(arrays: Any, q: Any) -> Block:
        model, records = network(arrays)
        return Block.of(unwrap(model).aggregates().best_f(moments_of(q), records, 0))

    def all_blocks(arrays: Any, q: Any) -> Any:
        model, records = network(arrays)
        return sweep(model, q, records)

    def value(arrays: Any, q: Any) -> jax.Array:
        model, records = network(arrays)
        return bound(model, q, records)

    one, every = (Compiled(update, arrays, start) for update in (one_block, all_blocks))
    before, after = (float(jax.jit(value)(arrays, q)) for q in (start, every()))
    if not after > before:
        raise SystemExit(f"A sweep took the bound from {before} to {after}.")
    return {f"{OURS}, update of one block": one, SWEEP: every}


def parameters(model: Any) -> dict[str, list[Any]]:
    """Return the parameters that the gradient is taken by; weights go task by task."""
    q = model.q.blocks
    found = {"noise_variance": [model.noise.learned[p] for p in model.processes]}
    for which, kernels, blocks in (
        ("f", model.kernels_f, q.f),
        ("w", sum(model.kernels_w, ()), sum(q.w, ())),
    ):
        found[f"lengthscale_{which}"] = [kernel.lengthscale for kernel in kernels]
        found[f"variance_{which}"] = [kernel.variance for kernel in kernels]
        found[f"mean_{which}"] = [block.mean for block in blocks]
        found[f"root_{which}"] = [block.root for block in blocks]
    return found


def stack(name: str, arrays: list[Any]) -> np.ndarray:
    """Join what belongs to each factor, or task; q has one component, which is left out."""
    whole = np.stack([np.asarray(array) for array in arrays])
    return whole[:, 0] if name.startswith(("mean", "root")) else whole


def evaluate(step: Compiled, objective: Objective) -> Evaluated:
    """Return the value, and the gradient by parameter values instead of raw coordinates."""
    value, gradient = step()
    slopes = parameters(objective.model(gradient))
    by_value = {}
    for name, found in parameters(objective.model(objective.start)).items():
        pairs = zip(slopes[name], found, strict=True)
        by_value[name] = stack(name, [slope.raw / _rate(p) for slope, p in pairs])
    return float(value), by_value


def _rate(parameter: Any) -> jax.Array:
    """Return d value / d raw of an elementwise transform."""
    raw = parameter.raw
    return jax.jvp(parameter.transform.forward, (raw,), (jnp.ones_like(raw),))[1]


def save_problem(objective: Objective, path: Path) -> None:
    """Write data and parameters for the peers, values centred."""
    model, records = objective.model(objective.start), list[Any](objective.records)
    values: dict[str, Any] = {
        name: stack(name, [p.value for p in found]) for name, found in parameters(model).items()
    }
    level = np.asarray(model.levels.mean.value)
    np.savez(
        path,
        x=np.stack([np.asarray(record.support.x) for record in records]),
        y=np.stack([np.asarray(record.y) for record in records]) - level[:, None],
        spread=np.asarray(model.levels.spread),
        locations_f=np.asarray(model.locations_f.value),
        locations_w=np.asarray(model.locations_w.value),
        jitter=JITTER,
        **values,
    )


def run_peers(objective: Objective, repeats: int) -> dict[str, dict[str, Any]]:
    """Run every way of every peer on the data and parameters of an objective."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        save_problem(objective, path)
        for label, (name, way) in PEERS.items():
            script = HERE / "peers" / f"{name}_network_step.py"
            command = [peer_python(name), script, path, way, str(repeats)]
            done = subprocess.run(command, env=peer_environment(), capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{label} failed:\n{done.stderr}")
            found[label] = json.loads(done.stdout)
    return found


def check(ours: Evaluated, peers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Check values and gradients against every way to run a peer."""
    agreement = {}
    for label, peer in peers.items():
        what = f"{OURS} and {label}"
        expected = peer["value"], {name: np.asarray(g) for name, g in peer["gradient"].items()}
        agreement[what] = check_agreement(what, ours, expected)
    return agreement


def requirements(rows: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """State what must hold of the full-size measurement."""
    return [
        {
            "what": f"{OURS}: temporary memory",
            "unit": "MB",
            "measured": rows[OURS]["temporary MB"],
            "most": MOST_MEGABYTES,
        }
    ]


def aims(rows: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """State what is wished for, by the faster way of each peer."""
    found = []
    for peer in dict.fromkeys(name for name, _ in PEERS.values()):
        ways = [label for label, (name, _) in PEERS.items() if name == peer]
        fastest = min(ways, key=lambda label: rows[label]["seconds"])
        found.append(
            {
                "what": f"{OURS}: time over {fastest}",
                "unit": "ratio",
                "measured": rows[fastest]["ours over this"],
                "most": AIM,
            }
        )
    return found


def measure(sizes: Sizes, with_peers: bool) -> dict[str, Any]:
    """Check that all compute the same, then time them, the peers between two runs of mrgp."""
    objective = make_objective(sizes, coupled=False)
    steps = {OURS: compile_step(objective)}
    peers = run_peers(objective, repeats=0) if with_peers else {}
    agreement = check(evaluate(steps[OURS], objective), peers)
    steps[f"{OURS}, coupled posterior"] = compile_step(make_objective(sizes, coupled=True))
    steps |= compile_ascent(objective)
    before = {name: repeat(step, sizes.repeats) for name, step in steps.items()}
    peers = run_peers(objective, sizes.repeats) if with_peers else {}
    after = {name: repeat(step, sizes.repeats) for name, step in steps.items()}
    rows = {name: step.row(before[name] + after[name]) for name, step in steps.items()}
    for label, peer in peers.items():
        ratio = rows[OURS]["seconds"] / peer["row"]["seconds"]
        rows[label] = peer["row"] | {"ours over this": ratio}
    return {
        "sizes": dataclasses.asdict(sizes)
        | {"nodes": sizes.grid**2, "tasks": len(TASKS), "inputs": 2},
        "versions": {k: v for peer in peers.values() for k, v in peer["versions"].items()},
        "agreement": agreement,
        "rows": rows,
        "requirements": requirements(rows) if with_peers else [],
        "aims": aims(rows) if with_peers else [],
    }


if __name__ == "__main__":
    quick = "--quick" in sys.argv[1:]
    with jax.enable_x64(True):
        print(json.dumps(measure(QUICK if quick else Sizes(), with_peers=not quick)))
