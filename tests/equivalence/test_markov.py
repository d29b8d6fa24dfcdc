"""The solver along time is the exact one: evidence, gradient, posterior, whatever the layout."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mrgp
from groups import rest_thorough
from mrgp._types import to_numpy
from mrgp.data import Scaling
from mrgp.gp import Markov
from mrgp.gp.filtering import (
    Dynamics,
    arrived,
    beginning,
    emptied,
    looked_at,
    seen_of,
    sight_of,
    steps_of,
    whitened,
)
from mrgp.gp.spans import in_spans
from mrgp.models import as_arrays
from mrgp.parameters import partition, unwrap
from mrgp.supports import Places, taken_apart

NAMES = ("east", "time")
SPACE = mrgp.Matern32(2.0, variance=1.2, dims="east")
TIMES = {
    "Matern12": mrgp.Matern12(3.0, variance=1.5, dims="time"),
    "Matern32": mrgp.Matern32(3.0, variance=1.5, dims="time"),
    "Matern52": mrgp.Matern52(3.0, variance=1.5, dims="time"),
    "Constant": mrgp.Constant(1.5),
    "Periodic": mrgp.Periodic(4.0, lengthscale=1.5, variance=1.5, dims="time"),
    "product": mrgp.Matern12(3.0, variance=1.5, dims="time")
    * mrgp.Periodic(4.0, lengthscale=1.5, variance=1.0, dims="time"),
}
LOCAL = mrgp.White(0.5, dims="east") * mrgp.Matern12(2.0, variance=1.0, dims="time")
COMMON = mrgp.Matern32(4.0, variance=0.8, dims="time")
NETWORK = SPACE * TIMES["Matern12"] + COMMON + LOCAL
ASKED = [
    mrgp.points([[0.0, 1.5], [0.7, 2.0], [1.0, 9.0], [1.0, -1.0]], inputs=NAMES),
    mrgp.boxes([[0.0, 0.5], [0.3, 2.0], [0.0, 4.0]], [[0.0, 2.25], [1.3, 4.0], [2.0, 8.0]]),
]


@pytest.fixture(autouse=True)
def _in_float64():
    with jax.enable_x64(True):
        yield


def source(support, seed, name, task="value", **more):
    y = 3.0 + np.random.default_rng(seed).standard_normal(len(support))
    if more.pop("gaps", False):
        y[::3] = np.nan
    return mrgp.Observations(support, y, name=name, task=task, **more)


def at(pairs):
    return mrgp.points(pairs, inputs=NAMES)


def over(*spans):
    """Return regions (west, east, start, end)."""
    low, high = ([[s[i], s[i + 2]] for s in spans] for i in (0, 1))
    return mrgp.boxes(low, high, inputs=NAMES)


SITES = at([[p, t] for t in (0.0, 1.0, 2.5, 3.0) for p in (0.0, 1.0)])
CELLS = over((0.0, 2.0, 0.0, 1.0), (0.0, 2.0, 1.0, 3.0), (0.5, 1.5, 0.5, 2.0))
RUNNING = over(*((1.0, 1.0, float(t), t + 3.0) for t in range(3)))
IN_TIME = mrgp.nodes(
    [[[1.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [1.0, 2.0]]], inputs=NAMES
)


def built(recipe, data, weights=None):
    """Return models by both methods, with the records that both are given."""
    scaling = Scaling.of(data)
    records = as_arrays(scaling.records(data, weights or {}))
    found = []
    for method in ("exact", "markov"):
        model = dataclasses.replace(recipe, method=method).build(data)
        found.append(as_arrays(model.with_plan(model.plan_of(records))))
    assert isinstance(found[1].solver, Markov)
    return *found, records, scaling


@eqx.filter_jit
def answers(model, records, supports, asked):
    """Return log evidence, its gradient, and means and joint covariances on supports."""
    trained, frozen = partition(model)

    @eqx.filter_value_and_grad
    def evidence(part):
        return eqx.combine(part, frozen).log_evidence(records)

    state = model.condition(records)
    found = [model.moments(state, s, *p, joint=True) for s in supports for p in asked]
    return evidence(trained), found


def assert_same(recipe, data, weights=None, tolerance=1e-8, supports=ASKED):
    *models, records, scaling = built(recipe, data, weights)
    supports = [as_arrays(support.shift(scaling.centre)) for support in supports]
    source, task = data.processes[-1]
    asked = ((data.tasks[0], None), (task, source))
    exact, markov = (jax.tree.leaves(answers(m, records, supports, asked)) for m in models)
    assert len(exact) == len(markov) > 2
    for one, two in zip(exact, markov, strict=True):
        np.testing.assert_allclose(two, one, rtol=tolerance, atol=tolerance)


IN_EVERYTHING = ("sites and cells", "missing", "affine")
LAYOUTS = {
    "everything": (
        NETWORK,
        [
            source(SITES, 0, "a", gaps=True),
            source(CELLS, 1, "b", noise_variance=[0.1, 0.5, 2.0]),
            source(RUNNING, 2, "c", gaps=True),
            source(IN_TIME, 3, "d"),
        ],
        {"bias": "affine", "mean": "linear"},
    ),
    "sites and cells": (NETWORK, [source(SITES, 0, "a"), source(CELLS, 1, "b")], {}),
    "missing": (NETWORK, [source(SITES, 0, "a", gaps=True), source(CELLS, 1, "b", gaps=True)], {}),
    "running means": (NETWORK, [source(SITES, 0, "a"), source(RUNNING, 1, "b")], {}),
    "equal windows": (SPACE * COMMON, [source(RUNNING, 0, "a"), source(RUNNING, 1, "b")], {}),
    "nodes in time": (NETWORK, [source(IN_TIME, 0, "a"), source(RUNNING, 1, "b")], {}),
    "totals": (
        SPACE * COMMON,
        [source(SITES, 0, "a"), source(mrgp.boxes([[0, 0]], [[2, 3]], kind="sum"), 1, "b")],
        {},
    ),
    "offset": (
        SPACE * COMMON,
        [source(SITES, 0, "a"), source(CELLS, 1, "b")],
        {"bias": "offset", "mean": "linear"},
    ),
    "affine": (NETWORK, [source(SITES, 0, "a"), source(CELLS, 1, "b")], {"bias": "affine"}),
    "known noise": (
        SPACE * COMMON,
        [source(SITES, 0, "a", noise_variance=np.linspace(0.1, 2.0, 8)), source(CELLS, 1, "b")],
        {},
    ),
}


@pytest.mark.parametrize("name", rest_thorough(LAYOUTS, "offset", slow=IN_EVERYTHING))
def test_layouts_have_the_exact_evidence_gradient_and_posterior(name):
    kernel, sources, arguments = LAYOUTS[name]
    assert_same(mrgp.MRGP(kernel, **arguments), mrgp.Dataset(sources))


@pytest.mark.parametrize("name", rest_thorough(TIMES, "Matern52"))
def test_each_kernel_of_time_is_exact(name):
    sites, cells = at([[0.0, 0.0], [1.0, 0.4], [0.0, 3.0]]), over((0.0, 2.0, 0.0, 1.0))
    data = mrgp.Dataset([source(sites, 0, "a"), source(cells, 1, "b")])
    assert_same(mrgp.MRGP(SPACE * TIMES[name]), data)


@pytest.mark.thorough
def test_composite_weights_are_the_exact_ones():
    data = mrgp.Dataset([source(SITES, 0, "a"), source(CELLS, 1, "b")])
    weights = {("a", "value"): 0.4, ("b", "value"): 0.7}
    assert_same(mrgp.MRGP(SPACE * COMMON), data, weights)


@pytest.mark.thorough
def test_two_latent_functions_of_two_tasks():
    sources = [
        source(SITES, 0, "a", "no2", gaps=True),
        source(CELLS, 1, "b", "pm10", noise_variance=[0.1, 0.5, 2.0]),
        source(RUNNING, 2, "c", "no2", gaps=True),
        source(IN_TIME, 3, "d", "pm10"),
    ]
    kernels = [SPACE * TIMES["Matern12"], COMMON]
    recipe = mrgp.MRGPRN(latents=2, kernel_f=kernels, kernel_w="constant")
    assert_same(recipe, mrgp.Dataset(sources), {("b", "pm10"): 0.4, ("c", "no2"): 0.7})


@pytest.mark.thorough
def test_polygons_by_windows_and_sites_of_a_plane():
    shapely = pytest.importorskip("shapely")
    plane = ("east", "north")
    ring = [(0.0, 0.0), (2.0, 0.3), (1.5, 2.0), (0.2, 1.4)]
    shapes = [shapely.Polygon(ring), shapely.Polygon([(x + 1.0, y + 0.5) for x, y in ring])]
    windows = mrgp.intervals([0.0, 1.0, 0.5], [2.0, 2.5, 4.0], inputs=("time",))
    districts = mrgp.polygons([shapes[0], shapes[1], shapes[0]], spacing=0.7, inputs=plane)
    here = mrgp.points([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]], inputs=plane)
    when = mrgp.points([[0.5], [1.0], [3.0]], inputs=("time",))
    sites, areas = mrgp.product(here, when), mrgp.product(districts, windows)
    radial = mrgp.Matern32(2.0, variance=1.2, dims=plane)
    recipe = mrgp.MRGP(radial * TIMES["Matern32"] + COMMON, mean="zero")
    data = mrgp.Dataset([source(sites, 0, "a"), source(areas, 1, "b")])
    new = mrgp.points([[0.3, 0.7, 2.0], [1.0, 1.0, 6.0]], inputs=(*plane, "time"))
    assert_same(recipe, data, supports=[new, areas])


@pytest.mark.thorough
def test_an_effect_of_a_covariate_is_a_state_without_an_end():
    kind = ["park", "road"] * 4
    support = mrgp.points(SITES.x, inputs=NAMES, covariates={"type": kind})
    *models, records, _ = built(mrgp.MRGP(SPACE * COMMON), mrgp.Dataset([source(support, 0, "a")]))
    exact, markov = (jax.tree.leaves(answers(m, records, [], ())) for m in models)
    for one, two in zip(exact, markov, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-8, atol=1e-8)


times = st.floats(0.0, 6.0).map(lambda t: round(t, 2))
places = st.sampled_from([0.0, 0.5, 2.0])
sites = st.lists(st.tuples(places, times), min_size=2, max_size=6, unique=True)
spans = st.lists(
    st.tuples(places, st.sampled_from([0.0, 1.0]), times, st.floats(0.1, 3.0)),
    min_size=1,
    max_size=4,
)


@pytest.mark.thorough
@settings(max_examples=6, deadline=None)
@given(
    sites,
    spans,
    st.sampled_from(sorted(TIMES)),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["none", "offset", "affine"]),
    st.booleans(),
    st.sampled_from([None, 0.3]),
)
def test_any_layout_is_exact(found, regions, kernel, local, gaps, bias, weighted, noise):
    cells = over(*((p, p + wide, t, t + width) for p, wide, t, width in regions))
    sources = [
        source(at(found), 0, "a", gaps=gaps),
        source(cells, 1, "b", gaps=gaps and len(cells) > 1, noise_variance=noise),
    ]
    if local:
        sources.append(source(IN_TIME, 2, "c"))
    kernel = SPACE * TIMES[kernel] + (LOCAL if local else COMMON)
    weights = {(o.name, "value"): w for o, w in zip(sources, (0.4, 0.7, 1.0), strict=False)}
    recipe = mrgp.MRGP(kernel, mean="linear" if noise else "zero", bias=bias)
    assert_same(recipe, mrgp.Dataset(sources), weights if weighted else None)


@pytest.mark.thorough
@settings(max_examples=4, deadline=None)
@given(
    sites,
    spans,
    st.lists(st.floats(-0.5, 2.5), min_size=1, max_size=2, unique=True),
    st.sampled_from(["none", "affine"]),
    st.booleans(),
)
def test_through_any_inducing_places_the_evidence_is_a_bound(
    found, regions, inducing, bias, weighted
):
    cells = over(*((p, p + wide, t, t + width) for p, wide, t, width in regions))
    data = mrgp.Dataset([source(at(found), 0, "a", gaps=weighted), source(cells, 1, "b")])
    weights = {("a", "value"): 0.4, ("b", "value"): 0.7} if weighted else None
    recipe = mrgp.MRGP(NETWORK, mean="zero", bias=bias)
    exact, model, records, _ = built(recipe, data, weights)
    x = np.array([[place, 0.0] for place in inducing])
    solver = dataclasses.replace(model.solver, inducing=(mrgp.points(x),))
    model = dataclasses.replace(model, solver=solver)
    model = as_arrays(model.with_plan(model.plan_of(records)))
    one, two = (float(eqx.filter_jit(m.log_evidence)(records)) for m in (exact, model))
    assert two <= one + 1e-8


def test_a_sweep_of_the_smoother_is_the_prediction_one_by_one():
    data = mrgp.Dataset([source(SITES, 0, "a", gaps=True), source(RUNNING, 1, "b")])
    _, markov, records, _ = built(mrgp.MRGP(NETWORK), data)
    state = to_numpy(eqx.filter_jit(markov.condition)(records))
    asked = at([[p, t] for t in (-1.0, 0.0, 0.5, 2.5, 7.0) for p in (0.0, 0.3, 1.0)])
    solver, ratio = to_numpy(unwrap(markov.solver)), np.ones(1)
    mean, variance = state.sweep(solver.kernels, ratio, asked, solver.rule)
    one, spread = eqx.filter_jit(solver.predict)(state, jnp.ones(1), as_arrays(asked))
    np.testing.assert_allclose(mean, one, atol=1e-8)
    np.testing.assert_allclose(variance, spread, atol=1e-8)


WINDOWS = {
    "of sites and cells": over(
        (0.0, 0.0, 0.0, 2.0),
        (0.0, 0.0, 2.0, 3.5),
        (0.3, 0.3, -1.0, 2.0),
        (0.3, 0.3, 1.0, 1.5),
        (0.5, 1.5, 0.5, 2.0),
        (0.0, 2.0, 0.2, 9.0),
        (1.0, 1.0, 0.0, 0.0),
        (0.4, 0.4, 0.5, 0.5),
    ),
    "running": over(*((p, p, t / 2, t / 2 + 2.0) for t in range(-2, 6) for p in (0.0, 0.4, 1.0))),
    "nodes in time": IN_TIME,
    "totals": mrgp.boxes([[0, 0], [1, 1]], [[2, 3], [1, 4]], kind="sum", inputs=NAMES),
}


@pytest.mark.parametrize("most", rest_thorough((2**28, 1), 0))
@pytest.mark.parametrize("name", rest_thorough(WINDOWS, "of sites and cells"))
def test_windows_gathered_in_few_passes_are_those_one_by_one(name, most, monkeypatch):
    monkeypatch.setattr("mrgp.gp.windows.MOST_BYTES", most)
    sources = [source(SITES, 0, "a", gaps=True), source(RUNNING, 1, "b"), source(IN_TIME, 2, "c")]
    _, markov, records, scaling = built(mrgp.MRGP(NETWORK), mrgp.Dataset(sources))
    state = to_numpy(eqx.filter_jit(markov.condition)(records))
    solver, ratio = to_numpy(unwrap(markov.solver)), np.array([0.6])
    asked = WINDOWS[name].shift(scaling.centre)
    mean, variance = state.sweep(solver.kernels, ratio, asked, solver.rule)
    one, spread = eqx.filter_jit(solver.predict)(state, jnp.asarray(ratio), as_arrays(asked))
    np.testing.assert_allclose(mean, one, atol=1e-8)
    np.testing.assert_allclose(variance, spread, atol=1e-8)


AFTER = {
    "instants": at([[0.0, 5.0], [0.3, 5.0], [1.0, 9.5]]),
    "windows": over((0.0, 0.0, 5.0, 7.0), (0.5, 2.5, 6.0, 6.0), (0.3, 0.3, 5.5, 9.0)),
    "nodes": mrgp.nodes([[[1.0, 5.0], [1.0, 6.0]], [[0.4, 7.0], [1.6, 7.0]]], inputs=NAMES),
    "totals": mrgp.boxes([[0.0, 5.0]], [[2.0, 8.0]], kind="sum", inputs=NAMES),
}


def assert_forecast(recipe, data, ratio, asked):
    """Compare what the last state says after all data with the posterior of all of them."""
    _, markov, records, scaling = built(recipe, data)
    state = to_numpy(eqx.filter_jit(markov.condition)(records))
    solver, asked = to_numpy(unwrap(markov.solver)), asked.shift(scaling.centre)
    mean, covariance = state.forecast(solver.kernels, ratio, asked, solver.rule, joint=True)
    every = eqx.filter_jit(solver.predict)(state, jnp.asarray(ratio), as_arrays(asked), True)
    np.testing.assert_allclose(mean, every[0], atol=1e-8)
    np.testing.assert_allclose(covariance, every[1], atol=1e-8)
    _, variance = state.forecast(solver.kernels, ratio, asked, solver.rule)
    np.testing.assert_allclose(variance, np.diag(covariance), atol=1e-8)
    assert state.forecast(solver.kernels, ratio, SITES.shift(scaling.centre), solver.rule) is None


@pytest.mark.parametrize("name", rest_thorough(AFTER, "windows"))
def test_the_last_state_says_of_later_times_what_all_data_say(name):
    data = mrgp.Dataset([source(SITES, 0, "a", gaps=True), source(RUNNING, 1, "b")])
    assert_forecast(mrgp.MRGP(NETWORK), data, np.array([0.6]), AFTER[name])


@pytest.mark.thorough
def test_the_last_states_of_two_functions_say_it_too():
    data = mrgp.Dataset([source(SITES, 0, "a", "no2"), source(CELLS, 1, "b", "pm10")])
    kernels = [SPACE * TIMES["Matern12"] + COMMON, SPACE * TIMES["Matern52"]]
    recipe = mrgp.MRGPRN(latents=2, kernel_f=kernels, kernel_w="constant")
    assert_forecast(recipe, data, np.array([1.0, 0.6]), AFTER["windows"])


@pytest.mark.parametrize("name", rest_thorough(("sites and cells", "nodes in time", "affine")))
def test_with_all_places_inducing_it_is_exact(name):
    kernel, sources, arguments = LAYOUTS[name]
    exact, model, records, scaling = built(mrgp.MRGP(kernel, **arguments), mrgp.Dataset(sources))
    seen = [o.dropna().support.shift(scaling.centre) for o in mrgp.Dataset(sources)]
    parts = [part for support in seen for part in taken_apart(support, 1)]
    inducing = Places.of(parts, np.ones(2)).groups
    solver = dataclasses.replace(model.solver, inducing=inducing)
    model = dataclasses.replace(model, solver=solver)
    model = as_arrays(model.with_plan(model.plan_of(records)))
    assert any(seats.leaning for seats in model.solver.line.seats)
    supports = [as_arrays(support.shift(scaling.centre)) for support in ASKED]
    asked = (("value", None), ("value", sources[-1].name))
    one, two = (jax.tree.leaves(answers(m, records, supports, asked)) for m in (exact, model))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-8)


def one_after_another(dynamics, seen):
    white, size, belief = whitened(dynamics, seen)
    return jnp.sum(white**2), size, belief


def side_by_side(dynamics, seen):
    found = in_spans(dynamics, seen, 3)
    return found.square, found.size, found.belief


@eqx.filter_jit
def evidence_by(weigh, model, records):
    """Return the gradient of what a filter finds, and all of it."""
    trained, frozen = partition(model)

    @eqx.filter_grad(has_aux=True)
    def found(part):
        model = unwrap(eqx.combine(part, frozen))
        solver, read = model.solver, model.readings(records)
        dynamics = Dynamics.of(solver.kernels, solver.time, solver.line, solver.rule)
        sight = sight_of(dynamics, jnp.ones((len(read.noise), 1)))
        seen = seen_of(solver.line, sight, read.noise, read.residual[:, None])
        square, size, belief = weigh(dynamics, seen)
        return square + size, (square, size, belief)

    return found(trained)


@pytest.mark.parametrize("kept", rest_thorough(("all", "few"), "all"))
def test_spans_side_by_side_are_steps_one_after_another(monkeypatch, kept):
    monkeypatch.setattr("mrgp.gp.filtering.KEPT_BYTES", {"all": 2**34, "few": 0}[kept])
    sources = [source(IN_TIME, 0, "a"), source(RUNNING, 1, "b"), source(CELLS, 2, "c", gaps=True)]
    _, model, records, _ = built(mrgp.MRGP(NETWORK), mrgp.Dataset(sources))
    steps = len(model.solver.line.gap)
    assert steps > 3
    assert steps % 3
    jax.clear_caches()
    one = jax.tree.leaves(evidence_by(one_after_another, model, records))
    two = jax.tree.leaves(evidence_by(side_by_side, model, records))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9)


@pytest.mark.thorough
def test_a_long_run_with_little_noise_keeps_its_covariances():
    """Filter 48 sites by the hour with a noise of 1 against 600."""
    rng = np.random.default_rng(0)
    where, hours = rng.uniform(0.0, 30.0, 48), np.arange(72.0)
    support = at([[p, t] for t in hours for p in where])
    kernel = mrgp.Matern12(12.0, variance=300.0, dims="east") * TIMES["Matern12"]
    kernel = kernel + mrgp.Matern32(6.0, variance=200.0, dims="time") + 100.0 * LOCAL
    seen = source(support, 0, "a", noise_variance=1.0)
    data = mrgp.Dataset([seen.replace(y=20.0 * np.asarray(seen.y))])
    model = mrgp.MRGP(kernel, method="markov").build(data)
    records = as_arrays(Scaling.of(data).records(data))
    model = unwrap(as_arrays(model.with_plan(model.plan_of(records))))

    @jax.jit
    def last():
        line, solver = model.solver.line, model.solver
        dynamics = Dynamics.of(solver.kernels, solver.time, line, solver.rule)
        read = model.readings(records)
        sight = sight_of(dynamics, jnp.ones((len(support), 1)))
        steps = steps_of(line, seen_of(line, sight, read.noise, read.residual[:, None]))

        def step(belief, one):
            found = looked_at(dynamics, arrived(dynamics, belief, one), one.seen)[0]
            return emptied(dynamics, found, one), None

        return jax.lax.scan(step, beginning(dynamics, 1), steps)[0].covariance

    covariance = np.asarray(last())
    scale = np.abs(covariance).max()
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-9 * scale)
    assert np.linalg.eigvalsh(0.5 * (covariance + covariance.T)).min() > -1e-8 * scale
