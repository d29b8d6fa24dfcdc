"""Fits as values: status, history, interruption, starts, failures, and how often they compile."""

from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import mrgp
from mrgp.cli.app import _ask
from mrgp.inference import finishing, greatest_evidence, lbfgs, progress, whole
from mrgp.parameters import partition


def data(n=17, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, (n, 1))
    y = np.sin(x[:, 0]) + 0.1 * rng.standard_normal(n)
    return mrgp.Dataset([mrgp.Observations(mrgp.points(x), y)])


def test_a_fit_converges_with_a_rising_bound_and_says_so():
    fit = mrgp.fit(mrgp.MRGP(), data())
    assert fit.status.code == "converged"
    assert np.all(np.diff(fit.history) >= -1e-9)
    assert repr(fit).startswith("Fit(MRGP, 17 values, converged")
    text = fit.summary()
    assert "log evidence" in text
    assert "kernel.lengthscale" in text
    assert "training data are kept" in text


def test_the_gradient_at_the_optimum_vanishes_and_matches_differences_elsewhere():
    f = mrgp.objective(mrgp.MRGP(), data())
    leaves, tree = jax.tree.flatten(f.start)
    rng = np.random.default_rng(1)
    point = [leaf + 0.3 * rng.standard_normal(np.shape(leaf)) for leaf in leaves]
    with jax.enable_x64(True):
        value = jax.jit(lambda p: f(jax.tree.unflatten(tree, p)))
        slopes = jax.grad(value)(point)
        for i, leaf in enumerate(point):
            step = 1e-5
            up = [*point[:i], leaf + step, *point[i + 1 :]]
            down = [*point[:i], leaf - step, *point[i + 1 :]]
            numeric = (float(value(up)) - float(value(down))) / (2 * step)
            assert float(np.sum(slopes[i])) == pytest.approx(numeric, rel=1e-5, abs=1e-6)
        fit = mrgp.fit(mrgp.MRGP(), data())
        best = jax.tree.leaves(partition(fit.model)[0])
        for slope in jax.grad(value)(best):
            assert np.max(np.abs(slope)) < 0.05


def test_a_step_limit_is_reported():
    fit = mrgp.fit(mrgp.MRGP(), data(), optimiser=mrgp.LBFGS(max_steps=2, starts=1))
    assert fit.status.code == "step limit"
    assert "raise max_steps=" in fit.status.message


class StopAtStep:
    """A progress object that presses Ctrl-C."""

    def __init__(self, step):
        self.step = step

    def start(self, title, total):
        pass

    def update(self, step, text):
        if step == self.step:
            raise KeyboardInterrupt

    def finish(self, text):
        self.text = text


def test_ctrl_c_keeps_the_best_parameters_so_far():
    stop = StopAtStep(3)
    fit = mrgp.fit(mrgp.MRGP(), data(), progress=stop)
    assert fit.status.code == "interrupted"
    assert stop.text == "interrupted"
    f = mrgp.objective(mrgp.MRGP(), data())
    with jax.enable_x64(True):
        assert float(f(partition(fit.model)[0])) > float(f(f.start))
    assert np.all(np.isfinite(mrgp.predict(fit, mrgp.points([[1.0]])).mean))


def test_ctrl_c_on_a_part_of_the_data_leaves_no_evidence(monkeypatch):
    monkeypatch.setattr(whole, "MUCH", 0.0)
    monkeypatch.setattr(whole, "SAMPLE", 8)
    found = greatest_evidence(mrgp.MRGP(), data(), mrgp.LBFGS(), progress=StopAtStep(1))
    assert found == (-np.inf, -np.inf)


def test_more_starts_never_end_lower():
    few = mrgp.fit(mrgp.MRGP(), data(), optimiser=mrgp.LBFGS(starts=1, candidates=0))
    many = mrgp.fit(mrgp.MRGP(), data(), optimiser=mrgp.LBFGS(starts=3))
    assert many.history[-1] >= few.history[-1] - 1e-6


def test_fits_repeat_and_accept_keys():
    a, b = (
        mrgp.fit(mrgp.MRGP(), data(), key=3),
        mrgp.fit(mrgp.MRGP(), data(), key=jax.random.key(3)),
    )
    for name, value in a.parameters().items():
        np.testing.assert_array_equal(value, b.parameters()[name])


class Broken(mrgp.RBF):
    """A kernel that is not a number anywhere."""

    def profile(self, squared):
        return super().profile(squared) * np.nan


def test_a_numerical_failure_is_diagnosed():
    x = np.arange(5.0)[:, None]
    seen = mrgp.Observations(mrgp.points(x), [0.0, 1.0, 0.0, 1.0, 9.0], name="s", task="t")
    with pytest.raises(mrgp.FitError, match=r"not finite.*source 's', task 't': 0 to 9"):
        mrgp.fit(mrgp.MRGP(Broken()), mrgp.Dataset([seen]))
    fit = mrgp.fit(mrgp.MRGP(Broken()), mrgp.Dataset([seen]), throw=False)
    assert fit.status.code == "failed"


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([[1.0]], [3.0]),
        ([[1.0], [1.0]], [3.0, 4.0]),
        ([[0.0], [1.0], [2.0]], [5.0, 5.0, 5.0]),
        ([[0.0], [1.0], [2.0]], [0.0, 0.0, 0.0]),
    ],
    ids=["one observation", "duplicates", "constant", "zero"],
)
def test_meagre_data_give_finite_modest_answers(x, y):
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([mrgp.Observations(mrgp.points(x), y)]))
    here = mrgp.predict(fit, mrgp.points([[1.0]]))
    away = mrgp.predict(fit, mrgp.points([[50.0]]))
    assert here.mean[0] == pytest.approx(np.mean(y), abs=0.2 * (np.ptp(y) + abs(np.mean(y)) + 1e-3))
    assert away.std[0] > here.std[0] > 0


@pytest.mark.thorough
def test_regions_smaller_and_larger_than_the_spacing_work_together():
    tiny = mrgp.intervals([1.0, 2.0], [1.0 + 1e-9, 2.0 + 1e-9])
    huge = mrgp.intervals([-1e4], [1e4])
    sources = [
        mrgp.Observations(tiny, [1.0, 2.0], name="tiny"),
        mrgp.Observations(huge, [1.5], name="huge"),
    ]
    with pytest.warns(UserWarning, match="'huge' reaches over 2e\\+04 along x1"):
        fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset(sources))
    assert np.all(np.isfinite(mrgp.predict(fit, mrgp.points([[1.5]])).mean))


@pytest.mark.parametrize("progress", ["auto", "lines", None, False])
def test_progress_by_name(progress, capsys):
    mrgp.fit(mrgp.MRGP(), data(), progress=progress, optimiser=mrgp.LBFGS(max_steps=2, starts=1))
    written = capsys.readouterr().err
    assert ("fit: step limit" in written) == (progress == "lines")


@pytest.mark.usefixtures("as_users_see_it")
def test_wrong_calls_say_what_to_do():
    with pytest.raises(TypeError, match=r"Wrap Observations as mrgp.Dataset\(\[observations\]\)"):
        mrgp.fit(mrgp.MRGP(), data().observations[0])
    with pytest.raises(TypeError, match=r"must be a model such as mrgp.MRGP\(\)"):
        mrgp.fit("deep", data())
    with pytest.raises(ValueError, match="progress= is"):
        mrgp.fit(mrgp.MRGP(), data(), progress="loud")
    with pytest.raises(ValueError, match=r"'satellite' is neither a source nor a \(source, task\)"):
        mrgp.fit(mrgp.MRGP(), data(), weights={"satellite": 0.5})
    with pytest.raises(ValueError, match="weight of 'source' must be positive"):
        mrgp.fit(mrgp.MRGP(), data(), weights={"source": -1.0})
    with pytest.raises(ValueError, match="max_steps must be a whole number, at least 1"):
        mrgp.LBFGS(max_steps=0)


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


def test_lines_are_written_every_few_seconds_and_at_the_end(monkeypatch, capsys):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    lines = progress.Lines()
    lines.start("fit", 30)
    for clock.now, step in ((20.0, 1), (20.5, 2), (26.0, 3), (27.0, 4)):
        lines.update(step, f"step {step}")
    lines.finish("done")
    # The first step, which is compiled, says nothing of how long the others take.
    assert (
        capsys.readouterr().err == "fit: step 1\nfit: step 3, at most 1 min 21 s left\nfit: done\n"
    )


def test_the_time_left_does_not_count_steps_that_were_skipped(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    pace = progress.Pace(400)
    told = []
    # The first start ends after four steps of two hundred, each of which takes a second.
    for clock.now, step in enumerate((1, 2, 3, 4, 201, 202, 203)):
        told.append(pace.left(step))
    assert told[3:] == [
        ", at most 6 min 36 s left",
        "",
        ", at most 3 min 18 s left",
        ", at most 3 min 17 s left",
    ]
    # Steps that are told by tens are skipped by nobody.
    pace, told = progress.Pace(100), []
    for clock.now, step in ((0, 1), (9, 10), (19, 20), (29, 30)):
        told.append(pace.left(step))
    assert told[-1] == ", at most 1 min 10 s left"


def test_a_person_who_is_asked_is_not_disturbed(monkeypatch, capsys):
    def think(*_, **__):
        progress.time.sleep(0.5)
        return "2"

    monkeypatch.setattr("typer.prompt", think)
    with progress.Beat(0.1):
        assert _ask(Path("a.csv"), ["no2", "pm10"], "no2") == "pm10"
    assert "so far" not in capsys.readouterr().err


def test_silence_is_broken_with_what_is_being_done(capsys):
    with progress.Beat(0.2):
        lines = progress.Lines()
        lines.start("fit", 3)
        progress.time.sleep(0.5)
        lines.update(1, "step 1 of at most 3")
        progress.time.sleep(0.5)
    said = capsys.readouterr().err.splitlines()
    assert "fit: compiling, first step (0 s so far)" in said
    assert "fit: step 1 of at most 3 (0 s so far)" in said


def test_a_bar_that_moves_is_no_silence(capsys):
    with progress.Beat(0.1):
        bar = progress.Bar()
        bar.start("fit", 3)
        progress.time.sleep(0.3)
        bar.finish("done")
    assert "so far" not in capsys.readouterr().err


class Heard:
    """Keep all that a fit says."""

    def __init__(self):
        self.stages, self.texts, self.ends = [], [], []

    def start(self, title, total):
        self.stages.append(title)

    def update(self, step, text):
        self.texts.append(text)

    def finish(self, text):
        self.ends.append(text)


def test_a_fit_says_which_start_and_which_step_it_is_at():
    heard = Heard()
    fit = mrgp.fit(mrgp.MRGP(), data(), optimiser=mrgp.LBFGS(candidates=2), progress=heard)
    assert heard.texts[0] == "comparing 3 starting points"
    assert heard.texts[1].startswith("start 1 of 2, step 1 of at most 200, bound ")
    assert any(text.startswith("start 2 of 2, step 1 of") for text in heard.texts)
    assert fit.status.code == "converged"
    assert heard.ends == [f"done, {fit.status.message}"]


def test_words_of_scipy_do_not_reach_the_user():
    ended = SimpleNamespace(fun=1.0, nit=3, success=False, message="ABNORMAL: ")
    status = lbfgs._status(ended, mrgp.LBFGS())
    assert str(status) == "stalled: no higher bound found after 3 steps"


def test_a_posterior_that_is_not_finite_is_a_failure(monkeypatch):
    def broken(model, records):
        return jax.tree.map(lambda x: np.full_like(x, np.nan), model.condition(records))

    monkeypatch.setattr(finishing, "conditioned", broken)
    with pytest.raises(mrgp.FitError, match="the posterior is not finite"):
        mrgp.fit(mrgp.MRGP(), data())
    assert mrgp.fit(mrgp.MRGP(), data(), throw=False).status.code == "failed"


def test_much_work_begins_with_some_of_the_data_and_ends_at_the_same_optimum(monkeypatch):
    rows = data(60)
    usual = mrgp.fit(mrgp.MRGP(), rows)
    monkeypatch.setattr(whole, "MUCH", 0.0)
    monkeypatch.setattr(whole, "SAMPLE", 30)
    titles = []
    monkeypatch.setattr(whole, "maximise", lambda *a: titles.append(a[5:]) or lbfgs.maximise(*a))
    begun = mrgp.fit(mrgp.MRGP(), rows)
    assert titles == [("start",), ()]
    assert begun.history[-1] == pytest.approx(usual.history[-1], abs=1e-3)
    # What was found on thirty values is near, and not yet the optimum of all.
    assert usual.history[-1] - 5 < begun.history[0] < usual.history[-1] - 1e-6
