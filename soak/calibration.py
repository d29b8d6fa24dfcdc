"""Simulation-based calibration: functions drawn from a model's own prior, and its posterior's word.

Each replicate draws functions and values from the model with its parameters held at the truth,
conditions on the values, and asks where the true function lies in the posterior: at a point, over a
region, and in the mean of all regions. If the posterior is right, those ranks are uniform, and
intervals of 50, 80 and 95 % hold the truth so often.
`python soak/calibration.py MODEL REPLICATES SEED` prints what came of it as JSON.
"""

import dataclasses
import json
import sys
import time
import warnings

import equinox
import numpy as np

import mrgp
from mrgp.inference.shortfall import shortfalls

POINTS, CELLS, FINE = 20, 8, 24
LENGTH, VARIANCE, NOISE = 1.2, 2.0, 0.15
SPARSE = 5
"""Inducing inputs that are farther apart than the lengthscale."""

FEW = ("MR-GP, collapsed, few inducing", "MR-GP, svgp, few inducing")
FEW_NOTE = "{}: {:.0%} of the fits say by how much they miss their values."
DEEP_LENGTH, DEEP_VARIANCE = 1.5, 0.3


def fixed_rbf(length=LENGTH, variance=VARIANCE):
    return mrgp.RBF(mrgp.fixed(length), variance=mrgp.fixed(variance))


def gaussian(r):
    return np.exp(-0.5 * r**2)


def matern(r):
    return (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)


def drawn(x, rng, length=LENGTH, variance=VARIANCE, shape=gaussian):
    """Draw a function at places, from the kernel itself: nothing here is the library's."""
    apart = np.abs(x[:, None] - x[None]) / length
    found, vectors = np.linalg.eigh(variance * shape(apart))
    return vectors @ (np.sqrt(np.clip(found, 0, None)) * rng.standard_normal(len(x)))


class World:
    """Places, cells and what is asked for, with one function drawn over all of them."""

    def __init__(self, rng, inputs=None):
        self.inputs = inputs
        self.x = rng.uniform(0, 8, POINTS)
        self.lower = np.arange(CELLS) * 1.0
        self.inside = self.lower[:, None] + (np.arange(FINE) + 0.5) / FINE
        self.new, self.left = float(rng.uniform(0, 8)), float(rng.uniform(0, 7.4))
        region = self.left + 0.6 * (np.arange(FINE) + 0.5) / FINE
        self.places = np.concatenate([self.x, self.inside.ravel(), [self.new], region])

    def parts(self, f):
        """Return a function at points, over cells, at the new point, over the new region."""
        points, cells, new, region = np.split(f, np.cumsum([POINTS, CELLS * FINE, 1]).tolist())
        cells = cells.reshape(CELLS, FINE).mean(1)
        return points, cells, float(new[0]), float(region.mean()), float(cells.mean())

    def observed(self, points, cells, rng, task="value", suffix=""):
        def noisy(values):
            return values + np.sqrt(NOISE) * rng.standard_normal(len(values))

        at = mrgp.points(self.x[:, None], inputs=self.inputs)
        boxes = self.boxes(self.lower, self.lower + 1.0)
        one = {"task": task, "noise_variance": NOISE}
        return [
            mrgp.Observations(at, noisy(points), name=f"points{suffix}", **one),
            mrgp.Observations(boxes, noisy(cells), name=f"cells{suffix}", **one),
        ]

    def boxes(self, lower, upper):
        return mrgp.boxes(np.c_[lower], np.c_[upper], inputs=self.inputs)

    def asked(self):
        """Return what is asked for: the new point, the new region, and all cells together."""
        return {
            "point": mrgp.points([[self.new]], inputs=self.inputs),
            "region": self.boxes([self.left], [self.left + 0.6]),
            "average": self.boxes([0.0], [float(CELLS)]),
        }


def mrgp_replicate(method, rng, inducing=16):
    """Return the ranks of one function under MR-GP by one solver, and whether it says it misses."""
    world = World(rng)
    points, cells, *truth = world.parts(drawn(world.places, rng))
    sparse = {} if method == "exact" else {"inducing": inducing}
    recipe = mrgp.MRGP(fixed_rbf(), method=method, mean="zero", **sparse)
    fit = mrgp.fit(recipe, mrgp.Dataset(world.observed(points, cells, rng)), progress=None)
    return ranks(fit, world, truth) | {"short": float(bool(shortfalls(fit)))}


def markov_replicate(rng):
    """Return the ranks of one function of time under MR-GP, solved along it."""
    world = World(rng, "time")
    points, cells, *truth = world.parts(drawn(world.places, rng, shape=matern))
    kernel = mrgp.Matern32(mrgp.fixed(LENGTH), variance=mrgp.fixed(VARIANCE))
    recipe = mrgp.MRGP(kernel, method="markov", mean="zero")
    fit = mrgp.fit(recipe, mrgp.Dataset(world.observed(points, cells, rng)), progress=None)
    return ranks(fit, world, truth)


def network_replicate(weighted, rng):
    """Return the ranks of one task of two that share a function, each with weights of its own.

    Weights vary, or are constant: parameters, held at the truth or estimated.
    """
    world, sources, truth, weights = World(rng), [], [], []
    shared = drawn(world.places, rng)
    for task in ("one", "two"):
        varying = weighted == "varying"
        weights.append(drawn(world.places, rng, 4.0, 1.0) if varying else rng.standard_normal())
        points, cells, *asked = world.parts(weights[-1] * shared)
        sources += world.observed(points, cells, rng, task, f" of {task}")
        truth.append(asked)
    how = {"kernel_w": "constant"}
    if weighted == "varying":
        how = {"kernel_w": fixed_rbf(4.0, 1.0), "inducing_f": 16, "inducing_w": 8}
    recipe = mrgp.MRGPRN(latents=1, kernel_f=fixed_rbf(), mean="zero", **how)
    data = mrgp.Dataset(sources)
    fit = mrgp.fit(recipe, data, progress=None)
    if weighted == "held":
        fit = held(fit, np.array(weights)[:, None]).condition(data)
    return ranks(fit, world, truth[0], task="one")


def held(fit, weights):
    """Return a fit whose constant weights are others; it counts them in spreads of the tasks."""
    spread = fit.model.readout.levels.spread
    weights = mrgp.fixed(weights / np.asarray(spread)[:, None])
    model = equinox.tree_at(lambda m: m.readout.weights, fit.model, weights)
    return dataclasses.replace(fit, model=model)


def deep_replicate(rng):
    """Return the ranks of a function that is an unknown function of another, seen over cells."""
    world = World(rng)
    base = drawn(world.places, rng)
    truth = base + drawn(base, rng, DEEP_LENGTH, DEEP_VARIANCE)
    points, _, *asked = world.parts(truth)
    _, cells, *_ = world.parts(base)
    recipe = mrgp.MRDGP(
        target="points",
        kernel_base=fixed_rbf(),
        kernel_deep=fixed_rbf(DEEP_LENGTH, DEEP_VARIANCE),
        samples=100,
    )
    fit = mrgp.fit(recipe, mrgp.Dataset(world.observed(points, cells, rng)), progress=None)
    return ranks(fit, world, asked)


def ranks(fit, world, truth, **asked):
    """Return the probability that the posterior gives to values below each truth."""
    return {
        what: float(mrgp.predict(fit, support, **asked).cdf(true)[0])
        for (what, support), true in zip(world.asked().items(), truth, strict=True)
    }


MODELS = {
    "MR-GP, exact": lambda rng: mrgp_replicate("exact", rng),
    "MR-GP, collapsed": lambda rng: mrgp_replicate("collapsed", rng),
    "MR-GP, svgp": lambda rng: mrgp_replicate("svgp", rng),
    "MR-GP, collapsed, few inducing": lambda rng: mrgp_replicate("collapsed", rng, SPARSE),
    "MR-GP, svgp, few inducing": lambda rng: mrgp_replicate("svgp", rng, SPARSE),
    "MR-GP, markov": markov_replicate,
    "MR-GPRN, constant weights": lambda rng: network_replicate("held", rng),
    "the same, weights estimated": lambda rng: network_replicate("estimated", rng),
    "MR-GPRN": lambda rng: network_replicate("varying", rng),
    "MR-DGP": deep_replicate,
}


def calibrated(name, count, seed):
    """Yield the ranks of all replicates so far, as a row."""
    rng = np.random.default_rng(seed)
    row = {"part": "calibration", "what": name, "inputs": 0, "answered": 0, "told": 0}
    row |= {"slowest": 0.0, "bytes": 0.0, "wrong": [], "ranks": {}}
    said = []
    for number in range(count):
        began = time.perf_counter()
        try:
            found = MODELS[name](rng)
        except Exception as error:
            text = f"replicate {number} of seed {seed}: {type(error).__name__}: {error}"
            row["wrong"].append(text[:300])
        else:
            row["answered"] += 1
            said.append(found.pop("short", 0.0))
            for what, rank in found.items():
                row["ranks"].setdefault(what, []).append(round(rank, 6))
        row["inputs"] += 1
        row["slowest"] = max(row["slowest"], time.perf_counter() - began)
        if name in FEW and said:
            row["notes"] = [FEW_NOTE.format(name, np.mean(said))]
        yield row


def main():
    warnings.simplefilter("ignore")
    mrgp.compilation_cache()
    name, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for row in calibrated(name, count, seed):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
