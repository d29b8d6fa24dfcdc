"""Inducing places of a solver along time, beside all matrices written out."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mrgp
from mrgp._types import to_numpy
from mrgp.gp import Markov, Reading, Readings
from mrgp.models import as_arrays
from mrgp.supports import points
from reference.inducing_places import bound, predicted, through

WHERE = np.array([0.0, 0.4, 1.1, 2.0, 3.0])
INDUCING = np.array([0.2, 1.5, 2.6])
WHEN = np.array([0.0, 1.0, 1.5, 3.0])
NOISE = 0.3


@pytest.fixture(autouse=True)
def _in_float64():
    with jax.enable_x64(True):
        yield


def space(a, b):
    return 1.3 * np.exp(-abs(a - b) / 2.0)


def time(s, t):
    r = np.sqrt(3.0) * abs(s - t) / 2.5
    return (1.0 + r) * np.exp(-r)


KERNEL = mrgp.Matern12(2.0, variance=1.3, dims=0) * mrgp.Matern32(2.5, variance=1.0, dims=1)


def grid(where, when):
    return np.array([[p, t] for t in when for p in where])


@pytest.fixture(scope="module")
def solved():
    """Return a solver with inducing places, its readings, and its posterior."""
    with jax.enable_x64(True):
        x = grid(WHERE, WHEN)
        y = np.random.default_rng(0).standard_normal(len(x))
        read = Reading(points(x), jnp.ones(1), jnp.asarray(y), jnp.zeros(len(y)), NOISE + 0.0 * y)
        places = (points(np.stack([INDUCING, np.zeros(3)], 1)),)
        solver = Markov((KERNEL,), time=1, inducing=places)
        solver = as_arrays(solver.with_plan(solver.plan_of([read.support])))
        readings = as_arrays(Readings((read,)))
        state = eqx.filter_jit(solver.condition)(readings)
        return solver, readings, to_numpy(state), x, y


def test_the_evidence_is_the_bound_with_all_matrices_written_out(solved):
    solver, readings, _, x, y = solved
    q, k = through(space, time, INDUCING, *x.T)
    wanted = bound(y, q, k, np.full(len(y), NOISE))
    found = float(eqx.filter_jit(solver.log_evidence)(readings))
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    exact = bound(y, k, k, np.full(len(y), NOISE))
    assert found < exact - 0.1


@pytest.mark.parametrize("way", ["one by one", "sweep", "forecast"])
def test_predictions_are_those_with_all_matrices_written_out(solved, way):
    solver, _, state, x, y = solved
    when = [5.0, 6.5] if way == "forecast" else [-1.0, 0.5, 1.0, 4.0]
    new = grid([0.4, 0.9, 2.7], when)
    both = np.concatenate([x, new])
    q, k = through(space, time, INDUCING, *both.T)
    data, asked = np.arange(len(x)), len(x) + np.arange(len(new))
    mean, covariance = predicted(y, q, k, np.full(len(y), NOISE), data, asked)
    kernels, support = to_numpy(solver.kernels), points(new)
    if way == "sweep":
        found = state.sweep(kernels, np.ones(1), support)
    elif way == "forecast":
        found = state.forecast(kernels, np.ones(1), support)
    else:
        found = eqx.filter_jit(solver.predict)(as_arrays(state), jnp.ones(1), as_arrays(support))
    np.testing.assert_allclose(found[0], mean, atol=1e-9)
    np.testing.assert_allclose(found[1], np.diag(covariance), atol=1e-9)
