"""The same parameters with other data: nothing is fitted again, and the posterior is the data's."""

import numpy as np
import pytest

import mrgp
import zoo

RNG = np.random.default_rng(3)
X = np.sort(RNG.uniform(0.0, 8.0, (24, 1)), 0)
CELLS = np.arange(8.0)[:, None]
QUICK = mrgp.LBFGS(max_steps=4, starts=1, candidates=0, tolerance=2e-5)
GRID = mrgp.points(np.linspace(0.0, 8.0, 7)[:, None])


def seen(shift=0.0, rows=slice(None)):
    y = np.sin(X[:, 0]) + shift
    z = np.sin(CELLS[:, 0] + 0.5) + shift
    sites = mrgp.Observations(mrgp.points(X[rows]), y[rows], name="sites")
    cells = mrgp.Observations(mrgp.boxes(CELLS, CELLS + 1), z, name="cells")
    return mrgp.Dataset([sites, cells])


RECIPES = {
    "exact": mrgp.MRGP(bias="offset"),
    "collapsed": mrgp.MRGP(inducing=10),
}


@pytest.mark.parametrize("name", RECIPES)
def test_the_data_of_the_fit_give_the_fit_again(name):
    fit = mrgp.fit(RECIPES[name], seen(), weights={"cells": 0.5}, optimiser=QUICK)
    again = mrgp.predict(fit.condition(seen()), GRID)
    before = mrgp.predict(fit, GRID)
    np.testing.assert_allclose(again.mean, before.mean, atol=1e-8)
    np.testing.assert_allclose(again.std, before.std, atol=1e-8)


def test_the_data_of_a_network_settle_where_they_were():
    fit = zoo.fit("network")
    again = mrgp.predict(fit.condition(zoo.two_tasks()), GRID, task="no2")
    before = mrgp.predict(fit, GRID, task="no2")
    np.testing.assert_allclose(again.mean, before.mean, atol=0.05)
    np.testing.assert_allclose(again.std, before.std, atol=0.05)


def test_other_data_have_the_posterior_of_their_own():
    fit = mrgp.fit(RECIPES["exact"], seen(), optimiser=QUICK)
    fewer = fit.condition(seen(0.3, slice(0, 10)))
    assert fewer.counts == {("sites", "value"): (10, 0), ("cells", "value"): (8, 0)}
    assert fewer.parameters().keys() == fit.parameters().keys()
    for name, value in fit.parameters().items():
        np.testing.assert_array_equal(fewer.parameters()[name], value)
    held = fewer.kept_data()["sites"]
    np.testing.assert_allclose(held.y, seen(0.3, slice(0, 10))["sites"].y, atol=1e-12)
    wider = mrgp.predict(fewer, mrgp.points(X[20:])).std
    assert np.all(wider > mrgp.predict(fit, mrgp.points(X[20:])).std)
    loo = fewer.leave_one_out()
    assert len(loo["sites"]) == 10


def test_sources_in_another_order_are_put_in_order():
    fit = mrgp.fit(RECIPES["exact"], seen(), optimiser=QUICK)
    other = mrgp.Dataset(list(seen())[::-1])
    np.testing.assert_allclose(
        mrgp.predict(fit.condition(other), GRID).mean, mrgp.predict(fit, GRID).mean, atol=1e-10
    )


def test_what_cannot_be_conditioned_is_refused():
    fit = mrgp.fit(RECIPES["exact"], seen(), optimiser=QUICK)
    with pytest.raises(ValueError, match="condition takes data of the sources and inputs"):
        fit.condition(seen().select(source="sites"))
    with pytest.raises(ValueError, match="fit the other data, with reuse="):
        zoo.fit("deep").condition(zoo.biased())
