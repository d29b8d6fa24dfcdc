"""Chemistry-transport models of the Copernicus Atmosphere Monitoring Service, from NetCDF files."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mrgp.datasets.loaded import canonical, need
from mrgp.io.probing import check_values, probe, size_of
from mrgp.prediction.units import usual_units

WHERE = "cams"
DIMENSIONS = {
    "time": (("time", "valid_time"), {"standard_name": "time", "time_zone": "UTC"}),
    "lon": (("longitude", "lon"), {"standard_name": "longitude", "units": "degrees_east"}),
    "lat": (("latitude", "lat"), {"standard_name": "latitude", "units": "degrees_north"}),
}
"""What files call each dimension, and what its attributes are to say."""
LEVELS = ("level", "lev", "height")
SPELLINGS = {"pm25": ("pm2p5", "pm25"), "o3": ("o3", "go3")}
STEPS = re.compile(r"\s*(second|minute|hour|day)s?\s*", re.IGNORECASE)
# Seconds in two centuries: no model reaches as far from its own start.
LONGEST = 200 * 366 * 86400.0
SINCE = re.compile(r"\s*(\w+)\s+since\s+(.+)")
DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:[T ]?(\d\d):?(\d\d)?)?(?!\d)")
CALENDARS = ("standard", "gregorian", "proleptic_gregorian")
# Coordinates in single precision are off by a few 1e-6 degrees, and turning adds as much.
DECIMALS = 4


def cams(path: Any, species: str, *, level: float | int = 0) -> Any:
    """Read a species from a forecast or a reanalysis, as a DataArray along time, lon and lat.

    `from_grid` takes it as it is: its cells reach half way to their neighbours, which makes boxes
    of 0.1 degree of the European models, its times are UTC, its longitudes lie between -180 and
    180, and all three are in order. `level` is the height in metres, of a file that has levels.
    Times are instants; for means over hours give `from_grid` their `bounds`, and for a file with
    one row or column of cells their `width`. The attributes say the units, the file and how many
    values are missing.

    >>> import tempfile, xarray as xr
    >>> axes = {"time": [0.0], "latitude": [51.5, 51.4], "longitude": [359.9]}
    >>> grid = xr.DataArray([[[1.0], [2.0]]], axes, list(axes), name="no2_conc")
    >>> grid["time"].attrs["units"] = "hours since 2022-02-19"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     grid.to_netcdf(Path(folder) / "cams.nc", engine="scipy")
    ...     found = cams(Path(folder) / "cams.nc", "NO2")
    >>> found["lon"].values, found["lat"].values, found.values.ravel()
    (array([-0.1]), array([51.4, 51.5]), array([2., 1.]))
    """
    name = canonical(species, WHERE)
    file = Path(path)
    data = _open(file)
    try:
        grid = _at_level(data[_variable(data, name, species, file)], level, file)
        with _whole(file):
            check_values(grid.size, size_of(file))
            grid.load()
        return _in_order(grid, name, file, level)
    finally:
        data.close()


def _open(file: Path) -> Any:
    """Open a file with the engine that its first bytes ask for, its times left as numbers."""
    import xarray as xr

    if not file.is_file():
        raise FileNotFoundError(f"{WHERE}: there is no file {file}. Give a NetCDF file.")
    with file.open("rb") as opened:
        first = opened.read(8)
    if first.startswith((b"CDF\x01", b"CDF\x02")):
        engine = "scipy"
    elif first == b"\x89HDF\r\n\x1a\n":
        engine = "h5netcdf"
    else:
        size = file.stat().st_size
        hint = " It looks like a zip file: unpack it." if first.startswith(b"PK") else ""
        raise ValueError(
            f"{WHERE}: {file} is not a NetCDF file of version 3 or 4: its {size} bytes begin with"
            f" {first!r}.{hint} Download it again, as NetCDF."
        )
    if engine == "h5netcdf":
        need("h5netcdf", "NetCDF 4 files")
        need("h5py", "NetCDF 4 files")
    with _whole(file):
        if engine == "h5netcdf":
            probe(file, "hdf5")
        return xr.open_dataset(file, engine=engine, decode_times=False)


@contextlib.contextmanager
def _whole(file: Path) -> Iterator[None]:
    """Read from a file, or say that it is damaged: readers meet that with errors of many types."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"{WHERE}: {file} is cut short or damaged: {str(error) or type(error).__name__}. It has"
            f" {file.stat().st_size} bytes; download it again."
        ) from None


def _variable(data: Any, name: str, species: str, file: Path) -> str:
    """Return the variable of a species: no2_conc in forecasts, no2 in reanalyses."""
    spellings = (species, *SPELLINGS.get(name, (name,)))
    wanted = [f"{s}{suffix}" for s in spellings for suffix in ("_conc", "")]
    found = {str(v).lower(): str(v) for v in data.data_vars}
    for variable in wanted:
        if variable.lower() in found:
            return found[variable.lower()]
    raise ValueError(
        f"{WHERE}: {file} has no variable of {species!r}, which would be named"
        f" {' or '.join(dict.fromkeys(v.lower() for v in wanted))}; it has {sorted(found)}."
    )


def _at_level(grid: Any, level: float | int, file: Path) -> Any:
    """Return the grid at a height, where it has several or one."""
    dim = next((d for d in LEVELS if d in grid.dims), None)
    if dim is None:
        if level != 0:
            raise ValueError(f"{WHERE}: {file} has no levels, so level= is 0; got {level}.")
        return grid
    # Levels without coordinates count from 0.
    heights = grid[dim].to_numpy().astype(np.float64)
    near = np.flatnonzero(np.isclose(heights, level))
    if not len(near):
        raise ValueError(
            f"{WHERE}: {file} has the levels {heights.tolist()}; got level={level}. Give one of"
            " them."
        )
    return grid.isel({dim: int(near[0])}, drop=True)


def _in_order(grid: Any, name: str, file: Path, level: float | int) -> Any:
    """Return a grid with names, times, longitudes and order that other sources share."""
    import xarray as xr

    named = _renamed(grid, file)
    degrees = {dim: named[dim].to_numpy().astype(np.float64) for dim in ("lon", "lat")}
    along = {
        "time": _times(named["time"], file),
        "lon": np.round((degrees["lon"] + 180) % 360 - 180, DECIMALS),
        "lat": np.round(degrees["lat"], DECIMALS),
    }
    for dim, values in along.items():
        if not len(values) or len(np.unique(values)) < len(values):
            came = "repeats some" if len(values) else "has none"
            raise ValueError(
                f"{WHERE}: {file} {came} of its coordinates {dim}, of which there are"
                f" {len(values)}. Files that were cut short or joined twice are such; download it"
                " again."
            )
    values = named.to_numpy().astype(np.float64)
    attrs = {
        "units": usual_units(grid.attrs.get("units")) or None,
        "long_name": grid.attrs.get("long_name", grid.attrs.get("species", name)),
        "source": file.name,
        "level": level,
        "missing": int(np.isnan(values).sum()),
    }
    coordinates = {dim: (dim, values, DIMENSIONS[dim][1]) for dim, values in along.items()}
    kept = {key: value for key, value in attrs.items() if value is not None}
    return xr.DataArray(values, coordinates, named.dims, name, kept).sortby(["time", "lon", "lat"])


def _renamed(grid: Any, file: Path) -> Any:
    """Return a grid along time, lon and lat."""
    known = {there: dim for dim, (spellings, _) in DIMENSIONS.items() for there in spellings}
    names = {there: dim for there, dim in known.items() if there in grid.dims}
    if sorted(names.values()) != sorted(DIMENSIONS) or len(names) != grid.ndim:
        raise ValueError(
            f"{WHERE}: {file} has {grid.name!r} along {list(grid.dims)}; expected time, latitude"
            " and longitude, with or without level. Take a part with xarray and call from_grid."
        )
    lacking = [there for there in names if there not in grid.coords]
    if lacking:
        raise ValueError(f"{WHERE}: {file} has no coordinates along {lacking}.")
    found = grid.drop_vars([c for c in grid.coords if c not in names])
    return found.rename({k: v for k, v in names.items() if k != v}).transpose(*DIMENSIONS)


def _times(time: Any, file: Path) -> np.ndarray:
    """Return times in UTC."""
    units, name = str(time.attrs.get("units", "hours")), str(time.attrs.get("long_name", ""))
    calendar = str(time.attrs.get("calendar", "standard"))
    start = _start(units, name)
    if start is None or calendar.lower() not in CALENDARS:
        raise ValueError(
            f"{WHERE}: {file} does not say when its times are: expected units such as 'hours since"
            " 2022-02-19', or hours and a date in the long name, such as 'FORECAST time from"
            f" 20220219'; got the units {units!r}, the long name {name!r} and the calendar"
            f" {calendar!r}."
        )
    origin, step = start
    with _whole(file):
        passed = time.to_numpy().astype(np.float64) * step
        if not np.all(np.abs(passed) < LONGEST):
            raise ValueError("some times were never written")
    return (origin + np.rint(passed).astype("timedelta64[s]")).astype("datetime64[ns]")


def _start(units: str, name: str) -> tuple[np.datetime64, float] | None:
    """Return the date that times count from and their unit in seconds, if both are known.

    The date stands in the units, or else in the long name.

    >>> _start("hours", "FORECAST time from 20220219")
    (np.datetime64('2022-02-19T00:00:00'), 3600.0)
    """
    import pandas as pd

    since, stated = SINCE.fullmatch(units), DATE.search(name)
    step = STEPS.fullmatch(since[1] if since else units)
    date = since[2] if since else stated and "".join(part or "00" for part in stated.groups())
    if step is None or date is None:
        return None
    try:
        origin = pd.to_datetime(date, format=None if since else "%Y%m%d%H%M", utc=True)
    except ValueError:
        return None
    utc = origin.tz_localize(None).as_unit("s").to_datetime64()
    return utc, pd.Timedelta(1, step[1].lower()).total_seconds()
