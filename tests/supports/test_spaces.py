"""Inputs that are directions of one space: by name, by axis, or as given."""

import dataclasses

import numpy as np
import pytest

import mrgp
from mrgp.supports import Axis, Geometry

LON, LAT = Axis("longitude", 0.0, 0.01, "km"), Axis("latitude", 51.0, 0.01, "km")
ONE = np.zeros((1, 3))


@pytest.mark.parametrize(
    ("names", "spaces"),
    [
        (("lon", "lat", "time"), ((0, 1),)),
        (("time", "Latitude", "LONGITUDE"), ((1, 2),)),
        (("x", "hour", "y"), ((0, 2),)),
        (("East", "North", "day"), ((0, 1),)),
        (("easting", "time", "northing"), ((0, 2),)),
        (("x1", "x2", "x3"), ()),
        (("xs", "ys", "time"), ()),
        (("x", "north", "time"), ()),
        (("lon", "longitude", "lat"), ()),
    ],
)
def test_well_known_names_are_directions_of_one_space(names, spaces):
    assert mrgp.points(ONE, inputs=names).spaces == spaces


def test_axes_say_more_than_names():
    support = dataclasses.replace(
        mrgp.points(ONE, inputs=("time", "b", "a")), axes=(None, LAT, LON)
    )
    assert support.spaces == ((1, 2),)


MAKERS = {
    "points": lambda **more: mrgp.points(ONE, inputs=("a", "time", "b"), **more),
    "nodes": lambda **more: mrgp.nodes(ONE[None], inputs=("a", "time", "b"), **more),
    "boxes": lambda **more: mrgp.boxes(ONE, ONE + 1, inputs=("a", "time", "b"), **more),
    "product": lambda **more: mrgp.product(
        mrgp.points(ONE[:, :1], inputs="a"),
        mrgp.intervals([0.0], [1.0], inputs="time"),
        mrgp.nodes(ONE[None, :, :1], inputs="b"),
        **more,
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_space_is_given_by_names(name):
    support = MAKERS[name](space=("b", "a"))
    assert MAKERS[name]().spaces == ()
    assert support.spaces == ((0, 2),)
    assert Geometry.of([support[:1].shift(np.ones(3))]).spaces == ((0, 2),)
    assert support.collapse().spaces == support.quadrature().spaces == ((0, 2),)


def test_no_space_keeps_known_names_apart():
    assert mrgp.points(ONE, inputs=("lon", "lat", "time"), space=()).spaces == ()


def test_a_product_keeps_the_spaces_of_its_parts():
    time = mrgp.points(ONE[:, :1], inputs="time")
    places = mrgp.points(ONE[:, :2], inputs=("a", "b"), space=("a", "b"))
    assert mrgp.product(time, places).spaces == ((1, 2),)


@pytest.mark.parametrize(
    ("space", "text"),
    [
        ("ab", r"points: space= takes names of inputs.*A space has two of them or more; got 'ab'"),
        (("a",), r"A space has two of them or more; got \('a',\)"),
        (("a", "c"), r"the inputs are \('a', 'time', 'b'\). None is named 'c'"),
        ((("a", "b"), ("b", "time")), "An input is in one space, once"),
    ],
)
def test_wrong_spaces_say_what_is_wrong(space, text):
    with pytest.raises(ValueError, match=text):
        MAKERS["points"](space=space)


def observed(name, **more):
    return mrgp.Observations(MAKERS["points"](**more), [1.0], name=name)


def test_a_dataset_gives_all_sources_the_space_of_one():
    data = mrgp.Dataset([observed("one"), observed("two", space=("a", "b"))])
    assert data.spaces == (("a", "b"),)
    assert all(s.spaces == ((0, 2),) for s in data.supports)


def test_sources_whose_spaces_differ_are_refused():
    with pytest.raises(ValueError, match=r"'two'.*are \(a, time\), but .*'one'.*\(a, b\)"):
        mrgp.Dataset([observed("one", space=("a", "b")), observed("two", space=("a", "time"))])
