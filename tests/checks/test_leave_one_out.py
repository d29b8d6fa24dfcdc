"""Leave-one-out in closed form, against conditioning again without each value."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

import mrgp
import zoo
from groups import rest_thorough
from mrgp._types import to_numpy
from mrgp.checks.residuals import check_residuals
from mrgp.gp import prior_covariance
from mrgp.models import conditioned
from mrgp.supports import Axis, place_in_words
from reference import gaussian
from reference import leave_one_out as slow
from shorthand import as_arrays, build_objective, linear_of

QUICK = mrgp.LBFGS(max_steps=8, starts=1, candidates=0)


def mixed_data():
    """Points with gaps, totals over boxes, a biased source, and one of known noise."""
    rng = np.random.default_rng(0)
    x, lower, flat = (
        rng.uniform(0, 4, (12, 2)),
        rng.uniform(0, 3, (7, 2)),
        rng.uniform(0, 3, (6, 2)),
    )
    field = lambda p: 10 + np.sin(p[..., 0]) * np.cos(p[..., 1])  # noqa: E731
    y = field(x) + 0.1 * rng.standard_normal(12)
    y[[2, 7]] = np.nan
    totals = mrgp.boxes(lower, lower + [0.5, 1.0], kind="sum")
    sides = mrgp.boxes(flat, flat + [1.0, 0.0])
    noise = rng.uniform(0.01, 0.05, 6)
    z = 2 + 1.3 * field(flat) + np.sqrt(noise) * rng.standard_normal(6)
    z[0] = np.nan
    return mrgp.Dataset(
        [
            mrgp.Observations(mrgp.points(x), y, task="no2", name="sensors", units="ug/m3"),
            mrgp.Observations(totals, 0.5 * field(lower + 0.3), task="no2", name="totals"),
            mrgp.Observations(sides, z, task="no2", name="hours", noise_variance=noise),
        ]
    )


def reference_of(fit, data, weights):
    """Return prior covariance, mean, values, noise and weight by slow sums, in user's units."""
    p = fit.parameters()
    rows, mean, ratios, noise, weight = [], [], [], [], []
    for o in data.dropna():
        parts = gaussian.functionals(o.support)
        ratio = p.get(f"ratio[{o.name}]", 1.0)
        offset = p.get(f"offset[{o.name}]", 0.0)
        rows += parts
        mean.append((offset + ratio * p["mean.constant"]) * gaussian.totals(parts))
        ratios.append(np.full(len(o), ratio))
        noise.append(p.get(f"noise_variance[{o.name}]", o.noise_variance) * np.ones(len(o)))
        weight.append(np.full(len(o), weights.get(o.name, 1.0)))
    mean, ratios, noise, weight = map(np.concatenate, (mean, ratios, noise, weight))
    kernel = lambda x, z: gaussian.rbf(x, z, p["kernel.lengthscale"], p["kernel.variance"])  # noqa: E731
    prior = np.outer(ratios, ratios) * gaussian.covariance(kernel, rows, rows)
    return prior, mean, np.concatenate([o.y for o in data.dropna()]), noise, weight


ALL = (("sensors", 0.5), ("hours", 0.25), ("totals", 2.0))


@functools.cache
def fitted(bias, weights):
    # The reference lays twelve nodes along a side: too few for a very short lengthscale.
    held = mrgp.RBF(lengthscale=mrgp.fixed(np.array([1.0, 0.7])))
    model = mrgp.MRGP(held, bias=bias, priors=False)
    return mrgp.fit(model, mixed_data(), weights=dict(weights), optimiser=QUICK)


@pytest.mark.parametrize(
    ("bias", "weights"),
    rest_thorough([("none", ()), ("affine", ()), ("affine", ALL)], 2),
)
def test_it_equals_conditioning_without_each_value(bias, weights):
    data, fit = mixed_data(), fitted(bias, weights)
    prior, mean, y, noise, weight = reference_of(fit, data, dict(weights))
    expected, variance = slow.leave_one_out(prior, y - mean, noise, weight)
    loo = fit.leave_one_out()
    np.testing.assert_allclose(loo.y, y, rtol=1e-10)
    np.testing.assert_allclose(loo.mean, mean + expected, rtol=1e-8)
    np.testing.assert_allclose(loo.variance, variance, rtol=1e-8)
    np.testing.assert_allclose(loo.residuals, (y - mean - expected) / np.sqrt(variance), rtol=1e-6)


@pytest.mark.thorough
def test_it_equals_the_library_without_one_value_at_the_same_parameters():
    data = mixed_data()
    fit = mrgp.fit(mrgp.MRGP(bias="affine"), data, optimiser=QUICK)
    loo = fit.leave_one_out()["sensors"]
    rows = np.flatnonzero(data["sensors"].observed)
    for i in (0, 4, 9):
        y = data["sensors"].y.copy()
        y[rows[i]] = np.nan
        fewer = mrgp.Dataset([data["sensors"].replace(y=y), data["totals"], data["hours"]])
        with jax.enable_x64(True):
            records = build_objective(fit.model, fewer, fit.scaling, None).records
            state = conditioned(as_arrays(fit.model), records)
            again = dataclasses.replace(fit, state=to_numpy(state))
        at = data["sensors"].support[rows[i : i + 1]]
        pred = mrgp.predict(again, at, source="sensors", noise=True)
        np.testing.assert_allclose(loo.mean[i], pred.mean[0], rtol=1e-9)
        np.testing.assert_allclose(loo.variance[i], pred.variance[0], rtol=1e-8)


def test_sources_keep_their_places_and_missing_values_are_left_out():
    data, loo = mixed_data(), fitted("affine", ALL).leave_one_out()
    assert [len(part) for part in loo] == [10, 7, 5]
    assert loo["hours"] is loo["hours", "no2"]
    for o in data:
        seen = o.dropna()
        np.testing.assert_allclose(loo[o.name].y, seen.y, rtol=1e-12)
        np.testing.assert_allclose(
            loo[o.name].support.bounds[0], seen.support.bounds[0], atol=1e-12
        )
        assert loo[o.name].support.input_names == ("x1", "x2")
    with pytest.raises(KeyError, match="'laqn' has no values; the processes are"):
        loo["laqn"]


def test_scores_are_those_of_evaluate():
    loo = fitted("affine", ALL).leave_one_out()
    scores = loo.scores()
    assert list(scores) == ["sensors", "totals", "hours", "overall"]
    assert scores["sensors"] == mrgp.evaluate(loo["sensors"].prediction(), loo["sensors"].y)
    assert scores["overall"]["n"] == len(loo) == 22
    squares = sum(
        scores[name]["mse"] * scores[name]["n"] for name in ("sensors", "totals", "hours")
    )
    assert scores["overall"]["mse"] == pytest.approx(squares / 22)
    density = -0.5 * (loo.residuals**2 + np.log(2 * np.pi * loo.variance))
    assert scores["overall"]["nlpd"] == pytest.approx(-density.mean())


def test_several_tasks_of_constant_weights():
    rng = np.random.default_rng(1)
    x = np.linspace(0, 5, 14)[:, None]
    both = [
        mrgp.Observations(
            mrgp.points(x),
            a * np.sin(x[:, 0]) + 5 + 0.1 * rng.standard_normal(14),
            task=t,
            name="s",
        )
        for t, a in (("no2", 1.0), ("o3", -2.0))
    ]
    data = mrgp.Dataset(both)
    weights = {("s", "o3"): 0.5}
    fit = mrgp.fit(
        mrgp.MRGPRN(latents=1, kernel_w="constant"), data, weights=weights, optimiser=QUICK
    )
    loo = fit.leave_one_out()
    with jax.enable_x64(True):
        records = build_objective(fit.model, data, fit.scaling, weights).records
        kernels, read = linear_of(as_arrays(fit.model), records)
        prior = np.asarray(prior_covariance(kernels, read, fit.model.solver.rule))
        residual, effective = np.asarray(read.residual), np.asarray(read.noise)
    weight = np.repeat([1.0, 0.5], 14)
    noise = effective * weight
    expected, variance = slow.leave_one_out(prior, residual, noise, weight)
    np.testing.assert_allclose(loo.y - loo.mean, residual - expected, atol=1e-8)
    np.testing.assert_allclose(loo.variance, variance, rtol=1e-8)
    assert loo.names == ("s, no2", "s, o3")
    with pytest.raises(KeyError, match="'s' has several tasks"):
        loo["s"]


def test_errors_that_sources_share():
    x = np.arange(12.0)[:, None]
    rng = np.random.default_rng(2)
    fine = np.sin(x[:, 0] / 2) + 0.2 * rng.standard_normal(12)
    data = mrgp.Dataset(
        [
            mrgp.Observations(mrgp.points(x), fine, name="fine"),
            mrgp.Observations(
                mrgp.nodes(x.reshape(6, 2, 1)), fine.reshape(6, 2).mean(1), name="mean"
            ),
        ]
    )
    fit = mrgp.fit(mrgp.Dependent(averages={"mean": "fine"}), data, optimiser=QUICK)
    with jax.enable_x64(True):
        records = build_objective(fit.model, data, fit.scaling, None).records
        kernels, read = linear_of(fit.model, records)
        total = np.asarray(prior_covariance(kernels, read, fit.model.solver.rule))
        total = total + np.asarray(read.shared) + np.diag(read.noise)
        residual = np.asarray(read.residual)
    loo = fit.leave_one_out()
    for i in range(18):
        others = np.arange(18) != i
        solved = np.linalg.solve(total[np.ix_(others, others)], total[others, i])
        variance = total[i, i] - total[i, others] @ solved
        assert loo.variance[i] == pytest.approx(variance, rel=1e-5)
        expected = residual[others] @ solved
        assert (loo.y - loo.mean)[i] == pytest.approx(residual[i] - expected, abs=1e-5)


def simple(n=40, seed=0, **options):
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 8, n)[:, None]
    y = 5 + np.sin(x[:, 0]) + 0.2 * rng.standard_normal(n)
    return mrgp.Dataset(
        [mrgp.Observations(mrgp.points(x, inputs="day"), y, name="laqn", **options)]
    )


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("collapsed", r"a fit of MRGP, sparse: 8 inducing inputs, .*"),
        ("deep", "a fit of MRDGP, which is not one Gaussian"),
    ],
)
def test_fits_that_are_not_exact_say_what_to_do(model, text):
    with pytest.raises(ValueError, match=rf'{text}. Fit with method="exact" .* mrgp.compare'):
        zoo.fit(model).leave_one_out()


def test_a_posterior_that_was_widened_is_refused():
    data = simple(20)
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK)
    wider = mrgp.adjust_curvature(fit, data, clusters="observation")
    with pytest.raises(ValueError, match="adjust_curvature has widened this posterior"):
        wider.leave_one_out()


def test_it_survives_a_checkpoint(tmp_path):
    fit = mrgp.fit(mrgp.MRGP(), simple(20), optimiser=QUICK)
    mrgp.save(fit, tmp_path / "fit.mrgp")
    again = mrgp.load(tmp_path / "fit.mrgp").leave_one_out()
    np.testing.assert_array_equal(again.mean, fit.leave_one_out().mean)


def test_the_covariance_of_residuals_is_that_of_data_from_the_model():
    x = mrgp.points(np.linspace(0, 6, 15)[:, None])
    rng = np.random.default_rng(3)
    data = mrgp.Dataset([mrgp.Observations(x, rng.standard_normal(15))])
    fit = mrgp.fit(mrgp.MRGP(mrgp.RBF(lengthscale=1.0), mean="zero"), data, optimiser=QUICK)
    loo = fit.leave_one_out()
    total = loo.ties
    draws = rng.standard_normal((20_000, 15)) @ np.linalg.cholesky(total).T
    inverse = np.linalg.inv(total)
    residuals = draws @ inverse / np.sqrt(np.diag(inverse))
    np.testing.assert_allclose(loo.covariance, np.cov(residuals.T), atol=0.04)
    checks = [check_residuals(row, loo.covariance, total) for row in residuals[:2000]]
    for name in ("mean_z", "spread_z", "neighbours_z"):
        scores = np.array([getattr(check, name) for check in checks])
        assert abs(scores.mean()) < 0.15
        assert scores.std() == pytest.approx(1.0, abs=0.2)
    assert np.mean([check.beyond for check in checks]) == pytest.approx(0.05, abs=0.01)


def test_the_summary_reads_well_and_finds_an_outlier():
    data = simple(units="ug/m3")
    y = data["laqn"].y.copy()
    y[17] += 3.0
    fit = mrgp.fit(mrgp.MRGP(), simple(), optimiser=QUICK)
    with_outlier = mrgp.Dataset([data["laqn"].replace(y=y)])
    loo = fit.condition(with_outlier).leave_one_out()
    worst = loo.worst(1)[0]
    assert (worst.source, worst.row, worst.place) == (
        "laqn",
        17,
        f"day {data['laqn'].support.x[17, 0]:.6g}",
    )
    assert worst.value == pytest.approx(y[17])
    assert worst.residual > 8
    text = loo.summary()
    assert "laqn: 40 values, rmse" in text
    assert "ug/m3" in text
    assert "values miss by more than the model says" in text
    assert " far outside, which is rare: look for faults" in text
    assert "farthest from what the others say:\n    laqn, day 3.48718" in text
    assert len(text.splitlines()) == 5 + 1 + 5
    assert repr(loo).startswith("LeaveOneOut(laqn: 40 values; residual sd")


def test_neighbours_that_miss_together_are_told():
    n = 60
    ties = np.exp(-np.abs(np.subtract.outer(np.arange(n), np.arange(n))) / 3.0)
    smooth = np.sin(np.arange(n) / 5.0) * np.sqrt(2)
    check = check_residuals(smooth, np.eye(n), ties)
    assert check.neighbours > 0.9
    assert check.verdicts == [
        "neighbours miss together: a trend, an input or a shorter scale is missing"
    ]
    turns = check_residuals(np.resize([1.0, -1.0], n), np.eye(n), ties)
    assert turns.verdicts == [
        "neighbours miss in turns: the field is smoother than the model has it"
    ]
    high = check_residuals(np.resize([2.0, 0.0, 1.0], n), np.eye(n), ties)
    assert high.verdicts[0].startswith("values lie above what the others say")
    few = check_residuals(np.ones(3), np.eye(3), ties[:3, :3])
    assert few.verdicts == ["too few values (3) to judge"]


def test_places_are_dates_and_degrees_where_they_were():
    hours = Axis("time", 0.0, 3600.0, "h")
    east = Axis("longitude", 10.0, 0.01, "km")
    support = mrgp.points([[36.5, 2.0, 7.0]], inputs=("when", "lon", "height"))
    support = dataclasses.replace(support, axes=(hours, east, None))
    text = "when 1970-01-02T12:30:00 UTC, lon 10.02000, height 7"
    assert place_in_words(support, 0) == text


def test_constant_values_have_an_account_too():
    x = np.arange(40.0)[:, None]
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), np.full(40, 3.0), name="flat")])
    text = mrgp.fit(mrgp.MRGP(), data, progress=None).leave_one_out().summary()
    assert "40" in text
    assert "nan" not in text
