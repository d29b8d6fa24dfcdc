"""Covariances of products of supports against double sums over tensor nodes."""

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
import shapely
import xarray as xr
from hypothesis import given, settings

import mrgp
from groups import rest_thorough
from mrgp._types import float64
from mrgp.gp import cross_covariance, variance
from mrgp.kernels import Binding
from mrgp.parameters import unwrap
from mrgp.supports import Atoms, Geometry, Products
from reference import gaussian
from reference import kernels as plain
from reference.products import HOURS, INSTANTS, LUMPS, PRODUCTS, TRIANGLES, tensor

RNG = np.random.default_rng(8)


def double():
    return jax.enable_x64(True)


def bound(recipe, dimension=3):
    return unwrap(recipe.bind(Binding(Geometry.unit(dimension))))


def brute(kernel, first, second):
    return gaussian.covariance(lambda x, z: plain.matrix(kernel, x, z), first, second)


SCALES = (0.8, 1.4, 0.7)
SMOOTH = {
    "RBF": (mrgp.RBF(SCALES, variance=1.3), plain.radial("RBF", SCALES, 1.3)),
    "Periodic": (mrgp.Periodic(4.0, 1.5, variance=0.7), plain.periodic(4.0, 1.5, 0.7)),
    "Linear": (mrgp.Linear(variance=0.6, origin=0.3), plain.linear(0.6, 0.3)),
    "Constant": (mrgp.Constant(0.9), plain.constant(0.9)),
    "sum": (
        mrgp.RBF(SCALES, variance=0.4) + mrgp.Linear(variance=0.2, origin=0.0, dims=2) + 0.5,
        plain.add(
            plain.radial("RBF", SCALES, 0.4),
            plain.only(plain.linear(0.2), 2),
            plain.constant(0.5),
        ),
    ),
    "product": (
        mrgp.RBF(0.9, variance=1.0, dims=(0, 1)) * mrgp.Periodic(4.0, 1.5, variance=1.0, dims=2),
        plain.multiply(
            plain.only(plain.radial("RBF", 0.9), 0, 1), plain.only(plain.periodic(4.0, 1.5), 2)
        ),
    ),
}
PAIRS = [("nodes, hours", "polygons, hours"), ("counts, hours", "hours, nodes")]
PAIRS += [("nodes, depths", "hours, depths, instants")]


@pytest.mark.parametrize("name", rest_thorough(SMOOTH, "sum", "product"))
@pytest.mark.parametrize("pair", PAIRS, ids=" with ".join)
def test_covariances_are_the_double_sums_over_tensor_nodes(name, pair):
    recipe, kernel = SMOOTH[name]
    first, second = (mrgp.product(*PRODUCTS[p]) for p in pair)
    rows = [tensor(*PRODUCTS[p]) for p in pair]
    with double():
        cross = cross_covariance(bound(recipe), first, second)
        own = variance(bound(recipe), first)
        itself = cross_covariance(bound(recipe), first, first)
    np.testing.assert_allclose(cross, brute(kernel, *rows), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(itself, brute(kernel, rows[0], rows[0]), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(own, np.diag(itself), rtol=1e-10)


OTHERS = {
    "points": mrgp.points(RNG.uniform(0, 2, (3, 3))),
    "boxes": mrgp.boxes([[0.0, 0.0, 0.3], [1.0, 0.5, 0.2]], [[1.0, 0.5, 0.3], [1.0, 1.5, 1.2]]),
    "nodes": mrgp.nodes(RNG.uniform(0, 2, (2, 4, 3)), RNG.uniform(0.1, 1, (2, 4))),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(
    "name", rest_thorough(["nodes, hours", "hours, depths, instants"], "nodes, hours")
)
def test_products_meet_points_boxes_and_nodes(name, other):
    recipe, kernel = SMOOTH["sum"]
    support, rows = mrgp.product(*PRODUCTS[name]), tensor(*PRODUCTS[name])
    expected = brute(kernel, rows, gaussian.functionals(OTHERS[other]))
    with double():
        found = cross_covariance(bound(recipe), support, OTHERS[other])
        back = cross_covariance(bound(recipe), OTHERS[other], support)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    np.testing.assert_allclose(back, expected.T, rtol=1e-8)


@pytest.mark.parametrize(
    "name",
    rest_thorough(["nodes, hours", "polygons, hours", "nodes, instants"], "nodes, hours"),
)
def test_radial_kernels_see_the_tensor_nodes_of_the_rule(name):
    rule = mrgp.GaussLegendre((2, 2, 3))
    support, kernel = mrgp.product(*PRODUCTS[name]), plain.radial("Matern32", SCALES)
    nodes = tensor(PRODUCTS[name][0], PRODUCTS[name][1].quadrature(mrgp.GaussLegendre(3)))
    places = OTHERS["points"]
    with double():
        radial = bound(mrgp.Matern32(SCALES, variance=1.0))
        cross = cross_covariance(radial, support, places, rule)
        own = variance(radial, support, rule)
    np.testing.assert_allclose(cross, brute(kernel, nodes, gaussian.functionals(places)), rtol=1e-9)
    np.testing.assert_allclose(own, np.diag(brute(kernel, nodes, nodes)), rtol=1e-9)


def test_white_noise_needs_instants_and_places():
    with double():
        white = bound(mrgp.White(2.0))

        def own(*parts):
            return np.asarray(variance(white, mrgp.product(*parts)))

        np.testing.assert_allclose(own(LUMPS, INSTANTS), 2.0 * (LUMPS.weights**2).sum(1))
        np.testing.assert_array_equal(own(LUMPS, HOURS), np.zeros(3))
        np.testing.assert_array_equal(own(TRIANGLES, INSTANTS), np.zeros(3))
        in_time = bound(mrgp.White(2.0, dims=2))
        instants = mrgp.product(TRIANGLES, INSTANTS)
        np.testing.assert_allclose(variance(in_time, instants), np.full(3, 2.0))
        cross = cross_covariance(in_time, instants, instants)
        np.testing.assert_allclose(cross, [[2.0, 0, 0], [0, 2.0, 2.0], [0, 2.0, 2.0]])
        smooth, noisy = (bound(k) for k in (mrgp.RBF(0.8), mrgp.RBF(0.8) + mrgp.White(2.0)))
        months = mrgp.product(TRIANGLES, HOURS)
        np.testing.assert_allclose(2.0 * variance(noisy, months), variance(smooth, months))


def test_white_noise_in_time_stays_beside_a_kernel_of_all_inputs():
    instants = mrgp.product(TRIANGLES, INSTANTS)
    with double():
        radial = mrgp.Matern32(SCALES, variance=1.0)
        expected = variance(bound(radial), instants)
        found = variance(bound(radial * mrgp.White(2.0, dims=2)), instants)
        np.testing.assert_allclose(found, 2.0 * expected, rtol=1e-12)
        in_space = bound(radial * mrgp.White(2.0, dims=0))
        np.testing.assert_array_equal(variance(in_space, instants), np.zeros(3))


def test_nodes_laid_out_in_regions_have_no_white_noise_either():
    with double():
        white = bound(mrgp.White(2.0))
        for region in (mrgp.product(TRIANGLES, INSTANTS), mrgp.product(LUMPS, HOURS)):
            np.testing.assert_array_equal(variance(white, region.quadrature()), np.zeros(3))
        lumps = mrgp.product(LUMPS, INSTANTS).quadrature()
        np.testing.assert_allclose(variance(white, lumps), 2.0 * (LUMPS.weights**2).sum(1))


def test_a_kernel_of_groups_never_meets_the_tensor_of_nodes(monkeypatch):
    recipe = mrgp.Matern32(0.9, variance=1.0, dims=(0, 1)) * mrgp.Matern32(
        0.9, variance=1.0, dims=2
    )
    support = mrgp.product(LUMPS, HOURS)
    with double():
        kernel = bound(recipe)
        expected = variance(kernel, support.quadrature(mrgp.GaussLegendre(40)))

        def refuse(self, along=(), rule=None) -> Atoms:
            raise AssertionError("the tensor of nodes was formed")

        monkeypatch.setattr(Products, "atoms", refuse)
        np.testing.assert_allclose(variance(kernel, support), expected, rtol=1e-3)
        cross_covariance(kernel, support, mrgp.product(TRIANGLES, HOURS))
        cross_covariance(kernel, support, OTHERS["points"])
        with pytest.raises(AssertionError, match="the tensor of nodes was formed"):
            variance(bound(mrgp.Matern32(0.9)), support)


number = st.floats(-2, 2, width=32)
side = st.one_of(st.just(0.0), st.floats(0.0625, 2, width=32))


@float64
def _both(kernel, support, nodes, places):
    return (
        (variance(kernel, support), cross_covariance(kernel, support, places)),
        (variance(kernel, nodes), cross_covariance(kernel, nodes, places)),
    )


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)
@given(
    x=st.lists(st.tuples(number, number), min_size=3, max_size=3),
    weights=st.lists(st.floats(0.1, 3.0), min_size=3, max_size=3),
    low=number,
    width=side,
    swap=st.booleans(),
)
def test_a_product_is_its_quadrature_for_smooth_kernels(x, weights, low, width, swap):
    parts = mrgp.nodes([x], [weights]), mrgp.intervals([low], [low + width])
    support = mrgp.product(*reversed(parts) if swap else parts)
    kernel = bound(mrgp.RBF(1.2, variance=1.0))
    nodes = support.quadrature(mrgp.GaussLegendre(10))
    found, expected = _both(kernel, support, nodes, OTHERS["points"])
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12)


RING = shapely.Point(0.3, 0.4).buffer(1.0, 64) - shapely.Point(0.3, 0.4).buffer(0.5, 64)
SHAPES = [shapely.Polygon([(0.1, 0.2), (1.7, 0.5), (0.6, 1.9)]), RING]


@pytest.mark.parametrize("weights", rest_thorough([None, lambda x: 2.0 + x[:, 0]], 1))
def test_the_quadrature_error_of_polygons_is_seen_by_refining_them(weights):
    recipe, rule = mrgp.RBF(0.6, variance=1.0), mrgp.GaussLegendre(5)
    support = mrgp.polygons(SHAPES, spacing=0.4, weights=weights)
    finest = support.refine(0.08)
    with double():
        coarse, exact = (np.asarray(variance(bound(recipe, 2), s)) for s in (support, finest))
    true = np.abs(np.sqrt(coarse / exact) - 1.0)
    found = mrgp.quadrature_error(support, rule, recipe)
    assert 0.6 * true.max() < found.largest < 1.1 * true.max()
    assert found.region == true.argmax()
    finer = mrgp.quadrature_error(support.refine(0.1), rule, recipe)
    assert finer.largest < 0.15 * found.largest


@pytest.mark.thorough
def test_the_quadrature_error_of_a_product_refines_its_polygons():
    axis = np.linspace(-2.0, 3.0, 11)
    people = xr.DataArray(
        3.0 + axis + 0.0 * axis[:, None], {"lat": axis, "lon": axis}, ("lat", "lon")
    )
    days = mrgp.intervals([0.0], [1.0], inputs="day")
    rule = mrgp.GaussLegendre(8)
    for weights in (None, people):
        polygons = mrgp.polygons(SHAPES, spacing=0.4, inputs=("lon", "lat"), weights=weights)
        alone = mrgp.quadrature_error(polygons, rule, mrgp.RBF(0.6))
        for product in (mrgp.product(polygons, days), mrgp.product(days, polygons)):
            found = mrgp.quadrature_error(product, rule, mrgp.RBF(0.6))
            np.testing.assert_allclose(found.largest, alone.largest, rtol=1e-5)
        radial = mrgp.quadrature_error(mrgp.product(polygons, days), rule, mrgp.Matern32(0.6))
        assert 0.5 * alone.largest < radial.largest < 3.0 * alone.largest


def test_given_nodes_define_their_aggregate():
    rule = mrgp.GaussLegendre(5)
    polygons = mrgp.polygons(SHAPES, spacing=0.4)
    for support in (LUMPS, polygons.shift([0.0, 0.0]), polygons.quadrature().collapse()):
        assert mrgp.quadrature_error(support, rule, mrgp.RBF(0.6)).largest == 0.0


def test_white_noise_has_no_quadrature_error():
    cells, rule = mrgp.boxes([[0.0, 0.0]], [[1.0, 2.0]]), mrgp.Midpoint(3)
    assert mrgp.quadrature_error(cells, rule, mrgp.White(2.0)).largest == 0.0
    alone = mrgp.quadrature_error(cells, rule, mrgp.RBF(0.5, variance=1.0))
    noisy = mrgp.quadrature_error(cells, rule, mrgp.RBF(0.5, variance=1.0) + mrgp.White(2.0))
    np.testing.assert_allclose(noisy.largest, alone.largest, rtol=1e-9)
