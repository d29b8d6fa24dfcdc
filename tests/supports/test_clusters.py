"""Clusters of overlapping supports: against all pairs, and what must not change them."""

import dataclasses
import functools

import hypothesis.strategies as st
import numpy as np
import pytest
import shapely
from hypothesis import given, settings

import mrgp
from groups import rest_thorough
from mrgp.supports import Axis
from mrgp.supports import components as components_module
from mrgp.supports.components import components
from reference import clusters as reference

# Strategies give functions without arguments, which make a support in the test itself.
side = st.integers(0, 6).map(float)


def coordinates(dimension):
    return st.lists(side, min_size=dimension, max_size=dimension)


def rows(element, most=8):
    return st.lists(element, min_size=1, max_size=most)


@st.composite
def boxlike(draw, dimension):
    """Draw points, boxes, flat boxes or nodes on a small lattice, so that much touches."""
    kind = draw(st.sampled_from(["points", "boxes", "nodes"]))
    if kind == "points":
        return functools.partial(mrgp.points, draw(rows(coordinates(dimension))))
    if kind == "boxes":
        corners = np.array(draw(rows(st.tuples(coordinates(dimension), coordinates(dimension)))))
        return functools.partial(mrgp.boxes, corners.min(1), corners.max(1))
    x = np.array(draw(rows(st.lists(coordinates(dimension), min_size=3, max_size=3), 4)))
    used = draw(st.lists(st.booleans(), min_size=2 * len(x), max_size=2 * len(x)))
    weights = np.column_stack([np.ones(len(x)), np.reshape(used, (len(x), 2))])
    return functools.partial(mrgp.nodes, x, weights)


@st.composite
def polygonal(draw):
    """Draw triangles, rectangles, rings and pairs of squares."""
    shapes = []
    for _ in range(draw(st.integers(1, 5))):
        a, b, c = (np.array(draw(coordinates(2))) for _ in range(3))
        kind = draw(st.sampled_from(["triangle", "rectangle", "ring", "pair"]))
        square = shapely.box(*a, *(a + 1.0))
        shape = {
            "triangle": shapely.Polygon([a, b, c]),
            "rectangle": shapely.box(*np.minimum(a, b), *np.maximum(a, b)),
            "ring": shapely.box(*(a - 1.0), *(a + 2.0)).difference(square),
            "pair": square.union(shapely.box(*b, *(b + 1.0))),
        }[kind]
        shapes.append(shape if shape.area > 0 else square)
    return functools.partial(mrgp.polygons, shapes, spacing=3.0)


def product_of(plane, line):
    plane, line = plane(), line()
    n = min(len(plane), len(line))
    return mrgp.product(plane[:n], line[:n])


planar = st.one_of(polygonal(), boxlike(2))
spatial = st.one_of(
    st.builds(functools.partial, st.just(product_of), planar, boxlike(1)), boxlike(3)
)
layouts = st.one_of(*(rows(kind, 3) for kind in (boxlike(1), boxlike(2), planar, spatial)))


def made(layout):
    return [make() for make in layout]


def labels_of(supports, **options):
    return [part.tolist() for part in mrgp.overlap_clusters(supports, **options).labels]


@settings(max_examples=100, deadline=None)
@given(layout=layouts)
def test_clusters_are_those_of_all_pairs(layout):
    supports = made(layout)
    assert labels_of(supports) == reference.overlap_clusters(supports)


@pytest.mark.parametrize("few", rest_thorough([1, 2, 4], 1))
@settings(max_examples=60, deadline=None)
@given(
    dimension=st.integers(1, 4),
    count=st.integers(1, 60),
    reach=st.integers(1, 12),
    seed=st.integers(0, 10**6),
)
def test_cutting_space_finds_the_components_of_all_pairs(few, dimension, count, reach, seed):
    rng = np.random.default_rng(seed)
    lower = rng.integers(0, 12, (count, dimension))
    upper = lower + rng.integers(1, reach + 1, (count, dimension))
    overlap = np.all((lower[:, None] < upper) & (lower < upper[:, None]), -1)
    for _ in range(count):
        overlap = overlap @ overlap
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(components_module, "_FEW", few)
        patch.setattr(components_module, "_CROWD", 3)
        patch.setattr(components_module, "_GAP_ROUNDS", seed % 2)
        found = components(lower, upper)
    np.testing.assert_array_equal(found[:, None] == found, overlap)


@pytest.mark.parametrize(
    ("supports", "labels"),
    [
        ([mrgp.boxes([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [2.0, 1.0], [2.0, 2.0]])],
         [[0, 1, 2]]),
        ([mrgp.intervals([0.0, 1.0], [1.0, 2.0]), mrgp.points([[0.0], [1.0], [2.0]])],
         [[0, 1], [0, 1, 2]]),
        ([mrgp.points([[1.0], [2.0], [1.0]])], [[0, 1, 0]]),
        ([mrgp.boxes([[0.0, 5.0], [1.0, 5.0], [1.0, 6.0]], [[2.0, 5.0], [3.0, 5.0], [3.0, 6.0]])],
         [[0, 0, 1]]),
        ([mrgp.intervals([0.0], [1.0]), mrgp.intervals([0.5], [2.5]), mrgp.intervals([2.0], [3.0])],
         [[0], [0], [0]]),
        ([mrgp.nodes([[[0.0], [9.0]]]), mrgp.points([[9.0], [4.0]])], [[0], [0, 1]]),
        ([mrgp.nodes([[[0.0], [9.0]]], [[1.0, 0.0]]), mrgp.points([[9.0]])], [[0], [1]]),
        ([mrgp.points([[0.0]], kind="sum", weights=[0.0]), mrgp.intervals([-1.0], [1.0])],
         [[0], [0]]),
    ],
    ids=["edges", "half-open", "points", "flat", "through another", "nodes", "padding", "zero"],
)  # fmt: skip
def test_what_overlaps(supports, labels):
    assert labels_of(supports) == labels


def test_polygons_overlap_in_area_and_hold_inner_points():
    left, right = shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1)
    ring = shapely.box(-5, -5, 5, 5).difference(shapely.box(-4, -4, 4, 4))
    places = mrgp.points([[0.5, 0.5], [1.0, 0.5], [-4.5, 0.0]])
    shapes = mrgp.polygons([left, right, ring], spacing=1.0)
    assert labels_of([shapes, places]) == [[0, 1, 2], [0, 3, 2]]
    crossing = mrgp.boxes([[0.5, -3.0], [0.0, 0.5]], [[0.5, 3.0], [2.0, 0.5]])
    assert labels_of([shapes, crossing[:1]]) == [[0, 1, 2], [0]]
    assert labels_of([shapes, crossing]) == [[0, 0, 1], [0, 0]]


def test_a_rectangle_clusters_as_a_box_and_as_a_polygon():
    rng = np.random.default_rng(0)
    lower = rng.uniform(0.0, 10.0, (60, 2))
    upper = lower + rng.uniform(0.1, 1.5, (60, 2))
    shapes = shapely.box(*lower.T, *upper.T)
    places = mrgp.points(rng.uniform(0.0, 10.0, (30, 2)))
    as_boxes = labels_of([mrgp.boxes(lower, upper), places])
    assert labels_of([mrgp.polygons(shapes), places]) == as_boxes
    mixed = [mrgp.polygons(shapes[:30]), mrgp.boxes(lower[30:], upper[30:]), places]
    found = labels_of(mixed)
    assert [found[0] + found[1], found[2]] == as_boxes


def test_products_of_many_times_overlap_in_place_and_time():
    cells = mrgp.polygons([shapely.box(i, 0, i + 1, 1) for i in range(3)], spacing=0.5)
    place, hour = np.divmod(np.arange(30), 10)
    hourly = mrgp.product(cells[place], mrgp.intervals(hour * 1.0, hour + 1.0))
    daily = mrgp.product(
        mrgp.polygons([shapely.Polygon([(0, 0), (1.5, 0), (0, 1)])], spacing=0.5),
        mrgp.intervals([0.0], [4.0]),
    )
    labels = labels_of([daily, hourly])
    assert labels[0] == [0]
    together = (place < 2) & (hour < 4)
    assert [label == 0 for label in labels[1]] == together.tolist()
    assert len(set(labels[1])) == 1 + np.sum(~together)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.with_covariates(lambda x: np.sin(9.0 * x).sum(1), "wave"),
        lambda s: s.with_covariates(lambda x: x[:, 0], "copy", inputs="x1"),
        lambda s: s.with_covariates(lambda x: x[:, 0], "copy", inputs="x1").with_covariates(
            lambda x: x.sum(1), "all"
        ),
        lambda s: s.weighted(lambda x: 1.0 + x[:, 0], inputs="x1"),
        lambda s: s.weighted(lambda x: 1.0 + x.sum(1) ** 2).with_covariates(
            lambda x: x[:, [0, -1]] ** 2, ("a", "b")
        ),
    ],
    ids=["covariate", "along one", "two", "weight", "both"],
)
@settings(max_examples=40, deadline=None)
@given(layout=layouts, largest=st.sampled_from([None, 2]))
def test_covariates_and_weights_do_not_matter(change, layout, largest):
    supports = made(layout)
    expected = labels_of(supports, largest=largest)
    changed = [change(s) for s in supports]
    assert labels_of(changed, largest=largest) == expected
    rows = [np.arange(len(s))[::-1] for s in supports]
    turned = labels_of([s[r] for s, r in zip(changed, rows, strict=True)])
    assert turned == labels_of([s[r] for s, r in zip(supports, rows, strict=True)])


def test_joined_regions_with_covariates_overlap_as_regions():
    cells = mrgp.boxes([[0.0, 0.0], [1.0, 0.0]], [[1.0, 1.0], [2.0, 1.0]])
    place = mrgp.points([[0.55, 0.55]])
    parts = (cells[:1], cells[1:], place)
    norm = functools.partial(np.linalg.norm, axis=1)
    first, second, inside = (p.with_covariates(norm, "c") for p in parts)
    assert labels_of([mrgp.concat(first, second), inside]) == [[0, 1], [0]]


def test_a_dataset_is_a_list_of_its_supports():
    place = mrgp.Observations(mrgp.points([[0.5]]), [1.0], name="sensor")
    cells = mrgp.Observations(mrgp.intervals([0.0, 1.0], [1.0, 2.0]), [1.0, 2.0], name="cells")
    for given_ in (mrgp.Dataset([place, cells]), [place, cells.support]):
        assert labels_of(given_) == [[0], [0, 1]]


def test_the_same_instants_in_other_units_are_not_compared():
    instants = mrgp.points([[0.0], [24.0]], inputs="time")
    hours, days = (Axis("time", 0.0, s, u) for s, u in ((3600.0, "h"), (86400.0, "D")))
    hourly = dataclasses.replace(instants, axes=(hours,))
    daily = dataclasses.replace(mrgp.points([[0.0], [1.0]], inputs="time"), axes=(days,))
    assert mrgp.overlap_clusters([hourly, hourly]).count == 2
    with pytest.raises(ValueError, match="overlap_clusters: supports must agree in what their"):
        mrgp.overlap_clusters([hourly, daily])
    both = [mrgp.Observations(s, [1.0, 2.0], name=n) for s, n in ((hourly, "h"), (daily, "D"))]
    assert labels_of(mrgp.Dataset(both)) == [[0, 1], [0, 1]]


def test_the_cells_of_a_grid_do_not_overlap_by_rounding():
    centre = 0.1 + 0.3 * np.arange(1000)
    cells = mrgp.intervals(centre - 0.15, centre + 0.15)
    assert np.any(cells.upper[:-1] > cells.lower[1:])
    assert mrgp.overlap_clusters([cells]).count == 1000
    slivers = [shapely.box(0, 0, 1 + 1e-9, 1), shapely.box(1, 0, 2, 1)]
    assert mrgp.overlap_clusters([mrgp.polygons(slivers, spacing=1.0)]).count == 2


@settings(max_examples=60, deadline=None)
@given(layout=layouts, seed=st.integers(0, 100))
def test_order_of_rows_and_sources_does_not_matter(layout, seed):
    supports = made(layout)
    rng = np.random.default_rng(seed)
    order = [rng.permutation(len(s)) for s in supports]
    sources = rng.permutation(len(supports))
    plain = np.concatenate(
        [label[i] for label, i in zip(mrgp.overlap_clusters(supports).labels, order, strict=True)]
    )
    shuffled = [supports[a][order[a]] for a in sources]
    found = dict(zip(sources, mrgp.overlap_clusters(shuffled).labels, strict=True))
    mixed = np.concatenate([found[a] for a in range(len(supports))])
    np.testing.assert_array_equal(plain[:, None] == plain, mixed[:, None] == mixed)


@settings(max_examples=60, deadline=None)
@given(
    layout=rows(boxlike(2), 3),
    offset=st.integers(-1000, 1000),
    power=st.integers(-8, 8),
)
def test_shift_and_scale_do_not_matter(layout, offset, power):
    supports = made(layout)
    scale = np.full(2, 2.0**power)
    moved = [s.affine(scale, scale * offset) for s in supports]
    assert labels_of(moved) == labels_of(supports)


def test_large_clusters_are_halved_where_their_centres_spread_most():
    hours = np.arange(8.0)
    sensors = mrgp.points(np.column_stack([hours, 1e-3 * (hours % 2)]))
    box = mrgp.boxes([[0.0, 0.0]], [[9.0, 1.0]])
    assert mrgp.overlap_clusters([sensors, box]).count == 1
    found = mrgp.overlap_clusters([sensors, box], largest=5)
    assert [part.tolist() for part in found.labels] == [[0, 0, 0, 0, 1, 1, 1, 1], [1]]
    assert (found.count, found.sizes.tolist(), found.split) == (2, [4, 5], 1)


@settings(max_examples=60, deadline=None)
@given(layout=layouts, largest=st.integers(1, 5))
def test_split_clusters_are_parts_of_clusters_and_no_larger_than_allowed(layout, largest):
    supports = made(layout)
    whole = np.concatenate(mrgp.overlap_clusters(supports).labels)
    found = mrgp.overlap_clusters(supports, largest=largest)
    labels = np.concatenate(found.labels)
    assert found.sizes.max() <= largest
    np.testing.assert_array_equal(found.sizes, np.bincount(labels))
    np.testing.assert_array_equal(found.labels[0][:1], [0])
    sizes = np.bincount(whole)
    assert found.split == np.sum(sizes > largest)
    for label in range(found.count):
        assert len(set(whole[labels == label])) == 1
    for cluster in np.flatnonzero(sizes <= largest):
        assert len(set(labels[whole == cluster])) == 1


def test_repr_tells_number_sources_and_sizes():
    cells, places = mrgp.intervals([0.0, 1.0], [1.0, 2.0]), mrgp.points([[0.5]])
    text = "Clusters(2 of 3 observations in 2 sources, sizes 1 to 2)"
    assert repr(mrgp.overlap_clusters([cells, places])) == text
    assert (
        repr(mrgp.overlap_clusters([cells])) == "Clusters(2 of 2 observations in 1 source, size 1)"
    )
    halved = mrgp.overlap_clusters([mrgp.points(np.zeros((4, 1)))], largest=2)
    assert repr(halved) == "Clusters(2 of 4 observations in 1 source, size 2, 1 split)"
    assert repr(mrgp.overlap_clusters([cells[:0]])) == "Clusters(0 of 0 observations in 1 source)"


SQUARE = mrgp.boxes([[0.0, 0.0]], [[1.0, 1.0]])
POLYGON = mrgp.polygons([shapely.box(0, 0, 1, 1)], spacing=1.0)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("supports", "options", "error", "text"),
    [
        ([], {}, ValueError, "overlap_clusters needs at least one support"),
        ([3], {}, TypeError, "takes a list of supports; number 0 is of type int"),
        (
            [mrgp.points([[0.0]]), mrgp.points([[0.0, 1.0]])],
            {},
            ValueError,
            r"same inputs; number 0 has \('x1',\) and number 1 \('x1', 'x2'\)",
        ),
        ([POLYGON], {"largest": 0}, ValueError, "largest= is a number of observations; got 0"),
        ([POLYGON], {"largest": 2.5}, ValueError, "largest= is a number of observations; got 2.5"),
        (
            [POLYGON, POLYGON.shift([1.0, 1.0])],
            {},
            ValueError,
            "number 1 has polygons without outlines, .* Give the polygons as they were made",
        ),
        *(
            (
                [SQUARE, made],
                {},
                ValueError,
                "number 1 has nodes that stand for regions, which they no longer know, .* Give the"
                " regions before that",
            )
            for made in (
                SQUARE.quadrature(),
                SQUARE.weighted(lambda x: x[:, 0]).affine(np.full(2, 2.0), np.zeros(2)),
            )
        ),
        (
            [
                SQUARE.with_covariates(lambda x: x[:, 0], "c"),
                mrgp.points([[0.0, 0.0, 0.0]], inputs=("x1", "x2", "c")),
            ],
            {},
            ValueError,
            "need the same covariates; number 0 has 1 and number 1 0. Add them to all with",
        ),
        (
            [mrgp.product(POLYGON, POLYGON)],
            {},
            ValueError,
            "support number 0 is a product of several polygons; only one factor",
        ),
        (
            [
                mrgp.product(POLYGON, mrgp.points([[0.0]])),
                mrgp.product(mrgp.points([[0.0]]), POLYGON, inputs=("x1", "x2", "x3")),
            ],
            {},
            ValueError,
            r"all polygons need the same inputs; got some over \('x1', 'x2'\) and over \('x2', 'x3",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_words(supports, options, error, text):
    with pytest.raises(error, match=text):
        mrgp.overlap_clusters(supports, **options)
