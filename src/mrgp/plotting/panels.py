"""Figures of several maps: their panels, and which of them have labels."""

from typing import TYPE_CHECKING, Any

import numpy as np

from mrgp.plotting.shapes import Regions, draw_regions, set_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 9.0


def map_panels(
    rows: int, columns: int, height: float, bars: int, lines: int = 1
) -> tuple[Any, np.ndarray]:
    """Return a figure with panels for maps that are so high for their width.

    `bars` is the number of colour bars side by side, and `lines` that of the lines of titles.
    """
    import matplotlib.pyplot as plt

    wide = min(WIDTH, 4.6 * columns)
    # Inches that ticks, labels and bars take.
    each = (wide - 0.7 - 0.95 * bars) / columns * height + 0.15 + 0.2 * lines
    return plt.subplots(
        rows, columns, figsize=(wide, each * rows + 0.8), squeeze=False, layout="compressed"
    )


def draw_panel(
    axes: "Axes",
    regions: Regions | None,
    everything: Regions,
    limits: tuple[float, float],
    colours: str,
) -> Any:
    """Draw one map of several; where there are no regions it says so, over the extent of all."""
    set_map(axes, [regions or everything])
    if regions is None:
        say_empty(axes)
        return None
    return draw_regions(axes, regions, limits, colours)


def say_empty(axes: "Axes") -> None:
    """Say that a map has nothing to show."""
    axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", color="0.4")


def label_outer(panels: np.ndarray, occupied: np.ndarray) -> None:
    """Leave the labels of axes to the first map of each row and the last of each column."""
    for (i, j), axes in np.ndenumerate(panels):
        if not occupied[i, j]:
            axes.set_axis_off()
            continue
        hidden = {"x": occupied[i + 1 :, j].any(), "y": occupied[i, :j].any()}
        for side, inside in hidden.items():
            if inside:
                axis = getattr(axes, f"{side}axis")
                axis.set_label_text("")
                axis.set_tick_params(labelbottom=False, labelleft=False)
                axis.offsetText.set_visible(False)
