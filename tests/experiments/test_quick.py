"""The quick version of every experiment, by its one command: its table, files and figures."""

import csv
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.image import imread
from typer.testing import CliRunner

from mrgp import experiments
from mrgp.cli import app

ROOT = Path(__file__).parents[2] / "experiments"
NAMES = sorted(file.parent.name for file in ROOT.glob("*/experiment.toml"))
SAMPLED = {"mcmc_dependent": "mean_clean"}
FIGURES = {
    "biased": {"functions", "experts", "calibration"},
    "biases": {"functions", "experts", "calibration"},
    "counts": {"calibration"},
    "dependent": {"functions", "calibration"},
    "dependent_map": {"calibration"},
    "fusion": {"maps", "calibration"},
    "gauntlet": {"calibration"},
    "inter_task": {"functions", "calibration"},
    "inter_task_laqn": {"functions", "calibration"},
    "london_no2": {"maps", "calibration"},
    "london_year": {"calibration"},
    "mcmc_dependent": {"posteriors"},
    "mixing": {"functions", "calibration"},
    "outliers": {"calibration"},
    "scaling": {"calibration", "costs"},
}


def mean(by_model, model, metric):
    return by_model[model][metric]["mean"]


CLAIMS = {
    "biased": lambda found: mean(found, "mr-dgp", "rmse") < 0.3 * mean(found, "vbagg", "rmse"),
    "biases": lambda found: mean(found, "mr-dgp", "crps") < mean(found, "mr-gp", "crps"),
    "counts": lambda found: all(
        mean(found, "mr-gp", "crps_pixel") < 0.8 * mean(found, rival, "crps_pixel")
        for rival in ("painted", "poisson-regression")
    ),
    "dependent": lambda found: (
        mean(found, "mr-gp:ratio", "coverage_95_clean")
        > mean(found, "vbagg", "coverage_95_clean") + 0.1
    ),
    "dependent_map": lambda found: (
        mean(found, "mr-gp:ratio", "weight") < 0.8
        and mean(found, "mr-gp:ratio", "width_95_clean")
        > 1.1 * mean(found, "vbagg", "width_95_clean")
    ),
    "fusion": lambda found: mean(found, "mr-gp", "rmse") < 8.0,
    # Of pure noise the mean is best; a second source that is off by a constant is worth a line.
    "gauntlet": lambda found: (
        mean(found, "mean", "rmse") < mean(found, "nearest", "rmse")
        or (mean(found, "regression", "rmse") < mean(found, "mean", "rmse"))
    ),
    "inter_task": lambda found: mean(found, "lcm", "mse") < mean(found, "single-gp", "mse"),
    "inter_task_laqn": lambda found: mean(found, "lcm", "mse") < mean(found, "single-gp", "mse"),
    "london_no2": lambda found: (
        mean(found, "mr-dgp", "crps") < mean(found, "mr-gp", "crps")
        and mean(found, "mr-gp", "crps") < mean(found, "single-gp", "crps")
    ),
    "london_year": lambda found: mean(found, "mr-gp", "crps") < mean(found, "mean", "crps"),
    # Under the product likelihood shared errors pass for signal.
    "mcmc_dependent": lambda found: (
        mean(found, "product", "sd_f") < 0.8 * mean(found, "dependent", "sd_f")
        and mean(found, "product", "sigma_1") < mean(found, "dependent", "sigma_1")
    ),
    "mixing": lambda found: mean(found, "lcm", "rmse") < mean(found, "single-gp", "rmse"),
    "outliers": lambda found: (
        mean(found, "student-t", "crps") < 0.8 * mean(found, "gaussian", "crps")
    ),
    "scaling": lambda found: 0.9 < mean(found, "mr-gp", "coverage_95") < 0.99,
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_the_quick_version_gives_its_table_and_figures(name, tmp_path):
    experiment = experiments.find(str(ROOT / name))
    simulated = experiment.recorded is None or name == "gauntlet"
    if not simulated and not Path(os.environ.get("MRGP_DATA") or "-").is_dir():
        pytest.skip(f"{name} reads real data, and MRGP_DATA names no folder of it")
    arguments = ["run", name, "--quick", "--json", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    summary, folder = json.loads(result.stdout), tmp_path / name
    assert list(summary["variants"]) == experiment.quick.variants
    for by_model in summary["variants"].values():
        assert list(by_model) == experiment.choose_models(None, quick=True)
        for metrics in by_model.values():
            assert all(np.isfinite(cell["mean"]) for cell in metrics.values())
        assert CLAIMS[name](by_model)
    with (folder / "scores.csv").open() as file:
        assert {row["model"] for row in csv.DictReader(file)} == set(by_model)
    assert "|" in (folder / "summary.md").read_text()
    assert {"config.json", "versions.json"} <= {file.name for file in folder.iterdir()}
    predictions = sorted((folder / "predictions").glob("*.nc"))
    assert predictions
    with xr.open_dataset(predictions[0], engine="scipy") as written:
        assert np.isfinite(written[SAMPLED.get(name, "mean")]).all()
    drawn = sorted(folder.glob("*.png"))
    assert {re.split("[-.]", file.name)[0] for file in drawn} == FIGURES[name]
    for file in drawn:
        # A picture has more on it than paper.
        assert imread(file)[..., :3].std() > 0.01
