"""A likelihood is a value: it goes with the data into the bound, the refusal and the prediction."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import mrgp
from mrgp.data import Scaling
from mrgp.gp import Collapsed, Reading, Readings, Whitened
from mrgp.likelihoods import GAUSSIANS, Gaussian, Gaussians, Likelihood
from mrgp.models import Components

X = mrgp.points(np.linspace(0.0, 3.0, 5)[:, None])
Y = np.array([0.3, 1.0, 0.2, -0.4, 0.1])


@dataclasses.dataclass(frozen=True)
class Laplace:
    """Absolute errors of mean `scale`: not conjugate, with an expectation by quadrature."""

    scale: float = 0.5
    name = "laplace"
    conjugate = False
    distribution = GAUSSIANS

    def log_prob(self, y, mu, noise):
        return -jnp.abs(jnp.asarray(y) - mu) / self.scale - jnp.log(2 * self.scale)

    def expected_log_prob(self, y, mean, variance, noise):
        nodes, weights = np.polynomial.hermite_e.hermegauss(40)
        at = mean[:, None] + jnp.sqrt(variance)[:, None] * nodes[None, :]
        values = self.log_prob(jnp.asarray(y)[:, None], at, noise)
        return values @ (weights / weights.sum())

    def observe(self, means, variances, noise):
        return means, variances + 2 * self.scale**2


def test_expectations_of_the_gaussian_equal_quadrature():
    y, mean, variance, noise = 0.7, 0.2, 0.6, 0.3

    def integrand(mu):
        return norm.logpdf(y, mu, np.sqrt(noise)) * norm.pdf(mu, mean, np.sqrt(variance))

    one = np.ones(1)
    with jax.enable_x64(True):
        found = Gaussian().expected_log_prob(y * one, mean * one, variance * one, noise * one)
        sure = Gaussian().log_prob(y * one, mean * one, noise * one)
    assert float(found[0]) == pytest.approx(quad(integrand, -8, 8)[0], rel=1e-9)
    assert float(sure[0]) == pytest.approx(norm.logpdf(y, mean, np.sqrt(noise)), rel=1e-9)


def test_scores_of_mixtures_equal_draws():
    rng = np.random.default_rng(0)
    parts = (np.array([[0.3], [0.7]]), np.array([[-1.0], [2.0]]), np.array([[0.5], [1.5]]))
    draws = Gaussians().sample(parts, rng, 200_000)[:, 0]
    mean, variance = Gaussians().moments(parts)
    assert draws.mean() == pytest.approx(mean[0], abs=0.02)
    assert draws.var() == pytest.approx(variance[0], rel=0.02)
    assert np.mean(draws <= 0.4) == pytest.approx(Gaussians().cdf(parts, 0.4)[0], abs=0.005)
    assert Gaussians().exceedance(parts, 0.4)[0] == pytest.approx(
        1 - Gaussians().cdf(parts, 0.4)[0]
    )
    assert np.quantile(draws, 0.8) == pytest.approx(Gaussians().quantile(parts, 0.8)[0], abs=0.02)
    apart = 0.5 * np.mean(np.abs(draws - rng.permutation(draws)))
    by_draws = np.mean(np.abs(draws - 0.4)) - apart
    assert Gaussians().crps(parts, [0.4])[0] == pytest.approx(by_draws, abs=0.01)


def test_a_likelihood_of_ones_own_goes_into_the_bound():
    assert isinstance(Laplace(), Likelihood)
    seen = mrgp.Observations(X, Y, likelihood=Laplace(0.3))
    record = Scaling.of(mrgp.Dataset([seen])).record(seen)
    assert record.likelihood == Laplace(0.3)
    with jax.enable_x64(True):
        kernel = mrgp.RBF(1.0, variance=2.0, dims=0)
        z = jnp.linspace(0.0, 3.0, 4)[:, None]
        q = Whitened(0.3 * jnp.ones(4), 0.5 * jnp.eye(4))
        source = Reading(
            record.support,
            jnp.ones(1),
            record.y,
            jnp.zeros(5),
            jnp.ones(5),
            likelihood=record.likelihood,
        )
        solver = Collapsed((kernel,), z)
        found = float(solver.expected_log_likelihood(q, Readings((source,))))
        alpha, own = solver.features(source, solver.whiteners)
        mean = np.asarray(alpha.T @ q.mean)
        sd = np.sqrt(np.asarray(own - jnp.sum(alpha**2, 0) + q.quadratic(alpha)))
    draws = mean + sd * np.random.default_rng(1).standard_normal((400_000, 5))
    slow = np.mean(-np.abs(record.y - draws) / 0.3 - np.log(0.6), 0).sum()
    assert found == pytest.approx(slow, abs=0.1)


def test_a_likelihood_that_a_solver_cannot_serve_is_refused():
    data = mrgp.Dataset([mrgp.Observations(X, Y, name="sites", likelihood=Laplace())])
    for recipe in (mrgp.MRGP(), mrgp.MRGP(method="svgp"), mrgp.MRGPRN(), mrgp.MRDGP()):
        with pytest.raises(ValueError, match=r"'sites'.*the likelihood 'laplace' has no Gaussian"):
            mrgp.fit(recipe, data)


def test_new_values_are_what_the_likelihood_says():
    sure = Components.gaussian(np.array([1.0, 2.0]), np.array([0.1, 0.2]))
    seen = sure.observed(Laplace(0.5), noise=7.0)
    np.testing.assert_allclose(seen.variances[:, 0], [0.6, 0.7])


def test_words_that_are_no_likelihood_are_refused():
    for given in ("poisson", Gaussian, 3):
        with pytest.raises(ValueError, match=r"likelihood= is one of \('gaussian',\); got"):
            mrgp.Observations(X, Y, likelihood=given)


def test_likelihoods_reach_the_fit_and_its_file(tmp_path):
    data = mrgp.Dataset([mrgp.Observations(X, Y, name="sites")])
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=mrgp.LBFGS(max_steps=3))
    mrgp.save(fit, tmp_path / "fit")
    assert mrgp.load(tmp_path / "fit").likelihoods == {("sites", "value"): Gaussian()}
