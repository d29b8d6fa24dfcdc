"""Figures to explore: polygons have their outlines, filled by value where they are few."""

import numpy as np
import pytest

import mrgp
from mrgp.plotting import exploring
from mrgp.prediction import Prediction

pytest.importorskip("plotly")


@pytest.fixture
def districts():
    from shapely import Polygon, box

    corner = Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
    return mrgp.polygons([corner, box(2, 0, 3, 3)], spacing=0.4, inputs=("east", "north"))


@pytest.fixture
def predicted(districts):
    one = np.ones((1, 2))
    return Prediction(districts, "no2", None, "ppb", one, np.array([[1.0, 3.0]]), one)


def of(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def ring(trace):
    return [*zip(trace.x, trace.y, strict=True)]


def test_polygons_are_filled_outlines_in_the_colours_of_their_values(predicted):
    from plotly.colors import sample_colorscale

    figure = predicted.explore()
    areas = of(figure, "area")
    # Two of the mean, two of the sd.
    assert len(areas) == 4
    corners = {(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)}
    assert {tuple(map(float, at)) for at in corners} in [set(ring(area)) for area in areas[:2]]
    low, high = sample_colorscale("Viridis", [0.0, 1.0])
    assert {area.fillcolor for area in areas[:2]} == {low, high}
    assert all(area.fill == "toself" for area in areas)
    told = [trace for trace in figure.data if trace.customdata is not None]
    np.testing.assert_allclose(np.sort(told[0].customdata), [1.0, 3.0])
    assert "ppb" in told[0].hovertemplate


def test_of_many_polygons_the_edges_are_drawn(predicted, monkeypatch):
    monkeypatch.setattr(exploring, "MOST_FILLED", 1)
    figure = predicted.explore()
    assert of(figure, "area") == []
    edges = of(figure, "outlines")
    assert len(edges) == 2
    # Two rings with a gap between.
    assert list(edges[0].x).count(None) == 1
    assert edges[0].fill is None


def test_values_of_polygons_have_their_outlines_over_a_map(districts):
    grid = mrgp.points(
        [[a, b] for a in (0.0, 1.0, 2.0) for b in (0.0, 1.0)], inputs=("east", "north")
    )
    one = np.ones((1, 6))
    seen = mrgp.Observations(districts, [1.0, 3.0], task="no2", name="register", units="ppb")
    figure = Prediction(grid, "no2", None, "ppb", one, one, one).explore(mrgp.Dataset([seen]))
    assert [trace.type for trace in figure.data[:1]] == ["heatmap"]
    edges = of(figure, "outlines")
    assert len(edges) == 2
    assert (3.0, 3.0) in ring(edges[0])
    assert len(of(figure, "register")) == 2


def test_points_have_no_outlines():
    scattered = mrgp.points([[0.0, 0.1], [1.0, 0.7], [2.0, 0.3]], inputs=("east", "north"))
    one = np.ones((1, 3))
    figure = Prediction(scattered, "no2", None, "ppb", one, one, one).explore()
    assert [trace.mode for trace in figure.data] == ["markers", "markers"]
