"""Posteriors of fields that are not Gaussian, beside long runs of NUTS on the same model."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mrgp

pytestmark = pytest.mark.slow

CELLS, NODES = 12, 5
LOWER = np.arange(float(CELLS))[:, None]
RULE = mrgp.GaussLegendre(NODES)
REGIONS = mrgp.boxes(LOWER, LOWER + 1)
VARIANCE, LENGTHSCALE = 0.6, 2.0
DISPERSION, NOISE, DEGREES = 4.0, 0.04, 4.0


def kernel():
    return mrgp.RBF(mrgp.fixed(LENGTHSCALE), variance=mrgp.fixed(VARIANCE))


def drawn(log_prob, link, draws=20_000, warmup=2_000):
    """Return draws of the field over the regions, by NUTS on whitened f at all nodes."""
    support = REGIONS.quadrature(RULE)
    x, weights = np.asarray(support.x).reshape(-1), np.asarray(support.weights)
    covariance = VARIANCE * np.exp(-0.5 * (x[:, None] - x[None, :]) ** 2 / LENGTHSCALE**2)
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-8 * values.max()
    root = jnp.asarray(vectors[:, kept] * np.sqrt(values[kept]))

    def field(z):
        return jnp.sum(jnp.asarray(weights) * link(root @ z).reshape(weights.shape), 1)

    def density(z):
        return log_prob(field(z)) - 0.5 * jnp.vdot(z, z)

    start, key = jnp.zeros(root.shape[1]), jax.random.key(0)
    (state, tuned), _ = blackjax.window_adaptation(blackjax.nuts, density).run(key, start, warmup)
    step = blackjax.nuts(density, **tuned).step

    def once(state, key):
        state, _ = step(key, state)
        return state, field(state.position)

    return np.asarray(jax.lax.scan(once, state, jax.random.split(key, draws))[1])


def problem(name):
    rng = np.random.default_rng(4)
    truth = 0.7 * np.sin(LOWER[:, 0] / 2)
    exposure = rng.uniform(1.0, 6.0, CELLS)
    if name == "poisson":
        y = rng.poisson(exposure * np.exp(truth))

        def log_prob(mu):
            return jnp.sum(y * jnp.log(mu) - exposure * mu)

        return {"likelihood": mrgp.Poisson(), "exposure": exposure}, y, log_prob, jnp.exp
    if name == "negative_binomial":
        rate = exposure * np.exp(truth)
        y = rng.poisson(rate * rng.gamma(DISPERSION, 1 / DISPERSION, CELLS))

        def log_prob(mu):
            mean = exposure * mu
            return jnp.sum(y * jnp.log(mean) - (y + DISPERSION) * jnp.log(mean + DISPERSION))

        given = {"likelihood": mrgp.NegativeBinomial(), "exposure": exposure}
        return given, y, log_prob, jnp.exp
    y = truth + NOISE**0.5 * rng.standard_t(DEGREES, CELLS)
    y[5] += 3.0

    def log_prob(mu):
        return -0.5 * (DEGREES + 1) * jnp.sum(jnp.log1p((y - mu) ** 2 / (NOISE * DEGREES)))

    return {"likelihood": mrgp.StudentT(DEGREES)}, y, log_prob, lambda f: f


@pytest.mark.parametrize("name", ["poisson", "negative_binomial", "student_t"])
def test_means_and_spreads_are_those_of_nuts(name):
    given, y, log_prob, link = problem(name)
    own = {"negative_binomial": DISPERSION, "student_t": NOISE}
    noise = {"source": mrgp.fixed(own[name])} if name in own else None
    recipe = mrgp.MRGP(kernel(), mean="zero", method="exact", quadrature=RULE, noise=noise)
    fit = mrgp.fit(recipe, mrgp.Dataset([mrgp.Observations(REGIONS, y, **given)]), progress=None)
    found = mrgp.predict(fit, REGIONS)
    with (
        jax.enable_x64(True),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ):
        draws = drawn(log_prob, link)
    mean, sd = draws.mean(0), draws.std(0)
    assert np.max(np.abs(found.mean - mean) / sd) < 0.1
    assert np.max(np.abs(found.std / sd - 1)) < (0.15 if name == "student_t" else 0.1)
