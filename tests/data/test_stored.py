"""Rows that stay where they are stored: samples, streams, fits, and what refuses them."""

import dask
import jax
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mrgp
from mrgp.data import stored
from mrgp.inference import Objective
from mrgp.inference.problem import Problem

dataframe = pytest.importorskip("dask.dataframe")


def field(time, lon, lat):
    """A field that is smooth in space and time."""
    return 5 + np.sin(6 * lon) * np.cos(6 * (lat - 51)) + np.cos(time / 5)


@pytest.fixture(scope="module")
def grid():
    """Hourly cells in degrees, with gaps, backed by Dask."""
    rng = np.random.default_rng(0)
    time = pd.date_range("2022-01-01", periods=30, freq="h").to_numpy()
    lon, lat = np.linspace(-0.4, 0.4, 20), np.linspace(51.8, 51.2, 16)
    hours = np.arange(30.0)[:, None, None]
    y = field(hours, lon[None, None, :], lat[None, :, None])
    y = y + 0.1 * rng.standard_normal(y.shape)
    y[rng.random(y.shape) < 0.1] = np.nan
    coordinates = {"time": time, "lat": lat, "lon": lon}
    made = xr.DataArray(y, coordinates, name="no2", attrs={"units": "ug/m3"})
    return made.chunk({"time": 7, "lat": 16, "lon": 9})


def read(grid, lazy, **given):
    return mrgp.from_grid(grid, name="sat", crs="EPSG:4326", lazy=lazy, **given)


def rows_of(observations):
    """All observed rows as sorted tuples of places and values."""
    seen = observations.dropna()
    lower, upper = seen.support.bounds
    return sorted(map(tuple, np.column_stack([lower, upper, seen.y]).tolist()))


def all_rows(observations):
    chunks = range(len(observations.stored.counts))
    parts = [observations.stored.seen(i, observations) for i in chunks]
    return sorted(row for part in parts for row in rows_of(part))


def test_chunks_of_a_grid_are_its_rows(grid):
    lazy, whole = read(grid, True), read(grid, False)
    assert all_rows(lazy) == rows_of(whole)
    assert lazy.count == whole.count == whole.observed.sum()
    assert lazy.missing == whole.missing == (~whole.observed).sum()
    assert lazy.support.axes == whole.support.axes
    assert lazy.units == "ug/m3"
    assert "8,6" in repr(lazy)
    assert "15 chunks" in repr(lazy)


def test_parts_of_a_table_are_its_rows(grid):
    frame = grid.to_dataframe().reset_index()
    columns = {"crs": "EPSG:4326", "name": "sat", "units": "ug/m3"}
    whole = mrgp.from_frame(frame, ["time", "lon", "lat"], "no2", **columns)
    table = dataframe.from_pandas(frame, npartitions=5)
    lazy = mrgp.from_frame(table, ["time", "lon", "lat"], "no2", **columns)
    again = mrgp.from_frame(table, ["time", "lon", "lat"], "no2", **columns, lazy=False)
    assert rows_of(again) == rows_of(whole)
    # Every part has kilometres about a middle of its own: they are brought to those of the first.
    data = mrgp.Dataset([whole, lazy.replace(name="again")])
    found = all_rows(data["again"])
    np.testing.assert_allclose(found, rows_of(data["sat"]), rtol=0, atol=1e-9)


def test_a_sample_has_every_row_as_often_as_any_other(grid):
    lazy = read(grid, True)
    counts = np.zeros(40 * 10)

    def chunk(number):
        x = number * 10.0 + np.arange(10.0)
        return mrgp.Observations(mrgp.points(x[:, None]), 1.0 + x)

    for seed in range(300):
        sample = stored(chunk, 40, rows=50, seed=seed)
        rows = sample.y.astype(int) - 1
        assert len(sample) == len(set(rows)) == 50
        counts[rows] += 1
    # Binomial counts of 300 draws with p = 1/8: mean 37.5, sd 5.7.
    assert abs(counts.mean() - 37.5) < 1e-9
    assert counts.std() < 7.5
    assert counts.min() > 12
    assert rows_of(lazy) == all_rows(lazy)  # fewer rows than a sample has: all of them


def test_a_stream_has_every_row_as_often_as_any_other_and_goes_on_anywhere():
    def chunk(number):
        x = number * 10.0 + np.arange(10.0 + number)
        return mrgp.Observations(mrgp.points(x[:, None]), 100.0 * number + np.arange(len(x)))

    data = mrgp.Dataset([stored(chunk, 30)])
    problem = Problem.of(mrgp.MRGP(method="svgp", inducing=5), data, stored=True)
    (feed,) = problem.feeds
    feed.chunks, feed.rows = 4, 20
    n, level = data["source"].count, problem.scaling.offset[0]
    assert feed.count == n == sum(10 + k for k in range(30))
    long = feed.take(0, 40_000)
    values, counts = np.unique(np.round(long.y + level), return_counts=True)
    assert len(values) == n
    assert counts.std() / counts.mean() < 0.15  # 55 expected of each; sd of shares about 0.13
    np.testing.assert_allclose(long.weight * len(long), n)
    (other,) = problem.feeds
    other.chunks, other.rows = 4, 20
    np.testing.assert_array_equal(other.take(12_345, 100).y, long.y[12_345:12_445])
    # Few chunks are read for a drawing, and its rows come mixed.
    assert len(np.unique(np.round(long.y[:19] + level) // 100)) == 4


@pytest.fixture(scope="module")
def recipe(grid):
    lower, _ = read(grid, False).support.bounds
    places = np.random.default_rng(1).choice(lower, 30, replace=False)
    return mrgp.MRGP(
        mrgp.RBF(lengthscale=15.0, dims=["lon", "lat"]) * mrgp.RBF(lengthscale=5.0, dims="time"),
        method="svgp",
        inducing=mrgp.Inducing(locations=places),
    )


def test_minibatches_of_stored_rows_stand_for_all(grid, recipe):
    """The bound of a batch is, on average, that of all rows in memory."""
    lazy, whole = (mrgp.Dataset([read(grid, lazy)]) for lazy in (True, False))
    with jax.enable_x64(True):
        problem = Problem.of(recipe, lazy, stored=True)
        objective = Problem.of(recipe, whole).objective()
        exact = float(objective(objective.start))
        values = []
        for start in range(0, 20_000, 2000):
            records = (problem.feeds[0].take(start, 2000),)
            batch = Objective.of(problem.build(), records)
            values.append(float(batch(batch.start)))
    spread = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - exact) < 4 * spread
    assert spread < 0.02 * abs(exact)


@pytest.mark.thorough
def test_a_fit_of_stored_rows_is_that_of_rows_in_memory(grid, recipe):
    lazy, whole = (mrgp.Dataset([read(grid, lazy)]) for lazy in (True, False))
    settings = mrgp.Adam(steps=600, batch=128)
    found, known = (mrgp.fit(recipe, data, optimiser=settings) for data in (lazy, whole))
    assert found.counts == known.counts
    first, second = (mrgp.predict(fit, whole["sat"].support[:200]) for fit in (found, known))
    assert np.max(np.abs(first.mean - second.mean) / second.std) < 0.5
    np.testing.assert_allclose(first.std.mean(), second.std.mean(), rtol=0.05)


@pytest.mark.thorough
def test_a_fit_of_stored_rows_goes_on_as_if_it_never_stopped(grid, recipe):
    data = mrgp.Dataset([read(grid, True)])
    whole = mrgp.fit(recipe, data, optimiser=mrgp.Adam(steps=200, batch=64))
    half = mrgp.fit(recipe, data, optimiser=mrgp.Adam(steps=100, batch=64))
    rest = half.resume(data, optimiser=mrgp.Adam(steps=100, batch=64))
    support = data["sat"].support[:50]
    np.testing.assert_allclose(
        mrgp.predict(rest, support).mean, mrgp.predict(whole, support).mean, rtol=1e-9
    )


def test_a_chunk_is_read_when_it_is_asked_for():
    loads = []

    def block(number):
        loads.append(number)
        return np.full((10,), float(number))

    import dask.array

    parts = [dask.array.from_delayed(dask.delayed(block)(k), (10,), float) for k in range(50)]
    array = xr.DataArray(
        dask.array.concatenate(parts), {"x": np.arange(500.0)}, dims=["x"], name="no2"
    )
    assert mrgp.from_grid(array, lazy=False).stored is None
    assert sorted(loads) == list(range(50))
    loads.clear()
    lazy = mrgp.from_grid(array, lazy=True)
    assert loads == list(range(50))  # one pass, chunk after chunk
    loads.clear()
    lazy.stored.seen(7, lazy)
    assert loads == [7]
    # Few values are read at once, unless that is not wanted.
    assert mrgp.from_grid(array).stored is None


def test_views_of_data_reach_stored_rows(grid):
    data = mrgp.Dataset([read(grid, True)]).collapse()
    seen = data["sat"].stored.seen(3, data["sat"])
    assert type(seen.support) is type(data["sat"].support) is mrgp.supports.Points
    part = data.batch(100)["sat"]
    assert part.stored is None
    assert len(part) == 100


REFUSED = {
    "exact": lambda data: mrgp.fit(mrgp.MRGP(method="exact"), data),
    "collapsed": lambda data: mrgp.fit(mrgp.MRGP(method="collapsed", inducing=5), data),
    "lbfgs": lambda data: mrgp.fit(mrgp.MRGP(method="svgp"), data, optimiser=mrgp.LBFGS()),
    "network": lambda data: mrgp.fit(mrgp.MRGPRN(), data),
    "auto": lambda data: mrgp.fit("auto", data),
    "weights": lambda data: mrgp.fit(mrgp.MRGP(method="svgp"), data, weights="auto"),
    "keep": lambda data: mrgp.fit(mrgp.MRGP(method="svgp"), data, hyperparameters="keep"),
    "compare": lambda data: mrgp.compare({"a": mrgp.MRGP()}, data),
    "sampling": lambda data: mrgp.sample_posterior(mrgp.MRGP(), data),
    "objective": lambda data: mrgp.objective(mrgp.MRGP(method="svgp"), data),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_looks_at_rows_in_memory_says_so(grid, what):
    data = mrgp.Dataset([read(grid, True)])
    with pytest.raises(ValueError, match=r"source 'sat', task 'no2': 8,\d+ values stay where they"):
        REFUSED[what](data)


def test_wrong_words_are_told(grid):
    with pytest.raises(ValueError, match=r"from_grid: lazy=True is for data backed by Dask\. Open"):
        mrgp.from_grid(grid.compute(), lazy=True)
    frame = grid.to_dataframe().reset_index()
    with pytest.raises(ValueError, match=r"from_frame: lazy=True is for data backed by Dask\."):
        mrgp.from_frame(frame, "lon", "no2", lazy=True)
    table = dataframe.from_pandas(frame.assign(kind="a"), npartitions=2)
    with pytest.raises(ValueError, match=r"covariates of rows are read at once\. Give lazy=False"):
        mrgp.from_frame(table, "lon", "no2", covariates="kind")
    with pytest.raises(ValueError, match=r"read part by part has one column of values, y=; got \["):
        mrgp.from_frame(table, "lon", ["no2"])


def test_automatic_methods_know_how_many_there_are(grid):
    data = mrgp.Dataset([read(grid, True)])
    kernel = mrgp.RBF(dims="time")
    here = mrgp.MRGP(kernel, inducing=5).build(data).variational
    assert here is None or here.q is None
    o = data["sat"]
    many = mrgp.data.Stored(o.stored.read, ((30_000, 0),))
    model = mrgp.MRGP(kernel, inducing=5).build(mrgp.Dataset([o.replace(stored=many)]))
    assert model.variational is not None
    assert model.variational.q is not None


def test_dask_is_asked_for_nothing_else(grid):
    with dask.config.set(scheduler="processes"):
        assert len(read(grid, True)) > 0


def test_chunks_without_any_value_are_counted(grid):
    clouded = grid.where(grid.time > grid.time[6])
    lazy, whole = read(clouded, True), read(clouded, False)
    assert all(there == 0 for there, _ in lazy.stored.counts[:3])
    assert (lazy.count, lazy.missing) == (whole.count, whole.missing)
    table = dataframe.from_pandas(clouded.to_dataframe().reset_index(), npartitions=10)
    told = mrgp.from_frame(table, ["time", "lon", "lat"], "no2", crs="EPSG:4326")
    assert (told.count, told.missing) == (whole.count, whole.missing)
    with pytest.raises(ValueError, match=r"All values that are stored are missing \(NaN\)\. Leave"):
        read(grid * np.nan, True)
