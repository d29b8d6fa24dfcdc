"""Data frames: what comes in is what comes out, whatever the unit, the zone or the CRS."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

import mrgp
from mrgp.supports import Axis, Boxes, Points

HOURS = Axis("time", 0.0, 3600.0, "h", "Europe/London")
TIMES = pd.date_range("2018-06-18 09:30", periods=4, freq="h", tz="Europe/London", unit="ns")
QUICK = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)


def sensors():
    return pd.DataFrame(
        {
            "time": TIMES,
            "site": list("abab"),
            "depth": [1.0, 2.5, 1.0, 2.5],
            "no2": [7.5, np.nan, 5.9, 8.0],
            "pm10": [20.0, 21.0, np.nan, 19.5],
            "error": [0.5, 0.25, 0.5, 1.0],
        }
    )


def windows():
    frame = sensors().rename(columns={"time": "time_start"})
    return frame.assign(time_end=frame["time_start"] + pd.Timedelta("90min"))


def test_points_of_dates_and_numbers():
    o = mrgp.from_frame(sensors(), ["time", "depth"], "no2", name="laqn", units="ug/m3")
    assert isinstance(o.support, Points)
    assert (o.task, o.name, o.units) == ("no2", "laqn", "ug/m3")
    assert o.support.inputs == ("time", "depth")
    assert o.support.axes == (HOURS, None)
    # 08:30 UTC, counted by hand: 17700 days from 1970-01-01 to 2018-06-18.
    np.testing.assert_array_equal(o.support.x[:, 0], 17700 * 24 + 8.5 + np.arange(4))
    np.testing.assert_array_equal(o.support.x[:, 1], [1, 2.5, 1, 2.5])
    np.testing.assert_array_equal(o.y, [7.5, np.nan, 5.9, 8.0])


def test_windows_are_boxes_flat_along_points():
    o = mrgp.from_frame(windows(), "depth", "no2", start="time_start", end="time_end")
    assert isinstance(o.support, Boxes)
    assert o.support.inputs == ("depth", "time")
    assert o.support.flat == (True, False)
    np.testing.assert_array_equal(o.support.upper - o.support.lower, [[0, 1.5]] * 4)


@pytest.mark.parametrize(
    ("start", "name"),
    [
        ("time_start", "time"),
        ("start_time", "time"),
        ("hour_lower", "hour"),
        ("LonMin", "Lon"),
        ("startTime", "Time"),
        ("Start of hour", "of hour"),
        ("lat min", "lat"),
        ("minute", "minute"),
        ("Minute", "Minute"),
        ("started_at", "started_at"),
        ("admin", "admin"),
        ("flower", "flower"),
        ("start", "start"),
        ("begin", "begin"),
    ],
)
def test_a_window_is_named_by_its_start(start, name):
    frame = pd.DataFrame({start: [0.0, 1.0], "until": [1.0, 2.0], "y": [1.0, 2.0]})
    assert mrgp.from_frame(frame, y="y", start=start, end="until").support.inputs == (name,)


def test_a_nameless_window_of_dates_is_time():
    frame = windows().rename(columns={"time_start": "start"})
    assert mrgp.from_frame(frame, start="start", end="time_end").inputs == ("time",)


def test_several_windows_are_boxes():
    frame = pd.DataFrame({"a0": [0.0, 1], "b0": [5.0, 6], "a1": [1.0, 3], "b1": [5.0, 7]})
    support = mrgp.from_frame(frame, start=["a0", "b0"], end=["a1", "b1"], kind="sum")
    np.testing.assert_array_equal(support.lower, [[0, 5], [1, 6]])
    np.testing.assert_array_equal(support.upper, [[1, 5], [3, 7]])
    np.testing.assert_array_equal(support.total, [1, 2])


def test_inputs_can_be_named_and_ordered():
    frame = windows()

    def inputs(given):
        return mrgp.from_frame(frame, "depth", start="time_start", end="time_end", inputs=given)

    turned = inputs(("time", "depth"))
    assert turned.inputs == ("time", "depth")
    assert turned.flat == (False, True)
    assert turned.axes == (HOURS, None)
    renamed = inputs(("z", "t"))
    assert renamed.inputs == ("z", "t")
    assert renamed.flat == (True, False)
    assert inputs({"depth": "z"}).inputs == ("z", "time")


def test_several_tasks_share_a_support():
    no2, pm10 = mrgp.from_frame(
        sensors(),
        "time",
        ["no2", "pm10"],
        task={"pm10": "dust"},
        units=["ppb", "ug/m3"],
        noise_variance={"no2": "error", "pm10": 4.0},
        name="laqn",
    )
    assert no2.support is pm10.support
    assert [o.task for o in (no2, pm10)] == ["no2", "dust"]
    assert [o.units for o in (no2, pm10)] == ["ppb", "ug/m3"]
    np.testing.assert_array_equal(no2.noise_variance, [0.5, 0.25, 0.5, 1.0])
    np.testing.assert_array_equal(pm10.noise_variance, [4.0] * 4)
    assert pm10.observed.tolist() == [True, True, False, True]
    assert isinstance(mrgp.from_frame(sensors(), "time", ["no2"]), tuple)


@pytest.mark.parametrize("several", [list, tuple, np.array, pd.Index, pd.Series])
def test_columns_may_come_in_any_sequence(several):
    made = mrgp.from_frame(
        sensors(),
        several(["time", "depth"]),
        several(["no2", "pm10"]),
        task=several(["gas", "dust"]),
        noise_variance=several(["error", "depth"]),
    )
    assert [o.task for o in made] == ["gas", "dust"]
    np.testing.assert_array_equal(made[1].y, sensors()["pm10"])
    np.testing.assert_array_equal(made[1].noise_variance, sensors()["depth"])
    assert made[0].support.inputs == ("time", "depth")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_of_any_resolution_are_the_same_numbers(unit):
    frame = sensors()
    frame["time"] = frame["time"].dt.as_unit(unit)
    support = mrgp.from_frame(frame, "time")
    np.testing.assert_array_equal(support.x[:, 0], 17700 * 24 + 8.5 + np.arange(4))


@pytest.mark.parametrize(
    ("unit", "step"), [("s", 3600.0), ("min", 60.0), ("h", 1.0), ("D", 1 / 24)]
)
def test_time_units(unit, step):
    support = mrgp.from_frame(sensors(), "time", time_unit=unit)
    np.testing.assert_allclose(np.diff(support.x[:, 0]), step, rtol=1e-9)
    assert support.axes[0].unit == unit


@pytest.mark.parametrize(
    "dates",
    [
        [datetime.datetime(2018, 6, 18, 8, 30), datetime.datetime(2018, 6, 19)],
        [datetime.date(2018, 6, 18), datetime.date(2018, 6, 19)],
    ],
    ids=["datetime", "date"],
)
def test_python_dates_without_a_zone_are_utc(dates):
    frame = pd.DataFrame({"time": pd.Series(dates, dtype=object)})
    support = mrgp.from_frame(frame, "time")
    assert support.axes[0].zone is None
    expected = pd.to_datetime(frame["time"]).dt.tz_localize("UTC")
    first = (expected.iloc[0] - pd.Timestamp(0, tz="UTC")) / pd.Timedelta("1h")
    assert support.x[0, 0] == first


def test_arrow_columns():
    pytest.importorskip("pyarrow")
    frame = sensors()[["time", "no2"]].convert_dtypes(dtype_backend="pyarrow")
    frame["time"] = frame["time"].astype("timestamp[ns, tz=Europe/London][pyarrow]")
    o = mrgp.from_frame(frame, "time", "no2")
    plain = mrgp.from_frame(sensors(), "time", "no2")
    np.testing.assert_array_equal(o.y, plain.y)
    np.testing.assert_array_equal(o.support.x, plain.support.x)
    assert o.support.axes == plain.support.axes


def test_the_hour_that_comes_twice_is_two_hours():
    utc = pd.date_range("2018-10-28 00:30", periods=2, freq="h", tz="UTC", unit="ns")
    frame = pd.DataFrame({"time": utc.tz_convert("Europe/London"), "y": [1.0, 2.0]})
    assert set(frame["time"].dt.strftime("%H:%M")) == {"01:30"}
    o = mrgp.from_frame(frame, "time", "y")
    assert np.diff(o.support.x[:, 0]) == 1.0
    pd.testing.assert_frame_equal(o.to_frame(), frame)


def test_periods_are_windows_from_their_start_to_the_next():
    frame = pd.DataFrame({"month": pd.period_range("2018-01", periods=3, freq="M"), "y": [1.0] * 3})
    o = mrgp.from_frame(frame, y="y", start="month", time_unit="D")
    assert o.support.inputs == ("month",)
    np.testing.assert_array_equal((o.support.upper - o.support.lower)[:, 0], [31, 28, 31])
    same = mrgp.from_frame(frame, y="y", start="month", end="month", time_unit="D")
    np.testing.assert_array_equal(same.support.upper, o.support.upper)


def test_numbers_of_many_types():
    for values in (
        pd.array([1, None, 3], dtype="Int64"),
        pd.Series([1, None, 3], dtype=object),
        pd.Series([decimal.Decimal(1), None, decimal.Decimal(3)], dtype=object),
        np.array([1, np.nan, 3], dtype=np.float32),
    ):
        o = mrgp.from_frame(pd.DataFrame({"x": [1, 2, 3], "y": values}), "x", "y")
        np.testing.assert_array_equal(o.y, [1, np.nan, 3])


def test_levels_of_the_index_are_columns():
    frame = sensors().set_index("time")
    support = mrgp.from_frame(frame, ["time", "depth"])
    np.testing.assert_array_equal(support.x, mrgp.from_frame(sensors(), ["time", "depth"]).x)


def test_points_come_back_as_they_were():
    frame = sensors()[["time", "depth", "no2"]]
    back = mrgp.from_frame(frame, ["time", "depth"], "no2", name="laqn", units="ppb").to_frame()
    assert str(back["time"].dtype) == "datetime64[ns, Europe/London]"
    pd.testing.assert_frame_equal(back, frame)
    assert back.attrs == {"task": "no2", "source": "laqn", "units": "ppb"}


def test_windows_come_back_as_they_were():
    frame = windows()[["depth", "time_start", "time_end", "no2"]].assign(noise_variance=0.5)
    o = mrgp.from_frame(
        frame,
        "depth",
        "no2",
        start="time_start",
        end="time_end",
        noise_variance="noise_variance",
        time_unit="D",
    )
    pd.testing.assert_frame_equal(o.to_frame(), frame)


def test_boxes_come_back_and_go_in_again():
    boxes = mrgp.boxes([[0.0, 1.0]], [[2.0, 1.0]], inputs=("a", "b"))
    frame = mrgp.Observations(boxes, [3.0], task="t").to_frame()
    assert list(frame) == ["a_lower", "a_upper", "b", "t"]
    again = mrgp.from_frame(frame, "b", "t", start="a_lower", end="a_upper", inputs=("a", "b"))
    assert again.support.inputs == ("a", "b")
    np.testing.assert_array_equal(again.support.upper, boxes.upper)


@pytest.mark.parametrize(
    "zone",
    [None, "UTC", "Asia/Kathmandu", datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))],
)
def test_zones_come_back(zone):
    times = TIMES.tz_convert("UTC").tz_localize(None)
    frame = pd.DataFrame({"time": times if zone is None else times.tz_localize(zone), "y": 1.0})
    back = mrgp.from_frame(frame, "time", "y").to_frame()
    assert (back["time"] == frame["time"]).all()
    assert str(back["time"].dt.tz) == str(frame["time"].dt.tz)


def test_microseconds_and_far_dates_come_back():
    times = np.array(["1650-01-01T00:00:00.000001", "2999-12-31T23:59:59.999999"], "M8[us]")
    frame = pd.DataFrame({"time": times, "y": [1.0, 2.0]})
    for unit in ("s", "h", "D"):
        back = mrgp.from_frame(frame, "time", "y", time_unit=unit).to_frame()
        gap = (back["time"] - frame["time"]).abs().max()
        assert gap <= pd.Timedelta("1us"), unit


@pytest.mark.filterwarnings("error")
def test_fit_on_one_frame_and_predict_on_another_in_another_unit_and_zone():
    rng = np.random.default_rng(0)
    times = pd.date_range("2018-06-18", periods=40, freq="h", tz="Europe/London")
    frame = pd.DataFrame({"time": times, "no2": 20 + np.sin(np.arange(40) / 3)})
    data = mrgp.Dataset([mrgp.from_frame(frame, "time", "no2", units="ppb")])
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK)
    rows = rng.permutation(40)[:10]
    other = pd.DataFrame({"time": times[rows].tz_convert("America/New_York").as_unit("ns")})
    here = mrgp.predict(fit, mrgp.from_frame(frame.iloc[rows], "time"))
    there = mrgp.predict(fit, mrgp.from_frame(other, "time", time_unit="D"))
    np.testing.assert_allclose(there.mean, here.mean, rtol=1e-6)
    np.testing.assert_allclose(there.std, here.std, rtol=1e-5)
    table = there.to_frame(level=0.5)
    assert list(table) == ["time", "mean", "std", "lower_50", "upper_50"]
    assert table.attrs == {"task": "no2", "source": None, "units": "ppb"}
    pd.testing.assert_series_equal(table["time"], other["time"])
    np.testing.assert_array_equal(table["lower_50"], there.interval(0.5)[0])


def test_predictions_on_plain_numbers_are_shown_on_the_axes_of_the_fit():
    frame = pd.DataFrame({"time": TIMES, "no2": [1.0, 2.0, 3.0, 4.0]})
    fit = mrgp.fit(
        mrgp.MRGP(), mrgp.Dataset([mrgp.from_frame(frame, "time", "no2")]), optimiser=QUICK
    )
    support = mrgp.from_frame(frame, "time")
    with pytest.warns(
        UserWarning,
        match="predict: the input 'time' is in plain numbers, which are taken as h since 1970-01-01"
        " UTC, as the fit has it. Read it with from_frame",
    ):
        table = mrgp.predict(fit, mrgp.points(support.x)).to_frame()
    pd.testing.assert_series_equal(table["time"], frame["time"])


def test_a_loaded_fit_remembers_its_axes(tmp_path):
    frame = pd.DataFrame({"time": TIMES, "no2": [1.0, 2.0, 3.0, 4.0]})
    data = mrgp.Dataset([mrgp.from_frame(frame, "time", "no2")])
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK)
    mrgp.save(fit, tmp_path / "fit")
    loaded = mrgp.load(tmp_path / "fit")
    days = mrgp.from_frame(frame, "time", time_unit="D")
    np.testing.assert_allclose(
        mrgp.predict(loaded, days).mean, mrgp.predict(fit, days).mean, rtol=1e-12
    )


def test_dates_do_not_meet_plain_numbers_in_silence():
    plain = mrgp.Dataset([mrgp.Observations(mrgp.points(np.arange(4.0)[:, None]), np.arange(4.0))])
    fit = mrgp.fit(mrgp.MRGP(), plain, optimiser=QUICK)
    with pytest.raises(ValueError, match="predict: the input 'time' is time, but plain numbers"):
        mrgp.predict(fit, mrgp.from_frame(sensors(), "time"))


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"x": "tim"}, ValueError, r"there is no column 'tim'\. Did you mean 'time'\? The col"),
        ({"x": "Depth"}, ValueError, "no column 'Depth'. Did you mean 'depth'"),
        ({"x": "qqq"}, ValueError, r"there is no column 'qqq'\. The columns are 'time', 'site'"),
        ({"x": None}, ValueError, "say where the values are: x= for columns of coordinates"),
        ({"y": "site"}, TypeError, "column 'site' must be numbers.* got string .'a' and others"),
        ({"x": "site"}, TypeError, "'site' must be numbers.*pandas.to_datetime if these are dates"),
        ({"y": "time"}, TypeError, "column 'time' must be numbers.* got datetime"),
        ({"x": ["time", "time"]}, ValueError, "'time' is given twice. Name them with inputs="),
        ({"x": ["time"], "inputs": ("a", "b")}, ValueError, r"each of the 1 inputs needs .*\('a'"),
        ({"inputs": {"lon": "x"}}, ValueError, r"inputs= renames 'lon', but the inputs are \('ti"),
        ({"start": "time"}, ValueError, "start='time' needs end=, the column of where windows end"),
        ({"start": "time", "end": ["a", "b"]}, ValueError, "start= and end= need as many columns"),
        ({"start": "time", "end": "depth"}, TypeError, "one of 'time' and 'depth' holds dates and"),
        ({"time_unit": "week"}, ValueError, r"time_unit= is one of \('s', 'min', 'h', 'D'\)"),
        ({"task": ["a", "b"], "y": ["no2"]}, ValueError, "task= needs one for each of y="),
        ({"task": "a", "y": ["no2", "pm10"]}, ValueError, "2 columns cannot all be the task 'a'"),
        ({"units": {"so2": "ppb"}}, ValueError, "units= names 'so2', which is not among y='no2'"),
        ({"noise_variance": "eror"}, ValueError, "no column 'eror'. Did you mean 'error'"),
        ({"crs": "EPSG:4326"}, ValueError, "crs= needs one input named as one of .*'longitude'"),
    ],
)
def test_wrong_arguments_are_named(options, error, text):
    with pytest.raises(error, match=f"from_frame: .*{text}"):
        mrgp.from_frame(sensors(), **({"x": "time", "y": "no2"} | options))


MIXED = [datetime.datetime(2018, 1, 1), datetime.datetime(2018, 1, 1, tzinfo=datetime.UTC)]


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("frame", "options", "error", "text"),
    [
        (np.ones((2, 2)), {}, TypeError, "takes a pandas DataFrame first; got ndarray"),
        (sensors()[:0], {}, ValueError, "the frame has no rows. Leave the source out"),
        (
            pd.concat([sensors(), sensors()], axis=1),
            {},
            ValueError,
            "2 columns are named 'time'. Rename them",
        ),
        (
            sensors().assign(time=TIMES.where([True, False, True, False])),
            {},
            ValueError,
            r"'time' is NaT in 2 of 4 rows, first in row 1.*frame.dropna\(subset=\['time'\]\)",
        ),
        (
            sensors().assign(depth=[1.0, 2.0, np.nan, np.inf]),
            {"x": "depth"},
            ValueError,
            "column 'depth' is NaN or infinite in 2 of 4 rows, first in row 2",
        ),
        (
            sensors().assign(time=TIMES.strftime("%Y-%m-%d")),
            {},
            TypeError,
            "column 'time' must be numbers.* got string.*pandas.to_datetime if these are dates",
        ),
        (
            sensors().assign(depth=pd.Categorical(list("abab"))),
            {"x": "depth"},
            TypeError,
            "column 'depth' is categorical, but must be numbers",
        ),
        (
            sensors().assign(no2=pd.Series([1, "x", 2, 3], dtype=object)),
            {},
            TypeError,
            "column 'no2' must be numbers.* got mixed-integer .*pandas.to_numeric",
        ),
        (
            sensors().assign(depth=TIMES - TIMES[0]),
            {"x": "depth"},
            TypeError,
            "column 'depth' holds durations. Turn them into numbers",
        ),
        (
            pd.DataFrame({"time": pd.period_range("2018", periods=2, freq="D"), "no2": [1.0, 2.0]}),
            {},
            TypeError,
            "column 'time' holds periods, which are windows, not points. Give it as start='time'",
        ),
        (
            pd.DataFrame({"time": pd.Series(MIXED, dtype=object), "no2": [1.0, 2.0]}),
            {},
            ValueError,
            r"the dates of column 'time' do not go together .* utc=True\)",
        ),
        (
            windows().assign(time_end=TIMES - pd.Timedelta("1h")),
            {"x": None, "start": "time_start", "end": "time_end"},
            ValueError,
            r"'time_end' is before 'time_start' in 4 of 4 rows, first in row 0 \(2018-06-18 09:30:0"
            r"0\+01:00 to 2018-06-18 08:30:00\+01:00\). Swap them",
        ),
        (
            windows().assign(time_end=TIMES.tz_localize(None)),
            {"x": None, "start": "time_start", "end": "time_end"},
            ValueError,
            "'time_start' is in time zone Europe/London, but 'time_end' in None. Bring them to one",
        ),
        (
            windows().assign(time=TIMES),
            {"start": "time_start", "end": "time_end"},
            ValueError,
            "'time' is given twice",
        ),
    ],
)
def test_wrong_frames_are_named(frame, options, error, text):
    with pytest.raises(error, match=f"from_frame.*{text}"):
        mrgp.from_frame(frame, **({"x": "time", "y": "no2"} | options))


def test_an_input_named_as_a_value_is_refused():
    o = mrgp.Observations(mrgp.points([[1.0]], inputs="no2"), [1.0], task="no2")
    with pytest.raises(ValueError, match="to_frame: an input and a value are both named 'no2'"):
        o.to_frame()
