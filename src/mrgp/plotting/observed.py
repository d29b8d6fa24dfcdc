"""Datasets: every source as what it is, cells, polygons and points, bars and dots."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.plotting.colours import FIELD_COLOURS, source_markers
from mrgp.plotting.coordinates import (
    Coordinate,
    Slice,
    across_of,
    coordinates,
    joined,
    set_axis,
    slices_of,
)
from mrgp.plotting.functions import draw_values, legend_above, per_unit, quantity, spoken
from mrgp.plotting.maps import MOST_MAPS, without_outliers
from mrgp.plotting.panels import WIDTH, label_outer, map_panels, say_empty
from mrgp.plotting.shapes import Regions, draw_regions, regions_on, set_map, size_of


def plot_dataset(data: Dataset) -> Any:
    """Draw the sources of a dataset, in the coordinates that the user gave; return the figure.

    Where one input varies there is a panel for each task: values of points are dots, and those of
    regions bars as wide as the region. Otherwise maps show cells, polygons and points: a row for
    each task and a column for each source or, where a third input such as time varies, a row for
    each source of each task and a column for each of a few times. A task has one colour scale, and
    sums are divided by the measure of their region.

    >>> import mrgp
    >>> sites = mrgp.Observations(mrgp.points([[0.0], [1.0]], inputs="day"), [3.0, 5.0], name="s")
    >>> (axes,) = plot_dataset(mrgp.Dataset([sites])).axes
    >>> axes.get_xlabel(), axes.get_lines()[0].get_ydata().tolist()
    ('day', [3.0, 5.0])
    """
    seen = data.dropna()
    inputs = [coordinates(o.support) for o in seen]
    varying = [name for name in inputs[0] if _varies([found[name] for found in inputs])]
    if len(varying) <= 1:
        return _curves(seen, varying[0] if varying else next(iter(inputs[0])))
    across = across_of({name: joined([found[name] for found in inputs]) for name in inputs[0]})
    if set(varying) <= set(across):
        return _side_by_side(seen, across)
    return _over_time(seen, across)


def _varies(several: Sequence[Coordinate]) -> bool:
    """Tell whether sources differ along an input: not where each has one place, all in common."""
    if any(c.distinct > 1 for c in several):
        return True
    return bool(max(c.lower[0] for c in several) > min(c.upper[0] for c in several) + 1e-9)


def _curves(data: Dataset, name: str) -> Any:
    """Draw all sources of a task along one input in one panel."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        len(data.tasks),
        figsize=(WIDTH, 0.6 + 2.6 * len(data.tasks)),
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for axes, task in zip(panels[:, 0], data.tasks, strict=True):
        draw_values(axes, data, task, name)
        axes.set_ylabel(quantity(task, data.units[task]))
    set_axis(panels[-1, 0], "x", coordinates(data.supports[0])[name])
    legend_above(figure, list(panels[:, 0]))
    return figure


class Cell(NamedTuple):
    """A source at a place: what is drawn in one panel, and under which title."""

    observed: Observations
    place: Slice
    title: str
    exact: bool = False

    def regions(self, across: tuple[str, str]) -> Regions | None:
        """Return the regions of the source that are drawn."""
        o = self.observed
        return regions_on(o.support, per_unit(o), across, self.place, exact=self.exact)


Rows = list[list[Cell | None]]


def _side_by_side(data: Dataset, across: tuple[str, str]) -> Any:
    """Draw a row for each task, and a map for each source."""
    cells: Rows = [
        [
            Cell(o, Slice(), spoken(o)) if (o := _of(data, source, task)) else None
            for source in data.sources
        ]
        for task in data.tasks
    ]
    return _draw(data, across, cells)


def _over_time(data: Dataset, across: tuple[str, str]) -> Any:
    """Draw a row for each source of each task, and a map for each of a few times of the task."""
    rows: Rows = []
    for task in data.tasks:
        several = [o for o in data if o.task == task]
        # The source of the fewest times says which: the others have values there too, most likely.
        counts = [len(slices_of(o.support, across, len(o))) for o in several]
        rarest = several[int(np.argmin(counts))]
        places = slices_of(rarest.support, across, MOST_MAPS)
        made: Rows = [
            [Cell(o, p, f"{spoken(o)}\n{p.words}".strip(), o is rarest) for p in places]
            for o in several
        ]
        rows += made
    most = max(map(len, rows))
    return _draw(data, across, [row + [None] * (most - len(row)) for row in rows])


def _of(data: Dataset, source: str, task: str) -> Observations | None:
    return next((o for o in data if o.process == (source, task)), None)


def _draw(data: Dataset, across: tuple[str, str], cells: Rows) -> Any:
    """Draw rows of maps over one extent, with one colour scale and bar for each task."""
    found = [[cell and cell.regions(across) for cell in row] for row in cells]
    everything = [r for o in data if (r := regions_on(o.support, per_unit(o), across)) is not None]
    figure, panels = map_panels(len(cells), len(cells[0]), size_of(everything), 1, 2)
    markers = source_markers(data.sources)
    scales = _scales(cells, found)
    for panel_row, row, regions_row in zip(panels, cells, found, strict=True):
        task = next(cell.observed.task for cell in row if cell)
        drawn = None
        for axes, cell, regions in zip(panel_row, row, regions_row, strict=True):
            if cell is None:
                continue
            set_map(axes, everything)
            axes.set_title(cell.title, fontsize=10)
            if regions is None:
                say_empty(axes)
                continue
            marker = markers[cell.observed.name]
            drawn = draw_regions(axes, regions, scales[task][:2], FIELD_COLOURS, marker=marker)
        if drawn is not None:
            label, beyond = quantity(task, data.units[task]), scales[task][2]
            figure.colorbar(drawn, ax=list(panel_row), label=label, shrink=0.85, extend=beyond)
    label_outer(panels, np.array([[cell is not None for cell in row] for row in cells]))
    return figure


def _scales(cells: Rows, found: Any) -> dict[str, tuple[float, float, str]]:
    """Return the limits of the colours of each task, from the values that are drawn."""
    values: dict[str, list[np.ndarray]] = {}
    for row, regions_row in zip(cells, found, strict=True):
        for cell, regions in zip(row, regions_row, strict=True):
            if cell is not None and regions is not None:
                values.setdefault(cell.observed.task, []).append(regions.values)
    return {task: without_outliers(np.concatenate(several)) for task, several in values.items()}
