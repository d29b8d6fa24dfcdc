"""Predictions into files: tables, grids by CF conventions, GeoTIFF, GeoJSON."""

import io
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mrgp
from mrgp._drafts import check_writable, draft
from mrgp.config.schema import ConfigError
from mrgp.data import Observations
from mrgp.prediction import Prediction

COLUMNS = ("mean", "std", "lower_95", "upper_95")


def _netcdf(made: Any, path: Path) -> None:
    # HDF5 and GDAL crash, or stay silent, on a full disk: they write to memory.
    path.write_bytes(made.to_netcdf(engine="h5netcdf"))


def _geotiff(made: Any, path: Path) -> None:
    from rasterio import MemoryFile

    with MemoryFile(ext=".tif") as memory:
        made.rio.to_raster(memory.name)
        path.write_bytes(memory.read())


def _geojson(made: Any, path: Path) -> None:
    memory = io.BytesIO()
    made.to_file(memory, driver="GeoJSON", layer="prediction")
    path.write_bytes(memory.getvalue())


WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".csv": lambda made, path: made.to_csv(path, index=False),
    ".parquet": lambda made, path: made.to_parquet(path, index=False),
    ".nc": _netcdf,
    ".tif": _geotiff,
    ".geojson": _geojson,
}
STORE = ".zarr"
NEEDS = {
    STORE: ("zarr", "mrgp[io]"),
    ".parquet": ("pyarrow", "mrgp[io]"),
    ".nc": ("h5netcdf", "mrgp[io]"),
    ".tif": ("rioxarray", "rioxarray"),
    ".geojson": ("geopandas", "mrgp[geo]"),
}
WORDS = {
    "mean": "mean of the prediction",
    "std": "standard deviation of the prediction",
    "lower": "lower end of the central 95 % interval",
    "upper": "upper end of the central 95 % interval",
}
AXES = {"longitude": "X", "latitude": "Y", "time": "T"}


def check_out(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is computed for it."""
    suffix = path.suffix.lower()
    known = (*WRITERS, STORE)
    if suffix not in known:
        raise ConfigError(f"--out {path} ends in {suffix!r}; files end in {', '.join(known)}.")
    # A store is a folder, and may be there already.
    check_writable(path.with_suffix(".part") if suffix == STORE else path, "--out ")
    if suffix == STORE and path.exists() and not (path / "zarr.json").is_file():
        raise ConfigError(f"--out {path} is there, and is no Zarr store; give another name.")
    package, install = NEEDS.get(suffix, ("", ""))
    if package and find_spec(package) is None:
        raise ConfigError(
            f"--out {path}: {suffix} files need {package}: pip install '{install}', or write .csv."
        )


def write_prediction(
    prediction: Prediction, path: Path, exceed: float | None = None, beside: Any = None
) -> None:
    """Write mean, sd and a 95 % interval, and the probability to exceed a value if asked for.

    `beside` is the user's table of the places, whose columns come first in a table.
    """
    check_out(path)
    suffix = path.suffix.lower()
    if suffix in (".nc", ".tif"):
        made = _grid(prediction, exceed, path)
        made = made if suffix == ".nc" else _map(made, _by_quantity(prediction), path)
    else:
        frame = prediction.to_frame()
        if beside is not None and suffix != ".geojson":
            new = frame[[c for c in frame if c in COLUMNS or c not in beside]]
            frame = beside.assign(**{str(c): new[c].to_numpy() for c in new})
        if exceed is not None:
            frame["exceedance"] = prediction.exceedance(exceed)
        made = frame if suffix != ".geojson" else _shapes(frame, _by_quantity(prediction), path)
    write(made, path)


def write(made: Any, path: Path) -> None:
    """Write a frame or a grid, whole or not at all, and the folder it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft(path) as named:
        WRITERS[path.suffix.lower()](made, named)


def _grid(prediction: Prediction, exceed: float | None, path: Path) -> Any:
    try:
        grid = prediction.to_grid()
    except ValueError as error:
        reason = str(error).removeprefix("to_grid: ").split(" Use to_frame")[0].rstrip(".")
        raise ConfigError(
            f"--out {path}: the places are no grid: {reason}. Write a table, .csv or .parquet."
        ) from None
    if exceed is not None:
        # Read back from the places, which may come in any order.
        chance = Observations(prediction.support, prediction.exceedance(exceed)).to_grid()
        grid["exceedance"] = (chance.dims, chance.to_numpy())
    return described(grid, prediction.units, exceed, _by_quantity(prediction))


def described(grid: Any, units: str | None, exceed: float | None, names: dict[str, str]) -> Any:
    """Give a map the attributes of CF conventions; `names` are those of longitude, and so on."""
    task = grid.attrs["task"]
    own = {"units": units} if units else {}
    for name, text in WORDS.items():
        grid[name].attrs |= {"long_name": f"{task}: {text}", **own}
    if exceed is not None:
        of = f"{exceed:g} {units}" if units else f"{exceed:g}"
        attrs = {"long_name": f"probability that {task} exceeds {of}", "units": "1"}
        grid["exceedance"].attrs |= attrs
    for quantity, name in names.items():
        if quantity == "time":
            # Times and the ends of windows are counted from the same date.
            grid[name].encoding["units"] = "seconds since 1970-01-01"
        marks = {"standard_name": quantity, "long_name": quantity, "axis": AXES[quantity]}
        grid[name].attrs |= marks
    reported = {"reported_by": grid.attrs.pop("source")} if "source" in grid.attrs else {}
    grid.attrs |= {
        "Conventions": "CF-1.11",
        "title": f"Predictions of {task}",
        "source": f"mrgp {mrgp.__version__}",
        **reported,
    }
    return grid


def _by_quantity(prediction: Prediction) -> dict[str, str]:
    """Return the names of the inputs that are longitude, latitude and time."""
    return {side.quantity: side.name for side in prediction.support.sides if side.quantity}


def _map(grid: Any, names: dict[str, str], path: Path) -> Any:
    """Return a grid as one map, north up."""
    __import__("rioxarray")
    x, y = names.get("longitude"), names.get("latitude")
    others = [d for d in grid["mean"].dims if d not in (x, y)]
    if x is None or y is None or any(grid.sizes[d] > 1 for d in others):
        raise ConfigError(f"--out {path}: a GeoTIFF holds one map over lon and lat; write .nc.")
    fields = [name for name in (*WORDS, "exceedance") if name in grid]
    flat = grid[fields].squeeze(others, drop=True).transpose(y, x).sortby(y, ascending=False)
    return flat.rio.set_spatial_dims(x, y).rio.write_crs("EPSG:4326")


def _shapes(frame: Any, names: dict[str, str], path: Path) -> Any:
    """Return a frame with geometries: those that it has, or points at its places."""
    if hasattr(frame, "to_crs"):
        return frame
    import geopandas

    lon, lat = names.get("longitude"), names.get("latitude")
    if lon not in frame or lat not in frame:
        raise ConfigError(
            f"--out {path}: GeoJSON needs shapes, or points with longitude and latitude. Write a"
            " table, .csv or .parquet."
        )
    places = geopandas.points_from_xy(frame[lon], frame[lat])
    return geopandas.GeoDataFrame(frame, geometry=places, crs="EPSG:4326")
