"""Extent, spacing and centre of supports."""

import itertools

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import mrgp
from mrgp.supports import Geometry


def grid(*sides):
    return np.array(list(itertools.product(*sides)))


@pytest.mark.parametrize(
    ("sides", "steps"),
    [
        ([np.arange(10) * 0.5], [0.5]),
        ([np.arange(5) * 2.0, 7 + np.arange(3) * 0.1], [2.0, 0.1]),
        ([np.arange(24.0), np.arange(4) * 10.0, -np.arange(6) * 3.0], [1.0, 10.0, 3.0]),
        ([np.arange(2) * 4.0, np.arange(50) * 0.2], [4.0, 0.2]),
    ],
)
def test_a_regular_grid_finds_its_own_steps(sides, steps):
    geometry = Geometry.of((mrgp.points(grid(*sides)),))
    np.testing.assert_allclose(geometry.spacing, steps)
    np.testing.assert_allclose(geometry.extent, [np.ptp(side) for side in sides])
    np.testing.assert_allclose(geometry.centre, [0.5 * (s.min() + s.max()) for s in sides])


def test_a_grid_of_boxes_has_the_spacing_of_its_centres_and_the_extent_of_its_edges():
    lower = grid(np.arange(4) * 2.0, np.arange(3) * 5.0)
    geometry = Geometry.of((mrgp.boxes(lower, lower + [2.0, 5.0]),))
    np.testing.assert_allclose(geometry.spacing, [2.0, 5.0])
    np.testing.assert_allclose(geometry.extent, [8.0, 15.0])
    np.testing.assert_allclose(geometry.centre, [4.0, 7.5])


def test_repeated_places_count_once():
    once = mrgp.points(grid(np.arange(10.0)))
    often = mrgp.concat(once, once, once[:3])
    np.testing.assert_array_equal(Geometry.of((once,)).spacing, Geometry.of((often,)).spacing)


def test_scattered_points_share_the_domain_evenly():
    x = np.random.default_rng(0).uniform(size=(100, 2)) * [1.0, 7.0]
    geometry = Geometry.of((mrgp.points(x),))
    np.testing.assert_allclose(geometry.spacing, np.ptp(x, axis=0) / (np.sqrt(100) - 1))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_sites_that_are_read_at_all_times_share_the_map_and_have_the_step_of_time(order):
    sites = np.random.default_rng(1).uniform(size=(16, 2)) * [3.0, 8.0]
    hours = np.arange(48.0)
    x = np.column_stack([np.repeat(sites, 48, axis=0), np.tile(hours, 16)])
    names = np.array(["lon", "lat", "time"])[list(order)]
    geometry = Geometry.of((mrgp.points(x[:, order], inputs=names),))
    steps = np.array([*(np.ptp(sites, axis=0) / (np.sqrt(16) - 1)), 1.0])
    np.testing.assert_allclose(geometry.spacing, steps[list(order)])


def test_sites_that_read_at_instants_of_their_own_share_map_and_time_evenly():
    x = np.random.default_rng(1).uniform(size=(1000, 3))
    geometry = Geometry.of((mrgp.points(x, inputs=("lon", "lat", "time")),))
    np.testing.assert_allclose(geometry.spacing, np.ptp(x, axis=0) / 9.0)


def test_one_region_leaves_the_spacing_at_the_extent():
    point = Geometry.of((mrgp.points([[3.0, 4.0]]),))
    np.testing.assert_array_equal(point.extent, [1.0, 1.0])
    np.testing.assert_array_equal(point.spacing, [1.0, 1.0])
    box = Geometry.of((mrgp.boxes([[0.0, 0.0]], [[4.0, 2.0]]),))
    np.testing.assert_array_equal(box.spacing, [4.0, 2.0])


def test_an_input_without_extent_counts_as_one():
    geometry = Geometry.of((mrgp.points(grid(np.arange(5.0), [3.0])),))
    np.testing.assert_allclose(geometry.extent, [4.0, 1.0])
    np.testing.assert_allclose(geometry.spacing, [1.0, 1.0])


def test_several_supports_have_the_joint_extent_and_the_spacing_of_all_their_centres():
    fine = mrgp.points(grid(np.arange(11) * 0.1))
    coarse = mrgp.intervals(np.arange(5) * 2.0 - 4.0, np.arange(5) * 2.0 - 2.0)
    geometry = Geometry.of((coarse, fine))
    distinct = {-3.0, -1.0, 1.0, 3.0, 5.0} | {round(0.1 * i, 9) for i in range(11)}
    np.testing.assert_allclose(geometry.spacing, [8.0 / (len(distinct) - 1)])
    np.testing.assert_allclose([geometry.extent[0], geometry.centre[0]], [10.0, 1.0])


def test_a_second_source_on_the_same_grid_changes_nothing():
    lower = grid(np.arange(4) * 2.0, np.arange(3) * 5.0)
    cells, centres = mrgp.boxes(lower, lower + [2.0, 5.0]), mrgp.points(lower + [1.0, 2.5])
    np.testing.assert_allclose(Geometry.of((cells, centres)).spacing, [2.0, 5.0])


def test_contrasts_are_placed_at_the_middle_of_their_nodes():
    contrasts = mrgp.nodes([[[0.0], [2.0]], [[4.0], [6.0]]], [[1.0, -1.0]] * 2, kind="sum")
    np.testing.assert_allclose(Geometry.of((contrasts,)).spacing, [4.0])


def test_typical_lengthscale_lies_between_spacing_and_extent_in_logs():
    geometry = Geometry.of((mrgp.points(grid(np.arange(101.0))),))
    np.testing.assert_allclose(geometry.typical, [10.0])
    np.testing.assert_allclose(geometry.typical * np.exp(2.326 * geometry.log_spread), [100.0])
    np.testing.assert_allclose(geometry.typical / np.exp(2.326 * geometry.log_spread), [1.0])
    few = Geometry.of((mrgp.points(grid(np.arange(2.0))),))
    np.testing.assert_allclose(few.log_spread, [0.5])


points = hnp.arrays(np.float64, (12, 2), elements=st.floats(-5, 5, width=16), unique=True)


@settings(max_examples=60, deadline=None)
@given(x=points, scale=st.sampled_from([1e-6, 0.01, 3.0, 1e5]), shift=st.integers(-50, 50))
def test_lengths_scale_with_the_inputs_and_do_not_move(x, scale, shift):
    before = Geometry.of((mrgp.points(x),))
    after = Geometry.of((mrgp.points(scale * (x + shift)),))
    np.testing.assert_allclose(after.extent, scale * before.extent, rtol=1e-9)
    np.testing.assert_allclose(after.spacing, scale * before.spacing, rtol=1e-9)
    np.testing.assert_allclose(
        after.centre, scale * (before.centre + shift), rtol=1e-9, atol=1e-9 * scale
    )


@settings(max_examples=30, deadline=None)
@given(x=points)
def test_lengths_follow_the_order_of_the_inputs(x):
    here, there = Geometry.of((mrgp.points(x),)), Geometry.of((mrgp.points(x[:, ::-1]),))
    np.testing.assert_allclose(here.extent, there.extent[::-1])
    np.testing.assert_allclose(here.centre, there.centre[::-1])
    assert (here.spacing <= here.extent * (1 + 1e-12)).all()


def test_inputs_are_found_by_name_and_number():
    geometry = Geometry.of((mrgp.points([[0.0, 1.0]], inputs=("time", "lon")),))
    assert [geometry.index(i) for i in ("time", "lon", 0, 1, -1, -2)] == [0, 1, 0, 1, 1, 0]
    with pytest.raises(ValueError, match=r"No input is named 'lat'; the inputs are \('time', 'lon"):
        geometry.index("lat")
    with pytest.raises(ValueError, match="Input 2 does not exist; there are 2 inputs"):
        geometry.index(2)


def test_unit_geometry_has_numbered_inputs_of_length_one():
    unit = Geometry.unit(3)
    assert unit.names == ("x1", "x2", "x3")
    np.testing.assert_array_equal(
        [unit.extent, unit.spacing, unit.centre], [[1] * 3, [1] * 3, [0] * 3]
    )
