"""Where predictions are wanted: tables, shapes, and grids written as text."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mrgp.config.names import ENDS, STARTS, first, kind_of, listed, offer, without_end
from mrgp.config.schema import Config, ConfigError, duration
from mrgp.data import harmonise
from mrgp.inference import Fit
from mrgp.io.files import read_coordinate, told
from mrgp.io.frames import from_frame
from mrgp.io.quantities import quantities_of
from mrgp.io.sources import lasting, projected
from mrgp.io.tiles import Tiling
from mrgp.prediction import Prediction
from mrgp.supports import Support

MOST_PLACES = 10**7
FAR_OUTSIDE = 0.1
"""How far beyond the data, of their extent, places are worth a word."""

WINDOWS = (("start", "end"), ("lower", "upper"), ("min", "max"))


def at_times(frame: Any, path: Path, text: str, fit: Fit) -> Any:
    """Return a table with each of its rows at each of some times, written as in a grid."""
    names = _timed(fit)
    if not names:
        raise ConfigError(f"--times: the fit has no times; its inputs are {listed(fit.inputs)}.")
    there = [str(c) for c in frame if kind_of(str(c)) == "time" or str(c) == names[0]]
    if there:
        raise ConfigError(
            f"{path} has times already, in its column {there[0]!r}; leave --times out, or give a"
            " table of places alone."
        )
    times = _dates(names[0], text, "--times")
    if len(frame) * len(times) > MOST_PLACES:
        raise ConfigError(f"--times: {len(frame) * len(times):,} rows are too many. Step wider.")
    return frame.merge(pd.DataFrame({names[0]: times}), how="cross")


def _timed(fit: Fit) -> list[str]:
    """Return the input of dates, where there is one."""
    return [n for n, kind in quantities_of(fit.inputs, fit.axes).items() if kind == "time"]


def places_of(
    frame: Any, path: Path, fit: Fit, config: Config | None, window: str | None = None
) -> Support:
    """Make places of a file's columns, named as the inputs or as those of a source.

    With a `window` they are means over so long from their times on.
    """
    inputs = _inputs(fit, frame)
    with told(str(path)):
        made, located, chosen = _on_earth(frame, fit, config)
        for name in (n for n in inputs if n not in located.values()):
            found = _columns(name, frame, config)
            parts = ("x",) if len(found) == 1 else ("start", "end")
            for part, column in zip(parts, found, strict=True):
                given = name if part == "x" else f"{name}_{part}"
                made[given] = read_coordinate(frame[column], f"column {given!r}")
                chosen[part] = [*chosen.get(part, []), given]
        same = set(located) == set(located.values())
        chosen["inputs"] = inputs if same else located
        rows = _rows(fit)
        if rows:
            lost = [name for name in rows if name not in frame]
            if lost:
                there = offer(lost[0], frame)
                raise ConfigError(
                    f"a column {lost[0]!r} is needed, a covariate of the fit; the columns are"
                    f" {there}"
                )
            made |= {name: frame[name] for name in rows}
            chosen["covariates"] = rows
        table = pd.DataFrame(made, index=frame.index)
        if window is not None:
            if "start" in chosen:
                raise ConfigError("there are windows already; leave --window out")
            table, chosen["x"], start, end = lasting(table, chosen.get("x", []), duration(window))
            chosen |= {"start": start, "end": end}
        if "geometry" in made:
            table = type(frame)(table, geometry="geometry")
        return from_frame(table, **chosen)


def _inputs(fit: Fit, given: Iterable[str]) -> list[str]:
    """Return the inputs of places; covariates, which a fit finds itself, where all are given."""
    rows = _rows(fit)
    added = {n for field in fit.covariates or () for n in field.names if n not in rows}
    return [n for n in fit.inputs if n not in rows and (n not in added or added <= set(given))]


def _rows(fit: Fit) -> list[str]:
    """Return the covariates that came with rows of tables, which places must bring."""
    return [name for field in fit.covariates or () if field.in_rows for name in field.names]


def _on_earth(
    frame: Any, fit: Fit, config: Config | None
) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
    """Return columns of geometries or eastings and northings, and the inputs that they give."""
    if "geometry" in frame:
        return {"geometry": frame["geometry"]}, _located(fit), {"geometry": "geometry"}
    for source in (config.sources if config else {}).values():
        flat = projected(source)
        if flat and set(flat) <= set(frame) and not any(kind_of(str(c)) == "lon" for c in frame):
            columns = {c: read_coordinate(frame[c], f"column {c!r}") for c in flat}
            return columns, _located(fit), {"x": flat, "crs": source.crs}
    return {}, {}, {"crs": _crs(fit)}


def grid_support(text: str, fit: Fit, window: str | None = None, *, bare: bool = False) -> Support:
    """Make a grid of points of "lon=-0.5:0.3:0.01,lat=51.3:51.7:0.01,time=2022-02-19T12:00".

    With a `window` they are means over so long from their times on. A `bare` grid has no covariates
    of places.
    """
    rows = [] if bare else _rows(fit)
    sides = grid_sides(text, fit, rows)
    count = math.prod(map(len, sides.values()))
    if count > MOST_PLACES:
        raise ConfigError(
            f"--grid has {count:,} points; {MOST_PLACES:,} are the most for a table. Write .zarr or"
            " .nc, or step wider."
        )
    cells = pd.MultiIndex.from_product(list(sides.values()), names=list(sides))
    with told("--grid"):
        made = cells.to_frame(index=False)
        inputs = [name for name in sides if name not in rows]
        where: dict[str, Any] = {"x": inputs, "inputs": inputs, "crs": _crs(fit)}
        if window is not None:
            made, where["x"], where["start"], where["end"] = lasting(made, inputs, duration(window))
        return from_frame(made, **where, covariates=rows or None)


def grid_array(text: str, fit: Fit) -> Any:
    """Make the coordinates of such a grid, as a Dataset; covariates of places have one value."""
    import xarray as xr

    rows = _rows(fit)
    sides = grid_sides(text, fit, rows)
    many = [name for name in rows if len(sides[name]) > 1]
    if many:
        raise ConfigError(
            f"--grid has several values of {many[0]!r}, a covariate of places; a map in tiles takes"
            " one."
        )
    made: dict[str, Any] = {name: sides[name][0] for name in rows}
    for name in (name for name in sides if name not in rows):
        index = pd.Index(sides[name])
        if isinstance(index, pd.DatetimeIndex) and index.tz is not None:
            # xarray has no zones: dates are UTC, as in `to_grid`.
            index = index.tz_convert("UTC").tz_localize(None)
        made[name] = (name, index)
    return xr.Dataset(coords=made)


def grid_sides(text: str, fit: Fit, rows: list[str]) -> dict[str, Any]:
    """Read what a grid has along each input of the fit, in its order, and of some covariates."""
    sides: dict[str, Any] = {}
    known = quantities_of(fit.inputs, fit.axes)
    levels = {n: f.levels for f in fit.covariates or () if f.levels and f.in_rows for n in f.names}
    for part in filter(None, map(str.strip, " ".join(text.split()).split(","))):
        name, _, span = (piece.strip() for piece in part.partition("="))
        if name not in fit.inputs or not span:
            raise ConfigError(
                f"--grid has {part!r}; it needs name=first:last:step or name=value for each of"
                f" {offer(name, fit.inputs)}"
            )
        if name in sides:
            raise ConfigError(f"--grid has {name!r} twice.")
        if name in _rows(fit) and name not in rows:
            raise ConfigError(
                f"--grid has {name!r}, a covariate of places; the page's map is without its effect."
                " Leave it out, and see mrgp predict for maps with it."
            )
        if name in levels:
            sides[name] = [span]
        else:
            sides[name] = _dates(name, span) if known[name] == "time" else _numbers(name, span)
    inputs = _inputs(fit, sides)
    lost = [name for name in [*inputs, *rows] if name not in sides]
    if lost:
        example = levels.get(lost[0], ("first:last:step",))[0]
        example = _typical_date(fit) if known[lost[0]] == "time" else example
        raise ConfigError(
            f"--grid lacks the input {lost[0]!r}; the fit has {listed(fit.inputs)}. Add"
            f" {lost[0]}={example}."
        )
    return {name: sides[name] for name in [*inputs, *rows]}


def far_from_data(prediction: Prediction, fit: Fit) -> list[str]:
    """Say along which inputs places lie far outside the data, where predictions know little."""
    return _far(prediction.support, fit, {}, len(prediction))


def far_from_data_along(tiling: Tiling, fit: Fit) -> list[str]:
    """Say the same of the cells of a grid, which are not looked at one by one."""
    sizes = dict(zip(tiling.inputs, tiling.shape, strict=True))
    return _far(tiling.diagonal(), fit, sizes, math.prod(tiling.shape))


def _far(support: Support, fit: Fit, sizes: dict[str, int], count: int) -> list[str]:
    """Say along which inputs places lie outside; `sizes` are those of a grid along its inputs."""
    said = []
    # Covariates, which come last, may be left out; categories have no outside.
    added = {name for field in fit.covariates or () for name in field.names}
    sides = harmonise(support, fit.axes and fit.axes[: support.dimension]).sides
    for side, lower, upper in zip(sides, *fit.bounds, strict=False):
        if side.name in added:
            continue
        reach = FAR_OUTSIDE * (upper - lower)
        size = sizes.get(side.name, count)
        outside = (side.lower > upper + reach) | (side.upper < lower - reach)
        beyond = int(outside[:size].sum()) * (count // size)
        if beyond:
            show = "{:.6g}".format if side.axis is None else side.axis.show
            zone = " UTC" if side.quantity == "time" else ""
            said.append(
                f"{beyond:,} of {count:,} places lie outside the data along"
                f" {side.name}, which go from {show(lower)} to {show(upper)}{zone}: look at the sd"
                " before you use them."
            )
    return said


def _columns(name: str, frame: Any, config: Config | None) -> tuple[str, ...]:
    """Return the column of an input, or those of its windows: by its name, a source's, its kind."""
    there = [str(c) for c in frame]
    kind, sources = kind_of(name), list((config.sources if config else {}).values())

    def alike(columns: Iterable[str]) -> list[tuple[str, ...]]:
        return [(c,) for c in columns if kind is not None and kind_of(c) == kind]

    timed = kind == "time"

    def means(start: str) -> bool:
        plain = without_end(start)
        return plain == name or (kind is not None and (kind_of(plain) or "time") == kind)

    # A source's windows come before a name: its column of times may be where windows start.
    pairs = [pair for s in sources for pair in zip(s.start, s.end, strict=False)]
    wanted: list[tuple[Any, ...]] = [(start, end) for start, end in pairs if means(start)]
    wanted += [(f"{name}_{start}", f"{name}_{end}") for start, end in WINDOWS]
    wanted += [(name,), *alike(c for s in sources for c in s.x)]
    wanted += [(first(there, STARTS), first(there, ENDS))] if timed else []
    for columns in wanted + alike(there):
        if set(columns) <= set(there):
            return columns
    beside = " beside the geometry" if "geometry" in there else ""
    beside += ", or --times" if timed else ""
    raise ConfigError(f"a column {name!r} is needed{beside}; the columns are {offer(name, there)}")


def _located(fit: Fit) -> dict[str, str]:
    """Return the inputs that a geometry gives, by the names that it gives them."""
    found = {quantity: name for name, quantity in quantities_of(fit.inputs, fit.axes).items()}
    if "longitude" in found and "latitude" in found:
        return {"lon": found["longitude"], "lat": found["latitude"]}
    if "x" in fit.inputs and "y" in fit.inputs:
        return {"x": "x", "y": "y"}
    raise ConfigError(f"the fit has no places on Earth; its inputs are {listed(fit.inputs)}")


def _crs(fit: Fit) -> str | None:
    return "EPSG:4326" if "longitude" in quantities_of(fit.inputs, fit.axes).values() else None


def _typical_date(fit: Fit) -> str:
    """Return the middle of the times that were fitted, as one would type it."""
    middles = zip(fit.axes or (), fit.bounds.mean(0), strict=True)
    return next(axis.show(x) for axis, x in middles if axis and axis.quantity == "time")


def _numbers(name: str, span: str) -> np.ndarray:
    """Return the numbers of "value" or "first:last:step", as decimal fractions.

    >>> _numbers("lon", "-0.1:0.2:0.1"), _numbers("dose", "0:2e-12:1e-12")
    (array([-0.1,  0. ,  0.1,  0.2]), array([0.e+00, 1.e-12, 2.e-12]))
    """
    parts = span.split(":")
    try:
        start, last, step = map(float, parts if len(parts) == 3 else (span, span, 1))
    except ValueError:
        start, last, step = np.nan, np.nan, np.nan
    if not (0 < step < np.inf and -np.inf < start <= last < np.inf):
        raise ConfigError(
            f"--grid: {name}={span} is neither a number nor first:last:step, such as 0:1:0.1 with a"
            " positive step."
        )
    if start == last:
        return np.array([start])
    count = np.floor((last - start) / step * (1 + 1e-9)) + 1
    if count > MOST_PLACES:
        raise ConfigError(f"--grid: {name}={span} has {count:,.0f} steps. Step wider.")
    decimals = 10 + max(0, -math.floor(math.log10(step)))
    found = np.round(start + step * np.arange(int(count)), decimals)
    if not np.all(np.diff(found) > 0):
        raise ConfigError(
            f"--grid: {name}={span} has steps too small to tell places apart at {last:g}. Step"
            " wider."
        )
    return found


def _dates(name: str, span: str, option: str = "--grid") -> pd.DatetimeIndex:
    """Return the dates of "date" or "first/last/step"."""
    parts = span.split("/")
    start, last, step = parts if len(parts) == 3 else (span, span, "1h")
    try:
        first, final = (pd.to_datetime(end, format="ISO8601") for end in (start, last))
        count = _ticks(first, final, step)
        fits = 0 < count <= MOST_PLACES
        dates = pd.date_range(first, final, freq=step) if fits else pd.DatetimeIndex([])
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        count, dates = 0.0, pd.DatetimeIndex([])
    if count > MOST_PLACES:
        raise ConfigError(f"{option}: {name}={span} has {count:,.0f} steps. Step wider.")
    if len(dates) == 0:
        raise ConfigError(
            f"{option}: {name}={span} is neither a date such as 2022-02-19T12:00 nor"
            " first/last/step, such as 2022-02-19T00:00/2022-02-19T06:00/1h."
        )
    return dates


def _ticks(start: Any, last: Any, step: str) -> float:
    """Return about how many steps there are; none where a step does not go on.

    >>> _ticks(pd.Timestamp("2022-01-01"), pd.Timestamp("2022-01-02"), "1h")
    25.0
    """
    offset = pd.tseries.frequencies.to_offset(step)
    # Months and years have no one length; a day is less than any of them.
    length = pd.Timedelta(offset) if isinstance(offset, pd.offsets.Tick) else pd.Timedelta("1D")
    return (last - start) / length + 1 if length > pd.Timedelta(0) else 0.0
