"""A small fit by Adam: time per step of a sparse variational bound, beside GPflow and GPyTorch.

Prints its measurements as JSON. `run.py` runs it with the right environment.
"""

import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
from environments import peer_environment, peer_python
from measure import Seconds, medians, repeat

import mrgp
from mrgp._linalg import JITTER
from mrgp.inference.stochastic import run_chunk
from mrgp.models import as_arrays

HERE = Path(__file__).parent
SOURCE = "regions"
RATE = 0.02
TOLERANCE = 1e-6
OURS = "mrgp"
# Natural gradients take other steps than Adam does: for information, not for comparison.
WAYS = {OURS: False, "mrgp, natural gradients": True}
PEERS = {
    "GPflow (XLA)": ("gpflow", "xla"),
    "GPflow (no XLA)": ("gpflow", "graph"),
    "GPyTorch (1 thread)": ("gpytorch", "1"),
    "GPyTorch (2 threads)": ("gpytorch", "2"),
}
MOST_OF_PEER = {"gpflow": 0.35, "gpytorch": 0.2}
# Our loop never waits, so time on the clock exceeds processor time only where others take turns.
DISTURBED = 1.1


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How large the problem is, how many steps are timed together, and how often."""

    regions: int = 100
    nodes: int = 5
    inducing: int = 50
    inputs: int = 2
    steps: int = 200
    repeats: int = 11


QUICK = Sizes(regions=20, nodes=3, inducing=8, steps=20, repeats=2)


def make_objective(sizes: Sizes) -> mrgp.inference.Objective:
    """Simulate means of a field over nodes of small random regions."""
    rng = np.random.default_rng(0)
    corner = rng.uniform(0.0, 0.9, (sizes.regions, 1, sizes.inputs))
    width = rng.uniform(0.05, 0.15, corner.shape)
    x = corner + width * rng.uniform(0.0, 1.0, (sizes.regions, sizes.nodes, sizes.inputs))
    y = np.sin(6 * x.sum(-1)).mean(1) + 0.1 * rng.standard_normal(sizes.regions)
    data = mrgp.Dataset([mrgp.Observations(mrgp.nodes(x), y, name=SOURCE)])
    model = mrgp.MRGP(
        kernel=mrgp.RBF(), method="svgp", inducing=sizes.inducing, mean="zero", priors=False
    )
    return mrgp.objective(model, data)


class Loop:
    """Compiled steps of mrgp on all data, always from the start."""

    def __init__(self, objective: mrgp.inference.Objective, natural: bool, steps: int):
        self.objective, self.steps = as_arrays(objective), steps
        self.state = as_arrays(mrgp.init(objective, mrgp.Adam(rate=RATE, natural=natural)))
        start = time.perf_counter()
        state, bounds = self()
        self.first_seconds = time.perf_counter() - start
        _, after = self(state)
        self.value, self.value_after = float(bounds[0]), float(after[0])

    def __call__(self, state: Any = None) -> Any:
        """Take the steps and wait for them."""
        start = self.state if state is None else state
        return jax.block_until_ready(run_chunk(self.objective, start, (None,), self.steps))

    def time(self) -> tuple[float, float]:
        """Return the seconds of one loop."""
        return repeat(self, 1)[0]


class Peer:
    """A peer that waits in a process of its own until it is asked to take its steps."""

    def __init__(self, process: "subprocess.Popen[str]"):
        self.process = process
        about = self._read()
        self.value, self.versions = about["value"], about["versions"]
        first = self._loop()
        self.first_seconds, self.value_after = first["seconds"][0], first["value"]

    def time(self) -> tuple[float, float]:
        """Return the seconds of one loop, which goes on where the last one ended."""
        return tuple(self._loop()["seconds"])

    def _loop(self) -> dict[str, Any]:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("A peer failed.")
        return json.loads(line)


@contextmanager
def open_peer(path: Path, name: str, way: str, steps: int) -> Iterator[Peer]:
    """Start a peer on a problem, and end it when done."""
    command = [peer_python(name), HERE / "peers" / f"{name}_small_loop.py", path, way, str(steps)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=peer_environment(), **pipes) as process:
        yield Peer(process)


def save_problem(objective: mrgp.inference.Objective, path: Path) -> None:
    """Write data and starting point for the peers, values centred."""
    record, model = objective.records[0], objective.model(objective.start)
    np.savez(
        path,
        x=np.asarray(record.support.x),
        y=np.asarray(record.y) - np.asarray(model.readout.mean.value)[0],
        lengthscale=np.asarray(model.kernel.lengthscale.value),
        variance=np.asarray(model.kernel.variance.value),
        noise_variance=np.asarray(model.noise.learned[model.processes[0]].value),
        locations=np.asarray(model.solver.locations.value),
        jitter=JITTER,
        rate=RATE,
    )


def check_agreement(loops: dict[str, Loop | Peer]) -> dict[str, dict[str, float]]:
    """Return relative differences of the bounds at the start; stop where they are not the same."""
    expected, agreement = loops[OURS].value, {}
    for name in loops.keys() - {OURS}:
        difference = abs(loops[name].value - expected) / abs(expected)
        if not difference <= TOLERANCE:
            raise SystemExit(f"{OURS} and {name}: bounds differ by {difference:.1e} at the start.")
        agreement[f"{OURS} and {name}"] = {"bound at the start": difference}
    return dict(sorted(agreement.items()))


def time_in_turns(loops: dict[str, Loop | Peer], repeats: int) -> dict[str, Seconds]:
    """Time every loop once, then all again: what else the machine does falls on all alike."""
    seconds: dict[str, Seconds] = {name: [] for name in loops}
    for _ in range(repeats):
        for name, loop in loops.items():
            seconds[name].append(loop.time())
    return seconds


def make_rows(loops: dict[str, Loop | Peer], sizes: Sizes) -> dict[str, dict[str, float]]:
    """Return medians per step, what the first loop took beyond that, and where the bound got."""
    rows = {}
    for name, seconds in time_in_turns(loops, sizes.repeats).items():
        loop, total = loops[name], medians(seconds)
        rows[name] = {
            "ms per step": 1e3 * total["seconds"] / sizes.steps,
            "cpu ms per step": 1e3 * total["cpu seconds"] / sizes.steps,
            "compile seconds": max(0.0, loop.first_seconds - total["seconds"]),
            "bound at the start": loop.value,
            f"bound after {sizes.steps} steps": loop.value_after,
        }
    return rows


def compare(rows: dict[str, dict[str, float]]) -> dict[str, Any]:
    """State what must hold beside each peer, by the faster of its ways and on one clock for all."""
    wall, processor = "ms per step", "cpu ms per step"
    disturbed = rows[OURS][wall] > DISTURBED * rows[OURS][processor]
    clock = processor if disturbed else wall
    requirements = []
    for peer, most in MOST_OF_PEER.items():
        ways = [name for name, (owner, _) in PEERS.items() if owner == peer]
        fastest = min(ways, key=lambda name: rows[name][clock])
        requirements.append(
            {
                "what": f"{OURS}: time per step over {fastest}",
                "unit": f"ratio of {clock}",
                "measured": rows[OURS][clock] / rows[fastest][clock],
                "most": most,
            }
        )
    for row in rows.values():
        row["ours over this"] = rows[OURS][clock] / row[clock]
    return {"clock": clock, "requirements": requirements}


def measure(sizes: Sizes, with_peers: bool) -> dict[str, Any]:
    """Check that all compute the same bound, then time them in turns."""
    objective = make_objective(sizes)
    loops: dict[str, Loop | Peer] = {
        name: Loop(objective, natural, sizes.steps) for name, natural in WAYS.items()
    }
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "problem.npz"
        save_problem(objective, path)
        for label, (name, way) in PEERS.items() if with_peers else ():
            loops[label] = stack.enter_context(open_peer(path, name, way, sizes.steps))
        agreement = check_agreement(loops)
        rows = make_rows(loops, sizes)
        versions = {
            k: v for label in PEERS.keys() & loops for k, v in loops[label].versions.items()
        }
    return {
        "sizes": dataclasses.asdict(sizes),
        "versions": versions,
        "agreement": agreement,
        "rows": rows,
        **(compare(rows) if with_peers else {"requirements": []}),
    }


if __name__ == "__main__":
    quick = "--quick" in sys.argv[1:]
    with jax.enable_x64(True):
        print(json.dumps(measure(QUICK if quick else Sizes(), with_peers=not quick)))
