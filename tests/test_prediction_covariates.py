"""Fits on covariates: predictions find them, files keep them, and they help."""

import numpy as np
import pytest
import xarray as xr

import mrgp

LON, LAT = np.linspace(0.0, 6.0, 25), np.linspace(0.0, 6.0, 25)
QUICK = mrgp.LBFGS(max_steps=15, starts=1, candidates=0)


def height(x):
    """Return hills that a few sensors do not see."""
    return np.sin(2.3 * x[:, 0]) * np.cos(1.9 * x[:, 1])


def elevation():
    places = np.stack(np.meshgrid(LON, LAT), -1).reshape(-1, 2)
    values = height(places).reshape(25, 25)
    return xr.DataArray(values, {"lat": LAT, "lon": LON}, ("lat", "lon"), "elevation")


def places(n, key, inputs=("lon", "lat")):
    return mrgp.points(np.random.default_rng(key).uniform(0, 6, (n, 2)), inputs=inputs)


def sensors(n=25, name="sensors"):
    support = places(n, 0)
    noise = np.random.default_rng(1).normal(0, 0.05, n)
    values = 10.0 + 3.0 * height(np.asarray(support.x)) + noise
    return mrgp.Observations(support, values, name=name)


def cells():
    a, b = np.meshgrid(np.arange(6.0), np.arange(6.0))
    lower = np.column_stack([a.ravel(), b.ravel()])
    support = mrgp.boxes(lower, lower + 1.0, inputs=("lon", "lat"))
    nodes = support.quadrature(mrgp.Midpoint(8))
    field = 10.0 + 3.0 * height(nodes.x.reshape(-1, 2)).reshape(nodes.weights.shape)
    return mrgp.Observations(support, (nodes.weights * field).sum(1), name="cells")


@pytest.fixture(scope="module")
def fitted():
    """Return a fit of sensors and cells on a grid of elevations, once for all tests."""
    data = mrgp.Dataset([sensors(), cells()]).with_covariates(elevation())
    return mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK)


def test_a_dataset_gives_all_its_sources_the_same_covariates():
    data = mrgp.Dataset([sensors(), cells()]).with_covariates(elevation())
    assert data.inputs == ("lon", "lat", "elevation")
    assert [f.names for f in data.covariates] == [("elevation",)]
    for observations, plain in zip(data, (sensors(), cells()), strict=True):
        expected = plain.support.with_covariates(elevation())
        np.testing.assert_array_equal(observations.support.moment, expected.moment)
        np.testing.assert_array_equal(observations.y, plain.y)


def test_sources_with_different_covariates_are_refused():
    first, second = sensors(), cells()
    with_one = first.replace(support=first.support.with_covariates(elevation()))
    text = (
        r"cells.*: the covariates are none, but .*sensors.* has elevation. Add them to all sources"
        r" at once with Dataset\(\[...\]\).with_covariates\(...\)"
    )
    with pytest.raises(ValueError, match=text):
        mrgp.Dataset([with_one, second])


def test_predictions_find_the_covariates_themselves(fitted):
    at = places(10, 5)
    given = mrgp.predict(fitted, at.with_covariates(elevation()))
    found = mrgp.predict(fitted, at)
    np.testing.assert_allclose(found.mean, given.mean, rtol=1e-12)
    np.testing.assert_allclose(found.std, given.std, rtol=1e-12)
    assert found.support.input_names == ("lon", "lat")
    regions = cells().support
    np.testing.assert_allclose(
        mrgp.predict(fitted, regions).mean,
        mrgp.predict(fitted, regions.with_covariates(elevation())).mean,
        rtol=1e-12,
    )


def test_supports_without_names_take_those_of_the_fit(fitted):
    at, given = places(10, 5, inputs=None), mrgp.predict(fitted, places(10, 5))
    np.testing.assert_allclose(mrgp.predict(fitted, at).mean, given.mean, rtol=1e-12)
    whole = mrgp.points(places(10, 5).with_covariates(elevation()).x)
    np.testing.assert_allclose(mrgp.predict(fitted, whole).mean, given.mean, rtol=1e-12)


def test_places_off_the_grid_are_named(fitted):
    far = mrgp.points([[1.0, 1.0], [7.0, 1.0]], inputs=("lon", "lat"))
    with pytest.raises(
        ValueError, match=r"The field 'elevation' is missing .* in region 1 at lat 1, lon 7"
    ):
        mrgp.predict(fitted, far)


def test_files_keep_grids(fitted, tmp_path):
    mrgp.save(fitted, tmp_path / "fit")
    again = mrgp.load(tmp_path / "fit")
    for support in (places(10, 5), cells().support):
        np.testing.assert_array_equal(
            mrgp.predict(again, support).mean, mrgp.predict(fitted, support).mean
        )


def test_files_hold_no_functions(tmp_path):
    data = mrgp.Dataset([sensors()]).with_covariates(height, "elevation")
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=mrgp.LBFGS(max_steps=2, starts=1, candidates=0))
    at = places(4, 5)
    np.testing.assert_allclose(
        mrgp.predict(fit, at).mean,
        mrgp.predict(fit, at.with_covariates(height, "elevation")).mean,
        rtol=1e-12,
    )
    text = (
        "save: the covariate 'elevation' comes from a Python function, and a file holds no code."
        r" Sample the function on a grid, fit with with_covariates\(xarray.DataArray\(...\)\)"
    )
    with pytest.raises(TypeError, match=text):
        mrgp.save(fit, tmp_path / "fit")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_a_covariate_that_matters_helps(fitted):
    at = places(200, 7)
    truth = 10.0 + 3.0 * height(np.asarray(at.x))
    plain = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors(), cells()]), optimiser=QUICK)
    errors = [
        float(np.sqrt(np.mean((mrgp.predict(fit, at).mean - truth) ** 2)))
        for fit in (fitted, plain)
    ]
    assert errors[0] < 0.5 * errors[1]
