"""Experiments: simulators, protocol, summaries, files, and the command that runs them."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from mrgp import experiments
from mrgp.cli import app, parse_seeds
from mrgp.datasets import city, dependent


def test_the_coarse_source_averages_the_fine_one():
    simulation = dependent(4, noise=0.5)
    fine, coarse = simulation.data["fine"], simulation.data["coarse"]
    np.testing.assert_allclose(coarse.y, fine.y[:99].reshape(33, 3).mean(1))
    np.testing.assert_allclose(
        coarse.support.x[:, :, 0], np.linspace(-2, 15, 100)[:99].reshape(33, 3)
    )
    np.testing.assert_allclose(simulation.truth, 5 * np.sin(simulation.support.x[:, 0]) ** 2)


def test_independent_sources_have_errors_of_their_own():
    errors = []
    for seed in range(200):
        data = dependent(seed, noise=0.5, independent=True).data
        x = data["fine"].support.x[:, 0]
        fine = (data["fine"].y - 5 * np.sin(x) ** 2)[:99].reshape(33, 3).mean(1)
        coarse = data["coarse"].y - (5 * np.sin(x[:99]) ** 2).reshape(33, 3).mean(1)
        errors.append((fine, coarse))
    fine, coarse = np.concatenate(errors, 1)
    assert abs(np.corrcoef(fine, coarse)[0, 1]) < 0.05
    assert coarse.std() == pytest.approx(0.5 / np.sqrt(3), rel=0.03)


def test_the_city_reports_cell_means_of_its_truth():
    simulation = city(1)
    cells = simulation.data["satellite"].support
    inside = [
        simulation.truth[
            np.all((simulation.support.x >= a) & (simulation.support.x < b), axis=1)
        ].mean()
        for a, b in zip(cells.lower, cells.upper, strict=True)
    ]
    assert np.abs(simulation.data["satellite"].y - inside).max() < 4 * 0.5
    again = city(1)
    np.testing.assert_array_equal(again.truth, simulation.truth)


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


@pytest.mark.parametrize(("text", "seeds"), [("3", [0, 1, 2]), ("5-7", [5, 6, 7]), ("4,9", [4, 9])])
def test_seeds_by_number_range_or_list(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["0", "x", "9-3", "1-2-3"])
def test_wrong_seeds_are_refused(text):
    with pytest.raises(ValueError, match="a number, a range a-b or a list"):
        parse_seeds(text)


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    arguments = ["run", "dependent", "--quick", "--json", "--seeds", "100-101", "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.strip().splitlines()[-1]), out


def test_run_prints_one_json_object_of_the_agreed_form(quick_run):
    summary, _ = quick_run
    assert summary["experiment"] == "dependent"
    assert set(summary["variants"]) == {"noise-0.5"}
    assert set(summary["variants"]["noise-0.5"]) == {"single-gp", "vbagg"}
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


def test_run_writes_scores_by_seed_and_a_summary(quick_run):
    summary, out = quick_run
    with (out / "dependent" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(r["model"], r["seed"]) for r in rows[:2]] == [("single-gp", "100"), ("vbagg", "100")]
    mean = np.mean([float(r["rmse"]) for r in rows if r["model"] == "vbagg"])
    assert mean == pytest.approx(summary["variants"]["noise-0.5"]["vbagg"]["rmse"]["mean"])
    assert json.loads((out / "dependent" / "summary.json").read_text()) == summary
    assert "| noise-0.5 | vbagg |" in (out / "dependent" / "summary.md").read_text()


def test_list_names_every_experiment_with_a_line():
    lines = CliRunner().invoke(app, ["run", "--list"]).stdout.strip().splitlines()
    assert any(line.startswith("dependent: ") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "depend"], "No experiment is named 'depend'; there are dependent"),
        (
            ["run", "dependent", "--models", "magic"],
            "has no model 'magic'; it has single-gp, vbagg",
        ),
        (["run", "dependent", "--variants", "loud"], "has no variant 'loud'; it has noise-0.1"),
        (["run", "dependent", "--seeds", "many"], "a number, a range a-b or a list"),
    ],
)
def test_wrong_runs_say_what_there_is(arguments, text):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code != 0
    assert text in str(result.exception)


def test_a_broken_experiment_file_is_named_with_its_key(tmp_path):
    (tmp_path / "experiment.toml").write_text("name = ")
    with pytest.raises(experiments.ExperimentError, match="is not valid TOML"):
        experiments.find(str(tmp_path))
    (tmp_path / "experiment.toml").write_text(
        'name = "x"\ntitle = "x"\nsimulator = "dependent"\nseeds = "ten"'
    )
    with pytest.raises(experiments.ExperimentError, match=r"experiment.toml: seeds: "):
        experiments.find(str(tmp_path))


@pytest.mark.slow
def test_dependent_reproduces_its_recorded_table():
    folder = experiments.folders()[-1] / "dependent"
    expected = json.loads((folder / "expected.json").read_text())
    summary = experiments.run(experiments.find("dependent"))
    for variant, by_model in expected["measured"]["variants"].items():
        for model, metrics in by_model.items():
            for metric, tolerance in expected["tolerances"].items():
                found = summary["variants"][variant][model][metric]["mean"]
                assert found == pytest.approx(metrics[metric]["mean"], abs=tolerance)
