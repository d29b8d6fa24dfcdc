"""Datasets: every source as what it is, cells, polygons and points, bars and dots."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.plotting.colours import source_markers
from mrgp.plotting.coordinates import Coordinate, across_of, coordinates, with_units
from mrgp.plotting.functions import draw_values, spoken
from mrgp.plotting.maps import MOST_MAPS
from mrgp.plotting.panels import legend_above, new_panels
from mrgp.plotting.shapes import regions_of
from mrgp.plotting.sheets import Map, Scale, draw_maps, label_maps, map_panels, without_outliers
from mrgp.plotting.slices import EVERYWHERE, Slice, slices_of


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
    several = [coordinates(o.support) for o in seen]
    inputs = {name: [found[name] for found in several] for name in several[0]}
    varying = [name for name, along in inputs.items() if _varies(along)]
    if len(varying) <= 1:
        return _curves(seen, varying[0] if varying else next(iter(inputs)))
    across = across_of({name: Coordinate.join(along) for name, along in inputs.items()})
    if set(varying) <= set(across):
        return _maps(seen, across, _side_by_side(seen))
    return _maps(seen, across, _over_time(seen, across))


def _varies(several: Sequence[Coordinate]) -> bool:
    """Tell whether sources differ along an input: not where each has one place, all in common."""
    apart = max(c.lower[0] for c in several) > min(c.upper[0] for c in several) + 1e-9
    return bool(apart) or any(c.distinct > 1 for c in several)


def _curves(data: Dataset, name: str) -> Any:
    """Draw all sources of a task along one input in one panel."""
    count = len(data.tasks)
    figure, panels = new_panels(count, height=0.6 + 2.6 * count, sharex=True)
    for axes, task in zip(panels[:, 0], data.tasks, strict=True):
        draw_values(axes, data, task, name)
        axes.set_ylabel(with_units(task, data.units[task]))
    coordinates(data.supports[0])[name].label_axis(panels[-1, 0], "x")
    legend_above(figure, panels[:, 0])
    return figure


Rows = list[list[tuple[Observations, Slice] | None]]
"""What is drawn in each panel: a source, at a place."""


def _side_by_side(data: Dataset) -> dict[str, Rows]:
    """Return a row for each task, and a map for each source."""
    known = {o.process: (o, EVERYWHERE) for o in data}
    return {task: [[known.get((source, task)) for source in data.sources]] for task in data.tasks}


def _over_time(data: Dataset, across: tuple[str, str]) -> dict[str, Rows]:
    """Return a row for each source of each task, and a map for each of a few times of the task."""
    rows: dict[str, Rows] = {}
    for task in data.tasks:
        several = [o for o in data if o.task == task]
        # The source of the fewest times says which: the others have values there too, most likely.
        rarest = min(several, key=lambda o: len(slices_of(o.support, across, len(o))))
        places = slices_of(rarest.support, across, MOST_MAPS)
        rows[task] = [[(o, p.exactly if o is rarest else p) for p in places] for o in several]
    return rows


def _maps(data: Dataset, across: tuple[str, str], rows: dict[str, Rows]) -> Any:
    """Draw rows of maps over one extent, with one colour scale for each task."""
    extent = [r for o in data if (r := regions_of(o, across)) is not None]
    count = sum(map(len, rows.values()))
    wide = max(len(row) for several in rows.values() for row in several)
    figure, panels = map_panels(count, wide, extent)
    markers, left = source_markers(data.sources), iter(panels)

    def drawn(o: Observations, place: Slice) -> Map:
        title = f"{spoken(o)}\n{place.words}".strip()
        return Map(title, regions_of(o, across, place), extent, markers[o.name])

    for task, several in rows.items():
        maps = [[cell and drawn(*cell) for cell in row] for row in several]
        values = [one.regions.values for row in maps for one in row if one and one.regions]
        limits, beyond = without_outliers(np.concatenate(values))
        scale = Scale(with_units(task, data.units[task]), limits, beyond=beyond)
        for row in maps:
            draw_maps(next(left), row, scale)
    label_maps(figure, panels)
    return figure
