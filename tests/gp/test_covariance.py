"""Covariances of aggregates against double loops over the atoms of each region."""

import functools
import itertools
from typing import NamedTuple

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import mrgp
from groups import rest_thorough
from mrgp.gp import chunks, cross_covariance, full_covariance, variance
from mrgp.kernels import Binding
from mrgp.parameters import unwrap
from mrgp.supports import Boxes, Geometry
from reference import averages as reference
from reference import kernels as plain

SCALES = (0.8, 1.4)


class Atom(NamedTuple):
    """A box, and the weight its mean has in a region."""

    lower: np.ndarray
    upper: np.ndarray
    weight: float


class Case(NamedTuple):
    """A support, and each of its regions as a list of atoms written down by hand."""

    support: mrgp.supports.Support
    regions: list


def _box_case(lower, upper, kind="mean", weights=None):
    lower, upper = np.array(lower), np.array(upper)
    regions = []
    for i, (a, b) in enumerate(zip(lower, upper, strict=True)):
        weight = 1.0
        if kind == "sum":
            weight = 1.0 if weights is None else weights[i]
            for side in b - a:
                weight *= side if side > 0 else 1.0
        regions.append([Atom(a, b, weight)])
    return Case(mrgp.boxes(lower, upper, kind=kind, weights=weights), regions)


def _node_case(x, weights, kind="mean"):
    regions = []
    for nodes, shares in zip(x, weights, strict=True):
        total = sum(shares) if kind == "mean" else 1.0
        regions.append([Atom(p, p, w / total) for p, w in zip(nodes, shares, strict=True)])
    return Case(mrgp.nodes(x, weights, kind=kind), regions)


def _point_case(x, weights=None):
    kind = "mean" if weights is None else "sum"
    shares = np.ones(len(x)) if weights is None else weights
    regions = [[Atom(p, p, w)] for p, w in zip(x, shares, strict=True)]
    return Case(mrgp.points(x, kind=kind, weights=weights), regions)


# All supports have three regions, and nodes two nodes, so that compiled operations are shared.
RNG = np.random.default_rng(5)
CORNERS = np.array([[0.0, 0.0], [0.3, 0.5], [1.0, 1.0]])
CASES = {
    "points": _point_case(RNG.uniform(0, 2, (3, 2))),
    "weighted points": _point_case(RNG.uniform(0, 2, (3, 2)), [0.5, 3.0, 1.0]),
    "mean nodes": _node_case(RNG.uniform(0, 2, (3, 2, 2)), RNG.uniform(0.2, 1, (3, 2))),
    "sum nodes": _node_case(RNG.uniform(0, 2, (3, 2, 2)), RNG.normal(size=(3, 2)), "sum"),
    "boxes": _box_case(CORNERS, CORNERS + [[1.0, 2.0], [0.6, 0.3], [0.1, 0.7]]),
    "box, side and point": _box_case(CORNERS, CORNERS + [[0.7, 1.0], [0.0, 0.3], [0.0, 0.0]]),
    "integrals": _box_case(
        CORNERS - 0.2, CORNERS + [[1.0, 0.7], [-0.2, 0.9], [0.5, 0.0]], "sum", [2.0, 0.5, 1.0]
    ),
    "flat boxes": _box_case(CORNERS, CORNERS + [[1.0, 0.0], [1.4, 0.0], [0.2, 0.0]]),
}


def bound(recipe, dimension=2):
    return unwrap(recipe.bind(Binding(Geometry.unit(dimension))))


def exact_mean(name, a, b):
    """Average a product kernel over two atoms: one high-precision mean for each input."""
    value = 1.0
    for d, scale in enumerate(SCALES):
        ends = (a.lower[d], a.upper[d], b.lower[d], b.upper[d])
        value *= float(reference.interval_mean(name, scale, *ends))
    return value


def loop(mean, first, second):
    """Add up weight * weight * mean over all pairs of atoms of all pairs of regions."""
    values = np.zeros((len(first), len(second)))
    for (n, one), (m, other) in itertools.product(enumerate(first), enumerate(second)):
        for a, b in itertools.product(one, other):
            values[n, m] += a.weight * b.weight * mean(a, b)
    return values


def dense_mean(kernel, a, b, count=8):
    """Average any smooth kernel over two atoms by a dense tensor Gauss-Legendre rule."""
    total = 0.0
    for x, w in _dense_nodes(a, count):
        for z, v in _dense_nodes(b, count):
            total += w * v * kernel(x, z)
    return total


def _dense_nodes(atom, count):
    rule = list(zip(*np.polynomial.legendre.leggauss(count), strict=True))
    sides = []
    for low, high in zip(atom.lower, atom.upper, strict=True):
        inside = [(0.5 * (low + high) + 0.5 * (high - low) * s, 0.5 * v) for s, v in rule]
        sides.append(inside if high > low else [(low, 1.0)])
    return [([x, z], v * u) for (x, v), (z, u) in itertools.product(*sides)]


PRODUCTS = {
    "RBF": mrgp.RBF(SCALES, variance=1.3),
    "Matern12": mrgp.Matern12(SCALES, variance=1.3, product=True),
    "Matern32": mrgp.Matern32(SCALES, variance=1.3, product=True),
    "Matern52": mrgp.Matern52(SCALES, variance=1.3, product=True),
}
# The mean of RBF is compiled anew for every pair of supports: it gets the pairs that differ most.
MIXED = {name: tuple(CASES) for name in PRODUCTS} | {
    "RBF": ("points", "mean nodes", "box, side and point")
}


@functools.cache
def whole_covariance(name):
    """Return the covariance among all cases at once, and the variance of each."""
    supports = tuple(CASES[case].support for case in MIXED[name])
    with jax.enable_x64(True):
        kernel = bound(PRODUCTS[name])
        blocks = full_covariance(kernel, supports)
        variances = [np.asarray(variance(kernel, support)) for support in supports]
        return np.block([[np.asarray(b) for b in row] for row in blocks]), np.concatenate(variances)


@pytest.mark.parametrize("name", rest_thorough(PRODUCTS, "RBF", "Matern32"))
def test_mixed_supports_equal_a_double_loop_over_exact_means(name):
    regions = [region for case in MIXED[name] for region in CASES[case].regions]
    expected = 1.3 * loop(functools.partial(exact_mean, name), regions, regions)
    found, variances = whole_covariance(name)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(variances, np.diag(expected), rtol=1e-10)


@pytest.mark.parametrize("name", rest_thorough(PRODUCTS, "RBF", "Matern32"))
def test_covariance_of_all_supports_is_symmetric_and_positive_semidefinite(name):
    found, _ = whole_covariance(name)
    np.testing.assert_allclose(found, found.T, rtol=1e-12, atol=1e-14)
    assert np.linalg.eigvalsh(found).min() > -1e-12 * np.trace(found)


def test_composed_kernel_equals_a_double_loop_over_dense_quadrature():
    recipe = (
        2.0 * mrgp.RBF(0.9, variance=0.8, dims=0) * mrgp.Periodic(3.0, 1.5, dims=1)
        + mrgp.Linear([0.3, 0.6], [0.5, -0.2])
        + 0.25
    )
    expected_kernel = plain.add(
        plain.multiply(
            plain.constant(1.6),
            plain.only(plain.radial("RBF", 0.9), 0),
            plain.only(plain.periodic(3.0, 1.5), 1),
        ),
        plain.linear([0.3, 0.6], [0.5, -0.2]),
        plain.constant(0.25),
    )
    first, second = CASES["box, side and point"], CASES["integrals"]
    expected = loop(functools.partial(dense_mean, expected_kernel), first.regions, second.regions)
    with jax.enable_x64(True):
        found = cross_covariance(bound(recipe), first.support, second.support)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_two_factors_on_one_input_equal_dense_quadrature():
    recipe = mrgp.RBF(0.9, variance=0.8) * mrgp.Periodic(2.5, 1.5, dims=1)
    kernel = plain.multiply(plain.radial("RBF", 0.9, 0.8), plain.only(plain.periodic(2.5, 1.5), 1))
    first, second = CASES["box, side and point"], CASES["integrals"]
    expected = loop(functools.partial(dense_mean, kernel), first.regions, second.regions)
    with jax.enable_x64(True):
        found = cross_covariance(bound(recipe), first.support, second.support)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_full_covariance_has_the_block_of_every_pair():
    supports = tuple(CASES[name].support for name in ("mean nodes", "sum nodes", "boxes"))
    with jax.enable_x64(True):
        kernel = bound(PRODUCTS["Matern32"])
        blocks = full_covariance(kernel, supports)
        for (i, a), (j, b) in itertools.product(enumerate(supports), enumerate(supports)):
            np.testing.assert_allclose(
                blocks[i][j], cross_covariance(kernel, a, b), rtol=1e-12, atol=1e-14
            )


CHUNKED = {
    "closed form": (PRODUCTS["Matern32"], "boxes", "mean nodes"),
    "nodes": (mrgp.Matern32(SCALES), "mean nodes", "sum nodes"),
    "quadrature": (mrgp.Matern12(SCALES), "box, side and point", "points"),
}


def covariance_and_slopes(recipe, first, second):
    """Return covariances, variances, and the gradient of a sum of both in the lengthscale."""

    def total(scale):
        kernel = unwrap(eqx.tree_at(lambda k: k.lengthscale, bound(recipe), scale))
        rule = mrgp.GaussLegendre(2)
        values = cross_covariance(kernel, first, second, rule), variance(kernel, first, rule)
        return sum(jnp.sum(jnp.sin(v)) for v in values), values

    # Compiled afresh, so that a change of chunk size is seen.
    (_, values), slope = jax.jit(jax.value_and_grad(total, has_aux=True))(jnp.asarray(SCALES))
    return [np.asarray(v) for v in (*values, slope)]


@pytest.mark.parametrize("name", CHUNKED)
def test_chunks_change_nothing(name, monkeypatch):
    recipe, first, second = CHUNKED[name]
    first, second = CASES[first].support, CASES[second].support
    with jax.enable_x64(True):
        whole = covariance_and_slopes(recipe, first, second)
        monkeypatch.setattr(chunks, "_CPU_CHUNK_BYTES", 1)
        parts = covariance_and_slopes(recipe, first, second)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


def test_a_last_chunk_that_is_not_full_changes_nothing(monkeypatch):
    first, second = CASES["points"].support, CASES["weighted points"].support
    with jax.enable_x64(True):
        kernel = bound(PRODUCTS["RBF"])
        whole = cross_covariance(kernel, first, second)
        two_rows = 2 * 8 * len(second)
        monkeypatch.setattr(chunks, "_CPU_CHUNK_BYTES", two_rows)
        parts = cross_covariance(kernel, first, second)
    np.testing.assert_allclose(parts, whole, rtol=1e-14)


@pytest.mark.parametrize("rule", [mrgp.GaussLegendre(2), mrgp.Midpoint(2), mrgp.Sobol(4)])
def test_radial_matern_on_boxes_equals_the_nodes_of_the_rule(rule):
    kernel = plain.radial("Matern32", SCALES)
    boxes, points = CASES["boxes"].support, CASES["points"]
    nodes = boxes.quadrature(rule)
    regions = [
        [Atom(p, p, w) for p, w in zip(x, share, strict=True)]
        for x, share in zip(nodes.x, nodes.weights, strict=True)
    ]

    def at_nodes(a, b):
        return kernel(a.lower, b.lower)

    with jax.enable_x64(True):
        radial = bound(mrgp.Matern32(SCALES))
        cross = cross_covariance(radial, boxes, points.support, rule)
        own = variance(radial, boxes, rule)
    np.testing.assert_allclose(cross, loop(at_nodes, regions, points.regions), rtol=1e-12)
    np.testing.assert_allclose(own, np.diag(loop(at_nodes, regions, regions)), rtol=1e-12)


def test_radial_matern_by_a_fine_rule_approaches_the_dense_integral():
    kernel = plain.radial("Matern52", SCALES)
    boxes, points = CASES["boxes"], CASES["points"]
    expected = loop(functools.partial(dense_mean, kernel), boxes.regions, points.regions)
    with jax.enable_x64(True):
        rule = mrgp.GaussLegendre(12)
        found = cross_covariance(bound(mrgp.Matern52(SCALES)), boxes.support, points.support, rule)
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_separable_kernel_needs_no_quadrature_where_space_is_flat(monkeypatch):
    names = ("time", "lon", "lat")
    lower = np.array([[0.0, 0.3, 0.5], [1.0, 1.2, 0.1]])
    upper = lower + np.array([[1.5, 0.0, 0.0]])
    windows, places = mrgp.boxes(lower, upper, inputs=names), mrgp.points(lower, inputs=names)
    recipe = mrgp.separable(
        time=mrgp.Matern32(0.7, variance=1.0), space=mrgp.Matern32([0.5, 0.9], variance=1.0)
    )
    space = plain.radial("Matern32", [0.5, 0.9])

    def expected(first, second):
        return [
            [
                float(reference.interval_mean("Matern32", 0.7, a[0], b[0], c[0], d[0]))
                * space(a[1:], c[1:])
                for c, d in zip(*second, strict=True)
            ]
            for a, b in zip(*first, strict=True)
        ]

    def refuse(self, rule):
        raise AssertionError("quadrature was used")

    monkeypatch.setattr(Boxes, "quadrature", refuse)
    with jax.enable_x64(True):
        kernel = unwrap(recipe.bind(Binding(Geometry.of((windows,)))))
        cross, own, diagonal = jax.jit(
            lambda: (
                cross_covariance(kernel, windows, places),
                cross_covariance(kernel, windows, windows),
                variance(kernel, windows),
            )
        )()
    np.testing.assert_allclose(cross, expected((lower, upper), (lower, lower)), rtol=1e-12)
    np.testing.assert_allclose(own, expected((lower, upper), (lower, upper)), rtol=1e-12)
    np.testing.assert_allclose(diagonal, np.diag(own), rtol=1e-12)


SPACE_TIME = ("time", "lon", "lat")
WINDOWS = mrgp.boxes([[0.0, 0.3, 0.5]], [[1.5, 0.3, 0.5]], inputs=SPACE_TIME)
WIDE_CELLS = mrgp.boxes([[0.0, 0.3, 0.5]], [[1.5, 0.8, 0.9]], inputs=SPACE_TIME)
NARROW_CELLS = mrgp.boxes([[0.0, 0.3, 0.5]], [[1.5, 0.3001, 0.5001]], inputs=SPACE_TIME)


def space_time_kernel():
    recipe = mrgp.separable(
        time=mrgp.Matern12(0.7, variance=1.0), space=mrgp.Matern52([0.5, 0.9], variance=1.0)
    )
    return unwrap(recipe.bind(Binding(Geometry.of((WIDE_CELLS,)))))


def test_separable_kernel_uses_quadrature_only_where_space_has_width():
    rule = mrgp.GaussLegendre(6)
    flat_in_time = Atom(np.array([0.3, 0.5]), np.array([0.8, 0.9]), 1.0)
    space = plain.radial("Matern52", [0.5, 0.9])
    over_space = sum(w * space(x, [0.3, 0.5]) for x, w in _dense_nodes(flat_in_time, 6))
    over_time = float(reference.interval_mean("Matern12", 0.7, 0.0, 1.5, 0.0, 1.5))
    with jax.enable_x64(True):
        kernel = space_time_kernel()
        found = jax.jit(lambda a, b: cross_covariance(kernel, a, b, rule))(WIDE_CELLS, WINDOWS)
    np.testing.assert_allclose(found, [[over_space * over_time]], rtol=1e-12)


def test_supports_with_and_without_nodes_have_a_positive_semidefinite_covariance():
    # Each support must stand for one functional, whatever it stands beside.
    with jax.enable_x64(True):
        kernel = space_time_kernel()
        blocks = jax.jit(lambda: full_covariance(kernel, (WINDOWS, NARROW_CELLS)))()
    joint = np.block([[np.asarray(b) for b in row] for row in blocks])
    assert np.linalg.eigvalsh(joint).min() > -1e-10


def test_white_noise_is_zero_on_regions_and_itself_on_points():
    with jax.enable_x64(True):
        white = bound(mrgp.White(1.7))
        assert variance(white, CASES["boxes"].support).tolist() == [0.0, 0.0, 0.0]
        mixed = CASES["box, side and point"].support
        assert variance(white, mixed).tolist() == [0.0, 0.0, 1.7]
        points = mrgp.points(mixed.lower)
        assert variance(white, points).tolist() == [1.7, 1.7, 1.7]
        cross = np.asarray(cross_covariance(white, mixed, points))
    np.testing.assert_array_equal(cross, [[0, 0, 0], [0, 0, 0], [0, 0, 1.7]])


def test_white_noise_adds_nothing_to_regions_beside_a_radial_kernel():
    boxes, rule = CASES["boxes"].support, mrgp.GaussLegendre(2)
    with jax.enable_x64(True):
        smooth = bound(mrgp.Matern32(SCALES, variance=1.0))
        noisy = bound(mrgp.Matern32(SCALES, variance=1.0) + mrgp.White(1.7))
        expected = variance(smooth, boxes, rule)
        np.testing.assert_allclose(variance(noisy, boxes, rule), expected, rtol=1e-12)


def test_white_noise_times_a_radial_kernel_cannot_be_averaged():
    with jax.enable_x64(True):
        kernel = bound(mrgp.Matern32(SCALES) * mrgp.White(1.7, dims=0))
        with pytest.raises(ValueError, match="White times a kernel that joins several inputs"):
            variance(kernel, CASES["boxes"].support)


def test_white_noise_of_nodes_is_the_sum_of_squared_weights():
    nodes = mrgp.nodes([[[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]], [[0.5, 0.3, 0.2]])
    with jax.enable_x64(True):
        found = variance(bound(mrgp.White(2.0)), nodes)
    np.testing.assert_allclose(found, [2.0 * (0.25 + 0.09 + 0.04)], rtol=1e-14)


def test_padding_nodes_of_zero_weight_change_nothing():
    x, weights = RNG.uniform(0, 2, (3, 2, 2)), RNG.uniform(0.2, 1, (3, 2))
    padded_x = np.concatenate([x, np.full((3, 2, 2), np.nan)], 1)
    padded_weights = np.concatenate([weights, np.zeros((3, 2))], 1)
    kept, padded = mrgp.nodes(x, weights), mrgp.nodes(padded_x, padded_weights)
    boxes = CASES["boxes"].support
    with jax.enable_x64(True):
        kernel = bound(PRODUCTS["Matern12"])
        cross = [cross_covariance(kernel, boxes, nodes) for nodes in (kept, padded)]
        own = [variance(kernel, nodes) for nodes in (kept, padded)]
    np.testing.assert_allclose(*cross, rtol=1e-13)
    np.testing.assert_allclose(*own, rtol=1e-13)


PARTS = {
    "RBF": PRODUCTS["RBF"],
    "Matern12": PRODUCTS["Matern12"],
    "Matern32": PRODUCTS["Matern32"],
    "Matern52": PRODUCTS["Matern52"],
    "Periodic": mrgp.Periodic(1.5, 0.8),
}


@eqx.filter_jit
def _joint(recipe, support):
    return cross_covariance(bound(recipe), support, support), variance(bound(recipe), support)


ends = st.floats(-3, 3, width=32)
sides = st.floats(0.015625, 4, width=32)


@pytest.mark.parametrize("name", PARTS)
@settings(max_examples=25, deadline=None)
@given(
    lower=st.tuples(ends, ends),
    width=st.tuples(sides, sides),
    other=st.tuples(ends, sides),
    cut=st.floats(0.05, 0.95),
    axis=st.integers(0, 1),
)
def test_a_box_is_the_weighted_mean_of_its_parts(name, lower, width, other, cut, axis):
    lower, width = np.array(lower), np.array(width)
    left, right = np.ones(2), np.zeros(2)
    left[axis], right[axis] = cut, cut
    third = np.array([other[0], 0.3])
    support = mrgp.boxes(
        [lower, lower, lower + right * width, third],
        [lower + width, lower + left * width, lower + width, third + other[1]],
    )
    shares = np.array([cut, 1 - cut])
    with jax.enable_x64(True):
        joint, own = (np.asarray(v) for v in _joint(PARTS[name], support))
    np.testing.assert_allclose(joint[0, 3], shares @ joint[1:3, 3], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(joint[0, 0], shares @ joint[1:3, 1:3] @ shares, rtol=1e-10)
    np.testing.assert_allclose(own, np.diag(joint), rtol=1e-10)


CELLS = mrgp.boxes([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], [[1.0, 2.0], [1.5, 1.2], [2.1, 2.1]])


@pytest.mark.parametrize(
    ("recipe", "rules"),
    [
        (mrgp.RBF(0.5), [mrgp.Midpoint(n) for n in (2, 4)]),
        (mrgp.RBF(0.5), [mrgp.GaussLegendre(n) for n in (2, 4)]),
        (mrgp.RBF(0.5), [mrgp.Sobol(n) for n in (4, 16)]),
    ],
)
def test_quadrature_error_decreases_with_finer_rules(recipe, rules):
    errors = [mrgp.quadrature_error(CELLS, rule, recipe) for rule in rules]
    largest = [e.largest for e in errors]
    assert all(fine < 0.6 * coarse for coarse, fine in itertools.pairwise(largest))
    assert all(0 < e.mean <= e.largest and e.region == 0 for e in errors)


def test_quadrature_error_of_a_radial_kernel_is_against_a_finer_rule():
    recipe, rule = mrgp.Matern32(0.5), mrgp.Midpoint(2)
    default = mrgp.quadrature_error(CELLS, rule, recipe)
    finer = mrgp.quadrature_error(CELLS, rule, recipe, finer=mrgp.GaussLegendre(6))
    assert default == finer
    assert 0 < default.mean < default.largest < 0.2


def test_quadrature_error_is_that_of_the_prior_sd():
    rule = mrgp.Midpoint(2)
    case = CASES["boxes"]
    nodes = case.support.quadrature(rule)
    regions = [
        [Atom(p, p, w) for p, w in zip(x, share, strict=True)]
        for x, share in zip(nodes.x, nodes.weights, strict=True)
    ]
    mean = functools.partial(exact_mean, "RBF")
    coarse, exact = np.diag(loop(mean, regions, regions)), np.diag(loop(mean, *[case.regions] * 2))
    expected = np.abs(np.sqrt(coarse / exact) - 1)
    found = mrgp.quadrature_error(case.support, rule, mrgp.RBF(SCALES))
    np.testing.assert_allclose(found.largest, expected.max(), rtol=1e-8)
    np.testing.assert_allclose(found.mean, expected.mean(), rtol=1e-8)
    assert found.region == expected.argmax()
    assert str(found).startswith(f"relative error of the prior sd: at most {found.largest:.1e}")


def test_quadrature_error_takes_a_reference_rule():
    rule = mrgp.Midpoint(3)
    assert mrgp.quadrature_error(CELLS, rule, mrgp.RBF(0.5), finer=rule).largest == 0.0


def test_quadrature_error_does_not_depend_on_where_the_origin_is():
    recipe = mrgp.RBF(0.5, variance=1.0) + mrgp.Linear(0.1)
    moved = mrgp.boxes(CELLS.lower + 1000.0, CELLS.upper + 1000.0)
    here = mrgp.quadrature_error(CELLS, mrgp.Midpoint(3), recipe)
    there = mrgp.quadrature_error(moved, mrgp.Midpoint(3), recipe)
    np.testing.assert_allclose(here.largest, there.largest, rtol=1e-6)
