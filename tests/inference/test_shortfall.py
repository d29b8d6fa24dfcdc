"""Sparse fits that cannot follow values of tiny known noise are refused, or say so."""

import re

import numpy as np
import pytest

import mrgp
from mrgp.inference.shortfall import SLIGHT, away, missed_row, shortfall

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


MANY = np.sort(np.random.default_rng(3).uniform(0, 10, (400, 1)), 0)
SMOOTH = np.sin(MANY[:, 0])
NOISY = SMOOTH + 0.1 * np.random.default_rng(1).standard_normal(400)


def smooth(y, noise):
    gap = y.copy()
    gap[5] = np.nan
    return mrgp.Dataset([mrgp.Observations(mrgp.points(MANY), gap, noise_variance=noise)])


def sparse(method):
    return mrgp.MRGP(mrgp.RBF(), method=method, inducing=20)


@pytest.mark.parametrize("method", ["collapsed", pytest.param("svgp", marks=pytest.mark.thorough)])
def test_a_single_row_that_a_sparse_fit_misses_is_named(method):
    y = NOISY.copy()
    y[200] += 3.0
    optimiser = mrgp.Adam(steps=300) if method == "svgp" else None
    told = r"misses values by up to (2|3)\d\.?\d* of their own .* 'value': row 200: their known"
    with pytest.warns(UserWarning, match=told):
        fit = mrgp.fit(sparse(method), smooth(y, 0.01), optimiser=optimiser, progress=None)
    assert fit.status.ok
    assert any("row 200" in words for words in fit.warnings)


def test_known_noise_below_what_the_solver_adds_is_named():
    fine = mrgp.Observations(mrgp.points(X), np.sin(X[:, 0]), noise_variance=1e-12)
    recipe = mrgp.MRGP(mrgp.RBF(), method="collapsed", inducing=60)
    with pytest.warns(UserWarning, match=r"adds to the variance of its field .* 'value' is 1e-12"):
        mrgp.fit(recipe, mrgp.Dataset([fine]), progress=None)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:the sparse fit")
def test_a_row_that_a_network_misses_is_named():
    y = NOISY[::4].copy()
    y[50] += 40.0
    seen = mrgp.Observations(mrgp.points(MANY[::4]), y, noise_variance=0.01)
    recipe = mrgp.MRGPRN(latents=1, inducing_f=12, inducing_w=4)
    few = mrgp.LBFGS(max_steps=10, starts=1, candidates=0)
    fit = mrgp.fit(recipe, mrgp.Dataset([seen]), optimiser=few, progress=None, throw=False)
    told = missed_row(away(fit.model, fit.state, fit.problem(mrgp.Dataset([seen]))))
    assert "'value': row 50" in told


@pytest.mark.parametrize(
    ("y", "noise"),
    [(NOISY, 0.01), (NOISY + 3 * (np.arange(400) == 200), None), (SMOOTH, 1e-7)],
    ids=["as noisy as known", "an outlier, its noise learned", "smooth"],
)
def test_rows_that_are_followed_are_not_named(y, noise):
    fit = mrgp.fit(sparse("collapsed"), smooth(y, noise), progress=None)
    assert not any("the sparse fit" in words for words in fit.doubts)


def test_values_that_a_prior_holds_little_of_are_followed_all_the_same():
    far = mrgp.Observations(mrgp.points(MANY[::8]), 15.0 + NOISY[::8], noise_variance=0.01)
    kernel = mrgp.RBF(mrgp.fixed(0.6), variance=mrgp.fixed(1.0))
    recipe = mrgp.MRGP(kernel, method="collapsed", inducing=40, mean="zero")
    fit = mrgp.fit(recipe, mrgp.Dataset([far]), progress=None)
    assert shortfall(fit.model, fit.weights, fit.history, mrgp.Dataset([far])) > SLIGHT
    found = mrgp.predict(fit, mrgp.points(MANY[::8]))
    assert np.sqrt(np.mean((found.mean - far.y) ** 2)) < 0.2
    assert not any("the sparse fit explains" in words for words in fit.doubts)


def test_an_exact_fit_names_no_row():
    y = NOISY.copy()
    y[200] += 3.0
    fit = mrgp.fit(mrgp.MRGP(mrgp.RBF(), method="exact"), smooth(y, 0.01), progress=None)
    assert fit.doubts == ()


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
