"""Predictions into files: tables, grids by CF conventions, GeoTIFF, GeoJSON."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mrgp
from mrgp.config.schema import ConfigError
from mrgp.data import Observations
from mrgp.prediction import Prediction

COLUMNS = ("mean", "std", "lower_95", "upper_95")
KINDS = (".csv", ".parquet", ".nc", ".tif", ".geojson")
NEEDS = {
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
    if suffix not in KINDS:
        raise ConfigError(f"--out {path} ends in {suffix!r}; files end in {', '.join(KINDS)}.")
    if path.is_dir():
        raise ConfigError(f"--out {path} is a folder; give the name of a file.")
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
        grid = _grid(prediction, exceed, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_tif(grid, path) if suffix == ".tif" else grid.to_netcdf(path, engine="h5netcdf")
        return
    frame = prediction.to_frame()
    if beside is not None and suffix != ".geojson":
        new = frame[[c for c in frame if c in COLUMNS or c not in beside]]
        frame = beside.assign(**{str(c): new[c].to_numpy() for c in new})
    if exceed is not None:
        frame["exceedance"] = prediction.exceedance(exceed)
    shapes = _shapes(frame, prediction, path) if suffix == ".geojson" else None
    path.parent.mkdir(parents=True, exist_ok=True)
    if shapes is not None:
        shapes.to_file(path, driver="GeoJSON")
    elif suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)


def _grid(prediction: Prediction, exceed: float | None, path: Path) -> Any:
    try:
        grid = prediction.to_grid()
    except ValueError as error:
        raise ConfigError(
            f"--out {path}: the places are no grid: {plain_reason(error)}. Write a table, .csv or"
            " .parquet."
        ) from None
    units = {"units": prediction.units} if prediction.units else {}
    for name, text in WORDS.items():
        grid[name].attrs |= {"long_name": f"{prediction.task}: {text}", **units}
    if exceed is not None:
        # Read back from the places, which may come in any order.
        chance = Observations(prediction.support, prediction.exceedance(exceed)).to_grid()
        grid["exceedance"] = (chance.dims, chance.to_numpy())
        of = f"{exceed:g} {prediction.units}" if prediction.units else f"{exceed:g}"
        grid["exceedance"].attrs |= {
            "long_name": f"probability that {prediction.task} exceeds {of}",
            "units": "1",
        }
    _describe_axes(grid, prediction)
    reported = grid.attrs.pop("source", None)
    grid.attrs |= {
        "Conventions": "CF-1.11",
        "title": f"Predictions of {prediction.task}",
        "source": f"mrgp {mrgp.__version__}",
    }
    if reported is not None:
        grid.attrs["reported_by"] = reported
    return grid


def plain_reason(error: ValueError) -> str:
    """Return why places are no grid, without the names of functions."""
    return str(error).removeprefix("to_grid: ").split(" Use to_frame")[0].rstrip(".")


def _describe_axes(grid: Any, prediction: Prediction) -> None:
    """Say by CF attributes which dimensions are longitude, latitude and time."""
    for name, quantity in _quantities(prediction).items():
        if name in grid.coords and quantity in AXES:
            grid[name].attrs |= {
                "standard_name": quantity,
                "long_name": quantity,
                "axis": AXES[quantity],
            }


def _quantities(prediction: Prediction) -> dict[str, str]:
    support = prediction.support
    axes = support.axes or (None,) * support.dimension
    pairs = zip(support.input_names, axes, strict=True)
    return {name: axis.quantity for name, axis in pairs if axis is not None}


def _by_quantity(prediction: Prediction) -> tuple[str | None, str | None]:
    names = {quantity: name for name, quantity in _quantities(prediction).items()}
    return names.get("longitude"), names.get("latitude")


def _write_tif(grid: Any, path: Path) -> None:
    __import__("rioxarray")
    found = {grid[d].attrs.get("standard_name"): d for d in map(str, grid["mean"].dims)}
    x, y = found.get("longitude"), found.get("latitude")
    sizes = grid["mean"].sizes
    if x is None or y is None or any(n > 1 for d, n in sizes.items() if d not in (x, y)):
        raise ConfigError(f"--out {path}: a GeoTIFF holds one map over lon and lat; write .nc.")
    names = [name for name in (*WORDS, "exceedance") if name in grid]
    flat = grid[names].squeeze([d for d in sizes if d not in (x, y)], drop=True)
    flat = flat.transpose(y, x).sortby(y, ascending=False)
    flat.rio.set_spatial_dims(x, y).rio.write_crs("EPSG:4326").rio.to_raster(path)


def _shapes(frame: Any, prediction: Prediction, path: Path) -> Any:
    """Return a frame with geometries: those that it has, or points at its places."""
    if hasattr(frame, "to_crs"):
        return frame
    import geopandas

    lon, lat = _by_quantity(prediction)
    if lon not in frame or lat not in frame:
        raise ConfigError(
            f"--out {path}: GeoJSON needs shapes, or points with longitude and latitude. Write a"
            " table, .csv or .parquet."
        )
    places = geopandas.points_from_xy(frame[lon], frame[lat])
    return geopandas.GeoDataFrame(frame, geometry=places, crs="EPSG:4326")
