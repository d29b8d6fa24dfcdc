"""From files to observations, and to places where predictions are wanted."""

import contextlib
import difflib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from mrgp.config.schema import Config, ConfigError, Source
from mrgp.data import Dataset, Observations
from mrgp.inference import Fit
from mrgp.io import from_frame, from_grid
from mrgp.supports import Axis, Support


def read_data(config: Config) -> Dataset:
    """Read every source of a configuration."""
    return Dataset([read_source(name, source, config) for name, source in config.sources.items()])


def read_source(name: str, source: Source, config: Config) -> Observations:
    """Read one source; what goes wrong is told with its name and file."""
    with _told(f"source {name!r}, {source.file}"):
        if source.kind == "grid":
            return _grid(name, source, config)
        frame = read_frame(source.file, [*source.x, source.start, source.end])
        return _frame(name, source, config, frame)


def read_places(path: Path, fit: Fit, config: Config | None) -> Support:
    """Read places to predict at: columns named as the inputs, or those of a known source."""
    frame = read_frame(path, list(fit.inputs))
    with _told(str(path)):
        if "geometry" in frame:
            return from_frame(frame, geometry="geometry", **_rest(frame, fit))
        known = _columns(frame, fit, config)
        return from_frame(frame, known["x"], start=known["start"], end=known["end"], crs=_crs(fit))


def read_frame(path: Path, dates: list[str | None]) -> Any:
    """Read a table or shapes, with columns of dates as dates."""
    if not path.is_file():
        raise ConfigError(f"There is no file {path}.{_nearby(path)}")
    suffix = path.suffix.lower()
    if suffix == ".csv":
        frame = pd.read_csv(path, skipinitialspace=True, encoding="utf-8-sig")
    elif suffix == ".parquet":
        frame = pd.read_parquet(path)
    else:
        frame = _geopandas().read_file(path)
    for column in (c for c in dates if c in frame):
        frame[column] = _as_dates(frame[column], f"{path}, column {column!r}")
    return frame


def _frame(name: str, source: Source, config: Config, frame: Any) -> Observations:
    if source.y is None:
        raise ConfigError(f"y = names the column of values; the columns are {list(frame)}")
    missing = [c for c in (*source.x, source.start, source.end, source.y) if c and c not in frame]
    if missing:
        near = difflib.get_close_matches(missing[0], [str(c) for c in frame], 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(
            f"there is no column {missing[0]!r}; the columns are {list(map(str, frame))}.{hint}"
        )
    settings = {
        "geometry": "geometry" if source.kind == "shapes" else None,
        "crs": source.crs,
        "inputs": config.inputs,
        "task": source.task or source.y,
        "name": name,
        "noise_variance": source.noise_variance,
        "units": source.units,
        "kind": source.values,
        "time_unit": config.time_unit,
        "spacing": source.spacing,
    }
    return from_frame(
        frame, source.x or None, source.y, start=source.start, end=source.end, **settings
    )


def _grid(name: str, source: Source, config: Config) -> Observations:
    if not source.file.exists():
        raise ConfigError(f"There is no file {source.file}.{_nearby(source.file)}")
    try:
        opened = (
            xr.open_zarr(source.file) if source.file.suffix == ".zarr" else open_netcdf(source.file)
        )
    except (OSError, ValueError, TypeError, KeyError) as error:
        size = source.file.stat().st_size
        raise ConfigError(
            f"it cannot be read as a grid ({size} bytes): it may be only half written. {error}"
        ) from None
    with opened:
        wanted = source.variable or _only(opened)
        if wanted not in opened:
            near = difflib.get_close_matches(wanted, [str(v) for v in opened.data_vars], 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(
                f"there is no variable {wanted!r}; there are {list(map(str, opened.data_vars))}."
                f"{hint}"
            )
        return from_grid(
            opened.load(),
            wanted,
            width=source.width,
            instant=source.instant,
            crs=source.crs,
            inputs=config.inputs,
            task=source.task,
            name=name,
            noise_variance=source.noise_variance,
            units=source.units,
            kind=source.values,
            time_unit=config.time_unit,
        )


def open_netcdf(path: Path) -> xr.Dataset:
    """Open a NetCDF file of either format."""
    # The first bytes tell the two formats apart.
    engine = "scipy" if path.read_bytes()[:3] == b"CDF" else "h5netcdf"
    return xr.open_dataset(path, engine=engine)


def _only(grid: xr.Dataset) -> str:
    found = [str(name) for name, values in grid.data_vars.items() if values.ndim >= 2]
    if len(found) != 1:
        raise ConfigError(f"variable = names one of {list(map(str, grid.data_vars))}")
    return found[0]


def _as_dates(column: Any, where: str) -> Any:
    """Return a column of dates as dates, and one of numbers as it is."""
    if not pd.api.types.is_string_dtype(column) and not pd.api.types.is_object_dtype(column):
        return column
    try:
        return pd.to_datetime(column, format="ISO8601", utc=_has_zone(column))
    except (ValueError, TypeError):
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = pd.to_datetime(column, errors="coerce")
    wrong = parsed.isna() & column.notna()
    example = column[wrong].iloc[0] if wrong.any() else column.iloc[0]
    raise ConfigError(
        f"{where}: {example!r} is no date in the form 2022-02-19 or 2022-02-19T13:00. Other forms"
        " can be read in two ways: rewrite the column."
    )


def _has_zone(column: Any) -> bool:
    """Tell whether dates have offsets, which may differ from row to row."""
    return bool(column.astype(str).str.contains(r"(?:Z|[+-]\d\d:?\d\d)$").any())


def _columns(frame: Any, fit: Fit, config: Config | None) -> dict[str, Any]:
    """Return the columns that are the inputs: by the names of the inputs, or of a source."""
    there = set(map(str, frame))
    if set(fit.inputs) <= there:
        return {"x": list(fit.inputs), "start": None, "end": None}
    for source in (config.sources if config else {}).values():
        wanted = {*source.x, source.start, source.end} - {None}
        if source.kind == "table" and wanted and wanted <= there:
            return {"x": source.x or None, "start": source.start, "end": source.end}
    raise ConfigError(
        f"columns named as the inputs, {list(fit.inputs)}, are needed; there are {sorted(there)}"
    )


def _rest(frame: Any, fit: Fit) -> dict[str, Any]:
    """Return the inputs beside a geometry's: columns of their names."""
    located = {"longitude", "latitude"}
    axes: tuple[Axis | None, ...] = fit.axes or (None,) * len(fit.inputs)
    beside = [
        name
        for name, axis in zip(fit.inputs, axes, strict=True)
        if axis is None or axis.quantity not in located
    ]
    lost = [name for name in beside if name not in frame]
    if lost:
        raise ConfigError(
            f"beside the geometry a column {lost[0]!r} is needed; there are {list(frame)}"
        )
    return {"x": beside or None, "inputs": list(fit.inputs)}


def _crs(fit: Fit) -> str | None:
    quantities = [axis.quantity for axis in fit.axes or () if axis is not None]
    return "EPSG:4326" if "longitude" in quantities else None


def _nearby(path: Path) -> str:
    there = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, there, 1)
    return f" Did you mean {near[0]}?" if near else ""


def _geopandas() -> Any:
    try:
        import geopandas
    except ImportError:
        raise ImportError("Shapes need geopandas: pip install 'mrgp[geo]'.") from None
    return geopandas


@contextlib.contextmanager
def _told(where: str) -> Iterator[None]:
    """Put the place before what went wrong there."""
    try:
        yield
    except (ValueError, TypeError, OSError, KeyError) as error:
        text = str(error).rstrip(".")
        raise ConfigError(f"{text}." if where in text else f"{where}: {text}.") from error


def grid_support(text: str, fit: Fit) -> Support:
    """Make a grid of points of "lon=-0.5:0.3:0.01,lat=51.3:51.7:0.01,time=2022-02-19T12:00"."""
    sides: dict[str, np.ndarray] = {}
    axes: tuple[Axis | None, ...] = fit.axes or (None,) * len(fit.inputs)
    dated = [
        name
        for name, axis in zip(fit.inputs, axes, strict=True)
        if axis is not None and axis.quantity == "time"
    ]
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, span = part.partition("=")
        name = name.strip()
        if name not in fit.inputs or not span:
            near = difflib.get_close_matches(name, fit.inputs, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(
                f"--grid has {part!r}; it needs name=first:last:step or name=value for each of"
                f" {list(fit.inputs)}.{hint}"
            )
        make: Callable[[str], np.ndarray] = _dates if name in dated else _numbers
        sides[name] = make(span)
    lost = [name for name in fit.inputs if name not in sides]
    if lost:
        raise ConfigError(f"--grid lacks the input {lost[0]!r}; the fit has {list(fit.inputs)}.")
    mesh = np.meshgrid(*[np.arange(len(sides[n])) for n in fit.inputs], indexing="ij")
    frame = pd.DataFrame(
        {n: sides[n][index.ravel()] for n, index in zip(fit.inputs, mesh, strict=True)}
    )
    return from_frame(frame, list(fit.inputs), crs=_crs(fit))


def _numbers(span: str) -> np.ndarray:
    try:
        numbers = [float(part) for part in span.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return np.array(numbers)
    if len(numbers) != 3 or numbers[2] <= 0 or numbers[1] < numbers[0]:
        raise ConfigError(f"--grid: {span!r} is not first:last:step with a positive step.")
    first, last, step = numbers
    return first + step * np.arange(int(np.floor((last - first) / step * (1 + 1e-9))) + 1)


def _dates(span: str) -> np.ndarray:
    parts = span.split("/")
    try:
        if len(parts) == 3:
            return pd.date_range(parts[0], parts[1], freq=parts[2]).to_numpy()
        if len(parts) == 1:
            return pd.DatetimeIndex([parts[0]]).to_numpy()
    except ValueError as error:
        raise ConfigError(f"--grid: {span!r} has dates that cannot be read: {error}.") from None
    raise ConfigError(f"--grid: {span!r} is not a date, nor first/last/step as a/b/1h.")
