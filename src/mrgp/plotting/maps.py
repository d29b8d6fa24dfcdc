"""Maps of fields, of predictions, and of data."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset
from mrgp.plotting.colours import FIELD_COLOURS, SHARE_COLOURS, SPREAD_COLOURS, source_markers
from mrgp.plotting.coordinates import Slice, across_of, coordinates, set_axis, slices_of
from mrgp.plotting.functions import (
    draw_curve,
    draw_data,
    draw_line,
    input_of,
    legend_above,
    of_task,
    per_unit,
    predicted,
    spoken,
)
from mrgp.plotting.panels import WIDTH, draw_panel, label_outer, map_panels
from mrgp.plotting.shapes import (
    Regions,
    draw_outlines,
    draw_regions,
    regions_on,
    set_map,
    size_of,
)
from mrgp.prediction import Prediction
from mrgp.supports import Points, Support

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_MAPS = 4
INLIERS = (0.02, 0.98)


def plot_map(
    axes: "Axes",
    support: Support,
    values: Float[np.ndarray, " n"],
    *,
    label: str = "",
    title: str = "",
    limits: tuple[float, float] | None = None,
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
    drawn = draw_regions(axes, regions, limits or limits_of([regions.values]), colours)
    set_map(axes, [regions])
    axes.set_title(title)
    axes.figure.colorbar(drawn, ax=axes, label=label, shrink=0.8)
    return drawn


def plot_data(
    axes: "Axes",
    data: Dataset,
    *,
    label: str = "",
    title: str = "",
    limits: tuple[float, float] | None = None,
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
    found = [
        (o, regions)
        for o in data
        if (regions := regions_on(o.support, per_unit(o), _two_inputs(o.support, "plot_data")))
    ]
    limits = limits or limits_of([regions.values for _, regions in found])
    markers = source_markers(o.name for o, _ in found if isinstance(o.support, Points))
    drawn: Any = None
    for o, regions in sorted(found, key=lambda pair: isinstance(pair[0].support, Points)):
        marker = markers.get(o.name, "o")
        drawn = draw_regions(axes, regions, limits, FIELD_COLOURS, marker=marker)
        drawn.set_label(spoken(o))
    set_map(axes, [regions for _, regions in found])
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


def plot_outlines(axes: "Axes", support: Support, *, colour: str = "white") -> None:
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
        draw_outlines(axes, regions, colour=colour)


def plot_prediction(
    prediction: Prediction,
    data: Dataset | None = None,
    *,
    exceedance: float | None = None,
    truth: Float[np.ndarray, " n"] | None = None,
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
    if name is not None:
        return _curve(prediction, name, data, exceedance, truth)
    across = across_of(coordinates(prediction.support))
    if truth is not None:
        raise ValueError(
            f"truth= is drawn beside a curve, and this prediction is a map over {across}. Leave it"
            " out, and draw it by plot_map."
        )
    return _maps(prediction, across, data, _fields(prediction, exceedance))


class Column(NamedTuple):
    """A field to be mapped: its values, what it is, in which units, and its colours."""

    values: Float[np.ndarray, " n"]
    title: str
    label: str
    colours: str
    limits: tuple[float, float] | None = None


def _fields(prediction: Prediction, exceedance: float | None) -> list[Column]:
    what = predicted(prediction)
    found = [
        Column(prediction.mean, "mean", what, FIELD_COLOURS),
        Column(prediction.std, "sd", f"sd of {what}", SPREAD_COLOURS),
    ]
    if exceedance is not None:
        said = _above(prediction, exceedance)
        values = prediction.exceedance(exceedance)
        found.append(Column(values, said, "probability", SHARE_COLOURS, (0.0, 1.0)))
    return found


def _above(prediction: Prediction, threshold: float) -> str:
    units = f" {prediction.units}" if prediction.units else ""
    return f"P({prediction.task} > {threshold:g}{units})"


def _curve(
    prediction: Prediction,
    name: str,
    data: Dataset | None,
    exceedance: float | None,
    truth: Float[np.ndarray, " n"] | None,
) -> Any:
    """Draw mean and interval along one input, over the probability of exceeding a threshold."""
    import matplotlib.pyplot as plt

    extra = () if exceedance is None else (1.6,)
    figure, panels = plt.subplots(
        1 + len(extra),
        figsize=(WIDTH, 3.6 + sum(extra)),
        sharex=True,
        squeeze=False,
        layout="constrained",
        height_ratios=(3.6, *extra),
    )
    upper, *below = panels[:, 0]
    along = coordinates(prediction.support)[name]
    (place,) = slices_of(prediction.support, [name], 1)
    draw_curve(upper, along, prediction, truth)
    if data is not None:
        draw_data(upper, data, prediction, name, place)
    upper.set_ylabel(predicted(prediction))
    if place.words:
        upper.set_title(place.words, fontsize=10, loc="left")
    for axes in below:
        upper.axhline(exceedance, color="0.4", linewidth=1, linestyle=":", label="threshold")
        draw_line(axes, along, prediction.exceedance(exceedance), color="0.25", linewidth=1.4)
        axes.set(ylim=(-0.03, 1.03))
        axes.set_ylabel(_above(prediction, float(exceedance or 0.0)))
    set_axis(panels[-1, 0], "x", along)
    legend_above(figure, [upper])
    return figure


def _maps(
    prediction: Prediction,
    across: tuple[str, str],
    data: Dataset | None,
    columns: Sequence[Column],
) -> Any:
    """Draw a row of maps for each slice, a column for each field, with the data of that slice."""
    support = prediction.support
    everything = whole_of(prediction, across, "plot_prediction")
    places = slices_of(support[np.flatnonzero(~np.isnan(prediction.mean))], across, MOST_MAPS)
    figure, panels = map_panels(
        len(places), len(columns), size_of([everything]), len(columns), 2 if places[0].words else 1
    )
    seen = None if data is None else of_task(data, prediction.task)
    # Sums have no scale in common with the values of points.
    coloured = support.kind != "sum"
    for j, column in enumerate(columns):
        limits, beyond = column.limits or limits_of([column.values]), "neither"
        if j == 0 and seen is not None and coloured:
            limits, beyond = with_points(limits, seen, across, places)
        drawn = None
        for i, place in enumerate(places):
            axes = panels[i, j]
            regions = regions_on(support, column.values, across, place, exact=True)
            found = draw_panel(axes, regions, everything, limits, column.colours)
            drawn = drawn if found is None else found
            axes.set_title("\n".join(filter(None, (column.title, place.words))), fontsize=10)
            if seen is not None:
                overlay(axes, seen, across, place, limits if j == 0 and coloured else None)
        style = {
            "label": column.label,
            "extend": beyond,
            "shrink": 0.85,
            "aspect": 20 + 14 * (len(places) - 1),
        }
        figure.colorbar(drawn, ax=list(panels[:, j]), **style)
    label_outer(panels, np.ones(panels.shape, bool))
    legend_above(figure, list(panels.ravel()))
    return figure


def whole_of(prediction: Prediction, across: Sequence[str], who: str) -> Regions:
    """Return all regions that a prediction has values of, or say that there are none."""
    found = regions_on(prediction.support, prediction.mean, across)
    if found is None:
        raise ValueError(f"{who}: there are no values to draw; all are NaN.")
    return found


def overlay(
    axes: "Axes",
    data: Dataset,
    across: Sequence[str],
    place: Slice,
    limits: tuple[float, float] | None,
) -> None:
    """Draw the data of a slice on a map: points by value, or hollow, and areas by outlines.

    The map keeps its extent; what lies beyond is cut off.
    """
    from matplotlib.lines import Line2D

    markers = source_markers(data.sources)
    for o in data:
        regions = regions_on(o.support, per_unit(o), across, place)
        if regions is None:
            continue
        marker = markers[o.name]
        if limits is not None and regions.shapes is None:
            draw_regions(axes, regions, limits, FIELD_COLOURS, marker=marker)
        else:
            colour = "black" if regions.shapes is None else "white"
            draw_outlines(axes, regions, colour=colour, marker=marker)
        style: dict[str, Any] = {"marker": marker, "linestyle": "none", "mfc": "none"}
        if regions.shapes is not None:
            style = {"marker": "s", "linestyle": "none", "mfc": "0.8", "mec": "white", "ms": 9}
        axes.add_line(Line2D([], [], **({"mec": "black", "ms": 5} | style), label=spoken(o)))


def with_points(
    limits: tuple[float, float], data: Dataset, across: Sequence[str], places: Sequence[Slice]
) -> tuple[tuple[float, float], str]:
    """Widen limits to the values drawn as markers, but for outliers; say at which end those are."""
    found: list[Regions | None] = [
        regions_on(o.support, per_unit(o), across, place) for o in data for place in places
    ]
    drawn = [r.values for r in found if r is not None and r.shapes is None]
    if not drawn:
        return limits, "neither"
    values = np.concatenate(drawn)
    low, high, _ = without_outliers(values)
    low, high = min(limits[0], low), max(limits[1], high)
    return (low, high), _beyond(values, low, high)


def without_outliers(values: Float[np.ndarray, " n"]) -> tuple[float, float, str]:
    """Return limits of colours that far outliers do not stretch, and at which ends they lie.

    >>> without_outliers(np.append(np.linspace(0.0, 10.0, 99), 90.0))
    (0.0, 12.32..., 'max')
    """
    low, high = (float(end) for end in np.quantile(values, INLIERS))
    least, most = float(values.min()), float(values.max())
    reach = 0.25 * (high - low)
    low, high = max(least, low - reach), min(most, high + reach)
    return low, high, _beyond(values, low, high)


def _beyond(values: Float[np.ndarray, " n"], low: float, high: float) -> str:
    """Say at which ends of a colour scale values lie outside."""
    ends = {(False, False): "neither", (True, True): "both", (True, False): "min"}
    return ends.get((bool(values.min() < low), bool(values.max() > high)), "max")


def limits_of(several: Sequence[Float[np.ndarray, " _"]]) -> tuple[float, float]:
    """Return the least and the greatest of some values."""
    values = np.concatenate(several)
    return float(np.nanmin(values)), float(np.nanmax(values))
