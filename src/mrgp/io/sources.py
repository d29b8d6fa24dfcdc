"""From the files of a configuration to observations."""

import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from mrgp.config.names import PLANE, kind_of, listed, match, offer, without_end
from mrgp.config.schema import Config, ConfigError, Covariate, Source, duration
from mrgp.data import Dataset, Observations, fill_values, shown_rows
from mrgp.io.columns import as_list, column_of, is_periods
from mrgp.io.files import check_numbers, read_coordinate, read_frame, read_grid, told
from mrgp.io.frames import COLUMNS, from_frame
from mrgp.io.grids import from_grid

FAR = 2.5
SCATTER = ("noise_variance", "likelihood", "exposure", "trials", "limit", "upper_limit")


def read_data(config: Config, scored: bool = False) -> Dataset:
    """Read every source of a configuration, to be fitted or `scored`."""
    read = [read_source(name, source, config, scored) for name, source in config.sources.items()]
    _check_turned(read, config)
    data = Dataset(read)
    for name, covariate in config.covariates.items():
        with told(f"covariate {name!r}, {covariate.file}"):
            field = _field(covariate, list(data.inputs)).rename(name)
            data = data.with_covariates(field, method=covariate.method)
    return data


def _field(covariate: Covariate, inputs: list[str]) -> xr.DataArray:
    """Read a known field, its dimensions called as the inputs, without single ones."""
    grid = read_grid(covariate.file)
    wanted = _variable(grid, covariate.variable, least=1)
    array = _without_fills(grid[wanted].squeeze(drop=True), f"variable {wanted!r}")
    dims = [str(d) for d in array.dims]
    # Which of two dimensions is east is not told by their order.
    found = match(dims, inputs, sure=True)
    lost = [d for d in dims if d not in found]
    if lost:
        raise ConfigError(
            f"the dimension {lost[0]!r} of {wanted!r} is none of the inputs, {listed(inputs)}."
            " Rename it after one of them, or take a part of the grid along it"
        )
    kept = array.reset_coords(drop=True)
    return kept.rename({d: name for d, name in found.items() if d != name})


def read_source(name: str, source: Source, config: Config, scored: bool = False) -> Observations:
    """Read one source; what goes wrong is told with its name and file."""
    with told(f"source {name!r}, {source.file}"):
        if source.window and (source.start or "time" in (source.width or {})):
            raise ConfigError("window = and the ends of windows exclude each other; leave one out")
        read = _grid if source.kind == "grid" else _frame
        given = {key: getattr(source, key) for key in ("task", "units", "crs", *SCATTER)}
        about: dict[str, Any] = {"name": name, "kind": source.values, "space": config.space}
        about["time_unit"] = config.time_unit
        observed = read(source, config.inputs, **given, **about)
        return _told_of_limits(observed, scored)


def _told_of_limits(observed: Observations, scored: bool) -> Observations:
    """Say how many values lie beyond a limit; where values are scored, those are left out."""
    side = observed.censored
    if side is None:
        return observed
    seen = observed.observed.sum()
    said = f"{observed.label}: {int(np.sum(side != 0))} of {seen} values are at or beyond a limit"
    if not scored:
        warnings.warn(f"{said}; they are known only to lie there.", stacklevel=2)
        return observed
    warnings.warn(f"{said}, and are not scored.", stacklevel=2)
    return observed.replace(y=np.where(side != 0, np.nan, observed.y))


def _frame(source: Source, inputs: list[str] | None, **settings: Any) -> Observations:
    frame = read_frame(source.file)
    used = _used(source, frame)
    renamed = _named(source, inputs, frame)
    x, start, end = (
        [renamed.get(c, c) for c in columns] or None
        for columns in (source.x, source.start, source.end)
    )
    geometry = "geometry" if source.kind == "shapes" else None
    table = used.rename(columns=renamed)
    if source.window:
        table, x, start, end = lasting(table, x or [], duration(source.window))
    widths = {renamed.get(c, c): width for c, width in (source.width or {}).items()}
    for column, width in widths.items():
        if column not in (x or ()):
            raise ConfigError(
                f"width = names {column!r}, which x = does not; it has {offer(column, source.x)}"
            )
        half = _half(table[column], width, column)
        ends = {f"{column}_start": table[column] - half, f"{column}_end": table[column] + half}
        table = table.assign(**ends).drop(columns=column)
        x = [c for c in x or () if c != column] or None
        start, end = ([*(old or []), new] for old, new in zip((start, end), ends, strict=True))
    places = {"start": start, "end": end, "geometry": geometry, "spacing": source.spacing}
    places["covariates"] = source.covariates or None
    return from_frame(table, x, source.y, inputs=inputs, **places, **settings)


def _used(source: Source, frame: Any) -> Any:
    """Return the columns that a source names: coordinates, values, geometries."""
    if source.y is None:
        raise ConfigError(f"y = names the column of values; the columns are {listed(frame)}")
    used = frame[["geometry"] if source.kind == "shapes" else []].copy()
    for key in ("x", "start", "end", "y", *COLUMNS):
        read = check_numbers if key in ("y", *COLUMNS) else read_coordinate
        for column in (c for c in as_list(getattr(source, key)) if isinstance(c, str)):
            found = column_of(frame, column, f", which {key} = names")
            used[column] = read(found, f"column {column!r}")
            if key == "y":
                used[column] = _without_fills(used[column], f"{source.file}, column {column!r}")
    for column in source.covariates:
        used[column] = column_of(frame, column, ", which covariates = names")
    starts, ends = source.start, source.end
    periods = starts and not ends and all(is_periods(frame[c]) for c in starts)
    if len(starts) != len(ends) and not periods:
        given, lost = ("start", "end") if len(starts) > len(ends) else ("end", "start")
        if not (starts and ends):
            raise ConfigError(f"{given} = needs {lost} = too, the column of where windows {lost}")
        raise ConfigError(
            f"start = and end = need as many columns; got {listed(starts)} and {listed(ends)}"
        )
    return used


def _half(column: Any, width: float | str, name: str) -> Any:
    """Return half the width of cells about a column of numbers or dates."""
    dated = column.dtype.kind == "M" or hasattr(column.dtype, "tz")
    _check_width(name, width, dated)
    return duration(str(width)) / 2 if dated else 0.5 * float(width)


def _check_width(name: str, width: float | str, dated: bool) -> None:
    if dated != isinstance(width, str):
        kind = 'a duration such as "1h"' if dated else "a number, in the units of its values"
        raise ConfigError(f"width of {name!r} must be {kind}; got {width!r}")


def lasting(
    table: Any, x: list[str], length: Any
) -> tuple[Any, list[str] | None, list[str], list[str]]:
    """Return a table whose dates begin windows of a length, or end them where it is negative."""
    dated = [c for c in x if table[c].dtype.kind == "M" or hasattr(table[c].dtype, "tz")]
    if len(dated) != 1:
        raise ConfigError(
            f"a window needs one column of dates among {listed(x) or 'none'}; there are"
            f" {len(dated)}"
        )
    (name,) = dated
    before, after = (table[name], table[name] + length)
    first, last = (after, before) if length < pd.Timedelta(0) else (before, after)
    made = table.assign(**{f"{name}_start": first, f"{name}_end": last}).drop(columns=name)
    return made, [c for c in x if c != name] or None, [f"{name}_start"], [f"{name}_end"]


def _without_fills(values: Any, where: str) -> Any:
    """Take codes for missing values as such, and say so."""
    if values.dtype.kind not in "fiu":
        return values
    flat = values.to_numpy().astype(float, copy=False).ravel()
    fills = fill_values(flat)
    if not fills.any():
        return values
    table = values.ndim == 1 and not isinstance(values, xr.DataArray)
    rows = f", in {shown_rows(fills, first=2, noun='line')}" if table else ""
    warnings.warn(
        f"{where}: {fills.sum():,} of {len(flat):,} values are {flat[np.argmax(fills)]:.6g}{rows},"
        " which looks like a fill value; they are taken as missing.",
        stacklevel=2,
    )
    return values.where(~fills.reshape(values.shape))


def _named(source: Source, inputs: list[str] | None, frame: Any) -> dict[str, str]:
    """Return new names of columns, so that they are those of the inputs in any order."""
    if inputs is None:
        return {}
    # Eastings and northings keep the names by which they are known, and become lon and lat.
    flat = projected(source)
    shapes = source.kind == "shapes"
    located = source.crs or (shapes and source.crs is None and frame["geometry"].crs is not None)
    given = (["lon", "lat"] if located else ["x", "y"]) if shapes or flat else []
    # A window is known by its name without the word that says at which end a column is.
    columns = {without_end(c) if c in source.start else c: c for c in [*source.x, *source.start]}
    columns = {name: c for name, c in columns.items() if c not in flat}
    named = match(list(columns), [name for name in inputs if name not in given])
    found = {columns[name]: taken for name, taken in named.items()}
    columns = list(columns.values())
    there = [*given, *columns]
    if len(there) != len(inputs) or len(found) != len(columns):
        _lack("x =, start = and the geometry give", there, [*given, *found.values()], inputs)
    if not set(given) <= set(inputs):
        raise ConfigError(
            f"the inputs of places are called {given[0]!r} and {given[1]!r}; call them so in"
            f" inputs =, which has {listed(inputs)}"
        )
    for start, end in itertools.zip_longest(source.start, source.end):
        name = found[start]
        found |= {start: f"{name}_start"} | ({} if end is None else {end: f"{name}_end"})
    return found


def projected(source: Source) -> list[str]:
    """Return the two columns of coordinates in a projected CRS, where a source has such."""
    flat = [c for c in source.x if c.lower() in (*PLANE[0], *PLANE[1])]
    located = any(kind_of(c) in ("lon", "lat") for c in source.x)
    return flat if source.crs and len(flat) == 2 and not located else []


def _lack(which: str, there: list[str], found: list[str], inputs: list[str]) -> None:
    lost = [name for name in inputs if name not in found]
    extra = f"{lost[0]!r} is missing" if lost else "one is too many"
    raise ConfigError(
        f"{which} {len(there)} ({listed(there)}), but inputs = has {len(inputs)}"
        f" ({listed(inputs)}): {extra}. All sources need the same inputs"
    )


def _grid(source: Source, inputs: list[str] | None, **settings: Any) -> Observations:
    if source.covariates:
        raise ConfigError(
            "covariates = names columns of a table; a grid has none. Grids of what is known"
            " everywhere are tables of their own, [covariates.NAME] with file ="
        )
    grid = read_grid(source.file)
    wanted = _variable(grid, source.variable, least=2)
    if grid[wanted].dtype.kind not in "fiu":
        raise ConfigError(f"the variable {wanted!r} has no numbers, but {grid[wanted].dtype}")
    grid[wanted] = _without_fills(grid[wanted], f"{source.file}, variable {wanted!r}")
    grid, dims = _ordered(grid, wanted, inputs)
    for dim, width in (source.width or {}).items():
        _check_width(dim, width, dated=dim in grid.coords and grid[dim].dtype.kind == "M")
    cells = {"dims": dims, "width": source.width, "instant": source.instant}
    if source.window:
        cells["bounds"] = _windows(grid, wanted, duration(source.window))
    return from_grid(grid, wanted, inputs=inputs, **cells, **settings)


def _variable(grid: xr.Dataset, given: str | None, least: int) -> str:
    """Return the variable meant, or the only one of so many dimensions."""
    several = [str(name) for name, values in grid.data_vars.items() if values.ndim >= least]
    if given is None and len(several) != 1:
        raise ConfigError(f"variable = must name one of {listed(grid.data_vars)}")
    wanted = given or several[0]
    if wanted not in grid.data_vars:
        raise ConfigError(
            f"there is no variable {wanted!r}; the variables are {offer(wanted, grid.data_vars)}"
        )
    return wanted


def _windows(grid: xr.Dataset, variable: str, length: Any) -> dict[str, np.ndarray]:
    """Return windows of a length from the dates of a grid on, or up to them."""
    dated = [str(d) for d in grid[variable].dims if d in grid and grid[d].dtype.kind == "M"]
    if len(dated) != 1:
        raise ConfigError("window = needs one dimension of dates")
    times = grid[dated[0]].to_numpy()
    return {dated[0]: np.sort(np.stack([times, times + length.to_timedelta64()], 1), axis=1)}


def _ordered(
    grid: xr.Dataset, variable: str, inputs: list[str] | None
) -> tuple[xr.Dataset, list[str] | None]:
    """Return the dimensions in the order of the inputs, without single ones that are none."""
    if inputs is None:
        return grid, None
    dims = [str(d) for d in grid[variable].dims]
    found = match(dims, inputs)
    if len(dims) > len(inputs):
        known = [d for d in found if d in inputs or kind_of(d) is not None]
        grid = grid.squeeze([d for d in dims if d not in known and grid.sizes[d] == 1], drop=True)
        dims = [str(d) for d in grid[variable].dims]
        found = match(dims, inputs)
    if len(found) != len(inputs) or len(dims) != len(inputs):
        _lack(f"the dimensions of {variable!r} are", dims, list(found.values()), inputs)
    return grid, sorted(dims, key=lambda d: inputs.index(found[d]))


def _check_turned(read: list[Observations], config: Config) -> None:
    """Refuse a source that lies where another would with longitude and latitude swapped."""
    centres = {}
    for observed in read:
        known = {axis.quantity: axis.origin for axis in observed.support.axes or () if axis}
        if "longitude" in known and "latitude" in known:
            centres[observed.name] = known["longitude"], known["latitude"]
    for name, (lon, lat) in centres.items():
        other, (east, north) = next(iter(centres.items()))
        apart = max(abs(lon - east), abs(lat - north))
        if apart > FAR and max(abs(lon - north), abs(lat - east)) < FAR:
            here, there = (config.sources[n].file for n in (name, other))
            raise ConfigError(
                f"source {name!r}, {here}: longitude {lon:.4g} and latitude {lat:.4g} are those of"
                f" {other!r}, {there}, the other way round. Swap the names of the two columns in"
                " one of the files."
            )
