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


def legend_above(target: Any, axes: Iterable[Axes] | None = None, *, below: bool = False) -> None:
    """Put one legend above a figure, or above axes, where it covers nothing, or `below` one."""
    entries: dict[str, Any] = {}
    for one in [target] if axes is None else axes:
        handles, labels = one.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    if not entries:
        return
    place: dict[str, Any] = {"loc": f"outside {'lower' if below else 'upper'} center"}
    if axes is None:
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    target.legend(
        entries.values(), entries, frameon=False, ncols=min(len(entries), 5), fontsize=9, **place
    )
