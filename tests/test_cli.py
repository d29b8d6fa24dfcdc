"""The command line as a person uses it."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import mrgp
import zoo
from mrgp.cli import app, command

ALARMS = "TF_CPP_MIN_LOG_LEVEL"


def test_demo_fits_scores_and_draws(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo")])
    assert result.exit_code == 0, result.output
    rows = {
        cells[0]: [float(c) for c in cells[1:]]
        for line in result.stdout.splitlines()
        if len(cells := [c.strip() for c in line.strip("│┃ ").split("│")]) == 7
    }
    rmse = {name: values[0] for name, values in rows.items()}
    assert rmse["mr-gp"] < rmse["center-point"] < rmse["single-gp"]
    assert 0.9 < rows["mr-gp"][4] < 0.99
    for name in ("maps.png", "calibration.png"):
        assert (tmp_path / "demo" / name).stat().st_size > 10_000
        assert f"wrote {tmp_path / 'demo' / name}" in result.stdout.splitlines()


def test_info_describes_a_saved_fit(tmp_path):
    fit = zoo.fit("exact")
    mrgp.save(fit, tmp_path / "fit")
    result = CliRunner().invoke(app, ["info", str(tmp_path / "fit")])
    assert result.stdout.startswith(fit.summary())
    assert "inputs: x1" in result.stdout


def test_run_shows_its_table_unless_told_to_be_quiet(tmp_path, capsys):
    asked = ["run", "dependent", "--quick", "--seeds", "1", "--models", "single-gp"]
    asked += ["--out", str(tmp_path)]
    assert command(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "dependent: mean ± sd over seeds" in lines[0]
    assert any("single-gp" in line for line in lines)
    assert lines[-1] == f"wrote {tmp_path / 'dependent'}"
    assert command([*asked, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


MISTAKES = [
    (["info", "nothing[n, d]here"], "error: load: there is no file nothing[n, d]here."),
    (["run", "nope"], "No experiment is named"),
]


@pytest.mark.parametrize(("arguments", "text"), MISTAKES)
def test_mistakes_end_in_one_line_and_a_status(arguments, text, capsys):
    assert command(arguments) == 1
    said = capsys.readouterr().err
    assert text in said
    assert "Traceback" not in said


@pytest.mark.thorough
@pytest.mark.parametrize(("arguments", "text"), MISTAKES)
def test_a_process_ends_with_the_status_of_a_mistake(arguments, text):
    done = subprocess.run(
        [sys.executable, "-m", "mrgp.cli", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert text in done.stderr


def test_the_command_puts_openblas_on_one_thread_before_anything_loads_it():
    code = (
        "import os, sys\n"
        "os.environ.pop('OPENBLAS_NUM_THREADS', None)\n"
        "os.environ.pop('TF_CPP_MIN_LOG_LEVEL', None)\n"
        "sys.argv = ['mrgp', 'run', '--list']\n"
        "import mrgp_command\n"
        "assert not {'mrgp', 'numpy', 'scipy', 'jax'} & set(sys.modules), 'too late'\n"
        "try:\n    mrgp_command.main()\nexcept SystemExit:\n    pass\n"
        "assert os.environ['OPENBLAS_NUM_THREADS'] == '1'\n"
        "assert os.environ['TF_CPP_MIN_LOG_LEVEL'] == '3'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "dependent" in done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("given", [None, "0"])
def test_the_module_as_a_command_loads_jax_with_the_compiler_told_as_well(given, tmp_path):
    """Each start of the interpreter writes down what the compiler will read."""
    seen = tmp_path / "seen.txt"
    (tmp_path / "sitecustomize.py").write_text(
        f"import os\nopen({str(seen)!r}, 'a').write(f'{{os.environ.get(\"{ALARMS}\")}} ')\n"
    )
    said = {k: v for k, v in os.environ.items() if k != ALARMS} | ({ALARMS: given} if given else {})
    said["PYTHONPATH"] = os.pathsep.join(filter(None, [str(tmp_path), said.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "mrgp.cli", "run", "--list"]
    done = subprocess.run(command, capture_output=True, text=True, env=said, check=True)
    assert "dependent" in done.stdout
    assert seen.read_text().split() == ([given] if given else ["None", "3"])


SLOW = """
import sys
if "prepared" in sys.argv:
    import mrgp_command
    mrgp_command.prepare()
import jax, jax.numpy as jnp, numpy as np
x = np.random.default_rng(0).random((int(sys.argv[1]),) * 2)
whole = jax.lax.reduce_window, (0.0, jax.lax.add, (1, 60), (1, 1), "SAME")
jax.jit(lambda: whole[0](jnp.asarray(x), *whole[1]).sum())()
"""


@pytest.mark.thorough
def test_alarms_of_the_compiler_do_not_reach_the_user():
    """A constant that takes long to fold makes the compiler write, unless it is told not to."""
    plain = {k: v for k, v in os.environ.items() if k != ALARMS}
    plain["JAX_COMPILATION_CACHE_DIR"] = ""

    def said(size, how):
        command = [sys.executable, "-c", SLOW, str(size), how]
        return subprocess.run(command, capture_output=True, text=True, env=plain, check=True).stderr

    # What takes long depends on the machine: the first size that is long enough here.
    loud = next(size for size in (150, 300, 600, 1200) if "alarm" in said(size, "plain"))
    assert said(loud, "prepared") == ""


def test_quiet_is_for_one_command(tmp_path, capsys):
    fit = tmp_path / "fit.mrgp"
    mrgp.save(zoo.fit("exact"), fit)
    assert command(["info", str(fit), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert "inputs: x1" in CliRunner().invoke(app, ["info", str(fit)]).stdout
