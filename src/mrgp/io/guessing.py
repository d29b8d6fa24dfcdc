"""Guess a configuration from the files themselves."""

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from mrgp.config.names import (
    BRACKETS,
    ENDS,
    LAT,
    LON,
    PLANE,
    STARTS,
    TIME,
    first,
    kind_of,
    listed,
    offer,
    plain,
)
from mrgp.config.schema import GRIDS, SHAPES, ConfigError, Source
from mrgp.io.clues import (
    VALUES,
    Ask,
    Clue,
    averaged,
    counts,
    ends_of,
    is_numeric,
    kinds_of_places,
    value_column,
    value_columns,
)
from mrgp.io.files import read_coordinate, read_frame, read_grid, require
from mrgp.prediction.units import usual_units


class Guess(NamedTuple):
    """What a file seems to hold: inputs, values, other keys of its source, units, what to say.

    `several` are the columns or variables that may have the values.
    """

    inputs: list[str]
    values: str
    keys: dict[str, Any]
    units: Any
    notes: list[str]
    several: list[str]

    @property
    def task(self) -> str:
        """What is measured, by the name of the values."""
        plain = BRACKETS.sub("", self.values).strip().lower().removesuffix("_conc")
        return plain or self.values


def guess(
    files: list[Path], folder: Path, ask: Ask | None = None, wanted: Sequence[str] = ()
) -> str:
    """Return the text of a configuration for files, with what was guessed and what was not.

    Files are written relative to `folder`, where the configuration will be. `wanted` are columns
    or variables that have the values; where several may, `ask` asks which.
    """
    parts, inputs, tasks, several = [], {}, [], {}
    for file in files:
        require(file, folder=file.suffix.lower() in GRIDS)
        Source.check_suffix(file)
        read = _of_grid if file.suffix.lower() in GRIDS else _of_frame
        found = read(file, ask, wanted)
        stem = re.sub(r"[^a-z0-9_-]+", "_", file.stem.lower()).strip("_") or "source"
        names = itertools.chain([stem], (f"{stem}_{number}" for number in itertools.count(2)))
        name = next(name for name in names if name not in inputs)
        inputs[name] = found.inputs
        tasks.append(found.task)
        several |= dict.fromkeys(found.several)
        parts.append(f"[sources.{name}]\n{_source(_relative(file, folder), found)}")
    unknown = [name for name in wanted if name not in several]
    if unknown:
        raise ConfigError(
            f"--value {unknown[0]!r} is no column or variable of numbers in {listed(files)}; there"
            f" are {offer(unknown[0], several)}"
        )
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
    if len(set(tasks)) > 1:
        several = listed(dict.fromkeys(tasks))
        head += f"# Tasks are {several}: sources that measure the same have one task.\n\n"
    return head + "\n".join(parts)


def _source(file: str, found: Guess) -> str:
    """Return the keys of a source; what is not known, or not used, stands in comments."""
    inside = BRACKETS.search(found.values)
    units = found.units if found.units and not pd.isna(found.units) else None
    units = usual_units(units or (inside and (inside[1] or inside[2])))
    keys = {"file": file, "task": found.task, **found.keys, "units": units}
    lines = [f"{key} = {_toml(value)}" for key, value in keys.items() if value]
    if not units and "likelihood" not in found.keys:
        lines.append('# units = "ug/m3"   # not in the file: say what they are')
    return "\n".join([*lines, *(f"# {note}" for note in found.notes), ""])


def _of_frame(file: Path, ask: Ask | None, wanted: Sequence[str]) -> Guess:
    frame = read_frame(file)
    columns = [str(c) for c in frame]
    shapes = file.suffix.lower() in SHAPES
    places, cells = _places(frame, columns, shapes)
    start, end, time = _times(columns)
    inputs = [*places, *(["time"] if time or start else [])]
    if not inputs:
        raise ConfigError(
            f"{file}: no column looks like a place or a time; the columns are {listed(columns)}."
            " Name them lon, lat, time, or start and end."
        )
    dates = {
        column: read_coordinate(frame[column], f"{file}, column {column!r}")
        for column in (time, start, end)
        if column
    }
    points = [c for c in places.values() if isinstance(c, str)]
    ends = [[c for c in part if c] for part in zip(*cells, (start, end), strict=True)]
    taken = {*points, *itertools.chain(*ends), time, "geometry"}
    left = [c for c in columns if c not in taken]
    y, notes = value_column(file, frame, left, ask, wanted)
    keys: dict[str, Any] = {"y": y, "x": [*points, *([time] if time else [])]}
    keys |= {"start": _one_or_list(ends[0]), "end": _one_or_list(ends[1])}
    keys["crs"] = "EPSG:4326" if {"lon", "lat"} <= set(places) and not shapes else None
    if "x" in places and not shapes:
        notes.append('crs = "EPSG:27700"   # if x and y are of a CRS; else they are as they are')
    counted = counts(frame, y, regions=shapes or bool(ends[0]))
    windows = averaged(dates[time], y) if time else Clue({}, [])
    kinds = kinds_of_places(frame, [c for c in left if c != y], points)
    for clue in (counted, windows, kinds):
        keys |= clue.keys
        notes = [*clue.notes, *notes]
    units = frame["units"].iloc[0] if "units" in frame else None
    return Guess(inputs, y, keys, units, notes, value_columns(frame, left))


def _places(
    frame: Any, columns: list[str], shapes: bool
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return inputs of places with their columns, and the columns between which cells lie."""
    if shapes:
        return {"lon": True, "lat": True}, []
    lon, lat = first(columns, LON), first(columns, LAT)
    if lon or lat:
        return {kind: c for kind, c in (("lon", lon), ("lat", lat)) if c}, []
    cells = ends_of(columns)
    by_kind = {kind_of(name) or name.lower(): pair for name, pair in cells.items()}
    for pair in (("lon", "lat"), ("x", "y")):
        if set(pair) <= set(by_kind):
            return dict.fromkeys(pair), [by_kind[name] for name in pair]
    east, north = (first(columns, words) for words in PLANE)
    if not (east and north and is_numeric(frame[east]) and is_numeric(frame[north])):
        return {}, []
    # Where nothing else can have the values, y has them.
    others = [c for c in columns if c not in (east, north)]
    return ({"x": east, "y": north}, []) if value_columns(frame, others) else ({}, [])


def _one_or_list(columns: list[str]) -> Any:
    return columns[0] if len(columns) == 1 else columns or None


def _times(columns: list[str]) -> tuple[str | None, str | None, str | None]:
    """Return the start and end of windows, or a time; a time beside an end is a start."""
    start, end, time = (first(columns, words) for words in (STARTS, ENDS, TIME))
    if end and (start or time):
        return start or time, end, None
    return None, None, time


def _of_grid(file: Path, ask: Ask | None, wanted: Sequence[str]) -> Guess:
    with read_grid(file, whole=False) as opened:
        bounds = {c.attrs.get("bounds", c.encoding.get("bounds")) for c in opened.coords.values()}
        several = [
            str(name)
            for name, values in opened.data_vars.items()
            if values.ndim >= 2 and name not in bounds and is_numeric(values)
        ]
        if not several:
            raise ConfigError(
                f"{file} has no variable of numbers with two dimensions or more; it has"
                f" {listed(opened.data_vars) or 'none'}."
            )
        variable = next((name for name in wanted if name in several), None)
        variable = variable or first(several, VALUES) or several[0]
        known = [name for name in several if plain(name) in VALUES]
        if ask is not None and len(several) > 1 and len(known) != 1 and variable not in wanted:
            variable = ask(file, several, variable)
        array = opened[variable]
        kinds = {str(d): kind_of(str(d)) for d in array.dims}
        # Places and times first, then others by their names, without single ones.
        inputs = [kind for kind in ("lon", "lat", "time") if kind in kinds.values()]
        inputs += [d for d, kind in kinds.items() if kind is None and array.sizes[d] > 1]
        keys: dict[str, Any] = {"variable": variable}
        if {"lon", "lat"} <= set(inputs):
            keys["crs"] = "EPSG:4326"
        others = listed(name for name in several if name != variable)
        notes = [f"other variables: {others}"] if others else []
        clue = _averaged_grid(opened, array, kinds)
        units = array.attrs.get("units")
        return Guess(inputs, variable, keys | clue.keys, units, [*clue.notes, *notes], several)


def _averaged_grid(opened: Any, array: Any, kinds: dict[str, str | None]) -> Clue:
    """Recognise means over windows of a grid whose times have no bounds."""
    time = next((d for d, kind in kinds.items() if kind == "time" and d in opened.coords), None)
    if time is None or "bounds" in {**opened[time].attrs, **opened[time].encoding}:
        return Clue({}, [])
    said = [array.attrs.get(name, "") for name in ("cell_methods", "long_name")]
    return averaged(opened.get_index(time), " ".join(map(str, said)))


def _toml(value: str | list[str]) -> str:
    """Return text in quotes, or a list of such, as TOML has them."""
    return json.dumps(value, ensure_ascii=False)


def _relative(file: Path, folder: Path) -> str:
    file, folder = file.resolve(), folder.resolve()
    return (file.relative_to(folder) if file.is_relative_to(folder) else file).as_posix()
