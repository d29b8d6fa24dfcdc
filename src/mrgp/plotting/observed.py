"""Datasets: every source as what it is, cells, polygons and points, bars and dots."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.plotting.colours import FIELD_COLOURS, source_markers
from mrgp.plotting.coordinates import Coordinate, Slice, across_of, coordinates, set_axis, slices_of
from mrgp.plotting.functions import draw_values, legend_above, quantity
from mrgp.plotting.maps import MOST_MAPS, WIDTH, map_panels, without_outliers
from mrgp.plotting.regions import Regions, draw_regions, regions_on, set_map, size_of


def plot_dataset(data: Dataset) -> Any:
    """Draw the sources of a dataset, in the coordinates that the user gave; return the figure.

    Where one input varies there is a panel for each task: values of points are dots, and those of
    regions bars as wide as the region. Otherwise maps show cells, polygons and points: a row for
    each task and a column for each source or, where a third input such as time varies, a row for
    each source of each task and a column for each of a few times. A task has one colour scale.

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
    widest = max(inputs, key=lambda found: sum(c.distinct > 1 for c in found.values()))
    across = across_of(widest)
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


def _side_by_side(data: Dataset, across: tuple[str, str]) -> Any:
    """Draw a row for each task, and a map for each source."""
    cells = [
        [(o, Slice()) if (o := _of(data, source, task)) else None for source in data.sources]
        for task in data.tasks
    ]
    return _draw(data, across, cells, lambda o, _: o.name)


def _over_time(data: Dataset, across: tuple[str, str]) -> Any:
    """Draw a row for each source of each task, and a map for each of a few times."""
    times = [slices_of(o.support, across, MOST_MAPS) for o in data]
    # The source of the fewest times says which: the others have values there too, most likely.
    counts = [len(slices_of(o.support, across, len(o))) for o in data]
    places = times[int(np.argmin(counts))]
    cells = [[(o, place) for place in places] for o in data]
    return _draw(data, across, cells, lambda o, place: f"{o.name}\n{place.words}".strip())


def _of(data: Dataset, source: str, task: str) -> Observations | None:
    return next((o for o in data if o.process == (source, task)), None)


def _draw(data: Dataset, across: tuple[str, str], cells: Any, title: Any) -> Any:
    """Draw rows of maps over one extent, with one colour scale and bar for each task."""
    found = [
        [cell and regions_on(cell[0].support, cell[0].y, across, cell[1]) for cell in row]
        for row in cells
    ]
    everything = [r for o in data if (r := regions_on(o.support, o.y, across)) is not None]
    figure, panels = map_panels(len(cells), len(cells[0]), _height(everything), 1, 2)
    markers = source_markers(data.sources)
    scales = _scales(cells, found)
    for panel_row, row, regions_row in zip(panels, cells, found, strict=True):
        task = next(cell[0].task for cell in row if cell)
        low, high, beyond = scales[task]
        drawn = None
        for axes, cell, regions in zip(panel_row, row, regions_row, strict=True):
            if cell is None:
                axes.set_axis_off()
                continue
            set_map(axes, everything)
            axes.set_title(title(*cell), fontsize=10)
            axes.label_outer()
            if regions is None:
                axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", color="0.4")
                continue
            drawn = draw_regions(
                axes, regions, (low, high), FIELD_COLOURS, marker=markers[cell[0].name]
            )
        if drawn is not None:
            label = quantity(task, data.units[task])
            figure.colorbar(drawn, ax=list(panel_row), label=label, shrink=0.85, extend=beyond)
    return figure


def _scales(cells: Any, found: Any) -> dict[str, tuple[float, float, str]]:
    """Return the limits of the colours of each task, from the values that are drawn."""
    values: dict[str, list[np.ndarray]] = {}
    for row, regions_row in zip(cells, found, strict=True):
        for cell, regions in zip(row, regions_row, strict=True):
            if regions is not None:
                values.setdefault(cell[0].task, []).append(regions.values)
    return {task: without_outliers(np.concatenate(several)) for task, several in values.items()}


def _height(several: Sequence[Regions]) -> float:
    x, y = (
        getattr(several[0], which)._replace(
            lower=np.concatenate([getattr(r, which).lower for r in several]),
            upper=np.concatenate([getattr(r, which).upper for r in several]),
        )
        for which in ("x", "y")
    )
    return size_of(several[0]._replace(x=x, y=y))
