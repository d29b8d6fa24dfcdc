"""Maps of fields and of data."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset
from mrgp.plotting.colours import FIELD_COLOURS
from mrgp.supports import Boxes, Points, Support

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


def plot_outlines(axes: "Axes", support: Boxes, *, colour: str = "white") -> None:
    """Draw the edges of boxes over two inputs, on a map that is there."""
    from matplotlib.collections import PatchCollection

    drawn = PatchCollection(_rectangles(support), facecolor="none", edgecolor=colour, linewidth=1.0)
    axes.add_collection(drawn)


def _rectangles(support: Boxes) -> list[Any]:
    from matplotlib.patches import Rectangle

    lower, upper = np.asarray(support.lower), np.asarray(support.upper)
    return [Rectangle(tuple(a), *(b - a)) for a, b in zip(lower, upper, strict=True)]


def _draw_boxes(
    axes: "Axes",
    support: Boxes,
    values: Float[np.ndarray, " n"],
    limits: tuple[float, float],
    colours: str,
) -> Any:
    from matplotlib.collections import PatchCollection

    lower, upper = np.asarray(support.lower), np.asarray(support.upper)
    drawn = PatchCollection(_rectangles(support), cmap=colours, edgecolor="0.85", linewidth=0.5)
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
