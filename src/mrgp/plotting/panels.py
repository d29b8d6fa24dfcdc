"""Figures of several panels: curves above one another, and maps on one colour scale."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mrgp.plotting.colours import FIELD_COLOURS
from mrgp.plotting.shapes import Regions, draw_regions, set_map, size_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 9.0


def new_panels(
    rows: int,
    columns: int = 1,
    *,
    height: float,
    width: float = WIDTH,
    layout: str = "constrained",
    **more: Any,
) -> tuple[Any, np.ndarray]:
    """Return a figure, so many inches high, with rows and columns of panels."""
    import matplotlib.pyplot as plt

    size = (width, height)
    return plt.subplots(rows, columns, figsize=size, squeeze=False, layout=layout, **more)


def new_axes(axes: "Axes | None") -> "Axes":
    """Return the axes given, or new ones."""
    if axes is not None:
        return axes
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def legend_above(target: Any, axes: Sequence["Axes"] | None = None, *, below: bool = False) -> None:
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


def map_panels(
    rows: int, columns: int, extent: Sequence[Regions], *, bars: int = 1, lines: int = 2
) -> tuple[Any, np.ndarray]:
    """Return a figure with panels for maps of an extent.

    `bars` is the number of colour bars side by side, and `lines` that of the lines of titles.
    """
    width = min(WIDTH, 4.6 * columns)
    # Inches that ticks, labels and bars take.
    each = (width - 0.7 - 0.95 * bars) / columns * size_of(extent) + 0.15 + 0.2 * lines
    return new_panels(rows, columns, height=each * rows + 0.8, width=width, layout="compressed")


class Scale(NamedTuple):
    """What the colours of maps mean: of what, from where to where, and which ends are passed."""

    label: str
    limits: tuple[float, float]
    colours: str = FIELD_COLOURS
    beyond: str = "neither"


class Map(NamedTuple):
    """One map of several: its title, what is drawn, if anything, and over which extent."""

    title: str
    regions: Regions | None
    extent: Sequence[Regions]
    marker: str | None = None


def draw_maps(
    panels: Sequence["Axes"], maps: Sequence[Map | None], scale: Scale, **bar: Any
) -> None:
    """Draw maps on one colour scale, with one bar beside them; panels without a map stay empty."""
    drawn = None
    for axes, one in zip_longest(panels, maps):
        if one is None:
            axes.set_axis_off()
            continue
        set_map(axes, one.extent)
        axes.set_title(one.title, fontsize=10)
        if one.regions is None:
            axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", color="0.4")
        else:
            drawn = draw_regions(axes, one.regions, scale.limits, scale.colours, marker=one.marker)
    if drawn is not None:
        style = {"label": scale.label, "extend": scale.beyond, "shrink": 0.85} | bar
        panels[0].figure.colorbar(drawn, ax=list(panels), **style)


def label_outer(panels: np.ndarray) -> None:
    """Leave the labels of axes to the first map of each row and the last of each column."""
    shown = np.array([[axes.axison for axes in row] for row in panels])
    for (i, j), axes in np.ndenumerate(panels):
        hidden = ((axes.xaxis, shown[i + 1 :, j]), (axes.yaxis, shown[i, :j]))
        for axis in (axis for axis, others in hidden if others.any()):
            axis.set_label_text("")
            axis.set_tick_params(labelbottom=False, labelleft=False)
            axis.offsetText.set_visible(False)
