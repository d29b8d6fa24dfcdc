"""Parts of the data in which places and times are whole."""

import numpy as np
import pytest

import mrgp
from mrgp.data import excerpt, stretch

INPUTS = ("time", "east", "north")


def network(sites, cells, hours):
    """Sites at random places and a square grid of cells, every hour."""
    rng = np.random.default_rng(1)
    places = rng.uniform(0, cells, (sites, 2))
    x = np.array([[t, *p] for t in range(hours) for p in places])
    corners = np.array([[i, j] for i in range(cells) for j in range(cells)], float)
    lower = np.array([[t, *c] for t in range(hours) for c in corners])
    seen = mrgp.Observations(mrgp.points(x, inputs=INPUTS), x[:, 1], name="sites")
    boxes = mrgp.boxes(lower, lower + [0.0, 1.0, 1.0], inputs=INPUTS)
    return mrgp.Dataset([seen, mrgp.Observations(boxes, lower[:, 1], name="cells")]), places


def test_few_places_and_values_are_all_kept():
    data, _ = network(5, 3, 4)
    assert [len(o) for o in excerpt(data, 20, 1000)] == [20, 36]


def test_every_site_keeps_the_cell_that_it_lies_in():
    data, places = network(6, 8, 3)
    cells = excerpt(data, 20, 10_000)["cells"]
    kept = {tuple(corner) for corner in np.asarray(cells.support.bounds[0])[:, 1:]}
    assert len(kept) == 14
    assert {tuple(corner) for corner in np.floor(places)} <= kept
    # Those that are kept have all of their hours.
    assert len(cells) == 3 * len(kept)


def test_regions_have_half_of_the_places_where_sites_are_many():
    data, _ = network(50, 8, 3)
    sites, cells = excerpt(data, 20, 10_000)
    assert (len(sites), len(cells)) == (3 * 20, 3 * 10)


def test_a_stretch_of_time_has_every_place_that_is_kept():
    data, _ = network(4, 3, 30)
    sites, cells = excerpt(data, 10, 60)
    hours = np.unique(sites.support.centres[:, 0])
    assert len(hours) == 6
    assert 0 < hours[0] < hours[-1] < 29
    assert (len(sites), len(cells)) == (4 * 6, 6 * 6)


def test_other_draws_are_other_places():
    data, _ = network(50, 2, 2)
    first, again, other = (excerpt(data, 10, 10_000, key)["sites"].y for key in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("most", [50, 100, 150, 250, 899])
def test_a_stretch_has_at_most_so_many_values_or_one_time(most):
    x = np.array([[float(t), float(p), 0.0] for t in range(9) for p in range(100)])
    seen = mrgp.Observations(mrgp.points(x, inputs=INPUTS), x[:, 0], name="sites")
    (found,) = stretch(mrgp.Dataset([seen]), most)
    assert len(found) == max(100, most // 100 * 100)
    assert found.y.min() > 0 or len(found) == 800
