"""A periodic kernel along time is its series: exact for that, and off by what is said."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ive

import mrgp
from mrgp._compiled import Compiled
from mrgp._types import to_numpy
from mrgp.gp import Exact, Markov, Reading, Readings
from mrgp.gp.statespace import HARMONICS, series_error
from mrgp.models import as_arrays
from reference import statespaces as reference

LENGTHSCALE, VARIANCE, PERIOD, NOISE = 0.3, 1.5, 4.0, 0.2
WHERE, WHEN = np.array([0.0, 0.7, 2.0]), np.array([0.0, 0.4, 1.1, 1.9, 2.05, 3.3, 4.6])
ASKED = np.array([[0.3, 0.2], [0.7, 1.9], [2.0, 3.0], [1.2, 4.1]])


@pytest.fixture(autouse=True)
def _in_float64():
    with jax.enable_x64(True):
        yield


def weights_of(lengthscale):
    """Return the share of variance of the level and of the harmonics that have states."""
    k = 1.0 / lengthscale**2
    return np.append(ive(0, k), 2.0 * ive(np.arange(1, HARMONICS + 1), k))


def covariance(a, b, series):
    """Return the covariance of rows (place, time), by the kernel of time or by its series."""
    r = a[:, None, 1] - b[None, :, 1]
    if series:
        waves = np.cos(2.0 * np.pi * np.arange(HARMONICS + 1) * r[..., None] / PERIOD)
        along = VARIANCE * waves @ weights_of(LENGTHSCALE)
    else:
        along = reference.periodic(PERIOD, LENGTHSCALE, VARIANCE, r)
    return np.exp(-np.abs(a[:, None, 0] - b[None, :, 0]) / 2.0) * along


def periodic(lengthscale):
    return mrgp.Periodic(PERIOD, lengthscale=lengthscale, variance=2.0, dims=0)


def test_what_products_and_sums_leave_out_is_that_of_the_true_series():
    kept = {length: weights_of(length).sum() for length in (0.2, 0.3)}
    assert 1.0 - kept[0.2] > 0.01
    wide = mrgp.Matern12(1.0, variance=3.0, dims=0)
    cases = {
        1.0 - kept[0.2]: periodic(0.2),
        1.0 - kept[0.2] ** 2: periodic(0.2) * periodic(0.2),
        1.0 - kept[0.2] * kept[0.3]: periodic(0.2) * wide * (2.0 * periodic(0.3)),
        1.0 - min(kept.values()): periodic(0.2) + periodic(0.3),
    }
    for left_out, kernel in cases.items():
        assert series_error(kernel) == pytest.approx(left_out, abs=1e-10)


def dense(series):
    """Return values' log evidence, weights of the values, and posterior moments, in NumPy."""
    x = np.array([[p, t] for t in WHEN for p in WHERE])
    total = covariance(x, x, series) + NOISE * np.eye(len(x))
    alpha, cross = np.linalg.solve(total, VALUES), covariance(x, ASKED, series)
    by = np.linalg.solve(total, cross)
    own = np.diag(covariance(ASKED, ASKED, series))
    size = np.linalg.slogdet(2.0 * np.pi * total)[1]
    evidence = -0.5 * (VALUES @ alpha + size)
    return evidence, alpha, by, by.T @ VALUES, own - np.sum(cross * by, 0)


VALUES = np.random.default_rng(4).standard_normal(len(WHERE) * len(WHEN))


@Compiled
def solved(solver, readings):
    return solver.log_evidence(readings), solver.condition(readings)


def test_a_sharp_periodic_kernel_differs_from_the_exact_one_by_what_is_said():
    kernel = mrgp.Matern12(2.0, variance=1.0, dims=0) * mrgp.Periodic(
        PERIOD, lengthscale=LENGTHSCALE, variance=VARIANCE, dims=1
    )
    support = mrgp.points([[p, t] for t in WHEN for p in WHERE])
    ones = jnp.ones(len(VALUES))
    reading = Reading(support, jnp.ones(1), jnp.asarray(VALUES), 0.0 * ones, NOISE * ones)
    readings = as_arrays(Readings((reading,)))
    markov = Markov((kernel,), time=1)
    said = markov.series_error()
    markov = as_arrays(markov.with_plan(markov.plan_of([support])))
    evidence, state = solved(markov, readings, effort="least")
    mean, variance = to_numpy(state).sweep(to_numpy(markov.kernels), np.ones(1), mrgp.points(ASKED))

    # Along time the series is solved exactly.
    told, other, by, told_mean, told_variance = dense(series=True)
    np.testing.assert_allclose(evidence, told, atol=1e-8)
    np.testing.assert_allclose(mean, told_mean, atol=1e-8)
    np.testing.assert_allclose(variance, told_variance, atol=1e-8)

    # No covariance differs by more than what is left out: so far can results be from the exact.
    exact = solved(as_arrays(Exact((kernel,))), readings, effort="least")[0]
    true, alpha, _, true_mean, true_variance = dense(series=False)
    np.testing.assert_allclose(exact, true, atol=1e-8)
    off, reach = said * VARIANCE, 1.0 + np.abs(by).sum(0)
    most = max(1.0 / NOISE, np.linalg.norm(alpha) * np.linalg.norm(other))
    assert 1e-6 < abs(evidence - true) < 0.5 * len(VALUES) * off * most
    assert np.abs(mean - true_mean).max() > 1e-6
    assert np.all(np.abs(mean - true_mean) < off * np.abs(alpha).sum() * reach)
    assert np.all((true_variance - variance >= -1e-9) & (true_variance - variance < off * reach**2))
