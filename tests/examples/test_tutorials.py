"""The tutorials run, show what their pages say, and the pages quote what the scripts print."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = sorted(p.stem for p in (ROOT / "examples").glob("*.py") if not p.stem.startswith("_"))
PAGES = {name: ROOT / "docs" / "tutorials" / f"{name}.md" for name in NAMES}
KEPT = ROOT / "docs" / "images" / "tutorials"
LARGEST = 100_000


def skip_without_data(name):
    """Skip a tutorial of recorded data where no variable names their folder."""
    script = (ROOT / "examples" / f"{name}.py").read_text()
    if "data_file(" in script and "MRGP_DATA" not in os.environ:
        pytest.skip("MRGP_DATA names no folder of recorded data")


def tell(name, out, *arguments):
    """Run a tutorial with warnings as errors; return what it printed, and its figures."""
    skip_without_data(name)
    done = subprocess.run(
        [sys.executable, "-W", "error", f"examples/{name}.py", "--out", out, *arguments],
        cwd=ROOT,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((out / f"{name}.json").read_text())


CLAIMS = {
    "sensors_and_satellite": lambda f: {
        "both sources beat the sensors": f["rmse_both"] < 0.8 * f["rmse_sensors_alone"],
        "and the cells as they are": f["rmse_both"] < 0.4 * f["rmse_painted"],
        "and a fit without an offset": f["rmse_both"] < 0.5 * f["rmse_no_offset"],
        "the offset is found": abs(f["offset"] - 6) < 1,
        "intervals are honest": f["coverage_both"] > 0.85,
        "those without an offset are not": f["coverage_no_offset"] < 0.7,
    },
    "two_pollutants": lambda f: {
        "weights that vary beat constant ones": f["rmse_varying"] < f["rmse_constant"],
        "and pm10 alone": f["rmse_varying"] < 0.6 * f["rmse_alone"],
        "and a line": f["rmse_varying"] < 0.3 * f["rmse_line"],
        "intervals are honest": f["coverage_varying"] > 0.85,
    },
    "biased_model_output": lambda f: {
        "the map beats the raw model": f["rmse_map"] < 0.5 * f["rmse_raw"],
        "and the sensors": f["rmse_map"] < 0.5 * f["rmse_alone"],
        "and the line": f["rmse_map"] < f["rmse_line"],
        "intervals are honest": f["coverage_map"] > 0.85,
    },
    "district_counts": lambda f: {
        "counts beat painted rates": f["rmse_counts"] < 0.4 * f["rmse_painted"],
        "and rates as if they were Gaussian": f["rmse_counts"] < f["rmse_gaussian"],
        "new counts lie in their intervals": f["coverage_new"] > 0.9,
    },
    "infant_deaths": lambda f: {
        "later counts are told best by the field": f["nlpd_field"] < f["nlpd_regression"],
        "by CRPS too": f["crps_field"] < min(f["crps_regression"], f["crps_raw"]),
        "intervals are honest": 0.88 < f["coverage_field"] < 0.99,
        "those about raw rates are not": f["coverage_raw"] < 0.85,
    },
    "polygons_to_pixels": lambda f: {
        "people and traffic beat paint": f["rmse_by_people"] < 0.7 * f["rmse_painted"],
        "and places alone": f["rmse_by_people"] < 0.8 * f["rmse_places"],
        "and weights by area": f["rmse_by_people"] < f["rmse_by_area"],
        "intervals hold most": f["coverage_by_people"] > 0.75,
        "the catchment is near": abs(f["cases"] / f["cases_truth"] - 1) < 0.15,
    },
    "dependent_sources": lambda f: {
        "the ferry counts more than the copies": f["weight_ferry"] > f["weight_bulletin"],
        "the copies share": f["weight_buoy"] < 0.85 and f["weight_bulletin"] < 0.85,
        "weights widen": f["coverage_each"] >= f["coverage_full"],
        "intervals are honest": f["coverage_each"] > 0.75,
    },
    "month_of_a_city": lambda f: {
        "unseen sites beat the best rule, by hours": f["rmse_hours"] < 0.8 * f["rule_hours"],
        "and by days": f["rmse_days"] < 0.8 * f["rule_days"],
        "intervals are honest": min(f["coverage_hours"], f["coverage_days"]) > 0.8,
        "the next hours beat yesterday": f["rmse_soon"] < f["yesterday_soon"],
        "the map beats the model's cells": f["rmse_map"] < 0.8 * f["rmse_painted"],
        "the ratio is near": abs(f["ratio"] - 0.7) < 0.15,
    },
    "your_own_kernel": lambda f: {
        "means over windows are right": f["quadrature_error"] < 1e-3,
        "the period is found": abs(f["period"] - 2.2) < 0.15,
        "the kernel beats the default": f["rmse_seiche"] < 0.9 * f["rmse_matern"],
        "intervals hold most": f["coverage_seiche"] > 0.75,
        "the loaded fit is the same": f["same"] == 1,
    },
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_runs_and_keeps_its_claims(name, tmp_path):
    _, figures = tell(name, tmp_path, "--quick")
    broken = [claim for claim, holds in CLAIMS[name](figures).items() if not holds]
    assert not broken, figures
    pictures = {p.name for p in tmp_path.glob("*.png")}
    assert pictures
    assert pictures == {p.name for p in KEPT.glob("*.png") if picture_of(p.stem) == name}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_figures_that_are_kept_come_back(name, tmp_path):
    _, figures = tell(name, tmp_path)
    kept = json.loads((KEPT / f"{name}.json").read_text())
    assert figures == pytest.approx(kept, rel=0.05, abs=0.02)


def picture_of(stem):
    """Return the tutorial that a picture belongs to."""
    return max((name for name in NAMES if stem.startswith(name)), key=len, default=None)


@pytest.mark.parametrize("name", NAMES)
def test_the_kept_figures_keep_the_claims_and_are_printed(name):
    kept = json.loads((KEPT / f"{name}.json").read_text())
    broken = [claim for claim, holds in CLAIMS[name](kept).items() if not holds]
    assert not broken, kept
    printed = (PAGES[name].parent / "printed" / f"{name}.txt").read_text()
    shown = [float(n) for n in re.findall(r"\d+(?:\.\d+)?(?:e[+-]\d+)?", printed)]
    for figure, value in kept.items():
        near = any(abs(number - value) <= 0.51 * 10 ** -_places(number) for number in shown)
        assert near or figure == "same", figure


def _places(number):
    return len(f"{number:.10f}".rstrip("0").partition(".")[2]) if number > 1e-6 else 6


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_the_script_and_its_pictures(name):
    page, script = PAGES[name].read_text(), (ROOT / "examples" / f"{name}.py").read_text()
    sections = re.findall(r"# --8<-- \[start:(\w+)\]", script)
    assert re.findall(rf'^--8<-- "{name}\.py:(\w+)"$', page, re.MULTILINE) == sections
    assert f'--8<-- "printed/{name}.txt"' in page
    kept = {p.name for p in KEPT.glob("*.png") if picture_of(p.stem) == name}
    assert set(re.findall(r"\(\.\./images/tutorials/(\w+\.png)\)", page)) == kept
    assert all((KEPT / picture).stat().st_size < LARGEST for picture in kept)


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_in_a_page_are_those_of_the_script(name):
    page = PAGES[name].read_text()
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|\[theory [^\]]*\]", "", page, flags=re.DOTALL)
    told = re.findall(r"(?<![\w.])\d+\.\d+", prose)
    printed = (PAGES[name].parent / "printed" / f"{name}.txt").read_text()
    script = (ROOT / "examples" / f"{name}.py").read_text()
    known = set(re.findall(r"(?<![\w.])\d+\.\d+", printed + script))
    assert told, "a page quotes what its script found"
    assert set(told) <= known


def test_scripts_are_short():
    for name in NAMES:
        lines = (ROOT / "examples" / f"{name}.py").read_text().count("\n")
        assert 60 <= lines <= 180, name
