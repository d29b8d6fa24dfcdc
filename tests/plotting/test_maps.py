"""Predictions and datasets as pictures: what is where, in which units and coordinates."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mrgp
from mrgp.plotting import plot_dataset, plot_experts, plot_map, plot_prediction
from mrgp.prediction import Prediction

mpl.use("Agg")
import matplotlib.pyplot as plt

LON, LAT = np.linspace(-0.2, 0.2, 5), np.linspace(51.4, 51.6, 3)
HOURS = pd.date_range("2022-02-19 10:00", periods=6, freq="h", tz="UTC")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def predicted(support, mean, sd=2.0, task="no2", units="ug/m3", **more):
    one, mean = np.ones((1, len(mean))), np.asarray(mean, float)
    return Prediction(support, task, None, units, one, mean[None], sd**2 * one, **more)


def on_earth(hours=HOURS):
    rows = [(x, y, t) for t in hours for x in LON for y in LAT]
    frame = pd.DataFrame(rows, columns=["lon", "lat", "time"])
    return mrgp.from_frame(frame, ["lon", "lat", "time"], crs="EPSG:4326")


def sites(hours=HOURS):
    rows = [(x, 51.5, t, 10 * i + j) for i, t in enumerate(hours) for j, x in enumerate(LON[:3])]
    frame = pd.DataFrame(rows, columns=["lon", "lat", "time", "no2"])
    return mrgp.from_frame(
        frame, ["lon", "lat", "time"], "no2", crs="EPSG:4326", name="sites", units="ug/m3"
    )


def cells():
    start = HOURS[[0, 3]].tz_localize(None).to_numpy()
    grid = xr.DataArray(
        np.full((2, 1, 2), 5.0),
        {"lon": [-0.1, 0.1], "lat": [51.5], "time": start},
        ["lon", "lat", "time"],
    )
    windows = np.stack([start, start + np.timedelta64(3, "h")], 1)
    return mrgp.from_grid(
        grid,
        bounds={"time": windows, "lat": [51.4, 51.6]},
        crs="EPSG:4326",
        task="no2",
        name="cells",
        units="ug/m3",
    )


def maps_of(figure):
    return [axes for axes in figure.axes if axes.get_title()]


def labels_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_curve_over_dates_has_data_of_its_task_and_a_panel_of_the_threshold():
    frame = pd.DataFrame({"time": HOURS, "no2": np.arange(6.0)})
    spots = mrgp.from_frame(frame, "time", "no2", name="sites", units="ug/m3")
    frame["end"] = frame["time"] + pd.Timedelta("1h")
    means = mrgp.from_frame(
        frame, None, "no2", start="time", end="end", inputs="time", name="means", units="ug/m3"
    )
    found = predicted(spots.support, np.arange(6.0))
    figure = found.plot(mrgp.Dataset([spots, means]), exceedance=2.0)
    upper, lower = figure.axes
    day = (HOURS[0] - pd.Timestamp(0, tz="UTC")) / pd.Timedelta("1D")
    mean, dots, line = upper.get_lines()
    np.testing.assert_allclose(mean.get_xdata(), day + np.arange(6) / 24, rtol=1e-12)
    np.testing.assert_allclose(dots.get_ydata(), np.arange(6))
    assert set(line.get_ydata()) == {2.0}
    bars = upper.collections[-1].get_segments()
    np.testing.assert_allclose(bars[1], [[day + 1 / 24, 1], [day + 2 / 24, 1]])
    (share,) = lower.get_lines()
    np.testing.assert_allclose(share.get_ydata(), found.exceedance(2.0))
    assert share.get_ydata()[2] == pytest.approx(0.5)
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("no2 (ug/m3)", "P(no2 > 2 ug/m3)")
    assert lower.get_xlabel() == "time (UTC)"
    assert labels_of(figure) == ["95 % interval", "mean", "sites", "means", "threshold"]


def test_a_curve_at_one_place_has_the_data_of_that_place_alone():
    support = on_earth()
    here = support[np.flatnonzero(np.isclose(np.arange(len(support)) % 15, 1))]
    figure = plot_prediction(predicted(here, np.arange(6.0)), mrgp.Dataset([sites(), cells()]))
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "lon -0.2, lat 51.5"
    _, dots = axes.get_lines()
    np.testing.assert_allclose(dots.get_ydata(), [0, 10, 20, 30, 40, 50])
    bars = axes.collections[-1].get_segments()
    assert len(bars) == 2
    assert bars[0][1][0] - bars[0][0][0] == pytest.approx(3 / 24)


def test_maps_show_each_time_in_degrees_with_its_data_on_one_scale():
    support = on_earth()
    mean = np.arange(len(support), dtype=float) / 2
    data = mrgp.Dataset([sites(), cells()])
    figure = plot_prediction(predicted(support, mean), data, exceedance=20.0)
    panels = maps_of(figure)
    assert [axes.get_title() for axes in panels[:3]] == [
        f"{name}\n2022-02-19 10:00" for name in ("mean", "sd", "P(no2 > 20 ug/m3)")
    ]
    times = [axes.get_title().split("\n")[1] for axes in panels[::3]]
    assert times == [f"2022-02-19 {h}:00" for h in (10, 12, 13, 15)]
    first, last = panels[0], panels[9]
    field, markers, outlines = first.collections
    np.testing.assert_allclose(np.asarray(field.get_array()).ravel()[:5], np.arange(5) * 1.5)
    np.testing.assert_allclose(markers.get_array(), [0, 1, 2])
    np.testing.assert_allclose(np.asarray(markers.get_offsets())[:, 0], LON[:3])
    assert field.get_clim() == markers.get_clim() == last.collections[0].get_clim()
    np.testing.assert_allclose(last.collections[1].get_array(), [50, 51, 52])
    boxes = [path.get_extents() for path in outlines.get_paths()]
    assert sorted((round(b.x0, 6), round(b.x1, 6)) for b in boxes) == [(-0.2, 0.0), (0.0, 0.2)]
    assert first.get_aspect() == pytest.approx(1 / np.cos(np.radians(51.5)), rel=5e-3)
    assert (last.get_xlabel(), first.get_ylabel()) == ("lon (°)", "lat (°)")
    assert panels[2].collections[0].get_clim() == (0, 1)
    bars = {axes.get_ylabel() for axes in figure.axes if not axes.get_title()}
    assert bars == {"no2 (ug/m3)", "sd of no2 (ug/m3)", "probability"}
    assert labels_of(figure) == ["sites", "cells"]


def test_a_map_leaves_values_of_another_task_out_and_says_if_there_are_none():
    support = on_earth(HOURS[:1])
    data = mrgp.Dataset([sites(), sites().replace(task="o3")])
    figure = plot_prediction(predicted(support, np.arange(15.0)), data)
    assert len(maps_of(figure)[0].collections) == 2
    with pytest.raises(ValueError, match=r"data= has no values of 'pm10'.*it has \('no2', 'o3'\)"):
        plot_prediction(predicted(support, np.arange(15.0), task="pm10"), data)
    with pytest.raises(ValueError, match="one region or more; this one has none"):
        plot_prediction(predicted(support[:0], np.zeros(0)))


def test_scattered_places_are_markers_and_several_values_at_one_their_mean():
    x = np.array([[0.0, 0.0, 1.0], [0.0, 3.0, 2.0], [0.0, 5.0, 5.0]])
    support = mrgp.points(x, inputs=("hour", "x", "y"))
    figure = plot_prediction(predicted(support, [1.0, 2.0, 3.0]))
    mean, _ = maps_of(figure)
    np.testing.assert_allclose(mean.collections[0].get_offsets(), x[:, 1:])
    lower = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    windows = mrgp.boxes(lower, lower + [2.0, 1.0, 1.0], inputs=("hour", "x", "y"))
    x = [[0.0, 0.5, 0.5], [1.0, 0.5, 0.5], [2.0, 0.5, 0.5]]
    spots = mrgp.points(x, inputs=("hour", "x", "y"))
    data = mrgp.Dataset([mrgp.Observations(spots, [4.0, 6.0, 90.0], task="no2", name="sites")])
    drawn = maps_of(plot_prediction(predicted(windows, [1.0, 2.0, 3.0]), data))[0]
    np.testing.assert_allclose(drawn.collections[1].get_array(), [5.0])


def test_polygons_keep_their_outline_and_holes():
    shapely = pytest.importorskip("shapely")
    ring = shapely.box(0, 0, 4, 4).difference(shapely.box(1, 1, 2, 2))
    support = mrgp.polygons([ring, shapely.box(4, 0, 6, 2)], inputs=("x", "y"))
    figure, axes = plt.subplots()
    drawn = plot_map(axes, support, np.array([1.0, 3.0]))
    first, second = drawn.get_paths()
    assert first.contains_point((3.0, 3.0))
    assert len(first.to_polygons()) == 2
    assert second.get_extents().width == pytest.approx(2.0)
    assert axes.get_xlim() == (0.0, 6.0)
    figure.canvas.draw()


def test_a_dataset_along_one_input_has_a_panel_for_each_task():
    x = mrgp.points([[0.0], [1.0], [2.0]], inputs="day")
    spans = mrgp.intervals([0.0, 2.0], [2.0, 4.0], inputs="day")
    several = [
        mrgp.Observations(x, [1.0, np.nan, 3.0], task="no2", name="sites", units="ppb"),
        mrgp.Observations(spans, [2.0, 5.0], task="no2", name="means"),
        mrgp.Observations(spans, [7.0, 8.0], task="o3", name="means"),
    ]
    figure = mrgp.Dataset(several).plot()
    upper, lower = figure.axes
    np.testing.assert_array_equal(upper.get_lines()[0].get_xydata(), [[0, 1], [2, 3]])
    np.testing.assert_array_equal(upper.collections[0].get_segments()[1], [[2, 5], [4, 5]])
    assert (upper.get_ylabel(), lower.get_ylabel(), lower.get_xlabel()) == (
        "no2 (ppb)",
        "o3",
        "day",
    )
    assert labels_of(figure) == ["sites", "means"]
    colours = [tuple(axes.collections[0].get_colors()[0]) for axes in figure.axes]
    assert colours[0] == colours[1] == mpl.colors.to_rgba("#D55E00")


def test_a_dataset_over_two_inputs_has_a_row_of_a_task_and_a_map_of_each_source():
    lower = np.array([[0.0, 0.0], [2.0, 0.0]])
    grid = mrgp.boxes(lower, lower + 2, inputs=("x", "y"))
    spots = mrgp.points([[1.0, 1.0], [3.0, 1.5]], inputs=("x", "y"))
    several = [
        mrgp.Observations(spots, [1.0, 9.0], task="no2", name="sites", units="ppb"),
        mrgp.Observations(grid, [3.0, 4.0], task="no2", name="cells"),
        mrgp.Observations(grid, [30.0, 40.0], task="o3", name="cells"),
    ]
    figure = plot_dataset(mrgp.Dataset(several))
    first, second, third = maps_of(figure)
    assert [axes.get_title() for axes in (first, second, third)] == ["sites", "cells", "cells"]
    np.testing.assert_allclose(first.collections[0].get_offsets(), [[1, 1], [3, 1.5]])
    assert first.collections[0].get_clim() == second.collections[0].get_clim() == (1.0, 9.0)
    assert third.collections[0].get_clim() == (30.0, 40.0)
    assert len(second.collections[0].get_paths()) == 2
    assert first.get_xlim() == second.get_xlim()
    bars = [a.get_ylabel() for a in figure.axes if not a.get_title() and a.axison]
    assert bars == ["no2 (ppb)", "o3"]


def test_a_dataset_over_time_has_the_times_of_its_rarest_source():
    figure = plot_dataset(mrgp.Dataset([sites(), cells()]))
    panels = maps_of(figure)
    assert [axes.get_title() for axes in panels] == [
        f"{name}\n2022-02-19 {hours}"
        for name in ("sites", "cells")
        for hours in ("10:00 to 13:00", "13:00 to 16:00")
    ]
    # Three hourly values at each site fall into a window of three hours.
    np.testing.assert_allclose(panels[0].collections[0].get_array(), [10, 11, 12])
    np.testing.assert_allclose(panels[1].collections[0].get_array(), [40, 41, 42])
    assert panels[2].get_xlabel() == "lon (°)"


def test_a_site_inside_a_cell_is_drawn_along_time():
    hours = np.arange(3.0)
    inputs = ("hour", "x", "y")
    site = mrgp.points(np.column_stack([hours, np.ones(3), np.ones(3)]), inputs=inputs)
    lower = np.column_stack([hours, np.zeros(3), np.zeros(3)])
    cell = mrgp.boxes(lower, lower + [1.0, 2.0, 2.0], inputs=inputs)
    several = [mrgp.Observations(s, hours, name=n) for s, n in ((site, "site"), (cell, "cell"))]
    (axes,) = mrgp.Dataset(several).plot().axes
    assert axes.get_xlabel() == "hour"
    assert (len(axes.get_lines()), len(axes.collections[0].get_segments())) == (1, 3)
    apart = mrgp.points([[0.0, 5.0, 1.0]], inputs=inputs)
    far = mrgp.Observations(apart, [1.0], name="far")
    assert len(maps_of(mrgp.Dataset([several[0], far]).plot())) > 1


def test_times_without_values_say_so():
    late = sites(HOURS[:3])
    figure = plot_dataset(mrgp.Dataset([late, cells()]))
    assert [text.get_text() for text in maps_of(figure)[1].texts] == ["no values"]


def deep(support, count):
    names, x = ("sites", "sat"), np.linspace(0.0, 1.0, count)
    experts = {name: predicted(support, 10 * i + x) for i, name in enumerate(names)}
    weights = {"sites": x, "sat": 1 - x}
    return predicted(support, 5 + x, experts=experts, weights=weights)


def test_experts_on_maps_have_one_scale_and_weights_from_0_to_1():
    found = deep(on_earth(), 90)
    figure = found.plot(experts=True)
    panels = {axes.get_title(): axes for axes in maps_of(figure)}
    assert list(panels) == ["mixture", "sites", "sat", "weight of sites", "weight of sat"]
    assert len({panels[n].collections[0].get_clim() for n in ("mixture", "sites", "sat")}) == 1
    assert panels["weight of sat"].collections[0].get_clim() == (0, 1)
    shown = np.asarray(panels["weight of sat"].collections[0].get_array())
    np.testing.assert_allclose(shown.ravel()[0], found.weights["sat"][45])
    assert figure.get_suptitle() == "2022-02-19 13:00"
    with pytest.raises(ValueError, match="leave axes= out"):
        plot_experts(found, plt.subplots(2)[1])


def test_experts_have_the_colours_of_their_sources_in_other_pictures():
    support = mrgp.points(np.arange(4.0)[:, None], inputs="day")
    several = [
        mrgp.Observations(support, np.arange(4.0), task="no2", name=name)
        for name in ("other", "sat", "sites")
    ]
    data = mrgp.Dataset(several)
    found = deep(support, 4)
    drawn = {}
    for figure in (found.plot(data), found.plot(data, experts=True), data.plot()):
        for line in figure.axes[0].get_lines():
            drawn.setdefault(line.get_label(), set()).add(line.get_color())
    assert drawn["sat"] == {"#D55E00"}
    assert drawn["sites"] == {"#009E73"}
    assert drawn["mean"] == drawn["mixture"] == {"#0072B2"}
