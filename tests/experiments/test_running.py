"""Runs that are stopped and go on, run in several processes, and what they leave behind."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import mrgp
from mrgp import experiments
from mrgp.cli import app
from mrgp.datasets import Recording, Simulation
from mrgp.experiments import Cell, ModelSpec, design
from mrgp.experiments.parallel import in_processes
from mrgp.experiments.store import Store
from mrgp.inference import Status
from mrgp.weighting import weigh_sources

ASKED = {"seeds": [0, 1], "variants": ["7-12"], "model_names": ["vbagg", "center-point"]}
# A process that runs in the background ignores the signal, and so would its children.
STOPPABLE = """
import signal
from mrgp.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""
TABLES = ("scores.csv", "summary.md", "summary.json", "config.json")


@pytest.fixture(scope="module")
def biased():
    return experiments.find("biased")


@pytest.fixture(scope="module")
def whole(biased, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    experiments.run(biased, **ASKED, out=out)
    return out / "biased"


def tables(folder):
    return {name: (folder / name).read_bytes() for name in TABLES}


def test_a_run_leaves_settings_versions_scores_predictions_and_figures(whole):
    there = {path.name for path in whole.iterdir()}
    assert {*TABLES, "versions.json", "costs.csv", "calibration-7-12.png"} <= there
    assert {"functions-7-12.png", "predictions", "cells"} <= there
    config = json.loads((whole / "config.json").read_text())
    assert config["run"]["replicates"] == ["7-12, seed 0", "7-12, seed 1"]
    assert set(config["models"]) == {"vbagg", "center-point"}
    versions = json.loads((whole / "versions.json").read_text())
    assert versions["mrgp"] == mrgp.__version__
    assert {"date", "python", "machine", "jax", "numpy"} <= set(versions)


def test_predictions_are_written_beside_what_was_held_out(whole, biased):
    found = xr.open_dataset(whole / "predictions" / "7-12-seed-1.nc", engine="scipy")
    case = experiments.DATA["biased"].load(1, **biased.variants["7-12"])
    assert list(found["model"].values) == ["vbagg", "center-point"]
    np.testing.assert_array_equal(found["held_out"], case.y)
    np.testing.assert_array_equal(found["truth"], case.truth)
    np.testing.assert_array_equal(found["x1"], np.asarray(case.support.bounds[0])[:, 0])
    spec = biased.models["vbagg"]
    scored = experiments.score(spec, case, 1, timed=False)
    chosen = found.sel(model="vbagg")
    np.testing.assert_allclose(chosen["mean"], scored.predictions["noisy"].mean, rtol=1e-6)
    low, high = scored.predictions["latent"].interval(0.95)
    np.testing.assert_allclose(chosen["lower_95_clean"], low, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(chosen["upper_95_clean"], high, rtol=1e-6, atol=1e-6)
    assert np.sqrt(np.mean((chosen["mean"] - case.y) ** 2)) == pytest.approx(scored.rows[0]["rmse"])


def test_a_run_that_was_stopped_goes_on_and_ends_with_the_same_table(
    whole, biased, monkeypatch, tmp_path
):
    work, done = Cell.work, []

    def stopping(cell, case, earlier):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(str(cell))
        return work(cell, case, earlier)

    monkeypatch.setattr(Cell, "work", stopping)
    with pytest.raises(KeyboardInterrupt):
        experiments.run(biased, **ASKED, out=tmp_path)
    assert not (tmp_path / "biased" / "scores.csv").exists()
    monkeypatch.setattr(Cell, "work", lambda *given: done.append("again") or work(*given))
    experiments.run(biased, **ASKED, out=tmp_path)
    assert done == [
        "7-12, seed 0, vbagg",
        "7-12, seed 0, center-point",
        "7-12, seed 1, vbagg",
        "again",
    ]
    assert tables(tmp_path / "biased") == tables(whole)


@pytest.mark.thorough
def test_what_is_there_is_run_again_for_other_settings_or_if_asked(
    whole, biased, monkeypatch, tmp_path
):
    done, work = [], Cell.work
    monkeypatch.setattr(Cell, "work", lambda *given: done.append(given[0]) or work(*given))
    out = tmp_path / "copied"
    subprocess.run(["cp", "-r", str(whole.parent), str(out)], check=True)
    one = ASKED | {"seeds": [0], "model_names": ["vbagg"]}
    experiments.run(biased, **one, out=out)
    assert done == []
    other = biased.model_copy(
        update={"models": biased.models | {"vbagg": ModelSpec(recipe="VBAgg")}}
    )
    experiments.run(other, **one, out=out)
    assert len(done) == 1
    experiments.run(other, **one, out=out, fresh=True)
    assert len(done) == 2


def test_a_cell_that_was_cut_short_or_is_of_other_data_or_code_is_run_again(
    whole, biased, monkeypatch
):
    cell = experiments.plan(biased, seeds=[0], variants=["7-12"], models=["vbagg"])[0][0]
    case, store = cell.load(), Store(whole / "cells")
    assert store.has(cell, case)
    path = whole / "cells" / f"{cell.slug}.json"
    text = path.read_text()
    path.write_text(text[:40])
    assert not store.has(cell, case)
    path.write_text(text)
    other = dataclasses.replace(case, y=case.y + 1.0)
    assert not store.has(cell, other)
    monkeypatch.setattr("mrgp.experiments.design._code", lambda: "other code")
    assert not store.has(cell, case)


def test_code_that_a_result_hangs_on_is_part_of_its_mark(tmp_path, monkeypatch):
    for name in ("selection/choosing.py", "datasets/cases.py", "cli/app.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("")
    monkeypatch.setattr(mrgp, "__file__", str(tmp_path / "__init__.py"))
    marks = [design._code.__wrapped__()]
    for name in ("selection/choosing.py", "datasets/cases.py", "cli/app.py"):
        (tmp_path / name).write_text("changed = True\n")
        marks.append(design._code.__wrapped__())
    # The automatic choice of a model is a result too; the command line changes none.
    assert len(set(marks)) == 3
    assert marks[-1] == marks[-2]


@pytest.mark.parametrize("stop_at", [0, 1])
def test_an_interrupted_fit_is_not_scored(biased, monkeypatch, stop_at):
    case = experiments.DATA["biased"].load(0)
    fit, calls = ModelSpec.fit, []

    def stopped(*given):
        calls.append(given)
        found = fit(*given)
        status = Status("interrupted", "stopped by the user")
        return dataclasses.replace(found, status=status) if len(calls) > stop_at else found

    monkeypatch.setattr(ModelSpec, "fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        experiments.score(biased.models["vbagg"], case, 0)
    assert len(calls) == stop_at + 1


def test_interrupted_weights_are_not_used(monkeypatch):
    def stopped(*given, **settings):
        found, alone = weigh_sources(*given, **settings)
        return found, dataclasses.replace(alone, status=Status("interrupted", "by the user"))

    monkeypatch.setattr("mrgp.experiments.rivals.weigh_sources", stopped)
    spec = ModelSpec(recipe="MRGP", kernel="RBF", weights="ratio")
    with pytest.raises(KeyboardInterrupt):
        spec.weigh(experiments.DATA["dependent"].load(0).data, 0)


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores cannot be counted here")
def test_several_processes_give_the_same_table(whole, biased, tmp_path):
    experiments.run(biased, **ASKED, out=tmp_path, jobs=2)
    one, two = (
        np.genfromtxt(folder / "scores.csv", delimiter=",", skip_header=1)[:, 3:]
        for folder in (whole, tmp_path / "biased")
    )
    np.testing.assert_allclose(one, two, rtol=1e-4)
    assert (tmp_path / "biased" / "config.json").read_bytes() == (
        whole / "config.json"
    ).read_bytes()


def cores(_):
    time.sleep(0.5)
    return os.getpid(), sorted(os.sched_getaffinity(0)), os.environ["OPENBLAS_NUM_THREADS"]


@pytest.mark.thorough
@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="there is one core",
)
def test_processes_do_not_share_cores(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    found = list(in_processes(cores, [(i,) for i in range(4)], 2))
    by_process = {pid: mine for pid, mine, _ in found}
    assert len(by_process) == 2
    first, second = by_process.values()
    assert not set(first) & set(second)
    assert {threads for *_, threads in found} == {"1"}
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def slow_or_broken(i, folder):
    if i == 0:
        raise ValueError("broken")
    time.sleep(1.0)
    (folder / f"{i}").touch()


@pytest.mark.thorough
def test_after_an_error_nothing_more_is_run(tmp_path):
    with pytest.raises(ValueError, match="broken"):
        list(in_processes(slow_or_broken, [(i, tmp_path) for i in range(12)], 2))
    time.sleep(2.5)
    assert len(list(tmp_path.iterdir())) <= 2


def killed(i):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="the signal is of Unix")
def test_a_process_that_was_killed_is_said():
    with pytest.raises(OSError, match="perhaps for want of memory: give fewer jobs"):
        list(in_processes(killed, [(0,), (1,)], 2))


def test_names_of_files_tell_settings_apart():
    found = experiments.find("mcmc_dependent")
    asked = {"seeds": [0], "variants": ["marginal"], "models": ["product"]}
    quick, whole = (experiments.plan(found, quick=q, **asked)[0][0] for q in (True, False))
    assert quick.slug != whole.slug


def test_a_replicate_is_the_same_whichever_are_asked_for_with_it(biased):
    alone, second = (
        experiments.plan(biased, seeds=seeds, variants=["7-12"], models=["vbagg"])[-1][0]
        for seeds in ([1], [0, 1])
    )
    assert alone.slug == second.slug
    case = alone.load()
    assert alone.fingerprint(case) == second.fingerprint(case)


def test_what_is_named_twice_is_run_once(biased):
    twice = {"variants": ["7-12", "7-12"], "models": ["vbagg", "vbagg"]}
    assert [len(cells) for cells in experiments.plan(biased, seeds=[0], **twice)] == [1]


@pytest.mark.thorough
def test_more_jobs_than_cores_are_said_and_cut():
    with pytest.warns(UserWarning, match="jobs=1000: there are"):
        assert len(list(in_processes(cores, [(0,)], 1000))) == 1


@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="the signal is of Unix")
def test_a_run_of_the_command_line_is_killed_and_goes_on(tmp_path):
    command = [sys.executable, "-c", STOPPABLE, "run", "biased", "--seeds", "2"]
    command += ["--variants", "7-12", "--models", "vbagg,center-point", "--out", str(tmp_path)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    cells = tmp_path / "biased" / "cells"
    deadline = time.monotonic() + 120
    while not list(cells.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == 130, said
    assert "stopped" in said
    assert "Traceback" not in said
    before = {path.name: path.stat().st_mtime_ns for path in cells.glob("*.json")}
    assert 1 <= len(before) < 4
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert f"{len(before)} were there before" in again.stderr
    assert all((cells / name).stat().st_mtime_ns == at for name, at in before.items())
    # The same command without a stop: another process than this one rounds as it does.
    through = [str(tmp_path / "through") if part == str(tmp_path) else part for part in command]
    subprocess.run(through, env=environment, capture_output=True, check=True)
    assert tables(tmp_path / "biased") == tables(tmp_path / "through" / "biased")


def test_models_of_the_paper_are_run_beside_ours_where_asked_for(biased):
    def models(**asked):
        return [c.model for c in experiments.plan(biased, seeds=[0], variants=["7-12"], **asked)[0]]

    ours = models()
    assert "mr-dgp" in ours
    assert "mr-dgp:paper" not in ours
    assert models(preset="paper") == [*ours, "mr-dgp:paper"]
    assert models(models=["mr-dgp:paper"]) == ["mr-dgp:paper"]
    assert models(preset="paper", quick=True) == [*biased.quick.models, "mr-dgp:paper"]
    assert models(preset="auto") == [*ours, "auto"]
    command = ["run", "fusion", "--preset", "paper"]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code != 0
    assert "fusion has no models of preset 'paper'. It has auto." in str(refused.exception)
    with pytest.raises(experiments.ExperimentError, match=r"preset 'pape'. It has auto, paper."):
        models(preset="pape")


@pytest.mark.parametrize("name", ["biased", "dependent", "inter_task", "london_no2"])
def test_models_of_the_paper_have_its_starting_values_and_steps(name):
    found = experiments.find(name).models
    paper = {model: spec for model, spec in found.items() if spec.preset == "paper"}
    assert paper
    for model, spec in paper.items():
        assert model.endswith(":paper")
        built, optimiser = spec.build(), spec.optimiser.build()
        assert isinstance(optimiser, mrgp.Adam)
        assert not optimiser.warm_start
        assert not getattr(built, "model", built).priors
    assert experiments.find("dependent").models["mr-gp:paper"].build().noise["fine"] == 0.1


@pytest.mark.thorough
def test_a_model_of_the_paper_is_fitted_from_its_start():
    spec = experiments.find("dependent").models["mr-gp:paper"]
    few = spec.model_copy(update={"optimiser": spec.optimiser.model_copy(update={"steps": 1})})
    case = experiments.DATA["dependent"].load(0, noise=0.5)
    found = few.fit(case.data, 0).parameters()
    assert found["kernel.lengthscale"] == pytest.approx(0.1, rel=0.05)
    assert found["noise_variance[fine]"] == pytest.approx(0.1, rel=0.05)
    assert found["kernel.variance"] == pytest.approx(1.0, rel=0.05)


@pytest.mark.thorough
def test_the_model_of_a_file_may_be_chosen_for_the_data():
    spec = ModelSpec(recipe="auto", sources=["fine"])
    assert spec.build() == "auto"
    case = experiments.DATA["dependent"].load(0, noise=0.5)
    fit = spec.fit(spec.view(case.data), 0)
    assert fit.reasons[0] == "There is one source, fine, and one task, y."
    with pytest.raises(ValueError, match='"auto" chooses kernel itself; leave it out'):
        ModelSpec(recipe="auto", kernel="RBF")


def process(i):
    return i, os.getpid()


@pytest.mark.thorough
def test_isolated_work_has_a_process_for_each_task():
    done = dict(in_processes(process, [(i,) for i in range(3)], anew=True))
    assert set(done) == {0, 1, 2}
    assert len({os.getpid(), *done.values()}) == 4
    with pytest.raises(experiments.ExperimentError, match="leave --jobs out"):
        experiments.run(experiments.find("scaling"), quick=True, jobs=2)


def test_a_variant_may_change_a_model(biased):
    own = {"vbagg": {"kernel": "Matern32"}}
    changed = biased.model_copy(
        update={"variants": {"7-12": biased.variants["7-12"] | {"models": own}}}
    )
    (cells,) = experiments.plan(changed, seeds=[0])
    by_name = {cell.model: cell for cell in cells}
    assert by_name["vbagg"].spec.kernel == "Matern32"
    assert by_name["center-point"].spec == biased.models["center-point"]
    assert "models" not in by_name["vbagg"].settings


def map_case(load_calls, label):
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 4, (20, 2))
    x = np.column_stack([np.repeat([0.0, 1.0], 20), np.tile(place, (2, 1))])
    y = np.sin(x[:, 1]) + x[:, 2]
    names = ("time", "east", "north")
    fine = mrgp.Observations(mrgp.points(x[:20], inputs=names), y[:20], name="sites", units="mg")
    corner = np.array([[1.0, 0.0, 0.0], [1.0, 2.0, 0.0], [1.0, 0.0, 2.0]])
    coarse = mrgp.Observations(
        mrgp.boxes(corner, corner + [0.0, 2.0, 2.0], inputs=names), [1.0, 1.5, 3.0], name="blocks"
    )
    side = np.linspace(0, 4, 5)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2)
    maps = {
        title: mrgp.points(np.column_stack([np.full(25, t), grid]), inputs=names)
        for title, t in (("before", 0.0), ("after", 1.0))
    }
    load_calls.append(label)
    held = mrgp.points(x[20:], inputs=names)
    return Recording(mrgp.Dataset([fine, coarse]), held, y[20:], "sites", "value", maps=maps)


@pytest.mark.thorough
def test_recordings_are_mapped_for_the_first_fold(monkeypatch, tmp_path):
    calls = []
    known = experiments.Replicates(
        "fold", lambda label, window: map_case(calls, label), lambda: ("a", "b")
    )
    monkeypatch.setitem(experiments.DATA, "inter_task", known)
    found = experiments.find("inter_task")
    spec = ModelSpec(recipe="VBAgg", kernel="RBF")
    found = found.model_copy(update={"models": {"vbagg": spec}, "timed": 0})
    experiments.run(found, variants=["24h"], out=tmp_path)
    assert (tmp_path / "inter_task" / "maps-24h-vbagg.png").stat().st_size > 10_000
    cells = [cells[0] for cells in experiments.plan(found, variants=["24h"])]
    store = Store(tmp_path / "inter_task" / "cells")
    first, second = (store.predictions(cell, cell.load()) for cell in cells)
    assert set(first) == {"noisy", "before", "after"}
    assert set(second) == {"noisy"}
    assert len(first["after"]) == 25


@pytest.mark.thorough
def test_experts_are_kept_with_their_weights(tmp_path):
    biased = experiments.find("biased")
    quick = biased.model_copy(update={"timed": 0})
    (cells,) = experiments.plan(quick, seeds=[0], variants=["7-12"], models=["mr-dgp"])
    case = cells[0].load()
    assert isinstance(case, Simulation)
    scored = cells[0].work(case, None)
    store = Store(tmp_path)
    store.keep(cells[0], case, scored)
    kept, made = store.predictions(cells[0], case)["latent"], scored.predictions["latent"]
    assert list(kept.experts) == list(made.experts)
    np.testing.assert_array_equal(kept.mean, made.mean)
    for label, expert in made.experts.items():
        np.testing.assert_array_equal(kept.experts[label].std, expert.std)
        np.testing.assert_array_equal(kept.weights[label], made.weights[label])


def test_a_wrong_number_of_jobs_is_refused():
    result = CliRunner().invoke(app, ["run", "biased", "--jobs", "0"])
    assert result.exit_code != 0
