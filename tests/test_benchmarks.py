"""The benchmarks run at small size, and their recorded results hold what is claimed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.thorough
def test_small_benchmarks_run():
    done = subprocess.run(
        [sys.executable, FOLDER / "run.py", "--quick"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", sorted(FOLDER.glob("results/*.json")), ids=lambda f: f.stem)
def test_recorded_results_say_when_and_where_and_hold(file):
    result = json.loads(file.read_text())
    assert {"date", "machine", "versions"} <= set(result)
    assert all(requirement["holds"] for requirement in result["requirements"])
