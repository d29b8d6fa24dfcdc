"""Variograms: pair by pair by brute force, within Monte Carlo error, and in the right units."""

import dataclasses
import sys

import jax
import matplotlib as mpl
import numpy as np
import pytest

import mrgp
import zoo
from groups import rest_thorough
from mrgp.checks.dense import dense
from mrgp.gp import Exact
from mrgp.supports import Axis
from reference import gaussian
from reference import leave_one_out as slow

mpl.use("Agg")
import matplotlib.pyplot as plt

QUICK = mrgp.LBFGS(max_steps=5, starts=1, candidates=0)
FIXED = mrgp.RBF(lengthscale=mrgp.fixed(np.array(1.2)), variance=mrgp.fixed(np.array(2.0)))


def one_source(y, x, **options):
    return mrgp.Dataset([mrgp.Observations(mrgp.points(x[:, None]), y, name="s", **options)])


def regions(seed=0):
    rng = np.random.default_rng(seed)
    start = np.sort(rng.uniform(0, 9, 18))
    width = rng.uniform(0.2, 1.5, 18)
    z = 4 + np.sin(start) + 0.1 * rng.standard_normal(18)
    z[3] = np.nan
    x = rng.uniform(0, 9, 20)
    cells = mrgp.Observations(
        mrgp.intervals(start, start + width),
        z,
        name="cells",
        noise_variance=rng.uniform(0.01, 0.3, 18),
    )
    return mrgp.Dataset([*one_source(4 + np.sin(x), x), cells])


@pytest.mark.parametrize("weights", rest_thorough([None, {"cells": 0.4}], 1))
def test_regions_match_brute_force_covariances(weights):
    data = regions()
    fit = mrgp.fit(
        mrgp.MRGP(mrgp.RBF(), bias="affine", target="s"), data, weights=weights, optimiser=QUICK
    )
    p, o = fit.parameters(), data["cells"].dropna()
    kernel = lambda x, z: gaussian.rbf(x, z, p["kernel.lengthscale"], p["kernel.variance"])  # noqa: E731
    rows = gaussian.functionals(o.support)
    ratio = p["ratio[cells]"]
    covariance = ratio**2 * gaussian.covariance(kernel, rows, rows) + np.diag(o.noise_variance)
    residual = o.y - p["offset[cells]"] - ratio * p["mean.constant"]
    centre = gaussian.moments(rows)[:, 0]
    distance = np.abs(np.subtract.outer(centre, centre))
    edges = np.linspace(0, distance.max() / 2, 9)
    lag, pairs, empirical, model, spread = slow.semivariances(residual, covariance, distance, edges)
    found = mrgp.variogram(fit, "cells", bins=8)
    np.testing.assert_array_equal(found.pairs, pairs)
    np.testing.assert_allclose(found.lag, lag, rtol=1e-10)
    np.testing.assert_allclose(found.empirical, empirical, rtol=1e-8)
    np.testing.assert_allclose(found.model, model, rtol=1e-7)
    np.testing.assert_allclose(found.standard_error, spread, rtol=1e-7)


@pytest.mark.thorough
def test_a_sparse_fit_with_its_data_has_the_values_of_an_exact_one():
    data = regions()
    fit = mrgp.fit(mrgp.MRGP(mrgp.RBF(), inducing=12, bias="affine"), data, optimiser=QUICK)
    found = mrgp.variogram(fit, ("cells", "value"), bins=8, data=data)
    with jax.enable_x64(True):
        solver = Exact(fit.model.solver.kernels, rule=fit.model.solver.rule)
        exact = dataclasses.replace(fit.model, solver=solver)
        records = mrgp.objective(mrgp.MRGP(mrgp.RBF(), bias="affine"), data).records
        state = jax.tree.map(np.asarray, exact.condition(records))
    held = jax.tree.map(np.asarray, records)
    dense_fit = dataclasses.replace(fit, model=exact, state=state, records=held)
    same = mrgp.variogram(dense_fit, "cells", bins=8)
    for name in ("lag", "pairs", "empirical", "model", "standard_error"):
        np.testing.assert_allclose(getattr(found, name), getattr(same, name), rtol=1e-7)
    with pytest.raises(
        ValueError, match=r"a fit of MRGP, sparse.* Give the data of the fit as data="
    ):
        mrgp.variogram(fit, "cells")


@pytest.mark.thorough
def test_values_from_the_model_are_within_its_standard_errors():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 20, 60)
    fit = mrgp.fit(
        mrgp.MRGP(FIXED, mean="zero"), one_source(rng.standard_normal(60), x, noise_variance=0.3)
    )
    total = dense(fit, "test", "").covariance
    factor = np.linalg.cholesky(total)
    curves = []
    for _ in range(150):
        data = one_source(factor @ rng.standard_normal(60), x, noise_variance=0.3)
        curves.append(mrgp.variogram(fit.condition(data), bins=6).empirical)
    found = mrgp.variogram(fit, bins=6)
    error = (np.mean(curves, 0) - found.model) / (found.standard_error / np.sqrt(150))
    assert np.abs(error).max() < 3.5
    np.testing.assert_allclose(np.std(curves, 0), found.standard_error, rtol=0.25)
    # Far apart values are independent: the sill is the variance and the noise.
    assert found.model[-1] == pytest.approx(2.3, abs=0.01)


@pytest.fixture(scope="module")
def space_time():
    rng = np.random.default_rng(4)
    sites = rng.uniform(0, 3, (6, 2))
    x = np.array([(t, *site) for t in range(5) for site in sites], float)
    y = np.sin(x[:, 0]) + x[:, 1] + 0.1 * rng.standard_normal(30)
    support = mrgp.points(x, inputs=("time", "east", "north"))
    data = mrgp.Dataset([mrgp.Observations(support, y, name="s")])
    return mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK)


def test_pairs_agree_in_the_other_inputs(space_time):
    fit = space_time
    space = mrgp.variogram(fit, dims=("east", "north"), bins=[0.0, 10.0])
    assert space.pairs.sum() == 5 * 15
    time = mrgp.variogram(fit, dims="time", bins=4)
    assert time.dims == ("time",)
    assert list(time.lag) == [1.0, 2.0]
    assert list(time.pairs) == [6 * 4, 6 * 3]
    near = mrgp.variogram(fit, dims=("east", "north"), within={"time": 1.0}, bins=[0.0, 10.0])
    assert near.pairs.sum() == 5 * 15 + 4 * 36
    assert mrgp.variogram(fit, dims=(1, 2), bins=[0.0, 10.0]).lag == space.lag


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, r"a distance over \('time', 'east', 'north'\) .* dims='time'"),
        ({"dims": "lon"}, r"dims= takes some of the inputs .* got 'lon'"),
        ({"dims": "time", "source": "laqn"}, "say which source, .* got 'laqn'"),
        ({"dims": "time", "within": {"time": 1.0}}, r"within= takes distances .* got 'time'"),
        ({"dims": "time", "bins": 0}, "bins= takes a number, or edges that increase; got 0"),
        ({"dims": "time", "bins": [50.0, 60.0]}, "no pairs lie inside the edges .* is 4"),
    ],
)
def test_errors_say_what_to_do(options, text, space_time):
    with pytest.raises(ValueError, match=text):
        mrgp.variogram(space_time, **options)


@pytest.mark.usefixtures("as_users_see_it")
def test_no_pairs_and_no_distances():
    x = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x, inputs=("a", "b")), [0.0, 1.0, 0.5])])
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK)
    with pytest.raises(ValueError, match=r"no two values make a pair. .*\['b'\] with within="):
        mrgp.variogram(fit, dims="a")
    with pytest.raises(TypeError, match="variogram takes a fit; got Dataset"):
        mrgp.variogram(data)


def test_models_without_one_covariance_are_refused():
    with pytest.raises(ValueError, match="MRDGP is not one Gaussian"):
        mrgp.variogram(zoo.fit("deep"), "coarse", data=zoo.biased())


@pytest.mark.thorough
def test_many_values_are_thinned(monkeypatch):
    # The front door has a function of the module's name.
    monkeypatch.setattr(sys.modules["mrgp.checks.variogram"], "MOST_VALUES", 10)
    data = regions()
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK)
    found = mrgp.variogram(fit, "cells", bins=3)
    assert found.values == 10
    sparse = mrgp.fit(mrgp.MRGP(inducing=8), data, optimiser=QUICK)
    assert mrgp.variogram(sparse, "cells", bins=3, data=data).pairs.sum() == found.pairs.sum()


def test_the_picture_has_both_and_their_units():
    x = np.linspace(0, 9, 30)
    data = one_source(np.sin(x), x, units="ug/m3", task="no2")
    support = dataclasses.replace(
        data["s"].support, inputs=("when",), axes=(Axis("time", 0.0, 3600.0, "h"),)
    )
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([data["s"].replace(support=support)]), optimiser=QUICK)
    found = mrgp.variogram(fit, bins=5)
    assert found.distance_units == "h"
    assert repr(found).startswith("Variogram(s, no2: 30 values over when, lags 0.4628 to 4.022 h;")
    axes = found.plot()
    model, empirical = axes.lines
    np.testing.assert_array_equal(model.get_ydata(), found.model)
    np.testing.assert_array_equal(empirical.get_ydata(), found.empirical)
    assert axes.get_xlabel() == "distance in when (h)"
    assert axes.get_ylabel() == "semivariance ((ug/m3)²)"
    assert found.plot(axes) is axes
    plt.close(axes.figure)
    assert list(found.to_frame()) == ["lag", "pairs", "empirical", "model", "standard_error"]
