"""When a model is solved along time, what it refuses, and what can be asked of its fit."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mrgp
from mrgp.gp import Collapsed, Exact, Inducing, Markov
from mrgp.inference import has_dense, whole
from mrgp.models import along
from mrgp.selection import candidates

NAMES = ("east", "time")
RNG = np.random.default_rng(2)
QUICK = mrgp.LBFGS(max_steps=1, starts=1, candidates=0)
PLACE = mrgp.Matern32(2.0, variance=1.0, dims="east")
HOURS = mrgp.Matern12(3.0, variance=1.0, dims="time")
AT = mrgp.points([[0.0, 1.5], [0.4, 2.0], [1.0, 9.0]], inputs=NAMES)


def network(hours, places=3, names=NAMES, **more):
    x = [[float(p), float(t)] for t in range(hours) for p in range(places)]
    if "covariates" in more:
        more["covariates"] = {"type": (["park", "road", "road"] * hours)[: len(x)]}
    support = mrgp.points(x, inputs=names, **more)
    return mrgp.Observations(support, 5 + np.sin(np.arange(len(x))), name="sites")


SMALL = mrgp.Dataset([network(6)])


def solver(recipe, data):
    return type(recipe.build(data).solver)


def test_auto_goes_along_time_where_that_is_cheaper():
    recipe = mrgp.MRGP(PLACE * HOURS)
    assert solver(recipe, SMALL) is Exact
    assert solver(recipe, mrgp.Dataset([network(200)])) is Markov
    assert solver(mrgp.MRGP(), mrgp.Dataset([network(200)])) is Markov
    # Every value has a place of its own: a dense covariance is cheaper.
    x = np.column_stack([np.arange(450.0), RNG.uniform(0, 9, 450)])
    apart = mrgp.Observations(mrgp.points(x, inputs=NAMES), np.zeros(450))
    assert solver(recipe, mrgp.Dataset([apart])) is Exact


def test_auto_leaves_what_does_not_apply_to_the_others():
    data = mrgp.Dataset([network(200)])
    assert solver(mrgp.MRGP(PLACE * mrgp.RBF(3.0, dims="time")), data) is Exact
    assert solver(mrgp.MRGP(PLACE * HOURS, inducing=9), data) is Collapsed
    assert solver(mrgp.MRGP(PLACE * HOURS, method="collapsed", inducing=9), data) is Collapsed


def test_constant_weights_go_along_time_too():
    recipe = mrgp.MRGPRN(latents=2, kernel_f=PLACE * HOURS, kernel_w="constant")
    assert solver(recipe, SMALL) is Exact
    assert solver(recipe, mrgp.Dataset([network(300)])) is Markov
    for method, expected in (("markov", Markov), ("exact", Exact), ("collapsed", Collapsed)):
        chosen = mrgp.MRGPRN(latents=1, kernel_f=PLACE * HOURS, kernel_w="constant", method=method)
        assert solver(chosen, SMALL) is expected


def test_auto_says_that_a_network_is_solved_along_time():
    fit = mrgp.fit("auto", mrgp.Dataset([network(140)]), optimiser=QUICK, progress=None)
    assert isinstance(fit.model.solver, Markov)
    assert fit.reasons[-1] == "How it is solved: exact, along time: 140 steps over 3 places."


def test_kernels_of_long_networks_are_those_that_go_along_time(monkeypatch):
    assert "RBF" in candidates.kernels_of(network(30))
    monkeypatch.setattr(candidates, "LONG", 80)
    found = candidates.kernels_of(network(30))
    data = mrgp.Dataset([network(140)])
    assert all(solver(mrgp.MRGP(kernel), data) is Markov for kernel in found.values())


SMOOTH = PLACE * mrgp.RBF(3.0, variance=1.0, dims="time")
BOTH = mrgp.nodes([[[0.0, 0.0], [1.0, 1.0]]], inputs=NAMES)
REFUSED = {
    "RBF": (SMOOTH, SMALL, "RBF in 'time' has no states of finite number; take Matern12"),
    "radial": (
        mrgp.Matern32(2.0, dims=NAMES),
        SMALL,
        "Matern32 joins 'time' with other inputs in one distance; write a product, as",
    ),
    "no time": (
        None,
        mrgp.Dataset([network(6, names=("a", "b"))]),
        "none of the inputs ('a', 'b') is named so; name it by inputs=",
    ),
    "nodes": (
        PLACE * HOURS,
        mrgp.Dataset([network(6), mrgp.Observations(BOTH, [1.0], name="cells")]),
        "source 'cells', task 'value': in 1 of 1 regions the nodes differ both in place and in"
        " time; regions must be a place",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_go_along_time_is_refused_with_a_way_out(case, as_users_see_it):
    kernel, data, text = REFUSED[case]
    with pytest.raises(ValueError, match='method="markov"') as error:
        mrgp.MRGP(kernel, method="markov").build(data)
    assert text in str(error.value)


def test_arguments_that_do_not_go_together_are_refused(as_users_see_it):
    with pytest.raises(ValueError, match='inducing= has no use with method="exact"'):
        mrgp.MRGP(method="exact", inducing=20)
    with pytest.raises(ValueError, match='inducing_f= has no use with method="exact"'):
        mrgp.MRGPRN(kernel_w="constant", method="exact", inducing_f=20)
    placed = mrgp.Inducing(2, train=True)
    with pytest.raises(ValueError, match="places of a fit along time are not trained"):
        mrgp.MRGP(PLACE * HOURS, method="markov", inducing=placed).build(SMALL)
    with pytest.raises(ValueError, match='method="exact" is for constant weights'):
        mrgp.MRGPRN(method="exact")
    with pytest.raises(ValueError, match="method= is one of"):
        mrgp.MRGPRN(kernel_w="constant", method="kalman")


@pytest.fixture(scope="module")
def fits():
    """Return fits of sites and windows by both methods, with a covariate."""
    data = mrgp.Dataset([network(6, covariates=True)])
    recipes = (mrgp.MRGP(PLACE * HOURS, method=method) for method in ("exact", "markov"))
    return data, *(mrgp.fit(r, data, optimiser=QUICK, progress=None) for r in recipes)


def test_a_fit_says_how_it_was_solved(fits):
    _, exact, markov = fits
    assert "exact, along time: 6 steps over 3 places; the training data are kept" in (
        markov.summary()
    )
    assert markov.history[-1] == pytest.approx(exact.history[-1], abs=1e-8)


@pytest.mark.parametrize(("length", "said", "warned"), [(1.0, False, False), (0.3, True, True)])
def test_what_a_periodic_series_leaves_out_is_said(length, said, warned):
    kernel = PLACE * mrgp.Periodic(4.0, lengthscale=mrgp.fixed(length), dims="time")
    fit = mrgp.fit(mrgp.MRGP(kernel, method="markov"), SMALL, optimiser=QUICK, progress=None)
    text = "the series of periodic kernels leaves 0.0003 of their variance out"
    assert (text in fit.summary()) == said
    caution = "The series of a periodic kernel leaves 0.0003 of its variance out"
    assert (caution in fit.summary()) == warned


def test_effects_are_those_of_an_exact_fit(fits):
    _, exact, markov = fits
    np.testing.assert_allclose(markov.effects(), exact.effects(), atol=1e-8)


def test_values_left_out_and_variograms_are_those_of_an_exact_fit(fits):
    _, exact, markov = fits
    one, two = exact.leave_one_out(), markov.leave_one_out()
    np.testing.assert_allclose(two.mean, one.mean, atol=1e-8)
    np.testing.assert_allclose(two.variance, one.variance, atol=1e-8)
    one, two = (mrgp.variogram(fit, "sites", dims="time") for fit in (exact, markov))
    np.testing.assert_allclose(two.model, one.model, atol=1e-8)


def test_a_widened_posterior_is_that_of_an_exact_fit(fits):
    data, exact, markov = fits
    at = mrgp.points([[0.0, 1.5]], inputs=NAMES, covariates={"type": ["park"]})
    one, two = (mrgp.predict(mrgp.adjust_curvature(f, data), at) for f in (exact, markov))
    np.testing.assert_allclose(two.variance, one.variance, atol=1e-8)


def test_too_many_values_for_a_dense_covariance_are_refused(fits, monkeypatch, as_users_see_it):
    data, _, markov = fits
    monkeypatch.setattr(Markov, "most_dense", 10)
    text = "the dense covariance of all values is needed, .* at most 10 values .* this has 18"
    with pytest.raises(ValueError, match=f"leave_one_out: {text}"):
        markov.leave_one_out()
    with pytest.raises(ValueError, match=f"variogram: {text}"):
        mrgp.variogram(markov, "sites", dims="time")
    with pytest.raises(ValueError, match=f"adjust_curvature: {text}"):
        mrgp.adjust_curvature(markov, data)
    with pytest.raises(ValueError, match=f"sample_posterior: {text}"):
        mrgp.sample_posterior(markov.recipe, data, samples=4, warmup=0, progress=None)


def test_a_fit_along_time_is_saved_loaded_and_resumed(fits, tmp_path):
    data, _, markov = fits
    mrgp.save(markov, tmp_path / "fit")
    again = mrgp.load(tmp_path / "fit")
    at = mrgp.points([[0.0, 1.5]], inputs=NAMES, covariates={"type": ["park"]})
    one, two = (mrgp.predict(fit, at) for fit in (markov, again))
    np.testing.assert_array_equal(two.mean, one.mean)
    np.testing.assert_array_equal(two.variance, one.variance)
    assert again.summary() == markov.summary()
    resumed = again.resume(data, optimiser=QUICK, progress=None)
    assert resumed.history[-1] >= markov.history[-1] - 1e-9


def test_many_places_lean_on_inducing_ones(monkeypatch):
    recipe = mrgp.MRGP(PLACE * HOURS, method="markov")
    assert recipe.build(SMALL).solver.inducing == ()
    assert mrgp.MRGP(PLACE * HOURS, method="markov", inducing=3).build(SMALL).solver.inducing == ()
    monkeypatch.setattr("mrgp.models.along.MOST_STATES", 2)
    monkeypatch.setattr("mrgp.models.along.USUAL", 2)
    (places,) = recipe.build(SMALL).solver.inducing
    assert len(places) == 2
    np.testing.assert_allclose(places.x[:, 1], 0.0)


@pytest.fixture(scope="module")
def leaning():
    """Return a fit through two inducing places of three."""
    recipe = mrgp.MRGP(PLACE * HOURS, method="markov", inducing=[[0.1, 0.0], [1.8, 0.0]])
    return mrgp.fit(recipe, SMALL, optimiser=QUICK, progress=None)


def test_a_fit_through_inducing_places_says_so_and_is_saved(leaning, tmp_path):
    assert "along time: 6 steps, exact there, over 2 inducing places for 3" in leaning.summary()
    mrgp.save(leaning, tmp_path / "fit.mrgp")
    loaded = mrgp.load(tmp_path / "fit.mrgp")
    one, two = (mrgp.predict(fit, AT) for fit in (leaning, loaded))
    np.testing.assert_array_equal(one.mean, two.mean)
    np.testing.assert_array_equal(one.variance, two.variance)


def test_a_fit_through_inducing_places_goes_on(leaning):
    later = mrgp.points([[0.0, 7.0], [0.5, 7.0]], inputs=NAMES)
    more = mrgp.Dataset([mrgp.Observations(later, [5.0, 5.5], name="sites")])
    one, two = leaning.extend(more), leaning.condition(leaning.extend(more).kept_data())
    for at in (AT, mrgp.boxes([[0.0, 1.0]], [[1.0, 3.0]], inputs=NAMES)):
        a, b = (mrgp.predict(fit, at) for fit in (one, two))
        np.testing.assert_allclose(a.mean, b.mean, atol=1e-8)
        np.testing.assert_allclose(a.variance, b.variance, atol=1e-8)


def test_inducing_places_have_no_dense_covariance(leaning, as_users_see_it):
    text = "the exact covariance of all values is needed, and .* has 2 inducing places"
    with pytest.raises(ValueError, match=f"leave_one_out: {text}"):
        leaning.leave_one_out()
    with pytest.raises(ValueError, match=f"adjust_curvature: {text}"):
        mrgp.adjust_curvature(leaning, SMALL)
    with pytest.raises(ValueError, match=f"sample_posterior: {text}"):
        mrgp.sample_posterior(leaning.recipe, SMALL, samples=4, warmup=0, progress=None)
    with pytest.raises(ValueError, match=f"the weights of sources: {text}"):
        leaning.model.composite.smoother(leaning.records)
    assert not has_dense(leaning)


def test_regions_through_inducing_places_are_places_in_time(leaning, as_users_see_it):
    with pytest.raises(ValueError, match="with inducing places, regions are a place times"):
        mrgp.predict(leaning, BOTH)


@pytest.mark.slow
@pytest.mark.skipif("MRGP_DATA" not in os.environ, reason="MRGP_DATA names no recorded data")
def test_the_noise_of_three_days_of_a_city_is_that_of_the_exact_solver():
    """Fit three of every five sites, 19 to 21 February 2022, by both."""
    folder = Path(os.environ["MRGP_DATA"]) / "laqn_2022"
    table = pd.read_csv(folder / "window_no2_2022-02-19_to_21.csv", parse_dates=["time"])
    about = pd.read_csv(folder / "laqn_site_metadata.csv").set_index("@SiteCode")
    names = {"@Longitude": "lon", "@Latitude": "lat"}
    table = table.join(about[list(names)].rename(columns=names), on="site").dropna()
    sites = np.unique(table["site"])
    table = table[table["site"].isin(sites[np.arange(len(sites)) % 5 < 3])]
    columns = ["lon", "lat", "time"], "no2"
    data = mrgp.Dataset([mrgp.from_frame(table, *columns, crs="EPSG:4326", name="monitors")])
    along, exact = (mrgp.fit(mrgp.MRGP(method=m), data, progress=None) for m in ("auto", "exact"))
    assert isinstance(along.model.solver, Markov)
    assert along.model.solver.inducing == ()
    one, two = (fit.parameters()["noise_variance[monitors]"] for fit in (exact, along))
    np.testing.assert_allclose(two, one, rtol=0.1)


def test_much_work_along_time_begins_with_some_of_it(monkeypatch):
    data = mrgp.Dataset([network(12)])
    recipe = mrgp.MRGP(PLACE * HOURS, method="markov")
    usual = mrgp.fit(recipe, data, progress=None)
    monkeypatch.setattr(whole, "MUCH", 0.0)
    monkeypatch.setattr(whole, "ROWS", 18)
    begun = mrgp.fit(recipe, data, progress=None)
    # On few values another start may find a better end.
    assert begun.history[-1] > usual.history[-1] - 1e-3
    assert begun.history[0] > usual.history[0]


def test_few_sites_beside_many_cells_have_inducing_places_of_their_own():
    sites = mrgp.points([[0.3, 0.0], [5.2, 0.0], [9.9, 1.0]], inputs=("east", "time"))
    lower = np.array([[x, t] for x in range(20) for t in (0.0, 1.0)])
    cells = mrgp.boxes(lower, lower + [1.0, 0.0], inputs=("east", "time"))
    placed = along.inducing_places(Inducing(8), (sites, cells), 1, np.zeros(2), PLACE, 0)
    (x,) = (np.asarray(one.x) for one in placed)
    assert len(x) == 8
    assert x[:3, 0].tolist() == [0.3, 5.2, 9.9]
    (few,) = along.inducing_places(Inducing(5), (sites, cells), 1, np.zeros(2), PLACE, 0)
    assert not {0.3, 5.2, 9.9} <= set(np.asarray(few.x)[:, 0].tolist())
