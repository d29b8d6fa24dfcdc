"""Fields behind a link: their expected log likelihood and its slopes, beside plain sums."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gammaln

import mrgp
from mrgp import links
from mrgp.gp import LinkedField, Pull, Scatter, Seen, chunks, rates
from mrgp.gp.variational import Moments
from mrgp.kernels import Binding
from mrgp.parameters import unwrap
from mrgp.supports import Geometry

N, S, M = 11, 3, 4
RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 5.0, (N, S, 1))
LOCATIONS = np.linspace(0.0, 5.0, M)[:, None]
ROOT = 0.3 * RNG.standard_normal((2 * M, 2 * M)) + 0.6 * np.eye(2 * M)
MEAN = RNG.standard_normal(2 * M)
Y = RNG.poisson(3.0, N).astype(float)


def field(lengthscale, link):
    of = mrgp.RBF(1.0, variance=0.4), mrgp.Matern32(1.0, variance=0.3)
    bound = [unwrap(k.bind(Binding(Geometry.unit(1)))) for k in of]
    kernels = tuple(dataclasses.replace(k, lengthscale=lengthscale) for k in bound)
    return LinkedField(kernels, jnp.asarray(LOCATIONS), link)


def seen(level, scale, noise):
    one = jnp.ones(N)
    weights = jnp.asarray(RNG.permutation(np.linspace(0.1, 1.0, N * S)).reshape(N, S))
    phi = one.at[4].set(0.0)
    return Seen(weights, level * jnp.ones((N, S)), scale * one, Y, noise * one, phi, 0 * one)


def plain(parameters, link, of, rows):
    """Return the sum over rows, one at a time, from moments at white inducing variables."""
    lengthscale, level, scale, noise = parameters
    here, total = field(lengthscale, link).whitened(), 0.0
    rows = rows._replace(
        level=level * jnp.ones((N, S)), scale=scale * jnp.ones(N), noise=noise * jnp.ones(N)
    )
    pull = Pull.of(Moments(jnp.asarray(MEAN), jnp.asarray(ROOT @ ROOT.T)))
    for n in range(N):
        features = here.features(jnp.array([1.0, 0.5]), jnp.asarray(X[n : n + 1]))
        row = Seen(*(part[n : n + 1] for part in rows))
        total += here.expected(pull, of, features, row)
    return total


def by_chunks(parameters, link, of, rows):
    lengthscale, level, scale, noise = parameters
    rows = rows._replace(
        level=level * jnp.ones((N, S)), scale=scale * jnp.ones(N), noise=noise * jnp.ones(N)
    )
    q = Moments(jnp.asarray(MEAN), jnp.asarray(ROOT @ ROOT.T))
    here = field(lengthscale, link).whitened()
    return here.total(q, of, jnp.array([1.0, 0.5]), (jnp.asarray(X),), rows)


@pytest.mark.parametrize(
    ("link", "likelihood"),
    [
        ("log", mrgp.Poisson()),
        ("log", mrgp.Poisson("jensen")),
        ("square", mrgp.NegativeBinomial()),
        ("log", mrgp.likelihoods.GAUSSIAN),
    ],
    ids=["poisson", "jensen", "negative binomial", "gaussian"],
)
def test_totals_and_their_slopes_equal_plain_sums(link, likelihood, monkeypatch):
    monkeypatch.setattr(rates.LinkedField, "_at_a_time", lambda *_: 4)
    with jax.enable_x64(True):
        of, rows = Scatter(likelihood, censored=False), seen(0.2, 1.5, 2.0)
        parameters = tuple(jnp.asarray(p) for p in (0.9, 0.2, 1.5, 2.0))
        found, expected = (
            jax.jit(jax.value_and_grad(lambda p, f=f: f(p, link, of, rows)))(parameters)
            for f in (by_chunks, plain)
        )
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-6, atol=1e-9)
        assert float(by_chunks(parameters, link, of, rows)) == pytest.approx(float(expected[0]))


@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_slopes_of_a_sum_come_with_its_value(size):
    def term(shared, x, z):
        return jnp.sum(jnp.sin(shared["a"] * x) * z + shared["b"][0] * x**2)

    with jax.enable_x64(True):
        shared = {"a": jnp.asarray(0.7), "b": jnp.array([0.3])}
        x, z = jnp.linspace(1.0, 2.0, 5), jnp.linspace(0.0, 1.0, 5)
        found = jax.value_and_grad(
            lambda s, x: 3.0 * chunks.sum_with_slopes(term, s, x, z, size), argnums=(0, 1)
        )(shared, x)
        expected = jax.value_and_grad(lambda s, x: 3.0 * term(s, x, z), argnums=(0, 1))(shared, x)
        for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-12)


NODES, DRAWS, COUNT, LEVEL = 25, 400_000, 70.0, 80.1
SHORT, LONG = 0.366, 3.0


def of_a_region(sd, lengthscale):
    """Return E log p of a count over a region with a Gaussian f: by draws, matched, by Jensen."""
    x = np.linspace(0.0, 1.0, NODES)
    covariance = sd**2 * np.exp(-0.5 * (x[:, None] - x[None, :]) ** 2 / lengthscale**2)
    root = np.linalg.cholesky(covariance + 1e-10 * np.eye(NODES))
    weights, rng, draws = np.full((1, NODES), LEVEL / NODES), np.random.default_rng(0), []
    for _ in range(DRAWS // 50_000):
        mu = np.exp(rng.standard_normal((50_000, NODES)) @ root.T) @ weights[0]
        draws.append(COUNT * np.log(mu) - mu - gammaln(COUNT + 1))
    f, y, share = jnp.zeros((1, NODES)), jnp.full(1, COUNT), jnp.asarray(weights)
    mean, variance = links.region_moments("log", share, f, jnp.asarray(covariance)[None])
    seen = links.on_scale("log", mean, variance), links.jensen_on_log(share, f, mean)
    found = [float(mrgp.Poisson().expected_log_prob(y, *part, y)[0]) for part in seen]
    return np.concatenate(draws), *found


@pytest.mark.parametrize(
    ("sd", "matched", "error"), [(0.3, -6.259, 0.01), (0.7, -20.08, 0.2), (1.2, -72.98, 1.7)]
)
def test_counts_of_regions_are_expected_as_by_draws(sd, matched, error):
    """What is matched is within its stated error, and far nearer than Jensen's bound (11.3)."""
    with jax.enable_x64(True):
        draws, found, jensen = of_a_region(sd, SHORT)
        far, close, low = of_a_region(sd, LONG)
    assert found == pytest.approx(matched, abs=0.01)
    spread = 4 * draws.std() / DRAWS**0.5
    assert -error - spread < found - draws.mean() < spread
    assert jensen < draws.mean() - 5 * error
    assert close == pytest.approx(far.mean(), abs=0.02 + 4 * far.std() / DRAWS**0.5)
    assert low < close
