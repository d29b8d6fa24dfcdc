"""Small data sets, and a fit of every model to one of them, each made once in a process.

They are for tests of what comes after a fit, where neither the data nor the numbers are the point:
arrays of the same shapes share what is compiled for them.
"""

import functools

import numpy as np

import mrgp

QUICK = mrgp.LBFGS(max_steps=15, starts=1, candidates=0)
WIDTH = 0.6


def wave(x):
    """Return the truth behind all of the data."""
    return np.sin(x) + 0.2 * x


def sources(start=0.0, count=14, bias=True):
    """Return points with a missing value, and means over cells, perhaps on another scale."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 5, 18))
    y = wave(x) + 0.05 * rng.standard_normal(18)
    y[5] = np.nan
    lower = start + WIDTH * np.arange(count)
    inside = wave(lower[:, None] + WIDTH * (np.arange(20) + 0.5) / 20).mean(1)
    fine = mrgp.Observations(mrgp.points(x[:, None]), y, task="no2", name="fine", units="ppb")
    told = 0.5 * inside + 1.0 if bias else inside + 0.02 * rng.standard_normal(count)
    cells = mrgp.intervals(lower, lower + WIDTH)
    return fine, mrgp.Observations(cells, told, task="no2", name="coarse", units="ppb")


def fused():
    """Return points and cells of one field."""
    return mrgp.Dataset(sources(bias=False))


def biased():
    """Return points, and cells that report half of the field and one more."""
    return mrgp.Dataset(sources())


def two_tasks():
    """Return the field, and another that is four times as large and three higher."""
    fine, coarse = sources(bias=False)
    other = fine.replace(y=4 * fine.y + 3, task="pm10", units="ug/m3")
    return mrgp.Dataset([fine, coarse, other])


def averaged():
    """Return values at points, and means of pairs of them, errors included."""
    fine, _ = sources()
    fine = fine.dropna()[:16]
    pairs = mrgp.nodes(np.asarray(fine.support.x).reshape(8, 2, 1))
    means = fine.y.reshape(8, 2).mean(1)
    return mrgp.Dataset([fine, mrgp.Observations(pairs, means, task="no2", name="coarse")])


DEEP = {"kernel_base": mrgp.RBF(), "samples": 6, "inducing_deep": 8}
SPARSE = {"inducing": 8, "kernel": mrgp.RBF()}
RECIPES = {
    "exact": (mrgp.MRGP(mrgp.RBF()), fused),
    "affine": (mrgp.MRGP(mrgp.RBF(), bias="affine", target="fine"), biased),
    "collapsed": (mrgp.MRGP(method="collapsed", **SPARSE), fused),
    "svgp": (mrgp.MRGP(method="svgp", **SPARSE), fused),
    "vbagg": (mrgp.VBAgg(mrgp.RBF()), fused),
    "center-point": (mrgp.CenterPoint(mrgp.MRGP(mrgp.RBF())), fused),
    "dependent": (mrgp.Dependent(mrgp.MRGP(mrgp.RBF()), {"coarse": "fine"}), averaged),
    "linear network": (
        mrgp.MRGPRN(latents=1, kernel_f=mrgp.RBF(), kernel_w="constant"),
        two_tasks,
    ),
    "network": (mrgp.MRGPRN(latents=2, inducing_f=12, inducing_w=5), two_tasks),
    "deep": (mrgp.MRDGP(target="fine", **DEEP), biased),
    "cascade": (mrgp.Cascade(["coarse", "fine"], **DEEP), biased),
}
"""Every model, and the data it is fitted to."""


@functools.cache
def fit(name):
    """Return the fit of a model, in a few steps."""
    recipe, data = RECIPES[name]
    optimiser = mrgp.Adam(steps=200) if name == "svgp" else QUICK
    return mrgp.fit(recipe, data(), optimiser=optimiser, progress=None)
