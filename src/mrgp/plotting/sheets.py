"""Sheets of several maps: rows and columns over one extent, on common colour scales."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from mrgp.data import Dataset
from mrgp.plotting.colours import FIELD_COLOURS, source_markers
from mrgp.plotting.coordinates import Vector, across_of, coordinates
from mrgp.plotting.functions import of_task, spoken
from mrgp.plotting.panels import WIDTH, Axes, legend_above, new_panels
from mrgp.plotting.shapes import Limits, Regions, regions_of, regions_on, set_map, size_of
from mrgp.plotting.slices import Slice, slices_of
from mrgp.prediction import Prediction
from mrgp.supports import Support

INLIERS = (0.02, 0.98)


class Scale(NamedTuple):
    """What the colours of maps mean: of what, from where to where, and which ends are passed."""

    label: str
    limits: Limits
    colours: str = FIELD_COLOURS
    beyond: str = "neither"


class Map(NamedTuple):
    """One map of several: its title, what is drawn, if anything, and over which extent."""

    title: str
    regions: Regions | None
    extent: Sequence[Regions]
    marker: str | None = None


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


def draw_maps(panels: np.ndarray, maps: Sequence[Map | None], scale: Scale) -> None:
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
            drawn = one.regions.draw(axes, scale.limits, scale.colours, marker=one.marker)
    if drawn is not None:
        below = len({axes.get_subplotspec().colspan for axes in panels}) == 1
        style = {"label": scale.label, "extend": scale.beyond, "shrink": 0.85}
        # A bar beside a column is as long as all of its maps, and no wider than beside one.
        style["aspect"] = 20 + 14 * (len(panels) - 1) if below else 20
        panels[0].figure.colorbar(drawn, ax=list(panels), **style)


def label_maps(figure: Any, panels: np.ndarray, *, below: bool = False) -> None:
    """Leave the labels of axes to the first map of each row and the last of each column.

    One legend for all stands above them, or `below`.
    """
    shown = np.array([[axes.axison for axes in row] for row in panels])
    for (i, j), axes in np.ndenumerate(panels):
        hidden = ((axes.xaxis, shown[i + 1 :, j]), (axes.yaxis, shown[i, :j]))
        for axis in (axis for axis, others in hidden if others.any()):
            axis.set_label_text("")
            axis.set_tick_params(labelbottom=False, labelleft=False)
            axis.offsetText.set_visible(False)
    legend_above(figure, panels.flat, below=below)


Field = tuple[str, Vector, Slice]
"""What is mapped: its title, its values, and where."""


class Sheet(NamedTuple):
    """A prediction over two inputs: its extent, the slices that are drawn, and data on top."""

    support: Support
    across: tuple[str, str]
    extent: Regions
    places: list[Slice]
    data: Dataset | None

    @classmethod
    def of(cls, prediction: Prediction, data: Dataset | None, most: int, who: str) -> "Sheet":
        """Return what is drawn of a prediction, or say that there is nothing."""
        support = prediction.support
        across = across_of(coordinates(support))
        extent = regions_on(support, prediction.mean, across)
        if extent is None:
            raise ValueError(f"{who}: there are no values to draw; all are NaN.")
        known = support[np.flatnonzero(~np.isnan(prediction.mean))]
        seen = None if data is None else of_task(data, prediction.task)
        return cls(support, across, extent, slices_of(known, across, most), seen)

    def draw(
        self, panels: np.ndarray, fields: Sequence[Field], scale: Scale, *, coloured: bool = False
    ) -> None:
        """Draw fields, each with its title, at their slices on one colour scale, under the data.

        Data are `coloured` on the scale, but for sums, which have none in common with points.
        """
        coloured = coloured and self.support.kind != "sum"
        if coloured and self.data is not None:
            limits, beyond = with_points(scale.limits, self.data, self.across, self.places)
            scale = scale._replace(limits=limits, beyond=beyond)
        maps = []
        for title, values, place in fields:
            regions = regions_on(self.support, values, self.across, place.exactly)
            maps.append(Map(title, regions, [regions or self.extent]))
        draw_maps(panels, maps, scale)
        if self.data is not None:
            for axes, (_, _, place) in zip(panels, fields, strict=True):
                overlay(axes, self.data, self.across, place, scale.limits if coloured else None)


def overlay(
    axes: Axes, data: Dataset, across: Sequence[str], place: Slice, limits: Limits | None
) -> None:
    """Draw the data of a slice on a map: points by value, or hollow, and areas by outlines.

    The map keeps its extent; what lies beyond is cut off.
    """
    from matplotlib.lines import Line2D

    for o, marker in zip(data, source_markers(data.sources).values(), strict=True):
        regions = regions_of(o, across, place)
        if regions is None:
            continue
        style: dict[str, Any] = {"marker": marker, "mfc": "none", "mec": "black", "ms": 5}
        if regions.shapes is not None:
            style = {"marker": "s", "mfc": "0.8", "mec": "white", "ms": 9}
            regions.outline(axes, "white")
        elif limits is None:
            regions.outline(axes, "black", marker=marker)
        else:
            regions.draw(axes, limits, FIELD_COLOURS, marker=marker)
        axes.add_line(Line2D([], [], linestyle="none", label=spoken(o), **style))


def with_points(
    limits: Limits, data: Dataset, across: Sequence[str], places: Sequence[Slice]
) -> tuple[Limits, str]:
    """Widen limits to the values drawn as markers, but for outliers; say at which end those are."""
    found = [regions_of(o, across, place) for o in data for place in places]
    drawn = [r.values for r in found if r is not None and r.shapes is None]
    return without_outliers(np.concatenate(drawn), limits) if drawn else (limits, "neither")


def without_outliers(values: Vector, least: Limits = (np.inf, -np.inf)) -> tuple[Limits, str]:
    """Return limits of colours that far outliers do not stretch, and at which ends they lie.

    The limits are at least as wide as those given.

    >>> without_outliers(np.append(np.linspace(0.0, 10.0, 99), 90.0))
    ((0.0, 12.32...), 'max')
    """
    lower, upper = limits_of(values)
    low, high = (float(end) for end in np.quantile(values, INLIERS))
    reach = 0.25 * (high - low)
    low, high = max(lower, low - reach), min(upper, high + reach)
    low, high = min(least[0], low), max(least[1], high)
    ends = {(True, True): "both", (True, False): "min", (False, True): "max"}
    return (low, high), ends.get((lower < low, upper > high), "neither")


def limits_of(*several: np.ndarray) -> Limits:
    """Return the least and the greatest of some values."""
    values = np.concatenate(several)
    return float(np.nanmin(values)), float(np.nanmax(values))
