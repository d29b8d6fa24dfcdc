"""What a picture says of values: sums as such, gaps as gaps, and no argument without effect."""

import warnings

import matplotlib as mpl
import numpy as np
import pytest
from scipy.stats import poisson

import mrgp
from mrgp.distributions import COUNTS
from mrgp.plotting import plot_data, plot_experts, plot_function, plot_posteriors, plot_prediction
from mrgp.plotting.sheets import with_points
from mrgp.plotting.slices import Slice
from mrgp.prediction import Prediction

mpl.use("Agg")
import matplotlib.pyplot as plt

GRID = np.array([[x, y] for x in range(3) for y in range(3)], float)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def predicted(support, mean, task="no2", **more):
    one = np.ones((1, len(mean)))
    mean = np.asarray(mean, float)[None]
    return Prediction(support, task, None, None, one, mean, one, **more)


def deep(support, mean):
    experts = {name: predicted(support, mean) for name in ("sites", "sat")}
    weights = {"sites": np.full(len(mean), 0.25), "sat": np.full(len(mean), 0.75)}
    return predicted(support, mean, experts=experts, weights=weights)


def along(x, inputs="hour"):
    return mrgp.points(np.asarray(x, float)[:, None], inputs=inputs)


def titled(figure):
    return [axes for axes in figure.axes if axes.get_title()]


def running():
    lower = np.array([[h, x, y] for h in range(4) for x in range(2) for y in range(2)], float)
    return mrgp.boxes(lower, lower + [24.0, 1.0, 1.0], inputs=("hour", "x", "y"))


def test_running_means_are_not_averaged_with_one_another():
    support = running()
    values = np.repeat([0.0, 10.0, 20.0, 30.0], 4)
    means = [a for a in titled(predicted(support, values).plot()) if a.get_title()[:4] == "mean"]
    assert [set(a.collections[0].get_array()) for a in means] == [{0}, {10}, {20}, {30}]
    shown = titled(deep(support, values).plot(experts=True))[0]
    assert set(shown.collections[0].get_array()) == {20}
    data = mrgp.Dataset([mrgp.Observations(support, values, name="daily")])
    shown = [set(a.collections[0].get_array()) for a in titled(data.plot())]
    assert shown == [{0}, {10}, {20}, {30}]


def test_a_sensor_that_moves_has_its_window_in_the_title():
    way = mrgp.points([[t, t, t % 3] for t in np.arange(6.0)], inputs=("hour", "x", "y"))
    mean, _ = titled(predicted(way, np.arange(6.0)).plot())
    assert mean.get_title() == "mean\nhour 0 to 5"
    assert len(mean.collections[0].get_offsets()) == 6
    data = mrgp.Dataset([mrgp.Observations(way, np.arange(6.0), name="bus")])
    assert [a.get_title() for a in titled(data.plot())] == ["bus\nhour 0 to 5"]


def test_tasks_seen_at_different_times_have_times_of_their_own():
    def at(hours, task):
        x = [[h, *place] for h in hours for place in GRID]
        support = mrgp.points(x, inputs=("hour", "x", "y"))
        return mrgp.Observations(support, np.arange(len(x)), task=task, name="sites")

    figure = mrgp.Dataset([at([0, 1, 2], "no2"), at([50, 51], "o3")]).plot()
    titles = [axes.get_title() for axes in titled(figure)]
    assert titles == [f"sites\nhour {h}" for h in (0, 1, 2, 50, 51)]
    # The last map of each column has the labels, though a panel below is empty.
    first, second, third, fourth, _ = titled(figure)
    assert (first.get_xlabel(), third.get_xlabel(), fourth.get_xlabel()) == ("", "x", "x")
    assert (first.get_ylabel(), second.get_ylabel(), fourth.get_ylabel()) == ("y", "", "y")


def test_the_first_map_of_a_row_has_the_label_though_a_panel_before_is_empty():
    spots = mrgp.points(GRID, inputs=("x", "y"))
    several = [
        mrgp.Observations(spots, np.arange(9.0), task=task, name=name)
        for task, name in (("no2", "sites"), ("o3", "sat"))
    ]
    sites, sat = titled(mrgp.Dataset(several).plot())
    assert (sites.get_xlabel(), sites.get_ylabel()) == ("x", "y")
    assert (sat.get_xlabel(), sat.get_ylabel()) == ("x", "y")
    assert sat.yaxis.get_tick_params()["labelleft"]


def test_sections_of_several_sites_are_maps_of_the_sites():
    def at(x, name):
        rows = [[h, d, x, 0.0] for h in range(2) for d in range(2)]
        support = mrgp.points(rows, inputs=("hour", "depth", "x", "y"))
        return mrgp.Observations(support, np.arange(4.0), name=name)

    (axes,) = titled(mrgp.Dataset([at(0.0, "one")]).plot())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("hour", "depth")
    figure = mrgp.Dataset([at(0.0, "one"), at(1.0, "two")]).plot()
    assert {axes.get_xlabel() for axes in titled(figure)} == {"", "x"}


def test_steps_that_grow_are_no_gaps():
    x = np.geomspace(1.0, 1000.0, 50)
    axes = plot_function(predicted(along(x), x), plt.subplots()[1])
    (mean,) = axes.get_lines()
    np.testing.assert_array_equal(mean.get_xdata(), x)


def test_what_stands_alone_is_a_dot_with_a_bar():
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 40.0, 80.0, 81.0, 82.0, 83.0])
    axes = plot_function(predicted(along(x), x), plt.subplots()[1], truth=x)
    mean, dot, _, true = axes.get_lines()
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(mean.get_xdata())), [5, 7])
    np.testing.assert_array_equal(dot.get_xydata(), [[40, 40]])
    np.testing.assert_array_equal(true.get_xydata(), [[40, 40]])
    ((low, high),) = axes.collections[1].get_segments()
    np.testing.assert_allclose([low, high], [[40, 40 - 1.96], [40, 40 + 1.96]], atol=1e-3)


def test_one_region_is_seen_in_every_picture():
    found = deep(along([3.0]), [5.0])
    upper, lower = found.plot(exceedance=4.0).axes
    np.testing.assert_array_equal(upper.get_lines()[1].get_xydata(), [[3, 5]])
    assert lower.get_lines()[1].get_ydata() == pytest.approx(found.exceedance(4.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        upper, lower = plot_experts(found)
    bars = [bar.get_segments()[0][:, 1] for bar in lower.collections[-2:]]
    np.testing.assert_allclose(bars, [[0.0, 0.25], [0.25, 1.0]])


def daily(kind="sum"):
    days = mrgp.intervals([0.0, 24.0], [24.0, 48.0], inputs="hour", kind=kind)
    return mrgp.Observations(days, [240.0, 480.0], task="no2", name="daily")


def test_sums_are_drawn_per_unit_and_called_so():
    found = predicted(along(np.arange(48.0)), np.full(48, 10.0))
    data = mrgp.Dataset([daily()])
    for axes in (found.plot(data).axes[0], data.plot().axes[0]):
        np.testing.assert_array_equal(
            [bar[0, 1] for bar in axes.collections[-1].get_segments()], [10.0, 20.0]
        )
        assert axes.get_legend_handles_labels()[1][-1] == "daily (sum per unit)"
    lower = np.array([[0.0, 0.0], [2.0, 0.0]])
    cells = mrgp.boxes(lower, lower + 2, inputs=("x", "y"), kind="sum")
    spots = mrgp.Observations(mrgp.points(GRID, inputs=("x", "y")), np.arange(9.0), name="spots")
    data = mrgp.Dataset([mrgp.Observations(cells, [12.0, 20.0], name="sums"), spots])
    sums, _ = titled(data.plot())
    assert sums.get_title() == "sums (sum per unit)"
    np.testing.assert_allclose(sums.collections[0].get_array(), [3.0, 5.0])
    assert sums.collections[0].get_clim() == (0.0, 8.0)
    axes = plt.subplots()[1]
    plot_data(axes, data)
    np.testing.assert_allclose(axes.collections[0].get_array(), [3.0, 5.0])


def test_predicted_sums_have_a_scale_of_their_own():
    found = predicted(daily().support, [240.0, 480.0])
    axes = found.plot(mrgp.Dataset([daily()])).axes[0]
    assert axes.get_ylabel() == "sum of no2"
    assert [bar[0, 1] for bar in axes.collections[-1].get_segments()] == [240.0, 480.0]
    assert axes.get_legend_handles_labels()[1][-1] == "daily"
    spots = mrgp.Observations(along([1.0, 2.0]), [10.0, 11.0], task="no2", name="spots")
    with pytest.raises(ValueError, match=r"points or means, of \['spots'\].* is of sums"):
        found.plot(mrgp.Dataset([daily(), spots]))


def test_arguments_that_a_picture_has_no_place_for_are_refused():
    flat, line = mrgp.points(GRID, inputs=("x", "y")), along(np.arange(9.0))
    for support in (flat, line):
        found = deep(support, np.arange(9.0))
        for more in ({"exceedance": 3.0}, {"truth": np.arange(9.0)}):
            with pytest.raises(ValueError, match="without exceedance= and truth="):
                found.plot(experts=True, **more)
    with pytest.raises(ValueError, match=r"truth= is drawn beside a curve.*over \('x', 'y'\)"):
        plot_prediction(predicted(flat, np.arange(9.0)), truth=np.arange(9.0))
    other = mrgp.Dataset([mrgp.Observations(line, np.arange(9.0), task="o3", name="sites")])
    for draw in (plot_prediction, lambda found, data: plot_function(found, data=data)):
        with pytest.raises(ValueError, match=r"data= has no values of 'no2'.*has \('o3',\)"):
            draw(predicted(line, np.arange(9.0)), other)


def test_maps_of_experts_have_the_data_on_their_means():
    flat = mrgp.points(GRID, inputs=("x", "y"))
    spots = mrgp.points([[0.5, 0.5], [1.5, 1.0]], inputs=("x", "y"))
    data = mrgp.Dataset([mrgp.Observations(spots, [4.0, 20.0], task="no2", name="sites")])
    figure = deep(flat, np.arange(9.0)).plot(data, experts=True)
    panels = {axes.get_title(): axes for axes in titled(figure)}
    for name in ("mixture", "sites", "sat"):
        field, markers = panels[name].collections
        np.testing.assert_array_equal(markers.get_array(), [4.0, 20.0])
        assert field.get_clim() == markers.get_clim() == (0.0, 20.0)
    assert len(panels["weight of sat"].collections) == 1


def test_the_legend_of_experts_at_a_time_leaves_its_title_free():
    x = [[h, *place] for h in range(3) for place in GRID]
    support = mrgp.points(x, inputs=("hour", "x", "y"))
    data = mrgp.Dataset([mrgp.Observations(support, np.arange(27.0), task="no2", name="sites")])
    figure = deep(support, np.arange(27.0)).plot(data, experts=True)
    figure.canvas.draw()
    assert figure.get_suptitle() == "hour 1"
    legend, title = figure.legends[0], figure.texts[0]
    assert not legend.get_window_extent().overlaps(title.get_window_extent())


def test_predictions_that_are_all_missing_say_so():
    flat, line, missing = mrgp.points(GRID), along(np.arange(9.0)), np.full(9, np.nan)
    with pytest.raises(ValueError, match="plot_prediction: there are no values to draw"):
        predicted(flat, missing).plot()
    with pytest.raises(ValueError, match="plot_experts: there are no values to draw"):
        deep(flat, missing).plot(experts=True)
    with pytest.raises(ValueError, match="There are no values of no2 to draw"):
        predicted(line, missing).plot()


def test_times_of_which_nothing_is_known_are_not_chosen():
    x = [[h, *place] for h in range(3) for place in GRID]
    mean = np.repeat([np.nan, 1.0, 2.0], 9)
    support = mrgp.points(x, inputs=("hour", "x", "y"))
    found = predicted(support, mean)
    assert [a.get_title() for a in titled(found.plot())][::2] == ["mean\nhour 1", "mean\nhour 2"]
    silent = predicted(support, np.where(np.isnan(mean), np.nan, mean))
    silent.experts["a"] = predicted(support, np.full(27, np.nan))
    silent.weights["a"] = np.ones(27)
    panels = titled(plot_experts(silent)[0, 0].figure)
    assert [text.get_text() for text in panels[1].texts] == ["no values"]


def test_a_colour_bar_points_beyond_only_where_values_lie_beyond():
    spots = mrgp.points(np.random.default_rng(0).uniform(0, 2, (100, 2)), inputs=("x", "y"))
    values = np.append(np.linspace(0.0, 10.0, 99), 90.0)
    data = mrgp.Dataset([mrgp.Observations(spots, values, name="spots")])
    limits, beyond = with_points((0.0, 5.0), data, ("x", "y"), [Slice()])
    assert limits[1] < 20
    assert beyond == "max"
    assert with_points((0.0, 100.0), data, ("x", "y"), [Slice()]) == ((0.0, 100.0), "neither")


def test_posteriors_are_drawn_over_dates():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"time": pd.date_range("2022-02-19", periods=5, freq="h", tz="UTC")})
    support = mrgp.from_frame(frame, "time")
    draws = {"nuts": {"noise": np.linspace(1.0, 2.0, 50)}}
    found = {"nuts": predicted(support, np.arange(5.0))}
    first = plot_posteriors(support, found, draws, {"noise": "noise"}).axes[0]
    assert first.get_xlabel() == "time (UTC)"
    days = (pd.Timestamp("2022-02-19") - pd.Timestamp(0)) / pd.Timedelta("1D")
    np.testing.assert_allclose(first.get_lines()[0].get_xdata(), days + np.arange(5) / 24)


def test_counts_are_drawn_and_tabled_as_counts():
    """Interval ends are whole numbers and never below zero; P(value > 2) is of three or more."""
    rates = np.linspace(0.3, 6.0, 12)
    support = mrgp.points(np.arange(12.0)[:, None], inputs="km")
    parts = np.ones((1, 12)), rates[None], rates[None]
    new = Prediction(support, "cases", "register", None, *parts, distribution=COUNTS)
    low, high = poisson.ppf([[0.025], [0.975]], rates)
    frame = new.to_frame()
    np.testing.assert_allclose(frame["mean"], rates)
    np.testing.assert_allclose(frame["std"], rates**0.5, rtol=1e-6)
    np.testing.assert_array_equal(frame[["lower_95", "upper_95"]], np.stack([low, high], 1))
    above = new.plot(exceedance=2.0).axes[1].lines[0].get_ydata()
    np.testing.assert_allclose(above, poisson.sf(2, rates), rtol=1e-6)
    seen = mrgp.Observations(
        support,
        poisson.rvs(rates, random_state=0),
        task="cases",
        name="register",
        likelihood="poisson",
    )
    curve = new.plot(mrgp.Dataset([seen])).axes[0]
    ends = np.concatenate([p.vertices for c in curve.collections[:1] for p in c.get_paths()])
    assert set(ends[:, 1]) == {*low, *high}
    assert ends[:, 1].min() == 0
    assert any(np.array_equal(line.get_ydata(), seen.y) for line in curve.lines)
    cells = mrgp.points(GRID, inputs=("east", "north"))
    map_parts = np.ones((1, 9)), np.arange(1.0, 10.0)[None], np.arange(1.0, 10.0)[None]
    drawn = Prediction(cells, "cases", "register", None, *map_parts, distribution=COUNTS)
    mean, sd = (panel for panel in drawn.plot().axes if panel.get_title())
    assert sorted(np.asarray(mean.collections[0].get_array()).ravel()) == list(range(1, 10))
    np.testing.assert_allclose(
        np.sort(np.asarray(sd.collections[0].get_array()).ravel()), np.arange(1.0, 10.0) ** 0.5
    )
