"""Population weights: a known density inside the regions."""

import numpy as np
import pytest
import shapely
import xarray as xr

import mrgp
from mrgp.supports import Boxes, Points, Polygons
from mrgp.supports.covariates import FIELD_RULE

NAMES = ("lon", "lat", "hour")
LON, LAT = np.linspace(0.0, 4.0, 9), np.linspace(0.0, 3.0, 7)
X = np.array([[0.3, 0.2, 1.0], [2.1, 1.7, 5.0], [3.9, 2.9, 7.0]])
LOWER = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 5.0]])
SQUARES = [shapely.box(0, 0, 1, 1), shapely.box(1, 1, 3, 2)]


ONE = mrgp.points([[1.0, 1.0]], inputs=("lon", "lat"))


def density(x):
    """Return a density that multilinear interpolation finds exactly."""
    return 5.0 + 2.0 * x[..., 0] - x[..., 1] + 0.5 * x[..., 0] * x[..., 1]


def grid(values=None):
    """Return the density on a grid of latitude and longitude."""
    values = density(np.stack(np.meshgrid(LON, LAT), -1)) if values is None else values
    return xr.DataArray(values, {"lat": LAT, "lon": LON}, ("lat", "lon"), "people")


@pytest.mark.parametrize("kind", ["mean", "sum"])
def test_weights_are_those_made_by_hand(kind):
    cells = mrgp.boxes(LOWER[:, :2], LOWER[:, :2] + 1.0, inputs=("lon", "lat"), kind=kind)
    made = cells.weighted(grid())
    nodes = cells.quadrature(FIELD_RULE)
    weights = nodes.weights * density(nodes.x)
    expected = mrgp.nodes(nodes.x, weights, inputs=("lon", "lat"), kind=kind)
    np.testing.assert_allclose(made.weights, expected.weights)
    np.testing.assert_array_equal(made.x, expected.x)
    np.testing.assert_allclose(made.total, 1.0 if kind == "mean" else weights.sum(1))
    assert made.labels == cells.labels


def test_points_and_flat_boxes_stay_what_they_are_under_weights():
    mean, total = (mrgp.points(X, inputs=NAMES, kind=kind) for kind in ("mean", "sum"))
    np.testing.assert_allclose(total.weighted(grid()).total, density(X))
    assert isinstance(mean.weighted(grid()), Points)
    np.testing.assert_array_equal(mean.weighted(grid()).total, np.ones(3))
    windows = mrgp.boxes(X, X + [0.0, 0.0, 2.0], inputs=NAMES, kind="sum")
    made = windows.weighted(density, inputs=("lon", "lat"))
    assert isinstance(made, Boxes)
    np.testing.assert_allclose(made.total, 2.0 * density(X))


def test_weights_along_some_inputs_leave_the_others_whole():
    cells = mrgp.boxes(LOWER, LOWER + [1.0, 1.0, 2.0], inputs=NAMES, kind="sum")
    made = cells.weighted(lambda x: x[:, 0] + x[:, 1], inputs=("lon", "lat"))
    assert made.columns == ((0, 1), (2,))
    assert isinstance(made.parts[1], Boxes)
    np.testing.assert_allclose(made.total, [2.0, 2.0 * 3.0])


def test_a_weighted_mean_over_space_stays_a_total_over_time():
    polygons = mrgp.polygons(SQUARES, inputs=("lon", "lat"))
    days = mrgp.intervals([0.0, 0.0], [2.0, 3.0], inputs="hour", kind="sum")
    made = mrgp.product(polygons, days).weighted(lambda x: 5.0 + x[:, 0], inputs=("lon", "lat"))
    np.testing.assert_allclose(made.total, [2.0, 3.0])
    np.testing.assert_allclose(
        made.moment[:, :2], polygons.weighted(lambda x: 5.0 + x[:, 0]).moment * [[2.0], [3.0]]
    )


def test_polygons_weighted_later_are_polygons_weighted_at_once():
    for kind in ("mean", "sum"):
        plain = mrgp.polygons(SQUARES, inputs=("lon", "lat"), kind=kind)
        later = plain.weighted(grid())
        once = mrgp.polygons(SQUARES, inputs=("lon", "lat"), kind=kind, weights=grid())
        assert isinstance(later, Polygons)
        np.testing.assert_array_equal(later.weights, once.weights)
        np.testing.assert_allclose(later.refine().moment, once.refine().moment)
        by_hand = plain.weights * density(plain.x)
        by_hand = by_hand / by_hand.sum(1, keepdims=True) if kind == "mean" else by_hand
        np.testing.assert_allclose(later.weights, by_hand)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: ONE.weighted(grid(-np.ones((7, 9)))),
            "The field 'weight' is negative in region 0; weights must not be. Look for codes",
        ),
        (
            lambda: ONE.weighted(grid(np.zeros((7, 9)))),
            "The field 'weight' is zero all over region 0, which .* Drop the region",
        ),
        (
            lambda: mrgp.points([[9.0, 1.0]], inputs=("lon", "lat")).weighted(grid()),
            "The field 'weight' is missing .* first in region 0",
        ),
    ],
)
def test_densities_that_do_not_fit_are_refused_in_words(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_nodes_may_be_lists_of_different_length():
    ragged = [[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], [[6.0, 7.0]]]
    padded = np.array([[[0, 1], [2, 3], [4, 5]], [[6, 7], [6, 7], [6, 7]]], float)
    found = mrgp.nodes(ragged, [[1.0, 2.0, 1.0], [3.0]])
    wanted = mrgp.nodes(padded, [[1.0, 2.0, 1.0], [3.0, 0.0, 0.0]])
    np.testing.assert_array_equal(found.x, wanted.x)
    np.testing.assert_array_equal(found.weights, wanted.weights)
    np.testing.assert_array_equal(mrgp.nodes(ragged).weights[0], np.full(3, 1 / 3))
    total = mrgp.nodes(list(map(np.array, ragged)), kind="sum")
    np.testing.assert_array_equal(total.weights, [[1, 1, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    ("x", "weights", "text"),
    [
        ([[[0.0], [1.0]], []], None, r"x\[1\]"),
        ([[[0.0], [1.0]], [[2.0]]], [[1.0], [1.0]], "as x has nodes, 2, 1 by region; got 1, 1"),
        ([[[0.0], [1.0]], [2.0]], None, r"x\[1\] must have shape \[n, d\]"),
    ],
)
def test_lists_of_nodes_that_do_not_fit_are_named(x, weights, text):
    with pytest.raises(ValueError, match=text):
        mrgp.nodes(x, weights)
