"""Hostile data, every set by every model: a finite answer, or a sentence."""

import dataclasses
import sys
import time
import traceback
import warnings

import numpy as np
from outcomes import Tried

import mrgp

N = 16
X = np.linspace(0.0, 5.0, N)[:, None]
Y = np.sin(X[:, 0])
RNG = np.random.default_rng(0)
LONGEST = 120.0
"""Seconds for a set: fits of new forms are compiled first, beside what else the machine does."""

EXPECTED = (ValueError, TypeError, mrgp.FitError)


def seen(y=Y, x=X, support=None, name="a", **more):
    return mrgp.Observations(mrgp.points(x) if support is None else support, y, name=name, **more)


def put(value, rows=(7,)):
    y = Y.copy()
    y[list(rows)] = value
    return y


def cells(width=0.5, kind="mean", y=Y, name="b", shift=0.0, **more):
    return seen(y, support=mrgp.boxes(X + shift, X + shift + width, kind=kind), name=name, **more)


def one(*args, **kwargs):
    return lambda: [seen(*args, **kwargs)]


def two(first, second):
    return lambda: [first(), second()]


SETS = {
    "constant values": one(np.full(N, 3.0)),
    "all zero": one(np.zeros(N)),
    "one value": one(Y[:1], X[:1]),
    "two values": one(Y[:2], X[:2]),
    "one place, many values": one(Y, np.zeros((N, 1))),
    "every place twice": one(np.repeat(Y[::2], 2), np.repeat(X[::2], 2, 0)),
    "places 1e-12 apart": one(Y, 1.0 + 1e-12 * X),
    "places of 1e12": one(Y, 1e12 + X),
    "places 1e-200 wide": one(Y, 1e-200 * X),
    "places 1e200 wide": one(Y, 1e200 * X),
    "values of 1e-200": one(1e-200 * Y),
    "values of 1e90": one(1e90 * Y),
    "level of 1e9, spread of one": one(1e9 + Y),
    "a fill value of NetCDF": one(put(9.96921e36)),
    "a fill value of -9999": one(put(-9999.0)),
    "an outlier of 1e6": one(put(1e6)),
    "an outlier of 1e15": one(put(1e15)),
    "half are outliers": one(put(1e4, range(0, N, 2))),
    "most are missing": one(put(np.nan, range(2, N))),
    "all are missing": one(np.full(N, np.nan)),
    "infinite values": one(put(np.inf)),
    "whole numbers, many zeros": one(np.round(Y)),
    "a step": one(np.where(X[:, 0] > 2.5, 1e3, 0.0)),
    "white noise": one(RNG.standard_normal(N)),
    "alternating": one(np.where(np.arange(N) % 2, 1.0, -1.0)),
    "a straight line": one(1e3 * X[:, 0]),
    "known noise of 1e-12": one(Y, noise_variance=1e-12),
    "known noise of 1e12": one(Y, noise_variance=1e12),
    "known noises over 20 decades": one(Y, noise_variance=np.logspace(-10, 10, N)),
    "shuffled places": one(Y[::-1], X[::-1]),
    "means over cells of no width": lambda: [seen(), cells(0.0)],
    "means over cells 1e9 wide": lambda: [seen(), cells(1e9)],
    "cells that all cover everything": lambda: [
        seen(),
        seen(Y, support=mrgp.boxes(0 * X, 0 * X + 5.0), name="b"),
    ],
    "totals over cells from 1e-6 to 1e6": lambda: [
        seen(),
        seen(
            Y,
            support=mrgp.boxes(X, X + np.logspace(-6, 6, N)[:, None], kind="sum"),
            name="b",
        ),
    ],
    "a second source 1000 times the first": lambda: [seen(), cells(y=1000 * Y)],
    "a second source that contradicts": lambda: [seen(), cells(y=-Y)],
    "a second source of one value": lambda: [seen(), seen(Y[:1], X[:1], name="b")],
    "a second source far away": lambda: [seen(), cells(shift=1e5)],
    "two sources, the same values": lambda: [seen(), seen(name="b")],
    "two tasks on other scales": lambda: [seen(), seen(1e6 * Y, name="b", task="other")],
}
FEW = mrgp.LBFGS(max_steps=8, starts=1, candidates=0)
MODELS = {
    "exact": (lambda: mrgp.MRGP(), FEW),
    "affine": (lambda: mrgp.MRGP(bias="affine"), FEW),
    "collapsed": (lambda: mrgp.MRGP(method="collapsed", inducing=6), FEW),
    "svgp": (lambda: mrgp.MRGP(method="svgp", inducing=6), mrgp.Adam(steps=100)),
    "markov": (lambda: mrgp.MRGP(mrgp.Matern32(), method="markov"), FEW),
    "vbagg": (lambda: mrgp.VBAgg(), FEW),
    "center-point": (lambda: mrgp.CenterPoint(mrgp.MRGP()), FEW),
    "mr-gprn, constant weights": (lambda: mrgp.MRGPRN(latents=1, kernel_w="constant"), FEW),
    "mr-gprn": (lambda: mrgp.MRGPRN(latents=1, inducing_f=6, inducing_w=4), FEW),
    "cascade": (lambda: mrgp.Cascade(["b", "a"], samples=4), FEW),
    "mr-dgp": (lambda: mrgp.MRDGP(target="a", samples=4), FEW),
}


def in_time(sources):
    """Call the input of sources time, along which some models are solved."""
    return [o.replace(support=dataclasses.replace(o.support, inputs=("time",))) for o in sources]


def wrong_with(found):
    """Return what a prediction must not be, or nothing."""
    for name in ("mean", "variance", "std"):
        if not np.isfinite(getattr(found, name)).all():
            return f"{name} is not finite"
    if (found.variance < 0).any():
        return "a variance is negative"
    low, high = found.interval(0.95)
    return "an interval is the wrong way round" if (low > high).any() else None


def try_model(name, sets):
    """Fit one model to hostile sets, and predict at and between their places."""
    tried = Tried("hostile", name)
    make, optimiser = MODELS[name]
    for label, build in sets.items():
        start = time.perf_counter()
        try:
            data = mrgp.Dataset(in_time(build()) if name == "markov" else build())
            fit = mrgp.fit(make(), data, optimiser=optimiser, progress=None)
            at = data.supports[0].collapse()
            wrong = [wrong_with(mrgp.predict(fit, at, task=task)) for task in data.tasks]
            if any(wrong):
                tried.fail(f"{label}: {wrong}")
            else:
                tried.answer()
        except EXPECTED as error:
            tried.tell(str(error))
        except Exception:
            tried.fail(f"{label}: {traceback.format_exc()[-300:]}")
        tried.timed(start, LONGEST)
    return tried


def main():
    mrgp.compilation_cache()
    warnings.simplefilter("ignore")
    name, every = sys.argv[1], int(sys.argv[2])
    chosen = dict(list(SETS.items())[::every])
    try_model(name, chosen).say()


if __name__ == "__main__":
    main()
