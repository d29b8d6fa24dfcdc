"""Factors, their derivatives, and Gaussian maps against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mrgp._linalg import cholesky, gaussian_kl, moments_from_natural, whitener


def covariance(size=6, seed=0):
    root = np.random.default_rng(seed).standard_normal((size, size + 2))
    return root @ root.T


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def test_the_whitener_makes_white():
    matrix = covariance()
    whiten = np.asarray(whitener(jnp.asarray(matrix)))
    np.testing.assert_allclose(whiten @ matrix @ whiten.T, np.eye(6), atol=1e-8)
    np.testing.assert_allclose(np.triu(whiten, 1), 0.0)


@pytest.mark.parametrize("factor", [cholesky, whitener])
def test_slopes_match_differences(factor):
    matrix, direction = covariance(), covariance(seed=1)
    weights = np.random.default_rng(2).standard_normal((6, 6))

    def value(t):
        t = jnp.asarray(t)
        return jnp.sum(weights * factor(jnp.asarray(matrix) + t * direction))

    step = 1e-6
    difference = (value(step) - value(-step)) / (2 * step)
    np.testing.assert_allclose(jax.grad(value)(jnp.zeros(())), difference, rtol=1e-7)
    np.testing.assert_allclose(
        jax.jvp(value, (jnp.zeros(()),), (jnp.ones(()),))[1], difference, rtol=1e-7
    )


def test_a_singular_covariance_gets_more_jitter_and_a_wrong_one_is_nan():
    ones = jnp.ones((5, 5))
    assert np.isfinite(np.asarray(whitener(ones.astype(float)))).all()
    assert np.isnan(np.asarray(whitener(-jnp.eye(3)))).any()


def test_natural_parameters_and_divergence():
    cov, mean = covariance(), np.arange(6.0)
    found = moments_from_natural(np.linalg.solve(cov, mean), np.linalg.inv(cov))
    np.testing.assert_allclose(found[0], mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found[1], cov, rtol=1e-8, atol=1e-8)
    log_det = np.linalg.slogdet(cov)[1]
    np.testing.assert_allclose(found[2], log_det, rtol=1e-10)
    divergence = gaussian_kl(jnp.asarray(mean), jnp.trace(jnp.asarray(cov)), jnp.asarray(log_det))
    expected = 0.5 * (np.trace(cov) + mean @ mean - 6 - log_det)
    np.testing.assert_allclose(float(divergence), expected)
