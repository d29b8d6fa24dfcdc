"""Alarms of the compiler: away while the library works, there before and after."""

import os
import subprocess
import sys

import pytest

from mrgp import _hush
from mrgp._types import float64

SLOW = """
import sys
import jax, jax.numpy as jnp, numpy as np
from mrgp._types import float64

def fold(size):
    x = np.random.default_rng(0).random((size, size))
    window = 0.0, jax.lax.add, (1, 60), (1, 1), "SAME"
    return jax.jit(lambda: jax.lax.reduce_window(jnp.asarray(x), *window).sum())()

for part in sys.argv[2].split(","):
    print(part, file=sys.stderr, flush=True)
    (float64(fold) if part == "ours" else fold)(int(sys.argv[1]))
"""


@pytest.fixture
def levels(monkeypatch):
    """Keep the levels that are set."""
    found = []
    monkeypatch.setattr(_hush, "_level", lambda: found.append)
    monkeypatch.delenv(_hush.SILENT, raising=False)
    return found


def test_the_level_is_raised_once_and_put_back_also_after_an_error(levels):
    inner = float64(lambda: list(levels))
    outer = float64(inner)
    assert outer() == [_hush.FATAL]
    assert levels == [_hush.FATAL, 1]
    with pytest.raises(ZeroDivisionError):
        float64(lambda: 1 // 0)()
    assert levels == [_hush.FATAL, 1] * 2


@pytest.mark.parametrize("said", ["0", "2", "3"])
def test_what_the_user_has_said_is_left_alone(levels, monkeypatch, said):
    monkeypatch.setenv(_hush.SILENT, said)
    assert float64(lambda: list(levels))() == []
    assert levels == []


def test_a_jax_without_this_level_is_left_alone(monkeypatch):
    from jaxlib import utils

    monkeypatch.delattr(utils, "absl_set_min_log_level")
    monkeypatch.delenv(_hush.SILENT, raising=False)
    assert float64(lambda: 3)() == 3


@pytest.mark.thorough
def test_alarms_stay_away_from_our_programs_and_come_from_others():
    plain = {k: v for k, v in os.environ.items() if k != _hush.SILENT}
    plain["JAX_COMPILATION_CACHE_DIR"] = ""

    def said(size, parts, **more):
        command = [sys.executable, "-c", SLOW, str(size), parts]
        run = {"capture_output": True, "text": True, "check": True, "env": plain | more}
        return subprocess.run(command, **run).stderr

    # What takes long depends on the machine: the first size that is long enough here.
    loud = 2 * next(size for size in (150, 300, 600, 1200) if "alarm" in said(size, "theirs"))
    told = said(loud, "ours,theirs")
    assert "alarm" not in told[: told.index("theirs")]
    assert "alarm" in told[told.index("theirs") :]
    assert "alarm" in said(loud, "ours", TF_CPP_MIN_LOG_LEVEL="0")
