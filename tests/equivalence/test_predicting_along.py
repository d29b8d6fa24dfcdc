"""Predictions of a fit along time are those of the dense covariance, however they are found."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mrgp
from alongside import built, leaning_on
from groups import rest_thorough
from mrgp._compiled import Compiled
from mrgp._types import to_numpy
from mrgp.gp.forecast import forecast
from mrgp.gp.stretches import stretches
from mrgp.gp.sweeping import sweep
from mrgp.inference import densely
from mrgp.parameters import unwrap

NAMES = ("east", "time")
QUICK = mrgp.LBFGS(max_steps=1, starts=1, candidates=0)
KERNEL = (
    mrgp.Matern32(2.0, dims="east") * mrgp.Matern12(3.0, dims="time")
    + mrgp.Matern32(4.0, dims="time")
    + mrgp.White(0.5, dims="east") * mrgp.Matern12(2.0, dims="time")
)
DRAWS = 40_000


def sources():
    rng = np.random.default_rng(5)
    x = np.array([[p, t] for t in (0.0, 1.0, 2.5, 3.0, 4.5) for p in (0.0, 1.0)])
    low = np.array([[0.0, 0.0], [0.0, 1.0], [0.5, 0.5], [1.0, 2.0], [1.0, 3.0]])
    high = low + [[2.0, 1.0], [2.0, 2.0], [1.0, 1.5], [0.0, 2.5], [0.0, 2.0]]
    values = 5.0 + rng.standard_normal(len(x) + len(low))
    values[3] = np.nan
    return [
        mrgp.Observations(mrgp.points(x, inputs=NAMES), values[: len(x)], name="sites"),
        mrgp.Observations(mrgp.boxes(low, high, inputs=NAMES), values[len(x) :], name="cells"),
    ]


@pytest.fixture(scope="module")
def fits():
    """Return a fit along time, and the same parameters with the dense covariance."""
    recipe = mrgp.MRGP(KERNEL, method="markov", bias="affine")
    along = mrgp.fit(recipe, mrgp.Dataset(sources()), optimiser=QUICK, progress=None)
    with jax.enable_x64(True):
        return along, densely(along, "a test")


PLACES = np.array([0.0, 0.3, 1.0, 1.7])
EARLY, LATE = np.linspace(-1.0, 5.0, 52), np.linspace(5.0, 12.0, 52)


def instants(times):
    return mrgp.points([[p, t] for t in times for p in PLACES], inputs=NAMES)


def windows(times):
    low = np.array([[p, t] for t in times for p in PLACES])
    wide = np.array([[0.5 * (i % 2), 0.4 + 0.3 * (i % 5)] for i in range(len(low))])
    return mrgp.boxes(low, low + wide, inputs=NAMES)


ASKED = {
    "instants": ("sweep", instants(EARLY)),
    "windows": ("sweep", windows(EARLY)),
    "instants after the end": ("forecast", instants(LATE)),
    "windows after the end": ("forecast", windows(LATE)),
}


@pytest.mark.parametrize("source", [None, "cells"])
@pytest.mark.parametrize("name", rest_thorough(ASKED, "windows", "instants after the end"))
def test_many_regions_are_predicted_as_by_the_dense_covariance(fits, name, source, monkeypatch):
    along, dense = fits
    way, support = ASKED[name]
    assert len(support) >= 200
    found = []

    def told(function):
        def asked(*arguments):
            answer = function(*arguments)
            found.extend([function.__name__] if answer is not None else [])
            return answer

        return asked

    for function in (sweep, forecast):
        monkeypatch.setattr(f"mrgp.gp.markov.{function.__name__}", told(function))
    one, two = (mrgp.predict(fit, support, source=source) for fit in (dense, along))
    assert found == [way]
    np.testing.assert_allclose(two.mean, one.mean, atol=1e-8)
    np.testing.assert_allclose(two.variance, one.variance, atol=1e-8)


FEW = {
    "before": mrgp.boxes(
        [[0.0, 0.5], [0.3, 2.0], [0.0, 3.0], [1.0, 4.2]],
        [[0.0, 2.2], [1.3, 4.0], [2.0, 4.0], [1.0, 4.2]],
        inputs=NAMES,
    ),
    "after": mrgp.points([[0.0, 5.0], [0.0, 6.0], [0.4, 6.0], [1.0, 9.0]], inputs=NAMES),
}


@pytest.mark.parametrize("when", FEW)
def test_draws_have_the_moments_of_the_dense_covariance(fits, when):
    along, dense = fits
    exact = mrgp.predict(dense, FEW[when], joint=True)
    draws = mrgp.predict(along, FEW[when], joint=True).sample(key=1, n=DRAWS)
    covariance = np.asarray(exact.covariance)
    spread = np.diag(covariance)
    related = np.abs(covariance) / np.sqrt(np.outer(spread, spread))
    assert np.max(related - np.eye(len(spread))) > 0.05
    off = np.abs(draws.mean(0) - exact.mean)
    assert np.all(off < 4.5 * np.sqrt(spread / DRAWS))
    error = np.sqrt((np.outer(spread, spread) + covariance**2) / DRAWS)
    assert np.all(np.abs(np.cov(draws.T) - covariance) < 4.5 * error)


def test_joint_answers_gathered_over_time_are_those_of_the_dense_covariance(fits, monkeypatch):
    along, dense = fits
    # Stretches of three steps, with the last one shorter.
    support, rows = FEW["before"], np.asarray(along.state.line.rows)
    monkeypatch.setattr("mrgp.gp.markov.AT_ONCE", 3 * 8 * rows.shape[1] * len(support))
    monkeypatch.setattr("mrgp.gp.markov.FEWEST_AT_ONCE", 1)
    assert along.state.most_nodes < len(support)
    assert len(rows) > 6
    assert len(rows) % 3
    one, two = (mrgp.predict(fit, support, source="cells", joint=True) for fit in (dense, along))
    np.testing.assert_allclose(two.mean, one.mean, atol=1e-8)
    np.testing.assert_allclose(two.covariance, one.covariance, atol=1e-8)


@Compiled
def at_once(model, records, support):
    state = model.condition(records)
    return state, unwrap(model.solver).predict(state, jnp.ones(1), support, True)


@pytest.mark.thorough
def test_joint_answers_through_inducing_places_are_gathered_over_time_too(monkeypatch):
    with jax.enable_x64(True):
        _, model, records, scaling = built(mrgp.MRGP(KERNEL), mrgp.Dataset(sources()))
        # One of them is a site.
        places = np.array([[0.0, 0.0], [1.4, 0.0]]) - scaling.centre * [1.0, 0.0]
        model = leaning_on(model, records, (mrgp.points(places),))
        assert any(np.any(seats.own >= 0) for seats in model.solver.line.seats if seats.leaning)
        support = FEW["before"].shift(scaling.centre)
        state, (mean, covariance) = at_once(model, records, support, effort="least")
        monkeypatch.setattr("mrgp.gp.markov.AT_ONCE", 600)
        monkeypatch.setattr("mrgp.gp.markov.FEWEST_AT_ONCE", 1)
        kernels = to_numpy(unwrap(model.solver)).kernels
        found = to_numpy(state).jointly(kernels, np.ones(1), support)
    np.testing.assert_allclose(found[0], mean, atol=1e-9)
    np.testing.assert_allclose(found[1], covariance, atol=1e-9)


@pytest.mark.parametrize("length", [1, 2, 5, 9])
def test_stretches_see_every_row_once(length):
    one, two = mrgp.points(np.arange(5.0)[:, None]), mrgp.points(10.0 + np.arange(4.0)[:, None])
    rows = np.array([[0, 5], [9, 9], [6, 1], [2, 3], [7, 8], [4, 9], [9, 9]])
    seen, steps, sizes = [], [], []
    for part in stretches(rows, [one, two], length):
        x = np.concatenate([anchor.x[:, 0] for anchor in part.anchors])
        new = slice(part.known, None)
        at, there = part.at[new], rows[part.first :][: len(part.at)][new]
        seen += x[at[there < 9]].tolist()
        np.testing.assert_array_equal(part.rows[at[there < 9]], there[there < 9])
        steps += (part.first + np.arange(len(part.at)))[new].tolist()
        sizes.append((part.at.shape, *map(len, part.anchors)))
    assert steps == list(range(7))
    assert sorted(seen) == [0, 1, 2, 3, 4, 10, 11, 12, 13]
    # Compiled code serves them all.
    assert len(set(sizes)) == 1
