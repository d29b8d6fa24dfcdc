"""Simulation-based calibration: functions drawn from a model's own prior, and its posterior's word.

Each replicate draws functions and values from the model with its parameters as they are,
conditions on the values, and asks where the true function lies in the posterior: at a point, over a
region, and in the mean of all regions. If the posterior is right, those ranks are uniform, and
intervals of 50, 80 and 95 % hold the truth so often.
`python soak/calibration.py MODEL REPLICATES SEED` prints what came of it as JSON.
"""

import json
import sys
import warnings

import numpy as np
from scipy import stats

import mrgp

LEVELS = (0.5, 0.8, 0.95)
BINS = 10
SURE = 0.99
POINTS, CELLS, FINE = 20, 8, 24
LENGTH, VARIANCE, NOISE = 1.2, 2.0, 0.15


def fixed_rbf(length=LENGTH, variance=VARIANCE):
    return mrgp.RBF(mrgp.fixed(length), variance=mrgp.fixed(variance))


def covariance(x, length=LENGTH, variance=VARIANCE):
    return variance * np.exp(-0.5 * ((x[:, None] - x[None]) / length) ** 2)


def drawn(x, rng, length=LENGTH, variance=VARIANCE):
    """Draw a function at places, from the kernel itself: nothing here is the library's."""
    found, vectors = np.linalg.eigh(covariance(x, length, variance))
    return vectors @ (np.sqrt(np.clip(found, 0, None)) * rng.standard_normal(len(x)))


class World:
    """Places, cells and what is asked for, with one function drawn over all of them."""

    def __init__(self, rng):
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

        at = mrgp.points(self.x[:, None])
        boxes = mrgp.boxes(self.lower[:, None], self.lower[:, None] + 1.0)
        one = {"task": task, "noise_variance": NOISE}
        return [
            mrgp.Observations(at, noisy(points), name=f"points{suffix}", **one),
            mrgp.Observations(boxes, noisy(cells), name=f"cells{suffix}", **one),
        ]

    def asked(self):
        """Return what is asked for: the new point, the new region, and all cells together."""
        return {
            "point": mrgp.points([[self.new]]),
            "region": mrgp.boxes([[self.left]], [[self.left + 0.6]]),
            "average": mrgp.boxes([[0.0]], [[float(CELLS)]]),
        }


def mrgp_replicate(method, rng):
    """Return the ranks of one function under MR-GP by one solver."""
    world = World(rng)
    points, cells, *truth = world.parts(drawn(world.places, rng))
    few = {} if method == "exact" else {"inducing": 16}
    recipe = mrgp.MRGP(fixed_rbf(), method=method, mean="zero", **few)
    fit = mrgp.fit(recipe, mrgp.Dataset(world.observed(points, cells, rng)), progress=None)
    return ranks(fit, world, truth)


def network_replicate(constant, rng):
    """Return the ranks of one task of two that share a function, each with weights of its own."""
    world, sources, truth = World(rng), [], []
    shared = drawn(world.places, rng)
    for task in ("one", "two"):
        weights = rng.standard_normal() if constant else drawn(world.places, rng, 4.0, 1.0)
        points, cells, *asked = world.parts(weights * shared)
        sources += world.observed(points, cells, rng, task, f" of {task}")
        truth.append(asked)
    how = {"kernel_w": "constant"}
    if not constant:
        how = {"kernel_w": fixed_rbf(4.0, 1.0), "inducing_f": 16, "inducing_w": 8}
    recipe = mrgp.MRGPRN(latents=1, kernel_f=fixed_rbf(), mean="zero", **how)
    fit = mrgp.fit(recipe, mrgp.Dataset(sources), progress=None)
    return ranks(fit, world, truth[0], task="one")


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
    "MR-GPRN, constant weights": lambda rng: network_replicate(True, rng),
    "MR-GPRN": lambda rng: network_replicate(False, rng),
}
REPLICATES = dict(zip(MODELS, (200, 200, 200, 100, 50), strict=True))


def judged(ranks):
    """Return coverage with its band, and whether the histogram of ranks is within its own."""
    count = len(ranks)
    found = {"replicates": count, "holds": True}
    for level in LEVELS:
        inside = float(np.mean(np.abs(ranks - 0.5) <= level / 2))
        low, high = stats.binom.interval(SURE, count, level)
        found[f"coverage_{100 * level:.0f}"] = inside
        found["holds"] &= bool(low <= inside * count <= high)
    heights = np.histogram(ranks, BINS, (0.0, 1.0))[0]
    found["uniform_p"] = float(stats.chisquare(heights).pvalue)
    found["holds"] &= found["uniform_p"] > 1 - SURE
    return found


def calibrated(name, count, seed):
    rng = np.random.default_rng(seed)
    several = [MODELS[name](rng) for _ in range(count)]
    return {what: judged(np.array([one[what] for one in several])) for what in several[0]}


def main():
    warnings.simplefilter("ignore")
    mrgp.compilation_cache()
    name, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps({"model": name, "found": calibrated(name, count, seed)}))


if __name__ == "__main__":
    main()
