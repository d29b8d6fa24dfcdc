"""Networks that must agree with simpler models, and predictions with one another."""

import equinox as eqx
import jax
import numpy as np
import pytest

import mrgp
import zoo
from mrgp.data import Scaling
from mrgp.gp import Mixture, Whitened, chunks, cross_covariance
from mrgp.parameters import real, unwrap
from shorthand import as_arrays, build_objective

Z = np.linspace(0, 6, 8)[:, None]
GRID = mrgp.points(np.linspace(-0.5, 6.5, 15)[:, None])
QUICK = mrgp.LBFGS(max_steps=10, starts=1, candidates=0)
F = mrgp.RBF(mrgp.fixed(0.8), variance=mrgp.fixed(1.0))


def sources(seed=0):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 6, 12))
    y = 3 + np.sin(2 * x) + 0.1 * rng.standard_normal(12)
    y[4] = np.nan
    lower = np.arange(0.0, 6.0)
    cells = mrgp.intervals(lower, lower + 1).quadrature(mrgp.GaussLegendre(3))
    means = 3 + 0.5 * (np.cos(2 * lower) - np.cos(2 * lower + 2))
    return [
        mrgp.Observations(mrgp.points(x[:, None]), y, task="a", name="sites"),
        mrgp.Observations(cells, means, task="a", name="cells"),
    ]


DATA = mrgp.Dataset(sources())


def random_block(rng, size):
    root = np.tril(0.2 * rng.standard_normal((size, size))) + 0.5 * np.eye(size)
    return 0.7 * rng.standard_normal(size), root


def test_a_network_with_weights_of_one_is_the_single_gp():
    """exp(W) with a prior of no variance is one: the bound is that of MR-GP."""
    rng = np.random.default_rng(2)
    mean, root = random_block(rng, len(Z))
    none = mrgp.RBF(mrgp.fixed(1.0), variance=mrgp.fixed(1e-24))
    with jax.enable_x64(True):
        recipe = mrgp.MRGPRN(latents=1, kernel_f=F, kernel_w=none, positive=True, inducing_f=Z)
        network = recipe.build(DATA)
        q = network.q
        f = Whitened(real(mean[None]), real(root[None]))
        size = q.blocks.w[0][0].mean.raw.shape[1]
        w = Whitened(real(np.zeros((1, size))), real(np.eye(size)[None]))
        blocks = eqx.tree_at(lambda b: (b.f, b.w), q.blocks, ((f,), ((w,),)))
        network = network.with_q(Mixture(q.logits, blocks))
        target = build_objective(network, DATA, Scaling.of(DATA), {"cells": 0.5})
        spread = float(network.levels.spread[0])
        kernel = mrgp.RBF(mrgp.fixed(0.8), variance=mrgp.fixed(spread**2))
        single = mrgp.MRGP(kernel, method="svgp", inducing=Z).build(DATA)
        single = single.with_q(Whitened(real(mean), real(root)))
        other = build_objective(single, DATA, Scaling.of(DATA), {"cells": 0.5})
        values = [
            float(eqx.filter_jit(lambda o: o.model(o.start).log_evidence(o.records))(o))
            for o in (target, other)
        ]
    assert values[0] == pytest.approx(values[1], rel=1e-9)


@pytest.mark.thorough
def test_regions_of_one_node_are_the_network_at_points():
    x = np.linspace(0.2, 5.8, 7)[:, None]
    y = np.sin(x[:, 0])
    bounds = []
    with jax.enable_x64(True):
        for support in (mrgp.points(x), mrgp.nodes(x[:, None, :]), mrgp.boxes(x, x)):
            data = mrgp.Dataset([mrgp.Observations(support, y, task="a", name="s")])
            network = mrgp.MRGPRN(latents=2, kernel_f=F, inducing_f=Z, inducing_w=5).build(data)
            rng = np.random.default_rng(0)
            network = network.with_q(moved(network.q, rng))
            target = build_objective(network, data, Scaling.of(data), None)
            bounds.append(float(eqx.filter_jit(lambda o: o(o.start))(target)))
        plain = unwrap(network)
        by_hand = pointwise_gprn(plain, np.asarray(target.records[0].support.atoms().lower)[:, 0])
        predicted = eqx.filter_jit(
            lambda n, r: unwrap(n).aggregates().moments(unwrap(n).q, "a", r[0].support)
        )
        mean, variance = predicted(as_arrays(network), target.records)
    np.testing.assert_allclose(bounds, bounds[0], rtol=1e-12)
    np.testing.assert_allclose(mean, by_hand[0], rtol=1e-9)
    np.testing.assert_allclose(variance, by_hand[1], rtol=1e-9)


def moved(q, rng):
    """Return a q with random means."""

    def block(old):
        return eqx.tree_at(lambda w: w.mean.raw, old, rng.standard_normal(old.mean.raw.shape))

    return Mixture(q.logits, q.blocks.map(block))


@eqx.filter_jit
def predicted(network, support):
    plain = unwrap(network)
    return plain.aggregates().moments(plain.q, "a", support)


def pointwise_gprn(plain, x):
    """Return the moments of a GPRN at points: scalars alone, latent functions coupled by q."""
    z, v = np.asarray(plain.locations_f), np.asarray(plain.locations_w)
    alphas, residuals = {}, {}
    for name, kernels, places in (
        ("f", plain.kernels_f, z),
        ("w", plain.kernels_w[0], v),
    ):
        for q, kernel in enumerate(kernels):
            k = np.asarray(kernel.cross(places, places))
            root = np.linalg.cholesky(k + 1e-10 * np.trace(k) / len(k) * np.eye(len(k)))
            alpha = np.linalg.solve(root, np.asarray(kernel.cross(places, x)))
            alphas[name, q] = alpha
            residuals[name, q] = np.asarray(kernel.pair(x, x)) - (alpha**2).sum(0)

    def joint(name, block):
        mean, root = np.asarray(block.mean)[0], np.tril(np.asarray(block.root)[0])
        covariance = root @ root.T
        m = len(mean) // 2
        means, pairs = np.zeros((2, len(x))), np.zeros((2, 2, len(x)))
        for a in range(2):
            means[a] = mean[a * m : (a + 1) * m] @ alphas[name, a]
            for b in range(2):
                part = covariance[a * m : (a + 1) * m, b * m : (b + 1) * m]
                pairs[a, b] = np.einsum("mn,mk,kn->n", alphas[name, a], part, alphas[name, b])
            pairs[a, a] += residuals[name, a]
        return means, pairs

    mf, cf = joint("f", plain.q.blocks.f[0])
    mw, cw = joint("w", plain.q.blocks.w[0][0])
    spread, level = float(plain.levels.spread[0]), float(plain.levels.mean[0])
    mean = (mf * mw).sum(0)
    variance = sum(
        cf[a, b] * cw[a, b] + mf[a] * mf[b] * cw[a, b] + mw[a] * mw[b] * cf[a, b]
        for a in range(2)
        for b in range(2)
    )
    return level + spread * mean, spread**2 * variance


@pytest.mark.thorough
def test_constant_weights_of_one_task_are_the_single_gp():
    options = {"optimiser": mrgp.LBFGS(starts=1, candidates=0), "progress": None}
    single = mrgp.fit(mrgp.MRGP(mrgp.RBF(), priors=False), DATA, **options)
    recipe = mrgp.MRGPRN(latents=1, kernel_f=mrgp.RBF(), kernel_w="constant", priors=False)
    linear = mrgp.fit(recipe, DATA, **options)
    assert linear.history[-1] == pytest.approx(single.history[-1], abs=1e-4)
    a, b = mrgp.predict(single, GRID), mrgp.predict(linear, GRID)
    np.testing.assert_allclose(a.mean, b.mean, atol=2e-3)
    np.testing.assert_allclose(a.std, b.std, atol=2e-3)


def two_tasks(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, (14, 1))
    other = 20 + 5 * np.sin(2 * x[:, 0]) + 0.5 * rng.standard_normal(14)
    return mrgp.Dataset(
        [*sources(), mrgp.Observations(mrgp.points(x), other, task="b", name="sites")]
    )


BOTH = two_tasks()


def test_the_linear_model_is_a_dense_gaussian():
    recipe = mrgp.MRGPRN(latents=2, kernel_f=mrgp.RBF(), kernel_w="constant")
    fit = mrgp.fit(recipe, BOTH, optimiser=QUICK, progress=None, weights={"cells": 0.5})
    with jax.enable_x64(True):
        plain = unwrap(as_arrays(fit.model))
        records = build_objective(fit.model, BOTH, fit.scaling, {"cells": 0.5}).records
        rows = plain.readout.weights * plain.readout.levels.spread[:, None]
        task = [plain.readout.levels.index(task) for _, task in plain.processes]
        total = [
            [
                sum(
                    float(rows[task[i], q] * rows[task[j], q])
                    * np.asarray(cross_covariance(k, a.support, b.support))
                    for q, k in enumerate(plain.solver.kernels)
                )
                for j, b in enumerate(records)
            ]
            for i, a in enumerate(records)
        ]
        noise = [
            fit.model.observation_noise(p) / float(r.weight) * np.ones(len(r))
            for p, r in zip(fit.processes, records, strict=True)
        ]
        y = np.concatenate(
            [
                np.asarray(r.y) - float(plain.readout.levels.mean[t]) * np.asarray(r.support.total)
                for r, t in zip(records, task, strict=True)
            ]
        )
        covariance = np.block(total) + np.diag(np.concatenate(noise))
        grid = GRID.shift(fit.scaling.centre)
        cross = np.concatenate(
            [
                sum(
                    float(rows[1, q] * rows[t, q])
                    * np.asarray(cross_covariance(k, grid, r.support))
                    for q, k in enumerate(plain.solver.kernels)
                )
                for r, t in zip(records, task, strict=True)
            ],
            1,
        )
    mean = cross @ np.linalg.solve(covariance, y) + fit.parameters()["mean[b]"]
    pred = mrgp.predict(fit, GRID, task="b", joint=True)
    np.testing.assert_allclose(pred.mean, mean, rtol=1e-8)
    explained = cross @ np.linalg.solve(covariance, cross.T)
    prior = sum(float(rows[1, q] ** 2) for q in range(2))
    np.testing.assert_allclose(pred.variance, prior - np.diag(explained), rtol=1e-6)
    np.testing.assert_allclose(np.diag(pred.covariance), pred.variance, rtol=1e-12)


@pytest.mark.thorough
def test_the_sparse_linear_model_with_all_nodes_is_the_exact_one():
    everywhere = np.unique(
        np.concatenate([np.asarray(s.atoms().lower).ravel() for s in BOTH.supports])
    )
    fits = [
        mrgp.fit(
            mrgp.MRGPRN(latents=2, kernel_f=F, kernel_w="constant", inducing_f=z),
            BOTH,
            optimiser=QUICK,
            progress=None,
        )
        for z in (None, everywhere[:, None])
    ]
    assert fits[0].history[-1] == pytest.approx(fits[1].history[-1], abs=1e-3)
    for task in ("a", "b"):
        a, b = (mrgp.predict(f, GRID, task=task) for f in fits)
        np.testing.assert_allclose(a.mean, b.mean, atol=1e-3)
        np.testing.assert_allclose(a.std, b.std, atol=1e-3)


@pytest.fixture(scope="module")
def fit():
    return zoo.fit("network")


def test_mixtures_have_the_moments_in_closed_form(fit):
    cells = mrgp.intervals(np.arange(0.0, 6.0), np.arange(1.0, 7.0))
    for task in ("no2", "pm10"):
        gaussian = mrgp.predict(fit, cells, task=task, samples=0)
        mixture = mrgp.predict(fit, cells, task=task)
        assert gaussian.means.shape[0] == 1
        assert mixture.means.shape[0] == 50
        np.testing.assert_allclose(mixture.mean, gaussian.mean, rtol=1e-10)
        np.testing.assert_allclose(mixture.variance, gaussian.variance, rtol=1e-8)
        joint = mrgp.predict(fit, cells, task=task, joint=True)
        np.testing.assert_allclose(joint.mean, gaussian.mean, rtol=1e-10)
        np.testing.assert_allclose(np.diag(joint.covariance), gaussian.variance, rtol=1e-8)


def test_a_box_is_the_mean_of_its_parts_and_of_its_nodes(fit):
    whole = mrgp.predict(
        fit, mrgp.intervals([1.0], [3.0]).quadrature(mrgp.GaussLegendre(20)), "no2"
    )
    parts = mrgp.intervals([1.0, 2.0], [2.0, 3.0]).quadrature(mrgp.GaussLegendre(20))
    halves = mrgp.predict(fit, parts, "no2", joint=True)
    assert whole.mean[0] == pytest.approx(halves.mean.mean(), rel=1e-6)
    assert whole.variance[0] == pytest.approx(halves.covariance.mean(), rel=2e-4)


def test_regions_get_the_same_answer_alone_in_a_batch_and_in_chunks(fit, monkeypatch):
    together = mrgp.predict(fit, GRID, task="pm10")
    alone = mrgp.predict(fit, GRID[3:4], task="pm10")
    turned = mrgp.predict(fit, GRID[::-1], task="pm10")
    np.testing.assert_allclose(alone.means[:, 0], together.means[:, 3], rtol=1e-9)
    np.testing.assert_allclose(turned.quantile(0.1)[::-1], together.quantile(0.1), rtol=1e-9)
    monkeypatch.setattr(chunks, "_CPU_CHUNK_BYTES", 1)
    jax.clear_caches()
    parts = mrgp.predict(fit, GRID, task="pm10")
    np.testing.assert_allclose(parts.means, together.means, rtol=1e-9)
    np.testing.assert_allclose(parts.variances, together.variances, rtol=1e-8)


def test_the_key_moves_the_shape_but_not_the_moments(fit):
    a, b, c = (mrgp.predict(fit, GRID, task="no2", key=k) for k in (0, 0, 5))
    np.testing.assert_array_equal(a.means, b.means)
    assert not np.allclose(a.means, c.means)
    np.testing.assert_allclose(a.mean, c.mean, rtol=1e-10)


def test_noise_of_a_named_source_is_added(fit):
    clean = mrgp.predict(fit, GRID, task="no2", source="coarse")
    noisy = mrgp.predict(fit, GRID, task="no2", source="coarse", noise=True)
    added = fit.parameters()["noise_variance[coarse, no2]"]
    np.testing.assert_allclose(noisy.variance, clean.variance + added, rtol=1e-8)


def test_a_saved_network_predicts_the_same(fit, tmp_path):
    mrgp.save(fit, tmp_path / "fit")
    again = mrgp.load(tmp_path / "fit")
    for task in ("no2", "pm10"):
        p, q = (mrgp.predict(f, GRID, task=task) for f in (fit, again))
        np.testing.assert_array_equal(p.means, q.means)
    assert again.summary() == fit.summary()
