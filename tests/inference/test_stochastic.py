"""Minibatch fits: the bound, natural gradients, batches, resuming."""

import dataclasses

import jax
import numpy as np
import pandas as pd
import pytest

import mrgp
from groups import rest_thorough
from mrgp.gp import Moments, Natural
from mrgp.inference.ascent import _shares
from mrgp.inference.batches import Batches, batch_sizes
from mrgp.inference.stochastic import init, model_of, optimal_q, run_chunk
from mrgp.models import as_arrays
from mrgp.parameters import log_prior, unwrap
from reference import gaussian, variational

KERNEL = mrgp.RBF(lengthscale=1.3, variance=2.0)
WEIGHTS = {"sensors": 0.7}


def dataset(n=24, m=12, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, (n, 1))
    y = np.sin(x[:, 0]) + 0.1 * rng.standard_normal(n)
    y[3] = np.nan
    start = np.linspace(0, 9, m)
    z = (np.cos(start) - np.cos(start + 1)) + 0.05 * rng.standard_normal(m)
    sensors = mrgp.Observations(mrgp.points(x), y, name="sensors")
    means = mrgp.Observations(
        mrgp.intervals(start, start + 1), z, name="means", noise_variance=np.linspace(0.01, 0.1, m)
    )
    return mrgp.Dataset([sensors, means])


def svgp(**arguments):
    return mrgp.MRGP(KERNEL, inducing=9, method="svgp", bias="affine", **arguments)


def random_q(size, seed=1):
    rng = np.random.default_rng(seed)
    root = 0.3 * np.tril(rng.standard_normal((size, size))) + np.eye(size)
    return rng.standard_normal(size), root @ root.T


def natural(mean, cov):
    return as_arrays(Natural(np.linalg.solve(cov, mean), np.linalg.inv(cov)))


def rows_of(objective):
    """Return functionals, residuals, noise and weights of all rows, in NumPy."""
    model = unwrap(objective.model(objective.start))
    rows, residual, noise, weight = [], [], [], []
    for source in model.readings(objective.records).sources:
        rows += gaussian.functionals(source.support)
        residual.append(np.asarray(source.residual))
        noise.append(np.asarray(source.noise))
        weight.append(np.asarray(source.weight))
    return rows, *(np.concatenate(part) for part in (residual, noise, weight))


def test_the_bound_equals_the_sum_over_rows():
    objective = mrgp.objective(svgp(), dataset(), WEIGHTS)
    with jax.enable_x64(True):
        model = objective.model(objective.start)
        bare = unwrap(model)
        mean, cov = random_q(9)
        value = model.expected_log_likelihood(Moments(mean, cov), objective.records)
        z, lengthscale = np.asarray(bare.solver.locations), np.asarray(bare.kernel.lengthscale)
        _, divergence = natural(mean, cov).moments()
        divergence = float(divergence)
        rows = rows_of(objective)

    def kernel(x, w):
        return gaussian.rbf(x, w, lengthscale, 2.0)

    expected = variational.expected_log_likelihood(kernel, *rows, z, mean, cov)
    np.testing.assert_allclose(float(value), expected, rtol=1e-9)
    np.testing.assert_allclose(divergence, variational.divergence(mean, cov), rtol=1e-10)


def test_a_trained_q_and_its_natural_parameters_give_one_bound():
    objective = mrgp.objective(svgp(), dataset(), WEIGHTS)
    with jax.enable_x64(True):
        mean, cov = random_q(9)
        start = objective.start
        root = np.linalg.cholesky(cov) - np.eye(9)
        q = dataclasses.replace(
            start.q,
            mean=dataclasses.replace(start.q.mean, raw=mean),
            root=dataclasses.replace(start.q.root, raw=root),
        )
        value = objective(as_arrays(start.with_q(q)))
        model = objective.model(start)
        expected = model.expected_log_likelihood(Moments(mean, cov), objective.records) + log_prior(
            model
        )
    np.testing.assert_allclose(
        float(value), float(expected) - variational.divergence(mean, cov), rtol=1e-10
    )


@pytest.mark.parametrize("seed", rest_thorough([1, 2, 3], 0))
def test_one_unit_natural_step_from_anywhere_is_the_collapsed_optimum(seed):
    data = dataset()
    objective = mrgp.objective(svgp(), data, WEIGHTS)
    collapsed = mrgp.objective(
        mrgp.MRGP(KERNEL, inducing=9, method="collapsed", bias="affine"), data, WEIGHTS
    )
    with jax.enable_x64(True):
        mean, cov = random_q(9, seed)
        state = as_arrays(init(objective, mrgp.Adam(rate=1e-12)))
        state = dataclasses.replace(state, q=natural(mean, cov))
        moved, before = mrgp.step(objective, state)
        _, after = mrgp.step(objective, moved)
        best = optimal_q(objective, as_arrays(state)).q
        (found, _), (wanted, _) = moved.q.moments(), best.moments()
        highest = collapsed(collapsed.start)
    np.testing.assert_allclose(found.mean, wanted.mean, atol=1e-6)
    np.testing.assert_allclose(found.covariance, wanted.covariance, atol=1e-6)
    assert float(before) < float(after)
    np.testing.assert_allclose(float(after), float(highest), atol=1e-6)


@pytest.mark.parametrize("size", rest_thorough([6, 11], 0))
def test_the_mean_over_all_batches_is_the_full_bound(size):
    objective = mrgp.objective(svgp(), dataset(n=23 + 1, m=22), WEIGHTS)
    counts = [len(r) for r in objective.records]
    with jax.enable_x64(True):
        bound = jax.jit(objective)
        full = float(bound(objective.start))
        # Windows round the whole circle of rows take every row equally often.
        values = [
            float(bound(objective.start, tuple((i + np.arange(size)) % n for n in counts)))
            for i in range(counts[0] * counts[1])
        ]
    assert np.std(values) > 1.0
    np.testing.assert_allclose(np.mean(values), full, rtol=1e-10)


@pytest.mark.thorough
def test_svgp_collapsed_and_exact_agree_where_they_should():
    data = dataset()
    at_nodes = np.unique(
        np.concatenate([data["sensors"].support.x, np.linspace(0, 10, 41)[:, None]])
    )[:, None]
    fits = [
        mrgp.fit(mrgp.MRGP(method="exact"), data),
        mrgp.fit(mrgp.MRGP(method="collapsed", inducing=at_nodes), data),
        mrgp.fit(mrgp.MRGP(method="svgp", inducing=at_nodes), data),
        mrgp.fit(mrgp.MRGP(method="svgp", inducing=at_nodes), data, optimiser=mrgp.Adam(batch=8)),
    ]
    grid = mrgp.points(np.linspace(0.5, 9.5, 30)[:, None])
    exact, *sparse = [mrgp.predict(fit, grid) for fit in fits]
    for prediction, tolerance in zip(sparse, (2e-3, 5e-3, 5e-2), strict=True):
        np.testing.assert_allclose(prediction.mean, exact.mean, atol=tolerance)
        np.testing.assert_allclose(prediction.std, exact.std, atol=tolerance)
    np.testing.assert_allclose(fits[2].history[-1], fits[1].history[-1], atol=1e-2)
    assert fits[3].history[-1] > fits[1].history[-1] - 0.5


@pytest.mark.thorough
def test_with_nothing_else_to_train_svgp_is_collapsed():
    data = dataset().select("means")
    kernel = mrgp.RBF(lengthscale=mrgp.fixed(1.3), variance=mrgp.fixed(2.0))
    fits = [
        mrgp.fit(mrgp.MRGP(kernel, inducing=9, mean="zero", method=method), data)
        for method in ("svgp", "collapsed")
    ]
    a, b = (mrgp.predict(fit, mrgp.points([[1.0], [20.0]])) for fit in fits)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-12)
    np.testing.assert_allclose(a.variance, b.variance, atol=1e-12)
    assert fits[0].status.message == "nothing to train"
    np.testing.assert_allclose(fits[0].history, fits[1].history)


@pytest.mark.thorough
def test_adam_alone_trains_q_too():
    data = dataset()
    settings = mrgp.Adam(natural=False, steps=600, warm_start=False)
    fit = mrgp.fit(svgp(), data, optimiser=settings)
    collapsed = mrgp.fit(mrgp.MRGP(KERNEL, inducing=9, method="collapsed", bias="affine"), data)
    assert fit.history[0] < fit.history[-1] <= collapsed.history[-1] + 1e-6


@pytest.mark.thorough
def test_adam_climbs_an_exact_evidence():
    data = dataset()
    fit = mrgp.fit(mrgp.MRGP(method="exact"), data, optimiser=mrgp.Adam(rate=0.05))
    best = mrgp.fit(mrgp.MRGP(method="exact"), data)
    assert fit.status.code == "converged"
    np.testing.assert_allclose(fit.history[-1], best.history[-1], atol=0.05)


def test_batches_take_every_row_once_an_epoch_at_any_time():
    batches = Batches((10, 3), (4, 4), seed=7)
    first, small = batches.rows(0, 5)
    assert small is None
    assert not batches.whole
    order = first.ravel()
    assert sorted(order[:10]) == sorted(order[10:]) == list(range(10))
    assert list(order[:10]) != list(order[10:])
    later = Batches((10, 3), (4, 4), seed=7).rows(3, 2)[0]
    np.testing.assert_array_equal(later, first[3:])


@pytest.mark.thorough
@pytest.mark.parametrize("batch", [8, None])
def test_a_fit_resumed_equals_a_fit_in_one_go(tmp_path, batch):
    data = dataset()
    settings = mrgp.Adam(steps=100, batch=batch)
    half = mrgp.fit(svgp(), data, key=3, optimiser=settings)
    assert half.status.code == "step limit"
    mrgp.save(half, tmp_path / "half")
    resumed = mrgp.load(tmp_path / "half").resume(data)
    whole = mrgp.fit(svgp(), data, key=3, optimiser=dataclasses.replace(settings, steps=200))
    assert resumed.training.steps == whole.training.steps == 200
    np.testing.assert_allclose(resumed.training.bounds, whole.training.bounds, rtol=1e-9)
    for name, value in whole.parameters().items():
        np.testing.assert_allclose(resumed.parameters()[name], value, rtol=1e-7)


def test_a_fit_by_lbfgs_resumes_from_its_parameters():
    data = dataset()
    short = mrgp.fit(mrgp.MRGP(), data, optimiser=mrgp.LBFGS(max_steps=2))
    longer = short.resume(data, optimiser=mrgp.LBFGS())
    assert short.status.code == "step limit"
    assert longer.status.code == "converged"
    assert longer.history[-1] > short.history[-1]


class StopAt:
    """Press Ctrl-C at the n-th update of a stage."""

    def __init__(self, number, stage="fit"):
        self.number, self.stage, self.seen, self.title = number, stage, 0, ""

    def start(self, title, total):
        self.title = title

    def update(self, step, text):
        self.seen += self.title == self.stage
        if self.seen == self.number:
            raise KeyboardInterrupt

    def finish(self, text):
        self.text = text


def test_ctrl_c_keeps_what_was_learned_and_the_fit_goes_on(tmp_path):
    data = dataset()
    settings = mrgp.Adam(steps=150, batch=8)
    stopped = mrgp.fit(svgp(), data, optimiser=settings, progress=StopAt(2))
    assert stopped.status.code == "interrupted"
    assert stopped.training.steps == 100
    mrgp.save(stopped, tmp_path / "stopped")
    half = mrgp.load(tmp_path / "stopped")
    more = half.resume(data, optimiser=dataclasses.replace(settings, steps=50))
    whole = mrgp.fit(svgp(), data, optimiser=settings)
    np.testing.assert_allclose(more.training.bounds, whole.training.bounds, rtol=1e-9)
    for name, value in whole.parameters().items():
        np.testing.assert_allclose(more.parameters()[name], value, rtol=1e-7)


def test_ctrl_c_in_the_warm_start_ends_the_fit():
    progress = StopAt(3, "warm start")
    fit = mrgp.fit(svgp(), dataset(), progress=progress)
    assert progress.title == "warm start"
    assert fit.status.code == "interrupted"
    assert np.isfinite(mrgp.predict(fit, mrgp.points([[1.0]])).mean).all()


def test_rates_fall_and_the_fit_ends_by_itself():
    fit = mrgp.fit(svgp(), dataset(), optimiser=mrgp.Adam(halvings=2))
    assert fit.status.code == "converged"
    assert fit.training.halvings == 2
    assert fit.training.steps < 5000
    assert fit.history[-1] >= fit.history[0]


def test_a_rate_that_breaks_the_bound_is_reported():
    wild = mrgp.Adam(rate=1e200, warm_start=False, natural=False)
    with pytest.raises(mrgp.FitError, match="the bound is not finite at any rate"):
        mrgp.fit(mrgp.MRGP(method="svgp", inducing=9), dataset(), optimiser=wild)


def test_one_compilation_serves_all_stretches(monkeypatch):
    calls = []
    objective = mrgp.objective(svgp(), dataset())
    original = type(objective).batch
    monkeypatch.setattr(
        type(objective), "batch", lambda self, rows: calls.append(1) or original(self, rows)
    )
    with jax.enable_x64(True):
        state = as_arrays(init(objective, mrgp.Adam()))
        for start in range(0, 60, 20):
            rows = as_arrays(Batches((23, 12), (8, 8), 0).rows(start, 20))
            state, _ = run_chunk(objective, state.slower(), rows, 20)
    assert len(calls) == 1


def test_the_average_of_steps_is_that_of_the_latest():
    objective = mrgp.objective(svgp(), dataset())
    with jax.enable_x64(True):
        state = as_arrays(init(objective, mrgp.Adam(natural=0.1)))
        seen = []
        for _ in range(5):
            state, _ = mrgp.step(objective, state)
            seen.append(np.asarray(state.trained.kernel.lengthscale.raw))
        averaged = state.averaged
        np.testing.assert_allclose(averaged.kernel.lengthscale.raw, np.mean(seen, 0))
        assert model_of(objective, averaged, state.q).q is None


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mrgp.Adam(steps=0), "Adam: steps must be a whole number, at least 1; got 0."),
        (lambda: mrgp.Adam(rate=-1.0), "Adam: rate must be positive; got -1.0."),
        (lambda: mrgp.Adam(natural=2.0), "natural is a step size between 0 and 1, True or False"),
        (lambda: mrgp.Adam(batch="all"), "batch is a number of rows, or a mapping by source"),
        (
            lambda: mrgp.fit(svgp(), dataset(), optimiser=mrgp.Adam(batch={"sat": 5})),
            "batch: 'sat' is neither a source nor a",
        ),
        (
            lambda: mrgp.fit(svgp(), dataset(), optimiser=mrgp.Adam(batch={"means": 0})),
            "batch: the size for 'means' must be at least 1; got 0.",
        ),
        (
            lambda: mrgp.fit(mrgp.MRGP(), dataset(), optimiser=mrgp.Adam(batch=5)),
            r'use MRGP\(method="svgp"\)',
        ),
        (
            lambda: mrgp.fit(mrgp.MRGP(), dataset(), optimiser=mrgp.Adam(natural=0.3)),
            r'use MRGP\(method="svgp"\)',
        ),
        (lambda: mrgp.fit(mrgp.MRGP(), dataset(), optimiser="adam"), "optimiser= takes mrgp.LBFGS"),
    ],
)
def test_wrong_settings_say_what_to_do(make, text):
    with pytest.raises((ValueError, TypeError), match=text):
        make()


@pytest.mark.usefixtures("as_users_see_it")
def test_resume_wants_the_same_data_and_optimiser():
    fit = mrgp.fit(svgp(), dataset(), optimiser=mrgp.Adam(steps=50))
    with pytest.raises(ValueError, match="which had 23 values of sensors, value, 12 values of"):
        fit.resume(dataset(n=20))
    with pytest.raises(ValueError, match="but these have other values"):
        fit.resume(dataset(seed=5))
    with pytest.raises(ValueError, match="the fit was made with Adam; got LBFGS"):
        fit.resume(dataset(), optimiser=mrgp.LBFGS())
    with pytest.raises(ValueError, match="only steps and halvings may differ"):
        fit.resume(dataset(), optimiser=mrgp.Adam(rate=0.5))


@pytest.mark.parametrize("method", rest_thorough(["svgp", "exact"], "exact"))
def test_resume_finds_sources_in_any_order(method):
    data = dataset()
    settings = mrgp.Adam(steps=50)
    fit = mrgp.fit(mrgp.MRGP(bias="offset", method=method), data, optimiser=settings)
    swapped = mrgp.Dataset(list(data)[::-1])
    a, b = fit.resume(data), fit.resume(swapped)
    assert b.processes == fit.processes
    for name, value in a.parameters().items():
        np.testing.assert_allclose(b.parameters()[name], value, rtol=1e-9)


def test_resume_reads_other_units_of_time():
    hours = pd.date_range("2024-01-01", periods=40, freq="h")
    frame = pd.DataFrame({"time": hours, "y": np.sin(np.arange(40) / 6)})
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset(mrgp.from_frame(frame, "time", "y")))
    days = mrgp.Dataset(mrgp.from_frame(frame, "time", "y", time_unit="D"))
    again = fit.resume(days)
    assert again.axes == fit.axes
    place = mrgp.from_frame(frame[:5], "time")
    a, b = mrgp.predict(fit, place), mrgp.predict(again, place)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-3)


def test_a_solved_fit_resumes_to_itself():
    data = dataset().select("means")
    kernel = mrgp.RBF(lengthscale=mrgp.fixed(1.3), variance=mrgp.fixed(2.0))
    fit = mrgp.fit(mrgp.MRGP(kernel, inducing=9, mean="zero", method="svgp"), data)
    assert fit.resume(data).status.message == "nothing to train"


def test_lbfgs_takes_the_bound_whose_q_is_known():
    data = dataset()
    a = mrgp.fit(svgp(), data, optimiser=mrgp.LBFGS())
    b = mrgp.fit(mrgp.MRGP(KERNEL, inducing=9, method="collapsed", bias="affine"), data)
    np.testing.assert_allclose(a.history[-1], b.history[-1], atol=1e-6)


def test_init_is_careful_with_minibatches():
    objective = mrgp.objective(svgp(), dataset())
    assert float(mrgp.init(objective).natural_rate) == 1.0
    assert float(mrgp.init(objective, mrgp.Adam(batch=8)).natural_rate) == 0.1
    assert float(mrgp.init(objective, mrgp.Adam(batch=8, natural=0.3)).natural_rate) == 0.3


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (([0, 1],), "for each of the 2 processes; got 1"),
        (([0, 23], None), "source 'sensors', task 'value' must be whole numbers from 0 to 22"),
        (([0.5], None), "must be whole numbers"),
    ],
)
def test_rows_are_checked(rows, text):
    objective = mrgp.objective(svgp(), dataset())
    with pytest.raises(ValueError, match=text):
        mrgp.step(objective, mrgp.init(objective), rows)


def test_small_sources_are_whole_in_a_warm_start():
    assert _shares([20, 10**6], 3000) == [20, 2980]
    assert _shares([5000, 10, 5000], 3000) == [1495, 10, 1495]
    assert _shares([3, 4], 3000) == [3, 4]
    assert _shares([9] * 5, 3) == [1] * 5


def test_batch_sizes_by_source_and_by_process():
    processes = (("a", "no2"), ("a", "pm10"), ("b", "no2"))
    records = (range(100), range(5), range(1000))
    wanted = {"a": 10, ("a", "no2"): 20}
    assert batch_sizes(wanted, processes, records) == (20, 5, 256)
    assert batch_sizes(64, processes, records) == (64, 5, 64)
