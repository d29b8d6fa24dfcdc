"""A map tile by tile: what a fit predicts on the cells of a grid, some of them at a time."""

import dataclasses
import itertools
import math
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp._cluster import client_of, dask_of
from mrgp.config.names import kind_of, listed
from mrgp.io.grids import bounds_name, cells_of, coordinate
from mrgp.io.quantities import quantities_of
from mrgp.io.sides import support_of
from mrgp.prediction import predict
from mrgp.prediction.alignment import aligned
from mrgp.prediction.predicting import rows_beside
from mrgp.prediction.predictor import Predictor
from mrgp.supports import Side, Support, with_rows

WHERE = "predict"
FIELDS = ("mean", "std", "lower", "upper")
TILE_CELLS = 2**18
"""Cells of a tile where nothing else is asked for: 10 MB of results, some hundred while at work."""

BESIDE = ("exposure", "trials")
LOCAL = ("threads", "threading", "processes", "multiprocessing", "sync", "synchronous")
Span = tuple[slice, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Tiling:
    """A fit, what is asked of it, and the cells of a grid: all that a tile's fields need.

    `along` has the cells along each dimension of the grid, `inputs` the input that each of them is,
    `rows` the covariates of places that are the same everywhere, `beside` the exposure and the
    trials of cells where they differ, `exceed` a threshold whose probability is a further field.
    """

    fit: Predictor
    along: tuple[Side, ...]
    inputs: tuple[str, ...]
    asked: dict[str, Any]
    rows: dict[str, Any]
    exceed: float | None = None
    beside: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions of the grid, in its order."""
        return tuple(side.name for side in self.along)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells there are along each dimension."""
        return tuple(len(side.lower) for side in self.along)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of what is predicted."""
        return FIELDS if self.exceed is None else (*FIELDS, "exceedance")

    def support(self, span: Span) -> Support:
        """Return the cells of a tile, the last dimension running fastest."""
        parts = [np.arange(n)[part] for n, part in zip(self.shape, span, strict=True)]
        return self._cells([which.ravel() for which in np.meshgrid(*parts, indexing="ij")])

    def diagonal(self) -> Support:
        """Return cells among which each dimension has its own, in order, and then its last."""
        steps = np.arange(max(self.shape))
        return self._cells([np.minimum(steps, n - 1) for n in self.shape])

    def _cells(self, cells: Sequence[np.ndarray]) -> Support:
        sides = zip(self.inputs, self.along, cells, strict=True)
        taken = {name: side.take(which) for name, side, which in sides}
        order = [name for name in self.fit.inputs if name in taken]
        made = support_of([taken[name] for name in order], "mean", order)
        if not self.rows:
            return made
        return with_rows(made, {k: [v] * len(made) for k, v in self.rows.items()}, WHERE)

    def predicted(self, span: Span) -> Float[np.ndarray, "k *cells"]:
        """Return the fields of a tile, one after the other."""
        own: dict[str, Any] = {name: values[span].ravel() for name, values in self.beside.items()}
        found = predict(self.fit, self.support(span), **self.asked | own)
        values = [found.mean, found.std, *found.interval(0.95)]
        if self.exceed is not None:
            values.append(found.exceedance(self.exceed))
        shape = [len(range(*part.indices(n))) for part, n in zip(span, self.shape, strict=True)]
        return np.stack(values).reshape(len(values), *shape)

    def check(self) -> None:
        """Refuse cells that the fit does not know, by the corners of the grid."""
        corners = tuple(slice(None, None, max(1, n - 1)) for n in self.shape)
        aligned(self.fit, self.support(corners))
        given = ({**self.asked, **self.beside}.get(name) for name in BESIDE)
        exposure, trials = (v.ravel() if isinstance(v, np.ndarray) else v for v in given)
        process = str(self.asked["source"]), self.asked["task"]
        count = math.prod(self.shape)
        rows_beside(self.fit, process, self.asked["noise"], exposure, trials, count)


def tile(tiling: Tiling, span: Span) -> Float[np.ndarray, "k *cells"]:
    """Return the fields of a tile: the work of one task."""
    return tiling.predicted(span)


def predict_grid(
    fit: Predictor, grid: Any, asked: dict[str, Any], chunks: Any, scheduler: Any
) -> Any:
    """Predict on the cells of a grid; nothing is computed yet where there are chunks."""
    tiling = tiling_of(fit, grid, asked)
    sizes = _chunks(grid, tiling, chunks)
    if sizes is None:
        if scheduler is not None:
            raise ValueError(
                f'{WHERE}: scheduler= is for grids in chunks: give chunks="auto" as well, or'
                " grid.chunk(...)."
            )
        values: Any = tiling.predicted(tuple(slice(0, n) for n in tiling.shape))
    else:
        values = _lazily(tiling, sizes, scheduler)
    return labelled(tiling, grid, values)


def tiling_of(
    fit: Predictor,
    grid: Any,
    asked: dict[str, Any],
    instant: Sequence[str] = (),
    exceed: float | None = None,
) -> Tiling:
    """Return the tiling of a grid's coordinates; `instant` are dimensions with points for cells."""
    coordinates = grid.coords.to_dataset()
    given = [name for field in fit.covariates or () if field.in_rows for name in field.names]
    rows = {name: _one_value(grid, name) for name in given}
    added = {name for field in fit.covariates or () for name in field.names}
    known = quantities_of(fit.inputs, fit.axes)
    crs = "EPSG:4326" if "longitude" in known.values() else None
    whole = hasattr(grid, "data_vars")
    dims = [str(dim) for dim in grid.dims if dim in grid.coords or not whole]
    inputs = _inputs(dims, [name for name in fit.inputs if name not in rows], added)
    along, _, _ = cells_of(grid, coordinates, dims, instant=instant, crs=crs)
    beside = {n: _field_of(grid, asked[n], dims, n) for n in BESIDE if _differs(asked.get(n))}
    found = Tiling(fit, tuple(along), inputs, asked, rows, exceed, beside)
    found.check()
    return found


def _inputs(dims: Sequence[str], inputs: Sequence[str], optional: set[str]) -> tuple[str, ...]:
    """Return the input that each dimension is: of its name, or longitude, latitude or time too."""
    found = []
    for dim in dims:
        alike = [n for n in inputs if kind_of(dim) is not None and kind_of(n) == kind_of(dim)]
        found.append(dim if dim in inputs else alike[0] if len(alike) == 1 else dim)
    lost = [name for name in inputs if name not in found and name not in optional]
    strange = [name for name in found if name not in inputs]
    if lost or strange or len(set(found)) < len(found):
        raise ValueError(
            f"{WHERE}: the grid's dimensions {listed(dims)} are not the fit's inputs,"
            f" {listed(inputs)}. Call rename, isel or expand_dims on the grid first."
        )
    return tuple(found)


def _one_value(grid: Any, name: str) -> Any:
    if name not in grid.coords or grid.coords[name].ndim:
        raise ValueError(
            f"{WHERE}: the fit has the covariate {name!r}, a column of its tables: give the grid"
            f" one value of it, as grid.assign_coords({name}=...), or predict on a table of places."
        )
    return grid.coords[name].item()


def _differs(given: Any) -> bool:
    """Tell whether an exposure, or trials, may differ between cells: an array, or its name."""
    return isinstance(given, str) or hasattr(given, "dims")


def _field_of(grid: Any, given: Any, dims: Sequence[str], name: str) -> Float[np.ndarray, "*cells"]:
    """Return a variable of a grid, or one beside it, as an array over the grid's dimensions."""
    if isinstance(given, str):
        there = {str(known) for known in (*grid.coords, *getattr(grid, "data_vars", ()))}
        if given not in there:
            raise ValueError(
                f"{WHERE}: {name}= names {given!r}, which is no variable of the grid; they are"
                f" {listed(sorted(there - set(dims)))}."
            )
        given = grid[given]
    if not set(given.dims) <= set(dims):
        raise ValueError(
            f"{WHERE}: {name}= has the dimensions {listed(map(str, given.dims))}, and the grid has"
            f" {listed(dims)}. Call rename, isel or squeeze on it first."
        )
    sizes = {dim: grid.sizes[dim] for dim in dims}
    wrong = [str(dim) for dim in given.dims if given.sizes[dim] != sizes[dim]]
    if wrong:
        raise ValueError(
            f"{WHERE}: {name}= has {given.sizes[wrong[0]]} values along {wrong[0]!r}, and the grid"
            f" {sizes[wrong[0]]}. Give one for each cell, as of grid.interp_like or reindex_like."
        )
    return (
        given.expand_dims({d: n for d, n in sizes.items() if d not in given.dims})
        .transpose(*dims)
        .to_numpy()
    )


def _chunks(grid: Any, tiling: Tiling, chunks: Any) -> tuple[tuple[int, ...], ...] | None:
    """Return the sizes of chunks along each dimension: those given, those of the grid, or none."""
    known = {str(dim): sizes for dim, sizes in dict(grid.chunksizes).items()}
    if chunks is None and not known:
        return None
    core = dask_of("dask.array", f"{WHERE}: ").core
    if chunks is None:
        asked: Any = tuple(known.get(dim, (n,)) for dim, n in _sizes(tiling))
    elif chunks == "auto":
        asked = tile_shape(tiling.shape)
    elif isinstance(chunks, int):
        asked = (chunks,) * len(tiling.shape)
    else:
        unknown = [str(dim) for dim in chunks if str(dim) not in tiling.dims]
        if unknown:
            raise ValueError(
                f"{WHERE}: chunks= names {unknown[0]!r}, but the dimensions are"
                f" {listed(tiling.dims)}."
            )
        asked = tuple(chunks.get(dim, known.get(dim, n)) for dim, n in _sizes(tiling))
    return core.normalize_chunks(asked, tiling.shape, dtype=np.float64, limit=8 * TILE_CELLS)


def _sizes(tiling: Tiling) -> list[tuple[str, int]]:
    return list(zip(tiling.dims, tiling.shape, strict=True))


def tile_shape(shape: Sequence[int], most: int = TILE_CELLS) -> tuple[int, ...]:
    """Return the shape of tiles of at most so many cells, as long as can be along the last axes.

    >>> tile_shape((24, 1000, 1000), 300_000), tile_shape((5, 4), 100)
    ((1, 250, 1000), (5, 4))
    """
    found, room = [], most
    for size in reversed(shape):
        count = math.ceil(size / max(1, min(size, room)))
        found.append(math.ceil(size / count))
        room //= found[-1]
    return tuple(reversed(found))


def spans(shape: Sequence[int], tiles: Sequence[int]) -> Iterator[Span]:
    """Yield the tiles of a shape, as slices, the last axis running fastest.

    >>> [[(part.start, part.stop) for part in span] for span in spans((3,), (2,))]
    [[(0, 2)], [(2, 3)]]
    """
    parts = [
        [slice(at, min(at + step, n)) for at in range(0, n, step)]
        for n, step in zip(shape, tiles, strict=True)
    ]
    yield from itertools.product(*parts)


def _lazily(tiling: Tiling, sizes: tuple[tuple[int, ...], ...], scheduler: Any) -> Any:
    """Return the fields as one Dask array whose blocks are tiles."""
    dask = dask_of("dask", f"{WHERE}: ")
    array = dask_of("dask.array", f"{WHERE}: ")
    if scheduler in LOCAL:
        raise ValueError(
            f"{WHERE}: scheduler= is a Dask client or its address. For {scheduler} leave it out,"
            f" and ask for values with .compute(scheduler={scheduler!r})."
        )
    if scheduler is not None:
        client_of(scheduler, f"{WHERE}: ", default=True)
    # One key of the graph for all tiles: a worker is sent the fit once.
    held = dask.delayed(tiling, name=f"mrgp-fit-{uuid.uuid4().hex}", traverse=False)
    rank = len(tiling.shape)
    return array.map_blocks(
        _block,
        tiling=held,
        chunks=((len(tiling.fields),), *sizes),
        dtype=np.float64,
        meta=np.empty((0,) * (rank + 1)),
        name=f"mrgp-map-{uuid.uuid4().hex}",
    )


def _block(tiling: Tiling, block_info: Any = None) -> Float[np.ndarray, "k *cells"]:
    _, *span = block_info[None]["array-location"]
    return tile(tiling, tuple(slice(*ends) for ends in span))


def labelled(tiling: Tiling, grid: Any, values: Any) -> Any:
    """Return fields as a Dataset, with the coordinates and the CRS of the grid that they are on."""
    import xarray as xr

    coordinates: dict[str, Any] = {}
    known = {*grid.coords, *getattr(grid, "data_vars", ())}
    for side in tiling.along:
        made = coordinate(side, local=False, bounded=True)
        _, _, attrs = made.pop(side.name)
        own = grid.coords[side.name]
        named = str(bounds_name(own))
        if named in known:
            attrs, made = {"bounds": named}, {named: grid[named].variable}
        bounds = {k: v for k, v in attrs.items() if k == "bounds"}
        coordinates |= {
            side.name: (side.name, own.to_numpy(), (own.attrs or attrs) | bounds)
        } | made
    scalars = {name: c.variable for name, c in grid.coords.items() if c.ndim == 0}
    task, source = tiling.asked["task"], tiling.asked["source"]
    units = tiling.fit.units.get(task)
    attrs = {} if units is None else {"units": units}
    mapping = {k: v for k, v in grid.encoding.items() if k == "grid_mapping"}
    fields = {
        name: (tiling.dims, values[k], (attrs if name in FIELDS else {"units": "1"}) | mapping)
        for k, name in enumerate(tiling.fields)
    }
    about = {"task": task} | ({"source": source} if source else {})
    return xr.Dataset(fields, coordinates | scalars, about)
