"""Fields behind a link: exact answers of small problems, equivalences, and what is refused."""

import dataclasses

import jax
import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import norm

import mrgp
from groups import rest_thorough
from mrgp.data import Frame
from mrgp.inference.settling import Settled
from mrgp.models import Linked, Sited, conditioned
from mrgp.models.answers import Question

QUICK = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)


def settled(recipe, data):
    """Return the model with its starting parameters, its posterior, and the bound."""
    with jax.enable_x64(True):
        problem = mrgp.inference.problem.Problem.of(recipe, data)
        loss = Settled(problem.objective())
        model = loss.model(loss.objective.start)
        state = conditioned(model, problem.records)
        return model, state, float(model.log_evidence(problem.records))


def predicted(model, state, support, task="value"):
    with jax.enable_x64(True):
        return model.predict(state, support, Question(task, None, jax.random.key(0)))


def test_counts_of_a_constant_field_equal_quadrature():
    y, e = np.array([3, 0, 5, 2]), np.array([1.0, 0.5, 3.0, 2.0])
    cells = mrgp.intervals(np.arange(4.0), np.arange(4.0) + 1)
    data = mrgp.Dataset([mrgp.Observations(cells, y, likelihood=mrgp.Poisson(), exposure=e)])
    kernel = mrgp.Constant(mrgp.fixed(0.5))
    model, state, bound = settled(mrgp.MRGP(kernel, mean="zero"), data)
    f = np.linspace(-6, 6, 20001)
    logs = y.sum() * f - np.exp(f) * e.sum() + (y * np.log(e) - gammaln(y + 1)).sum()
    density = np.exp(logs) * norm.pdf(f, 0, 0.5**0.5)
    evidence = np.trapezoid(density, f)
    rate = np.trapezoid(density * np.exp(f), f) / evidence
    spread = np.trapezoid(density * (np.exp(f) - rate) ** 2, f) / evidence
    found = predicted(model, state, mrgp.points([[1.5]]).shift([2.0]))
    assert found.means[0, 0] == pytest.approx(rate, rel=2e-3)
    assert found.variances[0, 0] == pytest.approx(spread, rel=0.06)
    assert np.log(evidence) - 0.02 < bound < np.log(evidence)


def test_a_region_of_two_nodes_equals_quadrature_in_two_dimensions():
    nodes = mrgp.nodes([[[0.0], [1.0]]], [[0.3, 0.7]])
    data = mrgp.Dataset([mrgp.Observations(nodes, [7], likelihood=mrgp.Poisson(), exposure=3.0)])
    kernel = mrgp.RBF(lengthscale=mrgp.fixed(1.0), variance=mrgp.fixed(0.4))
    model, state, _ = settled(mrgp.MRGP(kernel, mean="zero", method="exact"), data)
    covariance = 0.4 * np.array([[1.0, np.exp(-0.5)], [np.exp(-0.5), 1.0]])
    axis = np.linspace(-4, 4, 401)
    f = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    mu = 3.0 * np.exp(f) @ [0.3, 0.7]
    prior = -0.5 * np.sum(f * np.linalg.solve(covariance, f.T).T, 1)
    weight = np.exp(prior + 7 * np.log(mu) - mu)
    weight /= weight.sum()
    rate = np.exp(f) @ [0.3, 0.7]
    mean = weight @ rate
    sd = np.sqrt(weight @ (rate - mean) ** 2)
    found = predicted(model, state, nodes.shift(data.supports[0].moment[0]))
    assert found.means[0, 0] == pytest.approx(mean, abs=0.1 * sd)
    assert found.variances[0, 0] ** 0.5 == pytest.approx(sd, rel=0.1)


def gaussian_data(likelihood="gaussian"):
    rng = np.random.default_rng(3)
    x = np.linspace(0.0, 6.0, 14)[:, None]
    cells = mrgp.intervals(np.arange(0.0, 6.0, 1.5), np.arange(0.0, 6.0, 1.5) + 1.5)
    y = np.sin(x[:, 0]) + 0.1 * rng.standard_normal(14)
    z = np.sin(np.arange(0.75, 6.0, 1.5)) + 0.05 * rng.standard_normal(4)
    sites = mrgp.Observations(mrgp.points(x), y, name="sites", likelihood=likelihood)
    return mrgp.Dataset([sites, mrgp.Observations(cells, z, name="cells")])


@pytest.mark.parametrize("method", ["exact", "collapsed"])
def test_gaussian_values_through_sites_equal_the_closed_form(method):
    data = gaussian_data()
    weights = {"cells": 0.5}
    with jax.enable_x64(True):
        recipe = mrgp.MRGP(mrgp.RBF(), method=method)
        problem = mrgp.inference.problem.Problem.of(recipe, data, weights)
        linear = problem.build()
        loss = Settled(problem.objective(Sited(linear)))
        sited = loss.model(loss.objective.start)
        exact = float(linear.log_evidence(problem.records))
        assert float(sited.log_evidence(problem.records)) == pytest.approx(exact, abs=1e-6)
        at = mrgp.points([[0.3], [7.0]]).shift(problem.scaling.centre)
        one = predicted(linear, conditioned(linear, problem.records), at)
        two = predicted(sited, conditioned(sited, problem.records), at)
    np.testing.assert_allclose(one.means, two.means, atol=1e-6)
    np.testing.assert_allclose(one.variances, two.variances, atol=1e-6)


RNG = np.random.default_rng(0)
LOWER = np.arange(7.0)
OWN = np.sort(RNG.uniform(0.0, 7.0, (7, 3)), 1)[:, :, None]
SHARES = RNG.dirichlet(np.ones(3), 7)
ONE = (mrgp.Matern32(1.5), OWN[:, 0], mrgp.points([[0.3], [5.0]]))
PLACED = {
    # Inducing inputs at every node make q that of all values; smooth kernels need fewer.
    "points": (mrgp.points(OWN[:, 0]), *ONE),
    "nodes": (mrgp.nodes(OWN, SHARES), ONE[0], OWN.reshape(-1, 1), ONE[2]),
    "boxes": (
        mrgp.intervals(LOWER, LOWER + 1),
        mrgp.RBF(1.5),
        np.linspace(-0.5, 7.5, 16)[:, None],
        mrgp.intervals([0.5, 2.0], [3.0, 2.7]),
    ),
}


@pytest.mark.parametrize("case", rest_thorough(PLACED, "boxes"))
def test_gaussian_values_through_a_link_that_is_none_equal_the_closed_form(case):
    """Linked with the identity, over nodes of regions: one step lands on the exact posterior."""
    regions, kernel, places, at = PLACED[case]
    y = np.sin(LOWER / 2) + 0.1 * np.random.default_rng(3).standard_normal(7)
    data = mrgp.Dataset([mrgp.Observations(regions, y)])
    with jax.enable_x64(True):
        problem = mrgp.inference.problem.Problem.of(mrgp.MRGP(kernel, method="exact"), data)
        linear, centre = problem.build(), problem.scaling.centre
        model = Linked(
            linear.solver.kernels,
            mrgp.parameters.fixed(places - np.asarray(centre)),
            linear.readout,
            linear.noise,
            "identity",
            (),
            linear.processes,
            linear.inputs,
            rule=mrgp.GaussLegendre(5),
        )
        loss = Settled(problem.objective(model))
        found = loss.model(loss.objective.start)
        exact = float(linear.log_evidence(problem.records))
        assert float(found.log_evidence(problem.records)) == pytest.approx(exact, abs=1e-6)
        one = predicted(linear, conditioned(linear, problem.records), at.shift(centre))
        two = predicted(found, conditioned(found, problem.records), at.shift(centre))
    np.testing.assert_allclose(one.means, two.means, atol=1e-6)
    np.testing.assert_allclose(one.variances, two.variances, atol=1e-6)


def test_slopes_of_the_bound_equal_finite_differences():
    rng = np.random.default_rng(0)
    cells = mrgp.boxes(np.arange(0.0, 8.0)[:, None], np.arange(1.0, 9.0)[:, None])
    counts = mrgp.Observations(cells, rng.poisson(3.0, 8), likelihood=mrgp.NegativeBinomial())
    with jax.enable_x64(True):
        problem = mrgp.inference.problem.Problem.of(mrgp.MRGP(mrgp.RBF()), mrgp.Dataset([counts]))
        loss = Settled(problem.objective())
        start = loss.objective.start
        slope = jax.tree.leaves(loss(start)[1])
        leaves, shape = jax.tree.flatten(start)
        for i, leaf in enumerate(leaves):
            h = 1e-3
            moved = [
                float(
                    loss(jax.tree.unflatten(shape, [*leaves[:i], leaf + s * h, *leaves[i + 1 :]]))[
                        0
                    ]
                )
                for s in (1, -1)
            ]
            by_hand = (moved[0] - moved[1]) / (2 * h)
            assert float(np.sum(slope[i])) == pytest.approx(by_hand, rel=0.02, abs=2e-4)


def seen_by(name):
    rng = np.random.default_rng(0)
    x = np.arange(8.0)[:, None]
    cells, y = mrgp.boxes(x, x + 1), np.exp(rng.normal(0.5, 0.6, 8))
    return {
        "negative binomial": (cells, rng.poisson(3.0, 8), {"likelihood": "negative_binomial"}),
        "log-normal below a limit": (cells, y, {"likelihood": "log_normal", "limit": 1.2}),
        "gaussian below a limit": (cells, y, {"limit": 1.2}),
        "outliers between limits": (
            mrgp.points(x),
            y,
            {"likelihood": "student_t", "limit": 1.2, "upper_limit": 2.5},
        ),
    }[name]


SLOPED = ("log-normal below a limit", "outliers between limits", "negative binomial")


@pytest.mark.parametrize("name", rest_thorough([*SLOPED, "gaussian below a limit"], *SLOPED[:2]))
def test_slopes_of_the_bound_by_parameters_equal_finite_differences(name):
    """With the posterior held where it settled, over regions and points, tails included."""
    support, y, given = seen_by(name)
    data = mrgp.Dataset([mrgp.Observations(support, y, **given)])
    with jax.enable_x64(True):
        problem = mrgp.inference.problem.Problem.of(mrgp.MRGP(mrgp.RBF(1.5)), data)
        loss = Settled(problem.objective())
        bare = loss.objective
        frozen = bare.frozen.with_approximation(loss.model(bare.start).approximation)
        bound = jax.jit(dataclasses.replace(bare, frozen=frozen))
        slope = jax.tree.leaves(jax.jit(jax.grad(bound))(bare.start))
        leaves, shape = jax.tree.flatten(bare.start)
        # Sites of outliers have values of millions, whose rounding small steps would see.
        step = 1e-2 if name.startswith("outliers") else 1e-3
        assert len(leaves) >= 3 - (name == "negative binomial")
        for i, leaf in enumerate(leaves):
            by = [[*leaves[:i], leaf + k * step, *leaves[i + 1 :]] for k in (1, -1, 2, -2)]
            ahead, behind, far, back = (float(bound(jax.tree.unflatten(shape, b))) for b in by)
            by_hand = (8 * (ahead - behind) - (far - back)) / (12 * step)
            assert float(np.sum(slope[i])) == pytest.approx(by_hand, rel=1e-5, abs=1e-5)


def test_variances_that_counts_leave_open_are_expected_and_not_most_likely_ones():
    """With one parameter, by the second difference of the bound about the best one."""
    rng = np.random.default_rng(0)
    cells = mrgp.intervals(np.arange(12.0), np.arange(12.0) + 1)
    data = mrgp.Dataset([mrgp.Observations(cells, rng.poisson(1.5, 12), likelihood="poisson")])
    recipe = mrgp.MRGP(mrgp.RBF(mrgp.fixed(2.0)), mean="zero")
    found = float(mrgp.fit(recipe, data, progress=None).parameters()["kernel.variance"])
    with jax.enable_x64(True):
        loss = Settled(mrgp.inference.problem.Problem.of(recipe, data).objective())
        (leaf,), tree = jax.tree.flatten(loss.objective.start)
        grid = np.linspace(-3.0, 3.0, 61)
        values = [float(loss(jax.tree.unflatten(tree, [leaf + g]))[0]) * 12 for g in grid]
    at = int(np.argmin(values))
    left, middle, right = values[at - 1 : at + 2]
    curvature = (left - 2 * middle + right) / 0.01
    best = grid[at] - 0.05 * (right - left) / (left - 2 * middle + right)
    scale = float(loss.objective.model(loss.objective.start).kernels[0].variance.value)
    assert np.log(found / scale) == pytest.approx(best + 0.5 / curvature, abs=0.03)
    assert 0.5 / curvature > 0.1


def test_an_outlier_does_not_move_the_field_and_new_values_have_heavy_tails():
    x = np.arange(30.0)[:, None]
    y = np.sin(x[:, 0] / 5)
    y[15] = 40.0
    seen = mrgp.Observations(mrgp.points(x), y, likelihood=mrgp.StudentT(), name="sensor")
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), progress=None)
    at = mrgp.points([[15.0]])
    assert mrgp.predict(fit, at).mean[0] == pytest.approx(np.sin(3.0), abs=0.1)
    new = mrgp.predict(fit, at, noise=True)
    noise = float(fit.parameters()["noise_variance[sensor]"])
    assert new.variance[0] > mrgp.predict(fit, at).variance[0] + 1.9 * noise
    assert np.isfinite(new.log_density(np.array([40.0]))).all()


def test_censored_values_keep_predictions_from_being_too_high(tmp_path):
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 10.0, 60)[:, None]
    truth = 1.2 + np.sin(x[:, 0])
    y = truth + 0.1 * rng.standard_normal(60)
    limit = 0.8
    fits = {}
    for name, values in (("dropped", np.where(y > limit, y, np.nan)), ("censored", y)):
        given = {"limit": limit} if name == "censored" else {}
        seen = mrgp.Observations(mrgp.points(x), values, **given)
        fits[name] = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), progress=None)
    low = truth < limit
    above = {
        name: np.mean(mrgp.predict(fit, mrgp.points(x[low])).mean - truth[low])
        for name, fit in fits.items()
    }
    assert abs(above["censored"]) < 0.5 * abs(above["dropped"])
    mrgp.save(fits["censored"], tmp_path / "fit")
    again = mrgp.predict(mrgp.load(tmp_path / "fit"), mrgp.points(x[:3]))
    np.testing.assert_allclose(again.mean, mrgp.predict(fits["censored"], mrgp.points(x[:3])).mean)


@pytest.fixture(scope="module")
def births():
    rng = np.random.default_rng(2)
    lower = np.arange(0.0, 20.0)[:, None]
    births = rng.uniform(50.0, 90.0, 20)
    share = 0.3 + 0.2 * np.sin(lower[:, 0] / 3)
    cells = mrgp.boxes(lower, lower + 1)
    cases = mrgp.Observations(
        cells, rng.poisson(births * share), name="cases", likelihood=mrgp.Poisson(), exposure=births
    )
    rates = mrgp.Observations(
        mrgp.points(lower + 0.5),
        share * np.exp(0.1 * rng.standard_normal(20)) * 1.5,
        name="clinics",
        likelihood="log_normal",
    )
    return mrgp.Dataset([cases, rates])


def test_counts_and_rates_share_a_field_and_a_ratio_is_learned(births, tmp_path):
    fit = mrgp.fit(mrgp.MRGP(bias="ratio"), births, progress=None)
    assert float(fit.parameters()["ratio[clinics]"]) == pytest.approx(1.5, rel=0.15)
    cells = births["cases"].support
    field, rate = mrgp.predict(fit, cells), mrgp.predict(fit, cells, source="clinics")
    np.testing.assert_allclose(
        rate.mean / field.mean, float(fit.parameters()["ratio[clinics]"]), rtol=1e-6
    )
    alone = mrgp.predict(fit, cells[3])
    assert alone.mean[0] == pytest.approx(field.mean[3], rel=1e-9)
    halves = mrgp.boxes([[3.0], [3.5]], [[3.5], [4.0]])
    assert mrgp.predict(fit, halves).mean.mean() == pytest.approx(field.mean[3], rel=1e-5)
    new = mrgp.predict(fit, cells, source="cases", noise=True, exposure=births["cases"].exposure)
    assert mrgp.evaluate(new, births["cases"].y)["coverage_95"] >= 0.85
    joint = mrgp.predict(fit, cells, joint=True)
    np.testing.assert_allclose(joint.variance, field.variance, rtol=1e-6)
    assert joint.sample(0, 5).min() > 0
    mrgp.save(fit, tmp_path / "fit")
    again = mrgp.predict(mrgp.load(tmp_path / "fit"), cells)
    np.testing.assert_allclose(again.mean, field.mean, rtol=1e-12)
    other = fit.condition(births)
    np.testing.assert_allclose(mrgp.predict(other, cells).mean, field.mean, rtol=1e-3)
    assert "log link" in fit.summary()


@pytest.mark.parametrize("link", ["log", "square"])
def test_gaussian_values_of_a_positive_field(link):
    x = np.linspace(0.0, 6.0, 20)[:, None]
    y = 1.0 + np.sin(x[:, 0]) + 0.05 * np.random.default_rng(0).standard_normal(20)
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), y)])
    fit = mrgp.fit(mrgp.MRGP(link=link), data, progress=None)
    pred = mrgp.predict(fit, mrgp.points(x))
    assert np.all(pred.interval(0.95)[0] > 0)
    assert np.sqrt(np.mean((pred.mean - 1 - np.sin(x[:, 0])) ** 2)) < 0.1


def test_shares_of_trials():
    rng = np.random.default_rng(1)
    x = np.linspace(0.0, 6.0, 25)[:, None]
    share = 0.5 + 0.3 * np.sin(x[:, 0])
    trials = rng.integers(10, 40, 25)
    seen = mrgp.Observations(
        mrgp.points(x), rng.binomial(trials, share), likelihood=mrgp.Binomial(), trials=trials
    )
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), progress=None)
    pred = mrgp.predict(fit, mrgp.points(x))
    assert np.sqrt(np.mean((pred.mean - share) ** 2)) < 0.1
    low, high = pred.interval(0.95)
    assert low.min() > 0
    assert high.max() < 1
    new = mrgp.predict(fit, mrgp.points(x), noise=True, trials=trials)
    assert new.sample(0, 20).max() <= 40
    assert mrgp.evaluate(new, seen.y)["coverage_95"] > 0.85
    with pytest.raises(ValueError, match=r"new successes of 'source' need trials="):
        mrgp.predict(fit, mrgp.points(x), noise=True)


def test_nothing_was_ever_seen():
    cells = mrgp.intervals(np.arange(6.0), np.arange(6.0) + 1)
    zeros = mrgp.Observations(cells, np.zeros(6), likelihood=mrgp.Poisson(), exposure=10.0)
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([zeros]), progress=None, optimiser=QUICK)
    rate = mrgp.predict(fit, cells).mean
    assert np.all((rate > 0) & (rate < 0.1))


POINTS = mrgp.points([[0.0], [1.0], [2.0]])
BOXES = mrgp.intervals([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])


def data_of(support=POINTS, y=(1, 2, 0), **given):
    given = {"likelihood": mrgp.Poisson(), "name": "s"} | given
    return mrgp.Dataset([mrgp.Observations(support, list(y), **given)])


REFUSED = {
    "identity": (mrgp.MRGP(link="identity"), {}, "'poisson' goes with link='log' or 'square'"),
    "probit": (mrgp.MRGP(link="probit"), {}, "'poisson' goes with link='log' or 'square'"),
    "offset": (mrgp.MRGP(bias="offset"), {}, 'bias="ratio"'),
    "collapsed": (mrgp.MRGP(method="collapsed"), {}, "no closed form for link='log'"),
    "markov": (mrgp.MRGP(method="markov"), {"support": BOXES}, "no closed form for link='log'"),
    "minibatches": (mrgp.MRGP(method="svgp"), {}, "minibatches of Gaussian values, and link='log'"),
    "minibatches of outliers": (
        mrgp.MRGP(method="svgp"),
        {"likelihood": mrgp.StudentT()},
        "method='svgp' takes Gaussian values",
    ),
    "markov at points": (
        mrgp.MRGP(method="markov"),
        {"likelihood": mrgp.StudentT()},
        "method='markov' takes Gaussian values",
    ),
    "network by markov": (
        mrgp.MRGPRN(kernel_w="constant", method="markov"),
        {},
        "no closed form for link='log'",
    ),
    "network of varying weights": (
        mrgp.MRGPRN(link="log"),
        {"likelihood": "gaussian"},
        "link='log' is for constant weights",
    ),
    "network with outliers": (
        mrgp.MRGPRN(kernel_w="constant"),
        {"likelihood": mrgp.StudentT()},
        "MRGPRN cannot be fitted to it: the likelihood 'student_t'",
    ),
    "cascade": (
        mrgp.Cascade(chain=["s"]),
        {"exposure": 2.0},
        "Cascade cannot be fitted to it: the likelihood 'poisson'",
    ),
    "white": (mrgp.MRGP(mrgp.RBF() + mrgp.White()), {"support": BOXES}, "cannot have White"),
    "contrast": (
        mrgp.MRGP(),
        {"support": mrgp.nodes([[[0.0], [1.0]]], [[1.0, -0.5]]), "y": [1]},
        "negative weights",
    ),
    "gaussian with exposure": (
        mrgp.MRGP(),
        {"likelihood": "gaussian", "exposure": 2.0},
        r"exposure= multiplies a positive field",
    ),
    "network": (mrgp.MRGPRN(), {}, "MRGPRN cannot be fitted to it: the likelihood 'poisson'"),
    "deep": (
        mrgp.MRDGP(),
        {},
        "MRDGP cannot be fitted to it: the likelihood 'poisson' .* layers explain .* bias=",
    ),
    "censored network": (
        mrgp.MRGPRN(),
        {"likelihood": "gaussian", "limit": 1.0},
        "values at or beyond their limit",
    ),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_is_not_served_is_refused_with_a_sentence(case):
    recipe, given, text = REFUSED[case]
    with pytest.raises(ValueError, match=f"source 's'.*{text}|MRGP(RN)?: .*{text}"):
        mrgp.fit(recipe, data_of(**given), progress=None)


def test_one_task_of_a_network_behind_a_link_is_one_field():
    rng = np.random.default_rng(0)
    cells = mrgp.intervals(np.arange(8.0), np.arange(8.0) + 1)
    data = data_of(cells, rng.poisson(4.0, 8), exposure=2.0)
    kernel = mrgp.RBF(lengthscale=mrgp.fixed(2.0))
    places = np.linspace(0.0, 8.0, 9)[:, None]
    alone = mrgp.MRGP(kernel, inducing=places)
    network = mrgp.MRGPRN(1, kernel, "constant", inducing_f=places)
    one, two = settled(alone, data), settled(network, data)
    assert two[2] == pytest.approx(one[2], abs=1e-6)
    found = [predicted(*model[:2], POINTS) for model in (one, two)]
    np.testing.assert_allclose(found[0].means, found[1].means, rtol=1e-5)
    np.testing.assert_allclose(found[0].variances, found[1].variances, rtol=1e-5)


def test_counts_of_two_tasks_share_a_field_behind_a_log_link(tmp_path):
    rng = np.random.default_rng(1)
    lower = np.arange(0.0, 24.0)[:, None]
    cells, rate = mrgp.boxes(lower, lower + 1), np.exp(np.sin(lower[:, 0] / 3))
    many = mrgp.Observations(
        cells, rng.poisson(40 * rate), task="flu", name="s", likelihood="poisson", exposure=20.0
    )
    few = mrgp.Observations(
        cells[::6], rng.poisson(6 * rate[::6]), task="rare", name="s", likelihood="poisson"
    )
    recipe = mrgp.MRGPRN(1, mrgp.RBF(), "constant")
    fit = mrgp.fit(recipe, mrgp.Dataset([many, few]), progress=None)
    assert fit.status.ok
    flu, rare = (mrgp.predict(fit, cells, task=task) for task in ("flu", "rare"))
    assert np.sqrt(np.mean((flu.mean - 2 * rate) ** 2)) < 0.6
    # What the common task shows of the field holds for the rare one between its few cells.
    assert np.corrcoef(np.log(rare.mean), np.log(rate))[0, 1] > 0.95
    assert np.all(rare.interval(0.95)[0] > 0)
    new = mrgp.predict(fit, cells, task="flu", source="s", noise=True, exposure=20.0)
    assert new.sample(0, 3).dtype == np.float64
    assert np.all(new.sample(0, 3) % 1 == 0)
    mrgp.save(fit, tmp_path / "fit")
    again = mrgp.predict(mrgp.load(tmp_path / "fit"), cells, task="rare")
    np.testing.assert_allclose(again.mean, rare.mean, rtol=1e-12)


def test_stochastic_steps_are_refused():
    with pytest.raises(ValueError, match=r"fitted by mrgp\.LBFGS"):
        mrgp.fit(mrgp.MRGP(), data_of(), optimiser=mrgp.Adam(steps=10), progress=None)


WITHOUT_RULE = {
    "counts": (mrgp.MRGP(), {}, "source 's', .* values of the likelihood 'poisson'"),
    "outliers": (mrgp.MRGP(), {"likelihood": "student_t"}, "values of the likelihood 'student_t'"),
    "limits": (
        mrgp.MRGP(),
        {"likelihood": "gaussian", "limit": 1.0},
        "source 's', .* values at or beyond their limit",
    ),
    "link": (mrgp.MRGP(link="log"), {"likelihood": "gaussian"}, "MRGP: .* field behind a link"),
}


@pytest.mark.parametrize("case", list(WITHOUT_RULE))
def test_rules_for_weights_say_which_values_have_none(case):
    recipe, given, text = WITHOUT_RULE[case]
    for ask in (
        lambda data: mrgp.composite_weights(recipe, data, progress=None),
        lambda data: mrgp.fit(recipe, data, weights="auto", progress=None),
    ):
        with pytest.raises(ValueError, match=f"{text} have no rule .* give weights="):
            ask(data_of(**given))


def test_frames_of_fields_behind_a_link_are_not_shifted():
    data = data_of()
    assert mrgp.MRGP().frame(data).scaling.offset[0] == 0
    assert Frame.of(data).scaling.offset[0] == 1
    assert mrgp.CenterPoint(mrgp.MRGP()).frame(data).scaling.offset[0] == 0


def test_with_nothing_to_train_counts_are_conditioned_on():
    x = np.arange(12.0)[:, None]
    held = mrgp.RBF(lengthscale=mrgp.fixed(2.0), variance=mrgp.fixed(0.5))
    seen = mrgp.Observations(mrgp.points(x), np.arange(12) % 4, likelihood=mrgp.Poisson())
    fit = mrgp.fit(mrgp.MRGP(held, mean="zero"), mrgp.Dataset([seen]), progress=None)
    assert np.isfinite(mrgp.predict(fit, mrgp.points(x)).mean).all()
