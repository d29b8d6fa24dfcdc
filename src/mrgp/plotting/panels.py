"""Figures of several panels, and legends that cover none of them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    # Pictures load matplotlib where they are drawn.
    Axes = Any

WIDTH = 9.0


def new_panels(
    rows: int, columns: int = 1, *, height: float, width: float = WIDTH, **more: Any
) -> tuple[Any, np.ndarray]:
    """Return a figure, so many inches high, with rows and columns of panels."""
    import matplotlib.pyplot as plt

    style = {"figsize": (width, height), "squeeze": False, "layout": "constrained"} | more
    return plt.subplots(rows, columns, **style)


def new_axes(axes: Axes | None) -> Axes:
    """Return the axes given, or new ones."""
    if axes is not None:
        return axes
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def legend_above(figure: Any, panels: Iterable[Axes], *, below: bool = False) -> None:
    """Put one legend of all panels above them, or `below`, where it covers nothing."""
    entries: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    if entries:
        place = f"outside {'lower' if below else 'upper'} center"
        figure.legend(entries.values(), entries, loc=place, ncols=5, frameon=False, fontsize=9)
