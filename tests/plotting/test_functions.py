"""Pictures: what is drawn, in which ranges, under which labels."""

import matplotlib as mpl
import numpy as np
import pytest
from scipy.special import ndtr

import mrgp
from mrgp.plotting import (
    plot_bias_map,
    plot_calibration,
    plot_data,
    plot_experts,
    plot_function,
    plot_map,
    plot_outlines,
    plot_pit,
    plot_posteriors,
    plot_reliability,
)
from mrgp.prediction import Prediction

mpl.use("Agg")
import matplotlib.pyplot as plt

AXIS = np.arange(4.0)
GRID = np.stack(np.meshgrid(AXIS, AXIS[:3], indexing="ij"), -1).reshape(-1, 2)


@pytest.fixture
def axes():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_a_map_shows_each_value_at_its_place(axes):
    values = 10 * GRID[:, 0] + GRID[:, 1]
    support = mrgp.points(GRID, inputs=("east", "north"))
    drawn = plot_map(axes, support, values, label="NO2 (ug/m3)", title="Mean", limits=(0.0, 40.0))
    np.testing.assert_array_equal(np.asarray(drawn.get_array()).reshape(3, 4)[1], [1, 11, 21, 31])
    assert drawn.get_clim() == (0, 40)
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("east", "north", "Mean")
    assert axes.figure.axes[1].get_ylabel() == "NO2 (ug/m3)"


def test_a_map_of_boxes_fills_their_extent(axes):
    lower = np.array([[0.0, 0.0], [2.0, 0.0]])
    drawn = plot_map(axes, mrgp.boxes(lower, lower + [2.0, 1.0]), np.array([1.0, 5.0]))
    assert axes.get_xlim() == (0.0, 4.0)
    assert axes.get_ylim() == (0.0, 1.0)
    assert drawn.get_clim() == (1.0, 5.0)
    assert len(drawn.get_paths()) == 2


def test_data_are_cells_under_markers_on_one_scale(axes):
    lower = np.array([[0.0, 0.0], [2.0, 0.0]])
    sites = mrgp.Observations(mrgp.points(GRID[:3]), [1.0, np.nan, 9.0], name="sites")
    cells = mrgp.Observations(mrgp.boxes(lower, lower + 2), [3.0, 4.0], name="cells")
    drawn = plot_data(axes, mrgp.Dataset([sites, cells]))
    np.testing.assert_array_equal(np.asarray(drawn.get_offsets()), GRID[[0, 2]])
    assert {c.get_clim() for c in axes.collections} == {(1.0, 9.0)}
    assert axes.collections[-1] is drawn


def test_calibration_of_a_true_gaussian_lies_on_the_diagonal(axes):
    y = np.random.default_rng(0).standard_normal(20_000)
    one = np.ones((1, len(y)))
    support = mrgp.points(np.zeros((len(y), 1)))
    prediction = Prediction(support, "t", None, None, one, 0 * one, one)
    plot_calibration(axes, {"true": prediction}, y)
    line = axes.get_lines()[1]
    np.testing.assert_allclose(line.get_ydata(), line.get_xdata(), atol=0.015)
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["perfect", "true"]


def test_transforms_of_a_true_gaussian_are_even_and_of_a_narrow_one_hollow(axes):
    y = np.random.default_rng(0).standard_normal(50_000)
    pits = {"true": ndtr(y), "narrow": np.append(ndtr(2 * y), np.nan)}
    plot_pit(axes, pits, bins=5)
    true, narrow = (patch.get_data().values for patch in axes.patches)
    np.testing.assert_allclose(true, 1.0, atol=0.05)
    assert narrow[0] > 1.5 > 0.7 > narrow[2]
    assert [line.get_label() for line in axes.get_lines()] == ["perfect"]
    assert axes.get_xlabel() == "P(y ≤ value held out)"


def test_reliability_is_drawn_from_transforms(axes):
    y = np.random.default_rng(0).standard_normal(50_000)
    plot_reliability(axes, {"true": ndtr(y), "wide": ndtr(0.5 * y)})
    _, true, wide = axes.get_lines()
    np.testing.assert_allclose(true.get_ydata(), true.get_xdata(), atol=0.015)
    assert np.all(wide.get_ydata() > wide.get_xdata())
    assert true.get_color() != wide.get_color()


def test_more_models_than_colours_have_lines_of_their_own(axes):
    plot_reliability(axes, {str(i): np.array([0.5]) for i in range(9)})
    styles = [(line.get_color(), line.get_linestyle()) for line in axes.get_lines()[1:]]
    assert len(set(styles)) == 9


def test_outlines_of_boxes_leave_the_map_under_them(axes):
    lower = np.array([[0.0, 0.0], [2.0, 0.0]])
    plot_outlines(axes, mrgp.boxes(lower, lower + [2.0, 1.0]), colour="red")
    (drawn,) = axes.collections
    assert len(drawn.get_facecolor()) == 0
    assert [path.get_extents().width for path in drawn.get_paths()] == [2.0, 2.0]


def test_a_function_is_drawn_with_dots_and_bars_of_its_task_alone(axes):
    x = np.array([2.0, 0.0, 1.0])
    support = mrgp.points(x[:, None], inputs=("hour",))
    one = np.ones((1, 3))
    prediction = Prediction(support, "no2", "s", "ug/m3", one, x[None] + 5, 4 * one)
    sites = mrgp.Observations(support, [1.0, np.nan, 3.0], task="no2", name="sites")
    spans = mrgp.boxes([[0.0], [2.0]], [[2.0], [3.0]], inputs=("hour",))
    means = mrgp.Observations(spans, [4.0, 6.0], task="no2", name="means")
    other = mrgp.Observations(support, [9.0, 9.0, 9.0], task="o3", name="other")
    plot_function(prediction, axes, data=mrgp.Dataset([sites, means, other]), truth=x)
    mean, truth, dots = axes.get_lines()
    np.testing.assert_array_equal(mean.get_xydata(), [[0, 5], [1, 6], [2, 7]])
    np.testing.assert_array_equal(truth.get_ydata(), [0, 1, 2])
    np.testing.assert_array_equal(dots.get_xydata(), [[2, 1], [1, 3]])
    band, bars = axes.collections
    assert band.get_paths()[0].get_extents().ymin == pytest.approx(5 - 1.96 * 2, abs=1e-3)
    np.testing.assert_array_equal(bars.get_segments(), [[[0, 4], [2, 4]], [[2, 6], [3, 6]]])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("hour", "no2 (ug/m3)")
    labels = axes.get_legend_handles_labels()[1]
    assert set(labels) == {"95 % interval", "mean", "truth", "sites", "means"}


def test_what_cannot_be_drawn_is_said(axes):
    flat = Prediction(mrgp.points([[0.0, 0.0]]), "t", None, None, *np.ones((3, 1, 1)))
    with pytest.raises(ValueError, match="plot_function draws one input; the support has 2"):
        plot_function(flat, axes)
    with pytest.raises(ValueError, match="draws two inputs; the support has 1"):
        plot_map(axes, mrgp.points([[0.0]]), np.zeros(1))
    with pytest.raises(ValueError, match="a full grid of points"):
        plot_map(axes, mrgp.points(GRID[:5]), np.zeros(5))


def posteriors(models, names):
    rng = np.random.default_rng(0)
    support = mrgp.points(np.linspace(0.0, 1.0, 5)[:, None], inputs=("hour",))
    fit = mrgp.fit(
        mrgp.MRGP(),
        mrgp.Dataset([mrgp.Observations(support, np.arange(5.0), name="s")]),
        progress=None,
    )
    functions = {model: mrgp.predict(fit, support) for model in models}
    draws = {model: {name: rng.lognormal(1.0, 0.1, 400) for name in names} for model in models}
    return support, functions, draws


def test_posteriors_show_functions_and_parameters_of_every_model():
    names = {"a": "noise (ppb)", "b": "variance"}
    support, functions, draws = posteriors(("one", "two"), names)
    figure = plot_posteriors(support, functions, draws, names, truth=np.arange(5.0))
    first, second, third, _ = figure.axes
    assert first.get_xlabel() == "hour"
    np.testing.assert_allclose(first.lines[0].get_ydata(), functions["one"].mean)
    np.testing.assert_allclose(
        first.lines[2].get_ydata(), functions["one"].mean + 2 * functions["one"].std
    )
    assert (second.get_xlabel(), third.get_xlabel()) == (
        "noise (ppb) (log axis)",
        "variance (log axis)",
    )
    assert second.get_xscale() == "log"
    x, density = second.lines[0].get_data()
    assert density.max() == 1
    assert x[np.argmax(density)] == pytest.approx(np.exp(1.0), rel=0.05)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["one", "two", "truth"]
    plt.close(figure)


def test_more_posteriors_than_colours_are_refused():
    support, functions, draws = posteriors([f"model {i}" for i in range(8)], ("a",))
    with pytest.raises(ValueError, match="up to 7 models and 3 parameters; got 8 and 1"):
        plot_posteriors(support, functions, draws, {"a": "noise"})


def bias_map(at=None):
    values = np.linspace(1.0, 3.0, 5)
    return mrgp.BiasMap(
        source="sat",
        target="laqn",
        task="no2",
        units="ug/m3",
        source_units="ug/m3",
        values=values,
        mean=2 * values,
        std=np.full(5, 0.5),
        scatter=0.1,
        at=at or {},
    )


def test_a_bias_map_is_drawn_with_its_interval_and_the_line_of_no_bias(axes):
    drawn = plot_bias_map(bias_map({"lon": 0.25}), axes)
    learned, none = drawn.get_lines()
    np.testing.assert_allclose(learned.get_ydata(), [2, 3, 4, 5, 6])
    np.testing.assert_allclose(none.get_ydata(), none.get_xdata())
    low, high = (f(drawn.collections[0].get_paths()[0].vertices[:, 1]) for f in (np.min, np.max))
    np.testing.assert_allclose([low, high], [2 - 0.98, 6 + 0.98], atol=1e-3)
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == ("sat (ug/m3)", "laqn (ug/m3)")
    assert drawn.get_title() == "sat to laqn at lon = 0.25"


def test_experts_are_drawn_along_the_input_above_their_weights():
    x = np.array([2.0, 0.0, 1.0])
    support, one = mrgp.points(x[:, None], inputs="day"), np.ones((1, 3))
    made = {"support": support, "task": "no2", "source": None, "units": "ppb"}
    parts = {"component_weights": one, "variances": one}
    experts = {
        name: Prediction(**made, **parts, means=(level + x)[None])
        for name, level in (("sensors", 0.0), ("sat", 5.0))
    }
    weights = {"sensors": np.array([0.2, 1.0, 0.7]), "sat": np.array([0.8, 0.0, 0.3])}
    mixture = Prediction(**made, **parts, means=x[None], experts=experts, weights=weights)
    upper, lower = plot_experts(mixture)
    lines = {line.get_label(): line for line in upper.get_lines()}
    assert set(lines) == {"mixture", "sensors", "sat"}
    np.testing.assert_allclose(lines["sat"].get_xydata(), [[0, 5], [1, 6], [2, 7]])
    edge = lower.collections[0].get_paths()[0].vertices
    assert {0.2, 0.7, 1.0} <= set(edge[:, 1].round(6))
    assert (upper.get_ylabel(), lower.get_xlabel(), lower.get_ylim()) == (
        "no2 (ppb)",
        "day",
        (0, 1),
    )
    plt.close(upper.figure)
    with pytest.raises(ValueError, match=r"predictions of mrgp.MRDGP, which have experts"):
        plot_experts(experts["sat"])


def test_a_function_has_a_gap_where_nothing_is_predicted(axes):
    x = np.concatenate([np.arange(4.0), np.arange(20.0, 24.0)])
    one = np.ones((1, 8))
    prediction = Prediction(mrgp.points(x[:, None]), "u", None, None, one, x[None], one)
    plot_function(prediction, axes, truth=x)
    for line in axes.get_lines():
        at = line.get_xdata()
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(at)), [4])
        np.testing.assert_array_equal(at[~np.isnan(at)], x)
    (band,) = axes.collections
    assert len(band.get_paths()) == 2


def test_repeated_inputs_are_no_gaps(axes):
    x = np.repeat(np.arange(6.0), 3)
    one = np.ones((1, 18))
    plot_function(Prediction(mrgp.points(x[:, None]), "u", None, None, one, x[None], one), axes)
    assert not np.isnan(axes.get_lines()[0].get_xdata()).any()
