"""Maps of fields, of predictions, and of data."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mrgp.data import Dataset
from mrgp.plotting.colours import FIELD_COLOURS, SHARE_COLOURS, SPREAD_COLOURS, source_markers
from mrgp.plotting.coordinates import Vector, across_of, coordinates
from mrgp.plotting.functions import draw_line, input_of, plot_function, predicted, spoken
from mrgp.plotting.panels import Axes, legend_above, new_panels
from mrgp.plotting.shapes import Limits, Regions, regions_of, regions_on, set_map
from mrgp.plotting.sheets import Scale, Sheet, label_maps, limits_of, map_panels
from mrgp.plotting.slices import slices_of
from mrgp.prediction import Prediction
from mrgp.supports import Points, Support

MOST_MAPS = 4


def plot_map(
    axes: Axes,
    support: Support,
    values: Vector,
    *,
    label: str = "",
    title: str = "",
    limits: Limits | None = None,
    colours: str = FIELD_COLOURS,
) -> Any:
    """Draw values on a support of two inputs: a full grid of points, boxes, or polygons.

    Returns what was drawn, whose colour bar stands beside the axes.

    >>> import mrgp
    >>> from matplotlib.figure import Figure
    >>> cells = mrgp.boxes([[0.0, 0.0], [1.0, 0.0]], [[1.0, 1.0], [2.0, 1.0]], inputs=("x", "y"))
    >>> axes = Figure().subplots()
    >>> plot_map(axes, cells, np.array([3.0, 5.0]), label="no2 (ppb)").get_clim()
    (3.0, 5.0)
    >>> [float(end) for end in axes.get_xlim()], axes.get_ylabel()
    ([0.0, 2.0], 'y')
    """
    across = _two_inputs(support, "plot_map")
    regions = regions_on(support, np.asarray(values, dtype=np.float64), across)
    if regions is None:
        raise ValueError("plot_map: there are no values to draw; all are NaN.")
    if regions.shapes is None and regions.grid is None:
        raise ValueError("plot_map draws a full grid of points; use plot_data for scattered ones.")
    drawn = regions.draw(axes, limits or limits_of(regions.values), colours)
    return _framed(axes, drawn, [regions], label, title)


def plot_data(
    axes: Axes, data: Dataset, *, label: str = "", title: str = "", limits: Limits | None = None
) -> Any:
    """Draw the observations of one task over two inputs: areas as cells, points as markers on top.

    Sums are divided by the measure of their region.

    >>> import mrgp
    >>> from matplotlib.figure import Figure
    >>> sites = mrgp.Observations(mrgp.points([[0.0, 0.0], [1.0, 2.0]]), [3.0, 5.0], name="sites")
    >>> plot_data(Figure().subplots(), mrgp.Dataset([sites])).get_offsets().tolist()
    [[0.0, 0.0], [1.0, 2.0]]
    """
    if len(data.tasks) > 1:
        raise ValueError(
            f"plot_data draws one task; the data have {data.tasks}. Choose one, as by"
            " data.select(task=...), or use data.plot()."
        )
    across = _two_inputs(data.supports[0], "plot_data")
    found = [(o, r) for o in data if (r := regions_of(o, across)) is not None]
    limits = limits or limits_of(*(regions.values for _, regions in found))
    markers = source_markers(o.name for o, _ in found if isinstance(o.support, Points))
    drawn: Any = None
    for o, regions in sorted(found, key=lambda pair: isinstance(pair[0].support, Points)):
        marker = markers.get(o.name, "o")
        drawn = regions.draw(axes, limits, FIELD_COLOURS, marker=marker)
        drawn.set_label(spoken(o))
    return _framed(axes, drawn, [regions for _, regions in found], label, title)


def _framed(axes: Axes, drawn: Any, extent: Sequence[Regions], label: str, title: str) -> Any:
    """Give a map its axes, its title and its colour bar."""
    set_map(axes, extent)
    axes.set_title(title)
    axes.figure.colorbar(drawn, ax=axes, label=label, shrink=0.8)
    return drawn


def _two_inputs(support: Support, who: str) -> tuple[str, ...]:
    """Return the two inputs of a support, or say how many there are."""
    found = tuple(coordinates(support))
    if len(found) != 2:
        raise ValueError(
            f"{who} draws two inputs; the support has {len(found)}: {found}. The plot methods of"
            " data and predictions choose what to draw of others."
        )
    return found


def plot_outlines(axes: Axes, support: Support, *, colour: str = "white") -> None:
    """Draw the edges of areas over two inputs, on a map that is there.

    >>> import mrgp
    >>> from matplotlib.figure import Figure
    >>> axes = Figure().subplots()
    >>> plot_outlines(axes, mrgp.boxes([[0.0, 0.0]], [[1.0, 2.0]]))
    >>> len(axes.collections)
    1
    """
    across = _two_inputs(support, "plot_outlines")
    regions = regions_on(support, np.zeros(len(support)), across)
    if regions is not None:
        regions.outline(axes, colour)


def plot_prediction(
    prediction: Prediction,
    data: Dataset | None = None,
    *,
    exceedance: float | None = None,
    truth: Vector | None = None,
) -> Any:
    """Draw a prediction: a curve where one input varies, or maps of mean and sd; return the figure.

    Coordinates are those that the user gave, degrees and dates. Along one input, `data` are dots
    and bars as wide as the regions; on maps, points are markers on the colour scale of the mean,
    and areas are outlines. Where a third input varies there is a row of maps for each of its
    values, four at most, evenly chosen, with the data of that time. `exceedance=40` adds a panel of
    P(value > 40); `truth` is drawn beside a curve. Sums among the data are divided by the measure
    of their region.

    >>> import mrgp
    >>> x, one = mrgp.points([[0.0], [1.0]], inputs="day"), np.ones((1, 2))
    >>> found = mrgp.Prediction(x, "no2", None, "ppb", one, one, one)
    >>> [axes.get_ylabel() for axes in plot_prediction(found, exceedance=2.0).axes]
    ['no2 (ppb)', 'P(no2 > 2 ppb)']
    """
    if len(prediction) == 0:
        raise ValueError("A picture needs a prediction of one region or more; this one has none.")
    name = input_of(prediction.support)
    if name is None and truth is not None:
        across = across_of(coordinates(prediction.support))
        raise ValueError(
            f"truth= is drawn beside a curve, and this prediction is a map over {across}. Leave it"
            " out, and draw it by plot_map."
        )
    if name is None:
        return _maps(prediction, data, exceedance)
    heights = (3.6,) if exceedance is None else (3.6, 1.6)
    shared = {"sharex": True, "height_ratios": heights}
    figure, panels = new_panels(len(heights), height=sum(heights), **shared)
    upper, *below = panels[:, 0]
    plot_function(prediction, upper, data=data, truth=truth)
    (place,) = slices_of(prediction.support, [name], 1)
    upper.set_title(place.words, fontsize=10, loc="left")
    for axes in below:
        along = coordinates(prediction.support)[name]
        upper.axhline(exceedance, color="0.4", linewidth=1, linestyle=":", label="threshold")
        upper.set_xlabel("")
        draw_line(axes, along, prediction.exceedance(exceedance), color="0.25", linewidth=1.4)
        axes.set(ylim=(-0.03, 1.03), ylabel=_above(prediction, exceedance))
        along.label_axis(axes, "x")
    legend_above(figure, [upper])
    return figure


def _above(prediction: Prediction, threshold: float | None) -> str:
    units = f" {prediction.units}" if prediction.units else ""
    return f"P({prediction.task} > {threshold:g}{units})"


def _maps(prediction: Prediction, data: Dataset | None, exceedance: float | None) -> Any:
    """Draw a row of maps for each slice, a column for each field, with the data of that slice."""
    sheet, what = Sheet.of(prediction, data, MOST_MAPS, "plot_prediction"), predicted(prediction)
    mean, sd = prediction.mean, prediction.std
    columns = {
        "mean": (mean, Scale(what, limits_of(mean))),
        "sd": (sd, Scale(f"sd of {what}", limits_of(sd), SPREAD_COLOURS)),
    }
    if exceedance is not None:
        scale = Scale("probability", (0.0, 1.0), SHARE_COLOURS)
        columns[_above(prediction, exceedance)] = prediction.exceedance(exceedance), scale
    count, lines = len(sheet.places), 2 if sheet.places[0].words else 1
    figure, panels = map_panels(count, len(columns), [sheet.extent], bars=len(columns), lines=lines)
    for column, (title, (values, scale)) in zip(panels.T, columns.items(), strict=True):
        fields = [(f"{title}\n{p.words}".strip(), values, p) for p in sheet.places]
        sheet.draw(column, fields, scale, coloured=title == "mean")
    label_maps(figure, panels)
    return figure
