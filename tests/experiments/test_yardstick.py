"""Simple rules beside models: scores, failures, margins, and the command."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import mrgp
from mrgp import experiments
from mrgp.cli import app
from mrgp.datasets import gauntlet
from mrgp.evaluation import evaluate
from mrgp.experiments import ModelSpec, compare_with_rules, margins_table, told, verdicts
from mrgp.experiments.scoring import _of_means
from mrgp.experiments.yardstick import score_failure, score_rule
from mrgp.selection import RULES

RULE_NAMES = list(RULES)


def row(variant, model, rmse, crps, start="0", **more):
    return {"variant": variant, "start": start, "model": model, "rmse": rmse, "crps": crps, **more}


ROWS = [
    row("offset", "mean", 2.0, 1.0, cv_rmse=1.0),
    row("offset", "kriging", 1.0, 1.5, cv_rmse=2.0),
    row("offset", "auto", 1.5, 1.2, coverage_95=0.99, coverage_95_day=0.9),
    row("noise", "mean", 1.0, 1.0, cv_rmse=1.0),
    row("noise", "kriging", 4.0, 4.0, cv_rmse=3.0),
    row("noise", "auto", 1.01, 1.0, coverage_95=0.93, failed="FitError: no"),
]
COSTS = [{"variant": "offset", "start": "0", "model": "auto", "first_cpu_seconds": 7.0}]


def test_margins_are_against_the_best_rule_of_each_score_and_the_one_picked():
    found = compare_with_rules(ROWS, COSTS, RULE_NAMES)
    assert [(r["variant"], r["model"]) for r in found] == [("offset", "auto"), ("noise", "auto")]
    first = found[0]
    assert (first["best_rmse"], first["best_crps"], first["picked"]) == ("kriging", "mean", "mean")
    assert (first["ratio_rmse"], first["ratio_crps"]) == (1.5, 1.2)
    assert (first["picked_ratio_rmse"], first["picked_ratio_crps"]) == (0.75, 1.2)
    assert first["first_cpu_seconds"] == 7.0
    assert compare_with_rules([r for r in ROWS if r["model"] == "auto"], [], RULE_NAMES) == []


def test_margins_are_of_folds_where_these_are_what_is_repeated():
    folds = [
        {("fold" if name == "start" else name): value for name, value in r.items()} for r in ROWS
    ]
    found, plain = (compare_with_rules(rows, [], RULE_NAMES) for rows in (folds, ROWS))
    assert margins_table(found) == margins_table(plain)


def test_verdicts_count_sets_and_structure():
    about = verdicts(compare_with_rules(ROWS, COSTS, RULE_NAMES))["auto"]
    assert about["sets"] == 2
    assert (about["near_rmse"], about["near_crps"]) == (0.5, 0.5)
    assert (about["worst_rmse"], about["worst_crps"]) == (1.5, 1.2)
    assert about["mean_rmse"] == pytest.approx(np.sqrt(1.5 * 1.01))
    assert (about["picked_near_rmse"], about["picked_near_crps"]) == (1.0, 0.5)
    # Pure noise has no structure.
    assert about["structured_rmse"] == pytest.approx(1.5)
    assert (about["coverage"], about["coverage_day"]) == (0.5, 1.0)
    assert "coverage_window" not in about


def test_it_is_told_where_a_rule_wins_and_what_failed():
    found = compare_with_rules(ROWS, COSTS, RULE_NAMES)
    lines = told(found)
    assert lines[0] == (
        "offset 0: kriging and mean beat auto, whose rmse is 1.500 and crps is 1.200 times as large"
    )
    assert lines[1] == "noise 0: auto failed: FitError: no"
    assert lines[2] == "noise 0: mean beats auto, whose rmse is 1.010 times as large"
    assert lines[3].startswith("auto, 2 sets: near_rmse 0.500, worst_rmse 1.500")
    header, body = margins_table(found)
    assert len(header) == len(body[0])


def test_a_rule_is_scored_as_a_model_is():
    case = gauntlet("0", "stuck")
    found = score_rule("inverse", case)
    mean, sd = RULES["inverse"].fit(case.data, ("sites", "level")).predict(case.support)
    prediction = found.predictions["noisy"]
    np.testing.assert_allclose(prediction.mean, mean)
    np.testing.assert_allclose(prediction.std, sd)
    scores = found.rows[0]
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((mean - case.y) ** 2)))
    assert scores["n"] == len(case.y)
    day, _ = RULES["inverse"].fit(case.data, ("sites", "level")).predict(case.means["day"].support)
    expected = np.sqrt(np.mean((day - case.means["day"].y) ** 2))
    assert scores["rmse_day"] == pytest.approx(expected)
    assert {"crps_window", "coverage_95_window", "cv_rmse"} <= set(scores)


def test_a_rule_without_the_covariates_it_needs_is_the_mean():
    case = gauntlet("0", "noise")
    assert score_rule("type", case).rows == score_rule("mean", case).rows


def test_a_fit_that_failed_counts_as_the_mean_and_is_named():
    case = gauntlet("0", "stuck")
    found = score_failure(case, ValueError("singular\nmore")).rows[0]
    level = case.data["sites"].y.mean()
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((case.y - level) ** 2)))
    assert found["failed"] == "ValueError: singular"
    assert "rmse_day" in found


def test_noise_averages_out_over_a_window_and_the_field_does_not():
    rng = np.random.default_rng(0)
    x = np.repeat(np.linspace(0.0, 4.0, 5), 12)[:, None]
    seen = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]) + rng.normal(size=60))
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), progress=None)
    once = mrgp.nodes(np.full((1, 1, 1), 2.0), np.ones((1, 1)))
    often = mrgp.nodes(np.full((1, 4, 1), 2.0), np.ones((1, 4)))
    latent, noisy = (
        mrgp.predict(fit, once, source="source", noise=n).variance[0] for n in (False, True)
    )
    for support, share in ((once, 1.0), (often, 0.25)):
        mean = mrgp.Observations(support, [0.0])
        found = _of_means(fit, mean, 0)
        assert found.variance[0] == pytest.approx(latent + share * (noisy - latent))
        assert evaluate(found, [0.0])["n"] == 1


@pytest.mark.parametrize("given", [{"recipe": "rule"}, {"recipe": "rule", "rule": "guess"}])
def test_a_rule_is_named(given):
    with pytest.raises(ValueError, match='recipe = "rule" has one of rule = mean, nearest'):
        ModelSpec.model_validate(given)
    with pytest.raises(ValueError, match='recipe = "rule" chooses kernel itself'):
        ModelSpec(recipe="rule", rule="mean", kernel="RBF")


def test_the_command_takes_sets_and_goes_on_where_it_was(tmp_path):
    arguments = ["run", "gauntlet", "--sets", "noise", "--models", "mean,inverse"]
    arguments += ["--out", str(tmp_path), "--json"]
    first, second = (CliRunner().invoke(app, arguments, catch_exceptions=False) for _ in range(2))
    found = json.loads(first.stdout)["variants"]["noise"]
    assert found["mean"]["rmse"]["n"] == 2
    assert "4 were there before" in second.output
    assert "margins" not in json.loads(first.stdout)


def test_a_failure_of_one_fit_does_not_stop_the_others(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ValueError("it broke")

    monkeypatch.setattr("mrgp.experiments.rivals.fit", broken)
    found = experiments.run(
        experiments.find("gauntlet"),
        variants=["noise"],
        seeds=[0],
        model_names=["mr-gp", "mean"],
        out=tmp_path,
    )
    assert found["margins"][0]["failed"] == "ValueError: it broke"
    assert found["margins"][0]["ratio_rmse"] == pytest.approx(1.0)
    assert "mr-gp failed: ValueError: it broke" in (tmp_path / "gauntlet/margins.md").read_text()
