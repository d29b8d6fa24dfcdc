"""Links: what regions see of g(f), against draws, and the scales on which likelihoods see it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from mrgp.distributions import probit_moments
from mrgp.links import (
    bivariate_excess,
    inverse,
    jensen_on_log,
    node_moments,
    on_scale,
    region_moments,
    slope,
)

DRAWS = 400_000
FIELDS = {"identity": lambda f: f, "log": np.exp, "square": np.square, "probit": ndtr}
MEAN = np.array([0.2, -0.4, 0.7])
ROOT = np.array([[0.5, 0.0, 0.0], [0.3, 0.4, 0.0], [-0.2, 0.1, 0.3]])
WEIGHTS = np.array([0.2, 0.5, 0.3])


@pytest.fixture(scope="module")
def draws():
    return MEAN + np.random.default_rng(0).standard_normal((DRAWS, 3)) @ ROOT.T


@pytest.mark.parametrize("link", list(FIELDS))
def test_moments_of_regions_equal_those_of_draws(link, draws):
    with jax.enable_x64(True):
        given = jnp.asarray(MEAN)[None], jnp.asarray(ROOT @ ROOT.T)[None]
        mean, covariance = (np.asarray(part[0]) for part in node_moments(link, *given))
        whole = region_moments(link, jnp.asarray(WEIGHTS)[None], *given)
    field = FIELDS[link](draws)
    np.testing.assert_allclose(mean, field.mean(0), atol=4 * field.std(0).max() / DRAWS**0.5)
    np.testing.assert_allclose(covariance, np.cov(field.T), rtol=0.03, atol=3e-3)
    seen = field @ WEIGHTS
    assert float(whole[0][0]) == pytest.approx(seen.mean(), abs=4 * seen.std() / DRAWS**0.5)
    assert float(whole[1][0]) == pytest.approx(seen.var(), rel=0.02)


@pytest.mark.parametrize(("h", "k", "rho"), [(0.3, -1.2, 0.8), (2.5, 2.4, 0.99), (0.0, 0.5, -0.6)])
def test_probabilities_of_two_gaussians(h, k, rho):
    both = multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf([h, k])
    found = bivariate_excess(*map(np.asarray, (h, k, np.arcsin(rho))))
    assert float(found) == pytest.approx(both - ndtr(h) * ndtr(k), abs=2e-5)


def test_a_field_at_a_point_is_matched_exactly():
    f, spread = np.array([-1.3, 0.4]), np.array([0.2, 1.7])
    with jax.enable_x64(True):
        for link, scale in (("log", "log"), ("probit", "probit")):
            moments = region_moments(
                link, jnp.ones((2, 1)), jnp.asarray(f)[:, None], jnp.asarray(spread)[:, None, None]
            )
            location, variance = on_scale(scale, *moments)
            np.testing.assert_allclose(location, f, rtol=1e-6)
            np.testing.assert_allclose(variance, spread, rtol=1e-6)
    on_host = probit_moments(*(np.asarray(part) for part in moments))
    np.testing.assert_allclose(on_host, (f, spread), rtol=1e-6)


@pytest.mark.parametrize("scale", ["log", "probit"])
def test_slopes_of_the_matching_equal_finite_differences(scale):
    with jax.enable_x64(True):
        at = jnp.array([0.3]), jnp.array([0.02])
        for out in (0, 1):
            for by in (0, 1):

                def one(x, out=out, by=by):
                    given = [at[0], at[1]]
                    given[by] = x
                    return on_scale(scale, *given)[out][0]

                found = float(jax.grad(one)(at[by])[0])
                h = 1e-5 * float(at[by][0])
                ahead, behind = one(at[by] + h), one(at[by] - h)
                assert found == pytest.approx(float(ahead - behind) / (2 * h), rel=1e-4)


def test_jensen_is_below_the_expectation_and_keeps_the_mean(draws):
    with jax.enable_x64(True):
        given = jnp.asarray(MEAN)[None], jnp.asarray(ROOT @ ROOT.T)[None]
        weights = jnp.asarray(WEIGHTS)[None]
        mean, variance = region_moments("log", weights, *given)
        location, spread = jensen_on_log(weights, given[0], mean)
        matched, _ = on_scale("log", mean, variance)
        kept = float(jnp.exp(location + 0.5 * spread)[0])
    slow = np.log(np.exp(draws) @ WEIGHTS).mean()
    assert float(location[0]) < slow
    assert abs(float(matched[0]) - slow) < abs(float(location[0]) - slow)
    assert kept == pytest.approx(float(mean[0]))


@pytest.mark.parametrize("link", list(FIELDS))
def test_inverses_and_slopes(link):
    f = inverse(link, 0.3)
    assert FIELDS[link](f) == pytest.approx(0.3)
    h = 1e-6
    numeric = (FIELDS[link](f + h) - FIELDS[link](f - h)) / (2 * h)
    assert slope(link, 0.3) == pytest.approx(numeric, rel=1e-5)
