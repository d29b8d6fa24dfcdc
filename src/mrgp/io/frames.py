"""Data frames in and out: pandas and geopandas."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from mrgp.data import Observations, stored
from mrgp.io import columns, geography
from mrgp.io.columns import WHERE, as_list, is_several, order_of
from mrgp.io.quantities import restore
from mrgp.io.sides import support_of, within
from mrgp.io.unread import is_table, partition, stays
from mrgp.prediction import Prediction
from mrgp.supports import Kind, Side, Support, polygons, product, same_turn, with_rows

COLUMNS = ("noise_variance", "exposure", "trials", "limit", "upper_limit")
"""Arguments that are numbers, or the columns that have them."""


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
    likelihood: Any = "gaussian",
    exposure: Any = None,
    trials: Any = None,
    limit: Any = None,
    upper_limit: Any = None,
    units: Any = None,
    kind: Kind = "mean",
    time_unit: str = "h",
    spacing: float | None = None,
    space: Any = None,
    covariates: Any = None,
    lazy: bool | None = None,
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
    are brought to the axes of the first, and `to_frame` gives dates and degrees back. Longitude
    and latitude, or x and y, are directions of one space; `space=` names others, as in `points`.

    `covariates` names columns that describe the places: numbers, and text or categorical columns as
    categories. They come after the inputs, and enter `MRGP()` as effects.

    A list of columns as `y` gives a tuple of observations, one a task, on one support; `task`,
    `units`, `likelihood`, `noise_variance`, `exposure`, `trials` and the limits of detection
    (numbers or columns) may then be lists too, or mappings by column. Without `y`
    the support alone comes back, to predict on.

    Of a Dask DataFrame a sample is read, and the others stay where they are stored until
    `MRGP(method="svgp")` asks for them, part by part; `lazy=False` reads everything.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"date": pd.to_datetime(["2018-06-18 00:00", "2018-06-18 01:00"])})
    >>> frame = frame.assign(until=frame["date"] + pd.Timedelta("1h"), no2=[7.5, 5.9])
    >>> from_frame(frame, "date", "no2", units="ug/m3").support
    Points(2 means: date 2018-06-18T00:00 to 2018-06-18T01:00)
    >>> from_frame(frame, y="no2", start="date", end="until").support
    Boxes(2 means: date 2018-06-18T00:00 to 2018-06-18T02:00, width 1 h)
    """
    if lazy or is_table(frame):
        given = {k: v for k, v in locals().items() if k not in ("frame", "lazy")}
        return _of_table(frame, lazy, given)
    points, starts, ends = as_list(x), as_list(start), as_list(end)
    several = is_several(y)
    y = as_list(y) if several else y
    wanted = [*points, *starts, *ends, *as_list(y), *as_list(geometry), *as_list(covariates)]
    frame = columns.check_frame(frame, wanted)
    if not (points or starts or geometry is not None):
        raise ValueError(
            f"{WHERE}: say where the values are: x= for columns of coordinates, start= and end= for"
            " windows, geometry= for a column of geometries."
        )
    if ends and len(starts) != len(ends):
        raise ValueError(f"{WHERE}: start= and end= need as many columns; got {starts} and {ends}.")
    sides = [columns.point(frame, name, time_unit) for name in points]
    windows = itertools.zip_longest(starts, ends)
    sides += [columns.window(frame, first, last, time_unit) for first, last in windows]
    if geometry is None:
        support = _on_sides(_located(sides, crs), inputs, kind)
    else:
        shapes = geography.read_geometry(columns.column_of(frame, geometry), crs, WHERE)
        support = _on_geometry(shapes, sides, inputs, kind, spacing)
    support = within(support, space, WHERE)
    if covariates is not None:
        described = {str(c): columns.column_of(frame, c) for c in as_list(covariates)}
        where = WHERE if name is None else f"{WHERE}: source {name!r}"
        support = with_rows(support, described, where)
    if y is None:
        return support
    own = {"task": task, "units": units, "likelihood": likelihood}
    own |= {"noise_variance": noise_variance, "exposure": exposure, "trials": trials}
    own |= {"limit": limit, "upper_limit": upper_limit}
    made = []
    for column in as_list(y):
        given = {argument: _of_column(own[argument], column, y, argument) for argument in own}
        for argument in COLUMNS:
            if isinstance(given[argument], str):
                given[argument] = columns.values(frame, given[argument])
        given["task"] = given["task"] or str(column)
        given["likelihood"] = given["likelihood"] or "gaussian"
        values = columns.values(frame, column)
        made.append(Observations(support, values, name=name or "source", **given))
    return tuple(made) if several else made[0]


def _of_table(frame: Any, lazy: bool | None, given: dict[str, Any]) -> Any:
    """Read a Dask DataFrame at once, or a sample of it, and leave the others where they are."""
    if not stays(None, is_table(frame), lazy, WHERE):
        return from_frame(frame.compute(), **given)
    for argument, what in (("geometry", "shapes"), ("covariates", "covariates of rows")):
        if given[argument] is not None:
            raise ValueError(
                f"{WHERE}: {what} are read at once. Give lazy=False, or leave {argument}= out."
            )
    if given["y"] is None or is_several(given["y"]):
        raise ValueError(
            f"{WHERE}: a table that is read part by part has one column of values, y=; got"
            f" {given['y']!r}. Read several one by one, or give lazy=False."
        )

    def read(number: int) -> Any:
        part = partition(frame, number)
        return len(part) if part[given["y"]].isna().all() else from_frame(part, **given)

    columns.column_of(frame, given["y"])
    return stored(read, frame.npartitions)


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
        source, of = item.source, f"{100 * level:.10g}"
        values = {"mean": item.mean, "std": item.std, f"lower_{of}": lower, f"upper_{of}": upper}
    else:
        values, source = {item.task: item.y}, item.name
        for name in ("noise_variance", "exposure", "trials"):
            if getattr(item, name) is not None:
                values[name] = getattr(item, name)
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
    return support_of([sides[i] for i in order], kind, names)


def _located(sides: list[Side], crs: Any) -> list[Side]:
    """Write the longitude and latitude among plain columns in local kilometres."""
    if crs is None or crs is False:
        return sides
    i, j = geography.find_pair([side.name for side in sides], crs, WHERE)
    for side in (sides[i], sides[j]):
        if side.axis is not None:
            raise TypeError(f"{WHERE}: column {side.name!r} holds dates, not coordinates.")
    located = list(sides)
    located[i], located[j] = geography.locate(sides[i], sides[j], crs, WHERE)
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

    def beside(part: slice) -> list[Support]:
        chosen = [sides[i - 2] for i in order[part]]
        return [support_of(chosen, kind, names[part])] if chosen else []

    regions = polygons(shapes, spacing=spacing, inputs=names[first : first + 2], kind=kind)
    regions = dataclasses.replace(regions, axes=axes)
    joined = [*beside(slice(first)), regions, *beside(slice(first + 2, None))]
    return product(*joined) if len(joined) > 1 else regions


def _of_column(value: Any, column: Any, y: Any, argument: str) -> Any:
    """Return what belongs to one of several columns: from a mapping, a list, or one for all."""
    names = as_list(y)
    if isinstance(value, Mapping):
        unknown = [key for key in value if key not in names]
        if unknown:
            raise ValueError(
                f"{WHERE}: {argument}= names {unknown[0]!r}, which is not among y={y!r}."
            )
        return value.get(column)
    if is_several(value) and (is_several(y) or argument not in COLUMNS):
        if len(as_list(value)) != len(names):
            raise ValueError(f"{WHERE}: {argument}= needs one for each of y={y!r}; got {value!r}.")
        return as_list(value)[names.index(column)]
    if argument == "task" and value is not None and len(names) > 1:
        raise ValueError(
            f"{WHERE}: {len(names)} columns cannot all be the task {value!r}. Give a list of tasks."
        )
    return value


def _regions(support: Support) -> tuple[dict[str, Any], Any]:
    """Return the columns that describe regions, and outlines of polygons where there are any."""
    shapes, hidden = _outlines(support)
    found: dict[str, Any] = {}
    known = {support.input_names[d]: levels for d, levels in support.categories.items()}
    for side in (side for d, side in enumerate(support.sides) if d not in hidden):
        lower, upper = (_shown(numbers, side) for numbers in (side.lower, side.upper))
        if side.name in known:
            found[side.name] = _levels(side, known[side.name])
        elif side.flat:
            found[side.name] = lower
        else:
            first, last = ("start", "end") if side.quantity == "time" else ("lower", "upper")
            found |= {f"{side.name}_{first}": lower, f"{side.name}_{last}": upper}
    return found, shapes


def _levels(side: Side, levels: tuple[str, ...]) -> list[str | None]:
    """Return the category of each region; regions over several have none."""
    codes = np.where(side.lower == side.upper, side.lower, -1).astype(int)
    return [levels[code] if code >= 0 else None for code in codes]


def _shown(numbers: np.ndarray, side: Side) -> Any:
    values = restore(numbers, side.axis)
    if side.quantity == "longitude":
        return np.where(np.abs(values) > 180, same_turn(values, 0.0), values)
    return values


def _outlines(support: Support) -> tuple[Any, tuple[int, ...]]:
    """Return outlines as geometries, and the inputs they stand for."""
    for part, inputs in support.members:
        found = getattr(part, "outlines", None)
        if found is not None and len(inputs) == 2:
            axes = [support.input_axes[d] for d in inputs]
            return geography.outlines(found.shapes, axes), inputs
    return None, ()
