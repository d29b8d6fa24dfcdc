"""Experts of a deep model: what each says, and the weight it has."""

from typing import Any

import numpy as np

from mrgp.data import Dataset
from mrgp.plotting.colours import FIELD_COLOURS, SHARE_COLOURS, source_colours
from mrgp.plotting.coordinates import across_of, coordinates, set_axis, slices_of
from mrgp.plotting.functions import draw_curve, input_of, legend_above, quantity
from mrgp.plotting.maps import limits_of, map_panels
from mrgp.plotting.regions import draw_regions, regions_on, set_map, size_of
from mrgp.prediction import Prediction


def plot_experts(prediction: Prediction, axes: Any = None, *, data: Dataset | None = None) -> Any:
    """Draw what the experts of a deep model say, and the weight each has.

    Along one input, returns two axes: the experts with the mixture and its 95 % interval, and the
    weights. Over two inputs, returns two rows of maps: the means of the mixture and of each expert
    on one colour scale, and the weights from 0 to 1; of several times, the one in the middle.
    Experts have the colours of their sources in other pictures of the same `data`.

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
    return _maps(prediction)


def _curves(prediction: Prediction, name: str, axes: Any, data: Dataset | None) -> Any:
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots(
            2, figsize=(9.0, 5.2), sharex=True, layout="constrained", height_ratios=(3, 1)
        )[1]
    along = coordinates(prediction.support)[name]
    draw_curve(axes[0], along, prediction, names=("95 % interval", "mixture"))
    order = np.argsort(along.middle, kind="stable")
    x = along.middle[order]
    known = source_colours(() if data is None else data.sources, prediction.experts)
    colours = {label: known[label] for label in prediction.experts}
    for label, expert in prediction.experts.items():
        # Dashes leave the mixture to be seen where an expert has all the weight.
        style = {"color": colours[label], "linewidth": 1.2, "linestyle": (0, (4, 2))}
        axes[0].plot(x, expert.mean[order], label=label, **style)
    shares = [prediction.weights[label][order] for label in colours]
    axes[1].stackplot(x, shares, colors=list(colours.values()), alpha=0.6)
    axes[0].set_ylabel(quantity(prediction.task, prediction.units))
    legend_above(axes[0])
    axes[1].set(ylabel="weight", ylim=(0, 1), xlim=(x.min(), x.max()))
    set_axis(axes[1], "x", along)
    return axes


def _maps(prediction: Prediction) -> Any:
    """Draw means above weights, an expert in each column and the mixture in the first."""
    support, experts = prediction.support, prediction.experts
    across = across_of(coordinates(support))
    (place,) = slices_of(support, across, 1)
    means = {"mixture": prediction.mean} | {label: e.mean for label, e in experts.items()}
    some = regions_on(support, prediction.mean, across, place)
    assert some is not None
    figure, panels = map_panels(2, len(means), size_of(some), 1, 2)
    rows = place.rows(support)
    limits = limits_of([values[rows] for values in means.values()])
    upper = [(label, values, limits, FIELD_COLOURS) for label, values in means.items()]
    lower = [
        (f"weight of {label}", prediction.weights[label], (0.0, 1.0), SHARE_COLOURS)
        for label in experts
    ]
    panels[1, 0].set_axis_off()
    what = quantity(prediction.task, prediction.units)
    for row, fields, label in ((panels[0], upper, what), (panels[1, 1:], lower, "weight")):
        drawn = None
        for axes, (title, values, ends, colours) in zip(row, fields, strict=True):
            regions = regions_on(support, values, across, place)
            assert regions is not None
            drawn = draw_regions(axes, regions, ends, colours)
            set_map(axes, [regions])
            axes.set_title(title, fontsize=10)
            if axes is not row[0]:
                axes.set_ylabel("")
                axes.tick_params(labelleft=False)
        figure.colorbar(drawn, ax=list(row), label=label, shrink=0.85)
    for axes in panels[0, 1:]:
        axes.set_xlabel("")
        axes.tick_params(labelbottom=False)
    if place.words:
        figure.suptitle(place.words, fontsize=10)
    return panels
