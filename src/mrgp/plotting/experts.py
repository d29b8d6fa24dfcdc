"""Experts of a deep model: what each says, and the weight it has."""

from typing import Any

import numpy as np

from mrgp.data import Dataset
from mrgp.plotting.colours import FIELD_COLOURS, SHARE_COLOURS, source_colours
from mrgp.plotting.coordinates import Coordinate, across_of, coordinates, set_axis, slices_of
from mrgp.plotting.functions import (
    alone_along,
    broken,
    draw_curve,
    draw_line,
    input_of,
    legend_above,
    of_task,
    predicted,
)
from mrgp.plotting.maps import limits_of, overlay, whole_of, with_points
from mrgp.plotting.panels import draw_panel, label_outer, map_panels
from mrgp.plotting.shapes import regions_on, size_of
from mrgp.prediction import Prediction


def plot_experts(prediction: Prediction, axes: Any = None, *, data: Dataset | None = None) -> Any:
    """Draw what the experts of a deep model say, and the weight each has.

    Along one input, returns two axes: the experts with the mixture and its 95 % interval, and the
    weights. Over two inputs, returns two rows of maps: the means of the mixture and of each expert
    on one colour scale, with the `data` on top, and the weights from 0 to 1; of several times, the
    one in the middle. Along one input, experts have the colours of their sources in other pictures
    of the same `data`.

    >>> import mrgp
    >>> x, one = mrgp.points([[0.0], [1.0]], inputs="day"), np.ones((1, 2))
    >>> made = (x, "no2", None, "ppb", one, one, one)
    >>> found = mrgp.Prediction(
    ...     *made, experts={"laqn": mrgp.Prediction(*made)}, weights={"laqn": np.ones(2)}
    ... )
    >>> [axes.get_ylabel() for axes in plot_experts(found)]
    ['no2 (ppb)', 'weight']
    """
    if not prediction.experts:
        raise ValueError("plot_experts draws predictions of mrgp.MRDGP, which have experts.")
    name = input_of(prediction.support)
    if name is not None:
        return _curves(prediction, name, axes, data)
    if axes is not None:
        raise ValueError("plot_experts makes its own axes for maps; leave axes= out.")
    return _maps(prediction, data)


def _curves(prediction: Prediction, name: str, axes: Any, data: Dataset | None) -> Any:
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots(
            2, figsize=(9.0, 5.2), sharex=True, layout="constrained", height_ratios=(3, 1)
        )[1]
    along = coordinates(prediction.support)[name]
    draw_curve(axes[0], along, prediction, names=("95 % interval", "mixture"))
    known = source_colours(() if data is None else data.sources, prediction.experts)
    colours = {label: known[label] for label in prediction.experts}
    for label, expert in prediction.experts.items():
        # Dashes leave the mixture to be seen where an expert has all the weight.
        style = {"color": colours[label], "linewidth": 1.2, "linestyle": (0, (4, 2))}
        draw_line(axes[0], along, expert.mean, label=label, **style)
    shares = [prediction.weights[label] for label in colours]
    _draw_shares(axes[1], along, shares, list(colours.values()))
    axes[0].set_ylabel(predicted(prediction))
    legend_above(axes[0])
    axes[1].set(ylabel="weight", ylim=(0, 1))
    if along.distinct > 1:
        axes[1].set_xlim(along.middle.min(), along.middle.max())
    set_axis(axes[1], "x", along)
    return axes


def _maps(prediction: Prediction, data: Dataset | None) -> Any:
    """Draw means above weights, an expert in each column and the mixture in the first."""
    support, experts = prediction.support, prediction.experts
    across = across_of(coordinates(support))
    everything = whole_of(prediction, across, "plot_experts")
    (place,) = slices_of(support[np.flatnonzero(~np.isnan(prediction.mean))], across, 1)
    means = {"mixture": prediction.mean} | {label: e.mean for label, e in experts.items()}
    weights = {f"weight of {label}": prediction.weights[label] for label in experts}
    figure, panels = map_panels(2, len(means), size_of([everything]), 1, 2)
    rows = place.rows(support, exact=True)
    limits, beyond = limits_of([values[rows] for values in means.values()]), "neither"
    seen = None if data is None else of_task(data, prediction.task)
    coloured = seen is not None and support.kind != "sum"
    if seen is not None and coloured:
        limits, beyond = with_points(limits, seen, across, [place])
    upper = (panels[0], means, limits, FIELD_COLOURS, predicted(prediction), beyond)
    lower = (panels[1, 1:], weights, (0.0, 1.0), SHARE_COLOURS, "weight", "neither")
    for row, fields, ends, colours, label, extend in (upper, lower):
        drawn = None
        for axes, (title, values) in zip(row, fields.items(), strict=True):
            regions = regions_on(support, values, across, place, exact=True)
            found = draw_panel(axes, regions, everything, ends, colours)
            drawn = drawn if found is None else found
            axes.set_title(title, fontsize=10)
            if seen is not None and fields is means:
                overlay(axes, seen, across, place, limits if coloured else None)
        figure.colorbar(drawn, ax=list(row), label=label, shrink=0.85, extend=extend)
    label_outer(panels, np.array([[True] * len(means), [False] + [True] * len(weights)]))
    # A title of the figure has the place above.
    legend_above(figure, list(panels[0]), below=bool(place.words))
    if place.words:
        figure.suptitle(place.words, fontsize=10)
    return panels


def _draw_shares(axes: Any, along: Coordinate, shares: list[np.ndarray], colours: Any) -> None:
    """Draw weights one on the other: as areas, and those of places that stand alone as bars."""
    x, *stacked = broken(along, *shares)
    axes.stackplot(x, stacked, colors=colours, alpha=0.6)
    alone = alone_along(along)
    if alone.any():
        tops = np.cumsum([share[alone] for share in shares], axis=0)
        for colour, top, share in zip(colours, tops, shares, strict=True):
            style = {"color": colour, "alpha": 0.6, "linewidth": 6}
            axes.vlines(along.middle[alone], top - share[alone], top, **style)
