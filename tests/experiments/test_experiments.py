"""Experiments: protocol, models, summaries, files, and the command that runs them."""

import csv
import dataclasses
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import mrgp
from mrgp import experiments
from mrgp.cli import app, parse_seeds
from mrgp.datasets import Recording, dependent
from mrgp.experiments import ExperimentError, ModelSpec
from mrgp.experiments.metering import metered

ROOT = Path(__file__).parents[2] / "experiments"
FOLDERS = sorted(file.parent for file in ROOT.glob("*/experiment.toml"))
MEASURED = [folder for folder in FOLDERS if (folder / "expected.json").is_file()]


def test_summaries_are_means_sds_and_medians_over_seeds():
    rows = [
        {"variant": "a", "model": "m", "seed": s, "rmse": v} for s, v in enumerate((1.0, 2.0, 6.0))
    ]
    cell = experiments.summarise(rows)["a"]["m"]["rmse"]
    assert cell == {
        "mean": 3.0,
        "sd": pytest.approx(np.std([1, 2, 6], ddof=1)),
        "median": 2.0,
        "n": 3,
    }


def test_a_metric_of_some_replicates_is_summarised_over_those():
    rows = [{"variant": "a", "model": "m", "fold": f, "mse": 1.0} for f in ("first", "second")]
    rows[0]["cpu_seconds"] = 7.0
    metrics = experiments.summarise(rows)["a"]["m"]
    assert set(metrics) == {"mse", "cpu_seconds"}
    assert metrics["mse"]["n"] == 2
    assert metrics["cpu_seconds"] == {"mean": 7.0, "sd": 0.0, "median": 7.0, "n": 1}


def test_scores_of_recorded_values_are_pooled_over_all_of_them():
    whole = np.random.default_rng(0).normal(size=10)
    parts = np.split(whole, [3])
    rows = [
        {"variant": "a", "model": "m", "fold": i, "n": len(part)}
        | {"mse": np.mean(part**2), "rmse": np.sqrt(np.mean(part**2)), "mae": np.mean(np.abs(part))}
        | {"coverage_95": np.mean(part > 0), "seconds": 1.0}
        for i, part in enumerate(parts)
    ]
    metrics = experiments.summarise(rows)["a"]["m"]
    assert metrics["rmse"]["pooled"] == pytest.approx(np.sqrt(np.mean(whole**2)))
    assert metrics["mae"]["pooled"] == pytest.approx(np.mean(np.abs(whole)))
    assert metrics["coverage_95"]["pooled"] == pytest.approx(np.mean(whole > 0))
    assert metrics["rmse"]["mean"] != pytest.approx(metrics["rmse"]["pooled"])
    assert "pooled" not in metrics["seconds"]
    assert set(metrics) == {"mse", "rmse", "mae", "coverage_95", "seconds"}


def test_infinite_scores_are_left_out_and_counted_out():
    rows = [
        {"variant": "a", "model": "m", "site": s, "mape": v}
        for s, v in zip("xyz", (1.0, np.inf, 3.0), strict=True)
    ]
    cell = experiments.summarise(rows)["a"]["m"]["mape"]
    assert cell == {"mean": 2.0, "sd": pytest.approx(np.sqrt(2)), "median": 2.0, "n": 2}


@pytest.mark.parametrize(("text", "seeds"), [("3", [0, 1, 2]), ("5-7", [5, 6, 7]), ("4,9", [4, 9])])
def test_seeds_by_number_range_or_list(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["0", "x", "9-3", "1-2-3"])
def test_wrong_seeds_are_refused(text):
    with pytest.raises(ValueError, match="a number, a range a-b or a list"):
        parse_seeds(text)


def run_dependent(out, *more):
    arguments = ["run", "dependent", "--quick", "--json", "--seeds", "100-101", "--out", str(out)]
    result = CliRunner().invoke(app, [*arguments, *more])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    return run_dependent(out, "--models", "single-gp,vbagg,mr-gp:curvature"), out


def test_run_prints_one_json_object_of_the_agreed_form(quick_run):
    summary, _ = quick_run
    assert summary["experiment"] == "dependent"
    assert set(summary["variants"]) == {"noise-0.5"}
    assert set(summary["variants"]["noise-0.5"]) == {"single-gp", "vbagg", "mr-gp:curvature"}
    metrics = summary["variants"]["noise-0.5"]["vbagg"]
    for name in (
        "rmse",
        "crps",
        "coverage_95",
        "rmse_clean",
        "coverage_95_clean",
        "width_95_clean",
    ):
        assert set(metrics[name]) == {"mean", "sd", "median", "n"}
    assert metrics["weight"]["mean"] == 1.0
    assert metrics["cpu_seconds"]["mean"] > 0
    assert metrics["rmse"]["n"] == 2
    assert summary["seconds"] > 0


def test_the_product_likelihood_is_overconfident_on_dependent_sources(quick_run):
    by_model = quick_run[0]["variants"]["noise-0.5"]
    coverage = {m: by_model[m]["coverage_95_clean"]["mean"] for m in by_model}
    assert coverage["vbagg"] < coverage["single-gp"] - 0.1
    width = {m: by_model[m]["width_95_clean"]["mean"] for m in by_model}
    assert width["vbagg"] < 0.9 * width["single-gp"]


@pytest.mark.thorough
def test_composite_weights_repair_the_coverage(tmp_path):
    by_model = run_dependent(tmp_path)["variants"]["noise-0.5"]
    rules = {f"mr-gp:{rule}" for rule in ("ratio", "ratio-keep", "ribatet", "lyddon", "curvature")}
    assert set(by_model) == {"single-gp", "vbagg"} | rules
    coverage = {m: by_model[m]["coverage_95_clean"]["mean"] for m in by_model}
    assert 0.4 < by_model["mr-gp:ratio"]["weight"]["mean"] < 0.7
    for rule in ("ratio", "ratio-keep", "curvature"):
        assert coverage[f"mr-gp:{rule}"] > coverage["vbagg"] + 0.1


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"recipe": "VBAgg", "weights": "ratio"}, "VBAgg has all weights one"),
        ({"recipe": "MRGPRN", "weights": "curvature"}, "goes with MRGP; got MRGPRN"),
        (
            {"recipe": "MRGP", "averages": {"coarse": "fine"}, "weights": "ratio"},
            "Dependent counts shared errors once",
        ),
    ],
)
def test_weights_that_a_model_cannot_have_are_told(spec, text):
    with pytest.raises(ValueError, match=text):
        ModelSpec(**spec)


def test_run_writes_scores_by_seed_and_a_summary(quick_run):
    summary, out = quick_run
    with (out / "dependent" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(r["model"], r["seed"]) for r in rows[:2]] == [("single-gp", "100"), ("vbagg", "100")]
    mean = np.mean([float(r["rmse"]) for r in rows if r["model"] == "vbagg"])
    assert mean == pytest.approx(summary["variants"]["noise-0.5"]["vbagg"]["rmse"]["mean"])
    written = json.loads((out / "dependent" / "summary.json").read_text())
    for model, metrics in written["variants"]["noise-0.5"].items():
        assert "cpu_seconds" not in metrics
        assert metrics.items() <= summary["variants"]["noise-0.5"][model].items()
    assert "| noise-0.5 | vbagg |" in (out / "dependent" / "summary.md").read_text()


def test_list_names_every_experiment_with_a_line():
    lines = CliRunner().invoke(app, ["run", "--list"]).stdout.strip().splitlines()
    names = [line.split(": ")[0] for line in lines]
    assert names == sorted(names)
    assert {"biased", "dependent", "inter_task", "inter_task_laqn"} <= set(names)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "depend"], "No experiment is named 'depend'; there are biased, biases, counts"),
        (
            ["run", "dependent", "--models", "magic"],
            "has no model 'magic'; it has single-gp, vbagg",
        ),
        (["run", "dependent", "--variants", "loud"], "has no variant 'loud'; it has noise-0.1"),
        (["run", "dependent", "--seeds", "many"], "a number, a range a-b or a list"),
        (
            ["run", "inter_task", "--seeds", "6"],
            "There are 5 folds, 0 to 4; fold 5 was asked for. Ask for --seeds 5 or fewer.",
        ),
    ],
)
def test_wrong_runs_say_what_there_is(arguments, text):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code != 0
    assert text in str(result.exception)


def test_recorded_data_that_are_missing_are_named_with_their_variable(monkeypatch):
    monkeypatch.delenv("MRGP_DATA", raising=False)
    result = CliRunner().invoke(app, ["run", "inter_task", "--quick"])
    assert result.exit_code != 0
    assert "the variable MRGP_DATA names, and it is not set" in str(result.exception)


@pytest.mark.parametrize(
    ("spec", "recipe"),
    [
        ({"recipe": "VBAgg", "kernel": "RBF"}, mrgp.VBAgg(kernel=mrgp.RBF())),
        ({"recipe": "MRGP", "center_point": True}, mrgp.CenterPoint(mrgp.MRGP())),
        (
            {"recipe": "MRGPRN", "kernel_f": "Matern12", "kernel_w": "RBF"},
            mrgp.MRGPRN(kernel_f=mrgp.Matern12(), kernel_w=mrgp.RBF()),
        ),
        (
            {
                "recipe": "MRGPRN",
                "center_point": True,
                "kernel_w": "constant",
                "options": {"latents": 2, "mean": "zero"},
            },
            mrgp.CenterPoint(mrgp.MRGPRN(latents=2, kernel_w="constant", mean="zero")),
        ),
        (
            {"recipe": "MRGP", "kernel": {"day": "Matern12", "space": "Matern32"}},
            mrgp.MRGP(kernel=mrgp.separable(day=mrgp.Matern12(), space=mrgp.Matern32())),
        ),
        (
            {
                "recipe": "MRGP",
                "kernel": {"t": "RBF", "x": {"name": "Matern32", "lengthscale": 9.0}},
            },
            mrgp.MRGP(kernel=mrgp.separable(t=mrgp.RBF(), x=mrgp.Matern32(lengthscale=9.0))),
        ),
        (
            {"recipe": "MRGP", "kernel": {"name": "Matern32", "product": True}},
            mrgp.MRGP(kernel=mrgp.Matern32(product=True)),
        ),
        (
            {
                "recipe": "MRGP",
                "kernel": {"sum": [{"name": "RBF", "dims": ["x"]}, {"t": "RBF", "x": "Matern12"}]},
            },
            mrgp.MRGP(
                kernel=mrgp.RBF(dims=("x",)) + mrgp.separable(t=mrgp.RBF(), x=mrgp.Matern12())
            ),
        ),
        (
            {"recipe": "VBAgg", "options": {"inducing": {"number": 50, "strategy": "grid"}}},
            mrgp.VBAgg(inducing=mrgp.Inducing(50, "grid")),
        ),
        (
            {"recipe": "MRGPRN", "nodes": 2, "options": {"inducing_f": {"x": [0.0, 4.0, 3]}}},
            mrgp.MRGPRN(quadrature=mrgp.GaussLegendre(2), inducing_f=np.array([[0.0], [2], [4]])),
        ),
    ],
)
def test_a_model_of_a_file_is_the_recipe_one_would_type(spec, recipe):
    assert repr(ModelSpec.model_validate(spec).build()) == repr(recipe)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"recipe": "MRGP", "kernel_f": "RBF"}, "MRGP has no kernel_f=; it has kernel, inducing"),
        ({"recipe": "MRGPRN", "options": {"latents": 0}}, "latents= must be a whole number"),
        ({"recipe": "MRGPRN", "options": {"quadrature": 5}}, "quadrature= takes a rule"),
        ({"recipe": "MRGPRN", "kernel_f": "constant"}, "Input should be 'RBF'"),
        ({"recipe": "CenterPoint"}, "Input should be 'MRGP', 'VBAgg'"),
        ({"recipe": "MRGP", "kernel": {"day": "Matern"}}, "Input should be 'RBF'"),
        ({"recipe": "MRGP", "kernel": {"name": "RBF", "length": 1.0}}, "argument 'length'"),
        (
            {"recipe": "MRGP", "kernel": {"t": "RBF"}, "priors": {"lengthscale": (1.0, 1.0)}},
            "priors = go with a kernel by its name",
        ),
        ({"recipe": "MRGP", "optimiser": {"name": "Adam", "pace": 2}}, "argument 'pace'"),
        ({"recipe": "MRGP", "optimiser": {"name": "Adam", "steps": 0}}, "at least 1; got 0"),
    ],
)
def test_a_model_that_cannot_be_made_is_refused_when_read(spec, text):
    with pytest.raises(ValueError, match=text):
        ModelSpec.model_validate(spec)


def test_a_model_sees_its_sources_and_tasks_alone():
    x = mrgp.points([[0.0], [1.0]])
    data = mrgp.Dataset(
        [mrgp.Observations(x, [1.0, 2.0], task=t, name=s) for s in "ab" for t in ("u", "v")]
    )
    assert ModelSpec(recipe="MRGP").view(data).processes == data.processes
    seen = ModelSpec(recipe="MRGP", sources=["b"], tasks=["u"]).view(data)
    assert seen.processes == (("b", "u"),)
    with pytest.raises(ValueError, match="No task is named 'w'; the tasks are"):
        ModelSpec(recipe="MRGP", tasks=["w"]).view(data)


def test_a_source_may_be_a_task_of_its_own():
    case = held_out()
    data = mrgp.Dataset(
        [case.data["site", "u"], case.data["site", "v"].replace(task="u", name="grid")]
    )
    both = ModelSpec(recipe="MRGPRN", own_tasks=["grid"]).view(data)
    assert both.processes == (("site", "u"), ("grid", "grid"))
    np.testing.assert_array_equal(both["grid"].y, data["grid"].y)
    with pytest.raises(ExperimentError, match="names 'cells', which is no source"):
        ModelSpec(recipe="MRGPRN", own_tasks=["cells"]).view(data)


def test_a_model_is_fitted_by_its_optimiser():
    case = held_out()
    brief = {"name": "LBFGS", "max_steps": 2, "starts": 1, "candidates": 0}
    spec = ModelSpec.model_validate({"recipe": "MRGP", "tasks": ["u"], "optimiser": brief})
    fit = spec.fit(spec.view(case.data), 0)
    assert fit.optimiser == mrgp.LBFGS(max_steps=2, starts=1, candidates=0)


@pytest.mark.thorough
def test_parameters_of_a_sample_condition_on_all_values():
    x = np.linspace(0.0, 12.0, 300)[:, None]
    y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=300)
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x, inputs="x"), y, name="a", task="u")])
    options = {"inducing": {"x": [0.0, 12.0, 25]}}
    spec = ModelSpec(recipe="MRGP", kernel="RBF", sample=40, options=options)
    found, drawn = spec.fit(data, 0), mrgp.fit(spec.build(), data.batch(40, 0), progress=None)
    for name, value in drawn.parameters().items():
        np.testing.assert_allclose(found.parameters()[name], value)
    values = drawn.parameters()
    fixed = {n: mrgp.fixed(values[f"kernel.{n}"]) for n in ("lengthscale", "variance")}
    noise = {"a": mrgp.fixed(values["noise_variance[a]"])}
    held = mrgp.MRGP(kernel=mrgp.RBF(**fixed), method="exact", mean="zero", noise=noise)
    level = float(values["mean.constant"])
    shifted = mrgp.Dataset([data["a"].replace(y=y - level)])
    exact = mrgp.fit(held, shifted, progress=None)
    at = mrgp.points(np.linspace(1.0, 11.0, 7)[:, None], inputs="x")
    whole, reference = mrgp.predict(found, at), mrgp.predict(exact, at)
    np.testing.assert_allclose(whole.mean, reference.mean + level, atol=1e-4)
    np.testing.assert_allclose(whole.std, reference.std, rtol=1e-3)
    assert np.all(whole.std < 0.7 * mrgp.predict(drawn, at).std)


@pytest.mark.parametrize(
    "spec",
    [
        {"recipe": "MRGP"},
        {"recipe": "MRGPRN", "kernel_w": "constant"},
        {"recipe": "MRGPRN", "options": {"inducing_f": 10}},
    ],
)
def test_a_sample_needs_a_posterior_that_follows_from_parameters(spec):
    with pytest.raises(ValueError, match="sample = goes with MRGP or VBAgg that have inducing"):
        ModelSpec.model_validate(spec | {"sample": 10})


def held_out():
    """A fine task with a gap, and a coarse one that is twice the fine one."""
    x = np.arange(24.0)
    y = np.sin(x / 3)
    gap = (x >= 8) & (x < 14)
    fine = mrgp.Observations(mrgp.points(x[~gap, None]), y[~gap], task="u", name="site")
    bags = mrgp.nodes(x.reshape(12, 2, 1))
    coarse = mrgp.Observations(bags, 2 * y.reshape(12, 2).mean(1), task="v", name="site")
    data = mrgp.Dataset([fine, coarse])
    return Recording(data, mrgp.points(x[gap, None]), y[gap], "site", "u")


@pytest.mark.thorough
def test_recorded_cases_have_no_clean_scores_and_are_timed_where_asked():
    case = held_out()
    alone = ModelSpec(recipe="MRGP", kernel="RBF", tasks=["u"])
    scored = experiments.score(alone, case, 0, timed=False)
    (scores,) = scored.rows
    assert {"mse", "coverage_95", "crps", "weight"} <= set(scores)
    assert not [name for name in scores if name.endswith("_clean")]
    assert "cpu_seconds" not in scored.costs
    both = ModelSpec(recipe="MRGPRN", kernel_f="RBF", kernel_w="constant", options={"latents": 1})
    shared = experiments.score(both, case, 0)
    assert shared.rows[0]["mse"] < 0.2 * scores["mse"]
    assert shared.costs["cpu_seconds"] > 0
    fit = mrgp.fit(mrgp.MRGP(kernel=mrgp.RBF()), case.data.select(task="u"), progress=None)
    noisy = mrgp.predict(fit, case.support, noise=True)
    assert scores["crps"] == pytest.approx(mrgp.evaluate(noisy, case.y)["crps"])
    assert scores["mse"] == pytest.approx(np.mean((noisy.mean - case.y) ** 2))


def test_sites_have_rows_of_their_own_from_one_fit():
    case = dataclasses.replace(held_out(), site=("east", "west", "east", "west", "west", "west"))
    spec = ModelSpec(recipe="MRGP", kernel="RBF", tasks=["u"])
    rows = experiments.score(spec, case, 0, timed=False).rows
    assert [(row["site"], row["n"]) for row in rows] == [("east", 2), ("west", 4)]
    fit = mrgp.fit(mrgp.MRGP(kernel=mrgp.RBF()), case.data.select(task="u"), progress=None)
    for row, chosen in zip(rows, ([0, 2], [1, 3, 4, 5]), strict=True):
        part = mrgp.evaluate(mrgp.predict(fit, case.support[chosen], noise=True), case.y[chosen])
        for name in ("rmse", "crps", "nlpd", "coverage_50", "width_95"):
            assert row[name] == pytest.approx(part[name])
    labels = {"variant": "a", "model": "m"}
    metrics = experiments.summarise([labels | row for row in rows])["a"]["m"]
    whole = experiments.score(spec, dataclasses.replace(case, site=None), 0, timed=False).rows[0]
    assert whole["n"] == 6
    for name in ("rmse", "mse", "crps", "nlpd", "coverage_95", "width_95"):
        assert metrics[name]["pooled"] == pytest.approx(whole[name])
    assert metrics["rmse"]["n"] == 2


def test_work_is_metered_by_time_and_peak_memory():
    def work():
        time.sleep(0.2)
        held = np.ones(40_000_000)
        time.sleep(0.1)
        return held[:3].sum()

    result, costs = metered(work)
    assert result == 3
    assert 0.3 <= costs["seconds"] < 10
    assert 300 < costs["peak_mb"] < 1000
    with pytest.raises(ZeroDivisionError):
        metered(lambda: 1 / 0)


def test_memory_is_left_out_where_the_system_does_not_tell(monkeypatch, tmp_path):
    monkeypatch.setattr("mrgp.experiments.metering.FORGET", tmp_path / "none" / "clear_refs")
    assert set(metered(lambda: None)[1]) == {"seconds", "first_cpu_seconds"}


def test_clean_scores_are_of_the_latent_function():
    case = dependent(100, noise=0.5)
    spec = ModelSpec(recipe="MRGP", kernel="RBF", sources=["fine"])
    (scores,) = experiments.score(spec, case, 0, timed=False).rows
    fit = mrgp.fit(mrgp.MRGP(mrgp.RBF()), case.data.select(source="fine"), progress=None)
    latent = mrgp.predict(fit, case.support)
    low, high = latent.interval(0.95)
    assert scores["width_95_clean"] == pytest.approx(np.mean(high - low))
    assert scores["mse_clean"] == pytest.approx(np.mean((latent.mean - case.truth) ** 2))
    assert scores["mse"] == pytest.approx(np.mean((latent.mean - case.y) ** 2))
    assert scores["width_95"] > scores["width_95_clean"]


@pytest.fixture
def recorded(monkeypatch):
    """The experiment `inter_task` on three small folds, by a model of the fine task."""
    load = lambda fold, window: calls.append((fold, window)) or held_out()  # noqa: E731
    calls = []
    small = experiments.Replicates("fold", load, lambda: ("first", "second", "third"))
    monkeypatch.setitem(experiments.DATA, "inter_task", small)
    return experiments.find("inter_task"), calls


def test_recorded_experiments_are_repeated_over_what_there_is(recorded, monkeypatch, tmp_path):
    experiment, calls = recorded
    spec = ModelSpec(recipe="MRGP", kernel="RBF", tasks=["u"])
    monkeypatch.setitem(experiment.models, "single-gp", spec)
    asked = {"variants": ["24h"], "model_names": ["single-gp"], "out": tmp_path}
    summary = experiments.run(experiment, **asked)
    assert list(dict.fromkeys(calls)) == [("first", 24), ("second", 24), ("third", 24)]
    metrics = summary["variants"]["24h"]["single-gp"]
    assert (metrics["mse"]["n"], metrics["cpu_seconds"]["n"]) == (3, 1)
    header, rows = experiments.table(summary)
    assert header[2:4] == ["mse", "rmse"]
    assert not any("clean" in name for name in header)
    assert rows[0][-1] == "3"
    with (tmp_path / "inter_task" / "scores.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [row["fold"] for row in written] == ["first", "second", "third"]
    assert [row["n"] for row in written] == ["6"] * 3
    with (tmp_path / "inter_task" / "costs.csv").open() as file:
        costs = list(csv.DictReader(file))
    assert [row["cpu_seconds"] != "" for row in costs] == [True, False, False]
    assert all(float(row["seconds"]) > 0 for row in costs)
    assert all(float(row["predict_seconds"]) > 0 for row in costs)
    assert float(rows[0][header.index("pooled rmse")]) == pytest.approx(
        metrics["rmse"]["pooled"], abs=1e-3
    )


def test_no_fit_is_made_twice_where_none_is_timed(recorded, monkeypatch):
    experiment, _ = recorded
    fits = []
    spec = ModelSpec(recipe="MRGP", kernel="RBF", tasks=["u"])
    fit = ModelSpec.fit
    monkeypatch.setattr(ModelSpec, "fit", lambda *a: fits.append(a) or fit(*a))
    monkeypatch.setitem(experiment.models, "single-gp", spec)
    untimed = experiment.model_copy(update={"timed": 0})
    summary = experiments.run(untimed, variants=["24h"], model_names=["single-gp"], seeds=[0, 2])
    assert len(fits) == 2
    metrics = summary["variants"]["24h"]["single-gp"]
    assert "cpu_seconds" not in metrics
    assert metrics["seconds"]["n"] == 2
    header, rows = experiments.table(summary)
    assert rows[0][header.index("cpu s")] == ""


def test_variants_may_have_folds_of_their_own():
    known = experiments.DATA["london_no2"]
    assert known.choose(None, {"protocol": "forecast"}) == {0: "21 February"}
    assert known.choose([6], {"protocol": "leave-sites-out"}) == {6: "6"}
    with pytest.raises(ExperimentError, match="There is one fold, 0; fold 1 was asked for"):
        known.choose([0, 1], {"protocol": "aurn-2018"})


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ({"simulator": ""}, "give either simulator or recorded"),
        ({"recorded": 'recorded = "inter_task"'}, "give either simulator or recorded"),
        ({"seeds": ""}, "a simulator needs seeds"),
        ({"quick": 'quick.variants = ["b"]'}, "x has no variant 'b'; it has a"),
        ({"model": 'models.m = { recipe = "VBAgg", kernel_f = "RBF" }'}, "models.m: VBAgg has no"),
    ],
)
def test_keys_that_do_not_agree_are_refused(lines, text, tmp_path):
    content = {
        "names": 'name = "x"\ntitle = "x"',
        "simulator": 'simulator = "biased"',
        "seeds": "seeds = 2",
        "quick": 'quick.variants = ["a"]',
        "variant": "variants.a = {}",
        "model": 'models.m = { recipe = "VBAgg" }',
    }
    (tmp_path / "experiment.toml").write_text("\n".join((content | lines).values()))
    with pytest.raises(ExperimentError, match=text) as caught:
        experiments.find(str(tmp_path))
    assert ": :" not in str(caught.value)
    assert not str(caught.value).endswith("..")


def test_a_broken_experiment_file_is_named_with_its_key(tmp_path):
    (tmp_path / "experiment.toml").write_text("name = ")
    with pytest.raises(experiments.ExperimentError, match="is not valid TOML"):
        experiments.find(str(tmp_path))
    (tmp_path / "experiment.toml").write_text(
        'name = "x"\ntitle = "x"\nsimulator = "dependent"\nseeds = "ten"'
    )
    with pytest.raises(experiments.ExperimentError, match=r"experiment.toml: seeds: "):
        experiments.find(str(tmp_path))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_every_experiment_can_be_read_and_says_how_to_run_it(folder):
    assert experiments.find(str(folder)).name == folder.name
    assert f"mrgp run {folder.name}" in (folder / "README.md").read_text()


@pytest.mark.parametrize("folder", MEASURED, ids=lambda f: f.name)
def test_recorded_tables_say_how_near_they_come_back(folder):
    experiment = experiments.find(str(folder))
    expected = json.loads((folder / "expected.json").read_text())
    assert expected["tolerances"]
    assert set(expected["measured"].get("first", {})) <= set(expected["measured"]["variants"])
    for variant, by_model in expected["measured"]["variants"].items():
        assert variant in experiment.variants
        for model, metrics in by_model.items():
            assert set(expected["tolerances"]) <= set(metrics), (variant, model)


@pytest.mark.slow
@pytest.mark.parametrize("folder", MEASURED, ids=lambda f: f.name)
def test_experiments_reproduce_their_recorded_tables(folder):
    experiment = experiments.find(str(folder))
    if experiment.recorded and not Path(os.environ.get("MRGP_DATA") or "-").is_dir():
        pytest.skip("MRGP_DATA names no folder of real data")
    expected = json.loads((folder / "expected.json").read_text())
    variants = expected["measured"]["variants"]
    first, count = expected["measured"].get("first", {}), expected["measured"].get("sites")
    for variant, by_model in variants.items():
        some = first.get(variant, count)
        seeds = None if some is None else range(some)
        summary = experiments.run(
            experiment, variants=[variant], model_names=list(by_model), seeds=seeds
        )
        for model, metrics in by_model.items():
            for metric, tolerance in expected["tolerances"].items():
                found = summary["variants"][variant][model][metric]["mean"]
                assert found == pytest.approx(metrics[metric]["mean"], abs=tolerance)
