"""Trees of GPs against loops in NumPy, Monte Carlo and finite differences."""

import dataclasses
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import pytest

import mrgp
from groups import rest_thorough
from mrgp._types import to_numpy
from mrgp.data import Scaling, as_key
from mrgp.models import as_arrays
from mrgp.models.parts import normals
from mrgp.models.paths import Paths
from reference import deep as slow
from reference.gaussian import functionals, rbf

PATHS = 4
DEEP = {
    "kernel_base": mrgp.RBF(1.1),
    "inducing_deep": 4,
    "samples": PATHS,
    "priors": False,
    "quadrature": mrgp.GaussLegendre(2),
}


def field(x):
    return 3 + np.sin(1.3 * x)


def sources():
    """Return sources of six values: points that reach beyond the others, regions of two nodes."""
    rng = np.random.default_rng(2)
    x = np.append(np.sort(rng.uniform(0.2, 5.8, 6)), 14.0)
    y = field(x) + 0.1 * rng.standard_normal(7)
    y[2] = np.nan
    pairs = np.linspace(0.2, 5.0, 6)[:, None] + np.array([[0.0, 0.7]])
    weights = rng.uniform(0.5, 2.0, (6, 2))
    regions, totals = (mrgp.nodes(pairs[:, :, None], weights, kind=k) for k in ("mean", "sum"))
    means, sums = (np.sum(s.weights * field(pairs), 1) for s in (regions, totals))
    known = rng.uniform(0.01, 0.02, 6)
    seen = mrgp.Observations
    return {
        "sites": seen(mrgp.points(x[:, None]), y, name="sites"),
        "cells": seen(regions, 0.5 * means + 1 + 0.1 * rng.standard_normal(6), name="cells"),
        "totals": seen(totals, 4 * sums, name="totals", noise_variance=1e-3),
        "clouds": seen(regions[::-1], 1.5 * means[::-1], name="clouds", noise_variance=known),
        "pm10 cells": seen(mrgp.points(pairs[:, :1]), 9 * means - 4, task="pm10", name="cells"),
        "pm10 sites": seen(mrgp.points(x[:6, None]), 10 * field(x[:6]), task="pm10", name="sites"),
    }


def data(*names):
    every = sources()
    return mrgp.Dataset([every[name] for name in names])


CASES = {
    "a mixture of another task, and maps that change over the input": (
        mrgp.MRDGP(
            ("sites", "value"),
            deep_inputs="x1",
            kernel_deep=mrgp.RBF([0.9, 3.0]),
            mixing="reliability",
            **DEEP,
        ),
        data("sites", "pm10 cells", "pm10 sites"),
        {("sites", "value"): 0.5, ("cells", "pm10"): 0.8},
    ),
    "a chain of three": (
        mrgp.Cascade(["cells", "clouds", "sites"], kernel_deep=mrgp.RBF(0.9), **DEEP),
        data("sites", "clouds", "cells"),
        {"clouds": 0.4},
    ),
    "totals, explained by a line and a bend": (
        mrgp.MRDGP(
            "totals",
            kernel_deep=mrgp.RBF(0.9, variance=0.1),
            mean_deep="linear",
            mixing="precision",
            **DEEP,
        ),
        data("totals", "sites"),
        None,
    ),
}
TASKS, CHAIN, TOTALS = CASES
REGIONS = mrgp.nodes([[[0.4], [2.1]], [[3.0], [3.2]], [[5.5], [9.0]]], [[0.3, 0.7]] * 3)
PLACES = mrgp.points([[0.4], [2.9], [6.5], [7.0], [13.0]])
SUPPORTS = {TASKS: REGIONS, TOTALS: PLACES}
KEY = as_key(7)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


class Built(NamedTuple):
    """A tree at its starting point and moved away from it, with what it was made from."""

    objective: Any
    trained: Any
    data: mrgp.Dataset
    weights: Any

    @property
    def start(self):
        """The tree as it was built."""
        return self.objective.model(self.objective.start)

    @property
    def moved(self):
        """The tree with other parameters."""
        return self.objective.model(self.trained)


@functools.cache
def built(case):
    recipe, seen, weights = CASES[case]
    objective = mrgp.objective(recipe, seen, weights)
    rng = np.random.default_rng(5)
    away = jax.tree.map(lambda v: v + 0.2 * rng.standard_normal(v.shape), objective.start)
    return Built(as_arrays(objective), as_arrays(away), recipe.view(seen), weights)


@functools.cache
def bound_and_components(case):
    """Return bound and prediction of a moved tree, compiled together."""
    made = built(case)
    return to_numpy(_bound_and_components(made.objective, made.trained, SUPPORTS[case]))


@eqx.filter_jit
def _bound_and_components(objective, trained, support):
    tree = objective.model(trained)
    states = tree.condition(objective.records)
    parts = Paths(tree, states, KEY, PATHS).components(support, "value", None, None)
    return objective(trained), parts


@eqx.filter_jit
def bound_and_slope(objective, trained):
    return eqx.filter_value_and_grad(lambda t: objective(t))(trained)


def loops(tree, data, weights=None):
    """Write a tree, at its own parameters in the user's units, as the reference has it."""
    values = tree.report(Scaling.plain(data))
    found = slow.Tree(white(tree.key), tree.samples, tree.beside, tree.mixing)
    for blend in tree.blends:
        found.mixtures[blend.name] = [name for _, name in blend.experts]
    for node in tree.branches:
        part, seen = tree.parts[node.name], data[node.process].dropna()
        own = own_values(values, node.name)
        kernel = kernel_of(own["kernel.lengthscale"], own["kernel.variance"])
        given = weights or {}
        weight = given.get(node.process, given.get(node.process[0], 1.0))
        found.parents[node.name] = node.parent
        if node.parent is None:
            noise = own.get("noise_variance", seen.noise_variance)
            rows, level = functionals(seen.support), own["mean.constant"]
            made = slow.Base(kernel, rows, seen.y, level, noise, weight)
            found.floors[node.name] = float(part.floor)
        else:
            seen = seen[np.asarray(part.rows)]
            rows = functionals(seen.support)
            z = np.asarray(part.gp.solver.locations.value) + np.asarray(part.scaling.centre)
            made = slow.Layer(
                kernel,
                z,
                [found.inputs(node.parent, x) for x, _ in rows],
                [w for _, w in rows],
                seen.y,
                float(part.slope),
                own["mean.constant"],
                own.get("mean.slope", np.zeros(z.shape[1])),
                own["noise_variance"],
                weight,
            )
            made.excess = float(part.excess)
        found.nodes[node.name] = made
    return found


def white(key):
    """Return the normal numbers of all paths, as a function of the node and of a region's nodes."""

    @functools.cache
    def numbers(name, s):
        return np.asarray(normals(key, name, PATHS, s))

    return numbers


def own_values(values, name):
    start = f"{name}."
    return {k.removeprefix(start): np.asarray(v) for k, v in values.items() if k.startswith(start)}


def kernel_of(lengthscale, variance):
    return lambda x, z: rbf(x, z, lengthscale, variance)


@pytest.mark.parametrize("case", rest_thorough(CASES, TASKS, TOTALS))
def test_the_bound_equals_dense_algebra_and_loops_over_paths(case):
    made = built(case)
    in_chain = case not in SUPPORTS
    evaluated = bound_and_slope(*made[:2]) if in_chain else bound_and_components(case)
    expected = loops(made.moved, made.data, made.weights).bound
    assert float(evaluated[0]) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("case", SUPPORTS)
def test_components_of_a_prediction_equal_loops_over_slices_and_paths(case):
    made, (_, parts) = built(case), bound_and_components(case)
    by_hand = loops(made.moved, made.data, made.weights)
    by_hand.normals = white(KEY)
    experts = made.moved.blend("value").experts
    names = [name for _, name in experts]
    for n, (x, w) in enumerate(functionals(SUPPORTS[case])):
        weights, means, variances = by_hand.components(names, x, w)
        np.testing.assert_allclose(parts.weights[n], weights, rtol=1e-10, atol=1e-14)
        # What has no weight has no say.
        heard = weights > 0
        np.testing.assert_allclose(parts.means[n][heard], means[heard], rtol=1e-10)
        np.testing.assert_allclose(parts.variances[n][heard], variances[heard], rtol=1e-9)
        shares = by_hand.shares(names, x) @ (np.abs(w) / np.abs(w).sum())
        for (label, name), share in zip(experts, shares, strict=True):
            alone = np.array([(w @ mean, w @ cov @ w) for mean, cov in by_hand.outcomes(name, x)])
            mean, variance = (v[n] for v in parts.experts[label])
            np.testing.assert_allclose(mean, alone[: len(mean), 0], rtol=1e-10)
            np.testing.assert_allclose(variance, alone[: len(mean), 1], rtol=1e-9)
            assert parts.shares[label][n] == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_constants_of_a_tree_equal_dense_algebra(case):
    """A base's variance where it has data, the overlap of sources, and what layers leave open."""
    made = built(case)
    tree, by_hand = made.start, loops(made.start, made.data)
    noises = {n.name: tree.parts[n.name].gp.observation_noise(n.process) for n in tree.branches}
    first = {n.process: noises[n.name] for n in reversed(tree.branches)}
    for node in tree.branches:
        part, rows = tree.parts[node.name], functionals(made.data[node.process].dropna().support)
        if node.parent is None:
            middles = [w @ x / w.sum() for x, w in rows]
            assert float(part.floor) == pytest.approx(slow.floor(by_hand.nodes[node.name], middles))
            continue
        known = by_hand.overlap(node.parent, rows)
        np.testing.assert_array_equal(part.rows, known)
        by_hand.nodes[node.name].excess = 0.0
        noise = noises[node.name] - first[node.process]
        left = by_hand.unexplained(node.name, [rows[i] for i in known], noise)
        assert float(part.excess) == pytest.approx(left, abs=1e-12)
        assert (left > 0) == (case == TOTALS)


def test_a_value_beyond_a_source_does_not_train_its_map():
    part = built(TASKS).start.parts["expert[pm10, value]"]
    assert list(np.asarray(part.rows)) == [0, 1, 2, 3, 4]


@pytest.mark.thorough
def test_the_expected_log_likelihood_of_a_layer_equals_monte_carlo():
    made, draws = built(CHAIN), 3000
    expected = float(expected_log_likelihood(made.objective, 2000))
    by_hand = loops(made.start, made.data, made.weights)
    base, layer = by_hand.nodes["base[cells]"], by_hand.nodes["expert[clouds]"]
    noise = made.start.parts["expert[clouds]"].gp.observation_noise(("clouds", "value"))
    rng, logs, without = np.random.default_rng(3), np.zeros(draws), 0.0
    clouds = made.data["clouds"]
    for (x, w), y in zip(functionals(clouds.support), clouds.y, strict=True):
        for j, h in enumerate(rng.multivariate_normal(*base.at(x), size=draws)):
            mean, cov = layer.at(h[:, None])
            f = mean + np.linalg.cholesky(cov + 1e-12 * np.eye(2)) @ rng.standard_normal(2)
            logs[j] += log_density(y, w @ f, noise)
        without += log_density(y, w @ layer.at(base.at(x)[0][:, None])[0], noise)
    error = made.weights["clouds"] * logs.std() / np.sqrt(draws)
    assert abs(made.weights["clouds"] * logs.mean() - expected) < 4 * error
    assert made.weights["clouds"] * without > expected + 20 * error


def log_density(y, mean, variance):
    return -0.5 * np.log(2 * np.pi * variance) - 0.5 * (y - mean) ** 2 / variance


@eqx.filter_jit
def expected_log_likelihood(objective, paths):
    """Return that of the first layer of a chain, with its posterior of few paths, over many."""
    tree, (of_base, of_layer, _) = objective.model(objective.start), objective.records
    base, node, _ = tree.branches
    states = {base.name: tree.parts[base.name].gp.condition((tree.record_of({}, base, of_base),))}
    gp = tree.parts[node.name].gp
    q, _ = gp.optimal_q((tree.record_of(states, node, of_layer),)).moments()
    many = dataclasses.replace(tree, samples=paths)
    return gp.expected_log_likelihood(q, (many.record_of(states, node, of_layer),))


@pytest.mark.thorough
def test_gradients_equal_finite_differences():
    made, step = built(CHAIN), 1e-5
    leaves, structure = jax.tree.flatten(made.trained)
    slope = jax.tree.leaves(bound_and_slope(made.objective, made.trained)[1])
    assert len(leaves) == 12
    for i, derivative in enumerate(slope):
        ends = []
        for sign in (1, -1):
            there = [leaf + sign * step * (k == i) for k, leaf in enumerate(leaves)]
            ends.append(bound_and_slope(made.objective, jax.tree.unflatten(structure, there))[0])
        central = float(ends[0] - ends[1]) / (2 * step)
        assert float(np.sum(derivative)) == pytest.approx(central, rel=1e-5, abs=1e-6)
