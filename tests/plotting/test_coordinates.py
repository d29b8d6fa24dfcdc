"""Inputs as the user knows them, colours of sources, and which slices there are."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import mrgp
from mrgp.plotting.colours import source_colours
from mrgp.plotting.coordinates import Coordinate, across_of, coordinates
from mrgp.plotting.sheets import without_outliers
from mrgp.plotting.slices import slices_of
from mrgp.supports import Axis

mpl.use("Agg")
import matplotlib.pyplot as plt

aspect = Coordinate.aspect


@pytest.fixture
def axes():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def hourly(zone="Europe/London", count=3):
    time = pd.date_range("2022-07-01 12:00", periods=count, freq="h", tz=zone)
    frame = pd.DataFrame({"lon": [-0.1] * count, "lat": [51.5] * count, "time": time, "no2": 1.0})
    return mrgp.from_frame(frame, ["lon", "lat", "time"], "no2", crs="EPSG:4326").support


def test_degrees_and_dates_come_back_as_they_were_read():
    found = coordinates(hourly())
    np.testing.assert_allclose(found["lon"].middle, -0.1)
    np.testing.assert_allclose(found["lat"].middle, 51.5)
    days = (pd.Timestamp("2022-07-01 11:00") - pd.Timestamp(0)) / pd.Timedelta("1D")
    np.testing.assert_allclose(found["time"].middle, days + np.arange(3) / 24, rtol=1e-12)
    assert [c.label for c in found.values()] == ["lon (°)", "lat (°)", "time (Europe/London)"]
    assert [c.distinct for c in found.values()] == [1, 1, 3]


def test_dates_are_said_and_ticked_in_their_zone(axes):
    time = coordinates(hourly(count=7))["time"]
    low, high = float(time.lower[0]), float(time.lower[1])
    assert time.words(low, low) == "2022-07-01 12:00"
    assert time.words(low, high) == "2022-07-01 12:00 to 13:00"
    axes.plot(time.middle, np.zeros(7))
    time.label_axis(axes, "x")
    axes.figure.canvas.draw()
    assert axes.get_xticklabels()[0].get_text() == "12:00"
    assert axes.get_xlabel() == "time (Europe/London)"


def test_a_degree_is_drawn_as_long_as_it_is_on_the_ground():
    found = coordinates(hourly())
    assert found["lon"].aspect(found["lat"]) == pytest.approx(1 / np.cos(np.radians(51.5)), 5e-3)
    plain = coordinates(mrgp.points([[0.0, 60.0], [1.0, 60.0]], inputs=("lon", "lat")))
    assert aspect(*plain.values()) == pytest.approx(2.0)
    flat = coordinates(mrgp.points([[0.0, 0.0], [1.0, 1.0]], inputs=("x", "y")))
    assert aspect(*flat.values()) == 1.0
    long = coordinates(mrgp.points([[0.0, 0.0], [900.0, 1.0]], inputs=("x", "depth")))
    assert aspect(*long.values()) == "auto"
    assert found["time"].aspect(found["lat"]) == "auto"


def test_slices_are_few_and_evenly_chosen_and_a_given_height_makes_none():
    place, hours = np.array([[0.0, 0.0], [1.0, 0.0]]), np.arange(10.0)
    x = np.array([[t, *p, p.sum()] for t in hours for p in place])
    support = mrgp.points(x, inputs=("hour", "x", "y", "height"))
    several = slices_of(support, ("x", "y"), 4)
    assert [s.words for s in several] == ["hour 0", "hour 3", "hour 6", "hour 9"]
    assert [s.words for s in slices_of(support, ("x", "y"), 1)] == ["hour 5"]
    assert several[1].rows(support).nonzero()[0].tolist() == [6, 7]


def test_a_slice_meets_windows_that_hold_it_and_not_those_that_touch():
    (noon,) = slices_of(mrgp.points([[12.0, 0.0]], inputs=("hour", "x")), ("x",), 1)
    windows = mrgp.boxes(
        [[0.0, 0.0], [11.0, 0.0], [12.0, 0.0]],
        [[12.0, 0.0], [13.0, 0.0], [24.0, 0.0]],
        inputs=("hour", "x"),
    )
    assert noon.rows(windows).tolist() == [False, True, True]
    whole = mrgp.boxes([[12.0, 0.0]], [[14.0, 0.0]], inputs=("hour", "x"))
    (window,) = slices_of(whole, ("x",), 1)
    assert window.words == "hour 12 to 14"
    assert window.rows(windows).tolist() == [False, True, True]
    points = mrgp.points([[11.9, 0.0], [12.0, 0.0], [13.9, 0.0], [14.0, 0.0]], inputs=("hour", "x"))
    assert window.rows(points).tolist() == [False, True, True, False]


def test_windows_that_overlap_are_told_apart_by_both_ends():
    start = np.arange(4.0)
    lower = np.column_stack([start, np.zeros(4)])
    running = mrgp.boxes(lower, lower + [24.0, 0.0], inputs=("hour", "x"))
    several = slices_of(running, ("x",), 4)
    assert [s.words for s in several] == [f"hour {h} to {h + 24}" for h in range(4)]
    assert [s.exactly.rows(running).tolist() for s in several] == np.eye(4, dtype=bool).tolist()
    assert several[1].rows(running).all()


def test_an_input_is_given_by_the_place_only_where_places_repeat():
    x = np.array([[t, t, t / 2] for t in range(5)], float)
    moving = mrgp.points(x, inputs=("hour", "x", "y"))
    (whole,) = slices_of(moving, ("x", "y"), 4)
    assert whole.words == "hour 0 to 4"
    assert whole.rows(moving).all()
    assert whole.exactly.rows(moving).all()
    others = mrgp.points([[-1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [4.5, 0.0, 0.0]], inputs=moving.inputs)
    assert whole.rows(others).tolist() == [False, True, False]


def test_dates_are_never_given_by_the_place():
    time = pd.DatetimeIndex(["2022-07-01 10:00", "2022-07-01 10:00", "2022-07-01 12:00"], tz="UTC")
    frame = pd.DataFrame({"lon": [0.0, 0.0, 0.1], "lat": [51.0, 51.0, 51.1], "time": time})
    support = mrgp.from_frame(frame, ["lon", "lat", "time"], crs="EPSG:4326")
    (whole,) = slices_of(support, ("lon", "lat"), 4)
    assert whole.words == "2022-07-01 10:00 to 12:00"


def test_a_section_at_one_site_is_drawn_over_what_varies():
    rows = [(h, d, 0.1, 51.5) for h in range(3) for d in range(4)]
    section = mrgp.points(np.array(rows, float), inputs=("hour", "depth", "lon", "lat"))
    assert across_of(coordinates(section)) == ("hour", "depth")
    assert across_of(coordinates(section[:1])) == ("lon", "lat")
    assert across_of(coordinates(mrgp.points(np.eye(4), inputs=section.inputs))) == ("lon", "lat")


def test_a_source_keeps_its_colour_and_no_source_has_that_of_a_prediction():
    names = [str(i) for i in range(6)]
    colours = source_colours(names, ["more"])
    assert len({colours[name] for name in names}) == 6
    assert colours["more"] == colours["0"]
    assert "#0072B2" not in colours.values()


def test_far_outliers_do_not_stretch_the_colours():
    values = np.linspace(0.0, 10.0, 101)
    assert without_outliers(values) == ((0.0, 10.0), "neither")
    (low, high), ends = without_outliers(np.concatenate([values, [-500.0, 500.0]]))
    assert ends == "both"
    assert -4 < low < 0.0 < 10.0 < high < 14


def test_zones_with_a_fixed_offset_are_ticked_too(axes):
    axis = Axis("time", 0.0, 3600.0, "h", "UTC+02:00")
    support = mrgp.points([[0.0], [6.0]], inputs="time")
    time = coordinates(support)["time"]._replace(axis=axis, lower=np.zeros(1), upper=np.zeros(1))
    time.label_axis(axes, "x")
    assert time.words(0.0, 0.0) == "1970-01-01 02:00"
