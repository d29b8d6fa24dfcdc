"""What a person who waits for a command reads."""

import re
import time

import pytest

import mrgp
from mrgp.cli import command
from mrgp.inference import lbfgs, progress


@pytest.fixture
def impatient(monkeypatch):
    """Say something after a fraction of a second, every line of a stage, and take some time."""
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.05)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)

    def slowly(work):
        def waited(*arguments, **settings):
            time.sleep(0.5)
            return work(*arguments, **settings)

        return waited

    monkeypatch.setattr(mrgp, "predict", slowly(mrgp.predict))
    monkeypatch.setattr(lbfgs.Direct, "__call__", slowly(lbfgs.Direct.__call__))


def test_a_fit_says_what_it_does_and_converged_only_at_its_end(impatient, workplace, capsys):
    assert command(["fit", "city.toml"]) == 0
    told = capsys.readouterr()
    assert re.search(r"^fit: compiling, first step \(\d+ s so far\)$", told.err, re.M)
    assert re.search(r"^fit: step 1 of at most 3, bound -?[\d.]+$", told.err, re.M)
    assert re.search(r"^fit: step \d of at most 3, bound", told.err, re.M)
    assert "converged" not in told.err
    assert "MRGP, step limit: 3 steps" in told.out


def test_a_prediction_says_what_it_does(impatient, city, tmp_path, capsys):
    grid = "lon=-0.3:0:0.1,lat=51.5,time=2022-02-19T01:00"
    asked = ["predict", str(city.fit), "--grid", grid, "--out", str(tmp_path / "map.nc")]
    assert command(asked) == 0
    assert re.search(r"^predicting 4 places", capsys.readouterr().err, re.M)
    assert command([*asked, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_words_of_a_fault_come_after_the_waiting(impatient, workplace, capsys):
    assert command(["fit", "nowhere.toml"]) == 1
    assert "nowhere.toml" in capsys.readouterr().err.splitlines()[-1]
