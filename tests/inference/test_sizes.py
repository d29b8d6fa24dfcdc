"""One program for many sizes: rows that fill a size change nothing, and compile nothing anew."""

import jax
import numpy as np
import pytest

import mrgp
import zoo
from groups import rest_thorough
from mrgp._compiled import rung
from mrgp._types import to_numpy
from mrgp.inference.problem import Problem
from mrgp.models import as_arrays, filled

QUICK = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
FILLED = ("exact", "affine", "collapsed", "vbagg", "linear network", "network")


def problem_of(name, **options):
    recipe, data = zoo.RECIPES[name]
    return Problem.of(recipe, data(), **options)


@pytest.mark.parametrize("name", rest_thorough(FILLED, *(n for n in FILLED if n != "network")))
@pytest.mark.parametrize("weights", [None, {"fine": 0.4}])
def test_rows_that_fill_a_size_change_neither_the_bound_nor_its_slope(name, weights):
    if name == "vbagg" and weights:
        pytest.skip("its weights are one")
    with jax.enable_x64(True):
        plain = problem_of(name, weights=weights).objective()
        full = plain.filled()
        assert all(len(r) == rung(len(p)) for r, p in zip(full.records, plain.records, strict=True))
        assert sum(len(r) for r in full.records) > plain.count
        start = jax.tree.map(lambda leaf: leaf + 0.05, plain.start)
        (a, da), (b, db) = (jax.value_and_grad(f)(start) for f in (plain, full))
    np.testing.assert_allclose(b, a, rtol=1e-11)
    for one, other in zip(jax.tree.leaves(da), jax.tree.leaves(db), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-8, atol=1e-9)


def test_shared_errors_are_not_filled_up():
    problem = problem_of("dependent")
    assert filled(problem.build(), problem.records) is problem.records


@pytest.mark.parametrize("name", ["exact", "affine", "collapsed", "dependent", "linear network"])
def test_a_posterior_by_lapack_is_that_of_traced_code(name):
    problem = problem_of(name, weights=None if name == "dependent" else {"fine": 0.4})
    model = problem.build()
    with jax.enable_x64(True):
        host = model.solved(problem.records)
        traced = to_numpy(model.condition(as_arrays(problem.records)))
        x = mrgp.points(np.linspace(-3, 3, 7)[:, None])
        task = problem.seen.tasks[0]
        for state in (host, host.filled()):
            found, expected = (model.moments(s, x, task, None) for s in (state, traced))
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def some(count, seed, cells=20):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 5, (count, 1))
    fine = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]) + seed, name="fine")
    edges = np.linspace(0, 5, cells + 1)
    told = np.sin(edges[1:]) + 0.1 * rng.standard_normal(cells)
    cells = mrgp.intervals(edges[:-1], edges[1:])
    return mrgp.Dataset([fine, mrgp.Observations(cells, told, name="coarse")])


RECIPES = {
    "exact": (mrgp.MRGP(bias="affine", target="fine"), 7),
    "collapsed": (mrgp.MRGP(inducing=6, method="collapsed"), 7),
    "network": (mrgp.MRGPRN(inducing_f=6, inducing_w=4, latents=1), 20),
}


@pytest.mark.parametrize("name", RECIPES)
def test_sizes_of_one_rung_and_other_values_compile_once(name, compiled):
    jax.clear_caches()
    recipe, most = RECIPES[name]

    def fit_and_predict(data):
        fit = mrgp.fit(recipe, data, optimiser=QUICK, progress=None)
        return mrgp.predict(fit, mrgp.points(np.linspace(0, 5, 7)[:, None]))

    fit_and_predict(some(33, 0))
    assert len(compiled) <= most, compiled
    compiled.clear()
    for seed, count in enumerate((40, 50, 60, 64), start=1):
        fit_and_predict(some(count, seed, cells=20 + seed))
    assert compiled == []
