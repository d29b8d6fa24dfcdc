"""Compiled programs that last: where, how many, for whom, and what damage does."""

import os
import subprocess
import sys

import jax
import pytest

import mrgp
from mrgp import cache

PROGRAM = """
import os, sys
import jax, numpy as np, mrgp
kept = mrgp.compilation_cache()
hits = []
def listen(event, **given):
    if event == "/jax/compilation_cache/cache_hits":
        hits.append(event)
jax.monitoring.register_event_listener(listen)
data = mrgp.Dataset([mrgp.Observations(mrgp.points(np.arange(9.0)[:, None]), np.arange(9.0) % 3)])
fit = mrgp.fit(mrgp.MRGP(), data, optimiser=mrgp.LBFGS(max_steps=2), progress=None)
print(kept, len(hits), repr(float(fit.history[-1])))
"""


def run(tmp_path, **variables):
    outside = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "MRGP_"))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=outside | {"XDG_CACHE_HOME": str(tmp_path)} | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    kept, hits, bound = done.stdout.split()
    return kept, int(hits), float(bound)


def test_the_next_process_finds_its_programs_even_after_damage(tmp_path):
    kept, hits, bound = run(tmp_path)
    assert kept.startswith(str(tmp_path / "mrgp" / "programs-"))
    assert hits == 0
    programs = list((tmp_path / "mrgp").glob(f"*/{cache.PROGRAMS}"))
    assert programs
    _, hits, again = run(tmp_path)
    assert hits == len(programs)
    assert again == bound
    for program in programs:
        program.write_bytes(b"not a program")
    _, _, mended = run(tmp_path)
    assert mended == bound
    assert run(tmp_path, MRGP_CACHE="off")[0] == "None"


def test_importing_sets_nothing():
    code = "import mrgp, jax; print(jax.config.jax_compilation_cache_dir)"
    clean = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True)
    assert done.stdout.strip() == "None"


@pytest.fixture
def no_cache(monkeypatch):
    """Let JAX have no cache for a while."""
    names = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    before = {name: getattr(jax.config, name) for name in names}
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.delenv("MRGP_CACHE", raising=False)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_the_variable_says_where_and_a_path_says_it_louder(no_cache, monkeypatch, tmp_path):
    monkeypatch.setenv("MRGP_CACHE", str(tmp_path / "said"))
    assert mrgp.compilation_cache().parent == tmp_path / "said"
    assert mrgp.compilation_cache() is None  # JAX has one already.
    assert mrgp.compilation_cache(tmp_path / "given").parent == tmp_path / "given"
    monkeypatch.setenv("MRGP_CACHE", "OFF")
    assert mrgp.compilation_cache() is None


def test_what_cannot_be_written_is_left_out_or_said(no_cache, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"compilation_cache: .*cannot be used: .*Give a folder"):
        mrgp.compilation_cache(tmp_path / "file")
    monkeypatch.setenv("MRGP_CACHE", str(tmp_path / "file"))
    assert mrgp.compilation_cache() is None


def test_programs_that_were_not_used_for_longest_go_first(no_cache, tmp_path):
    folder = mrgp.compilation_cache(tmp_path)
    for age in range(4):
        path = folder / f"jit_{age}-cache"
        path.write_bytes(bytes(1000))
        os.utime(path, (1e9 - age, 1e9 - age))
    mrgp.compilation_cache(tmp_path, megabytes=0.0025)
    assert sorted(p.name for p in folder.iterdir()) == ["jit_0-cache", "jit_1-cache"]


def test_other_versions_have_folders_of_their_own(monkeypatch):
    mine = cache._of_this_machine()
    monkeypatch.setattr(cache, "version", lambda _: "other")
    assert cache._of_this_machine() != mine
