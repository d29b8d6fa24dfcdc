"""Sparse fits that cannot follow values of tiny known noise are refused, or say so."""

import re

import numpy as np
import pytest

import mrgp

X = np.sort(np.random.default_rng(0).uniform(0, 10, (120, 1)), 0)
Y = 10 * np.sin(X[:, 0]) + 3 * np.sin(5 * X[:, 0])
SPARSE = mrgp.MRGP(mrgp.RBF(), method="collapsed", inducing=9)


def data(noise):
    return mrgp.Dataset([mrgp.Observations(mrgp.points(X), Y, noise_variance=noise)])


@pytest.mark.parametrize("method", ["collapsed", pytest.param("svgp", marks=pytest.mark.thorough)])
def test_a_sparse_fit_of_tiny_known_noise_is_refused(method):
    recipe = mrgp.MRGP(mrgp.RBF(), method=method, inducing=9)
    optimiser = mrgp.Adam(steps=200) if method == "svgp" else None
    with pytest.raises(mrgp.FitError, match=r"worse than noise alone would.*Take method=.exact"):
        mrgp.fit(recipe, data(1e-8), optimiser=optimiser)
    fit = mrgp.fit(recipe, data(1e-8), optimiser=optimiser, throw=False)
    assert fit.status.code == "failed"


def test_a_sparse_fit_that_misses_its_values_says_so():
    with pytest.warns(UserWarning, match=r"noise alone would, by .* nats each: the known noise"):
        fit = mrgp.fit(SPARSE, data(0.3), throw=False)
    assert fit.status.ok


@pytest.mark.parametrize("noise", [None, 10.0])
def test_sparse_fits_that_follow_their_values_say_nothing(noise):
    assert mrgp.fit(SPARSE, data(noise)).status.ok


def test_exact_fits_and_enough_inducing_inputs_say_nothing():
    exact = mrgp.fit(mrgp.MRGP(mrgp.RBF(), method="exact"), data(1e-4))
    found = mrgp.predict(exact, mrgp.points(X))
    np.testing.assert_allclose(found.mean, Y, atol=0.1)
    enough = mrgp.MRGP(mrgp.RBF(), method="collapsed", inducing=60)
    assert mrgp.fit(enough, data(0.01)).status.ok


def test_networks_and_deep_models_are_asked_too():
    x = np.sort(np.random.default_rng(0).uniform(0, 20, (40, 1)), 0)
    cells = np.arange(0.0, 20.0, 2.0)[:, None]

    def seen(noise):
        fine = mrgp.Observations(
            mrgp.points(x), np.sin(6 * x[:, 0]), name="a", noise_variance=noise
        )
        wide = mrgp.boxes(cells, cells + 2)
        coarse = mrgp.Observations(wide, np.cos(cells[:, 0]), name="b", noise_variance=noise)
        return mrgp.Dataset([fine, coarse])

    few = mrgp.LBFGS(max_steps=5, starts=1, candidates=0)
    network = mrgp.MRGPRN(latents=1, inducing_f=5, inducing_w=4)
    tree = mrgp.MRDGP(target="a", inducing=5, method="collapsed", samples=4)
    for recipe, told in ((network, "failed"), (tree, r"failed in base")):
        with pytest.raises(mrgp.FitError, match=rf"{told}.*worse than noise alone would"):
            mrgp.fit(recipe, seen(1e-6), optimiser=few, progress=None)
    for recipe, told in ((network, "the sparse"), (tree, r"base\[b\]: the sparse")):
        with pytest.warns(UserWarning, match="nats each") as caught:
            fit = mrgp.fit(recipe, seen(0.1), optimiser=few, progress=None)
        said = " ".join(str(one.message) for one in caught)
        assert re.search(rf"{told} fit explains .* nats each", said)
        assert fit.status.ok
