"""Functions of one input: predictions, experts, bias maps, posteriors."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset
from mrgp.inference import BiasMap
from mrgp.plotting.colours import LINE_COLOURS, MODEL_COLOURS
from mrgp.prediction import Prediction
from mrgp.supports import Support

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP = 5.0
"""How many times the usual step two neighbours are apart where a curve is broken."""


def plot_function(
    prediction: Prediction,
    axes: "Axes | None" = None,
    *,
    data: Dataset | None = None,
    truth: Float[np.ndarray, " n"] | None = None,
) -> "Axes":
    """Draw a prediction along one input: mean, 95 % interval, and the data it was made from.

    Values of points are dots, and those of regions bars as wide as the region. Data of other tasks
    than the prediction's are left out. Where nothing is predicted, curves have a gap.
    """
    if prediction.support.dimension != 1:
        raise ValueError(
            f"plot_function draws one input; the support has {prediction.support.dimension}. Use"
            " plot_map for two."
        )
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots(layout="constrained")[1]
    x, order = _along(prediction.support)
    gaps = _gaps(x)
    x, low, high, mean = (
        np.insert(values, gaps, np.nan)
        for values in (x, *(side[order] for side in (*prediction.interval(0.95), prediction.mean)))
    )
    band = {"color": LINE_COLOURS[0], "alpha": 0.25, "linewidth": 0, "label": "95 % interval"}
    axes.fill_between(x, low, high, **band)
    axes.plot(x, mean, color=LINE_COLOURS[0], linewidth=1.6, label="mean")
    if truth is not None:
        curve = np.insert(truth[order], gaps, np.nan)
        axes.plot(x, curve, color="0.35", linewidth=1, linestyle="--", label="truth")
    colours = ("#000000", *LINE_COLOURS[1:])
    seen = [] if data is None else [o for o in data.dropna() if o.task == prediction.task]
    for i, observed in enumerate(seen):
        lower, upper = (np.asarray(side)[:, 0] for side in observed.support.bounds)
        style = {"color": colours[i % len(colours)], "label": observed.name, "zorder": 3}
        if np.all(upper > lower):
            axes.hlines(observed.y, lower, upper, linewidth=2, **style)
        else:
            axes.plot(lower, observed.y, ".", markersize=3.5, **style)
    units = f" ({prediction.units})" if prediction.units else ""
    axes.set(xlabel=prediction.support.input_names[0], ylabel=f"{prediction.task}{units}")
    return axes


def _along(support: Support) -> tuple[Float[np.ndarray, " n"], np.ndarray]:
    """Return the middles of regions of one input in ascending order, and that order."""
    lower, upper = (np.asarray(side)[:, 0] for side in support.bounds)
    middle = 0.5 * (lower + upper)
    order = np.argsort(middle)
    return middle[order], order


def _gaps(x: Float[np.ndarray, " n"]) -> np.ndarray:
    """Return the places before which values in ascending order leave a gap."""
    steps = np.diff(x)
    usual = np.median(steps[steps > 0]) if np.any(steps > 0) else np.inf
    return 1 + np.flatnonzero(steps > GAP * usual)


def plot_bias_map(bias_map: BiasMap, axes: "Axes | None" = None) -> "Axes":
    """Draw the target against a source's value, with the 95 % interval and the line of no bias."""
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots(layout="constrained")[1]
    values, (low, high) = bias_map.values, bias_map.interval(0.95)
    axes.fill_between(values, low, high, color=LINE_COLOURS[0], alpha=0.25, label="95 % interval")
    axes.plot(values, bias_map.mean, color=LINE_COLOURS[0], label="learned map")
    if bias_map.units == bias_map.source_units:
        axes.plot(values, values, color="0.6", linewidth=1, linestyle="--", label="no bias")
    given, found = (f" ({u})" if u else "" for u in (bias_map.source_units, bias_map.units))
    axes.set(xlabel=f"{bias_map.source}{given}", ylabel=f"{bias_map.target}{found}")
    place = ", ".join(f"{name} = {value:.4g}" for name, value in bias_map.at.items())
    axes.set_title(f"{bias_map.source} to {bias_map.target}" + (f" at {place}" if place else ""))
    axes.legend(frameon=False)
    return axes


def plot_experts(prediction: Prediction, axes: Any = None) -> Any:
    """Draw what the experts of a deep model say along one input, and the weight each has.

    Returns two axes: the experts with the mixture and its 95 % interval, and the weights.
    """
    if not prediction.experts:
        raise ValueError("plot_experts draws predictions of mrgp.MRDGP, which have experts.")
    if prediction.support.dimension != 1:
        raise ValueError(
            f"plot_experts draws one input; the support has {prediction.support.dimension}. Draw"
            " prediction.weights of a map with plot_map."
        )
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots(2, sharex=True, layout="constrained", height_ratios=(3, 1))[1]
    x, order = _along(prediction.support)
    low, high = prediction.interval(0.95)
    axes[0].fill_between(x, low[order], high[order], color="0.85", label="95 % interval")
    axes[0].plot(x, prediction.mean[order], color="black", linewidth=2.5, label="mixture")
    colours = dict(zip(prediction.experts, LINE_COLOURS * len(prediction.experts), strict=False))
    for label, expert in prediction.experts.items():
        axes[0].plot(x, expert.mean[order], color=colours[label], linewidth=1.2, label=label)
    shares = [prediction.weights[label][order] for label in colours]
    axes[1].stackplot(x, shares, colors=list(colours.values()), alpha=0.8)
    units = f" ({prediction.units})" if prediction.units else ""
    axes[0].set(ylabel=f"{prediction.task}{units}")
    axes[0].legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)
    axes[1].set(xlabel=prediction.support.input_names[0], ylabel="weight", ylim=(0, 1))
    return axes


def plot_posteriors(
    support: Support,
    functions: Mapping[str, Prediction],
    draws: Mapping[str, Mapping[str, Float[np.ndarray, " k"]]],
    names: Mapping[str, str],
    *,
    truth: Float[np.ndarray, " n"] | None = None,
) -> Any:
    """Draw posteriors of a function of one input, and of parameters, under several models.

    `functions` and `draws` are by model, the latter by parameter, all positive; `names` says what
    to call the parameters. Returns the figure.
    """
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    if len(functions) > len(MODEL_COLOURS) or len(names) > 3:
        raise ValueError(
            f"plot_posteriors draws up to {len(MODEL_COLOURS)} models and 3 parameters; got"
            f" {len(functions)} and {len(names)}."
        )
    figure, axes = plt.subplots(2, 2, figsize=(9.0, 6.4), layout="constrained")
    panels = axes.ravel()
    x = np.asarray(support.bounds[0])[:, 0]
    for colour, (model, latent) in zip(MODEL_COLOURS, functions.items(), strict=False):
        panels[0].plot(x, latent.mean, color=colour, linewidth=1.4, label=model)
        for side in (-2, 2):
            edge = latent.mean + side * latent.std
            panels[0].plot(x, edge, color=colour, linewidth=0.8, linestyle="--")
    if truth is not None:
        panels[0].plot(x, truth, color="0.6", linewidth=2.5, zorder=0, label="truth")
    panels[0].set(xlabel=support.input_names[0], ylabel="f: mean, and 2 sd either side (dashed)")
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)
    for axes_, (key, name) in zip(panels[1:], names.items(), strict=False):
        for colour, by_parameter in zip(MODEL_COLOURS, draws.values(), strict=False):
            at, density = _log_density_curve(by_parameter[key])
            axes_.plot(at, density / density.max(), color=colour, linewidth=1.4)
        axes_.set(xlabel=f"{name} (log axis)", xscale="log", ylim=(0, None))
        axes_.set_ylabel("density / its maximum")
        axes_.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes_.xaxis.set_major_formatter("{x:g}")
        axes_.xaxis.set_minor_formatter(NullFormatter())
    return figure


def _log_density_curve(
    values: Float[np.ndarray, " k"],
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Return where positive values lie, and the density of their logarithm there."""
    from scipy.stats import gaussian_kde

    logs = np.log(values)
    low, high = np.quantile(logs, [0.001, 0.999])
    margin = 0.2 * (high - low)
    at = np.linspace(low - margin, high + margin, 200)
    return np.exp(at), gaussian_kde(logs)(at)
