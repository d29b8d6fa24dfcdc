"""Deep models whose bases are solved along time are those with exact bases."""

import numpy as np
import pytest

import mrgp
from groups import rest_thorough
from mrgp.gp import Markov

NAMES = ("east", "time")
QUICK = mrgp.LBFGS(max_steps=1, starts=1, candidates=0)
BASE = mrgp.Matern32(2.0, dims="east") * mrgp.Matern12(3.0, dims="time")
ASKED = mrgp.boxes([[0.0, 1.5], [0.4, 2.0], [0.0, 2.0]], [[0.0, 1.5], [0.4, 2.0], [2.0, 3.0]])


def truth(x):
    return 9.0 + np.sin(x[:, 0] + x[:, 1])


def sources():
    x = np.array([[p, float(t)] for t in range(6) for p in (0.0, 0.7, 2.0)])
    low = np.array([[p, float(t)] for t in range(5) for p in (0.0, 1.0)])
    cells = mrgp.boxes(low, low + 1.0, inputs=NAMES)
    return [
        mrgp.Observations(mrgp.points(x, inputs=NAMES), truth(x), name="sites"),
        mrgp.Observations(cells, 0.5 * truth(low + 0.5) + 1.0, name="cells"),
    ]


DATA = mrgp.Dataset(sources())
OPTIONS = {"kernel_base": BASE, "inducing_deep": 4, "samples": 3}
RECIPES = {
    "MRDGP": lambda method: mrgp.MRDGP("sites", method=method, **OPTIONS),
    "Cascade": lambda method: mrgp.Cascade(["cells", "sites"], method=method, **OPTIONS),
}


@pytest.mark.parametrize("name", rest_thorough(RECIPES, "MRDGP"))
def test_bases_along_time_are_exact_ones(name, monkeypatch):
    # So few points at a time that those of the layers' data take several passes.
    monkeypatch.setattr("mrgp.gp.markov.AT_ONCE", 0)
    monkeypatch.setattr("mrgp.gp.markov.FEWEST_AT_ONCE", 7)
    made = (RECIPES[name](method) for method in ("exact", "markov"))
    exact, markov = (mrgp.fit(r, DATA, optimiser=QUICK, progress=None) for r in made)
    bases = [part for label, part in markov.parts.items() if label.startswith("base")]
    assert all(isinstance(part.model.solver, Markov) for part in bases)
    for source in (None, "cells"):
        one, two = (mrgp.predict(fit, ASKED, source=source) for fit in (exact, markov))
        np.testing.assert_allclose(two.mean, one.mean, rtol=1e-7)
        np.testing.assert_allclose(two.variance, one.variance, rtol=1e-7)
