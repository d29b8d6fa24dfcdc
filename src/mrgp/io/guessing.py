"""Guess a configuration from the files themselves."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd

from mrgp.config.names import BRACKETS, ENDS, LAT, LON, STARTS, TIME, first, kind_of, listed, plain
from mrgp.config.schema import GRIDS, SHAPES, TABLES, ConfigError
from mrgp.io.files import check_numbers, read_coordinate, read_frame, read_grid, require

VALUES = ("no2", "pm25", "pm2.5", "pm2_5", "pm10", "o3", "so2", "co", "nox", "no", "value", "y")
LABELS = re.compile(r"(.*_)?(id|code|index|number|nr|row|unnamed(_\d+)?)|altitude|elevation|year")


def guess(files: list[Path], folder: Path) -> str:
    """Return the text of a configuration for files, with what was guessed and what was not.

    Files are written relative to `folder`, where the configuration will be.
    """
    parts, names, inputs = [], [], []
    for file in files:
        found = _lines(file)
        name = _free(re.sub(r"[^a-z0-9_-]+", "_", file.stem.lower()).strip("_") or "source", names)
        names.append(name)
        inputs.append(found.pop("inputs"))
        shown = "\n".join(f"{key} = {value}" for key, value in found.items() if key[0] != "#")
        notes = "\n".join(f"# {value}" for key, value in found.items() if key[0] == "#")
        relative = _text(_relative(file, folder))
        parts.append(f"[sources.{name}]\nfile = {relative}\n{shown}\n{notes}".rstrip() + "\n")
    common = inputs[0]
    if any(sorted(other) != sorted(common) for other in inputs):
        each = "; ".join(f"{n} has {listed(i)}" for n, i in zip(names, inputs, strict=True))
        raise ConfigError(
            f"The files do not have the same inputs: {each}. Give all of them the same columns or"
            " dimensions, or write the configuration by hand."
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
    require(file, folder=suffix in GRIDS)
    if suffix in GRIDS:
        return _of_grid(file)
    if suffix in (*TABLES, *SHAPES):
        return _of_frame(file)
    known = ", ".join((*TABLES, *GRIDS, *SHAPES))
    raise ConfigError(f"{file} ends in {file.suffix!r}; files end in {known}.")


def _of_frame(file: Path) -> dict[str, Any]:
    frame = read_frame(file)
    columns = [str(c) for c in frame]
    shapes = file.suffix.lower() in SHAPES
    lon, lat = (None, None) if shapes else (first(columns, LON), first(columns, LAT))
    start, end, time = _times(columns)
    x = [c for c in (lon, lat, time) if c]
    inputs = ["lon", "lat"] if shapes else [k for k, c in (("lon", lon), ("lat", lat)) if c]
    inputs += ["time"] if time or start else []
    if not inputs:
        raise ConfigError(
            f"{file}: no column looks like a place or a time; the columns are {listed(columns)}."
            " Name them lon, lat, time, or start and end."
        )
    for column in (c for c in (time, start, end) if c):
        read_coordinate(frame[column], f"{file}, column {column!r}")
    y, others = _values(file, frame, {*x, start, end, "geometry"})
    found: dict[str, Any] = {"inputs": inputs, "task": _text(_task(y)), "y": _text(y)}
    if x:
        found["x"] = _list(x)
    if start and end:
        found |= {"start": _text(start), "end": _text(end)}
    if lon and lat:
        found["crs"] = '"EPSG:4326"'
    found |= _units(y, str(frame["units"].iloc[0]) if "units" in frame else None)
    if others:
        found["#others"] = f"other columns of numbers: {listed(others)}"
    return found


def _times(columns: list[str]) -> tuple[str | None, str | None, str | None]:
    """Return the start and end of windows, or a time; a time beside an end is a start."""
    start, end, time = (first(columns, words) for words in (STARTS, ENDS, TIME))
    if end and (start or time):
        return start or time, end, None
    return None, None, time


def _values(file: Path, frame: Any, taken: set[str | None]) -> tuple[str, list[str]]:
    """Return the column that most likely has the values, and others of numbers."""
    left = [str(c) for c in frame if str(c) not in taken and kind_of(str(c)) is None]
    numeric = [c for c in left if _is_numeric(frame[c]) and not LABELS.fullmatch(plain(c))]
    likely = first(left, VALUES)
    if likely and likely not in numeric:
        check_numbers(frame[likely], f"{file}, column {likely!r}")
    if not numeric:
        raise ConfigError(
            f"{file}: no column of numbers is left for the values; the columns are"
            f" {listed(frame)}. Numbers are written as 1.5."
        )
    y = first(numeric, VALUES) or numeric[-1]
    return y, [c for c in numeric if c != y]


def _of_grid(file: Path) -> dict[str, Any]:
    with read_grid(file, whole=False) as opened:
        bounds = {c.attrs.get("bounds", c.encoding.get("bounds")) for c in opened.coords.values()}
        several = [
            str(name)
            for name, values in opened.data_vars.items()
            if values.ndim >= 2 and name not in bounds and _is_numeric(values)
        ]
        if not several:
            raise ConfigError(
                f"{file} has no variable of numbers with two dimensions or more; it has"
                f" {listed(opened.data_vars) or 'none'}."
            )
        variable = first(several, VALUES) or several[0]
        array = opened[variable]
        dims = [str(d) for d in array.dims if array.sizes[d] > 1 or kind_of(str(d))]
        found: dict[str, Any] = {"inputs": _grid_inputs(dims)}
        found |= {"task": _text(_task(variable)), "variable": _text(variable)}
        if {"lon", "lat"} <= set(found["inputs"]):
            found["crs"] = '"EPSG:4326"'
        found |= _units(variable, array.attrs.get("units"))
        others = [name for name in several if name != variable]
        if others:
            found["#others"] = f"other variables: {listed(others)}"
    return found


def _grid_inputs(dims: list[str]) -> list[str]:
    """Return the inputs of a grid: places, times, and others by their names."""
    kinds = [kind_of(d) for d in dims]
    known = [kind for kind in ("lon", "lat", "time") if kind in kinds]
    return known + [d for d, kind in zip(dims, kinds, strict=True) if kind is None]


def _is_numeric(values: Any) -> bool:
    kind = getattr(values, "dtype", None)
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)


def _task(column: str) -> str:
    return BRACKETS.sub("", column).strip().lower().removesuffix("_conc") or column


MICROGRAMS = re.compile(
    r"^(?:u|µ|μ|micro)g(?:rams?)?\s*(?:/|\s|\*|·)?\s*m(?:\^|\*\*)?(?:-3|⁻³|3|³)$"
)
"""Micrograms a cubic metre, however they are written."""


def _units(column: str, given: Any) -> dict[str, str]:
    inside = BRACKETS.search(column)
    units = given or (inside and (inside[1] or inside[2]))
    if units and not pd.isna(units) and units != "nan":
        return {"units": _text(MICROGRAMS.sub("ug/m3", str(units).strip()))}
    return {"#units": 'units = "ug/m3"   # not in the file: say what they are'}


def _free(name: str, taken: list[str]) -> str:
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def _text(text: str) -> str:
    """Return text in quotes, as TOML has it."""
    return json.dumps(text, ensure_ascii=False)


def _list(names: list[str]) -> str:
    return "[" + ", ".join(map(_text, names)) + "]"


def _relative(file: Path, folder: Path) -> str:
    try:
        return file.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        return file.resolve().as_posix()
