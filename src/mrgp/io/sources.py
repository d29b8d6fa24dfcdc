"""From the files of a configuration to observations."""

import warnings
from typing import Any

import numpy as np
import xarray as xr

from mrgp.config.names import PLANE, kind_of, listed, match, offer
from mrgp.config.schema import Config, ConfigError, Source
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
    return Dataset(read)


def read_source(name: str, source: Source, config: Config, scored: bool = False) -> Observations:
    """Read one source; what goes wrong is told with its name and file."""
    with told(f"source {name!r}, {source.file}"):
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
        [renamed.get(c, c) for c in columns if c] or None
        for columns in (source.x, [source.start], [source.end])
    )
    geometry = "geometry" if source.kind == "shapes" else None
    table = used.rename(columns=renamed)
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
    periods = source.start and is_periods(frame[source.start])
    if (source.start is None) != (source.end is None) and not periods:
        given, lost = ("start", "end") if source.start else ("end", "start")
        raise ConfigError(f"{given} = needs {lost} = too, the column of where windows {lost}")
    return used


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
    columns = [c for c in [*source.x, source.start] if c and c not in flat]
    found = match(columns, [name for name in inputs if name not in given])
    there = [*given, *columns]
    if len(there) != len(inputs) or len(found) != len(columns):
        _lack("x =, start = and the geometry give", there, [*given, *found.values()], inputs)
    if not set(given) <= set(inputs):
        raise ConfigError(
            f"the inputs of places are called {given[0]!r} and {given[1]!r}; call them so in"
            f" inputs =, which has {listed(inputs)}"
        )
    if source.start:
        ends = {source.end: f"{found[source.start]}_end"} if source.end else {}
        found |= {source.start: f"{found[source.start]}_start"} | ends
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
        raise ConfigError("covariates = names columns of a table; a grid has none")
    grid = read_grid(source.file)
    flat = [str(name) for name, values in grid.data_vars.items() if values.ndim >= 2]
    if source.variable is None and len(flat) != 1:
        raise ConfigError(f"variable = must name one of {listed(grid.data_vars)}")
    wanted = source.variable or flat[0]
    if wanted not in grid.data_vars:
        raise ConfigError(
            f"there is no variable {wanted!r}; the variables are {offer(wanted, grid.data_vars)}"
        )
    if grid[wanted].dtype.kind not in "fiu":
        raise ConfigError(f"the variable {wanted!r} has no numbers, but {grid[wanted].dtype}")
    grid[wanted] = _without_fills(grid[wanted], f"{source.file}, variable {wanted!r}")
    grid, dims = _ordered(grid, wanted, inputs)
    for dim, width in (source.width or {}).items():
        dated = dim in grid.coords and grid[dim].dtype.kind == "M"
        if dated != isinstance(width, str):
            kind = 'a duration such as "1h"' if dated else "a number, in the units of its values"
            raise ConfigError(f"width of {dim!r} must be {kind}; got {width!r}")
    cells = {"dims": dims, "width": source.width, "instant": source.instant}
    return from_grid(grid, wanted, inputs=inputs, **cells, **settings)


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
