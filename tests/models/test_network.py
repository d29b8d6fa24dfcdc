"""The network's bound and predictions against loops in NumPy, and against Monte Carlo."""

import itertools

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.linalg import block_diag

import mrgp
from groups import rest_thorough
from mrgp.data import Scaling
from mrgp.gp import Mixture, Whitened
from mrgp.parameters import fixed, real, unwrap
from reference import network as slow
from shorthand import as_arrays, build_objective

Z = np.array([[0.3], [1.4], [2.2], [3.1]])
V = np.array([[0.5], [1.7], [2.9]])
REGIONS = mrgp.nodes(
    np.array([[[0.1], [0.4], [0.9]], [[1.2], [1.5], [1.9]], [[2.0], [2.6], [3.3]]]),
    np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.4], [0.1, 0.6, 0.3]]),
)


def dataset():
    """Return two tasks: points and regions of one, regions with a missing value of the other."""
    points = mrgp.points(np.array([[0.2], [1.1], [1.8], [2.7]]))
    known = np.array([0.3, 0.2, 0.1])
    return mrgp.Dataset(
        [
            mrgp.Observations(points, [1.0, 2.0, np.nan, 0.5], task="no2", name="site"),
            mrgp.Observations(
                REGIONS, [0.4, 1.3, 0.8], task="no2", name="cells", noise_variance=known
            ),
            mrgp.Observations(REGIONS, [30.0, np.nan, 11.0], task="pm10", name="site"),
        ]
    )


DATA = dataset()
WEIGHTS = {"cells": 0.4}


def recipe(**arguments):
    return mrgp.MRGPRN(
        latents=2,
        kernel_f=[mrgp.RBF(0.9), mrgp.Matern12(1.4)],
        kernel_w=mrgp.RBF(2.0, variance=0.7),
        inducing_f=Z,
        inducing_w=V,
        **arguments,
    )


def random_q(network, seed=3):
    """Return a q whose components differ in everything, also in weight."""
    rng = np.random.default_rng(seed)
    k = network.components

    def block(old):
        m = old.mean.raw.shape[-1]
        roots = np.tril(0.3 * rng.standard_normal((k, m, m)))
        roots[:, np.arange(m), np.arange(m)] = rng.uniform(0.3, 0.9, (k, m))
        return Whitened(real(0.8 * rng.standard_normal((k, m))), real(roots))

    logits = real(rng.standard_normal(k)) if k > 1 else fixed(np.zeros(1))
    return Mixture(logits, network.q.blocks.map(block))


def build(**arguments):
    """Return a network with a random q, and its records."""
    network = recipe(**arguments).build(DATA)
    network = network.with_q(random_q(network))
    records = build_objective(network, DATA, Scaling.of(DATA), WEIGHTS).records
    return network, records


@eqx.filter_jit
def condition(network, records):
    return network.condition(records)


@eqx.filter_jit
def moments(network, state, support, task):
    return unwrap(network).aggregates(state.whiten).moments(state.q, task, support)


def kernels(network):
    """Return the kernels as functions of two points: f by latent, w by task and latent."""

    def scalar(kernel):
        scale, variance = float(kernel.lengthscale.value), float(kernel.variance.value)
        if isinstance(kernel, mrgp.RBF):
            return lambda a, b: variance * np.exp(-0.5 * float(np.sum((a - b) ** 2)) / scale**2)
        return lambda a, b: variance * np.exp(-abs(float(a[0] - b[0])) / scale)

    f = [scalar(k) for k in network.kernels_f]
    return f, [[scalar(k) for k in row] for row in network.kernels_w]


def component(network, k):
    """Return q of one component as mean and covariance by latent: f, and w by task."""
    blocks = unwrap(network.q).blocks

    def gaussian(block):
        root = np.tril(np.asarray(block.root)[k])
        return np.asarray(block.mean)[k], root @ root.T

    return [gaussian(b) for b in blocks.f], [[gaussian(b) for b in row] for row in blocks.w]


def loop_moments(network, k, task, x, weights):
    """Return mean and variance of a task on one region, node by node."""
    kf, kw = kernels(network)
    qf, qw = component(network, k)
    z, v = (np.asarray(unwrap(loc)) for loc in (network.locations_f, network.locations_w))
    if len(network.groups) == 1:
        mean, variance = loop_coupled(network, task, x, weights, kf, kw, qf, qw, z, v)
    else:
        factors = []
        for q in range(network.latents):
            mf, cf = slow.conditional(kf[q], z, *qf[q], x)
            mw, cw = slow.conditional(kw[task][q], v, *qw[task][q], x)
            factors.append((mf, cf, *(slow.exponential(mw, cw) if network.positive else (mw, cw))))
        mean, variance = slow.moments(weights, factors)
    spread = float(network.levels.spread[task])
    level = float(np.asarray(network.levels.mean.value)[task]) * np.sum(weights)
    return level + spread * mean, spread**2 * variance


def loop_coupled(network, task, x, weights, kf, kw, qf, qw, z, v):
    latents, s = network.latents, len(x)

    def joint(kernels, locations, q):
        mean, cov = q
        m = len(locations)
        means, pairs = np.zeros((latents, s)), np.zeros((latents, s, latents, s))
        for a, b in itertools.product(range(latents), range(latents)):
            part = cov[a * m : (a + 1) * m, b * m : (b + 1) * m]
            if a == b:
                own = slow.conditional(kernels[a], locations, mean[a * m : (a + 1) * m], part, x)
                means[a], pairs[a, :, a, :] = own
            else:
                pairs[a, :, b, :] = cross_conditional(kernels[a], kernels[b], locations, part, x)
        return means, pairs

    mf, cf = joint(kf, z, qf[0])
    mw, cw = joint(kw[task], v, qw[task][0])
    if network.positive:
        mw, cw = slow.exponential(mw.ravel(), cw.reshape(latents * s, latents * s))
        mw, cw = mw.reshape(latents, s), cw.reshape(latents, s, latents, s)
    return slow.coupled_moments(weights, mf, cf, mw, cw)


def cross_conditional(first, second, z, cov, x, jitter=1e-10):
    def alpha(kernel):
        kzz = np.array([[kernel(a, b) for b in z] for a in z])
        lz = np.linalg.cholesky(kzz + jitter * np.trace(kzz) / len(z) * np.eye(len(z)))
        return np.linalg.solve(lz, np.array([[kernel(a, b) for b in x] for a in z]))

    return alpha(first).T @ cov @ alpha(second)


FORMS = {
    "factorised": {"coupled": False},
    "coupled": {"coupled": True},
    "positive": {"coupled": False, "positive": True},
    "positive, coupled": {"coupled": True, "positive": True},
}


@pytest.mark.parametrize("components", rest_thorough([1, 3], 1))
@pytest.mark.parametrize("form", rest_thorough(FORMS, "positive, coupled"))
def test_bound_and_predictions_equal_explicit_loops(form, components):
    with jax.enable_x64(True):
        network, records = build(components=components, **FORMS[form])
        weights = np.asarray(unwrap(network.q).weights)
        expected = 0.0
        for i, record in enumerate(records):
            task = network.levels.index(network.processes[i][1])
            atoms = record.support.atoms()
            x, w = np.asarray(atoms.lower), np.asarray(atoms.weights)
            for n in range(len(record)):
                noise = (
                    network.observation_noise(network.processes[i])
                    if record.noise_variance is None
                    else float(record.noise_variance[n])
                )
                for k, share in enumerate(weights):
                    pair = loop_moments(network, k, task, x[n], w[n])
                    term = slow.expected_log_density(float(record.y[n]), noise, *pair)
                    expected += share * float(record.weight) * term
        expected -= loop_divergence(network, weights)
        found = float(eqx.filter_jit(lambda n, r: n.log_evidence(r))(as_arrays(network), records))
        assert found == pytest.approx(expected, rel=1e-10)
        state = condition(as_arrays(network), records)
        for p, task in enumerate(("no2", "pm10")):
            mean, variance = moments(as_arrays(network), state, records[1].support, task)
            atoms = records[1].support.atoms()
            for n in range(3):
                x, w = np.asarray(atoms.lower)[n], np.asarray(atoms.weights)[n]
                parts = [loop_moments(network, k, p, x, w) for k in range(components)]
                centre = sum(a * m for a, (m, _) in zip(weights, parts, strict=True))
                second = sum(a * (v + m**2) for a, (m, v) in zip(weights, parts, strict=True))
                assert float(mean[n]) == pytest.approx(centre, rel=1e-10)
                assert float(variance[n]) == pytest.approx(second - centre**2, rel=1e-9)


def loop_divergence(network, weights, bound=slow.entropy_bhattacharyya):
    parts = [component(network, k) for k in range(len(weights))]
    blocks = [[*f, *(b for row in w for b in row)] for f, w in parts]
    crossed = sum(
        a * slow.cross(*b) for a, group in zip(weights, blocks, strict=True) for b in group
    )
    return -(crossed + bound(weights, blocks))


@pytest.mark.parametrize("components", rest_thorough([1, 3], 1))
def test_the_paper_bound_on_the_entropy_equals_its_loop(components):
    with jax.enable_x64(True):
        network, _ = build(components=components, coupled=False)
        q = unwrap(network.q)
        expected = loop_divergence(network, np.asarray(q.weights), slow.entropy_paper)
        assert float(q.divergence("paper")) == pytest.approx(expected, rel=1e-10)
        assert float(q.divergence()) < float(q.divergence("paper"))


@pytest.mark.parametrize("bound", ["bhattacharyya", "paper"])
def test_equal_components_are_one_component(bound):
    with jax.enable_x64(True):
        network, _ = build(components=1, coupled=False)
        one = unwrap(network.q)
        copies = as_arrays(jax.tree.map(lambda x: np.repeat(np.asarray(x), 3, 0), one))
        assert float(copies.divergence(bound)) == pytest.approx(float(one.divergence(bound)))
        blocks = jax.tree.leaves(one.blocks, is_leaf=lambda b: isinstance(b, Whitened))
        exact = sum(
            float(Whitened(np.asarray(b.mean)[0], np.asarray(b.root)[0]).divergence)
            for b in map(as_arrays, blocks)
        )
        size = sum(b.mean.shape[-1] for b in blocks)
        loose = {"bhattacharyya": 0.0, "paper": 0.5 * size * (1 - np.log(2))}
        assert float(one.divergence(bound)) == pytest.approx(exact + loose[bound])


@pytest.mark.parametrize("form", rest_thorough(FORMS, "factorised"))
def test_expected_log_likelihood_and_moments_equal_monte_carlo(form):
    draws = 20_000
    rng = np.random.default_rng(8)
    with jax.enable_x64(True):
        network, records = build(components=3, **FORMS[form])
        plain = unwrap(network)
        whiten = plain.whiteners()
        share = np.asarray(plain.q.weights)
        state = condition(as_arrays(network), records)
        record = records[1]
        x = np.asarray(record.support.atoms().lower)[0]
        w = np.asarray(record.support.atoms().weights)[0]
        at = jax.numpy.asarray(x[None])
        view_f, view_w = zip(*plain.aggregates(whiten).views(0, at), strict=True)
        chosen = rng.choice(3, draws, p=share)
        total = np.zeros(draws)
        for g in range(len(network.groups)):
            f, v = (
                sample(rng, view, block, chosen)
                for view, block in (
                    (view_f[g], plain.q.blocks.f[g]),
                    (view_w[g], plain.q.blocks.w[0][g]),
                )
            )
            product = f * (np.exp(v) if network.positive else v)
            total += product @ np.tile(w, len(network.groups[g]))
        spread = float(network.levels.spread[0])
        values = float(np.asarray(network.levels.mean.value)[0]) * w.sum() + spread * total
        mean, variance = (
            float(m[0]) for m in moments(as_arrays(network), state, record.support, "no2")
        )
    error = values.std() / np.sqrt(draws)
    assert abs(values.mean() - mean) < 5 * error
    assert abs(values.var() - variance) < 5 * np.std((values - mean) ** 2) / np.sqrt(draws)
    y, noise = float(record.y[0]), 0.3
    logs = -0.5 * np.log(2 * np.pi * noise) - 0.5 * (y - values) ** 2 / noise
    expected = slow.expected_log_density(y, noise, mean, variance)
    assert abs(logs.mean() - expected) < 5 * logs.std() / np.sqrt(draws)


def sample(rng, view, block, chosen):
    """Draw a factor at the nodes of one region: inducing variables, then what they leave open."""
    alpha, own = (block_diag(*np.asarray(part)[:, 0]) for part in (view.alpha, view.own))
    residual = own - alpha @ alpha.T
    values, vectors = np.linalg.eigh(residual)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    means, roots = np.asarray(block.mean), np.tril(np.asarray(block.root))
    normals = rng.standard_normal((len(chosen), means.shape[1]))
    u = means[chosen] + np.einsum("nij,nj->ni", roots[chosen], normals)
    return u @ alpha.T + rng.standard_normal((len(chosen), len(root))) @ root.T
