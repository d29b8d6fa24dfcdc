"""A likelihood is a value: it goes with the data into the bound, the refusal and the prediction."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

import mrgp
from groups import rest_thorough
from mrgp.data import Scaling
from mrgp.distributions import GAUSSIANS, LOG_NORMALS, PROBIT_NORMALS
from mrgp.gp import Collapsed, Reading, Readings, Whitened
from mrgp.likelihoods import Gaussian, Likelihood, expected_of_rows
from mrgp.models import Components

X = mrgp.points(np.linspace(0.0, 3.0, 5)[:, None])
Y = np.array([0.3, 1.0, 0.2, -0.4, 0.1])


@dataclasses.dataclass(frozen=True)
class Laplace:
    """Absolute errors of mean `scale`: not conjugate, with an expectation by quadrature."""

    width: float = 0.5
    name = "laplace"
    conjugate = False
    scale = "real"
    domain = "real"
    own = "noise_variance"
    distribution = GAUSSIANS

    def log_prob(self, y, mu, noise):
        return -jnp.abs(jnp.asarray(y) - mu) / self.width - jnp.log(2 * self.width)

    def expected_log_prob(self, y, mean, variance, noise):
        nodes, weights = np.polynomial.hermite_e.hermegauss(40)
        at = mean[:, None] + jnp.sqrt(variance)[:, None] * nodes[None, :]
        values = self.log_prob(jnp.asarray(y)[:, None], at, noise)
        return values @ (weights / weights.sum())

    def observe(self, parts, noise, of=GAUSSIANS):
        weights, means, variances = parts
        return weights, means, variances + 2 * self.width**2


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


ROWS = {
    "gaussian": (mrgp.likelihoods.Gaussian(), 0.7, 0.3),
    "poisson": (mrgp.Poisson(), 3.0, 1.0),
    "negative_binomial": (mrgp.NegativeBinomial(), 3.0, 2.5),
    "binomial": (mrgp.Binomial(), 3.0, 7.0),
    "gamma": (mrgp.GammaValues(), 1.4, 3.0),
    "log_normal": (mrgp.LogNormalValues(), 1.4, 0.2),
    "student_t": (mrgp.StudentT(), 0.7, 0.3),
}
CENSORED = ["gaussian", "student_t", "log_normal"]
PLACES = {"real": lambda z: z, "log": np.exp, "probit": ndtr}
MEAN, SPREAD, DRAWS = 0.4, 0.3, 400_000


def rows(*numbers):
    return tuple(np.array([float(number)]) for number in numbers)


@pytest.mark.parametrize("name", list(ROWS))
def test_densities_are_those_of_scipy(name):
    likelihood, y, own = ROWS[name]
    mu = 0.6
    known = {
        "gaussian": lambda: stats.norm.logpdf(y, mu, own**0.5),
        "poisson": lambda: stats.poisson.logpmf(y, mu),
        "negative_binomial": lambda: stats.nbinom.logpmf(y, own, own / (own + mu)),
        "binomial": lambda: stats.binom.logpmf(y, own, mu),
        "gamma": lambda: stats.gamma.logpdf(y, own, scale=mu / own),
        "log_normal": lambda: stats.lognorm.logpdf(y, own**0.5, scale=np.exp(np.log(mu) - own / 2)),
        "student_t": lambda: stats.t.logpdf(y, 4, mu, own**0.5),
    }
    with jax.enable_x64(True):
        found = float(likelihood.log_prob(*rows(y, mu, own))[0])
    assert found == pytest.approx(known[name](), rel=1e-9)


@pytest.mark.parametrize("name", list(ROWS))
def test_expectations_equal_those_of_draws(name):
    likelihood, y, own = ROWS[name]
    z = MEAN + SPREAD**0.5 * np.random.default_rng(0).standard_normal(DRAWS)
    with jax.enable_x64(True):
        each = np.asarray(
            likelihood.log_prob(np.full(DRAWS, y), PLACES[likelihood.scale](z), np.full(DRAWS, own))
        )
        found = float(likelihood.expected_log_prob(*rows(y, MEAN, SPREAD, own))[0])
    error = 4 * each.std() / DRAWS**0.5
    assert found == pytest.approx(each.mean(), abs=error)


def test_outliers_are_expected_right_where_the_field_is_much_wider_than_the_noise():
    """The sd of q is ten scales: nodes of a rule for q would step over the peak."""
    y, scale = 0.7, 0.3
    z = 10 * scale * np.random.default_rng(0).standard_normal(DRAWS)
    each = stats.t.logpdf(y, 4, z, scale)
    with jax.enable_x64(True):
        found = float(
            mrgp.StudentT().expected_log_prob(*rows(y, 0.0, (10 * scale) ** 2, scale**2))[0]
        )
    error = each.std() / DRAWS**0.5
    assert found == pytest.approx(each.mean(), abs=4 * error)
    assert error < 0.01


@pytest.mark.parametrize("name", list(ROWS))
def test_slopes_of_expectations_equal_finite_differences(name):
    likelihood, y, own = ROWS[name]
    with jax.enable_x64(True):
        at = [jnp.asarray(part) for part in rows(y, MEAN, SPREAD, own)]
        learned = (1, 2) if likelihood.own is None else (1, 2, 3)
        slopes = jax.grad(lambda *a: likelihood.expected_log_prob(*a)[0], argnums=learned)(*at)
        for argument, slope in zip(learned, slopes, strict=True):
            h = 1e-5
            ends = [[*at[:argument], at[argument] + s * h, *at[argument + 1 :]] for s in (1, -1)]
            ahead, behind = (float(likelihood.expected_log_prob(*end)[0]) for end in ends)
            assert float(slope[0]) == pytest.approx((ahead - behind) / (2 * h), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("name", CENSORED)
def test_tails_beyond_a_limit_equal_draws(name, side):
    likelihood, limit, own = ROWS[name]
    z = MEAN + SPREAD**0.5 * np.random.default_rng(0).standard_normal(DRAWS)
    mu = PLACES[likelihood.scale](z)
    below = {
        "gaussian": lambda: stats.norm.logcdf(side * (mu - limit) / own**0.5),
        "student_t": lambda: stats.t.logcdf(side * (mu - limit) / own**0.5, 4),
        "log_normal": lambda: stats.norm.logcdf(side * (z - own / 2 - np.log(limit)) / own**0.5),
    }[name]()
    with jax.enable_x64(True):
        given = rows(limit, MEAN, SPREAD, own)
        found = float(expected_of_rows(likelihood, *given, censored=np.array([side]))[0])
        plain = expected_of_rows(likelihood, *given, censored=np.zeros(1))
        same = likelihood.expected_log_prob(*given)
    error = 4 * below.std() / DRAWS**0.5
    assert found == pytest.approx(below.mean(), abs=error + 2e-3)
    assert float(plain[0]) == float(same[0])


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize(
    "name", rest_thorough(["gaussian", "student_t", "log_normal"], "student_t")
)
def test_slopes_of_tails_equal_finite_differences(name, side):
    likelihood, limit, own = ROWS[name]
    with jax.enable_x64(True):
        censored = jnp.full(1, side)

        def tail(mean, spread, own):
            return expected_of_rows(likelihood, jnp.full(1, limit), mean, spread, own, censored)[0]

        at = [jnp.asarray(part) for part in rows(MEAN, SPREAD, own)]
        slopes = jax.grad(tail, argnums=(0, 1, 2))(*at)
        for argument, slope in enumerate(slopes):
            h = 1e-5
            ends = [[*at[:argument], at[argument] + s * h, *at[argument + 1 :]] for s in (1, -1)]
            by_hand = (float(tail(*ends[0])) - float(tail(*ends[1]))) / (2 * h)
            assert float(slope[0]) == pytest.approx(by_hand, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("name", list(ROWS))
def test_new_values_have_the_moments_and_the_shape_of_draws(name):
    likelihood, _, own = ROWS[name]
    rng = np.random.default_rng(1)
    of = {"real": GAUSSIANS, "log": LOG_NORMALS, "probit": PROBIT_NORMALS}[likelihood.scale]
    one = np.ones((1, 1))
    mu = (one, 0.6 * one, 0.02 * one)
    field = of.sample(mu, rng, DRAWS)[:, 0]
    draw = {
        "gaussian": lambda: rng.normal(field, own**0.5),
        "poisson": lambda: rng.poisson(field),
        "negative_binomial": lambda: rng.poisson(rng.gamma(own, field / own)),
        "binomial": lambda: rng.binomial(int(own), field),
        "gamma": lambda: rng.gamma(own, field / own),
        "log_normal": lambda: field * np.exp(rng.normal(-own / 2, own**0.5, DRAWS)),
        "student_t": lambda: field + own**0.5 * rng.standard_t(4, DRAWS),
    }[name]()
    kind, parts = likelihood.distribution, likelihood.observe(mu, own, of)
    mean, variance = kind.moments(parts)
    assert mean[0] == pytest.approx(draw.mean(), abs=5 * draw.std() / DRAWS**0.5)
    assert variance[0] == pytest.approx(draw.var(), rel=0.05)
    for at in np.quantile(draw, [0.1, 0.5, 0.97]):
        assert kind.cdf(parts, at)[0] == pytest.approx(np.mean(draw <= at), abs=0.005)


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
    for recipe in (mrgp.MRGPRN(), mrgp.MRDGP()):
        with pytest.raises(ValueError, match=r"'sites'.*the likelihood 'laplace' has no Gaussian"):
            mrgp.fit(recipe, data)


def test_new_values_are_what_the_likelihood_says():
    sure = Components.gaussian(np.array([1.0, 2.0]), np.array([0.1, 0.2]))
    seen = sure.observed(Laplace(0.5), noise=7.0)
    np.testing.assert_allclose(seen.variances[:, 0], [0.6, 0.7])


def test_words_that_are_no_likelihood_are_refused():
    for given in ("zebra", Gaussian, 3):
        with pytest.raises(
            ValueError, match=r"likelihood= is one of \('gaussian', .*\), or .*; got"
        ):
            mrgp.Observations(X, Y, likelihood=given)


def test_likelihoods_reach_the_fit_and_its_file(tmp_path):
    data = mrgp.Dataset([mrgp.Observations(X, Y, name="sites")])
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=mrgp.LBFGS(max_steps=3))
    mrgp.save(fit, tmp_path / "fit")
    assert mrgp.load(tmp_path / "fit").likelihoods == {("sites", "value"): Gaussian()}
