"""Trees that must agree with simpler models, and predictions with one another."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest

import mrgp
from groups import rest_thorough
from mrgp.data import as_key
from mrgp.gp import chunks
from mrgp.models import as_arrays
from mrgp.models.paths import Paths

QUICK = mrgp.LBFGS(starts=1, candidates=0)
BASE = mrgp.RBF(mrgp.fixed(0.8), variance=mrgp.fixed(1.0))
DEEP = mrgp.RBF(mrgp.fixed(1.0), variance=mrgp.fixed(0.1))
OPTIONS = {"kernel_base": BASE, "kernel_deep": DEEP, "inducing_deep": 5, "samples": 6}
RECIPE = mrgp.MRDGP("sites", mixing="reliability", **OPTIONS)
GRID = mrgp.points(np.linspace(-0.5, 7.0, 9)[:, None])
REGIONS = mrgp.intervals(np.arange(0.0, 7.0), np.arange(1.0, 8.0)).quadrature(mrgp.GaussLegendre(2))


def wave(x):
    return 3 + np.sin(1.5 * x)


def sources():
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 4, 12))
    y = wave(x) + 0.1 * rng.standard_normal(12)
    z = np.linspace(0.2, 6.5, 12)
    coarse = 0.5 * wave(z) + 1 + 0.02 * rng.standard_normal(12)
    return [
        mrgp.Observations(mrgp.points(x[:, None]), y, name="sites"),
        mrgp.Observations(mrgp.points(z[:, None]), coarse, name="model"),
    ]


DATA = mrgp.Dataset(sources())


def fitted(recipe, data=DATA, **options):
    return mrgp.fit(recipe, data, optimiser=QUICK, progress=None, **options)


@pytest.fixture(scope="module")
def fit():
    return fitted(RECIPE)


@pytest.fixture(scope="module")
def chain():
    return fitted(mrgp.Cascade(["model", "sites"], **OPTIONS))


def same(a, b, rows=slice(None)):
    """Compare predictions component by component; `rows` are those of the first in the second."""
    np.testing.assert_allclose(a.means, b.means[:, rows], rtol=1e-10)
    np.testing.assert_allclose(a.variances, b.variances[:, rows], rtol=1e-9, atol=1e-13)
    weights = b.component_weights[:, rows]
    np.testing.assert_allclose(a.component_weights, weights, rtol=1e-10, atol=1e-14)
    for label, expert in a.experts.items():
        np.testing.assert_allclose(expert.means, b.experts[label].means[:, rows], rtol=1e-10)
        np.testing.assert_allclose(a.weights[label], b.weights[label][rows], rtol=1e-10)


def test_a_tree_of_one_source_is_the_single_gp():
    alone = mrgp.Dataset(sources()[:1])
    deep, single = fitted(mrgp.MRDGP(kernel_base=BASE), alone), fitted(mrgp.MRGP(BASE), alone)
    for support in (GRID, REGIONS):
        for noise in (False, True):
            a, b = (mrgp.predict(f, support, noise=noise) for f in (deep, single))
            np.testing.assert_allclose(a.mean, b.mean, rtol=1e-10)
            np.testing.assert_allclose(a.variance, b.variance, rtol=1e-10)
            np.testing.assert_allclose(a.quantile(0.1), b.quantile(0.1), rtol=1e-10)


@pytest.mark.parametrize("source", [None, "model"])
@pytest.mark.parametrize("support", [GRID, REGIONS], ids=["points", "regions"])
def test_a_region_gets_the_same_answer_alone_in_a_batch_and_in_another_order(fit, support, source):
    together = mrgp.predict(fit, support, source=source)
    same(mrgp.predict(fit, support[3], source=source), together, slice(3, 4))
    same(mrgp.predict(fit, support[::-1], source=source), together, slice(None, None, -1))


def test_a_chain_gives_a_point_the_same_answer_alone_and_in_a_batch(chain):
    together = mrgp.predict(chain, GRID)
    same(mrgp.predict(chain, GRID[3]), together, slice(3, 4))
    same(mrgp.predict(chain, GRID[::-1]), together, slice(None, None, -1))


def test_rows_get_the_same_answer_one_at_a_time(fit, monkeypatch):
    together = mrgp.predict(fit, GRID)
    monkeypatch.setattr(chunks, "_CPU_CHUNK_BYTES", 1)
    with jax.enable_x64(True):
        found = components(*as_arrays((fit.model, fit.state, GRID)), 6)
    np.testing.assert_allclose(found.means.T, together.means, rtol=1e-10)
    np.testing.assert_allclose(found.variances.T, together.variances, rtol=1e-9)


def test_the_key_moves_paths_and_not_what_is_known(fit):
    a, b = (mrgp.predict(fit, GRID, key=k) for k in (0, 4))
    assert not np.allclose(a.experts["model"].means, b.experts["model"].means)
    np.testing.assert_array_equal(a.experts["sites"].means, b.experts["sites"].means)
    np.testing.assert_array_equal(a.weights["sites"], b.weights["sites"])


@pytest.mark.parametrize("source", [None, "model"])
def test_joint_predictions_have_the_same_moments_and_a_covariance(fit, source):
    apart = mrgp.predict(fit, REGIONS, source=source, key=4)
    joint = mrgp.predict(fit, REGIONS, source=source, key=4, joint=True)
    np.testing.assert_allclose(joint.mean, apart.mean, rtol=1e-10)
    np.testing.assert_allclose(joint.variance, apart.variance, rtol=1e-10)
    np.testing.assert_allclose(np.diag(joint.covariance), apart.variance, rtol=1e-10)
    np.testing.assert_allclose(joint.covariance, joint.covariance.T, atol=1e-12)
    assert np.linalg.eigvalsh(joint.covariance).min() > -1e-10
    near, far = joint.covariance[0, 1], joint.covariance[0, -1]
    assert abs(far) < abs(near)


@pytest.mark.parametrize("ratio", rest_thorough([1.0, 0.3, 0.1], 1))
def test_a_map_that_changes_nothing_keeps_the_variance_of_a_region(ratio):
    """Nodes drawn apart from one another would give a half to a ninth of it (theory 5.4)."""
    z = np.concatenate([np.linspace(-2.0, -0.4, 6), np.linspace(1.5, 3.0, 6)])[:, None]
    y = np.random.default_rng(0).standard_normal(12)
    seen = [mrgp.Observations(mrgp.points(z), y, name=name) for name in ("sites", "model")]
    recipe = dataclasses.replace(
        RECIPE,
        kernel_base=mrgp.RBF(mrgp.fixed(ratio), variance=mrgp.fixed(1.0)),
        kernel_deep=mrgp.RBF(mrgp.fixed(1.0), variance=mrgp.fixed(1e-8)),
        quadrature=mrgp.GaussLegendre(10),
    )
    fit = fitted(recipe, mrgp.Dataset(seen))
    region = mrgp.intervals([0.0], [1.0])
    with jax.enable_x64(True):
        arguments = as_arrays((fit.model, fit.state, region))
        means, variances = map(np.asarray, components(*arguments, 2000).experts["model"])
    closed = mrgp.predict(fit.parts["base[model]"], region)
    excess = float(fit.model.parts["expert[model]"].excess)
    drawn = means.var() + variances.mean() - excess
    assert drawn == pytest.approx(closed.variance[0], rel=0.05)
    level = fit.parameters()["expert[model].mean.constant"]
    assert means.mean() == pytest.approx(closed.mean[0] + level, abs=0.01)


@eqx.filter_jit
def components(tree, state, support, paths):
    return Paths(tree, state, as_key(0), paths).components(support, "value", None, None)


def test_a_saved_tree_predicts_the_same(fit, tmp_path):
    mrgp.save(fit, tmp_path / "fit")
    again = mrgp.load(tmp_path / "fit")
    a, b = (mrgp.predict(f, GRID) for f in (fit, again))
    for field in ("means", "variances", "component_weights"):
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field))
    assert again.summary() == fit.summary()
    reused = fitted(RECIPE, reuse=again)
    assert all(reused.parts[name] is part for name, part in again.parts.items())


def test_reuse_gives_the_same_fit_with_the_same_parts(fit):
    again = fitted(RECIPE, reuse=fit)
    assert all(again.parts[name] is part for name, part in fit.parts.items())
    same(mrgp.predict(again, GRID), mrgp.predict(fit, GRID))
    stiffer = mrgp.RBF(mrgp.fixed(2.0), variance=mrgp.fixed(0.1))
    other = fitted(dataclasses.replace(RECIPE, kernel_deep=stiffer), reuse=fit)
    kept = [name for name, part in other.parts.items() if part is fit.parts[name]]
    assert kept == ["base[sites]", "base[model]"]
