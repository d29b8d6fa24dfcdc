"""`mrgp fit`: what cannot be written is known first, and what was stopped goes on."""

import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import mrgp
from mrgp.cli import command
from mrgp.cli.saved import fitted_data
from mrgp.config.checking import read_config
from mrgp.inference import journal, lbfgs

pytestmark = pytest.mark.usefixtures("as_users_see_it")


def fit(*arguments, code=0):
    assert command(["fit", "city.toml", "--quiet", *map(str, arguments)]) == code


def parameters(path):
    return mrgp.load(path).parameters()


def test_a_fit_that_cannot_be_written_is_not_begun(workplace, capsys, monkeypatch):
    (workplace / "file").write_text("")
    monkeypatch.setattr(mrgp, "fit", None)
    assert command(["fit", "city.toml", "-o", "file/fit.mrgp"]) == 1
    assert "--out file/fit.mrgp cannot be written: Not a directory." in capsys.readouterr().err
    (workplace / "fit.mrgp.toml").mkdir()
    assert command(["fit", "city.toml"]) == 1
    assert "fit.mrgp.toml is a folder" in capsys.readouterr().err
    assert sorted(p.name for p in workplace.iterdir() if p.name.startswith(".part")) == []


def test_a_configuration_beside_a_fit_elsewhere_finds_its_files(workplace, tmp_path):
    fit("-o", "out/deep/fit.mrgp")
    kept = read_config(workplace / "out" / "deep" / "fit.mrgp.toml")
    assert {s.file.resolve().parent for s in kept.sources.values()} == {workplace.resolve()}
    assert (workplace / "out" / "deep" / "fit.mrgp.toml").read_text().count("folder =") == 1
    path = workplace / "out" / "deep" / "fit.mrgp"
    assert fitted_data(path, mrgp.load(path)) is not None
    # A fit of that configuration, again elsewhere, names the folder once.
    code = command(["fit", "out/deep/fit.mrgp.toml", "-o", "other/fit.mrgp", "--quiet"])
    assert code == 0
    again = read_config(workplace / "other" / "fit.mrgp.toml")
    assert {s.file.resolve().parent for s in again.sources.values()} == {workplace.resolve()}
    fit("-o", "beside.mrgp")
    assert (workplace / "beside.mrgp.toml").read_text() == (workplace / "city.toml").read_text()


def test_a_fit_that_was_killed_goes_on_and_ends_the_same(workplace, monkeypatch, capsys):
    monkeypatch.setattr(journal, "EVERY", 0.0)
    fit("-o", "whole.mrgp")
    assert not (workplace / "whole.mrgp.journal").exists()
    measure, counts = lbfgs._Search.measure, []

    def killed(self, x):
        counts.append(1)
        if len(counts) == 4:
            raise RuntimeError("killed")
        return measure(self, x)

    monkeypatch.setattr(lbfgs._Search, "measure", killed)
    fit(code=1)
    assert (workplace / "fit.mrgp.journal").exists()
    assert not (workplace / "fit.mrgp").exists()
    before = len(counts)
    fit("--resume")
    after = len(counts) - before
    whole, found = parameters("whole.mrgp"), parameters("fit.mrgp")
    for name, value in whole.items():
        np.testing.assert_array_equal(value, found[name])
    counts.clear()
    monkeypatch.setattr(lbfgs._Search, "measure", lambda s, x: counts.append(1) or measure(s, x))
    fit("-o", "third.mrgp")
    assert after < len(counts)
    assert not (workplace / "fit.mrgp.journal").exists()
    capsys.readouterr()
    (workplace / "fit.mrgp.journal").write_text("of another")
    command(["fit", "city.toml", "--json"])
    assert "has a fit that was stopped; --resume would go on" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_choice_that_was_killed_goes_on_and_ends_the_same(workplace, monkeypatch):
    """Killed while candidates are compared, and again in the fit of the one that was chosen."""
    monkeypatch.setattr(journal, "EVERY", 0.0)
    text = (workplace / "city.toml").read_text()
    text = text[: text.index("[model]")] + '[model]\nrecipe = "auto"\n'
    text = text[: text.index("[sources.sat]")] + text[text.index("[model]") :]
    (workplace / "city.toml").write_text(text)
    measure, counts = lbfgs._Search.measure, []
    monkeypatch.setattr(lbfgs._Search, "measure", lambda s, x: counts.append(1) or measure(s, x))
    fit("-o", "whole.mrgp")
    total, left = len(counts), [0]

    def killed(self, x):
        if not left[0]:
            raise RuntimeError("killed")
        left[0] -= 1
        return measure(self, x)

    monkeypatch.setattr(lbfgs._Search, "measure", killed)
    for left[0] in (5, total - 15):
        fit("--resume", code=1)
        assert not (workplace / "fit.mrgp").exists()
    left[0] = total - 1
    fit("--resume")
    assert left[0] > 0
    whole, found = mrgp.load("whole.mrgp"), mrgp.load("fit.mrgp")
    assert whole.reasons == found.reasons
    np.testing.assert_array_equal(whole.history, found.history)
    for name, value in whole.parameters().items():
        np.testing.assert_array_equal(value, found.parameters()[name])


SLOWLY = """
import sys, time, mrgp
from mrgp.cli import command
from mrgp.inference import journal, lbfgs

mrgp.compilation_cache()
journal.EVERY = 0.0
measure = lbfgs._Search.measure

def slowly(self, x):
    time.sleep(0.05)
    return measure(self, x)

lbfgs._Search.measure = slowly
sys.exit(command(["fit", "city.toml", "--quiet", *sys.argv[1:]]))
"""


@pytest.mark.thorough
def test_kill_9_of_a_fit_loses_nothing_that_its_journal_has(workplace):
    """The process is killed in earnest, at several moments of one fit, and goes on each time."""
    text = (workplace / "city.toml").read_text()
    (workplace / "city.toml").write_text(re.sub(r"max_steps = \d+", "max_steps = 25", text))
    begun = [sys.executable, "-W", "ignore", "-c", SLOWLY]
    subprocess.run([*begun, "-o", "whole.mrgp"], cwd=workplace, check=True)
    sizes, kept = [], workplace / "fit.mrgp.journal"
    for _ in range(3):
        process = subprocess.Popen([*begun, "--resume"], cwd=workplace)
        before = kept.stat().st_size if kept.exists() else 0
        while process.poll() is None and not (kept.exists() and kept.stat().st_size > before):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break
        assert process.returncode == -signal.SIGKILL
        assert not (workplace / "fit.mrgp").exists()
        sizes.append(kept.stat().st_size)
    assert sizes == sorted(sizes)
    assert len(sizes) > 1
    subprocess.run([*begun, "--resume"], cwd=workplace, check=True)
    whole, found = mrgp.load(workplace / "whole.mrgp"), mrgp.load(workplace / "fit.mrgp")
    np.testing.assert_array_equal(whole.history, found.history)
    for name, value in whole.parameters().items():
        np.testing.assert_array_equal(value, found.parameters()[name])
    assert not kept.exists()


def test_a_fit_that_ran_out_of_steps_goes_on_from_its_file(workplace, capsys):
    fit()
    assert command(["fit", "city.toml", "--resume", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["status"] in ("step limit", "converged")
    first = mrgp.load("fit.mrgp").history[-1]
    text = (workplace / "sensors.csv").read_text().splitlines()
    (workplace / "sensors.csv").write_text("\n".join(text[:-1]) + "\n")
    assert command(["fit", "city.toml", "--resume"]) == 1
    assert "--resume: fit.mrgp is a fit of other data" in capsys.readouterr().err
    assert np.isfinite(first)


def test_there_may_be_nothing_to_go_on_with(workplace, capsys):
    assert command(["fit", "city.toml", "--resume", "--json"]) == 0
    assert "nothing to go on with; the fit begins anew" in capsys.readouterr().err


def test_ctrl_c_while_libraries_are_loaded_ends_in_a_word():
    code = "import mrgp_command, sys; sys.argv = ['mrgp', 'run', '--list']; mrgp_command.main()"
    for delay in (0.25, 0.6):
        process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
        time.sleep(delay)
        process.send_signal(2)
        _, said = process.communicate(timeout=20)
        assert "Traceback" not in said
        assert (process.returncode, said) == (130, "stopped\n")
