"""Functions of one input: predictions and data, bias maps, posteriors."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.checks import BiasMap
from mrgp.data import Dataset, Observations
from mrgp.plotting.colours import LINE_COLOURS, MODEL_COLOURS, PREDICTION_COLOUR, source_colours
from mrgp.plotting.coordinates import Coordinate, Vector, coordinates, with_units
from mrgp.plotting.panels import Axes, new_axes, new_panels
from mrgp.plotting.slices import EVERYWHERE, Slice, slices_of
from mrgp.prediction import Prediction
from mrgp.supports import Support

GAP = 5.0
"""How many times the steps about it a step is where a curve is broken."""

ABOUT = 4
"""How many steps on either side are about a step."""

FEW_DOTS = 150


def plot_function(
    prediction: Prediction,
    axes: Axes | None = None,
    *,
    data: Dataset | None = None,
    truth: Vector | None = None,
) -> Axes:
    """Draw a prediction along one input: mean, 95 % interval, and the data it was made from.

    Values of points are dots, and those of regions bars as wide as the region; sums are divided by
    the measure of theirs. Data of other tasks than the prediction's, or of other places where other
    inputs are held, are left out. Where nothing is predicted, curves have a gap, and predictions
    that stand alone are dots with a bar.

    >>> import mrgp
    >>> from matplotlib.figure import Figure
    >>> x, one = mrgp.points([[0.0], [1.0]], inputs="day"), np.ones((1, 2))
    >>> data = mrgp.Dataset([mrgp.Observations(x, [1.0, 2.0], task="no2", name="sensors")])
    >>> found = mrgp.Prediction(x, "no2", None, "ppb", one, one, one)
    >>> axes = plot_function(found, Figure().subplots(), data=data)
    >>> axes.get_xlabel(), axes.get_ylabel(), axes.get_legend_handles_labels()[1]
    ('day', 'no2 (ppb)', ['95 % interval', 'mean', 'sensors'])
    """
    name = input_of(prediction.support)
    if name is None:
        raise ValueError(
            f"plot_function draws one input; the support has {prediction.support.dimension}. Use"
            " plot_map for two."
        )
    axes = new_axes(axes)
    along = coordinates(prediction.support)[name]
    draw_curve(axes, along, prediction)
    if truth is not None:
        style = {"color": "0.35", "linewidth": 1, "linestyle": "--", "label": "truth"}
        draw_line(axes, along, np.asarray(truth), **style)
    if data is not None:
        (place,) = slices_of(prediction.support, [name], 1)
        sums = prediction.support.kind == "sum"
        draw_values(axes, data, prediction.task, name, place, raw=sums)
    along.label_axis(axes, "x")
    axes.set_ylabel(predicted(prediction))
    return axes


def input_of(support: Support) -> str | None:
    """Return the one input of a support, or the only one that varies."""
    found = coordinates(support)
    varying = [name for name, c in found.items() if len(found) == 1 or c.distinct > 1]
    return varying[0] if len(varying) == 1 else None


def predicted(prediction: Prediction) -> str:
    """Return what was predicted, with its units; sums are called so."""
    said = with_units(prediction.task, prediction.units)
    return f"sum of {said}" if prediction.support.kind == "sum" else said


def per_unit(observed: Observations) -> Vector:
    """Return values that compare with the field's: sums are divided by the measure of their region.

    >>> import mrgp
    >>> day = mrgp.intervals([0.0], [24.0], inputs="hour", kind="sum")
    >>> per_unit(mrgp.Observations(day, [240.0], name="daily"))
    array([10.])
    """
    if observed.support.kind != "sum":
        return observed.y
    total = np.asarray(observed.support.total)
    return np.where(total != 0, observed.y / np.where(total != 0, total, 1.0), np.nan)


def spoken(observed: Observations) -> str:
    """Return the name of a source, with what was done to its values."""
    return f"{observed.name} (sum per unit)" if observed.support.kind == "sum" else observed.name


def of_task(data: Dataset, task: str) -> Dataset:
    """Return the values of a task that was predicted, or say which tasks there are."""
    if task not in data.tasks:
        raise ValueError(
            f"data= has no values of {task!r}, which was predicted; it has {data.tasks}. Give the"
            " data of that task, or leave data= out."
        )
    return data.dropna().select(task=[task])


def draw_curve(axes: Axes, along: Coordinate, prediction: Prediction, name: str = "mean") -> None:
    """Draw the mean of a prediction, by some name, over its 95 % interval."""
    if np.isnan(prediction.mean).all():
        raise ValueError(
            f"There are no values of {prediction.task} to draw; all that were predicted are NaN."
        )
    low, high = prediction.interval(0.95)
    x, lower, upper = broken(along, low, high)
    style = {"color": PREDICTION_COLOUR, "alpha": 0.25, "linewidth": 0}
    axes.fill_between(x, lower, upper, label="95 % interval", **style)
    alone = alone_along(along)
    if alone.any():
        at = along.middle[alone]
        axes.vlines(at, low[alone], high[alone], color=PREDICTION_COLOUR, alpha=0.5, linewidth=2)
    draw_line(axes, along, prediction.mean, color=PREDICTION_COLOUR, linewidth=1.6, label=name)


def draw_line(axes: Axes, along: Coordinate, values: Vector, **style: Any) -> None:
    """Draw values along an input as a line with gaps, and those that stand alone as dots."""
    axes.plot(*broken(along, values), **style)
    alone = alone_along(along)
    if alone.any():
        at = along.middle[alone]
        axes.plot(at, values[alone], ".", color=style["color"], markersize=7.0, zorder=2.5)


def draw_values(
    axes: Axes, data: Dataset, task: str, name: str, place: Slice = EVERYWHERE, *, raw: bool = False
) -> None:
    """Draw the observed values of a task along one input: dots for points, bars for regions.

    Sources have the colours of the whole dataset. Sums are divided by the measure of their region,
    unless they are drawn `raw`, beside predicted sums.
    """
    colours, seen = source_colours(data.sources), of_task(data, task)
    others = [o.name for o in seen if o.support.kind != "sum"]
    if raw and others:
        raise ValueError(
            f"data= has points or means, of {others}, and the prediction is of sums: they have no"
            " scale in common. Predict means, or leave those sources out, as by"
            " data.select(source=...)."
        )
    for observed in seen:
        rows = place.rows(observed.support)
        if not rows.any():
            continue
        c = coordinates(observed.support)[name].take(rows)
        y = (observed.y if raw else per_unit(observed))[rows]
        label = observed.name if raw else spoken(observed)
        style = {"color": colours[observed.name], "label": label, "zorder": 3}
        if np.all(c.upper > c.lower):
            axes.hlines(y, c.lower, c.upper, linewidth=2, **style)
        else:
            size = 5.0 if len(y) <= FEW_DOTS else 3.5
            axes.plot(c.middle, y, ".", markersize=size, **style)


def broken(along: Coordinate, *several: Vector) -> list[np.ndarray]:
    """Return places in ascending order, and values there, with NaN where there is a gap."""
    order = np.argsort(along.middle, kind="stable")
    x = along.middle[order]
    gaps = _gaps(x)
    return [np.insert(values, gaps, np.nan) for values in (x, *(v[order] for v in several))]


def alone_along(along: Coordinate) -> np.ndarray:
    """Tell which places have no neighbour that a line could go to."""
    order = np.argsort(along.middle, kind="stable")
    x = along.middle[order]
    alone = np.zeros(len(x), bool)
    for rows in np.split(np.arange(len(x)), _gaps(x)):
        alone[order[rows]] = np.ptp(x[rows]) <= 1e-9 * max(np.ptp(x), 1e-300)
    return alone


def _gaps(x: Vector) -> np.ndarray:
    """Return the places before which values in ascending order leave a gap.

    A step is compared with those about it: steps may grow along an input, as on a log grid.
    """
    steps = np.diff(x)
    moved = np.flatnonzero(steps > 1e-9 * np.ptp(x))
    if len(moved) < 2:
        return np.zeros(0, int)
    steps = steps[moved]
    padded = np.pad(steps, ABOUT, constant_values=np.nan)
    about = np.delete(np.lib.stride_tricks.sliding_window_view(padded, 2 * ABOUT + 1), ABOUT, 1)
    nearest = np.nanmin(about[:, ABOUT - 1 : ABOUT + 1], 1)
    return 1 + moved[steps > GAP * np.maximum(np.nanmedian(about, 1), nearest)]


def plot_bias_map(bias_map: BiasMap, axes: Axes | None = None) -> Axes:
    """Draw the target against a source's value, with the 95 % interval and the line of no bias.

    >>> import mrgp
    >>> from matplotlib.figure import Figure
    >>> v = np.arange(3.0)
    >>> found = mrgp.BiasMap("sat", "laqn", "no2", "ppb", "ppb", v, 2 * v, v + 1, 0.1, {})
    >>> plot_bias_map(found, Figure().subplots()).get_xlabel()
    'sat (ppb)'
    """
    axes = new_axes(axes)
    values, (low, high) = bias_map.values, bias_map.interval(0.95)
    axes.fill_between(values, low, high, color=LINE_COLOURS[0], alpha=0.25, label="95 % interval")
    axes.plot(values, bias_map.mean, color=LINE_COLOURS[0], label="learned map")
    if bias_map.units == bias_map.source_units:
        axes.plot(values, values, color="0.6", linewidth=1, linestyle="--", label="no bias")
    axes.set_xlabel(with_units(bias_map.source, bias_map.source_units))
    axes.set_ylabel(with_units(bias_map.target, bias_map.units))
    axes.set_title(map_title(bias_map))
    axes.legend(frameon=False)
    return axes


def map_title(bias_map: BiasMap) -> str:
    """Say from which source to which target a map goes, and where it is looked at."""
    place = ", ".join(f"{name} = {value:.4g}" for name, value in bias_map.at.items())
    return f"{bias_map.source} to {bias_map.target}" + (f" at {place}" if place else "")


def plot_posteriors(
    support: Support,
    functions: Mapping[str, Prediction],
    draws: Mapping[str, Mapping[str, Float[np.ndarray, " _"]]],
    names: Mapping[str, str],
    *,
    truth: Vector | None = None,
) -> Any:
    """Draw posteriors of a function of one input, and of parameters, under several models.

    `functions` and `draws` are by model, the latter by parameter, all positive; `names` says what
    to call the parameters. Returns the figure.

    >>> import mrgp
    >>> x, one = mrgp.points([[0.0], [1.0]], inputs="day"), np.ones((1, 2))
    >>> found = mrgp.Prediction(x, "no2", None, "ppb", one, one, one)
    >>> draws = {"nuts": {"noise": np.linspace(1.0, 2.0, 50)}}
    >>> figure = plot_posteriors(x, {"nuts": found}, draws, {"noise": "noise sd (ppb)"})
    >>> figure.axes[1].get_xlabel()
    'noise sd (ppb) (log axis)'
    """
    if len(functions) > len(MODEL_COLOURS) or len(names) > 3:
        raise ValueError(
            f"plot_posteriors draws up to {len(MODEL_COLOURS)} models and 3 parameters; got"
            f" {len(functions)} and {len(names)}."
        )
    figure, panels = new_panels(2, 2, height=6.4)
    first, *others = panels.flat
    along = next(iter(coordinates(support).values()))
    x = along.middle
    for colour, (model, latent) in zip(MODEL_COLOURS, functions.items(), strict=False):
        first.plot(x, latent.mean, color=colour, linewidth=1.4, label=model)
        for side in (-2, 2):
            edge = latent.mean + side * latent.std
            first.plot(x, edge, color=colour, linewidth=0.8, linestyle="--")
    if truth is not None:
        first.plot(x, truth, color="0.6", linewidth=2.5, zorder=0, label="truth")
    first.set_ylabel("f: mean, and 2 sd either side (dashed)")
    along.label_axis(first, "x")
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)
    for axes, (key, name) in zip(others, names.items(), strict=False):
        for colour, by_parameter in zip(MODEL_COLOURS, draws.values(), strict=False):
            at, density = _log_density_curve(by_parameter[key])
            axes.plot(at, density / density.max(), color=colour, linewidth=1.4)
        set_log(axes)
        axes.set(xlabel=f"{name} (log axis)", ylabel="density / its maximum", ylim=(0, None))
    return figure


def set_log(axes: Axes, subs: tuple[int, ...] = (1, 2, 5)) -> None:
    """Make the x axis logarithmic, with plain numbers at its ticks."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _log_density_curve(values: np.ndarray) -> tuple[Vector, Vector]:
    """Return where positive values lie, and the density of their logarithm there."""
    from scipy.stats import gaussian_kde

    logs = np.log(values)
    low, high = np.quantile(logs, [0.001, 0.999])
    margin = 0.2 * (high - low)
    at = np.linspace(low - margin, high + margin, 200)
    return np.exp(at), gaussian_kde(logs)(at)
