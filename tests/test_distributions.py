"""Distributions of predictions: scores, quantiles and draws of every family agree."""

import numpy as np
import pytest

from mrgp.distributions import COUNTS, GAMMAS, GAUSSIANS, LOG_NORMALS, PROBIT_NORMALS

DRAWS = 200_000
TWO = np.array([[0.3], [0.7]])
FAMILIES = {
    "gaussian": (GAUSSIANS, [[-1.0], [2.0]], [[0.5], [1.5]], 0.4),
    "log-normal": (LOG_NORMALS, [[1.0], [3.0]], [[0.5], [2.5]], 1.7),
    "gamma": (GAMMAS, [[1.0], [3.0]], [[0.5], [2.5]], 1.7),
    "share": (PROBIT_NORMALS, [[0.2], [0.7]], [[0.01], [0.05]], 0.4),
    "poisson": (COUNTS, [[2.0], [7.0]], [[2.0], [7.0]], 4.0),
    "negative binomial": (COUNTS, [[2.0], [7.0]], [[4.0], [21.0]], 4.0),
    "binomial": (COUNTS, [[2.0], [5.0]], [[1.6], [2.5]], 3.0),
}


@pytest.mark.parametrize("family", list(FAMILIES))
def test_scores_equal_those_of_draws(family):
    kind, means, variances, value = FAMILIES[family]
    parts = TWO, np.array(means), np.array(variances)
    rng = np.random.default_rng(0)
    draws = kind.sample(parts, rng, DRAWS)[:, 0]
    mean, variance = kind.moments(parts)
    error = 4 * draws.std() / DRAWS**0.5
    assert draws.mean() == pytest.approx(mean[0], abs=error)
    assert draws.var() == pytest.approx(variance[0], rel=0.02)
    assert np.mean(draws <= value) == pytest.approx(kind.cdf(parts, value)[0], abs=0.005)
    above = kind.exceedance(parts, value)[0]
    assert above == pytest.approx(1 - kind.cdf(parts, value)[0])
    found = kind.quantile(parts, 0.8)[0]
    assert kind.cdf(parts, found)[0] >= 0.8 - 1e-9
    assert np.quantile(draws, 0.8) == pytest.approx(found, abs=1.0 if kind.discrete else 0.02)
    by_draws = np.mean(np.abs(draws - value))
    by_draws -= 0.5 * np.mean(np.abs(draws - rng.permutation(draws)))
    assert kind.crps(parts, [value])[0] == pytest.approx(by_draws, abs=3 * error)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_probabilities_add_up_to_the_distribution(family):
    kind, means, variances, value = FAMILIES[family]
    parts = TWO, np.array(means), np.array(variances)
    if kind.discrete:
        total = sum(np.exp(kind.log_density(parts, k)[0]) for k in range(int(value) + 1))
        assert kind.log_density(parts, value + 0.5)[0] == -np.inf
        assert kind.log_density(parts, -1.0)[0] == -np.inf
    else:
        low = -20.0 if family == "gaussian" else 0.0
        nodes, share = np.polynomial.legendre.leggauss(400)
        wide = tuple(np.repeat(part, 400, 1) for part in parts)
        at = low + (value - low) * 0.5 * (1 + nodes)
        total = 0.5 * (value - low) * share @ np.exp(kind.log_density(wide, at))
    assert total == pytest.approx(kind.cdf(parts, value)[0], rel=1e-5)


@pytest.mark.parametrize("kind", [LOG_NORMALS, PROBIT_NORMALS])
def test_pieces_are_the_same_mixture(kind):
    parts = np.ones((1, 2)), np.array([[0.4, 0.6]]), np.array([[0.03, 0.01]])
    cut = kind.pieces(parts)
    np.testing.assert_allclose(kind.moments(cut), kind.moments(parts), rtol=1e-3)
    if kind is LOG_NORMALS:
        for q in (0.01, 0.3, 0.99):
            np.testing.assert_allclose(kind.quantile(cut, q), kind.quantile(parts, q), rtol=1e-3)


def test_large_counts_are_smooth_and_scored_as_continuous():
    one = np.ones((1, 1))
    parts = one, 3e5 * one, 9e8 * one
    near = GAUSSIANS.crps(parts, [2.9e5])
    np.testing.assert_allclose(COUNTS.crps(parts, [2.9e5]), near)
    rate = LOG_NORMALS.pieces((one, 1000 * one, 62500 * one))
    weights, means, variances = rate
    counts = weights, means, means + variances
    k = np.arange(300, 3000, 7)
    density = np.array([COUNTS.log_density(counts, float(n))[0] for n in k])
    # One mode: no trace of the nodes.
    assert np.sum(np.diff(np.sign(np.diff(density))) != 0) == 1


def test_log_normal_fields_are_drawn_jointly():
    mean, covariance = np.array([1.0, 2.0]), np.array([[0.2, 0.3], [0.3, 1.0]])
    draws = LOG_NORMALS.sample_jointly(mean, covariance, np.random.default_rng(0), DRAWS)
    assert draws.min() > 0
    np.testing.assert_allclose(draws.mean(0), mean, rtol=0.01)
    np.testing.assert_allclose(np.cov(draws.T), covariance, rtol=0.05)
    with pytest.raises(ValueError, match="drawn region by region"):
        COUNTS.sample_jointly(mean, covariance, np.random.default_rng(0), 3)
