"""Covariates: known fields sampled at the nodes of supports."""

import dataclasses

import jax
import numpy as np
import pandas as pd
import pytest
import shapely
import xarray as xr

import mrgp
from mrgp.data import harmonise
from mrgp.gp import variance
from mrgp.kernels import Binding
from mrgp.parameters import unwrap
from mrgp.supports import Axis, Boxes, Geometry, Nodes, Points, Products
from mrgp.supports.covariates import FIELD_RULE

NAMES = ("lon", "lat", "hour")
LON, LAT = np.linspace(0.0, 4.0, 9), np.linspace(0.0, 3.0, 7)
X = np.array([[0.3, 0.2, 1.0], [2.1, 1.7, 5.0], [3.9, 2.9, 7.0]])
LOWER = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 5.0]])


def height(x):
    """Return a function that multilinear interpolation finds exactly."""
    return 1.0 + 2.0 * x[..., 0] - x[..., 1] + 0.5 * x[..., 0] * x[..., 1]


def grid(values=None, name="height", lat=LAT, **options):
    """Return the function on a grid of latitude and longitude."""
    places = np.stack(np.meshgrid(LON, lat), -1)
    values = height(places) if values is None else values
    return xr.DataArray(values, {"lat": lat, "lon": LON}, ("lat", "lon"), name, **options)


def covariate(support):
    """Return the last column of a support's nodes."""
    return support.atoms().lower[..., -1]


def test_a_function_is_called_at_points():
    points = mrgp.points(X, inputs=NAMES)
    made = points.with_covariates(lambda x: x[:, 0] * x[:, 2], "load")
    assert isinstance(made, Points)
    assert made.input_names == (*NAMES, "load")
    np.testing.assert_allclose(made.x, np.column_stack([X, X[:, 0] * X[:, 2]]))
    several = points.with_covariates(lambda x: x[:, :2] ** 2, ("a", "b"))
    np.testing.assert_allclose(several.x[:, 3:], X[:, :2] ** 2)


def test_a_function_is_given_the_inputs_it_names_in_their_order():
    points = mrgp.points(X, inputs=NAMES)
    made = points.with_covariates(lambda x: x @ [1.0, 10.0], "mixed", inputs=("hour", "lon"))
    np.testing.assert_allclose(covariate(made)[:, 0], X[:, 2] + 10.0 * X[:, 0])
    one = points.with_covariates(lambda x: x[:, 0], "copy", inputs="lat")
    np.testing.assert_allclose(covariate(one)[:, 0], X[:, 1])


def test_a_grid_is_interpolated_whatever_the_order_of_its_axes():
    points, expected = mrgp.points(X, inputs=NAMES), height(X)
    for source in (
        grid(),
        grid().transpose("lon", "lat"),
        grid(lat=LAT[::-1]),
        grid().isel(lon=[3, 1, 0, 2, 5, 4, 8, 7, 6]),
        grid().expand_dims(band=[1]),
        grid().astype(np.float32).astype(np.float64),
    ):
        made = points.with_covariates(source)
        np.testing.assert_allclose(covariate(made)[:, 0], expected, rtol=1e-6)
        assert made.input_names == (*NAMES, "height")
    renamed = points.with_covariates(grid(), "elevation")
    assert renamed.input_names[-1] == "elevation"


def test_a_dataset_brings_several_fields():
    both = xr.Dataset({"height": grid(), "slope": 2.0 * grid().transpose("lon", "lat")})
    made = mrgp.points(X, inputs=NAMES).with_covariates(both)
    assert made.input_names == (*NAMES, "height", "slope")
    np.testing.assert_allclose(made.x[:, 3:], height(X)[:, None] * [1.0, 2.0])
    named = mrgp.points(X, inputs=NAMES).with_covariates(both, ("a", "b"))
    assert named.input_names[3:] == ("a", "b")


def test_the_nearest_cell_and_half_a_cell_beyond_the_outermost_centres():
    values = np.arange(63.0).reshape(7, 9)
    at = mrgp.points([[0.6, 0.2], [0.8, 0.7], [-0.24, 3.24]], inputs=("lon", "lat"))
    nearest = at.with_covariates(grid(values), method="nearest")
    np.testing.assert_array_equal(covariate(nearest)[:, 0], [1.0, 11.0, 54.0])
    linear = at[2:].with_covariates(grid(values))
    np.testing.assert_array_equal(covariate(linear)[:, 0], [54.0])
    with pytest.raises(
        ValueError, match=r"outside its grid\) at 1 of 1 nodes, .* at lat 3.26, lon 0"
    ):
        mrgp.points([[0.0, 3.26]], inputs=("lon", "lat")).with_covariates(grid(values))


def test_a_missing_neighbour_does_not_spoil_a_centre():
    values = height(np.stack(np.meshgrid(LON, LAT), -1))
    values[2, 3] = np.nan
    on = mrgp.points([[LON[2], LAT[2]], [LON[2], 0.9], [2.7, 0.3]], inputs=("lon", "lat"))
    found = covariate(on.with_covariates(grid(values)))[:, 0]
    np.testing.assert_allclose(found, height(np.asarray(on.x)))
    with pytest.raises(ValueError, match=r"The field 'height' is missing .* first in region 0"):
        mrgp.points([[1.3, 0.9]], inputs=("lon", "lat")).with_covariates(grid(values))


def test_flat_boxes_stay_boxes():
    upper = LOWER + [0.0, 0.0, 2.0]
    windows = mrgp.boxes(LOWER, upper, inputs=NAMES)
    made = windows.with_covariates(grid())
    assert isinstance(made, Boxes)
    assert made.flat == (True, True, False, True)
    np.testing.assert_allclose(made.lower, np.column_stack([LOWER, height(LOWER)]))
    np.testing.assert_allclose(made.upper, np.column_stack([upper, height(LOWER)]))


@pytest.mark.parametrize("kind", ["mean", "sum"])
def test_boxes_become_nodes_only_along_what_the_grid_depends_on(kind):
    cells = mrgp.boxes(LOWER, LOWER + [1.0, 1.0, 2.0], inputs=NAMES, kind=kind)
    made = cells.with_covariates(grid())
    assert isinstance(made, Products)
    assert made.columns == ((0, 1, 3), (2,))
    nodes, hours = made.parts
    assert isinstance(nodes, Nodes)
    assert isinstance(hours, Boxes)
    assert nodes.nodes_per_region == 25
    np.testing.assert_allclose(nodes.x[..., 2], height(nodes.x))
    np.testing.assert_allclose(hours.upper - hours.lower, 2.0)
    np.testing.assert_allclose(made.total, cells.total)
    np.testing.assert_allclose(made.moment[:, :3], cells.moment)
    assert (made.kind, made.solid, made.blocks) == (kind, (0, 1), ((0, 1, 3), (2,)))


def test_functions_of_everything_make_nodes_of_everything():
    cells = mrgp.boxes(LOWER, LOWER + 1.0, inputs=NAMES)
    made = cells.with_covariates(lambda x: x.sum(1), "load")
    assert isinstance(made, Nodes)
    np.testing.assert_allclose(made.x[..., :3], cells.quadrature(FIELD_RULE).x)
    np.testing.assert_allclose(made.x[..., 3], made.x[..., :3].sum(-1))


def test_padding_nodes_take_the_value_of_a_used_node():
    x = np.array([[[0.5, 0.5], [1.0, 1.0]], [[1.0, 2.0], [99.0, 99.0]]])
    nodes = mrgp.nodes(x, [[1.0, 1.0], [1.0, 0.0]], inputs=("lon", "lat"))
    made = nodes.with_covariates(grid())
    np.testing.assert_allclose(covariate(made)[1], height(x[1, 0]))
    assert np.isfinite(made.x).all()
    bare = dataclasses.replace(nodes, x=np.where(nodes.weights[..., None] > 0, x, 99.0))
    np.testing.assert_allclose(covariate(bare.with_covariates(grid()))[1], height(x[1, 0]))


SQUARES = [shapely.box(0, 0, 1, 1), shapely.box(1, 1, 3, 2)]


def test_polygons_and_products_are_sampled_inside():
    polygons = mrgp.polygons(SQUARES, inputs=("lon", "lat"))
    made = polygons.with_covariates(grid())
    assert isinstance(made, Nodes)
    np.testing.assert_allclose(made.x[..., 2], height(polygons.x))
    np.testing.assert_allclose(made.total, polygons.total)
    months = mrgp.product(polygons, mrgp.intervals([0.0, 1.0], [1.0, 3.0], inputs="hour"))
    both = months.with_covariates(grid())
    assert both.columns == ((0, 1, 3), (2,))
    assert isinstance(both.parts[1], Boxes)
    np.testing.assert_allclose(both.parts[0].x, made.x)
    np.testing.assert_allclose(both.moment[:, :3], months.moment)


def test_two_fields_one_after_the_other():
    cells = mrgp.boxes(LOWER, LOWER + [1.0, 1.0, 2.0], inputs=NAMES)
    made = cells.with_covariates(grid()).with_covariates(
        lambda x: x[:, 0] ** 2, "rush", inputs="hour"
    )
    assert made.input_names == (*NAMES, "height", "rush")
    assert made.columns == ((2, 4), (0, 1, 3))
    assert [f.names for f in made.covariates] == [("height",), ("rush",)]
    assert sum(isinstance(part, Products) for part in made.parts) == 0
    joint = cells.with_covariates(grid()).with_covariates(grid(name="again"))
    assert joint.columns == ((0, 1, 3, 4), (2,))
    np.testing.assert_allclose(joint.parts[0].x[..., 2], joint.parts[0].x[..., 3])


def bound(recipe, dimension):
    return unwrap(recipe.bind(Binding(Geometry.unit(dimension))))


def test_regions_with_covariates_have_no_white_noise():
    regions = [
        mrgp.boxes(LOWER[:, :2], LOWER[:, :2] + 1.0, inputs=("lon", "lat")),
        mrgp.polygons(SQUARES, inputs=("lon", "lat")),
        mrgp.boxes(LOWER[:, :2], LOWER[:, :2] + [1.0, 0.0], inputs=("lon", "lat")),
    ]
    with jax.enable_x64(True):
        for region in regions:
            made = region.with_covariates(grid())
            found = variance(bound(mrgp.White(2.0), 3), made)
            np.testing.assert_array_equal(found, np.zeros(2))
        points = mrgp.points(X[:, :2], inputs=("lon", "lat")).with_covariates(grid())
        np.testing.assert_allclose(variance(bound(mrgp.White(2.0), 3), points), np.full(3, 2.0))
    weighted = regions[0].weighted(grid(1.0 + grid().values ** 2))
    assert weighted.solid == (0, 1)


def test_totals_with_covariates_change_their_units_like_others():
    days, hours = (Axis("time", 0.0, s, u) for s, u in ((86400.0, "D"), (3600.0, "h")))
    cells = mrgp.boxes(LOWER, LOWER + [1.0, 1.0, 2.0], inputs=NAMES, kind="sum")
    daily = dataclasses.replace(cells, axes=(None, None, days))
    for made in (
        daily,
        daily.with_covariates(grid()),
        daily.weighted(grid(grid().values ** 2 + 1)),
    ):
        extra = (None,) * (made.dimension - 3)
        moved = harmonise(made, (None, None, hours, *extra))
        np.testing.assert_allclose(moved.total, 24.0 * made.total)


def test_dates_and_degrees_are_looked_up_where_they_are():
    times = pd.date_range("2020-03-01", periods=5, freq="6h")
    frame = pd.DataFrame(
        {"lon": [-0.2, 0.1], "lat": [51.4, 51.6], "time": times[[1, 3]] + pd.Timedelta("3h")}
    )
    support = mrgp.from_frame(frame, ["lon", "lat", "time"], crs="EPSG:4326")
    wind = xr.DataArray(np.arange(5.0), {"time": times}, ("time",), "wind")
    np.testing.assert_allclose(covariate(support.with_covariates(wind))[:, 0], [1.5, 3.5])
    lon, lat = np.linspace(-0.5, 0.5, 11), np.linspace(51.2, 51.8, 7)
    values = 10.0 * lon[None, :] + lat[:, None]
    expected = 10.0 * frame["lon"] + frame["lat"]
    map_ = xr.DataArray(values, {"lat": lat, "lon": lon}, ("lat", "lon"), "height")
    np.testing.assert_allclose(covariate(support.with_covariates(map_))[:, 0], expected)
    turned = map_.assign_coords(lon=lon + 360.0)
    np.testing.assert_allclose(covariate(support.with_covariates(turned))[:, 0], expected)
    numbers = wind.assign_coords(time=np.arange(5.0))
    text = "input 'time': the support has dates, but the grid has plain numbers. Give the grid date"
    with pytest.raises(ValueError, match=text):
        support.with_covariates(numbers)
    plain = mrgp.points([[1.0]], inputs="time")
    with pytest.raises(
        ValueError, match="the grid has dates, but the support's numbers have no ti"
    ):
        plain.with_covariates(wind)


def test_no_regions_have_covariates_too():
    for support in (mrgp.points(X, inputs=NAMES), mrgp.boxes(LOWER, LOWER + 1.0, inputs=NAMES)):
        assert support[:0].with_covariates(grid()).dimension == 4


def bare(x):
    return mrgp.points(x, inputs=("lon", "lat"))


ONE = bare([[1.0, 1.0]])


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda: bare([[1.0, 1.0], [1.0, 9.0]]).with_covariates(grid()),
            ValueError,
            r"The field 'height' is missing \(NaN, or outside its grid\) at 1 of 2 nodes, in 1 of 2"
            r" regions, first in region 1 at lat 9, lon 1. Fill it in there, or drop those regions",
        ),
        (
            lambda: mrgp.points([[1.0, 1.0]]).with_covariates(grid()),
            ValueError,
            r"The field 'height' depends on lat, lon, but the inputs are \('x1', 'x2'\). Rename",
        ),
        (
            lambda: ONE.with_covariates(grid(name="lat")),
            ValueError,
            r"there is already an input 'lat'. Give the covariate another name, as with_cov",
        ),
        (
            lambda: ONE.with_covariates(lambda x: x, ("a", "a")),
            ValueError,
            "with_covariates: inputs= needs one name for each of the 4 columns, all different",
        ),
        (
            lambda: ONE.with_covariates(grid(name=None)),
            ValueError,
            "The grid has no name; give one",
        ),
        (
            lambda: ONE.with_covariates(lambda x: x),
            ValueError,
            r'Name what the function returns, as with_covariates\(f, "elevation"\)',
        ),
        (
            lambda: ONE.with_covariates(lambda x: x, "a"),
            ValueError,
            r"the function must return shape \(1, 1\) for 1 nodes; got \(1, 2\)",
        ),
        (
            lambda: ONE.with_covariates(np.ones((3, 3)), "a"),
            TypeError,
            r"Give an xarray grid, or a function of the node coordinates \[k, d\]; got ndarray",
        ),
        (
            lambda: ONE.with_covariates(grid(), method="cubic"),
            ValueError,
            r"method= is one of \('linear', 'nearest'\); got 'cubic'",
        ),
        (
            lambda: ONE.with_covariates(lambda x: x[:, 0], "a", method="nearest"),
            ValueError,
            "method= belongs to grids; a function is called at the nodes",
        ),
        (
            lambda: ONE.with_covariates(grid(), inputs="lon"),
            ValueError,
            "inputs= belongs to functions; a grid's dimensions name its inputs",
        ),
        (
            lambda: ONE.with_covariates(grid(), ("a", "b")),
            ValueError,
            r"The grid has 1 fields, but 2 names came: \('a', 'b'\)",
        ),
        (
            lambda: ONE.with_covariates(xr.Dataset({"a": grid(), "b": grid()[0]})),
            ValueError,
            "The fields of the grid must share their dimensions; add them one by one",
        ),
        (lambda: ONE.with_covariates(xr.Dataset()), ValueError, "Dataset has no variables"),
        (
            lambda: ONE.with_covariates(grid().drop_vars("lat")),
            ValueError,
            r"The grid has no coordinates along 'lat'; give it some, as grid.assign_coords\(lat=",
        ),
        (
            lambda: ONE.with_covariates(grid()[:1, :1]),
            ValueError,
            "The grid has one cell alone, so that the field would be a constant",
        ),
        (
            lambda: ONE.with_covariates(grid().assign_coords(lat=[0, 1, 1, 2, 3, 4, 5])),
            ValueError,
            "coordinates along 'lat' are not all different and finite. Drop the cells",
        ),
        (
            lambda: ONE.with_covariates(grid().assign_coords(lat=list("abcdefg"))),
            TypeError,
            "coordinates along 'lat' must be numbers or dates; got <U1",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_words(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_joined_supports_have_the_same_fields():
    first, second = (bare(X[i : i + 1, :2]).with_covariates(grid()) for i in (0, 1))
    joined = mrgp.concat(first, second)
    np.testing.assert_allclose(covariate(joined)[:, 0], height(X[:2]))
    text = "concat: supports must have their covariates from the same grids or functions. Join"
    for other in (grid(grid().values + 1.0), grid().isel(lat=slice(0, 6)), height):
        with pytest.raises(ValueError, match=text):
            mrgp.concat(first, bare(X[1:2, :2]).with_covariates(other, "height"))
    same = [bare(X[:1, :2]).with_covariates(height, "height") for _ in range(2)]
    assert len(mrgp.concat(*same)) == 2


def test_joined_regions_stay_regions():
    cells = mrgp.boxes(LOWER[:, :2], LOWER[:, :2] + 1.0, inputs=("lon", "lat"))
    made = cells.with_covariates(grid())
    joined = mrgp.concat(made, made[:1])
    assert joined.solid == (0, 1)
    np.testing.assert_array_equal(joined.origin.regions.lower, LOWER[[0, 1, 0], :2])
    with pytest.raises(ValueError, match="boxes and polygons mix neither with nodes nor"):
        mrgp.concat(made, bare(X[:, :2]).with_covariates(grid()))
    polygons = mrgp.polygons(SQUARES, inputs=("lon", "lat")).with_covariates(grid())
    mixed = mrgp.concat(made, polygons)
    assert (mixed.solid, mixed.origin) == ((0, 1), None)


def test_nodes_know_the_regions_that_they_were_laid_out_in():
    cells = mrgp.boxes(LOWER, LOWER + [1.0, 1.0, 2.0], inputs=NAMES)
    for made in (cells.with_covariates(grid()), cells.weighted(grid(1.0 + grid().values ** 2))):
        again = made.with_covariates(height, "again", inputs=("lon", "lat"))
        for support in (made, again):
            for rows in (1, [1], slice(1, None), np.array([False, True])):
                regions = support[rows].parts[0].origin.regions
                np.testing.assert_array_equal(regions.upper, LOWER[1:, :2] + 1.0)
            assert support.shift(np.zeros(support.dimension)).parts[0].origin is None
    assert bare(X[:, :2]).quadrature().with_covariates(grid()).origin is None


def test_nodes_that_know_their_regions_can_be_traced():
    made = mrgp.boxes(LOWER, LOWER + 1.0, inputs=NAMES).with_covariates(lambda x: x[:, 0], "h")
    np.testing.assert_allclose(jax.jit(lambda s: s.total)(made), np.ones(2), rtol=1e-6)
