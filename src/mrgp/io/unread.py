"""Grids and tables backed by Dask: which of them stay where they are, and their chunks."""

import itertools
from typing import Any

import numpy as np

IN_MEMORY = 1_000_000
"""Values up to which data backed by Dask are read at once."""


def stays(size: int | None, backed: bool, lazy: bool | None, where: str) -> bool:
    """Tell whether rows stay where they are: where that is wanted, or where they are many.

    >>> stays(10**7, True, None, "from_grid"), stays(10, True, None, "from_grid")
    (True, False)
    """
    if lazy and not backed:
        raise ValueError(
            f"{where}: lazy=True is for data backed by Dask. Open files with chunks=, as"
            ' xarray.open_zarr("sat.zarr") or dask.dataframe.read_parquet("sat.parquet").'
        )
    if lazy is not None or not backed:
        return bool(lazy)
    return size is None or size > IN_MEMORY


def blocks(grid: Any, dims: list[str]) -> list[tuple[slice, ...]]:
    """Return the chunks of a grid, as slices along dimensions."""
    along = dict(zip(map(str, grid.dims), grid.chunks, strict=True))
    ends = {dim: np.cumsum([0, *sizes]) for dim, sizes in along.items()}
    cuts = [[slice(a, b) for a, b in itertools.pairwise(ends[dim].tolist())] for dim in dims]
    return list(itertools.product(*cuts))


def is_table(frame: Any) -> bool:
    """Tell whether a table is a Dask DataFrame."""
    return hasattr(frame, "npartitions") and hasattr(frame, "get_partition")


def partition(frame: Any, number: int) -> Any:
    """Read one part of a Dask DataFrame."""
    return frame.get_partition(number).compute(scheduler="synchronous")


def loaded(given: Any, block: dict[str, slice]) -> Any:
    """Return the values of a chunk of a grid, read from where they are."""
    return given.isel({d: s for d, s in block.items() if d in given.dims}).compute(
        scheduler="synchronous"
    )
