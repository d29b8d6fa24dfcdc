"""Predictions into files: tables, grids by CF conventions, GeoTIFF, GeoJSON."""

import importlib
from pathlib import Path
from typing import Any

from mrgp.config.schema import ConfigError
from mrgp.prediction import Prediction

KINDS = (".csv", ".parquet", ".nc", ".tif", ".geojson")


def write_prediction(prediction: Prediction, path: Path, exceed: float | None = None) -> None:
    """Write mean, sd and a 95 % interval, and the probability to exceed a value if asked for."""
    suffix = path.suffix.lower()
    if suffix not in KINDS:
        raise ConfigError(f"--out {path}: files end in {', '.join(KINDS)}; got {suffix!r}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    if suffix in (".nc", ".tif"):
        grid = _grid(prediction, exceed, path)
        _write_tif(grid, path) if suffix == ".tif" else grid.to_netcdf(path, engine="h5netcdf")
        return
    frame = prediction.to_frame()
    if exceed is not None:
        frame["exceedance"] = prediction.exceedance(exceed)
    if suffix == ".geojson":
        _shapes(frame, path).to_file(path, driver="GeoJSON")
    elif suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)


def _grid(prediction: Prediction, exceed: float | None, path: Path) -> Any:
    try:
        grid = prediction.to_grid()
    except ValueError as error:
        raise ConfigError(
            f"--out {path}: the places are no grid. Write a table, .csv or .parquet. ({error})"
        ) from None
    units = {"units": prediction.units} if prediction.units else {}
    words = {
        "mean": "mean of the prediction",
        "std": "standard deviation of the prediction",
        "lower": "lower end of the central 95 % interval",
        "upper": "upper end of the central 95 % interval",
    }
    for name, text in words.items():
        grid[name].attrs |= {"long_name": f"{prediction.task}: {text}", **units}
    if exceed is not None:
        chance = prediction.exceedance(exceed).reshape(grid["mean"].shape)
        grid["exceedance"] = (grid["mean"].dims, chance)
        grid["exceedance"].attrs |= {
            "long_name": f"probability that {prediction.task} exceeds {exceed:g}",
            "units": "1",
        }
    from mrgp import __version__

    grid.attrs |= {
        "Conventions": "CF-1.11",
        "title": f"Predictions of {prediction.task}",
        "source": f"mrgp {__version__}",
    }
    return grid


def _write_tif(grid: Any, path: Path) -> None:
    try:
        importlib.import_module("rioxarray")
    except ImportError:
        raise ImportError(
            "GeoTIFF needs rioxarray: pip install rioxarray, or write .nc instead."
        ) from None
    dims = {d.lower(): d for d in map(str, grid["mean"].dims)}
    x, y = dims.get("lon", dims.get("longitude")), dims.get("lat", dims.get("latitude"))
    if x is None or y is None or any(grid.sizes[d] > 1 for d in grid.dims if d not in (x, y)):
        raise ConfigError(f"--out {path}: a GeoTIFF holds one map over lon and lat; write .nc.")
    flat = grid[["mean", "std"]].squeeze(drop=True).transpose(y, x).sortby(y, ascending=False)
    flat = flat.rio.set_spatial_dims(x, y).rio.write_crs("EPSG:4326")
    flat.rio.to_raster(path)


def _shapes(frame: Any, path: Path) -> Any:
    if hasattr(frame, "to_crs"):
        return frame
    import geopandas

    names = {c.lower(): c for c in frame}
    lon, lat = names.get("lon"), names.get("lat")
    if lon is None or lat is None:
        raise ConfigError(f"--out {path}: GeoJSON needs shapes, or inputs named lon and lat.")
    return geopandas.GeoDataFrame(
        frame, geometry=geopandas.points_from_xy(frame[lon], frame[lat]), crs="EPSG:4326"
    )
