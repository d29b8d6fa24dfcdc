"""Guess a configuration from the files themselves."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from mrgp.config.reading import open_netcdf, read_frame
from mrgp.config.schema import GRIDS, SHAPES, TABLES, ConfigError

LON = ("lon", "longitude", "lng", "long")
LAT = ("lat", "latitude")
TIME = ("time", "datetime", "date", "timestamp", "measurementdategmt", "hour", "day")
STARTS = ("start", "from", "begin", "time_start", "start_time", "date_start")
ENDS = ("end", "until", "to", "time_end", "end_time", "date_end")
VALUES = ("no2", "pm25", "pm2.5", "pm2_5", "pm10", "o3", "so2", "co", "nox", "no", "value", "y")
UNITS = re.compile(r"\(([^)]+)\)|\[([^\]]+)\]")


def guess(files: list[Path], folder: Path) -> str:
    """Return the text of a configuration for files, with what was guessed and what was not.

    Files are written relative to `folder`, where the configuration will be.
    """
    if not files:
        raise ConfigError("mrgp init needs one file or more, the target's first.")
    parts, names, inputs = [], [], []
    for file in files:
        found = _lines(file)
        name = _free(re.sub(r"\W+", "_", file.stem).strip("_").lower() or "source", names)
        names.append(name)
        inputs.append(found.pop("inputs"))
        shown = "\n".join(f"{key} = {value}" for key, value in found.items() if key[0] != "#")
        notes = "\n".join(f"# {value}" for key, value in found.items() if key[0] == "#")
        relative = _relative(file, folder)
        parts.append(f'[sources.{name}]\nfile = "{relative}"\n{shown}\n{notes}'.rstrip() + "\n")
    common = [name for name in inputs[0] if all(name in other for other in inputs)]
    if any(set(other) != set(common) for other in inputs):
        listed = "; ".join(f"{n}: {', '.join(i)}" for n, i in zip(names, inputs, strict=True))
        raise ConfigError(
            f"The files do not have the same inputs ({listed}). Give all of them the same columns,"
            " or write the configuration by hand."
        )
    head = (
        "# Sources, the target first. Check what was guessed.\n"
        f"inputs = {_list(common)}\n"
        'model = "auto"      # or a table: [model] recipe = "MRGP"\n'
        "key = 0\n\n"
    )
    return head + "\n".join(parts)


def _lines(file: Path) -> dict[str, Any]:
    suffix = file.suffix.lower()
    if not file.exists():
        raise ConfigError(f"There is no file {file}.")
    if suffix in GRIDS:
        return _of_grid(file)
    if suffix in (*TABLES, *SHAPES):
        return _of_frame(file)
    known = ", ".join((*TABLES, *GRIDS, *SHAPES))
    raise ConfigError(f"{file} ends in {file.suffix!r}; files end in {known}.")


def _of_frame(file: Path) -> dict[str, Any]:
    frame = read_frame(file, [])
    columns = {str(c).lower().strip(): str(c) for c in frame}
    lon, lat = _first(columns, LON), _first(columns, LAT)
    start, end = _first(columns, STARTS), _first(columns, ENDS)
    time = None if start and end else _first(columns, TIME)
    x = [c for c in (lon, lat, time) if c]
    taken = {*x, start, end, "geometry"}
    numeric = [str(c) for c in frame if str(c) not in taken and _is_numeric(frame[c])]
    if not numeric:
        raise ConfigError(f"{file}: no column of numbers is left for the values; {list(columns)}.")
    y = _first({c.lower(): c for c in numeric}, VALUES) or numeric[-1]
    shapes = file.suffix.lower() in SHAPES
    inputs = ["lon", "lat"] if shapes else [c for c in (lon, lat) if c]
    inputs += [time] if time else ["time"] if start and end else []
    if not inputs:
        raise ConfigError(
            f"{file}: no column looks like a place or a time; the columns are {list(frame)}. Name"
            " them lon, lat, time, or start and end."
        )
    found: dict[str, Any] = {"inputs": inputs, "task": f'"{_task(y)}"', "y": f'"{y}"'}
    if x:
        found["x"] = _list(x)
    if start and end:
        found |= {"start": f'"{start}"', "end": f'"{end}"'}
    if lon and lat:
        found["crs"] = '"EPSG:4326"'
    found |= _units(y, str(frame["units"].iloc[0]) if "units" in frame else None)
    others = [c for c in numeric if c != y]
    if others:
        found["#others"] = f"other columns of numbers: {', '.join(others)}"
    return found


def _of_grid(file: Path) -> dict[str, Any]:
    try:
        opened = xr.open_zarr(file) if file.suffix == ".zarr" else open_netcdf(file)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"{file} cannot be read as a grid: it may be only half written. {error}"
        ) from None
    with opened:
        several = [n for n, v in opened.data_vars.items() if v.ndim >= 2 and _is_numeric(v)]
        if not several:
            raise ConfigError(f"{file} has no variable of two dimensions or more.")
        variable = several[0]
        array = opened[variable]
        names = {str(d).lower(): str(d) for d in array.dims}
        lon, lat = _first(names, LON), _first(names, LAT)
        found: dict[str, Any] = {"inputs": _grid_inputs(list(map(str, array.dims)))}
        found |= {"task": f'"{_task(str(variable))}"', "variable": f'"{variable}"'}
        if lon and lat:
            found["crs"] = '"EPSG:4326"'
        found |= _units(str(variable), array.attrs.get("units"))
        if len(several) > 1:
            found["#others"] = f"other variables: {', '.join(map(str, several[1:]))}"
    return found


def _grid_inputs(dims: list[str]) -> list[str]:
    order = [d for kind in (LON, LAT, TIME) for d in dims if d.lower() in kind]
    return order + [d for d in dims if d not in order]


def _is_numeric(values: Any) -> bool:
    return pd.api.types.is_numeric_dtype(values.dtype)


def _first(columns: dict[str, str], wanted: tuple[str, ...]) -> str | None:
    return next((columns[name] for name in wanted if name in columns), None)


def _task(column: str) -> str:
    return UNITS.sub("", column).strip().lower().removesuffix("_conc")


def _units(column: str, given: str | None) -> dict[str, str]:
    inside = UNITS.search(column)
    units = given or (inside and (inside[1] or inside[2]))
    if units and not pd.isna(units):
        return {"units": f'"{units}"'}
    return {"#units": 'units = "ug/m3"   # not in the file: say what they are'}


def _free(name: str, taken: list[str]) -> str:
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def _list(names: list[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def _relative(file: Path, folder: Path) -> str:
    try:
        return file.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        return file.resolve().as_posix()
