"""Kernels of time as state spaces, against their formulas and quadrature."""

import jax
import numpy as np
import pytest

import mrgp
from mrgp.gp.statespace import HARMONICS, harmonic_weights, refused_in_time, state_space
from reference import statespaces as reference


def of(kernel, lengthscale=1.3, variance=2.0):
    return kernel(lengthscale, variance=variance, dims=0)


def daily(lengthscale=1.0):
    return mrgp.Periodic(4.0, lengthscale=lengthscale, variance=1.5, dims=0)


KERNELS = {
    "Matern12": (of(mrgp.Matern12), lambda r: reference.matern(1, 1.3, 2.0, r)),
    "Matern32": (of(mrgp.Matern32), lambda r: reference.matern(3, 1.3, 2.0, r)),
    "Matern52": (of(mrgp.Matern52), lambda r: reference.matern(5, 1.3, 2.0, r)),
    "Constant": (mrgp.Constant(0.7), lambda r: 0.7 + 0 * r),
    "Periodic": (daily(), lambda r: reference.periodic(4.0, 1.0, 1.5, r)),
    "scaled": (3.0 * of(mrgp.Matern32), lambda r: 3.0 * reference.matern(3, 1.3, 2.0, r)),
    "sum": (
        of(mrgp.Matern12) + of(mrgp.Matern52, 0.4),
        lambda r: reference.matern(1, 1.3, 2.0, r) + reference.matern(5, 0.4, 2.0, r),
    ),
    "product": (
        of(mrgp.Matern32) * daily(),
        lambda r: reference.matern(3, 1.3, 2.0, r) * reference.periodic(4.0, 1.0, 1.5, r),
    ),
}


@pytest.fixture(autouse=True)
def _in_float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", KERNELS)
def test_a_state_space_has_the_covariance_of_its_kernel(name):
    kernel, expected = KERNELS[name]
    space = state_space(kernel)
    for r in (0.0, 0.3, 1.7, 9.0):
        found = space.reads @ np.asarray(space.transition(r)) @ space.stationary @ space.reads
        assert found == pytest.approx(expected(r), abs=1e-8)
    assert float(space.variance) == pytest.approx(expected(0.0))
    assert space.size == len(space.stationary)


@pytest.mark.parametrize("name", KERNELS)
def test_a_transition_is_the_exponential_of_the_drift_and_keeps_the_stationary_covariance(name):
    space = state_space(KERNELS[name][0])
    moved = np.asarray(space.transition(0.8))
    np.testing.assert_allclose(moved, jax.scipy.linalg.expm(0.8 * space.drift), atol=1e-10)
    np.testing.assert_allclose(
        space.transition(0.3) @ space.transition(0.5), moved, atol=1e-12, rtol=1e-10
    )
    noise = space.stationary - moved @ space.stationary @ moved.T
    assert np.linalg.eigvalsh(noise).min() > -1e-12


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dt", [1e-4, 0.9])
def test_both_integrals_are_those_of_the_transition(name, dt):
    space = state_space(KERNELS[name][0])
    one, two = (np.asarray(x) for x in space.integrals(dt))
    at = jax.jit(space.transition)

    def transition(t):
        return np.asarray(at(t))

    np.testing.assert_allclose(one, reference.once(transition, dt), rtol=1e-8, atol=1e-10 * dt)
    np.testing.assert_allclose(two, reference.twice(transition, dt), rtol=1e-8, atol=1e-10 * dt**2)


@pytest.mark.parametrize(("lengthscale", "error"), [(2.0, 1e-13), (1.0, 1e-11), (0.56, 1e-8)])
def test_the_series_of_a_periodic_kernel_leaves_little(lengthscale, error):
    weights = np.asarray(harmonic_weights(daily(lengthscale)))
    assert len(weights) == HARMONICS + 1
    r = np.linspace(0.0, 4.0, 50)
    waves = np.cos(2 * np.pi * np.arange(HARMONICS + 1) * r[:, None] / 4.0)
    exact = reference.periodic(4.0, lengthscale, 1.5, r)
    assert np.abs(waves @ weights - exact).max() < 1.5 * error


def test_a_series_too_short_for_its_kernel_is_seen_in_the_variance():
    assert 1.5 - float(state_space(daily(0.2)).variance) > 1e-3


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        (of(mrgp.RBF), "RBF"),
        (of(mrgp.Matern12) * of(mrgp.RBF), "RBF"),
        (of(mrgp.Matern12) + 2.0 * mrgp.White(1.0, dims=0), "White"),
        (of(mrgp.Matern12) + mrgp.Linear(1.0, dims=0), "Linear"),
        (of(mrgp.Matern12) * daily() + 2.0, None),
    ],
)
def test_kernels_without_states_are_named(kernel, named):
    assert refused_in_time(kernel) == named
