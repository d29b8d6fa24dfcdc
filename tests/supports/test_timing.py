"""Regions taken apart into places and times, and places told apart."""

import numpy as np
import pytest
import shapely

import mrgp
from mrgp.supports import distinct, number_values, taken_apart

SQUARE = shapely.box(0.0, 0.0, 2.0, 2.0)


def test_points_are_places_at_instants():
    (part,) = taken_apart(mrgp.points([[7.0, 1.0], [8.0, 3.0]]), time=0)
    np.testing.assert_array_equal(part.place.x, [[0.0, 1.0], [0.0, 3.0]])
    np.testing.assert_array_equal(part.start, [7.0, 8.0])
    np.testing.assert_array_equal(part.end, part.start)
    np.testing.assert_array_equal(part.scale, 1.0)


def test_boxes_are_points_or_cells_over_instants_or_windows():
    support = mrgp.boxes([[0.0, 0.0], [1.0, 2.0], [0.0, 4.0]], [[1.0, 3.0], [1.0, 5.0], [1.0, 4.0]])
    points, cells = taken_apart(support, time=1)
    assert points.rows.tolist() == [1]
    assert (points.start.tolist(), points.end.tolist()) == ([2.0], [5.0])
    assert cells.rows.tolist() == [0, 2]
    assert (cells.start.tolist(), cells.end.tolist()) == ([0.0, 4.0], [3.0, 4.0])
    np.testing.assert_array_equal(cells.place.bounds[1], [[1.0, 0.0], [1.0, 0.0]])


def test_a_total_is_a_mean_times_a_scale():
    (part,) = taken_apart(mrgp.boxes([[0.0, 1.0]], [[2.0, 4.0]], kind="sum"), time=1)
    assert part.scale.tolist() == [6.0]
    assert np.asarray(part.place.total).tolist() == [1.0]


def test_nodes_of_one_instant_are_a_place_and_nodes_of_one_place_are_times():
    x = [[[0.0, 5.0], [1.0, 5.0]], [[3.0, 1.0], [3.0, 2.0]]]
    at_once, over = taken_apart(mrgp.nodes(x, weights=[[1.0, 3.0], [1.0, 1.0]]), time=1)
    assert at_once.rows.tolist() == [0]
    assert at_once.start.tolist() == at_once.end.tolist() == [5.0]
    np.testing.assert_array_equal(at_once.place.weights, [[0.25, 0.75]])
    assert over.rows.tolist() == [1]
    assert over.times.tolist() == [[1.0, 2.0]]
    assert over.shares.tolist() == [[0.5, 0.5]]
    assert (over.start.tolist(), over.end.tolist()) == ([1.0], [2.0])


def test_padding_of_nodes_is_no_other_time():
    x = [[[3.0, 1.0], [9.0, 9.0]], [[3.0, 1.0], [3.0, 2.0]]]
    at_once, over = taken_apart(mrgp.nodes(x, weights=[[1.0, 0.0], [1.0, 1.0]]), time=1)
    assert (at_once.rows.tolist(), over.rows.tolist()) == ([0], [1])


def test_polygons_times_windows_are_places_over_windows():
    cells = mrgp.polygons([SQUARE, SQUARE], inputs=("x", "y"))
    hours = mrgp.intervals([0.0, 1.0], [1.0, 4.0], inputs="time")
    (part,) = taken_apart(mrgp.product(cells, hours), time=2)
    assert (part.start.tolist(), part.end.tolist()) == ([0.0, 1.0], [1.0, 4.0])
    assert part.place.dimension == 3
    assert len(distinct([part.place], np.ones(3))) == 1


def test_nodes_that_differ_in_place_and_time_are_refused():
    with pytest.raises(ValueError, match="in 1 of 1 regions the nodes differ both in place and in"):
        taken_apart(mrgp.nodes([[[0.0, 1.0], [1.0, 2.0]]]), time=1)


def test_places_within_rounding_are_one_and_come_in_the_order_of_the_data():
    first = mrgp.points([[5.0], [2.0]])
    second = mrgp.points([[2.0 + 1e-9], [7.0], [5.0]])
    found = distinct([first, second], extent=np.array([5.0]))
    np.testing.assert_allclose(found.groups[0].x[:, 0], [5.0, 2.0, 7.0], atol=1e-8)
    assert [index.tolist() for index in found.which] == [[0, 1], [1, 2, 0]]


def test_places_of_different_kinds_are_told_apart():
    site, cell = mrgp.points([[1.0, 1.0]]), mrgp.boxes([[0.0, 0.0]], [[1.0, 1.0]])
    found = distinct([site, cell, site], extent=np.ones(2))
    assert len(found) == len(found.groups) == 2
    assert [index.tolist() for index in found.which] == [[0], [1], [0]]


def test_neighbours_within_a_tolerance_have_one_number():
    assert number_values(np.array([2.0, 1.0, 2.0 + 1e-8, 5.0]), 1e-6).tolist() == [1, 0, 1, 2]


def test_covariates_are_no_clock():
    year = {"year": [2020.0, 2021.0]}
    dated = mrgp.points([[0.0, 1.0], [1.0, 2.0]], inputs=("time", "east"), covariates=year)
    place = mrgp.points([[0.0, 1.0], [1.0, 2.0]], inputs=("east", "north"), covariates=year)
    assert (dated.clock, place.clock) == (0, None)
