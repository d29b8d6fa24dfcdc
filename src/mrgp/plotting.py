"""Pictures: maps of fields and data, and calibration curves. Colours suit colour-blind readers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset
from mrgp.inference import BiasMap, Dependence
from mrgp.prediction import Prediction
from mrgp.supports import Boxes, Points, Support

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIELD_COLOURS = "viridis"
SPREAD_COLOURS = "cividis"
LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
MODEL_COLOURS = ("#000000", *LINE_COLOURS, "#56B4E9", "#E69F00")
LEVELS = np.linspace(0.05, 0.95, 19)


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
    """Draw values on a two-dimensional support: a full grid of points, or boxes.

    Returns the drawn image, whose colour bar stands beside the axes.
    """
    if support.dimension != 2:
        raise ValueError(f"plot_map draws two inputs; the support has {support.dimension}.")
    low, high = limits or (float(np.min(values)), float(np.max(values)))
    if isinstance(support, Boxes):
        drawn = _draw_boxes(axes, support, values, (low, high), colours)
    else:
        x, y, grid = _as_grid(support, values)
        drawn = axes.pcolormesh(x, y, grid.T, vmin=low, vmax=high, cmap=colours, shading="nearest")
    _label_inputs(axes, support)
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
    """Draw the observations of one task over two inputs: boxes as cells, points as markers."""
    seen = data.dropna()
    values = np.concatenate([o.y for o in seen])
    low, high = limits or (float(values.min()), float(values.max()))
    drawn = None
    for o in sorted(seen, key=lambda o: isinstance(o.support, Points)):
        if isinstance(o.support, Boxes):
            drawn = _draw_boxes(axes, o.support, o.y, (low, high), FIELD_COLOURS)
        else:
            x = np.asarray(o.support.collapse().bounds[0])
            drawn = axes.scatter(
                x[:, 0],
                x[:, 1],
                c=o.y,
                vmin=low,
                vmax=high,
                cmap=FIELD_COLOURS,
                edgecolors="black",
                linewidths=0.8,
                s=28,
                label=o.name,
            )
    _label_inputs(axes, seen.supports[0])
    axes.set_title(title)
    if drawn is not None:
        axes.figure.colorbar(drawn, ax=axes, label=label, shrink=0.8)
    return drawn


def plot_calibration(
    axes: "Axes", predictions: Mapping[str, Prediction], y: Float[np.ndarray, " n"]
) -> None:
    """Draw the share of values inside central intervals against the intervals' nominal share."""
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="perfect")
    for (name, prediction), colour in zip(predictions.items(), LINE_COLOURS, strict=False):
        observed = [_coverage(prediction, y, level) for level in LEVELS]
        axes.plot(LEVELS, observed, color=colour, label=name)
    axes.set(
        xlabel="nominal share", ylabel="observed share", xlim=(0, 1), ylim=(0, 1), aspect="equal"
    )
    axes.set_title("Calibration of central intervals")
    axes.legend(frameon=False)


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
    lower, upper = (np.asarray(side)[:, 0] for side in prediction.support.bounds)
    order = np.argsort(0.5 * (lower + upper))
    x = (0.5 * (lower + upper))[order]
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


def _coverage(prediction: Prediction, y: Float[np.ndarray, " n"], level: float) -> float:
    low, high = prediction.interval(float(level))
    seen = ~np.isnan(y)
    return float(((low <= y) & (y <= high))[seen].mean())


def _draw_boxes(
    axes: "Axes",
    support: Boxes,
    values: Float[np.ndarray, " n"],
    limits: tuple[float, float],
    colours: str,
) -> Any:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    lower, upper = np.asarray(support.lower), np.asarray(support.upper)
    patches = [Rectangle(tuple(a), *(b - a)) for a, b in zip(lower, upper, strict=True)]
    drawn = PatchCollection(patches, cmap=colours, edgecolor="0.85", linewidth=0.5)
    drawn.set_array(values)
    drawn.set_clim(*limits)
    axes.add_collection(drawn)
    axes.set_xlim(lower[:, 0].min(), upper[:, 0].max())
    axes.set_ylim(lower[:, 1].min(), upper[:, 1].max())
    return drawn


def _as_grid(
    support: Support, values: Float[np.ndarray, " n"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.asarray(support.collapse().bounds[0])
    (first, i), (second, j) = (np.unique(column, return_inverse=True) for column in x.T)
    if len(first) * len(second) != len(x):
        raise ValueError("plot_map draws a full grid of points; use plot_data for scattered ones.")
    grid = np.full((len(first), len(second)), np.nan)
    grid[i, j] = values
    return first, second, grid


def _label_inputs(axes: "Axes", support: Support) -> None:
    axes.set_xlabel(support.input_names[0])
    axes.set_ylabel(support.input_names[1])
    axes.set_aspect("equal")


def plot_dependence(found: Dependence) -> Any:
    """Draw the residuals of pairs of overlapping sources; return the figure."""
    import matplotlib.pyplot as plt

    count = max(len(found.pairs), 1)
    wide = min(count, 4)
    high = -(-count // wide)
    figure, panels = plt.subplots(
        high, wide, figsize=(3.6 * wide, 3.9 * high), squeeze=False, layout="constrained"
    )
    for axes in panels.ravel()[len(found.pairs) :]:
        axes.set_visible(False)
    for axes, pair in zip(panels.ravel(), found.pairs, strict=False):
        first, second = pair.residuals.T
        reach = 1.1 * float(np.max(np.abs(pair.residuals), initial=1.0))
        axes.axline((0, 0), slope=1, color="0.7", linewidth=1)
        axes.scatter(first, second, s=16, color=LINE_COLOURS[0], alpha=0.7, linewidths=0)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        axes.set_xlabel(f"residual of {pair.first} (sd)")
        axes.set_ylabel(f"residual of {pair.second} (sd)")
        axes.set_title(
            f"correlation {pair.correlation:.2f} ± {pair.standard_error:.2f}", fontsize=10
        )
    return figure


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
