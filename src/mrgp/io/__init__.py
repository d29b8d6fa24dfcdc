"""Files, frames and grids: saved fits, pandas and geopandas, xarray."""

from mrgp.io.checkpoint import load, save
from mrgp.io.frames import from_frame
from mrgp.io.grids import from_grid

__all__ = ["from_frame", "from_grid", "load", "save"]
