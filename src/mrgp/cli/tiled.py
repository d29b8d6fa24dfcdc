"""Maps that are predicted tile by tile, by this process or by workers."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np

import mrgp
from mrgp._cluster import check_workers, team
from mrgp.cli.app import note, progress, say
from mrgp.config.schema import ConfigError
from mrgp.io.exports import STORE, described
from mrgp.io.queries import MOST_PLACES, far_from_data_along, grid_array
from mrgp.io.stores import mark_of, to_netcdf, write_store
from mrgp.io.tiles import TILE_CELLS, Tiling, labelled, tiling_of

NETCDF = ".nc"


def wants_tiles(
    fit: mrgp.Fit,
    grid: str | None,
    out: Path,
    picture: Path | None,
    window: str | None,
    scheduler: str | None,
    workers: int | None,
    tile: int | None,
) -> bool:
    """Tell whether a map is made in tiles; refuse what does not go with them."""
    check_workers(scheduler, workers, "--scheduler, --workers: ")
    options = {"--scheduler": scheduler, "--workers": workers, "--tile": tile}
    given = [name for name, value in options.items() if value is not None]
    suffix = out.suffix.lower()
    if suffix == STORE:
        given.append(f"--out {out}")
    if window is not None:
        if given:
            raise ConfigError(
                f"--window is for maps that are made in one piece, and {given[0]} makes tiles."
                f" Leave it out, and write {NETCDF} or a table."
            )
        return False
    if grid is not None and suffix == NETCDF and not given:
        count = int(np.prod(list(grid_array(grid, fit).sizes.values())))
        if count <= MOST_PLACES:
            return False
        given.append(f"a grid of {count:,} places")
    if not given:
        return False
    if grid is None:
        raise ConfigError(f"{given[0]} is for maps: give --grid.")
    if suffix not in (STORE, NETCDF):
        raise ConfigError(f"{given[0]} is for maps in {STORE} and {NETCDF}; --out is {out}.")
    if picture is not None:
        raise ConfigError(f"--picture draws maps that are made in one piece; {given[0]} is not.")
    return True


def write_map(
    path: Path,
    fit: mrgp.Fit,
    grid: str,
    out: Path,
    asked: dict[str, Any],
    exceed: float | None,
    scheduler: str | None,
    workers: int | None,
    tile: int | None,
) -> None:
    """Predict a grid tile by tile into a Zarr store, and make a NetCDF file of it if asked for."""
    places = grid_array(grid, fit)
    asked = asked | {"key": 0, "samples": None}
    tiling = tiling_of(fit, places, asked, instant=[str(d) for d in places.sizes], exceed=exceed)
    for words in far_from_data_along(tiling, fit):
        note(f"note: {words}")
    store = out if out.suffix.lower() == STORE else out.with_name(f".{out.name}{STORE}")
    mark = mark_of(path, grid, asked, exceed)
    most = TILE_CELLS if tile is None else tile
    with team(scheduler, workers, "--scheduler, --workers: ") as everyone:
        template = _template(tiling, places)
        done = write_store(tiling, template, store, mark, everyone, progress("predict"), most)
    if store != out:
        to_netcdf(store, out)
        shutil.rmtree(store)
    count, known = done
    size = f"{int(np.prod(tiling.shape)):,} places in {count} tiles"
    say(f"wrote {out}: {size}{f', {known} of which were there' if known else ''}")


def _template(tiling: Tiling, places: Any) -> Any:
    """Return the map without its values, which take no memory."""
    empty = np.broadcast_to(np.nan, (len(tiling.fields), *tiling.shape))
    names = {side.quantity: side.name for side in tiling.along if side.quantity}
    made = labelled(tiling, places, empty)
    return described(made, tiling.fit.units.get(tiling.asked["task"]), tiling.exceed, names)
