"""Posteriors of fields that are not Gaussian, beside long runs of NUTS on the same model.

What a run of the slow tests found is kept in `against_nuts.json`; with the variable
`MRGP_RECORD_NUTS` set, it is written anew.
"""

import datetime
import json
import os
import platform
from pathlib import Path

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mrgp
from mrgp.inference.mcmc.diagnostics import r_hat

KEPT = Path(__file__).with_name("against_nuts.json")
NAMES = ("poisson", "negative_binomial", "student_t")
CHAINS, DRAWS, WARMUP = 4, 5_000, 1_500
NEAR, MIXED = 0.1, 1.01
CELLS, NODES = 12, 5
LOWER = np.arange(float(CELLS))[:, None]
RULE = mrgp.GaussLegendre(NODES)
REGIONS = mrgp.boxes(LOWER, LOWER + 1)
VARIANCE, LENGTHSCALE = 0.6, 2.0
DISPERSION, NOISE, DEGREES = 4.0, 0.04, 4.0


def kernel():
    return mrgp.RBF(mrgp.fixed(LENGTHSCALE), variance=mrgp.fixed(VARIANCE))


def drawn(log_prob, link):
    """Return draws [chain, draw, region] of the field, by NUTS on whitened f at all nodes."""
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

    def chain(key):
        begun, tuning, drawing = jax.random.split(key, 3)
        start = jax.random.normal(begun, (root.shape[1],))
        adapted = blackjax.window_adaptation(blackjax.nuts, density).run(tuning, start, WARMUP)
        step = blackjax.nuts(density, **adapted[0].parameters).step

        def once(state, key):
            state, _ = step(key, state)
            return state, field(state.position)

        return jax.lax.scan(once, adapted[0].state, jax.random.split(drawing, DRAWS))[1]

    return np.asarray(jax.lax.map(chain, jax.random.split(jax.random.key(0), CHAINS)))


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


def found_beside_nuts(name):
    """Return how far means and sds are from those of NUTS, and the largest R-hat of its chains."""
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
    mean, sd = draws.mean((0, 1)), draws.std((0, 1))
    return {
        "largest distance of means, in sds": float(np.max(np.abs(found.mean - mean) / sd)),
        "largest relative error of sds": float(np.max(np.abs(found.std / sd - 1))),
        "largest R-hat": float(max(r_hat(draws[:, :, region]) for region in range(CELLS))),
    }


def holds(name, found):
    """Tell whether a posterior is near that of chains that have mixed."""
    wide = 0.15 if name == "student_t" else 0.1
    mean, sd, mixing = found.values()
    return mean < NEAR and sd < wide and mixing < MIXED


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_means_and_spreads_are_those_of_nuts(name):
    found = found_beside_nuts(name)
    if "MRGP_RECORD_NUTS" in os.environ:
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"rows": {}}
        about = {
            "date": datetime.date.today().isoformat(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "versions": {m.__name__: m.__version__ for m in (mrgp, jax, blackjax)},
            "sizes": {"chains": CHAINS, "draws": DRAWS, "warmup": WARMUP},
        }
        rows = {"rows": kept["rows"] | {name: found}}
        KEPT.write_text(json.dumps(about | rows, indent=2) + "\n")
    assert holds(name, found), found


def test_what_was_recorded_beside_nuts_holds():
    kept = json.loads(KEPT.read_text())
    assert set(kept["rows"]) == set(NAMES)
    assert kept["sizes"] == {"chains": CHAINS, "draws": DRAWS, "warmup": WARMUP}
    for name, found in kept["rows"].items():
        assert holds(name, found), (name, found)
