"""Draws as pictures: every chain in its colour, every number in its row."""

import matplotlib as mpl
import numpy as np
import pytest

from mrgp.plotting import plot_chains

mpl.use("Agg")
import matplotlib.pyplot as plt

DRAWS = {
    "noise": np.random.default_rng(0).normal(size=(2, 100)),
    "lengthscale": np.random.default_rng(1).normal(size=(2, 100, 2)),
    "fixed": np.ones((2, 100)),
}


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_every_number_that_varies_has_its_way_and_its_histogram():
    figure = plot_chains(DRAWS)
    left, right = figure.axes[::2], figure.axes[1::2]
    assert [axes.get_title(loc="left") for axes in left] == [
        "noise",
        "lengthscale [1]",
        "lengthscale [2]",
    ]
    first, second = left[2].get_lines()
    np.testing.assert_array_equal(second.get_ydata(), DRAWS["lengthscale"][1, :, 1])
    assert first.get_color() != second.get_color()
    stairs = right[0].patches[1].get_data()
    assert np.sum(stairs.values * np.diff(stairs.edges)) == pytest.approx(1.0)
    assert stairs.edges[0] == DRAWS["noise"].min()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["chain 1", "chain 2"]
    assert (left[-1].get_xlabel(), right[-1].get_xlabel()) == ("draw", "value")


def test_some_are_chosen_by_name_and_others_are_told():
    assert len(plot_chains(DRAWS, ["noise"]).axes) == 2
    with pytest.raises(ValueError, match=r"no parameter is named 'nose'; they are \['noise'"):
        plot_chains(DRAWS, ["nose"])
    with pytest.raises(ValueError, match="there are no parameters that vary"):
        plot_chains({"fixed": DRAWS["fixed"]})


def test_one_name_is_enough_and_what_was_asked_for_is_drawn_though_it_is_constant():
    assert len(plot_chains(DRAWS, "noise").axes) == 2
    left, right = plot_chains(DRAWS, "fixed").axes
    np.testing.assert_array_equal(left.get_lines()[0].get_ydata(), np.ones(100))
    assert right.get_lines()[0].get_xdata()[0] == 1
