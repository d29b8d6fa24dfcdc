"""Sources with fields of their own beside the one that they report (theory 2.1)."""

import warnings

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest

import mrgp
from mrgp.inference.problem import Problem
from reference.gaussian import covariance, functionals, log_normal, rbf

NAMES = ("x", "y")
RNG = np.random.default_rng(7)
LOWER = np.stack(np.meshgrid(np.arange(4.0), np.arange(3.0)), -1).reshape(-1, 2)
SITES = mrgp.Observations(
    mrgp.points(RNG.uniform(0, 4, (9, 2)), inputs=NAMES), RNG.normal(3, 1, 9), name="sites"
)
CELLS = mrgp.Observations(
    mrgp.boxes(LOWER, LOWER + 1, inputs=NAMES), RNG.normal(5, 1, 12), name="cells"
)
DATA = mrgp.Dataset([SITES, CELLS])
NEW = mrgp.points(RNG.uniform(0, 4, (5, 2)), inputs=NAMES)


def field(**options):
    kernel = mrgp.RBF(1.7, variance=1.2)
    return mrgp.MRGP(kernel, bias="field", target="sites", **options)


def fitted(recipe, data=DATA, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mrgp.fit(recipe, data, progress=None, **options)


def by_hand(fit):
    """Return the log evidence and the posterior at new points, by dense covariances."""
    known = {name: np.ravel(value) for name, value in fit.parameters().items()}
    ratio, noise = known["ratio[cells]"], (known[f"noise_variance[{s}]"] for s in fit.sources)

    def shared(first, second):
        return rbf(first, second, known["kernel.lengthscale"], known["kernel.variance"])

    def own(source):
        def covariance_of(first, second):
            lengthscale = known[f"own[{source}].kernel.lengthscale"]
            far = np.sqrt(3) * np.abs(first[:, None] - second[None]) / lengthscale
            return known[f"own[{source}].kernel.variance"] * np.prod((1 + far) * np.exp(-far), -1)

        return covariance_of

    sites, cells, new = (functionals(s) for s in (SITES.support, CELLS.support, NEW))
    within = ratio**2 * covariance(shared, cells, cells) + covariance(own("cells"), cells, cells)
    alone = covariance(own("sites"), sites, sites)
    cross = ratio * covariance(shared, sites, cells)
    total = np.block([[covariance(shared, sites, sites) + alone, cross], [cross.T, within]])
    total += np.diag(np.repeat(list(noise), [len(SITES), len(CELLS)], axis=0)[:, 0])
    mean = known["mean.constant"]
    means = np.concatenate(
        [np.repeat(mean, 9), np.repeat(known["offset[cells]"] + ratio * mean, 12)]
    )
    y = np.concatenate([SITES.y, CELLS.y])
    of_sites = covariance(shared, new, sites) + covariance(own("sites"), new, sites)
    beside = np.hstack([of_sites, ratio * covariance(shared, new, cells)])
    found = mean + beside @ np.linalg.solve(total, y - means)
    prior = known["kernel.variance"] + known["own[sites].kernel.variance"]
    variance = prior - np.einsum("ij,ji->i", beside, np.linalg.solve(total, beside.T))
    return log_normal(y - means, total), found, variance


def test_evidence_and_posterior_are_those_of_two_fields_by_hand():
    # Averages of a Matern kernel over cells are by quadrature, here of as many nodes as by hand.
    # At the end of a search one of them may be next to nothing.
    brief = mrgp.LBFGS(max_steps=2, starts=1, candidates=0)
    recipe = field(method="exact", priors=False, quadrature=mrgp.GaussLegendre(12))
    fit = fitted(recipe, optimiser=brief)
    evidence, mean, variance = by_hand(fit)
    assert fit.history[-1] == pytest.approx(evidence, abs=1e-6)
    found = mrgp.predict(fit, NEW)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-5)


def test_what_a_source_would_report_has_its_own_field_and_the_map_that_of_the_target():
    fit = fitted(field())
    told, plain = (mrgp.predict(fit, CELLS.support, source=s) for s in ("cells", None))
    assert mrgp.evaluate(told, CELLS.y)["rmse"] < mrgp.evaluate(plain, CELLS.y)["rmse"]
    ratio, offset = (fit.parameters()[f"{name}[cells]"] for name in ("ratio", "offset"))
    assert np.abs(told.mean - offset - ratio * plain.mean).max() > 0.05
    assert "own[cells].kernel.variance" in fit.summary()
    as_target = mrgp.predict(fit, CELLS.support, source="sites")
    np.testing.assert_allclose(as_target.mean, plain.mean)


def test_a_cell_is_the_mean_of_its_parts():
    fit = fitted(field())
    for source in (None, "cells"):
        whole, *parts = (
            float(mrgp.predict(fit, mrgp.boxes([a], [b], inputs=NAMES), source=source).mean[0])
            for a, b in (([0, 0], [2, 1]), ([0, 0], [1, 1]), ([1, 0], [2, 1]))
        )
        assert whole == pytest.approx(np.mean(parts), abs=1e-5)


def test_inducing_inputs_at_all_values_are_exact():
    points = mrgp.Observations(CELLS.support.collapse(), CELLS.y, name="cells")
    data = mrgp.Dataset([SITES, points])
    everywhere = np.concatenate([SITES.support.x, points.support.x])
    kernel = mrgp.Matern12(1.0, variance=1.0)
    made = [
        Problem.of(mrgp.MRGP(kernel, bias="field", **given), data)
        for given in ({"method": "exact"}, {"method": "collapsed", "inducing": everywhere})
    ]
    first, second = map(at_start, made)
    assert first == pytest.approx(second, rel=1e-5)


def at_start(problem):
    with jax.enable_x64(True):
        objective = problem.objective()
        return float(objective(objective.start))


def hourly(seed=0, hours=40):
    """Hourly sites, a biased model on cells that is off from place to place, and constants."""
    rng = np.random.default_rng(seed)
    inputs, places = ("east", "north", "hour"), rng.uniform(0, 4, (6, 2))
    x = np.array([[*p, t] for t in range(hours) for p in places])
    truth = 10 + 3 * np.sin(x[:, 2] / 5) + np.cos(x[:, 0])
    sites = mrgp.Observations(
        mrgp.points(x, inputs=inputs), truth + 0.3 * rng.normal(size=len(x)), name="sites"
    )
    lower = np.array([[a, b, t] for t in range(hours) for a in (0.0, 2.0) for b in (0.0, 2.0)])
    upper = lower + [2.0, 2.0, 0.0]
    off = np.tile(rng.normal(size=4), hours)
    z = 5 + 0.5 * (10 + 3 * np.sin(lower[:, 2] / 5)) + off + 0.1 * rng.normal(size=len(lower))
    cells = mrgp.Observations(mrgp.boxes(lower, upper, inputs=inputs), z, name="cells")
    return sites, cells


def test_along_time_it_is_exact_too():
    data = mrgp.Dataset(hourly(hours=12))
    made = [Problem.of(mrgp.MRGP(bias="field", method=m), data) for m in ("exact", "markov")]
    first, second = map(at_start, made)
    assert first == pytest.approx(second, rel=1e-8)


def test_a_source_that_is_off_at_each_place_is_told_so_and_saved(tmp_path):
    sites, cells = hourly()
    fit = fitted(mrgp.MRGP(bias="field", target="sites"), mrgp.Dataset([sites, cells]))
    assert "along time" in fit.summary()
    assert fit.parameters()["noise_variance[cells]"] < 0.1
    mrgp.save(fit, tmp_path / "fit.mrgp")
    again = mrgp.load(tmp_path / "fit.mrgp")
    wanted, found = (mrgp.predict(f, cells.support[:4], source="cells") for f in (fit, again))
    np.testing.assert_allclose(found.mean, wanted.mean)


def test_the_target_alone_has_nothing_of_its_own():
    built = mrgp.MRGP(bias="field").build(mrgp.Dataset([SITES]))
    assert built.readout.apart == ()


def test_what_only_the_target_sees_is_no_noise_and_not_forced_upon_others():
    """A model that is smooth everywhere, and sites that see something finer as well."""
    rng = np.random.default_rng(4)
    x, lower = rng.uniform(0, 10, (60, 1)), np.arange(0.0, 10.0, 0.5)[:, None]

    def fine(at):
        return np.sin(4.0 * at[:, 0])

    y = np.sin(0.5 * x[:, 0]) + fine(x) + 0.05 * rng.normal(size=60)
    z = 1 + np.sin(0.5 * (lower[:, 0] + 0.25)) + 0.02 * rng.normal(size=20)
    sites = mrgp.Observations(mrgp.points(x), y, name="sites")
    cells = mrgp.Observations(mrgp.boxes(lower, lower + 0.5), z, name="cells")
    fit = fitted(mrgp.MRGP(bias="field"), mrgp.Dataset([sites, cells]))
    assert fit.parameters()["noise_variance[sites]"] < 0.05
    new = rng.uniform(0.5, 9.5, (100, 1))
    found = mrgp.predict(fit, mrgp.points(new))
    assert mrgp.evaluate(found, np.sin(0.5 * new[:, 0]) + fine(new))["rmse"] < 0.25


def test_what_is_constant_has_nothing_of_its_own():
    sites, cells = hourly(hours=12)
    stuck = cells.replace(y=np.full(len(cells), 7.0))
    built = mrgp.MRGP(bias="field").build(mrgp.Dataset([sites, stuck]))
    assert built.readout.apart == ()
    assert len(built.solver.kernels) == 1


def test_effects_of_covariates_are_told_beside_fields_of_their_own():
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 4, (40, 2))
    kinds = np.array(["road", "park"])[np.arange(40) % 2]
    y = 5 + 2.0 * (kinds == "road") + np.sin(x[:, 0]) + 0.1 * rng.normal(size=40)
    places = mrgp.points(x, inputs=NAMES, covariates={"kind": kinds})
    seen = mrgp.Observations(places, y, name="sites")
    with pytest.warns(UserWarning, match="'cells', task 'value' has no 'kind'"):
        data = mrgp.Dataset([seen, CELLS])
    told = fitted(mrgp.MRGP(bias="field", target="sites"), data).effects()
    difference = told.loc["kind=road", "mean"] - told.loc["kind=park", "mean"]
    assert difference == pytest.approx(2.0, abs=0.3)


@pytest.mark.parametrize(("bias", "words"), [("ratio", "r × "), ("field", "a field of its own")])
def test_diagrams_say_what_sources_report(bias, words):
    fit = fitted(mrgp.MRGP(bias=bias, target="sites"))
    figure = fit.diagram()
    said = " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
    plt.close("all")
    assert words in " ".join(said.split())


def test_a_field_behind_a_link_has_no_field_of_a_source_beside_it():
    counts = mrgp.Observations(NEW, [1, 0, 2, 3, 1], name="counts", likelihood=mrgp.Poisson())
    with pytest.raises(ValueError, match="bias='field' shifts a field that link='log' keeps"):
        mrgp.fit(mrgp.MRGP(bias="field"), mrgp.Dataset([counts]))


def test_draws_from_the_posterior_are_of_one_field():
    with pytest.raises(TypeError, match="sample_posterior samples models of one latent field"):
        mrgp.sample_posterior(field(), DATA)


def test_many_places_are_sparse_in_space_and_exact_in_time(monkeypatch):
    data = mrgp.Dataset(hourly(hours=80))
    monkeypatch.setattr("mrgp.models.along.MOST_STATES", 2)
    monkeypatch.setattr("mrgp.models.along.USUAL", 3)
    few = mrgp.MRGP(bias="field").build(data).solver
    assert not getattr(few, "inducing", ())
    monkeypatch.setattr("mrgp.models.along.EXACT_LIMIT", 500)
    many = mrgp.MRGP(bias="field").build(data).solver
    assert sum(map(len, many.inducing)) == 3
    monkeypatch.setattr("mrgp.models.along.MOST_WORK", 10.0)
    assert not getattr(mrgp.MRGP(bias="field").build(data).solver, "time", None)


def lines(own=0.0):
    """Fifteen points, and a source that is off by a line, or by something of its own as well."""
    rng = np.random.default_rng(2)
    x = np.linspace(0, 10, 40)[:, None]
    y = np.sin(x[:, 0])
    few = mrgp.Observations(mrgp.points(x[::3]), y[::3] + 0.05 * rng.normal(size=14), name="a")
    off = 1 + 0.8 * y + own * np.cos(0.6 * x[:, 0]) + 0.05 * rng.normal(size=40)
    return mrgp.Dataset([few, mrgp.Observations(mrgp.points(x), off, name="b")])


def test_fields_of_sources_are_found_together_where_other_parameters_are_kept():
    line = fitted(mrgp.MRGP(bias="field"), lines(), hyperparameters="keep", weights={"b": 0.9})
    assert line.parameters()["ratio[b]"] == pytest.approx(0.8, abs=0.1)
    assert line.parameters()["own[b].kernel.variance"] < 0.1


def test_what_is_next_to_nothing_of_a_source_is_no_caution():
    fit = fitted(mrgp.MRGP(bias="field", priors=False), lines())
    assert fit.parameters()["own[b].kernel.variance"] < 1e-3
    assert not any("own[b].kernel.variance" in text for text in fit.warnings)


def test_few_values_of_the_target_leave_a_constant_source_without_a_field_too():
    data = mrgp.Dataset([SITES[:5], CELLS.replace(y=np.full(12, 7.0))])
    assert mrgp.MRGP(bias="field").build(data).readout.apart == ()
