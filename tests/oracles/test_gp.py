"""Evidence and prediction with points only, against GPJax and tinygp."""

import functools

import gpjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tinygp
from tinygp.kernels.distance import L2Distance

import mrgp

RNG = np.random.default_rng(8)
X = RNG.uniform(0, 4, (25, 2)) + 50.0
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=25)
NEW = RNG.uniform(-1, 5, (12, 2)) + 50.0
SCALES, VARIANCE, NOISE = np.array([0.9, 2.0]), 1.6, 0.05


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


KERNELS = {
    "RBF": tinygp.kernels.ExpSquared,
    "Matern12": tinygp.kernels.Exp,
    "Matern32": tinygp.kernels.Matern32,
    "Matern52": tinygp.kernels.Matern52,
}
each_kernel = pytest.mark.parametrize("name", KERNELS)


def recipe(name, method="exact"):
    """Return a model with nothing to train."""
    kernel = getattr(mrgp, name)(mrgp.fixed(SCALES), variance=mrgp.fixed(VARIANCE))
    return mrgp.MRGP(kernel=kernel, mean="zero", priors=False, method=method)


def data(noise=NOISE):
    return mrgp.Dataset([mrgp.Observations(mrgp.points(X), Y, noise_variance=noise)])


def gpjax_posterior(name):
    kernel = getattr(gpjax.kernels, name)(lengthscale=jnp.asarray(SCALES), variance=VARIANCE)
    prior = gpjax.gps.Prior(mean_function=gpjax.mean_functions.Zero(), kernel=kernel, jitter=1e-14)
    model = prior * gpjax.likelihoods.Gaussian(obs_stddev=np.sqrt(NOISE))
    return model.condition(gpjax.Dataset(X=jnp.asarray(X), y=jnp.asarray(Y)[:, None]))


def tinygp_process(name, noise=NOISE):
    inner = KERNELS[name](distance=L2Distance())
    kernel = VARIANCE * tinygp.transforms.Linear(1.0 / jnp.asarray(SCALES), inner)
    return tinygp.GaussianProcess(kernel, jnp.asarray(X), diag=jnp.asarray(noise))


def log_evidence(name, noise=NOISE):
    function = mrgp.objective(recipe(name), data(noise))
    assert all(np.size(leaf) == 0 for leaf in jax.tree.leaves(function.start))
    return float(function(function.start))


@each_kernel
def test_log_evidence_equals_gpjax_and_tinygp(name):
    theirs = float(gpjax_posterior(name).log_marginal_likelihood)
    tiny = float(tinygp_process(name).log_probability(jnp.asarray(Y)))
    found = log_evidence(name)
    np.testing.assert_allclose(found, theirs, rtol=1e-9)
    np.testing.assert_allclose(found, tiny, rtol=1e-10)


def test_log_evidence_with_a_noise_for_each_value_equals_tinygp():
    noise = RNG.uniform(0.01, 0.2, len(Y))
    process = tinygp_process("Matern32", noise)
    expected = float(process.log_probability(jnp.asarray(Y)))
    np.testing.assert_allclose(log_evidence("Matern32", noise), expected, rtol=1e-10)


@functools.cache
def predictions(name):
    fit = mrgp.fit(recipe(name), data())
    joint = mrgp.predict(fit, mrgp.points(NEW), joint=True)
    return (
        joint,
        mrgp.predict(fit, mrgp.points(NEW)),
        mrgp.predict(fit, mrgp.points(NEW), noise=True),
    )


@each_kernel
def test_predictions_equal_gpjax(name):
    expected = gpjax_posterior(name)(jnp.asarray(NEW))
    found, _, _ = predictions(name)
    covariance = np.asarray(expected.covariance())
    np.testing.assert_allclose(found.mean, np.asarray(expected.mean), rtol=1e-9)
    np.testing.assert_allclose(found.variance, np.diag(covariance), rtol=1e-8)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-9)


@each_kernel
def test_predictions_equal_tinygp(name):
    tiny = 1e-14  # tinygp adds 1.5e-8 to the variance unless told otherwise
    process = tinygp_process(name)
    _, expected = process.condition(jnp.asarray(Y), jnp.asarray(NEW), diag=tiny)
    _, found, noisy = predictions(name)
    np.testing.assert_allclose(found.mean, np.asarray(expected.loc), rtol=1e-9)
    np.testing.assert_allclose(found.variance, np.asarray(expected.variance), rtol=1e-8)
    np.testing.assert_allclose(noisy.variance, np.asarray(expected.variance) + NOISE, rtol=1e-8)


def test_collapsed_bound_equals_gpjax_at_the_same_inducing_inputs():
    locations = X[::3]
    kernel = mrgp.RBF(mrgp.fixed(SCALES), variance=mrgp.fixed(VARIANCE))
    model = mrgp.MRGP(
        kernel=kernel, mean="zero", priors=False, method="collapsed", inducing=locations
    )
    function = mrgp.objective(model, data())
    prior = gpjax.gps.Prior(
        mean_function=gpjax.mean_functions.Zero(),
        kernel=gpjax.kernels.RBF(lengthscale=jnp.asarray(SCALES), variance=VARIANCE),
        jitter=1e-10 * VARIANCE,
    )
    joint = prior * gpjax.likelihoods.Gaussian(obs_stddev=np.sqrt(NOISE))
    family = gpjax.variational_families.CollapsedVariationalGaussian(
        model=joint, inducing_inputs=jnp.asarray(locations)
    )
    observed = gpjax.Dataset(X=jnp.asarray(X), y=jnp.asarray(Y)[:, None])
    expected = float(gpjax.objectives.collapsed_elbo(family, observed))
    np.testing.assert_allclose(float(function(function.start)), expected, rtol=1e-7)
