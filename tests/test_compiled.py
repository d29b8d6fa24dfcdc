"""Room for compiled code."""

import jax
import jax.numpy as jnp
import pytest

from mrgp import _compiled


@jax.jit
def doubled(x):
    return 2 * x


@pytest.mark.parametrize(("allowed", "cleared"), [(10, True), (100_000_000, False)])
def test_compiled_code_is_forgotten_when_few_maps_are_left(allowed, cleared, monkeypatch, tmp_path):
    limit = tmp_path / "limit"
    limit.write_text(f"{allowed}\n")
    maps = tmp_path / "maps"
    maps.write_text("a map\n" * 9)
    monkeypatch.setattr(_compiled, "MAPS", maps)
    monkeypatch.setattr(_compiled, "LIMIT", limit)
    doubled(jnp.ones(3))
    assert _compiled.make_room() is cleared
    assert (doubled._cache_size() == 0) is cleared


def test_systems_that_do_not_tell_are_left_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(_compiled, "MAPS", tmp_path / "none")
    assert not _compiled.make_room()
