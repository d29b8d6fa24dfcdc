"""Experts of a deep model: what each says, and the weight it has."""

from typing import Any

import numpy as np

from mrgp.data import Dataset
from mrgp.plotting.colours import SHARE_COLOURS, source_colours
from mrgp.plotting.coordinates import Coordinate, coordinates
from mrgp.plotting.functions import alone_along, broken, draw_curve, draw_line, input_of, predicted
from mrgp.plotting.panels import new_panels
from mrgp.plotting.sheets import Scale, Sheet, label_maps, limits_of, map_panels
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
        axes = new_panels(2, height=5.2, sharex=True, height_ratios=(3, 1))[1][:, 0]
    upper, lower = axes
    along = coordinates(prediction.support)[name]
    draw_curve(upper, along, prediction, "mixture")
    known = source_colours(() if data is None else data.sources, prediction.experts)
    colours = [known[label] for label in prediction.experts]
    for colour, (label, expert) in zip(colours, prediction.experts.items(), strict=True):
        # Dashes leave the mixture to be seen where an expert has all the weight.
        style = {"color": colour, "linewidth": 1.2, "linestyle": (0, (4, 2))}
        draw_line(upper, along, expert.mean, label=label, **style)
    _draw_shares(lower, along, [prediction.weights[label] for label in prediction.experts], colours)
    upper.set_ylabel(predicted(prediction))
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    upper.legend(ncols=5, frameon=False, fontsize=9, **above)
    lower.set(ylabel="weight", ylim=(0, 1))
    if along.distinct > 1:
        lower.set_xlim(along.middle.min(), along.middle.max())
    along.label_axis(lower, "x")
    return axes


def _maps(prediction: Prediction, data: Dataset | None) -> Any:
    """Draw means above weights, an expert in each column and the mixture in the first."""
    sheet = Sheet.of(prediction, data, 1, "plot_experts")
    (place,) = sheet.places
    here = place.exactly.rows(sheet.support)
    means = {"mixture": prediction.mean} | {k: e.mean for k, e in prediction.experts.items()}
    weights = {f"weight of {k}": prediction.weights[k] for k in prediction.experts}
    figure, panels = map_panels(2, len(means), [sheet.extent])
    limits = limits_of(*(values[here] for values in means.values()))
    upper, lower = ([(*f, place) for f in fields.items()] for fields in (means, weights))
    sheet.draw(panels[0], upper, Scale(predicted(prediction), limits), coloured=True)
    shares = Scale("weight", (0.0, 1.0), SHARE_COLOURS)
    sheet._replace(data=None).draw(panels[1, 1:], lower, shares)
    panels[1, 0].set_axis_off()
    # A title of the figure has the place above.
    label_maps(figure, panels, below=bool(place.words))
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
