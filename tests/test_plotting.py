"""Pictures: what is drawn, in which ranges, under which labels."""

import matplotlib as mpl
import numpy as np
import pytest

import mrgp
from mrgp.plotting import plot_calibration, plot_data, plot_map
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


def test_what_cannot_be_drawn_is_said(axes):
    with pytest.raises(ValueError, match="draws two inputs; the support has 1"):
        plot_map(axes, mrgp.points([[0.0]]), np.zeros(1))
    with pytest.raises(ValueError, match="a full grid of points"):
        plot_map(axes, mrgp.points(GRID[:5]), np.zeros(5))
