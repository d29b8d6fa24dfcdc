"""Weights of sources along time: by the covariances of clusters, however many values there are."""

import numpy as np
import pytest

import mrgp
from mrgp.gp import Markov

NAMES = ("east", "time")
KERNEL = mrgp.Matern32(2.0, dims="east") * mrgp.Matern12(3.0, dims="time")


def twice(hours, places=3, seed=0):
    """Return sites, and cells whose means repeat the errors of the sites inside them."""
    rng = np.random.default_rng(seed)
    x = np.array([[float(p), float(t)] for t in range(hours) for p in range(places)])
    y = 9.0 + np.sin(x[:, 0] + x[:, 1] / 3) + 0.4 * rng.standard_normal(len(x))
    low = np.array([[p - 0.5, 2.0 * t] for t in range(hours // 2) for p in range(places)])
    table = y.reshape(hours, places)[: hours // 2 * 2]
    means = table.reshape(-1, 2, places).mean(1).ravel()
    cells = mrgp.boxes(low, low + [1.0, 2.0], inputs=NAMES)
    return mrgp.Dataset(
        [
            mrgp.Observations(mrgp.points(x, inputs=NAMES), y, name="sites"),
            mrgp.Observations(cells, means, name="cells"),
        ]
    )


def weighed(data, method="markov", **more):
    recipe = mrgp.MRGP(KERNEL, method=method)
    return mrgp.composite_weights(recipe, data, progress=None, **more)


@pytest.mark.parametrize("rule", ["ratio", pytest.param("ribatet", marks=pytest.mark.thorough)])
def test_weights_by_blocks_are_those_of_the_dense_smoother(rule, monkeypatch):
    data = twice(16)
    exact = weighed(data, "exact", rule=rule)
    monkeypatch.setattr(Markov, "most_dense", 0)
    along = weighed(data, rule=rule)
    assert exact["sites"] < {"ratio": 0.95, "ribatet": 0.999}[rule]
    assert dict(along) == pytest.approx(dict(exact), rel=1e-5)
    assert along.freedom == pytest.approx(exact.freedom, rel=1e-5)
    assert along.leverage == pytest.approx(exact.leverage, rel=1e-5)
    assert dict(along.standard_errors) == pytest.approx(dict(exact.standard_errors), rel=1e-4)
    assert np.trace(along.information) == pytest.approx(np.trace(exact.information), rel=1e-5)


@pytest.mark.thorough
def test_dependence_of_sources_is_that_of_the_dense_smoother(monkeypatch):
    data, recipe = twice(12), mrgp.MRGP(KERNEL, method="markov")
    one = mrgp.dependence(recipe, data, progress=None).pairs[0].correlation
    monkeypatch.setattr(Markov, "most_dense", 0)
    two = mrgp.dependence(recipe, data, progress=None).pairs[0].correlation
    assert two == pytest.approx(one, rel=1e-6)


@pytest.mark.thorough
def test_ten_thousand_values_are_weighed():
    data = twice(1700, places=4)
    assert sum(map(len, data)) > 10_000
    fit = mrgp.fit(mrgp.MRGP(KERNEL, method="markov"), data, weights="auto", progress=None)
    assert 0.3 < fit.weights["cells", "value"] < 0.9


@pytest.mark.thorough
def test_running_windows_that_make_one_cluster_are_split(monkeypatch):
    monkeypatch.setattr(Markov, "most_dense", 0)
    monkeypatch.setattr("mrgp.weighting.smoothed.LARGEST", 8)
    low = np.array([[0.0, float(t)] for t in range(48)])
    chain = mrgp.boxes(low, low + [0.0, 3.0], inputs=NAMES)
    values = 9.0 + np.sin(low[:, 1])
    seen = [mrgp.Observations(chain, values, name=name) for name in ("one", "copy")]
    found = weighed(mrgp.Dataset(seen))
    assert found["copy"] == pytest.approx(0.5, abs=0.02)
    assert found.clusters.sizes.max() <= 8
    assert found.clusters.split == 1


def test_a_cluster_that_is_too_large_is_refused(monkeypatch, as_users_see_it):
    monkeypatch.setattr(Markov, "most_dense", 0)
    monkeypatch.setattr("mrgp.weighting.smoothed.LARGEST", 8)
    with pytest.raises(ValueError, match="a cluster of 18 values; of 27 values along time"):
        weighed(twice(6), clusters="source")
