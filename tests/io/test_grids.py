"""Grids: cells from coordinates and bounds, and the same array back."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given

import mrgp
from mrgp.io.sides import centres_within, edges_between

QUICK = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
LON, LAT = {"standard_name": "longitude"}, {"units": "degrees_north"}
TIME = pd.date_range("2018-06-18", periods=3, freq="h").as_unit("ns")


def plane(**attrs):
    values = np.arange(6.0).reshape(2, 3)
    values[1, 1] = np.nan
    coordinates = {"y": [3.0, 1.0], "x": [0.0, 1.0, 2.0]}
    return xr.DataArray(values, coordinates, name="no2", attrs={"units": "ug/m3"} | attrs)


def earth(lon=(-0.45, -0.35, -0.25, -0.15), lat=(51.65, 51.55, 51.45)):
    values = np.random.default_rng(0).normal(20, 3, (3, len(lat), len(lon)))
    values[1, 0, 2] = np.nan
    return xr.DataArray(
        values,
        {"time": TIME, "lat": ("lat", list(lat), LAT), "lon": ("lon", list(lon), LON)},
        name="no2",
        attrs={"units": "ug/m3"},
    )


def test_cells_reach_half_way_to_their_neighbours():
    o = mrgp.from_grid(plane(), name="sat")
    assert (o.task, o.name, o.units) == ("no2", "sat", "ug/m3")
    assert o.support.inputs == ("y", "x")
    assert o.support.axes is None
    np.testing.assert_array_equal(o.support.lower[[0, 5]], [[2, -0.5], [0, 1.5]])
    np.testing.assert_array_equal(o.support.upper[[0, 5]], [[4, 0.5], [2, 2.5]])
    np.testing.assert_array_equal(o.y, [0, 1, 2, 3, np.nan, 5])


def test_a_grid_comes_back_as_it_was():
    for grid in (plane(), earth(), earth().transpose("lon", "time", "lat")):
        back = mrgp.from_grid(grid).to_grid()
        xr.testing.assert_equal(back, grid)
        assert back.dims == grid.dims
        assert back.name == "no2"
        assert back.attrs == {"units": "ug/m3"}
        assert [back.indexes[d].is_monotonic_increasing for d in back.dims] == [
            grid.indexes[d].is_monotonic_increasing for d in grid.dims
        ]


def test_rows_may_come_in_any_order():
    o = mrgp.from_grid(earth())
    shuffled = o[np.random.default_rng(1).permutation(len(o))]
    back = shuffled.to_grid()
    assert back.indexes["lat"].is_monotonic_increasing
    xr.testing.assert_equal(back.sortby("lat", ascending=False), earth())
    xr.testing.assert_equal(shuffled.to_grid(like=earth()), earth())


@given(
    hnp.arrays(np.float64, st.integers(2, 9), elements=st.floats(0.01, 5.0)),
    st.floats(-100, 100),
    st.booleans(),
)
def test_centres_are_found_again(steps, start, down):
    centres = start + np.cumsum(steps)
    centres = centres[::-1] if down else centres
    lower, upper = edges_between(centres)
    assert np.all(lower < upper)
    if np.all((lower < centres) & (centres < upper)):
        np.testing.assert_allclose(centres_within(lower, upper), centres, rtol=0, atol=1e-9)


def test_cells_of_other_rules_are_shown_at_their_middle():
    lower, upper = np.array([0.0, 1.0, 5.0, 5.5]), np.array([1.0, 5.0, 5.5, 10.0])
    np.testing.assert_array_equal(centres_within(lower, upper), 0.5 * (lower + upper))


def test_irregular_coordinates_come_back():
    grid = xr.DataArray([1.0, 2.0, 3.0, 4.0], {"depth": [0.5, 1.5, 4.0, 10.0]}, name="t")
    support = mrgp.from_grid(grid).support
    np.testing.assert_array_equal(support.lower[:, 0], [0, 1, 2.75, 7])
    np.testing.assert_array_equal(support.upper[:, 0], [1, 2.75, 7, 13])
    xr.testing.assert_allclose(mrgp.from_grid(grid).to_grid(), grid)


def test_dates_are_instants_unless_windows_are_given():
    grid = earth().isel(lat=0, lon=0, drop=True).fillna(1.0)
    instants = mrgp.from_grid(grid).support
    assert isinstance(instants, mrgp.supports.Points)
    np.testing.assert_array_equal(instants.x[:, 0], 17700 * 24 + np.arange(3))
    start = TIME.to_numpy()
    windows = np.stack([start, start + np.timedelta64(1, "h")], 1)
    for options in ({"bounds": {"time": windows}}, {"bounds": {"time": [*start, windows[-1, 1]]}}):
        support = mrgp.from_grid(grid, **options).support
        np.testing.assert_array_equal(support.lower[:, 0], 17700 * 24 + np.arange(3))
        np.testing.assert_array_equal(support.upper - support.lower, np.ones((3, 1)))
    about = mrgp.from_grid(grid, width={"time": "30min"}, time_unit="min").support
    np.testing.assert_array_equal(about.lower[:, 0], 17700 * 1440 + 60 * np.arange(3) - 15)
    np.testing.assert_array_equal(about.upper - about.lower, np.full((3, 1), 30))


def test_bounds_of_a_dataset_are_used():
    grid = plane().fillna(0.0)
    grid["x"].attrs["bounds"] = "x_bnds"
    edges = np.array([[0.0, 0.25], [0.25, 1.75], [4.0, 1.75]])
    data = xr.Dataset({"no2": grid, "x_bnds": (("x", "nv"), edges)})
    for support in (mrgp.from_grid(data).support, mrgp.from_grid(data, "no2").support):
        np.testing.assert_array_equal(support.lower[:3, 1], [0, 0.25, 1.75])
        np.testing.assert_array_equal(support.upper[:3, 1], [0.25, 1.75, 4])
    points = mrgp.from_grid(data, instant="x").support
    assert points.flat == (False, True)
    np.testing.assert_array_equal(points.lower[:3, 1], [0, 1, 2])
    with pytest.warns(UserWarning, match="'x' has CF bounds 'x_bnds', which this array does not"):
        alone = mrgp.from_grid(grid)
    np.testing.assert_array_equal(alone.support.lower[:3, 1], [-0.5, 0.5, 1.5])


def test_a_single_coordinate_is_a_point_unless_it_has_a_width():
    grid = plane().isel(x=[1])
    assert mrgp.from_grid(grid).support.flat == (False, True)
    wide = mrgp.from_grid(grid, width={"x": 4}).support
    np.testing.assert_array_equal(wide.bounds[0][:, 1], [-1, -1])
    np.testing.assert_array_equal(wide.bounds[1][:, 1], [3, 3])


def test_order_and_names_of_inputs():
    o = mrgp.from_grid(earth(), dims=("lon", "lat", "time"), inputs=("x", "y", "t"))
    assert o.support.inputs == ("x", "y", "t")
    assert [axis.quantity for axis in o.support.axes] == ["longitude", "latitude", "time"]
    turned = mrgp.from_grid(earth(), inputs=("lon", "lat", "time"))
    np.testing.assert_array_equal(turned.support.lower, o.support.lower)
    np.testing.assert_array_equal(turned.y, o.y)
    back = o.to_grid().rename(x="lon", y="lat", t="time")
    xr.testing.assert_equal(back.transpose(*earth().dims), earth())


def test_longitudes_may_run_from_zero_to_360():
    west = earth(lon=(359.85, 359.95, 0.05, 0.15))
    east = earth(lon=(-0.15, -0.05, 0.05, 0.15))
    o, same = mrgp.from_grid(west), mrgp.from_grid(east)
    np.testing.assert_allclose(o.support.lower, same.support.lower, atol=1e-9)
    xr.testing.assert_equal(o.to_grid(), east)
    xr.testing.assert_identical(o.to_grid(like=west), west)


def test_cells_across_the_date_line_lie_side_by_side():
    grid = earth(lon=(179.85, 179.95, -179.95, -179.85))
    support = mrgp.from_grid(grid).support
    step = np.diff(np.unique(support.lower[:, 2]))
    np.testing.assert_allclose(step, step[0], rtol=1e-6)
    assert np.ptp(support.upper[:, 2]) < 25


def test_degrees_stay_degrees_on_request_and_unless_known():
    bare = earth()
    for name in ("lon", "lat"):
        bare[name].attrs.clear()
    assert mrgp.from_grid(earth(), crs=False).support.axes[1:] == (None, None)
    assert mrgp.from_grid(bare).support.axes[1:] == (None, None)
    known = mrgp.from_grid(bare, crs="EPSG:4326").support
    np.testing.assert_array_equal(known.lower, mrgp.from_grid(earth()).support.lower)


def test_coordinates_alone_give_a_support():
    data = xr.Dataset(coords=earth().coords)
    np.testing.assert_array_equal(mrgp.from_grid(data).lower, mrgp.from_grid(earth()).support.lower)


def test_noise_may_be_a_grid():
    noise = plane().copy(data=np.arange(1.0, 7.0).reshape(2, 3))
    for turned in (noise, noise.transpose()):
        o = mrgp.from_grid(plane(), noise_variance=turned)
        np.testing.assert_array_equal(o.noise_variance, np.arange(1.0, 7.0))


def test_noise_goes_with_its_coordinates():
    values = np.arange(1.0, 7.0).reshape(2, 3)
    noise = plane().copy(data=values)
    turned = noise.isel(y=[1, 0], x=[2, 0, 1])
    o = mrgp.from_grid(plane(), noise_variance=turned, inputs=("x", "y"))
    np.testing.assert_array_equal(o.noise_variance, values.T.ravel())


@pytest.mark.parametrize("dims", [("y", "x"), ("x", "y")])
def test_noise_may_be_an_array_a_number_or_a_variable(dims):
    values = np.arange(1.0, 7.0).reshape(2, 3)
    expected = values.ravel() if dims == ("y", "x") else values.T.ravel()
    data = xr.Dataset({"no2": plane(), "error": plane().copy(data=values)})
    for noise in (values, values.tolist(), "error", data["error"]):
        o = mrgp.from_grid(data, "no2", dims=dims, noise_variance=noise)
        np.testing.assert_array_equal(o.noise_variance, expected)
    for number in (0.5, np.float64(0.5), np.array(0.5), xr.DataArray(0.5)):
        o = mrgp.from_grid(plane(), dims=dims, noise_variance=number)
        np.testing.assert_array_equal(o.noise_variance, np.full(6, 0.5))


@pytest.fixture(scope="module")
def fitted():
    data = mrgp.Dataset([mrgp.from_grid(earth())])
    return mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK)


def test_a_prediction_becomes_a_dataset(fitted):
    grid = earth()
    pred = mrgp.predict(fitted, mrgp.from_grid(grid).support)
    maps = pred.to_grid()
    assert list(maps.data_vars) == ["mean", "std", "lower", "upper"]
    for name, values in (("mean", pred.mean), ("std", pred.std), ("upper", pred.interval()[1])):
        assert maps[name].dims == grid.dims
        np.testing.assert_array_equal(maps[name].values.ravel(), values)
        assert maps[name].attrs == {"units": "ug/m3"}
    assert maps.attrs == {"task": "no2"}
    xr.testing.assert_equal(maps["mean"].isnull() | grid.isnull(), grid.isnull())
    assert maps["lat"].attrs["bounds"] == "lat_bounds"
    np.testing.assert_allclose(maps["lat_bounds"][0], [51.6, 51.7], atol=1e-10)
    again = mrgp.from_grid(maps, "mean").support
    np.testing.assert_allclose(again.lower, pred.support.lower, atol=1e-7)


def test_a_prediction_can_be_written_and_read(fitted, tmp_path):
    pytest.importorskip("h5py")
    maps = mrgp.predict(fitted, mrgp.from_grid(earth()).support).to_grid()
    maps.to_netcdf(tmp_path / "maps.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "maps.nc", engine="h5netcdf") as read:
        xr.testing.assert_equal(read["mean"], maps["mean"])


def test_dates_of_a_zone_are_utc_or_wall_clock():
    times = pd.date_range("2018-06-18", periods=3, freq="h", tz="Europe/London")
    frame = pd.DataFrame({"time": times, "no2": [1.0, 2.0, 3.0]})
    o = mrgp.from_frame(frame, "time", "no2")
    utc, local = o.to_grid(), o.to_grid(local=True)
    assert utc["time"].attrs == {"time_zone": "Europe/London"}
    assert utc.indexes["time"][0] == pd.Timestamp("2018-06-17 23:00")
    assert local.indexes["time"][0] == pd.Timestamp("2018-06-18 00:00")
    autumn = pd.date_range("2018-10-28 00:00", periods=3, freq="h", tz="UTC")
    frame["time"] = autumn.tz_convert("Europe/London")
    with pytest.raises(ValueError, match="Europe/London go back within these dates, so that an"):
        mrgp.from_frame(frame, "time", "no2").to_grid(local=True)


class Noleap:
    """A date of another calendar, as cftime has them."""


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("grid", "options", "error", "text"),
    [
        (np.ones((2, 2)), {}, TypeError, "takes an xarray DataArray or Dataset first; got ndarray"),
        (plane(), {"variable": "no2"}, ValueError, "variable='no2' is for a Dataset; got a DataAr"),
        (
            xr.Dataset({"a": plane(), "b": plane()}),
            {},
            ValueError,
            r"say which variable= of the Dataset; it has \['a', 'b'\]",
        ),
        (
            xr.Dataset({"a": plane()}),
            {"variable": "b"},
            ValueError,
            r"the Dataset has no variable 'b'; it has \['a'\]",
        ),
        (plane(), {"dims": "y"}, ValueError, r"dims= orders the dimensions \['y', 'x'\]; got \['y"),
        (plane(), {"width": {"z": 1}}, ValueError, r"width= names 'z', but the dimensions are"),
        (
            plane(),
            {"width": {"x": -1}},
            ValueError,
            "'x': width= must be a positive number; got -1",
        ),
        (earth(), {"width": {"time": 1j}}, ValueError, 'width= must be a duration such as "1h"'),
        (
            plane(),
            {"bounds": {"x": [[0, 1]]}},
            ValueError,
            r"'x': bounds must have shape \(3, 2\), or be 4 edges; got \(1, 2\)",
        ),
        (
            earth(),
            {"bounds": {"time": np.zeros((3, 2))}},
            TypeError,
            "'time': one of coordinate and bounds holds dates and the other does not",
        ),
        (plane().drop_vars("x"), {}, ValueError, "the dimension 'x' has no coordinate"),
        (
            plane(),
            {"noise_variance": np.ones((3, 2))},
            ValueError,
            r"noise_variance= needs the shape of the grid, \(2, 3\) along .* got \(3, 2\)",
        ),
        (
            plane(),
            {"noise_variance": plane().isel(x=0)},
            ValueError,
            r"noise_variance= needs the dimensions \['y', 'x'\] of the grid; got \['y'\]",
        ),
        (
            plane(),
            {"noise_variance": plane().assign_coords(x=[7.0, 8.0, 9.0])},
            ValueError,
            "has other coordinates along 'x' than the grid.* got 3 from 7.0 to 9.0.*reindex_like",
        ),
        (
            plane(),
            {"noise_variance": "error"},
            ValueError,
            r"noise_variance='error' must name a variable of the Dataset; there are \[\]",
        ),
        (
            plane().drop_vars(["x", "y"]).assign_coords(lon=(("y", "x"), np.ones((2, 3)))),
            {},
            ValueError,
            r"the coordinates \['lon'\] are curvilinear, .*array.to_dataframe\(\)",
        ),
        (
            plane().stack(z=("x", "y")),
            {},
            ValueError,
            r"dimension 'z' is stacked. Call unstack\('z",
        ),
        (
            plane().assign_coords(x=[0.0, 2.0, 1.0]),
            {},
            ValueError,
            r"'x' neither ascends nor descends.*sortby\('x'\)",
        ),
        (
            plane().assign_coords(x=[0.0, np.nan, 1.0]),
            {},
            ValueError,
            "the dimension 'x' has missing coordinates",
        ),
        (plane().assign_coords(x=list("abc")), {}, TypeError, "must be numbers or datetime64; got"),
        (
            plane().assign_coords(x=np.array([Noleap(), Noleap(), Noleap()], dtype=object)),
            {},
            TypeError,
            r"'x' must be numbers or datetime64; got Noleap.*\(cftime\) are converted by",
        ),
        (
            plane().assign_coords(x=np.arange(3).astype("m8[h]")),
            {},
            TypeError,
            "the dimension 'x' holds durations",
        ),
        (plane().isel(x=slice(0)), {}, ValueError, "'x' has no coordinates: the array is empty"),
        (xr.DataArray(1.0), {}, ValueError, "the array has no dimensions with coordinates"),
        (earth(), {"time_unit": "week"}, ValueError, "time_unit= is one of"),
        (plane(), {"crs": "EPSG:27700"}, ValueError, "cells of the CRS 'EPSG:27700' are not boxes"),
        (plane(), {"crs": "EPSG:4326"}, ValueError, "crs= needs one input named as one of"),
        (earth(lat=(20, 45, 70)), {}, ValueError, "the data span .* degrees of longitude and 75"),
    ],
)
def test_wrong_grids_are_named(grid, options, error, text):
    with pytest.raises(error, match=f"from_grid.*{text}"):
        mrgp.from_grid(grid, **options)


def test_fill_values_are_caught():
    grid = plane().fillna(9.96921e300)
    with pytest.raises(ValueError, match=r"'source', task 'no2': y is 9.96921e\+300 .* fill"):
        mrgp.from_grid(grid)


def test_regions_that_are_no_grid_go_to_frames():
    o = mrgp.from_grid(plane())
    with pytest.raises(ValueError, match="5 regions are no full grid of 2 y x 3 x, which has 6"):
        o.dropna().to_grid()
    twice = mrgp.concat(o.support, o.support)
    with pytest.raises(ValueError, match="12 regions are no full grid of 2 y x 3 x"):
        mrgp.Observations(twice, np.ones(12)).to_grid()
    nodes = mrgp.Observations(o.support.quadrature(), o.y)
    with pytest.raises(ValueError, match="regions of type Nodes are no cells of a grid"):
        nodes.to_grid()
    with pytest.raises(ValueError, match="coordinates of like= along 'y' are not one in each cell"):
        o.to_grid(like=plane().assign_coords(y=[3.0, 7.0]))
