"""Quadrature rules: exactness, positions, weights."""

import itertools

import numpy as np
import pytest

import mrgp
from mrgp.supports.quadrature import gauss_legendre

LOWER, UPPER = np.array([[-1.0, 2.0]]), np.array([[3.0, 2.5]])


def monomial_mean(power, low, high):
    return (high ** (power + 1) - low ** (power + 1)) / ((power + 1) * (high - low))


@pytest.mark.parametrize("number", [1, 2, 3, 5, 8, 16])
def test_gauss_legendre_integrates_polynomials_to_degree_2n_minus_1(number):
    nodes, weights = gauss_legendre(number)
    powers = np.arange(2 * number)
    np.testing.assert_allclose([weights @ nodes**p for p in powers], 1 / (powers + 1.0), rtol=1e-12)
    beyond = weights @ nodes ** (2 * number)
    assert abs(beyond - 1 / (2 * number + 1)) > 1e-12 or number > 8


@pytest.mark.parametrize("number", [2, 3, (2, 4)])
def test_tensor_gauss_legendre_integrates_polynomials_over_boxes(number):
    nodes = mrgp.boxes(LOWER, UPPER).quadrature(mrgp.GaussLegendre(number))
    counts = (number, number) if isinstance(number, int) else number
    assert nodes.nodes_per_region == counts[0] * counts[1]
    for p, q in itertools.product(range(2 * counts[0]), range(2 * counts[1])):
        found = (nodes.weights[0] * nodes.x[0, :, 0] ** p * nodes.x[0, :, 1] ** q).sum()
        expected = monomial_mean(p, -1.0, 3.0) * monomial_mean(q, 2.0, 2.5)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("number", [1, 2, 5])
def test_midpoint_nodes_lie_in_the_middle_of_equal_cells(number):
    nodes = mrgp.intervals([-1.0], [3.0]).quadrature(mrgp.Midpoint(number))
    expected = [-1.0 + 4.0 * (i + 0.5) / number for i in range(number)]
    np.testing.assert_allclose(np.sort(nodes.x[0, :, 0]), expected)
    np.testing.assert_allclose(nodes.weights, np.full((1, number), 1 / number))


def test_midpoint_takes_a_number_for_each_side():
    nodes = mrgp.boxes(LOWER, UPPER).quadrature(mrgp.Midpoint((2, 1)))
    np.testing.assert_allclose(nodes.x[0], [[0.0, 2.25], [2.0, 2.25]])


@pytest.mark.parametrize("number", [1, 4, 64])
def test_sobol_nodes_have_equal_weights_and_lie_inside(number):
    nodes = mrgp.boxes(LOWER, UPPER).quadrature(mrgp.Sobol(number))
    np.testing.assert_allclose(nodes.weights, np.full((1, number), 1 / number))
    assert (nodes.x[0] > LOWER[0]).all()
    assert (nodes.x[0] < UPPER[0]).all()
    np.testing.assert_allclose(nodes.moment[0], [1.0, 2.25], rtol=1e-12)


def test_sobol_nodes_are_one_to_a_cell_along_every_side():
    nodes, _ = mrgp.Sobol(16).on_unit_cube((False, False, False))
    for column in nodes.T:
        np.testing.assert_allclose(np.sort(column), (np.arange(16) + 0.5) / 16)


RULES = [mrgp.Midpoint(3), mrgp.GaussLegendre(3), mrgp.Sobol(8)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("flat", [(False, False), (True, False), (False, True), (True, True)])
def test_flat_sides_have_one_central_node_and_weights_sum_to_one(rule, flat):
    nodes, weights = rule.on_unit_cube(flat)
    assert nodes.shape == (len(weights), 2)
    np.testing.assert_allclose(weights.sum(), 1.0)
    for column, is_flat in zip(nodes.T, flat, strict=True):
        assert (column == 0.5).all() == is_flat or len(nodes) == 1
    assert (len(weights) == 1) == all(flat)


@pytest.mark.parametrize("rule", RULES)
def test_sides_of_zero_width_stay_where_they_are(rule):
    boxes = mrgp.boxes([[0.0, 5.0], [1.0, 7.0]], [[1.0, 5.0], [1.0, 8.0]])
    nodes = boxes.quadrature(rule)
    assert (nodes.x[0, :, 1] == 5.0).all()
    assert (nodes.x[1, :, 0] == 1.0).all()


@pytest.mark.parametrize("rule", RULES)
def test_quadrature_of_integrals_sums_to_the_measure(rule):
    boxes = mrgp.boxes(LOWER, UPPER, kind="sum", weights=[3.0])
    np.testing.assert_allclose(boxes.quadrature(rule).weights.sum(), 3.0 * 4.0 * 0.5)


def test_points_and_nodes_are_their_own_quadrature():
    points = mrgp.points([[1.0], [2.0]], kind="sum", weights=[3.0, 4.0])
    nodes = points.quadrature(mrgp.Midpoint(5))
    np.testing.assert_array_equal(nodes.x, [[[1.0]], [[2.0]]])
    np.testing.assert_array_equal(nodes.weights, [[3.0], [4.0]])
    assert nodes.quadrature(mrgp.Midpoint(7)) is nodes


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mrgp.Midpoint(0), "Midpoint takes a positive whole number, or a tuple of them"),
        (lambda: mrgp.Midpoint(2.5), "Midpoint takes a positive whole number.*got 2.5"),
        (lambda: mrgp.GaussLegendre(-1), "GaussLegendre takes a positive whole number.*got -1"),
        (lambda: mrgp.GaussLegendre((2, 0)), r"positive whole number, .*got \(2, 0\)"),
        (lambda: mrgp.GaussLegendre(()), r"positive whole number, .*got \(\)"),
        (lambda: mrgp.Sobol(10), "Sobol takes a power of two; got 10"),
        (lambda: mrgp.Sobol(0), "Sobol takes a power of two; got 0"),
    ],
)
def test_wrong_numbers_of_nodes_are_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


@pytest.mark.parametrize("rule", [mrgp.Midpoint((2, 3, 4)), mrgp.GaussLegendre((2,))])
def test_a_number_for_each_side_must_fit_the_inputs(rule):
    text = f"{type(rule).__name__} takes one positive number, or one for each of the 2 inputs; got"
    with pytest.raises(ValueError, match=text):
        mrgp.boxes(LOWER, UPPER).quadrature(rule)


def test_midpoints_have_the_error_of_second_order_and_ends_would_be_worse():
    """The example of theory 1.1: variance of an SE mean over 3 lengthscales, 5 nodes."""

    def variance(nodes):
        x, w = nodes.x[0, :, 0], nodes.weights[0]
        return w @ np.exp(-0.5 * (x[:, None] - x[None, :]) ** 2) @ w

    box = mrgp.intervals([0.0], [3.0])
    exact = variance(box.quadrature(mrgp.GaussLegendre(30)))
    midpoint = variance(box.quadrature(mrgp.Midpoint(5))) - exact
    gauss = variance(box.quadrature(mrgp.GaussLegendre(5))) - exact
    ends = variance(mrgp.nodes(np.linspace(0, 3, 5).reshape(1, 5, 1))) - exact
    np.testing.assert_allclose([ends, midpoint], [-0.080, 0.007], atol=5e-4)
    np.testing.assert_allclose(gauss, -3e-6, atol=5e-7)
