"""Products of supports: boxes where they can be, and brute force over tensor nodes elsewhere."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

import mrgp
from mrgp.data import harmonise
from mrgp.gp import variance
from mrgp.io.checkpoint import REGISTRY
from mrgp.kernels import Binding
from mrgp.parameters import unwrap
from mrgp.supports import Axis, Boxes, Geometry, Nodes, Points, Polygons, Products
from reference import gaussian
from reference.products import (
    CELLS,
    COUNTS,
    DEPTHS,
    HOURS,
    INSTANTS,
    LUMPS,
    PLACES,
    PRODUCTS,
    TRIANGLES,
    tensor,
)

RNG = np.random.default_rng(3)
each_product = pytest.mark.parametrize("name", PRODUCTS)


def double():
    return jax.enable_x64(True)


def bound(recipe, dimension=3):
    return unwrap(recipe.bind(Binding(Geometry.unit(dimension))))


def assert_same(found, expected):
    """Compare two supports of one class number by number."""
    assert type(found) is type(expected)
    labels = ("inputs", "kind", "axes", "covariates")
    assert [getattr(found, k) for k in labels] == [getattr(expected, k) for k in labels]
    np.testing.assert_allclose(found.bounds, expected.bounds)
    np.testing.assert_allclose(found.total, expected.total)
    assert found.atoms().flat == expected.atoms().flat


@pytest.mark.parametrize("kinds", list(itertools.product(("mean", "sum"), repeat=2)))
def test_products_of_points_and_boxes_are_the_boxes_they_describe(kinds):
    places, times = RNG.uniform(0, 2, (3, 2)), np.array([0.0, 1.0, 2.0])
    kind = "sum" if "sum" in kinds else "mean"
    points = mrgp.points(places, kind=kinds[0])
    both = np.column_stack([places, times])
    found = mrgp.product(points, mrgp.points(times[:, None], kind=kinds[1]))
    assert_same(found, mrgp.points(both, kind=kind))
    found = mrgp.product(points, mrgp.intervals(times, times + 0.5, kind=kinds[1]))
    expected = mrgp.boxes(both, both + [0.0, 0.0, 0.5])
    total = np.full(3, 0.5 if kinds[1] == "sum" else 1.0)
    assert_same(found, dataclasses.replace(expected, kind=kind, weights=total))
    cells = mrgp.boxes(places, places + [1.0, 0.3], kind=kinds[0])
    found = mrgp.product(cells, mrgp.intervals(times, times + 0.5, kind=kinds[1]))
    expected = mrgp.boxes(both, both + [1.0, 0.3, 0.5])
    total = np.full(3, (0.3 if kinds[0] == "sum" else 1.0) * (0.5 if kinds[1] == "sum" else 1.0))
    assert_same(found, dataclasses.replace(expected, kind=kind, weights=total))


def test_a_fit_cannot_tell_a_product_of_boxes_from_the_boxes():
    lower = RNG.uniform(0, 3, (12, 2))
    boxes = mrgp.boxes(lower, lower + [0.5, 1.0])
    made = mrgp.product(
        mrgp.intervals(lower[:, 0], boxes.upper[:, 0]),
        mrgp.intervals(lower[:, 1], boxes.upper[:, 1]),
    )
    values = np.sin(lower.sum(1))
    quick = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
    fits = [
        mrgp.fit(mrgp.MRGP(), mrgp.Dataset([mrgp.Observations(s, values)]), optimiser=quick)
        for s in (boxes, made)
    ]
    means = [mrgp.predict(fit, s).mean for fit, s in zip(fits, (made, boxes), strict=True)]
    np.testing.assert_allclose(*means, rtol=1e-12)


@each_product
def test_total_moment_and_bounds_are_those_of_the_tensor_nodes(name):
    parts = PRODUCTS[name]
    support, rows = mrgp.product(*parts), tensor(*parts)
    assert isinstance(support, Products)
    assert (len(support), support.dimension) == (3, 3)
    np.testing.assert_allclose(support.total, gaussian.totals(rows), atol=1e-14)
    np.testing.assert_allclose(support.moment, gaussian.moments(rows), atol=1e-14)
    sides = [np.concatenate([part.bounds[side] for part in parts], 1) for side in (0, 1)]
    np.testing.assert_array_equal(support.bounds, sides)


@each_product
def test_atoms_and_quadrature_are_the_products_of_the_parts(name):
    parts = PRODUCTS[name]
    support, rule = mrgp.product(*parts), mrgp.GaussLegendre(3)
    nodes = support.quadrature(rule)
    assert isinstance(nodes, Nodes)
    assert nodes.labels == support.labels
    expected = tensor(*(part.quadrature(rule) for part in parts))
    for x, weights, (places, shares) in zip(nodes.x, nodes.weights, expected, strict=True):
        np.testing.assert_allclose(x, places)
        np.testing.assert_allclose(weights, shares)
    for along in ((), (0,), (2,), (0, 2), (0, 1, 2)):
        atoms = support.atoms(along, rule)
        for row, (places, shares) in enumerate(tensor(*parts)):
            parts_of_row = [
                gaussian.box_nodes(*box)
                for box in zip(atoms.lower[row], atoms.upper[row], atoms.weights[row], strict=True)
            ]
            for power in (1, 2):
                values = sum(w @ x**power for x, w in parts_of_row)
                np.testing.assert_allclose(values, shares @ places**power, rtol=1e-10, atol=1e-13)
        width = (atoms.upper - atoms.lower).max((0, 1))
        assert atoms.flat == tuple((width == 0).tolist())
    assert support.pointlike == support.atoms().flat


@each_product
def test_collapse_shift_affine_and_rows(name):
    support = mrgp.product(*PRODUCTS[name])
    if (np.asarray(support.total) != 0).all():
        centre = support.collapse()
        assert isinstance(centre, Points)
        np.testing.assert_allclose(centre.total, support.total)
        np.testing.assert_allclose(centre.moment, support.moment)
    scale, offset = np.array([2.0, 0.5, 3.0]), np.array([1.0, -1.0, 0.2])
    moved = support.affine(scale, offset)
    np.testing.assert_allclose(moved.total, support.total)
    lower, upper = support.bounds
    np.testing.assert_allclose(moved.bounds, [lower * scale + offset, upper * scale + offset])
    np.testing.assert_allclose(
        moved.moment, support.moment * scale + support.total[:, None] * offset
    )
    with double():
        traced = support.affine(jax.numpy.asarray(scale), jax.numpy.asarray(offset))
        np.testing.assert_allclose(traced.moment, moved.moment)
    np.testing.assert_allclose(support.shift(offset).bounds[0], lower - offset)
    for index, rows in ((1, [1]), (-1, [2]), ([2, 0], [2, 0]), (slice(1, None), [1, 2])):
        part = support[index]
        np.testing.assert_array_equal(part.moment, support.moment[rows])
        assert part.columns == support.columns
    assert len(support[[]]) == 0


def apply(support, function):
    """Apply a support to a function of [k, d] by its own nodes."""
    nodes = support.quadrature(mrgp.GaussLegendre(5)).atoms()
    values = np.asarray(function(nodes.lower.reshape(-1, support.dimension)))
    return (nodes.weights * values.reshape(nodes.weights.shape)).sum(1)


@each_product
def test_factors_multiply_to_the_functional(name):
    support = mrgp.product(*PRODUCTS[name])
    powers = np.array([1, 2, 3])
    whole = apply(support, lambda x: (x**powers).prod(1))
    assert sorted(d for block in support.blocks for d in block) == [0, 1, 2]
    partitions = [support.blocks, ((0, 1, 2),)]
    if len(support.blocks) == 3:
        partitions += [((0, 2), (1,)), ((1,), (0, 2))]
    for partition in partitions:
        factors = support.factors(partition)
        values = [
            apply(factor, lambda x, own=list(columns): (x ** powers[own]).prod(1))
            for factor, columns in zip(factors, partition, strict=True)
        ]
        np.testing.assert_allclose(np.prod(values, 0), whole, rtol=1e-12)
        assert ("sum" in {f.kind for f in factors}) == (support.kind == "sum")


def test_blocks_are_as_fine_as_the_parts_allow():
    assert mrgp.product(LUMPS, HOURS).blocks == ((0, 1), (2,))
    assert mrgp.product(HOURS, DEPTHS, INSTANTS).blocks == ((0,), (1,), (2,))
    assert mrgp.product(CELLS, DEPTHS).blocks == ((0,), (1,), (2,))
    with pytest.raises(ValueError, match=r"Nodes is no product over the groups \(\(0,\), \(1,\)\)"):
        mrgp.product(LUMPS, HOURS).factors(((0,), (1,), (2,)))


def test_a_product_of_products_is_one_product():
    inner = mrgp.product(DEPTHS, HOURS, inputs=("depth", "hour"))
    nested = mrgp.product(inner, INSTANTS, inputs=("depth", "hour", "x3"))
    flat = mrgp.product(DEPTHS, HOURS, INSTANTS, inputs=("depth", "hour", "x3"))
    assert nested.columns == flat.columns == ((0,), (1,), (2,))
    assert nested.labels == flat.labels
    np.testing.assert_allclose(nested.moment, flat.moment)
    with double():
        kernel = bound(mrgp.RBF(0.9, variance=1.0))
        np.testing.assert_allclose(variance(kernel, nested), variance(kernel, flat), rtol=1e-12)


def test_rules_with_a_number_for_each_input_reach_the_right_part():
    rule = mrgp.GaussLegendre((2, 3, 4))
    parts = CELLS.quadrature(mrgp.GaussLegendre((2, 3))), HOURS.quadrature(mrgp.GaussLegendre(4))
    rows = tensor(mrgp.boxes([[0.0]], [[1.0]])[[0, 0, 0]].quadrature(mrgp.GaussLegendre(2)), LUMPS)
    made = mrgp.product(mrgp.intervals([0.0], [1.0]), LUMPS)
    np.testing.assert_allclose(made.quadrature(rule).x, [x for x, _ in rows])
    assert mrgp.product(*parts).nodes_per_region == 24
    with pytest.raises(ValueError, match="one for each of the inputs, of which there are at least"):
        made.quadrature(mrgp.GaussLegendre((2, 3)))


def test_one_region_is_repeated_for_all_the_others():
    day, month = mrgp.intervals([0.0], [24.0]), TRIANGLES
    repeated = mrgp.product(month, day)
    expected = mrgp.product(month, mrgp.intervals([0.0] * 3, [24.0] * 3))
    assert isinstance(repeated.parts[0], Polygons)
    np.testing.assert_array_equal(repeated.moment, expected.moment)
    turned = mrgp.product(TRIANGLES[0], HOURS)
    assert turned.parts[0].outlines.shapes.tolist() == [TRIANGLES.outlines.shapes[0]] * 3
    np.testing.assert_array_equal(turned.bounds[0][:, 2], HOURS.lower[:, 0])
    assert len(mrgp.product(LUMPS[0], DEPTHS[0])) == 1
    assert len(mrgp.product(LUMPS[:0], DEPTHS[0])) == 0


def test_a_mean_times_a_sum_is_a_sum():
    total = mrgp.intervals([0.0, 1.0, 2.0], [2.0, 2.0, 2.0], kind="sum")
    made = mrgp.product(LUMPS, total)
    assert made.kind == "sum"
    np.testing.assert_allclose(made.total, [2.0, 1.0, 1.0])
    assert mrgp.product(LUMPS, HOURS).kind == "mean"
    assert mrgp.product(COUNTS, HOURS).kind == "sum"


def test_names_and_axes_are_those_of_the_parts():
    hours = Axis("time", 0.0, 3600.0, "h")
    timed = dataclasses.replace(HOURS, inputs=("time",), axes=(hours,))
    made = mrgp.product(LUMPS, timed)
    assert made.input_names == ("x1", "x2", "time")
    assert made.axes == (None, None, hours)
    assert mrgp.product(timed, LUMPS).input_names == ("time", "x2", "x3")
    assert mrgp.product(LUMPS, HOURS).inputs is None
    assert mrgp.product(LUMPS, HOURS, inputs=("a", "b", "c")).input_names == ("a", "b", "c")
    days = dataclasses.replace(hours, step=86400.0)
    daily = mrgp.product(LUMPS, dataclasses.replace(timed, axes=(days,)))
    moved = harmonise(daily, made.axes)
    np.testing.assert_allclose(moved.bounds[1][:, 2], 24.0 * HOURS.upper[:, 0])


@pytest.mark.thorough
def test_fits_on_products_predict_and_are_saved(tmp_path):
    rng = np.random.default_rng(0)
    x, start = rng.uniform(0, 3, (20, 4, 2)), rng.uniform(0, 3, 20)
    support = mrgp.product(mrgp.nodes(x), mrgp.intervals(start, start + 0.5))
    values = np.sin(x.mean(1).sum(1)) + start
    data = mrgp.Dataset([mrgp.Observations(support, values)])
    quick = mrgp.LBFGS(max_steps=5, starts=1, candidates=0)
    for method in ("exact", "collapsed"):
        fit = mrgp.fit(mrgp.MRGP(method=method), data, optimiser=quick)
        expected = mrgp.predict(fit, support)
        assert np.corrcoef(expected.mean, values)[0, 1] > 0.9
        np.testing.assert_allclose(mrgp.predict(fit, support[3]).mean, expected.mean[3], rtol=1e-9)
        mrgp.save(fit, tmp_path / method)
        again = mrgp.predict(mrgp.load(tmp_path / method), support)
        np.testing.assert_array_equal(again.mean, expected.mean)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda: mrgp.product(LUMPS, HOURS[:2]),
            ValueError,
            "product: supports must have the same number of regions, or one; got 3 and 2. Every",
        ),
        (lambda: mrgp.product(LUMPS, [1.0]), TypeError, r"as product\(a, b\); got list"),
        (
            lambda: mrgp.product(LUMPS, HOURS, inputs=("a", "b")),
            ValueError,
            "product: inputs= needs one name for each of the 3 columns",
        ),
        (
            lambda: mrgp.product(
                mrgp.points([[1.0]], inputs="t"), mrgp.intervals([0.0], [1.0], inputs="t")
            ),
            ValueError,
            r"for each of the 2 columns, all different; got \('t', 't'\)",
        ),
        (
            lambda: mrgp.product(PLACES.with_covariates(lambda x: x[:, 0], "h"), HOURS),
            ValueError,
            r"product: add covariates after taking the product, with_covariates\(...\) last",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_words(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_products_of_the_same_groups_are_joined_part_by_part():
    first, second = mrgp.product(LUMPS, HOURS), mrgp.product(LUMPS[:1], INSTANTS[:1])
    joined = mrgp.concat(first, second)
    assert isinstance(joined, Products)
    assert isinstance(joined.parts[1], Boxes)
    np.testing.assert_allclose(joined.moment, np.concatenate([first.moment, second.moment]))


def test_files_know_products_by_the_name_they_always_had():
    assert REGISTRY["supports.Product"] is Products
