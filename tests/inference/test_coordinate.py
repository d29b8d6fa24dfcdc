"""Coordinate ascent and fits of networks: explicit optima, monotone bounds, the same answers."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mrgp
from groups import rest_thorough
from mrgp.data import Scaling
from mrgp.inference.coordinate import Block, bound, moments_of, settle, sweep
from mrgp.inference.objectives import Objective
from mrgp.models import naturals_of
from mrgp.parameters import unwrap
from shorthand import as_arrays, build_objective

QUICK = mrgp.LBFGS(max_steps=12, starts=1, candidates=0)


def dataset(seed=0, n=30):
    """Return two tasks that share two functions with a mixing that changes along x."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 6, n))
    f, h = np.sin(2 * x), np.cos(3 * x)
    a = 5 + f + 0.3 * x * h + 0.1 * rng.standard_normal(n)
    b = 40 + 8 * np.cos(0.5 * x) * f + 0.8 * rng.standard_normal(n)
    b[::6] = np.nan
    edges = np.arange(0.0, 6.0, 1.0)
    inside = edges[:, None] + (np.arange(20) + 0.5) / 20
    means = (5 + np.sin(2 * inside) + 0.3 * inside * np.cos(3 * inside)).mean(1)
    return mrgp.Dataset(
        [
            mrgp.Observations(mrgp.points(x[:, None]), a, task="a", name="sites"),
            mrgp.Observations(mrgp.points(x[:, None]), b, task="b", name="sites"),
            mrgp.Observations(mrgp.intervals(edges, edges + 1), means, task="a", name="cells"),
        ]
    )


DATA = dataset()


def network_and_q(**arguments):
    """Return an objective of a network's parameters, and a random q by natural parameters."""
    recipe = mrgp.MRGPRN(latents=2, inducing_f=9, inducing_w=4, **arguments)
    built = recipe.build(DATA)
    rng = np.random.default_rng(1)
    blocks = built.q.blocks.map(
        lambda b: eqx.tree_at(lambda w: w.mean.raw, b, 0.5 * rng.standard_normal(b.mean.raw.shape))
    )
    built = built.with_q(dataclasses.replace(built.q, blocks=blocks))
    target = build_objective(built, DATA, Scaling.of(DATA), {"cells": 0.6})
    q = naturals_of(unwrap(built.q)).map(Block.of)
    start, frozen = (tree.with_q(None) for tree in (target.start, target.frozen))
    return Objective(start, frozen, target.records), q


@pytest.mark.parametrize("coupled", rest_thorough([True, False], 0))
def test_a_block_update_is_a_unit_natural_gradient_step_and_raises_the_bound(coupled):
    with jax.enable_x64(True):
        objective, q = network_and_q(coupled=coupled)
        model, records = objective.model(objective.start), objective.records
        seen = unwrap(model).aggregates()
        last = len(model.groups) - 1

        @eqx.filter_jit
        def both(q):
            moments = moments_of(q)
            explicit_f = seen.best_f(moments, records, last)
            explicit_w = seen.best_w(moments, records, last)

            def of_f(own):
                return model.expected_log_likelihood(moments.with_f(last, own), records)

            def of_w(own):
                return model.expected_log_likelihood(moments.with_w(last, own), records)

            one = jnp.ones(())
            own_f, own_w = q.f[last], [row[last] for row in q.w]
            step_f = own_f.natural.step(own_f.moments, jax.grad(of_f)(own_f.moments), one)
            slopes = jax.grad(of_w)([b.moments for b in own_w])
            step_w = [b.natural.step(b.moments, s, one) for b, s in zip(own_w, slopes, strict=True)]
            after_f = bound(model, q.with_f(last, Block.of(explicit_f)), records)
            after_w = bound(model, q.with_w(last, [Block.of(n) for n in explicit_w]), records)
            bounds = bound(model, q, records), after_f, after_w
            return (explicit_f, *explicit_w), (step_f, *step_w), bounds

        explicit, steps, (before, after_f, after_w) = both(q)
    for a, b in zip(explicit, steps, strict=True):
        np.testing.assert_allclose(a.shift, b.shift, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(a.precision, b.precision, rtol=1e-8, atol=1e-8)
    assert after_f >= before
    assert after_w >= before


@pytest.mark.thorough
@pytest.mark.parametrize("arguments", [{}, {"coupled": False}, {"positive": True}])
def test_sweeps_never_lower_the_bound(arguments):
    with jax.enable_x64(True):
        objective, q = network_and_q(**arguments)
        _, history = settle(objective, objective.start, q)
    history = np.asarray(history)
    history = history[np.isfinite(history)]
    assert len(history) > 3
    assert np.all(np.diff(history) >= -1e-9 * np.abs(history[:-1]))
    assert history[-1] > history[0] + 1.0


def test_a_fixed_point_of_sweeps_has_no_slope():
    with jax.enable_x64(True):
        objective, q = network_and_q()
        model, records = objective.model(objective.start), objective.records
        many = eqx.filter_jit(
            lambda q: jax.lax.fori_loop(0, 1000, lambda _, q: sweep(model, q, records), q)
        )
        q = many(q)

        def at(moved):
            shifted = q.map(
                lambda b, d: Block(b.natural, eqx.tree_at(lambda m: m.mean, b.moments, d), 0.0),
                moved,
            )
            kl = sum(0.5 * jnp.vdot(d, d) for d in moved.parts())
            return model.expected_log_likelihood(moments_of(shifted), records) - kl

        slopes = eqx.filter_jit(jax.grad(at))(q.map(lambda b: b.moments.mean))
    for slope in slopes.parts():
        np.testing.assert_allclose(slope, 0.0, atol=1e-2)


FORMS = {
    "positive and factorised": {"latents": 2, "positive": True, "coupled": False},
    "noise last": {"schedule": "noise-last"},
    "mixture": {"components": 2},
}


def fit(data=DATA, key=0, optimiser=QUICK, **arguments):
    recipe = mrgp.MRGPRN(inducing_f=15, inducing_w=4, **{"latents": 1} | arguments)
    return mrgp.fit(recipe, data, key=key, optimiser=optimiser, progress=None)


GRID = mrgp.points(np.linspace(0.5, 5.5, 30)[:, None])


@pytest.fixture(scope="module")
def default():
    return fit()


@pytest.mark.parametrize("form", rest_thorough(FORMS, slow=("positive and factorised",)))
def test_histories_are_monotone_and_the_fit_predicts(form, default):
    found = fit(**FORMS[form])
    if form == "mixture":
        assert found.history[-1] > default.history[-1] - 1e-6
    assert np.all(np.diff(found.history) >= -1e-8 * np.abs(found.history[:-1]))
    assert len(found.history) > 0
    truth = 40 + 8 * np.cos(0.5 * GRID.x[:, 0]) * np.sin(2 * GRID.x[:, 0])
    pred = mrgp.predict(found, GRID, task="b", samples=0)
    assert np.sqrt(np.mean((pred.mean - truth) ** 2)) < 0.5 * truth.std()


@pytest.mark.thorough
def test_adam_on_minibatches_comes_near_the_full_fit():
    whole = fit(optimiser=mrgp.LBFGS(max_steps=60))
    some = fit(optimiser=mrgp.Adam(steps=100, batch=16))
    a, b = (mrgp.predict(f, GRID, task="b", samples=0) for f in (whole, some))
    assert np.sqrt(np.mean((a.mean - b.mean) ** 2)) < 0.3 * a.mean.std()
    assert some.status.code in ("step limit", "converged")
    assert some.training.natural


@pytest.mark.thorough
def test_resuming_goes_on_from_the_q_found(default):
    more = default.resume(DATA, optimiser=QUICK, progress=None)
    assert more.history[0] > default.history[0]
    assert more.history[-1] >= default.history[-1] - 1e-3


@pytest.mark.thorough
def test_units_of_a_task_change_nothing_else(default):
    scaled = mrgp.Dataset([o.replace(y=1e-3 * o.y) if o.task == "b" else o for o in DATA])
    other = fit(scaled)
    for task, unit in (("a", 1.0), ("b", 1e-3)):
        p, q = (mrgp.predict(f, GRID, task=task, samples=0) for f in (default, other))
        np.testing.assert_allclose(q.mean, unit * p.mean, rtol=1e-3)
        np.testing.assert_allclose(q.std, unit * p.std, rtol=2e-2)


@pytest.mark.thorough
def test_init_and_step_take_networks():
    f = mrgp.objective(mrgp.MRGPRN(latents=1, inducing_f=8, inducing_w=4), DATA)
    state = mrgp.init(f)
    values = []
    for _ in range(6):
        state, value = mrgp.step(f, state)
        values.append(float(value))
    assert values[-1] > values[0]
    rows = [np.arange(5), None, np.arange(3)]
    _, value = mrgp.step(f, state, as_arrays(rows))
    assert np.isfinite(value)
