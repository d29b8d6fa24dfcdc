"""Pictures: maps of fields and data, and calibration curves. Colours suit colour-blind readers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset
from mrgp.prediction import Prediction
from mrgp.supports import Boxes, Points, Support

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIELD_COLOURS = "viridis"
SPREAD_COLOURS = "cividis"
LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
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
