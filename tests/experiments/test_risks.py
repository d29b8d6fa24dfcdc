"""Rivals of models of counts: what each takes the rate to be, and the counts about it."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import gamma, nbinom

import mrgp
from mrgp.distributions import GAUSSIANS
from mrgp.experiments import ModelSpec
from mrgp.experiments.risks import RISKS, as_rates, counts_about

CELLS = mrgp.intervals(np.arange(6.0), np.arange(6.0) + 1)
Y, E = np.array([0, 2, 1, 5, 3, 8]), np.array([1.0, 3.0, 1.0, 2.0, 1.0, 2.0])


def seen(**covariates):
    z = {"z": np.linspace(-1.0, 1.0, 6)} | covariates
    support = mrgp.supports.with_rows(CELLS, z)
    return mrgp.Observations(support, Y, likelihood="poisson", exposure=E)


def test_a_painted_rate_is_gamma_and_its_counts_are_negative_binomial():
    rate = RISKS["painted"](seen()).rate(seen().support[[3, 5]])
    for level in (0.025, 0.5, 0.9):
        by_hand = gamma.ppf(level, Y[[3, 5]] + 0.5, scale=1 / E[[3, 5]])
        np.testing.assert_allclose(rate.quantile(level), by_hand)
    new = counts_about(rate, np.array([4.0, 1.0]))
    size = Y[[3, 5]] + 0.5
    exact = nbinom.logpmf([7, 2], size, E[[3, 5]] / (E[[3, 5]] + [4.0, 1.0]))
    # Rates are matched by log-normals for that.
    np.testing.assert_allclose(new.log_density(np.array([7.0, 2.0])), exact, atol=0.1)


def test_what_was_never_seen_is_painted_with_the_rate_of_all():
    part = seen()[:5]
    rate = RISKS["painted"](part).rate(seen().support[[5]])
    assert rate.mean[0] == pytest.approx((Y[:5].sum() + 0.5) / E[:5].sum())


def test_a_poisson_regression_is_at_the_best_likelihood():
    found = RISKS["poisson-regression"](seen())
    z = np.linspace(-1.0, 1.0, 6)

    def loss(b):
        mean = E * np.exp(b[0] + b[1] * z)
        return np.sum(mean - Y * np.log(mean))

    best = minimize(loss, np.zeros(2), tol=1e-12)
    np.testing.assert_allclose(found.coefficients, best.x, atol=1e-5)
    h = 1e-4 * np.eye(2)
    curvature = [
        [
            (loss(best.x + a + b) - loss(best.x + a) - loss(best.x + b) + loss(best.x)) * 1e8
            for b in h
        ]
        for a in h
    ]
    np.testing.assert_allclose(found.covariance, np.linalg.inv(curvature), rtol=0.01)
    rate = found.rate(seen().support)
    np.testing.assert_allclose(rate.quantile(0.5), np.exp(best.x[0] + best.x[1] * z), rtol=1e-4)


def test_counts_as_gaussian_rates():
    data = mrgp.Dataset([seen()])
    np.testing.assert_allclose(as_rates(data, "plain")["source"].y, Y / E)
    log = as_rates(data, "log")["source"]
    np.testing.assert_allclose(log.y, np.log((Y + 0.5) / E))
    assert (log.likelihood.name, log.exposure) == ("gaussian", None)
    one = np.ones((1, 2))
    rate = mrgp.Prediction(CELLS[:2], "y", None, None, one, one * [2.0, -1.0], 0.1 * one)
    assert rate.distribution is GAUSSIANS
    new = counts_about(rate, np.array([3.0, 3.0]))
    assert new.mean == pytest.approx([6.0, 0.0], abs=1e-6)
    assert new.sample(0, 9).min() >= 0


def test_specs_of_risks():
    assert ModelSpec(recipe="MRGP", rates="log").says_risk
    assert not ModelSpec(recipe="MRGP", likelihood="negative_binomial").says_risk
    view = ModelSpec(recipe="MRGP", likelihood="negative_binomial").view(mrgp.Dataset([seen()]))
    assert view["source"].likelihood == mrgp.NegativeBinomial()
    with pytest.raises(ValueError, match="one of risk = painted, poisson-regression, and no other"):
        ModelSpec(recipe="rule", risk="guessed")
