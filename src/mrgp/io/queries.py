"""Where predictions are wanted: tables, shapes, and grids written as text."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mrgp.config.names import ENDS, STARTS, did_you_mean, first, kind_of, listed
from mrgp.config.schema import Config, ConfigError
from mrgp.data import harmonise
from mrgp.inference import Fit
from mrgp.io import from_frame
from mrgp.io.files import read_coordinate, told
from mrgp.io.sources import projected
from mrgp.prediction import Prediction
from mrgp.supports import Axis, Support

MOST_PLACES = 10**7
FAR_OUTSIDE = 0.1
"""How far beyond the data, of their extent, places are worth a word."""

WINDOWS = (("start", "end"), ("lower", "upper"))
Columns = tuple[str, ...]


def places_of(frame: Any, path: Path, fit: Fit, config: Config | None) -> Support:
    """Make places of a file's columns, named as the inputs or as those of a source."""
    with told(str(path)):
        made, located, chosen = _on_earth(frame, fit, config)
        for name in (n for n in fit.inputs if n not in located.values()):
            found = _columns(name, frame, config)
            parts = ("x",) if len(found) == 1 else ("start", "end")
            for part, column in zip(parts, found, strict=True):
                given = name if part == "x" else f"{name}_{part}"
                made[given] = frame[column]
                chosen[part] = [*chosen.get(part, []), given]
        for column in (c for c in made if c != "geometry"):
            made[column] = read_coordinate(made[column], f"column {column!r}")
        same = set(located) == set(located.values())
        chosen["inputs"] = list(fit.inputs) if same else located
        return from_frame(_like(frame, made), **chosen)


def _on_earth(
    frame: Any, fit: Fit, config: Config | None
) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
    """Return columns of geometries or eastings and northings, and the inputs that they give."""
    if "geometry" in frame:
        return {"geometry": frame["geometry"]}, _located(fit), {"geometry": "geometry"}
    for source in (config.sources if config else {}).values():
        flat = projected(source)
        if flat and set(flat) <= set(frame) and not any(kind_of(str(c)) == "lon" for c in frame):
            return {c: frame[c] for c in flat}, _located(fit), {"x": flat, "crs": source.crs}
    return {}, {}, {"crs": _crs(fit)}


def grid_support(text: str, fit: Fit) -> Support:
    """Make a grid of points of "lon=-0.5:0.3:0.01,lat=51.3:51.7:0.01,time=2022-02-19T12:00"."""
    sides: dict[str, np.ndarray] = {}
    quantities = _quantities(fit)
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, span = (piece.strip() for piece in part.partition("="))
        if name not in fit.inputs or not span:
            raise ConfigError(
                f"--grid has {part!r}; it needs name=first:last:step or name=value for each of"
                f" {listed(fit.inputs)}.{did_you_mean(name, fit.inputs)}"
            )
        if name in sides:
            raise ConfigError(f"--grid has {name!r} twice.")
        sides[name] = _dates(name, span) if quantities[name] == "time" else _numbers(name, span)
    lost = [name for name in fit.inputs if name not in sides]
    if lost:
        example = _typical_date(fit) if quantities[lost[0]] == "time" else "first:last:step"
        raise ConfigError(
            f"--grid lacks the input {lost[0]!r}; the fit has {listed(fit.inputs)}. Add"
            f" {lost[0]}={example}."
        )
    count = int(np.prod([float(len(side)) for side in sides.values()]))
    if count > MOST_PLACES:
        raise ConfigError(f"--grid has {count:,} points; {MOST_PLACES:,} are the most. Step wider.")
    mesh = np.meshgrid(*[np.arange(len(sides[n])) for n in fit.inputs], indexing="ij")
    frame = pd.DataFrame(
        {n: sides[n][index.ravel()] for n, index in zip(fit.inputs, mesh, strict=True)}
    )
    with told("--grid"):
        return from_frame(frame, list(fit.inputs), crs=_crs(fit))


def far_from_data(prediction: Prediction, fit: Fit) -> list[str]:
    """Say along which inputs places lie far outside the data, where predictions know little."""
    support = harmonise(prediction.support, fit.axes)
    lower, upper = fit.bounds
    reach = FAR_OUTSIDE * (upper - lower)
    said = []
    for column, name in enumerate(fit.inputs[: support.dimension]):
        first, last = (np.asarray(side)[:, column] for side in support.bounds)
        outside = (first > upper[column] + reach[column]) | (last < lower[column] - reach[column])
        if outside.any():
            ends = (float(lower[column]), float(upper[column]))
            axis = fit.axes[column] if fit.axes else None
            shown = " to ".join(f"{x:.6g}" if axis is None else axis.show(x) for x in ends)
            zone = " UTC" if axis is not None and axis.quantity == "time" else ""
            said.append(
                f"{outside.sum():,} of {len(support):,} places lie outside the data along {name},"
                f" which go from {shown}{zone}: look at the sd before you use them."
            )
    return said


def _columns(name: str, frame: Any, config: Config | None) -> Columns:
    """Return the column of an input, or those of its windows: by its name, a source's, its kind."""
    there = [str(c) for c in frame]
    kind, sources = kind_of(name), list((config.sources if config else {}).values())
    windows = [(s.start, s.end) for s in sources if kind == "time" and s.start and s.end]
    windows += [(f"{name}_{start}", f"{name}_{end}") for start, end in WINDOWS]
    # A source's windows come before a name: its column of times may be where windows start.
    for start, end in windows:
        if start in there and end in there:
            return start, end
    if name in there:
        return (name,)
    columns = [c for s in sources for c in s.x if c in there]
    same = [c for c in columns if kind is not None and kind_of(c) == kind]
    if same:
        return (same[0],)
    ends = first(there, STARTS), first(there, ENDS)
    if kind == "time" and ends[0] and ends[1]:
        return ends[0], ends[1]
    same = [c for c in there if kind is not None and kind_of(c) == kind]
    if same:
        return (same[0],)
    beside = " beside the geometry" if "geometry" in there else ""
    raise ConfigError(
        f"a column {name!r} is needed{beside}; the columns are {listed(there)}."
        f"{did_you_mean(name, there)}"
    )


def _like(frame: Any, columns: dict[str, Any]) -> Any:
    """Make a frame of the same rows; geometries keep their CRS."""
    made = pd.DataFrame(columns, index=frame.index)
    return made if "geometry" not in columns else type(frame)(made, geometry="geometry")


def _quantities(fit: Fit) -> dict[str, str | None]:
    axes: tuple[Axis | None, ...] = fit.axes or (None,) * len(fit.inputs)
    # Covariates, which come last, have no axis.
    known = dict(zip(fit.inputs, axes, strict=False))
    return {name: axis.quantity if axis else None for name, axis in known.items()}


def _located(fit: Fit) -> dict[str, str]:
    """Return the inputs that a geometry gives, by the names that it gives them."""
    quantities = _quantities(fit)
    found = {q: name for name, q in quantities.items() if q in ("longitude", "latitude")}
    if len(found) == 2:
        return {"lon": found["longitude"], "lat": found["latitude"]}
    if "x" in fit.inputs and "y" in fit.inputs:
        return {"x": "x", "y": "y"}
    raise ConfigError(f"the fit has no places on Earth; its inputs are {listed(fit.inputs)}")


def _crs(fit: Fit) -> str | None:
    return "EPSG:4326" if "longitude" in _quantities(fit).values() else None


def _typical_date(fit: Fit) -> str:
    """Return the middle of the times that were fitted, as one would type it."""
    for axis, middle in zip(fit.axes or (), fit.bounds.mean(0), strict=True):
        if axis is not None and axis.quantity == "time":
            return axis.show(middle)
    return "2022-02-19T12:00"


def _numbers(name: str, span: str) -> np.ndarray:
    try:
        numbers = [float(part) for part in span.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) == 1 and np.isfinite(numbers[0]):
        return np.array(numbers)
    if len(numbers) != 3 or not (numbers[2] > 0 and -np.inf < numbers[0] <= numbers[1] < np.inf):
        raise ConfigError(
            f"--grid: {name}={span} is neither a number nor first:last:step, such as 0:1:0.1 with a"
            " positive step."
        )
    start, last, step = numbers
    count = np.floor((last - start) / step * (1 + 1e-9)) + 1
    if count > MOST_PLACES:
        raise ConfigError(f"--grid: {name}={span} has {count:,.0f} steps. Step wider.")
    return np.round(start + step * np.arange(int(count)), 10)


def _dates(name: str, span: str) -> np.ndarray:
    parts = span.split("/")
    try:
        if len(parts) in (1, 3):
            first_date = pd.to_datetime(parts[0], format="ISO8601")
            if len(parts) == 1:
                return pd.DatetimeIndex([first_date]).to_numpy()
            last = pd.to_datetime(parts[1], format="ISO8601")
            dates = pd.date_range(first_date, last, freq=parts[2])
            if len(dates):
                return dates.to_numpy()
    except (ValueError, TypeError):
        pass
    raise ConfigError(
        f"--grid: {name}={span} is neither a date such as 2022-02-19T12:00 nor first/last/step,"
        " such as 2022-02-19T00:00/2022-02-19T06:00/1h."
    )
