"""Guess a configuration from the files themselves."""

import itertools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from mrgp.config.names import BRACKETS, ENDS, LAT, LON, STARTS, TIME, first, kind_of, listed, plain
from mrgp.config.schema import GRIDS, SHAPES, ConfigError, Source
from mrgp.io.files import check_numbers, read_coordinate, read_frame, read_grid, require
from mrgp.prediction.units import usual_units

VALUES = ("no2", "pm25", "pm2.5", "pm2_5", "pm10", "o3", "so2", "co", "nox", "no", "value", "y")
LABELS = re.compile(r"(.*_)?(id|code|index|number|nr|row|unnamed(_\d+)?)|altitude|elevation|year")


class Guess(NamedTuple):
    """What a file seems to hold: inputs, values, other keys of its source, units, what else."""

    inputs: list[str]
    values: str
    keys: dict[str, Any]
    units: Any
    others: str


def guess(files: list[Path], folder: Path) -> str:
    """Return the text of a configuration for files, with what was guessed and what was not.

    Files are written relative to `folder`, where the configuration will be.
    """
    parts, inputs = [], {}
    for file in files:
        require(file, folder=file.suffix.lower() in GRIDS)
        Source.check_suffix(file)
        found = _of_grid(file) if file.suffix.lower() in GRIDS else _of_frame(file)
        stem = re.sub(r"[^a-z0-9_-]+", "_", file.stem.lower()).strip("_") or "source"
        names = itertools.chain([stem], (f"{stem}_{number}" for number in itertools.count(2)))
        name = next(name for name in names if name not in inputs)
        inputs[name] = found.inputs
        parts.append(f"[sources.{name}]\n{_source(_relative(file, folder), found)}")
    common = next(iter(inputs.values()))
    if any(sorted(other) != sorted(common) for other in inputs.values()):
        each = "; ".join(f"{name} has {listed(found)}" for name, found in inputs.items())
        raise ConfigError(
            f"The files do not have the same inputs: {each}. Give all of them the same columns or"
            " dimensions, or write the configuration by hand."
        )
    head = (
        "# Sources, the target first. Check what was guessed.\n"
        f"inputs = {_toml(common)}\n"
        'model = "auto"      # or a table: [model] recipe = "MRGP"\n'
        "key = 0\n\n"
    )
    return head + "\n".join(parts)


def _source(file: str, found: Guess) -> str:
    """Return the keys of a source; what is not known, or not used, stands in comments."""
    task = BRACKETS.sub("", found.values).strip().lower().removesuffix("_conc") or found.values
    inside = BRACKETS.search(found.values)
    units = found.units if found.units and not pd.isna(found.units) else None
    units = usual_units(units or (inside and (inside[1] or inside[2])))
    keys = {"file": file, "task": task, **found.keys, "units": units}
    lines = [f"{key} = {_toml(value)}" for key, value in keys.items() if value]
    if not units:
        lines.append('# units = "ug/m3"   # not in the file: say what they are')
    return "\n".join([*lines, *([f"# {found.others}"] if found.others else []), ""])


def _of_frame(file: Path) -> Guess:
    frame = read_frame(file)
    columns = [str(c) for c in frame]
    shapes = file.suffix.lower() in SHAPES
    lon, lat = (None, None) if shapes else (first(columns, LON), first(columns, LAT))
    start, end, time = _times(columns)
    kinds = {"lon": shapes or lon, "lat": shapes or lat, "time": time or start}
    inputs = [kind for kind, there in kinds.items() if there]
    if not inputs:
        raise ConfigError(
            f"{file}: no column looks like a place or a time; the columns are {listed(columns)}."
            " Name them lon, lat, time, or start and end."
        )
    for column in filter(None, (time, start, end)):
        read_coordinate(frame[column], f"{file}, column {column!r}")
    taken = {lon, lat, time, start, end, "geometry"}
    y, others = _values(file, frame, [c for c in columns if c not in taken])
    keys = {"y": y, "x": [c for c in (lon, lat, time) if c], "start": start, "end": end}
    keys["crs"] = "EPSG:4326" if lon and lat else None
    units = frame["units"].iloc[0] if "units" in frame else None
    return Guess(inputs, y, keys, units, others and f"other columns of numbers: {others}")


def _times(columns: list[str]) -> tuple[str | None, str | None, str | None]:
    """Return the start and end of windows, or a time; a time beside an end is a start."""
    start, end, time = (first(columns, words) for words in (STARTS, ENDS, TIME))
    if end and (start or time):
        return start or time, end, None
    return None, None, time


def _values(file: Path, frame: Any, columns: list[str]) -> tuple[str, str]:
    """Return the column that most likely has the values, and others of numbers."""
    left = [c for c in columns if kind_of(c) is None]
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
    return y, listed(c for c in numeric if c != y)


def _of_grid(file: Path) -> Guess:
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
        kinds = {str(d): kind_of(str(d)) for d in array.dims}
        # Places and times first, then others by their names, without single ones.
        inputs = [kind for kind in ("lon", "lat", "time") if kind in kinds.values()]
        inputs += [d for d, kind in kinds.items() if kind is None and array.sizes[d] > 1]
        keys = {"variable": variable}
        if {"lon", "lat"} <= set(inputs):
            keys["crs"] = "EPSG:4326"
        others = listed(name for name in several if name != variable)
        units = array.attrs.get("units")
        return Guess(inputs, variable, keys, units, others and f"other variables: {others}")


def _is_numeric(values: Any) -> bool:
    kind = getattr(values, "dtype", None)
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)


def _toml(value: str | list[str]) -> str:
    """Return text in quotes, or a list of such, as TOML has them."""
    return json.dumps(value, ensure_ascii=False)


def _relative(file: Path, folder: Path) -> str:
    file, folder = file.resolve(), folder.resolve()
    return (file.relative_to(folder) if file.is_relative_to(folder) else file).as_posix()
