"""Data frames in and out: pandas and geopandas."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from mrgp.data import Observations
from mrgp.io import geography
from mrgp.io.columns import Table, as_list, is_several
from mrgp.io.sides import Side, order_of, restore, sides_of, support_of
from mrgp.prediction import Prediction
from mrgp.supports import Kind, Products, Support, polygons, product, same_turn

WHERE = "from_frame"


def from_frame(
    frame: Any,
    x: Any = None,
    y: Any = None,
    *,
    start: Any = None,
    end: Any = None,
    geometry: Any = None,
    crs: Any = None,
    inputs: Any = None,
    task: Any = None,
    name: str | None = None,
    noise_variance: Any = None,
    limit: Any = None,
    units: Any = None,
    kind: Kind = "mean",
    time_unit: str = "h",
    spacing: float | None = None,
) -> Any:
    """Read observations from the columns of a pandas or geopandas frame.

    Each row is a value `y` on a region. Along the columns `x` the region is a point; from `start`
    to `end`, one column each or as many, it is a window (a column of periods is `start=` alone);
    `geometry` is a column of points, or of polygons, which become nodes `spacing` apart. NaN in
    `y` is a missing value; a missing place is an error.

    The inputs are those of the geometry, then `x`, then the windows. A window goes by the name of
    its start without the word "start", "lower" or "min" ("time" if nothing is left and it holds
    dates).
    `inputs=` gives other names, or the same names in another order, or a mapping of some.

    Dates become numbers: `time_unit` ("s", "min", "h" or "D") since 1970-01-01 UTC. Those without
    a time zone are taken as UTC. Geometries with a CRS, and columns of longitude and latitude
    whose `crs=` is given, become kilometres about their middle, whatever the CRS; `crs=False`
    leaves coordinates as they are. The support remembers both in `axes`; sources of one dataset
    are brought to the axes of the first, and `to_frame` gives dates and degrees back.

    A list of columns as `y` gives a tuple of observations, one a task, on one support; `task`,
    `units`, `noise_variance` and the detection `limit` (numbers or columns) may then be lists too,
    or mappings by column. Without `y` the support alone comes back, to predict on.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"date": pd.to_datetime(["2018-06-18 00:00", "2018-06-18 01:00"])})
    >>> frame = frame.assign(until=frame["date"] + pd.Timedelta("1h"), no2=[7.5, 5.9])
    >>> from_frame(frame, "date", "no2", units="ug/m3").support
    Points(2 means: date 2018-06-18T00:00 to 2018-06-18T01:00)
    >>> from_frame(frame, y="no2", start="date", end="until").support
    Boxes(2 means: date 2018-06-18T00:00 to 2018-06-18T02:00, width 1 h)
    """
    columns, starts, ends = as_list(x), as_list(start), as_list(end)
    several = is_several(y)
    y = as_list(y) if several else y
    wanted = [*columns, *starts, *ends, *as_list(y), *as_list(geometry)]
    table = Table.of(frame, wanted, WHERE)
    if not (columns or starts or geometry is not None):
        raise ValueError(
            f"{WHERE}: say where the values are: x= for columns of coordinates, start= and end= for"
            " windows, geometry= for a column of geometries."
        )
    if ends and len(starts) != len(ends):
        raise ValueError(f"{WHERE}: start= and end= need as many columns; got {starts} and {ends}.")
    sides = [table.point(column, time_unit) for column in columns]
    windows = zip(starts, ends or [None] * len(starts), strict=True)
    sides += [table.window(first, last, time_unit) for first, last in windows]
    if geometry is None:
        support = _on_sides(_located(sides, crs), inputs, kind)
    else:
        shapes = geography.read_geometry(
            table.column(geometry), crs, f"{WHERE}: column {geometry!r}"
        )
        support = _on_geometry(shapes, sides, inputs, kind, spacing)
    if y is None:
        return support
    made = []
    for column in as_list(y):
        noise, least = (
            table.values(given) if isinstance(given, str) else given
            for given in (
                _of_column(noise_variance, column, y, "noise_variance"),
                _of_column(limit, column, y, "limit"),
            )
        )
        made.append(
            Observations(
                support,
                table.values(column),
                task=_of_column(task, column, y, "task") or str(column),
                name=name or "source",
                noise_variance=noise,
                limit=least,
                units=_of_column(units, column, y, "units"),
            )
        )
    return tuple(made) if several else made[0]


def to_frame(item: Observations | Prediction, level: float = 0.95) -> Any:
    """Return observations or a prediction as a frame, one row a region.

    Regions come first, under the names of the inputs: a point as one column, a window of time as
    `_start` and `_end`, other sides as `_lower` and `_upper`, polygons as geometry. Dates and
    degrees are restored. Then come the values: of a prediction `mean`, `std` and the ends of a
    central interval (`lower_95`, `upper_95`). `frame.attrs` has task, source and units.
    """
    import pandas as pd

    regions, shapes = _regions(item.support)
    if isinstance(item, Prediction):
        lower, upper = item.interval(level)
        percent = f"{100 * level:.10g}"
        values = {
            "mean": item.mean,
            "std": item.std,
            f"lower_{percent}": lower,
            f"upper_{percent}": upper,
        }
        source = item.source
    else:
        values, source = {item.task: item.y}, item.name
        if item.noise_variance is not None:
            values["noise_variance"] = item.noise_variance
    clash = [name for name in values if name in regions]
    if clash:
        raise ValueError(
            f"to_frame: an input and a value are both named {clash[0]!r}. Give the input another"
            " name."
        )
    frame = pd.DataFrame(regions | values)
    if shapes is not None:
        import geopandas

        frame = geopandas.GeoDataFrame(frame, geometry=shapes)
    frame.attrs = {"task": item.task, "source": source, "units": item.units}
    return frame


def _on_sides(sides: list[Side], inputs: Any, kind: Kind) -> Support:
    order, names = order_of([side.name for side in sides], inputs, WHERE)
    return support_of(_renamed([sides[i] for i in order], names), kind)


def _renamed(sides: list[Side], names: Any) -> list[Side]:
    return [dataclasses.replace(s, name=name) for s, name in zip(sides, names, strict=True)]


def _located(sides: list[Side], crs: Any) -> list[Side]:
    """Write the longitude and latitude among plain columns in local kilometres."""
    if crs is None or crs is False:
        return sides
    i, j = geography.find_pair([side.name for side in sides], crs, WHERE)
    for side in (sides[i], sides[j]):
        if side.axis is not None:
            raise TypeError(f"{WHERE}: column {side.name!r} holds dates, not coordinates.")
    located = list(sides)
    lon, lat = geography.to_degrees(sides[i], sides[j], crs, WHERE)
    located[i], located[j] = geography.localise(lon, lat, WHERE)
    return located


def _on_geometry(
    geometry: Any, sides: list[Side], inputs: Any, kind: Kind, spacing: float | None
) -> Support:
    """Join geometries with points and windows of other inputs, row by row."""
    if set(geometry.geom_type) == {"Point"}:
        return _on_sides([*geography.point_sides(geometry, WHERE), *sides], inputs, kind)
    shapes, axes = geography.place(geometry, WHERE)
    plane = ("x", "y") if axes is None else ("lon", "lat")
    order, names = order_of([*plane, *(side.name for side in sides)], inputs, WHERE)
    first = order.index(0)
    if order[first : first + 2] != [0, 1]:
        raise ValueError(
            f"{WHERE}: the inputs of polygons stay together, {plane[0]!r} before {plane[1]!r}; got"
            f" inputs={names}."
        )
    regions = polygons(shapes, spacing=spacing, inputs=names[first : first + 2], kind=kind)
    regions = dataclasses.replace(regions, axes=axes)
    ordered = _renamed(
        [sides[i - 2] for i in order if i > 1], [*names[:first], *names[first + 2 :]]
    )
    parts = (ordered[:first], ordered[first:])
    before, after = ([support_of(part, kind)] if part else [] for part in parts)
    joined = (*before, regions, *after)
    return product(*joined) if len(joined) > 1 else regions


def _of_column(value: Any, column: Any, columns: Any, argument: str) -> Any:
    """Return what belongs to one of several columns: from a mapping, a list, or one for all."""
    if isinstance(value, Mapping):
        unknown = [key for key in value if key not in as_list(columns)]
        if unknown:
            raise ValueError(
                f"{WHERE}: {argument}= names {unknown[0]!r}, which is not among y={columns!r}."
            )
        return value.get(column)
    if is_several(value) and (is_several(columns) or argument != "noise_variance"):
        each = as_list(value)
        if len(each) != len(as_list(columns)):
            raise ValueError(
                f"{WHERE}: {argument}= needs one for each of y={columns!r}; got {value!r}."
            )
        return each[as_list(columns).index(column)]
    if argument == "task" and value is not None and len(as_list(columns)) > 1:
        raise ValueError(
            f"{WHERE}: {len(as_list(columns))} columns cannot all be the task {value!r}. Give a"
            " list of tasks."
        )
    return value


def _regions(support: Support) -> tuple[dict[str, Any], Any]:
    """Return the columns that describe regions, and outlines of polygons where there are any."""
    sides = sides_of(support)
    shapes, hidden = _outlines(support)
    columns: dict[str, Any] = {}
    for d, side in enumerate(sides):
        if d in hidden:
            continue
        if side.flat:
            columns[side.name] = _shown(side.lower, side)
            continue
        dated = side.axis is not None and side.axis.quantity == "time"
        first, last = ("start", "end") if dated else ("lower", "upper")
        columns[f"{side.name}_{first}"] = _shown(side.lower, side)
        columns[f"{side.name}_{last}"] = _shown(side.upper, side)
    return columns, shapes


def _shown(numbers: np.ndarray, side: Side) -> Any:
    values = restore(numbers, side.axis)
    if side.axis is not None and side.axis.quantity == "longitude":
        return np.where(np.abs(values) > 180, same_turn(values, 0.0), values)
    return values


def _outlines(support: Support) -> tuple[Any, tuple[int, ...]]:
    """Return outlines as geometries, and the inputs they stand for."""
    parts, columns = (support,), (tuple(range(support.dimension)),)
    if isinstance(support, Products):
        parts, columns = support.parts, support.columns
    for part, inputs in zip(parts, columns, strict=True):
        found = getattr(part, "outlines", None)
        if found is not None and len(inputs) == 2:
            axes = tuple((support.axes or (None,) * support.dimension)[d] for d in inputs)
            return geography.outlines(found.shapes, axes), inputs
    return None, ()
