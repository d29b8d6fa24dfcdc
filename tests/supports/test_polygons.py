"""Polygons: exact areas, means that converge at second order, and how they are refused."""

import sys
import warnings

import geopandas
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shapely
import xarray as xr
from hypothesis import assume, given, settings

import mrgp
from mrgp._types import float64
from mrgp.gp import cross_covariance, variance
from mrgp.kernels import Binding
from mrgp.parameters import unwrap
from mrgp.supports import Geometry, Polygons
from reference import polygons as reference

SQUARE = shapely.box(0.0, 0.0, 1.0, 1.0)
SHAPES = {
    "triangle": shapely.Polygon([(0.1, 0.2), (1.7, 0.5), (0.6, 1.9)]),
    "L": shapely.Polygon([(0, 0), (2.03, 0), (2.03, 1.01), (0.97, 1.01), (0.97, 2.5), (0, 2.5)]),
    "ring": shapely.Point(0.3, 0.4).buffer(1.0, 64) - shapely.Point(0.3, 0.4).buffer(0.5, 64),
    "islands": shapely.MultiPolygon([SQUARE, shapely.Polygon([(3, 3), (4.3, 3.2), (3.1, 4.4)])]),
}
each_shape = pytest.mark.parametrize("name", SHAPES)
KERNEL = mrgp.RBF(lengthscale=0.8, variance=1.0)


def bound():
    return unwrap(KERNEL.bind(Binding(Geometry.unit(2))))


def apply(support, function):
    """Return the support's functional of a function of [k, 2], by its nodes."""
    n, s, _ = support.x.shape
    return (support.weights * function(support.x.reshape(-1, 2)).reshape(n, s)).sum(1)


@float64
def moments(support):
    """Return prior variances, and covariances with some points."""
    places = mrgp.points(np.random.default_rng(0).uniform(-1.0, 3.0, (7, 2)))
    return variance(bound(), support), cross_covariance(bound(), support, places)


def rising(x):
    """Return a density that grows along the first input."""
    return 1.0 + x[:, 0]


@each_shape
@pytest.mark.parametrize("spacing", [0.05, 0.3, 10.0])
def test_totals_are_areas_and_means_weigh_one(name, spacing):
    shape = SHAPES[name]
    made = mrgp.polygons([shape], kind="sum", spacing=spacing, most=10_000)
    np.testing.assert_allclose(made.total, [reference.integral(shape, 0, 0)], rtol=1e-13)
    mean = mrgp.polygons([shape], spacing=spacing, most=10_000)
    np.testing.assert_allclose(mean.total, [1.0], rtol=1e-14)
    np.testing.assert_array_equal(mean.x, made.x)


@each_shape
def test_means_of_linear_functions_are_exact(name):
    made = mrgp.polygons([SHAPES[name]], spacing=0.11, most=10_000)
    expected = [[reference.mean(SHAPES[name], 1, 0), reference.mean(SHAPES[name], 0, 1)]]
    np.testing.assert_allclose(made.moment, expected, rtol=1e-12)
    np.testing.assert_allclose(made.collapse().x, expected, rtol=1e-12)


@each_shape
@pytest.mark.parametrize(("p", "q"), [(2, 0), (1, 3), (2, 2)])
def test_errors_shrink_with_the_square_of_the_spacing(name, p, q):
    exact = reference.mean(SHAPES[name], p, q)
    steps = 0.2 / 2.0 ** np.arange(4)
    error = [
        abs(apply(made, lambda x: x[:, 0] ** p * x[:, 1] ** q)[0] - exact)
        for made in (mrgp.polygons([SHAPES[name]], spacing=h, most=10**5) for h in steps)
    ]
    order = np.polyfit(np.log(steps), np.log(error), 1)[0]
    assert 1.8 < order < 2.2


def test_the_mean_of_a_smooth_function_over_a_disc():
    disc = shapely.Point(0.0, 0.0).buffer(1.0, 500)
    made = mrgp.polygons([disc], spacing=0.02, most=10**5)
    found = apply(made, lambda x: np.exp(-(x**2).sum(1)))
    np.testing.assert_allclose(found, 1.0 - np.exp(-1.0), rtol=1e-4)


@pytest.mark.parametrize(("cut", "tolerance"), [(0.75, 1e-13), (0.8123, 4e-3)])
def test_a_polygon_is_the_weighted_mean_of_its_parts(cut, tolerance):
    whole = SHAPES["triangle"]
    parts = [whole & shapely.box(-9, -9, cut, 9), whole & shapely.box(cut, -9, 9, 9)]
    made = mrgp.polygons([whole, *parts], spacing=0.25, kind="sum")
    values = apply(made, lambda x: np.sin(2.0 * x[:, 0]) * np.exp(x[:, 1]))
    np.testing.assert_allclose(values[0], values[1:].sum(), rtol=tolerance)
    np.testing.assert_allclose(made.moment[0], made.moment[1:].sum(0), rtol=1e-13)


def test_a_rectangle_agrees_with_a_box_under_a_kernel():
    box = mrgp.boxes([[0.1, -0.3]], [[1.3, 0.4]])
    shape = shapely.box(0.1, -0.3, 1.3, 0.4)
    exact = moments(box)
    errors = []
    for spacing in (0.2, 0.1):
        found = moments(mrgp.polygons([shape], spacing=spacing, most=10**4))
        errors.append([np.abs(a - b).max() for a, b in zip(found, exact, strict=True)])
    assert np.max(errors[1]) < 2e-3
    assert np.all(np.divide(errors[0], errors[1]) > 3.5)


@pytest.mark.thorough
def test_the_error_that_the_warning_states_is_about_right():
    shape, lengthscale = SHAPES["triangle"], 0.8
    exact = np.sqrt(moments(mrgp.polygons([shape], spacing=0.05, most=10**4))[0])
    for h in (0.2, 0.3):
        found = np.sqrt(moments(mrgp.polygons([shape], spacing=h))[0])
        assert abs(found / exact - 1.0) < (h / lengthscale) ** 2 / 12.0
        assert abs(found / exact - 1.0) > (h / lengthscale) ** 2 / 12.0 / 10.0


def test_slivers_keep_nodes_inside():
    slivers = [
        shapely.Polygon([(0.3, 0.3), (5.3, 0.3001), (5.3, 0.3002)]),
        shapely.LineString([(0.0, 0.0), (3.0, 2.0)]).buffer(1e-4),
        shapely.box(0.9999, 0.2, 1.0001, 0.3),
    ]
    made = mrgp.polygons(slivers, spacing=1.0, kind="sum")
    np.testing.assert_allclose(made.total, shapely.area(slivers), rtol=1e-12)
    for sliver, x, weights in zip(slivers, made.x, made.weights, strict=True):
        assert shapely.intersects_xy(sliver.buffer(1e-12), x).all()
        assert (weights != 0).sum() >= 1


def test_a_node_is_never_in_a_hole():
    ring = shapely.box(0.1, 0.1, 0.9, 0.9) - shapely.box(0.2, 0.2, 0.8, 0.8)
    made = mrgp.polygons([ring], spacing=1.0)
    assert made.nodes_per_region == 1
    assert shapely.intersects_xy(ring, made.x[0]).all()


@st.composite
def stars(draw):
    """Draw a polygon that is star-shaped about some centre: corners and spikes of all sorts."""
    count = draw(st.integers(3, 12))
    radius = draw(st.lists(st.floats(0.05, 3.0), min_size=count, max_size=count))
    angle = 2.0 * np.pi * np.arange(count) / count
    centre = draw(st.floats(-100.0, 100.0)), draw(st.floats(-100.0, 100.0))
    spokes = np.column_stack([np.cos(angle), np.sin(angle)])
    return shapely.Polygon(centre + np.array(radius)[:, None] * spokes)


@settings(max_examples=60, deadline=None)
@given(shapes=st.lists(stars(), min_size=1, max_size=3), spacing=st.floats(0.1, 5.0))
def test_nodes_are_inside_and_areas_add_up(shapes, spacing):
    assume(shapely.is_valid(shapes).all())
    made = mrgp.polygons(shapes, spacing=spacing, kind="sum", most=10**5)
    np.testing.assert_allclose(made.total, shapely.area(shapes), rtol=1e-12)
    assert (made.weights >= 0).all()
    for shape, x in zip(shapes, made.x, strict=True):
        assert shapely.dwithin(shape, shapely.points(x), 1e-9).all()
    owner, _ = np.nonzero(made.weights)
    place = made.x[made.weights > 0] / spacing
    assume(np.abs(place - np.round(place)).min() > 1e-9)
    cells = np.column_stack([owner, np.floor(place)])
    assert len(np.unique(cells, axis=0)) == len(cells)


def test_the_default_spacing_is_a_fifth_of_the_side_of_a_median_square():
    made = mrgp.polygons([shapely.box(0, 0, s, s) for s in (1.0, 10.0, 11.0)])
    np.testing.assert_allclose(made.spacing, [2.0, 2.0, 2.0])
    assert (made.weights != 0).sum(1).tolist() == [1, 25, 36]


def test_padding_changes_nothing():
    both = mrgp.polygons([SHAPES["L"], SQUARE], spacing=0.5)
    counts = (both.weights != 0).sum(1)
    assert counts[0] > counts[1]
    padding = both.x[1, counts[1] :]
    np.testing.assert_array_equal(padding, np.broadcast_to(both.x[1, 0], padding.shape))
    alone = mrgp.polygons([SQUARE], spacing=0.5)
    for found, expected in zip(moments(both), moments(alone), strict=True):
        np.testing.assert_allclose(found[1], expected[0], rtol=1e-12)


def test_geometries_come_in_many_forms():
    tall = shapely.Polygon([(0, 0, 7), (1, 0, np.nan), (1, 1, 7), (0, 1, 7)])
    mixed = shapely.GeometryCollection(
        [SQUARE, shapely.Point(5, 5), shapely.MultiPolygon([SQUARE])]
    )
    series = geopandas.GeoSeries([SQUARE, tall, mixed], index=["a", "b", "c"])
    expected = mrgp.polygons([SQUARE] * 3, inputs=("lon", "lat"))
    for given_ in (
        series,
        geopandas.GeoDataFrame({"name": [1, 2, 3]}, geometry=series.to_list()),
        series.to_list(),
        series.to_numpy(),
    ):
        made = mrgp.polygons(given_, inputs=("lon", "lat"))
        assert repr(made) == repr(expected)
        np.testing.assert_array_equal(made.x, expected.x)
        np.testing.assert_allclose(made.weights, expected.weights)


def test_invalid_outlines_are_repaired_and_counted():
    bow_tie = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    twice = shapely.MultiPolygon([shapely.box(0, 0, 2, 2), shapely.box(1, 1, 3, 3)])
    text = "polygons: 2 of 3 geometries had outlines that cross or parts that overlap, and were rep"
    with pytest.warns(UserWarning, match=text):
        made = mrgp.polygons([SQUARE, bow_tie, twice], kind="sum", spacing=0.5)
    np.testing.assert_allclose(made.total, [1.0, 2.0, 7.0])


def test_too_many_nodes_make_the_spacing_coarser_and_say_so():
    shapes = [SQUARE, shapely.box(-30, -30, 30.5, 30.5), shapely.box(0, 0, 9, 9)]
    text = (
        "polygons: 2 of 3 regions need more than most=50 nodes at spacing 0.5 and got a coarser"
        r" one, up to 11.3 \(region 1\). With a lengthscale l their prior sd is off by about the"
        r" fraction \(11.3 / l\)\^2 / 12. Where that is too much raise most=; where it is not, give"
        " that spacing and no warning comes. The attribute spacing has what was used."
    )
    with pytest.warns(UserWarning, match=text):
        made = mrgp.polygons(shapes, spacing=0.5, kind="sum", most=50)
    assert (made.weights != 0).sum(1).max() <= 50
    assert made.spacing[0] == 0.5
    powers = 2.0 * np.log2(made.spacing / 0.5)
    np.testing.assert_allclose(powers, np.round(powers))
    np.testing.assert_allclose(made.total, shapely.area(shapes), rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mrgp.polygons(shapes[1:], spacing=made.spacing.max(), most=50)


def test_even_a_strange_outline_gets_by_with_few_nodes():
    strip = shapely.LineString([(-9e4, -8e4), (1e5, 7e4)]).buffer(1.0)
    with pytest.warns(UserWarning, match="1 of 1 regions need more than most=4 nodes"):
        made = mrgp.polygons([strip], spacing=1.0, most=4)
    assert made.nodes_per_region <= 4
    np.testing.assert_allclose(made.total, [1.0])


def test_population_weights_make_weighted_means_and_totals():
    shape = SHAPES["triangle"]
    total = reference.integral(shape, 0, 0) + reference.integral(shape, 1, 0)
    first = reference.integral(shape, 1, 0) + reference.integral(shape, 2, 0)
    options = {"spacing": 0.02, "most": 10**5, "weights": rising}
    mean, sum_ = (mrgp.polygons([shape], kind=kind, **options) for kind in ("mean", "sum"))
    np.testing.assert_allclose(mean.total, [1.0])
    np.testing.assert_allclose(mean.moment[:, 0], first / total, rtol=1e-4)
    np.testing.assert_allclose(sum_.total, [total], rtol=1e-12)
    np.testing.assert_allclose(sum_.moment[:, 0], first, rtol=1e-4)


def test_population_weights_come_from_grids_too():
    axis = np.arange(-1.0, 4.0, 0.25)
    grid = xr.DataArray(
        1.0 + axis[None, :] + 0.0 * axis[:, None], {"y": axis, "x": axis}, ("y", "x"), "people"
    )
    shapes = [SHAPES["triangle"], SQUARE]
    by_grid = mrgp.polygons(shapes, inputs=("x", "y"), weights=grid)
    by_function = mrgp.polygons(shapes, inputs=("x", "y"), weights=rising)
    np.testing.assert_allclose(by_grid.weights, by_function.weights, rtol=1e-12)
    assert isinstance(by_grid, Polygons)
    np.testing.assert_array_equal(by_grid.outlines.shapes, shapes)


def test_a_factor_for_each_region_multiplies_its_sum():
    made = mrgp.polygons([SQUARE, SHAPES["L"]], kind="sum", weights=[3.0, -0.5])
    np.testing.assert_allclose(made.total, [3.0, -0.5 * SHAPES["L"].area])
    np.testing.assert_allclose(made.refine().total, made.total)


def test_refine_adds_nodes_and_keeps_the_functional():
    made = mrgp.polygons(
        [SHAPES["triangle"], SQUARE], inputs=("lon", "lat"), kind="sum", weights=rising
    )
    finer = made.refine()
    assert (finer.inputs, finer.kind) == (made.inputs, made.kind)
    np.testing.assert_allclose(finer.spacing, 0.5 * made.spacing)
    expected = mrgp.polygons(
        [SHAPES["triangle"], SQUARE], kind="sum", weights=rising, spacing=finer.spacing[0]
    )
    np.testing.assert_allclose(finer.moment, expected.moment)
    np.testing.assert_allclose(made.refine(0.05).spacing, [0.05, 0.05])
    np.testing.assert_allclose(finer[1:].refine().total, made.total[1:])


def test_parts_are_selected_with_their_outlines():
    made = mrgp.polygons(list(SHAPES.values()), spacing=0.5)
    for index in (np.array([2, 0]), [2, 0], jnp.array([2, 0])):
        part = made[index]
        assert part.outlines.shapes.tolist() == [SHAPES["ring"], SHAPES["triangle"]]
        np.testing.assert_array_equal(part.moment, made.moment[[2, 0]])
        np.testing.assert_array_equal(part.bounds[1], made.bounds[1][[2, 0]])
    assert made[1].outlines.shapes.tolist() == [SHAPES["L"]]
    assert made[1:3].outlines.shapes.tolist() == [SHAPES["L"], SHAPES["ring"]]
    assert made[np.array([False, True, False, True])].outlines.shapes[1] == SHAPES["islands"]


def test_bounds_are_those_of_the_outlines_wherever_the_polygons_are_moved():
    made = mrgp.polygons([SHAPES["triangle"]], spacing=5.0)
    np.testing.assert_allclose(made.bounds, [[[0.1, 0.2]], [[1.7, 1.9]]])
    moved = made.affine(np.array([2.0, 1.0]), np.array([1.0, -1.0]))
    np.testing.assert_allclose(moved.bounds, [[[1.2, -0.8]], [[4.4, 0.9]]])
    np.testing.assert_allclose(moved.spacing, [10.0])
    np.testing.assert_allclose(moved.moment, made.moment * [2.0, 1.0] + [1.0, -1.0])
    assert moved.outlines is None
    assert moved.solid == (0, 1)


@float64
def test_moved_polygons_are_traced_and_indexed_like_arrays():
    moved = mrgp.polygons(list(SHAPES.values()), spacing=0.5).shift(np.zeros(2))

    @jax.jit
    def chosen(support, rows):
        return variance(bound(), support[rows])

    found = chosen(moved, jnp.array([3, 1]))
    np.testing.assert_allclose(found, np.asarray(variance(bound(), moved))[[3, 1]])
    assert jax.tree.structure(moved) == jax.tree.structure(moved[::-1])


def test_joined_polygons_keep_their_outlines():
    first, second = (mrgp.polygons([SHAPES[k]], spacing=h) for k, h in (("L", 0.5), ("ring", 0.2)))
    joined = mrgp.concat(first, second)
    assert isinstance(joined, Polygons)
    np.testing.assert_allclose(joined.moment, np.concatenate([first.moment, second.moment]))
    np.testing.assert_allclose(joined.spacing, [0.5, 0.2])
    np.testing.assert_allclose(joined.bounds[0], [[0.0, 0.0], [-0.7, -0.6]])
    assert joined.outlines.shapes.tolist() == [SHAPES["L"], SHAPES["ring"]]
    found, *parts = (apply(s, lambda x: np.exp(x[:, 0])) for s in (joined, first, second))
    np.testing.assert_allclose(found, np.concatenate(parts), rtol=1e-12)
    assert mrgp.concat(first, second.shift([0.0, 0.0])).outlines is None
    weighted = second.weighted(lambda x: 1.0 + x[:, 0] ** 2)
    assert mrgp.concat(first, weighted).outlines is None


def test_fits_on_polygons_predict_polygons_and_are_saved(tmp_path):
    rng = np.random.default_rng(0)
    corner = rng.uniform(0.0, 4.0, (12, 2))
    shapes = [shapely.Point(c).buffer(0.6, 4) for c in corner]
    support = mrgp.polygons(shapes)
    data = mrgp.Dataset([mrgp.Observations(support, np.sin(corner[:, 0]))])
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=mrgp.LBFGS(max_steps=10), progress=None)
    expected = mrgp.predict(fit, support)
    np.testing.assert_allclose(expected.mean, np.sin(corner[:, 0]), atol=0.3)
    mrgp.save(fit, tmp_path / "fit")
    again = mrgp.predict(mrgp.load(tmp_path / "fit"), support)
    np.testing.assert_array_equal(again.mean, expected.mean)
    np.testing.assert_allclose(mrgp.predict(fit, support[3:5]).mean, expected.mean[3:5], rtol=1e-6)


BAD = shapely.Polygon([(0, 0), (1, 0), (1, np.inf)])


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda: mrgp.polygons(SQUARE),
            TypeError,
            r"polygons: give a list of geometries, as polygons\(\[geometry\]\)",
        ),
        (lambda: mrgp.polygons([]), ValueError, "polygons: there are no geometries"),
        (
            lambda: mrgp.polygons([SQUARE, "POLYGON"]),
            TypeError,
            "geometries must be shapely geometries; row 1 is of type str. shapely.from_wkt",
        ),
        (
            lambda: mrgp.polygons([SQUARE, None, float("nan")]),
            ValueError,
            "polygons: 2 of 3 geometries are missing or empty, first in row 1. Drop those rows",
        ),
        (
            lambda: mrgp.polygons([shapely.Polygon()]),
            ValueError,
            "1 of 1 geometries are missing or empty, first in row 0",
        ),
        (
            lambda: mrgp.polygons([SQUARE, BAD]),
            ValueError,
            "1 of 2 geometries have NaN or infinite coordinates, first in row 1. Drop those rows",
        ),
        (
            lambda: mrgp.polygons(
                [SQUARE, shapely.Point(0, 0), shapely.LineString([(0, 0), (1, 1)])]
            ),
            ValueError,
            "2 of 3 geometries have no area, .*, first in row 1. Use points or nodes",
        ),
        (
            lambda: mrgp.polygons([SQUARE], inputs=("x", "y", "z")),
            ValueError,
            "polygons: inputs= needs one name for each of the 2 columns",
        ),
        (
            lambda: mrgp.polygons([SQUARE], spacing=0.0),
            ValueError,
            "polygons: spacing= is a positive number in the units of the coordinates; got 0.0",
        ),
        (
            lambda: mrgp.polygons([SQUARE], spacing="fine"),
            ValueError,
            "spacing= is a .* got 'fine'",
        ),
        (
            lambda: mrgp.polygons([SQUARE], most=3),
            ValueError,
            "polygons: most= is a number of nodes, at least 4; got 3",
        ),
        (lambda: mrgp.polygons([SQUARE], kind="total"), ValueError, "polygons: kind= is"),
        (
            lambda: mrgp.polygons([SQUARE], weights=[2.0]),
            ValueError,
            "polygons: one weight a region cancels in a mean",
        ),
        (
            lambda: mrgp.polygons([SQUARE], kind="sum", weights=[2.0, 1.0]),
            ValueError,
            "polygons: weights must be 1 finite numbers, one a region",
        ),
        (
            lambda: mrgp.polygons([SQUARE], weights=lambda x: x[:, 0] - 0.5),
            ValueError,
            "The field 'weight' is negative in region 0",
        ),
        (
            lambda: mrgp.polygons([SQUARE, SHAPES["L"]], weights=lambda x: x[:, 0] > 1.0),
            ValueError,
            "The field 'weight' is zero all over region 0, .* Drop the region",
        ),
        (
            lambda: mrgp.polygons([SQUARE], weights=lambda x: np.log(x[:, 0] * 0.0)),
            ValueError,
            r"The field 'weight' is missing .* first in region 0 at x1",
        ),
        (
            lambda: mrgp.polygons([SQUARE]).shift([0.0, 0.0]).refine(),
            ValueError,
            "refine: these polygons have no outlines, .* Refine the polygons as they were made",
        ),
        (
            lambda: mrgp.polygons([SQUARE]).refine(-1.0),
            ValueError,
            "refine: spacing= is a positive number",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_wrong_arguments_are_refused_in_words(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_without_shapely_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "shapely", None)
    with pytest.raises(ImportError, match=r'Polygons need shapely, .*: pip install "mrgp\[geo\]"'):
        mrgp.polygons([SQUARE])
