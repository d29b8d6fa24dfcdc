"""Regions on maps: every shape once, over the right inputs, and none that cannot be seen."""

import matplotlib as mpl
import numpy as np
import pytest

import mrgp
from mrgp.plotting import plot_data, plot_map, plot_outlines, plot_prediction
from mrgp.plotting.shapes import regions_on
from mrgp.prediction import Prediction

mpl.use("Agg")
import matplotlib.pyplot as plt

shapely = pytest.importorskip("shapely")

LOWER = shapely.Polygon([(0, 0), (1, 0), (0, 1)])
UPPER = shapely.Polygon([(1, 1), (1, 0), (0, 1)])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def predicted(support, mean):
    one = np.ones((1, len(mean)))
    return Prediction(support, "no2", None, None, one, np.asarray(mean, float)[None], one)


def test_polygons_with_one_bounding_box_stay_two():
    support = mrgp.polygons([LOWER, UPPER, LOWER], inputs=("x", "y"))
    drawn = plot_map(plt.subplots()[1], support, np.array([1.0, 3.0, 2.0]))
    below, above = drawn.get_paths()
    assert below.contains_point((0.2, 0.2))
    assert above.contains_point((0.8, 0.8))
    np.testing.assert_allclose(drawn.get_array(), [1.5, 3.0])


def test_polygons_of_latitude_and_longitude_lie_where_their_axes_are():
    # Columns as the inputs name them: latitude first.
    shapes = [shapely.box(51.0, -1.0, 52.0, 1.0), shapely.box(52.0, 1.0, 53.0, 3.0)]
    places = mrgp.polygons(shapes, inputs=("lat", "lon"))
    times = mrgp.intervals([0.0], [1.0], inputs="hour")
    for support in (places, mrgp.product(times, places), mrgp.product(places, times)):
        axes = plot_prediction(predicted(support, [1.0, 2.0])).axes[0]
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("lon", "lat")
        first = axes.collections[0].get_paths()[0].get_extents()
        np.testing.assert_allclose(first.extents, [-1.0, 51.0, 1.0, 52.0])
        np.testing.assert_allclose(axes.get_xlim() + axes.get_ylim(), [-1, 3, 51, 53])


def test_polygons_of_a_product_keep_their_outline_in_any_order_of_inputs():
    places = mrgp.polygons([LOWER, UPPER], inputs=("lat", "lon"))
    support = mrgp.product(mrgp.points([[0.0]], inputs="hour"), places)
    below, above = regions_on(support, np.array([1.0, 2.0]), ("lon", "lat")).shapes
    assert not below.contains_point((0.8, 0.8))
    assert not above.contains_point((0.2, 0.2))


def test_boxes_without_an_area_are_seen_among_boxes():
    lower = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 1.0]])
    upper = np.array([[0.0, 4.0], [4.0, 4.0], [3.0, 1.0]])
    found = regions_on(mrgp.boxes(lower, upper, inputs=("x", "y")), np.arange(3.0), ("x", "y"))
    sizes = [path.get_extents().size for path in found.shapes]
    np.testing.assert_allclose(sizes, [[4, 4], [0.04, 4], [0.04, 0.04]])
    np.testing.assert_array_equal(found.values, [1.0, 0.0, 2.0])


def test_holes_stay_empty():
    ring = shapely.box(0, 0, 4, 4).difference(shapely.box(1, 1, 2, 2))
    support = mrgp.polygons([ring], inputs=("x", "y"))
    figure, axes = plt.subplots()
    plot_map(axes, support, np.array([1.0]))
    figure.canvas.draw()
    picture = np.asarray(figure.canvas.buffer_rgba())

    def colour(x, y):
        across, up = axes.transData.transform((x, y))
        return tuple(picture[len(picture) - int(up), int(across), :3])

    assert colour(1.5, 1.5) == (255, 255, 255)
    assert colour(3.0, 3.0) != (255, 255, 255)


def test_panels_of_two_inputs_and_one_task_refuse_others():
    solid = mrgp.points([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], inputs=("hour", "x", "y"))
    data = mrgp.Dataset([mrgp.Observations(solid, [1.0, 2.0], name="s")])
    axes = plt.subplots()[1]
    with pytest.raises(ValueError, match=r"plot_data draws two inputs; the support has 3: \('hour"):
        plot_data(axes, data)
    with pytest.raises(ValueError, match="plot_outlines draws two inputs; the support has 3"):
        plot_outlines(axes, solid)
    flat = mrgp.Observations(mrgp.points([[0.0, 0.0], [1.0, 1.0]]), [1.0, 2.0], task="a", name="s")
    with pytest.raises(ValueError, match=r"plot_data draws one task; the data have \('a', 'b'\)"):
        plot_data(axes, mrgp.Dataset([flat, flat.replace(task="b")]))
