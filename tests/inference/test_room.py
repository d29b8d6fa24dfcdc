"""Exact fits that cannot fit into memory are refused before they start."""

import numpy as np
import pytest

import mrgp
from mrgp.inference import room

QUICK = mrgp.LBFGS(max_steps=1, starts=1, candidates=0)


def data(n, inputs=None):
    x = np.linspace(0, 6, n)[:, None]
    return mrgp.Dataset([mrgp.Observations(mrgp.points(x, inputs=inputs), np.sin(x[:, 0]))])


def test_an_exact_fit_without_room_names_the_method_to_take():
    recipe = mrgp.MRGP(method="exact")
    with pytest.raises(ValueError, match=r"300,000 values needs about 4,023 GiB .*collapsed"):
        mrgp.fit(recipe, data(300_000), optimiser=QUICK)


def test_what_has_room_is_fitted(monkeypatch):
    monkeypatch.setattr(room, "memory", lambda: 1000.0)
    mrgp.fit(mrgp.MRGP(method="collapsed", inducing=5), data(20), optimiser=QUICK)
    with pytest.raises(ValueError, match="exact fit of 20 values"):
        mrgp.fit(mrgp.MRGP(method="exact"), data(20), optimiser=QUICK)


def test_a_filter_along_time_has_no_such_matrices(monkeypatch):
    monkeypatch.setattr(room, "memory", lambda: 1000.0)
    mrgp.fit(mrgp.MRGP(method="markov"), data(20, ("time",)), optimiser=QUICK)


def test_a_limit_of_a_container_counts(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(room, "LIMITS", (limit,))
    limit.write_text("1000")
    assert room.memory() == 1000
    limit.write_text("max")
    assert room.memory() > 1e8
