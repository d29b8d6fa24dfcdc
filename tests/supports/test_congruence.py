"""Regions of one shape, and the variance they share."""

import jax
import numpy as np
import pytest
import shapely

import mrgp
from groups import rest_thorough
from mrgp.data import Scaling
from mrgp.gp import Collapsed, Reading, Readings, variance
from mrgp.gp import covariance as module
from mrgp.gp.covariance import variance_by_shape
from mrgp.kernels import Binding
from mrgp.parameters import unwrap
from mrgp.supports import Geometry, Shapes, congruence, congruent

RNG = np.random.default_rng(2)


def cells(n=6, size=0.1, corner=0.0):
    """Return n x n cells of one size."""
    a, b = np.meshgrid(np.arange(n) * size, np.arange(n) * size)
    lower = corner + np.column_stack([a.ravel(), b.ravel()])
    return mrgp.boxes(lower, lower + size)


def shapes_of(support, **options):
    shapes = congruent(support, **options)
    return None if shapes is None else np.asarray(shapes.index).tolist()


def test_cells_of_a_grid_and_points_are_one_shape():
    assert shapes_of(cells()) == [0] * 36
    assert shapes_of(mrgp.points(RNG.normal(size=(9, 2)))) == [0] * 9
    assert shapes_of(mrgp.points([[1.0]])) == [0]


def test_rounding_far_from_the_origin_makes_no_new_shapes():
    assert len(set(shapes_of(cells(30, 0.1, 1e4)))) == 1


def test_regions_of_several_widths_are_numbered_by_first_appearance():
    start = np.array([0.0, 1.0, 5.0, 6.0, 9.0, 9.5])
    width = np.array([2.0, 1.0, 2.0, 1.0, 0.0, 0.0])
    shapes = congruent(mrgp.intervals(start, start + width))
    assert shapes.index.tolist() == [0, 1, 0, 1, 2, 2]
    np.testing.assert_array_equal(shapes.regions.lower[:, 0], [0.0, 1.0, 9.0])


def test_a_narrow_input_beside_a_wide_one_still_counts():
    # Months in seconds beside hundredths of a degree.
    side = np.array([0.001, 0.0012, 0.001, 0.0012])
    lower = np.zeros((4, 2))
    support = mrgp.boxes(lower, np.column_stack([np.full(4, 2.6e6), side]))
    assert shapes_of(support) == [0, 1, 0, 1]


def test_nodes_are_compared_relative_to_the_first_and_padding_is_not():
    pattern, moves = RNG.normal(size=(3, 2)), RNG.normal(size=(6, 1, 2))
    x, weights = pattern + moves, np.tile([0.2, 0.3, 0.5], (6, 1))
    assert shapes_of(mrgp.nodes(x, weights)) == [0] * 6
    other = x.copy()
    other[3:, 2] += [0.1, 0.0]
    assert shapes_of(mrgp.nodes(other, weights)) == [0, 0, 0, 1, 1, 1]
    swapped = weights.copy()
    swapped[3:] = [0.3, 0.2, 0.5]
    assert shapes_of(mrgp.nodes(x, swapped)) == [0, 0, 0, 1, 1, 1]
    padded = np.concatenate([RNG.normal(size=(6, 1, 2)), x], 1)
    nodes = mrgp.nodes(padded, np.concatenate([np.zeros((6, 1)), weights], 1))
    assert shapes_of(nodes) == [0] * 6


def test_totals_count_and_tiny_ones_too():
    start, weights = np.arange(6.0), [1e7, 1e7, 2e-3, 1e-3, 2e-3, 1e-3]
    support = mrgp.intervals(start, start + 1.0, kind="sum", weights=weights)
    assert shapes_of(support) == [0, 0, 1, 2, 1, 2]
    signs = mrgp.points(start[:4, None], kind="sum", weights=[1.0, -1.0, 1.0, -1.0])
    assert shapes_of(signs) == [0, 1, 0, 1]


def test_products_are_compared_part_by_part_without_their_tensor(monkeypatch):
    pattern = RNG.normal(size=(3, 2))
    x = np.concatenate([pattern + RNG.normal(size=(4, 1, 2)), 2 * pattern + np.zeros((4, 1, 2))])
    hours = mrgp.intervals(np.arange(8.0), np.arange(8.0) + np.tile([1.0, 2.0], 4))
    support = mrgp.product(mrgp.nodes(x), hours)

    def refuse(self, along=(), rule=None):
        raise AssertionError("the tensor of nodes was formed")

    monkeypatch.setattr(mrgp.supports.Products, "atoms", refuse)
    assert shapes_of(support) == [0, 1, 0, 1, 2, 3, 2, 3]


def test_many_rows_are_worked_through_in_parts(monkeypatch):
    monkeypatch.setattr(congruence, "NUMBERS_AT_A_TIME", 20)
    assert shapes_of(cells()) == [0] * 36
    squares = mrgp.polygons([shapely.box(i, 0, i + 1, 1 + i % 2) for i in range(6)], spacing=0.5)
    assert shapes_of(squares) == [0, 1, 0, 1, 0, 1]


def test_too_many_shapes_are_none():
    width = RNG.uniform(1, 2, 20)
    assert congruent(mrgp.intervals(np.zeros(20), width)) is None
    assert congruent(mrgp.points(np.zeros((0, 1)))) is None
    twice = mrgp.intervals(np.zeros(40), np.tile(width, 2))
    assert len(set(shapes_of(twice))) == 20
    assert congruent(twice, most=19) is None


def bound(recipe, dimension=2):
    return unwrap(recipe.bind(Binding(Geometry.unit(dimension))))


STATIONARY = {
    "RBF": mrgp.RBF(0.3, variance=1.3),
    "Matern32": mrgp.Matern32(0.3, variance=1.3),
    "sum": mrgp.Matern12(0.3, product=True) + mrgp.Periodic(1.0) + mrgp.White(0.2) + 0.5,
}
MIXED = mrgp.concat(cells(4), cells(3, 0.2))


@pytest.mark.parametrize("name", rest_thorough(STATIONARY, "sum"))
def test_variances_by_shape_are_the_variances(name):
    supports = [MIXED, mrgp.concat(cells(3), mrgp.points(RNG.normal(size=(9, 2))))]
    supports.append(mrgp.nodes(RNG.normal(size=(3, 2)) + RNG.normal(size=(8, 1, 2))))
    for support in supports:
        shapes = congruent(support)
        with jax.enable_x64(True):
            kernel = bound(STATIONARY[name])
            expected = variance(kernel, support)
            found = variance_by_shape(kernel, support, shapes)
            some = variance_by_shape(kernel, support[1:4], shapes[np.arange(1, 4)])
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        np.testing.assert_allclose(some, expected[1:4], rtol=1e-9)


def test_only_stationary_kernels_share_variances(monkeypatch):
    seen = []

    def watched(kernel, support, rule=None):
        seen.append(len(support))
        return variance(kernel, support)

    monkeypatch.setattr(module, "variance", watched)
    support = cells(3)
    shapes = congruent(support)
    with jax.enable_x64(True):
        for recipe in (mrgp.RBF(0.3), mrgp.Linear(), mrgp.RBF(0.3) * mrgp.Linear(dims=0)):
            kernel = bound(recipe)
            found = variance_by_shape(kernel, support, shapes)
            np.testing.assert_allclose(found, variance(kernel, support), rtol=1e-9)
        variance_by_shape(bound(mrgp.RBF(0.3)), support, None)
    assert seen == [1, 9, 9, 9]


@pytest.mark.parametrize("name", rest_thorough(STATIONARY, "RBF"))
def test_the_collapsed_bound_does_not_see_the_shapes(name):
    z = RNG.uniform(0, 0.6, (7, 2))
    values = RNG.normal(size=36)
    observations = mrgp.Observations(cells(), values)
    record = Scaling.of(mrgp.Dataset([observations])).record(observations)
    assert isinstance(record.shapes, Shapes)
    with jax.enable_x64(True):
        kernel = bound(STATIONARY[name])
        given = (record.support, np.ones(1), values, np.zeros(36), np.full(36, 0.3))
        bounds = [
            Collapsed((kernel,), jax.numpy.asarray(z)).log_evidence(
                Readings((Reading(*given, shapes=shapes),))
            )
            for shapes in (record.shapes, None)
        ]
    np.testing.assert_allclose(*bounds, rtol=1e-9)


def test_minibatches_take_their_shapes_along():
    observations = mrgp.Observations(MIXED, np.ones(len(MIXED)))
    record = Scaling.of(mrgp.Dataset([observations])).record(observations)
    rows = np.array([20, 0, 17])
    part = record.take(rows)
    np.testing.assert_array_equal(part.shapes.index, [1, 0, 1])
    widths = part.shapes.regions[part.shapes.index]
    np.testing.assert_allclose(
        widths.upper - widths.lower, (MIXED.upper - MIXED.lower)[rows], rtol=1e-9
    )
