"""Maps of fields and of data."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset
from mrgp.plotting.colours import FIELD_COLOURS, SPREAD_COLOURS
from mrgp.plotting.functions import plot_function
from mrgp.prediction import Prediction
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


MOST_MAPS = 6


def plot_prediction(prediction: Prediction) -> Any:
    """Draw a prediction: a curve over one input, or mean and sd as maps; return the figure.

    Maps are in the coordinates that the user gave, degrees and dates. Where a third input varies,
    there is a row of maps for each of its values, six at most, evenly chosen.
    """
    import matplotlib.pyplot as plt

    if prediction.support.dimension == 1:
        figure, axes = plt.subplots(figsize=(9.0, 3.6), layout="constrained")
        plot_function(prediction, axes)
        return figure
    try:
        grid = prediction.to_grid()
    except ValueError as error:
        raise ValueError(
            "A picture needs one input, or a grid over two (and others, one after the other);"
            f" got {prediction.support}. {error}"
        ) from None
    sizes = {str(name): size for name, size in grid["mean"].sizes.items()}
    across = _across(sizes)
    others = [name for name in sizes if name not in across]
    stack = grid.stack(panel=others) if others else grid.expand_dims("panel")
    chosen = np.unique(np.linspace(0, stack.sizes["panel"] - 1, MOST_MAPS).astype(int))
    figure, panels = plt.subplots(
        len(chosen), 2, figsize=(9.0, 3.4 * len(chosen)), squeeze=False, layout="constrained"
    )
    unit = f" ({prediction.units})" if prediction.units else ""
    for column, (name, word, colours) in enumerate(
        (("mean", "mean", FIELD_COLOURS), ("std", "sd", SPREAD_COLOURS))
    ):
        values = stack[name].transpose("panel", *across)
        low, high = float(values.min()), float(values.max())
        for axes, place in zip(panels[:, column], chosen, strict=True):
            one = values.isel(panel=int(place))
            drawn = axes.pcolormesh(
                one[across[0]],
                one[across[1]],
                one.to_numpy().T,
                vmin=low,
                vmax=high,
                cmap=colours,
                shading="nearest",
            )
            words = [f"{other} {_short(one[other].item(), one[other])}" for other in others]
            axes.set(xlabel=across[0], ylabel=across[1], title=", ".join([word, *words]))
            figure.colorbar(drawn, ax=axes, label=f"{prediction.task}{unit}", shrink=0.8)
    return figure


def _across(sizes: dict[str, int]) -> list[str]:
    """Return the two inputs of a map: longitude and latitude, or the two that vary most."""
    for pair in (["lon", "lat"], ["longitude", "latitude"], ["x", "y"]):
        if all(name in sizes for name in pair):
            return pair
    order = sorted(sizes, key=lambda name: -sizes[name])
    return [name for name in sizes if name in order[:2]]


def _short(value: Any, array: Any) -> str:
    if np.issubdtype(array.dtype, np.datetime64):
        return str(np.datetime64(value, "ns").astype("datetime64[m]")).replace("T", " ")
    return f"{value:g}"
