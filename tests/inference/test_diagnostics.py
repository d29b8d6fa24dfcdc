"""R-hat and effective sample size against slow loops and cases worked out by hand."""

import numpy as np
import pytest

from mrgp.inference.mcmc import effective_sample_size, r_hat
from reference import mcmc


def autoregressive(rho, chains, n, seed=0):
    rng = np.random.default_rng(seed)
    out = rng.standard_normal((chains, n))
    for t in range(1, n):
        out[:, t] = rho * out[:, t - 1] + np.sqrt(1 - rho**2) * out[:, t]
    return out


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.8])
@pytest.mark.parametrize("shape", [(1, 41), (4, 60)])
def test_both_match_the_slow_reference(rho, shape):
    draws = autoregressive(rho, *shape)
    assert np.isclose(r_hat(draws), mcmc.r_hat(draws))
    assert np.isclose(effective_sample_size(draws), mcmc.effective_sample_size(draws))


def test_ties_share_a_rank():
    draws = np.round(autoregressive(0.3, 3, 40), 0)
    assert np.isclose(r_hat(draws), mcmc.r_hat(draws))


def test_autocorrelated_draws_are_worth_what_theory_says():
    draws = autoregressive(0.6, 8, 4000)
    assert np.isclose(effective_sample_size(draws), draws.size * (1 - 0.6) / (1 + 0.6), rtol=0.1)
    assert r_hat(draws) < 1.01


def test_four_draws_by_hand():
    """Two halves of two: ranks 1, 2, 3, 4; scores -a, -b, b, a with known quantiles."""
    a, b = 1.0491314, 0.2993069
    within, between = (a - b) ** 2 / 2, (a + b) ** 2 / 2
    assert np.isclose(r_hat(np.array([[1.0, 2.0, 3.0, 4.0]])), np.sqrt(0.5 + between / within))


def test_chains_that_differ_in_place_or_in_spread_are_told_apart():
    draws = autoregressive(0.0, 4, 500)
    assert r_hat(draws + np.array([[0.0], [0.0], [0.0], [2.0]])) > 1.2
    assert r_hat(draws * np.array([[1.0], [1.0], [1.0], [5.0]])) > 1.1
    assert r_hat(np.exp(3 * draws)) < 1.01


def test_draws_that_do_not_vary_have_neither():
    for draws in (np.ones((2, 10)), np.ones((2, 3)), np.full((2, 10), np.nan)):
        assert np.isnan(r_hat(draws))
        assert np.isnan(effective_sample_size(draws))
