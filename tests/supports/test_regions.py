"""Points, nodes and boxes: what they weigh, where they are, how they are refused."""

import itertools

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import mrgp
from mrgp.supports import Boxes, Nodes, Points

X = np.array([[0.0, 1.0], [2.0, 5.0], [4.0, -1.0]])
LOWER = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 3.0]])
UPPER = np.array([[2.0, 0.5], [1.0, 6.0], [3.0, 3.0]])
NODES = np.arange(12.0).reshape(2, 3, 2)
WEIGHTS = np.array([[1.0, 2.0, 1.0], [3.0, 0.0, 1.0]])


def test_points_weigh_one_and_are_where_they_are():
    support = mrgp.points(X, inputs=("t", "s"))
    assert (len(support), support.dimension, support.input_names) == (3, 2, ("t", "s"))
    np.testing.assert_array_equal(support.total, [1, 1, 1])
    np.testing.assert_array_equal(support.moment, X)
    np.testing.assert_array_equal(support.bounds, [X, X])


def test_points_of_a_sum_count_as_often_as_their_weight():
    support = mrgp.points(X, kind="sum", weights=[2, 0.5, -1])
    np.testing.assert_array_equal(support.total, [2, 0.5, -1])
    np.testing.assert_array_equal(support.moment, [[0, 2], [1, 2.5], [-4, 1]])


def test_nodes_of_a_mean_scale_their_weights_to_one():
    support = mrgp.nodes(NODES, WEIGHTS)
    np.testing.assert_allclose(support.weights, [[0.25, 0.5, 0.25], [0.75, 0, 0.25]])
    np.testing.assert_allclose(support.total, [1, 1])
    np.testing.assert_allclose(support.moment, [[2, 3], [7, 8]])


def test_nodes_of_a_sum_keep_their_weights():
    support = mrgp.nodes(NODES, WEIGHTS, kind="sum")
    np.testing.assert_array_equal(support.weights, WEIGHTS)
    np.testing.assert_array_equal(support.total, [4, 4])
    np.testing.assert_allclose(support.moment, [[8, 12], [28, 32]])


def test_nodes_without_weights_are_equal_or_one():
    np.testing.assert_allclose(mrgp.nodes(NODES).weights, np.full((2, 3), 1 / 3))
    np.testing.assert_array_equal(mrgp.nodes(NODES, kind="sum").weights, np.ones((2, 3)))


def test_boxes_of_a_mean_weigh_one_around_their_centre():
    support = mrgp.boxes(LOWER, UPPER)
    np.testing.assert_array_equal(support.total, [1, 1, 1])
    np.testing.assert_array_equal(support.moment, [[1, 0.25], [1, 4], [3, 3]])
    np.testing.assert_array_equal(support.bounds, [LOWER, UPPER])


def test_boxes_of_a_sum_weigh_their_measure_without_sides_of_zero_width():
    np.testing.assert_array_equal(mrgp.boxes(LOWER, UPPER, kind="sum").total, [1, 4, 1])
    weighted = mrgp.boxes(LOWER, UPPER, kind="sum", weights=[2, 0.5, 3])
    np.testing.assert_array_equal(weighted.total, [2, 2, 3])


def test_boxes_are_flat_along_inputs_where_none_has_width():
    assert mrgp.boxes(LOWER, UPPER).flat == (False, False)
    assert mrgp.boxes(LOWER[1:], UPPER[1:]).flat == (True, False)
    assert mrgp.boxes(LOWER[2:], UPPER[2:]).flat == (True, True)


def test_intervals_are_boxes_of_one_input():
    support = mrgp.intervals([0, 24], [24, 30], inputs="hour", kind="sum")
    assert isinstance(support, Boxes)
    assert support.input_names == ("hour",)
    np.testing.assert_array_equal(support.total, [24, 6])
    np.testing.assert_array_equal(support.lower, [[0], [24]])


def test_unnamed_inputs_are_numbered():
    assert mrgp.points(X).input_names == ("x1", "x2")


def test_integers_and_booleans_become_double_precision():
    assert mrgp.points(X.astype(int)).x.dtype == np.float64
    assert mrgp.intervals(np.array([False]), np.array([True])).upper.dtype == np.float64


ALL = {
    "points": mrgp.points(X, inputs=("t", "s")),
    "weighted points": mrgp.points(X, kind="sum", weights=[2.0, 0.5, 1.0]),
    "nodes": mrgp.nodes(NODES, WEIGHTS),
    "sum nodes": mrgp.nodes(NODES, WEIGHTS, kind="sum"),
    "boxes": mrgp.boxes(LOWER, UPPER, inputs=("t", "s")),
    "sum boxes": mrgp.boxes(LOWER, UPPER, kind="sum", weights=[2.0, 0.5, 3.0]),
}
each_support = pytest.mark.parametrize("name", ALL)


def apply(support, function):
    """Apply a support to a function that is at most linear in every input, region by region."""
    lower, upper, weights, _ = support.atoms()
    values = []
    for n in range(len(support)):
        total = 0.0
        for low, high, weight in zip(lower[n], upper[n], weights[n], strict=True):
            corners = itertools.product(*zip(low, high, strict=True))
            total += weight * np.mean([function(np.array(c)) for c in corners])
        values.append(total)
    return np.array(values)


@each_support
def test_total_and_moment_are_the_functional_of_one_and_of_the_coordinates(name):
    support = ALL[name]
    np.testing.assert_allclose(support.total, apply(support, lambda x: 1.0))
    for d in range(support.dimension):
        np.testing.assert_allclose(support.moment[:, d], apply(support, lambda x, d=d: x[d]))


@each_support
def test_collapse_keeps_total_and_moment_in_one_node(name):
    support = ALL[name]
    centre = support.collapse()
    assert isinstance(centre, Points)
    assert (centre.kind, centre.inputs) == (support.kind, support.inputs)
    np.testing.assert_allclose(centre.total, support.total)
    np.testing.assert_allclose(centre.moment, support.moment)


def test_collapse_of_a_box_is_its_centre_and_of_nodes_their_weighted_mean():
    np.testing.assert_allclose(ALL["boxes"].collapse().x, 0.5 * (LOWER + UPPER))
    expected = [(NODES[n] * WEIGHTS[n, :, None]).sum(0) / WEIGHTS[n].sum() for n in range(2)]
    np.testing.assert_allclose(ALL["nodes"].collapse().x, expected)


def test_a_contrast_has_no_centre():
    contrast = mrgp.nodes(NODES[:, :2], [[1.0, -1.0], [1.0, 1.0]], kind="sum")
    with pytest.raises(ValueError, match="whose weights sum to zero has no centre; drop contrasts"):
        contrast.collapse()


@each_support
def test_quadrature_keeps_total_moment_kind_and_names(name):
    support = ALL[name]
    for rule in (mrgp.Midpoint(3), mrgp.GaussLegendre(2), mrgp.Sobol(4)):
        nodes = support.quadrature(rule)
        assert isinstance(nodes, Nodes)
        assert (nodes.kind, nodes.inputs) == (support.kind, support.inputs)
        np.testing.assert_allclose(nodes.total, support.total)
        np.testing.assert_allclose(nodes.moment, support.moment)


@each_support
def test_shift_moves_the_origin(name):
    support, offset = ALL[name], np.array([1.0, -2.0])
    moved = support.shift(offset)
    for before, after in zip(support.bounds, moved.bounds, strict=True):
        np.testing.assert_allclose(after, before - offset)
    np.testing.assert_allclose(moved.total, support.total)
    np.testing.assert_allclose(moved.moment, support.moment - support.total[:, None] * offset)


@each_support
@pytest.mark.parametrize(
    ("index", "rows"),
    [
        (0, [0]),
        (np.int64(1), [1]),
        (-1, [-1]),
        (-2, [-2]),
        (slice(1, None), slice(1, None)),
        ([1, 0], [1, 0]),
        (np.array([-1, 0]), [-1, 0]),
        ("mask", "mask"),
        ([], []),
    ],
)
def test_indexing_selects_regions(name, index, rows):
    support = ALL[name]
    if rows == "mask":
        index = rows = np.arange(len(support)) % 2 == 0
    if isinstance(index, list) and not index:
        index = rows = np.array([], int)
    part = support[index]
    assert type(part) is type(support)
    assert (part.kind, part.inputs) == (support.kind, support.inputs)
    np.testing.assert_array_equal(part.total, support.total[rows])
    np.testing.assert_array_equal(part.moment, support.moment[rows])
    np.testing.assert_array_equal(part.bounds, [end[rows] for end in support.bounds])


def test_a_list_of_booleans_is_a_mask():
    np.testing.assert_array_equal(ALL["points"][[True, False, True]].x, X[[0, 2]])


def test_an_index_beyond_the_regions_is_an_error():
    for support in ALL.values():
        for index in (len(support), -len(support) - 1):
            text = f"Region {index} does not exist; there are {len(support)}"
            with pytest.raises(IndexError, match=text):
                support[index]


@each_support
def test_iteration_gives_the_regions_one_by_one_and_ends(name):
    regions = list(ALL[name])
    assert [len(region) for region in regions] == [1] * len(ALL[name])
    np.testing.assert_array_equal(np.concatenate([r.moment for r in regions]), ALL[name].moment)


def test_an_empty_list_selects_no_regions():
    assert len(ALL["points"][[]]) == 0


def test_bounds_leave_padding_nodes_out():
    padded = mrgp.nodes([[[0.0], [1.0], [99.0]]], [[1.0, 1.0, 0.0]])
    np.testing.assert_array_equal(padded.bounds, [[[0.0]], [[1.0]]])


def test_padding_nodes_may_be_nan_and_become_finite():
    x = NODES.copy()
    x[1, 1] = np.nan
    support = mrgp.nodes(x, WEIGHTS)
    assert np.isfinite(support.x).all()
    np.testing.assert_array_equal(support.moment, mrgp.nodes(NODES, WEIGHTS).moment)
    np.testing.assert_array_equal(support.bounds, mrgp.nodes(NODES, WEIGHTS).bounds)


@pytest.mark.parametrize(
    ("support", "text"),
    [
        (mrgp.points(X, inputs=("t", "s")), "Points(3 means: t 0 to 4; s -1 to 5)"),
        (mrgp.points(X[:1], kind="sum"), "Points(1 sum: x1 0 to 0; x2 1 to 1)"),
        (
            mrgp.nodes(NODES),
            "Nodes(2 means of 3 nodes: x1 0 to 10, width 4; x2 1 to 11, width 4)",
        ),
        (
            mrgp.boxes(LOWER, UPPER),
            "Boxes(3 means: x1 0 to 3, widths 0 to 2; x2 0 to 6, widths 0 to 4)",
        ),
        (mrgp.intervals([0.0], [2.5], inputs="hour"), "Boxes(1 mean: hour 0 to 2.5, width 2.5)"),
        (mrgp.points(X)[:0], "Points(no regions, 2 inputs)"),
    ],
)
def test_repr_tells_kind_number_extent_and_width(support, text):
    assert repr(support) == text


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: mrgp.points([1.0, 2.0]), ValueError, r"points: x must have shape \[n, d\]; got"),
        (lambda: mrgp.points([1.0, 2.0]), ValueError, r"For one input give x\[:, None\]\."),
        (lambda: mrgp.points(NODES), ValueError, r"x must have shape \[n, d\]; got \(2, 3, 2\)\."),
        (lambda: mrgp.points(np.zeros((3, 0))), ValueError, "points: x has no input columns"),
        (lambda: mrgp.points([["a"]]), TypeError, "points: x must be numbers; got <U1"),
        (
            lambda: mrgp.points(np.array([["2020-01-01"]], dtype="datetime64[h]")),
            TypeError,
            "Convert dates to hours or days since a start",
        ),
        (
            lambda: mrgp.points([[0.0], [np.nan], [np.inf]]),
            ValueError,
            "points: x has NaN or infinite coordinates in 2 of 3 rows, first in row 1. Drop",
        ),
        (
            lambda: mrgp.points(X, inputs=("t",)),
            ValueError,
            r"inputs= needs one name for each of the 2 columns, all different; got \('t',\)",
        ),
        (
            lambda: mrgp.points(X, inputs=("t", "t")),
            ValueError,
            "one name for each of the 2 columns, all different",
        ),
        (
            lambda: mrgp.points(X, weights=[1, 1, 1]),
            ValueError,
            'points: one weight a region cancels in a mean; use kind="sum" for totals',
        ),
        (
            lambda: mrgp.points(X, kind="sum", weights=[1, 1]),
            ValueError,
            r"points: weights must be 3 finite numbers, one a region; got shape \(2,\)",
        ),
        (
            lambda: mrgp.points(X, kind="sum", weights=[1, np.nan, 1]),
            ValueError,
            "weights must be 3 finite numbers",
        ),
        (lambda: mrgp.nodes(X), ValueError, r"nodes: x must have shape \[n, s, d\]; got \(3, 2\)"),
        (
            lambda: mrgp.nodes(np.zeros((2, 0, 1))),
            ValueError,
            r"nodes: every region needs at least one node; got shape \(2, 0, 1\)",
        ),
        (
            lambda: mrgp.nodes(NODES, WEIGHTS[:, :2]),
            ValueError,
            r"nodes: weights must have shape \[n, s\] = \(2, 3\) to fit x; got \(2, 2\)",
        ),
        (
            lambda: mrgp.nodes(NODES, WEIGHTS * np.nan),
            ValueError,
            "nodes: weights must be finite; give padding nodes the weight 0",
        ),
        (
            lambda: mrgp.nodes(NODES, WEIGHTS * [[1.0], [0.0]]),
            ValueError,
            "nodes: all weights are zero in 1 of 2 regions, first in row 1. Drop those regions",
        ),
        (
            lambda: mrgp.nodes(NODES[:, :2], [[1.0, -1.0], [1.0, 1.0]]),
            ValueError,
            'nodes: weights of a mean must not sum to zero; use kind="sum"',
        ),
        (
            lambda: mrgp.nodes([[[np.nan], [1.0]]], [[1.0, 1.0]]),
            ValueError,
            "nodes: x has NaN or infinite coordinates in 1 of 1 rows",
        ),
        (
            lambda: mrgp.boxes(LOWER, UPPER[:2]),
            ValueError,
            r"boxes: lower and upper must have one shape; got \(3, 2\) and \(2, 2\)",
        ),
        (
            lambda: mrgp.boxes(UPPER, LOWER),
            ValueError,
            r"boxes: upper is below lower in 2 of 3 rows, first in row 0 \(lower .*\). Swap them",
        ),
        (
            lambda: mrgp.intervals([0.0, 2.0], [1.0, 1.0]),
            ValueError,
            r"intervals: end is below start in 1 of 2 rows, first in row 1 .*\. Swap them",
        ),
        (
            lambda: mrgp.intervals([[0.0]], [[1.0]]),
            ValueError,
            r"intervals: start must have shape \[n\]; got \(1, 1\)",
        ),
        (
            lambda: mrgp.boxes(LOWER, UPPER * np.nan),
            ValueError,
            "boxes: upper has NaN or infinite coordinates in 3 of 3 rows, first in row 0",
        ),
        (
            lambda: mrgp.boxes(LOWER, UPPER, weights=[1, 1, 1]),
            ValueError,
            "boxes: one weight a region cancels in a mean",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_words(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.usefixtures("as_users_see_it")
def test_kind_is_mean_or_sum():
    text = 'kind= is "mean" or "sum"; got'
    with pytest.raises(ValueError, match=f"points: {text} 'total'"):
        mrgp.points(X, kind="total")
    with pytest.raises(ValueError, match=f"nodes: {text} 'total'"):
        mrgp.nodes(NODES, kind="total")
    with pytest.raises(ValueError, match=f"intervals: {text} 'total'"):
        mrgp.intervals([0.0], [1.0], kind="total")


def test_concat_of_points_is_points():
    joined = mrgp.concat(mrgp.points(X), mrgp.points(X[:1] + 1))
    assert isinstance(joined, Points)
    np.testing.assert_array_equal(joined.x, [*X, X[0] + 1])


def test_concat_of_points_and_boxes_is_boxes_of_zero_width():
    joined = mrgp.concat(mrgp.points(X[:1]), mrgp.boxes(LOWER, UPPER))
    assert isinstance(joined, Boxes)
    np.testing.assert_array_equal(joined.lower, [X[0], *LOWER])
    np.testing.assert_array_equal(joined.upper, [X[0], *UPPER])
    assert joined.flat == (False, False)


def test_concat_keeps_weights_kind_and_names():
    first = mrgp.points(X, kind="sum", weights=[2, 3, 4], inputs=("t", "s"))
    second = mrgp.boxes(LOWER, UPPER, kind="sum", inputs=("t", "s"))
    joined = mrgp.concat(first, second)
    assert (joined.kind, joined.inputs) == ("sum", ("t", "s"))
    np.testing.assert_array_equal(joined.total, [2, 3, 4, 1, 4, 1])


def test_concat_of_nodes_pads_the_shorter_with_zero_weights():
    joined = mrgp.concat(mrgp.nodes(NODES, WEIGHTS), mrgp.nodes(NODES[:, :1]), mrgp.points(X))
    assert isinstance(joined, Nodes)
    assert joined.nodes_per_region == 3
    np.testing.assert_allclose(joined.total, np.ones(7))
    np.testing.assert_allclose(joined.moment[2:4], NODES[:, 0])
    np.testing.assert_allclose(joined.moment[4:], X)
    np.testing.assert_array_equal(joined.bounds[0][4:], X)


@each_support
def test_concat_of_parts_is_the_whole(name):
    support = ALL[name]
    joined = mrgp.concat(support[:1], support[1:])
    assert type(joined) is type(support)
    np.testing.assert_array_equal(joined.total, support.total)
    np.testing.assert_array_equal(joined.moment, support.moment)


@pytest.mark.parametrize(
    ("supports", "text"),
    [
        ((), "concat needs at least one support"),
        (
            (mrgp.points(X), mrgp.points(X, kind="sum")),
            r"concat: supports must agree in kind and inputs; got mean of \('x1', 'x2'\) and sum",
        ),
        (
            (mrgp.points(X, inputs=("t", "s")), mrgp.points(X, inputs=("s", "t"))),
            r"got mean of \('t', 's'\) and mean of \('s', 't'\)",
        ),
        ((mrgp.points(X), mrgp.points(X[:, :1])), "must agree in kind and inputs"),
        (
            (mrgp.boxes(LOWER, UPPER), mrgp.nodes(NODES)),
            r"boxes and polygons mix neither .* for example made = boxes.quadrature\(mrgp.Gau",
        ),
    ],
)
def test_concat_says_what_does_not_fit(supports, text):
    with pytest.raises(ValueError, match=text):
        mrgp.concat(*supports)


coordinates = hnp.arrays(np.float64, (3, 2), elements=st.floats(-100, 100))
widths = st.one_of(st.just(0.0), st.floats(1e-3, 50))


@settings(max_examples=50, deadline=None)
@given(lower=coordinates, width=hnp.arrays(np.float64, (3, 2), elements=widths))
def test_integrals_are_means_times_volume(lower, width):
    upper = lower + width
    mean, total = mrgp.boxes(lower, upper), mrgp.boxes(lower, upper, kind="sum")
    sides = np.where(upper > lower, upper - lower, 1.0)
    np.testing.assert_allclose(total.total, sides.prod(1))
    np.testing.assert_allclose(total.moment, mean.moment * sides.prod(1)[:, None])


@settings(max_examples=50, deadline=None)
@given(
    x=hnp.arrays(np.float64, (2, 4, 2), elements=st.floats(-100, 100)),
    weights=hnp.arrays(np.float64, (2, 4), elements=st.floats(0.01, 10)),
    scale=st.floats(0.01, 100),
)
def test_scaling_all_weights_does_not_change_a_mean(x, weights, scale):
    a, b = mrgp.nodes(x, weights), mrgp.nodes(x, scale * weights)
    np.testing.assert_allclose(a.weights, b.weights, rtol=1e-12)
    assert (a.bounds[0] <= a.moment + 1e-9).all()
    assert (a.moment <= a.bounds[1] + 1e-9).all()
