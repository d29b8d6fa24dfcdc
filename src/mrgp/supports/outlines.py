"""Outlines of polygons: read, repaired, and cut into pieces by a grid (theory 1.1)."""

import dataclasses
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from mrgp.supports.components import ranges

POLYGON, COLLECTION = 3, 7
"""Numbers of shapely's types: single geometries go up to polygons."""

_SPECK = 1e-12
_TILE = 8
_CELLS_AT_ONCE = 2**17


def require_shapely() -> ModuleType:
    """Import shapely, or say how to install it."""
    try:
        import shapely
    except ImportError:
        raise ImportError(
            'Polygons need shapely, which is not installed: pip install "mrgp[geo]".'
        ) from None
    return shapely


@dataclasses.dataclass(frozen=True, eq=False)
class Outlines:
    """The geometries of polygons, for maps and overlaps; arithmetic never sees them.

    `factor` multiplies the integral over each, and `densities` are the fields that weight the
    places inside; they are stale where the shapes have moved away from the numbers that such a
    function was written for. Outlines are equal where they are the same object.
    """

    shapes: np.ndarray
    factor: Float[np.ndarray, " n"]
    densities: tuple[Any, ...] = ()
    stale: bool = False

    def __getitem__(self, index: Any) -> "Outlines":
        return dataclasses.replace(self, shapes=self.shapes[index], factor=self.factor[index])


class Pieces(NamedTuple):
    """The parts of polygons that lie in the cells of a grid: which polygon, where, how large."""

    owner: Int[np.ndarray, " k"]
    x: Float[np.ndarray, "k 2"]
    area: Float[np.ndarray, " k"]


def read(geometries: Any, where: str) -> tuple[np.ndarray, int]:
    """Return valid polygons and multipolygons in the plane, and how many had to be repaired."""
    shapely = require_shapely()
    geometries = getattr(geometries, "geometry", geometries)
    if isinstance(geometries, shapely.Geometry):
        raise TypeError(f"{where}: give a list of geometries, as {where}([geometry]).")
    shapes = _as_array(geometries, where)
    coordinates, row = shapely.get_coordinates(shapes, return_index=True)
    finite = np.ones(len(shapes), bool)
    finite[row[~np.isfinite(coordinates).all(1)]] = False
    _require(finite, "have NaN or infinite coordinates", "Drop those rows or correct them.", where)
    invalid = ~shapely.is_valid(shapes)
    for n in np.flatnonzero(invalid | (shapely.get_type_id(shapes) == COLLECTION)):
        shapes[n] = _areas(shapes[n])
    advice = "Use points or nodes for places without area, or drop those rows."
    _require(shapely.area(shapes) > 0, "have no area, as points and lines have none", advice, where)
    return shapes, int(invalid.sum())


def _as_array(geometries: Any, where: str) -> np.ndarray:
    """Return geometries in the plane as an array, none of them missing or empty."""
    shapely = require_shapely()
    items = list(geometries)
    if not items:
        raise ValueError(f"{where}: there are no geometries; give at least one.")
    shapes = np.empty(len(items), object)
    shapes[:] = [None if isinstance(item, float) and np.isnan(item) else item for item in items]
    wrong = np.flatnonzero(~shapely.is_valid_input(shapes))
    if len(wrong):
        raise TypeError(
            f"{where}: geometries must be shapely geometries; row {wrong[0]} is of type"
            f" {type(items[wrong[0]]).__name__}. shapely.from_wkt and shapely.from_geojson read"
            " text."
        )
    absent = shapely.is_missing(shapes) | shapely.is_empty(shapes)
    _require(~absent, "are missing or empty", "Drop those rows.", where)
    return shapely.force_2d(shapes)


def _require(good: np.ndarray, what: str, advice: str, where: str) -> None:
    if not good.all():
        raise ValueError(
            f"{where}: {(~good).sum()} of {len(good)} geometries {what}, first in row"
            f" {np.argmin(good)}. {advice}"
        )


def _areas(shape: Any) -> Any:
    """Return all that has area in a geometry: crossing rings repaired, overlapping parts once."""
    shapely = require_shapely()
    parts = _single(shapely.make_valid(_single(np.array([shape]))))
    return shapely.union_all(parts[shapely.get_type_id(parts) == POLYGON])


def _single(shapes: np.ndarray) -> np.ndarray:
    shapely = require_shapely()
    while (shapely.get_type_id(shapes) > POLYGON).any():
        shapes = shapely.get_parts(shapes)
    return shapes


class _Tiles(NamedTuple):
    """Polygons, or what of them lies in a range of cells from `first` up to `stop`."""

    owner: Int[np.ndarray, " k"]
    shape: np.ndarray
    first: Int[np.ndarray, "k 2"]
    stop: Int[np.ndarray, "k 2"]

    def take(self, rows: np.ndarray) -> "_Tiles":
        return _Tiles(*(field[rows] for field in self))


def cut(shapes: np.ndarray, spacing: Float[np.ndarray, " n"]) -> Pieces:
    """Cut each polygon along the multiples of its spacing, and place each piece at its centroid.

    Where a centroid lies outside, a point inside the piece takes its place. Areas add up to those
    of the polygons.
    """
    shapely = require_shapely()
    tiles = _tiles(shapes, spacing)
    shapely.prepare(tiles.shape)
    cells = (tiles.stop - tiles.first).prod(1)
    chunk = np.cumsum(cells) // _CELLS_AT_ONCE
    found = [_pieces(tiles.take(chunk == c), spacing) for c in np.unique(chunk)]
    owner, x, area = (np.concatenate(fields) for fields in zip(*found, strict=True))
    whole = shapely.area(shapes)
    # Rounding in the outlines leaves specks beyond the edges of cells.
    kept = area > _SPECK * whole[owner]
    owner, x, area = owner[kept], x[kept], area[kept]
    order = np.argsort(owner, kind="stable")
    owner, x, area = owner[order], x[order], area[order]
    exact = whole / np.bincount(owner, area, len(shapes))
    return Pieces(owner, x, area * exact[owner])


def _tiles(shapes: np.ndarray, spacing: Float[np.ndarray, " n"]) -> _Tiles:
    """Cut polygons that extend over many cells into tiles of fewer.

    A cell then meets a small part of a long outline, and no cell is looked at far from it.
    """
    pending = _shrunk(np.arange(len(shapes)), shapes, spacing)
    done = []
    while len(pending.owner):
        large = (pending.stop - pending.first).prod(1) > _TILE**2
        done.append(pending.take(~large))
        pending = _halves(pending.take(large), spacing)
    return _Tiles(*(np.concatenate(fields) for fields in zip(*done, strict=True)))


def _shrunk(owner: np.ndarray, shapes: np.ndarray, spacing: np.ndarray) -> _Tiles:
    bounds = require_shapely().bounds(shapes) / spacing[owner, None]
    first = np.floor(bounds[:, :2]).astype(np.int64)
    stop = np.maximum(np.ceil(bounds[:, 2:]).astype(np.int64), first + 1)
    return _Tiles(owner, shapes, first, stop)


def _halves(tiles: _Tiles, spacing: np.ndarray) -> _Tiles:
    shapely = require_shapely()
    row, side = np.arange(len(tiles.owner)), np.argmax(tiles.stop - tiles.first, 1)
    middle = (tiles.first + tiles.stop)[row, side] // 2
    edge, made = middle * spacing[tiles.owner], []
    for corner, end in ((2, "stop"), (0, "first")):
        bounds = shapely.bounds(tiles.shape)
        bounds[row, corner + side] = edge
        limits = tiles._asdict()
        limits[end] = limits[end].copy()
        limits[end][row, side] = middle
        shape = shapely.intersection(tiles.shape, shapely.box(*bounds.T))
        for n in np.flatnonzero(shapely.get_type_id(shape) == COLLECTION):
            shape[n] = _areas(shape[n])
        some = shapely.area(shape) > 0
        half = _shrunk(tiles.owner[some], shape[some], spacing)
        # Rounding may carry an edge over the cut; the cell beyond belongs to the other half.
        first = np.clip(half.first, limits["first"][some], limits["stop"][some] - 1)
        stop = np.clip(half.stop, first + 1, limits["stop"][some])
        made.append(half._replace(first=first, stop=stop))
    return _Tiles(*(np.concatenate(fields) for fields in zip(*made, strict=True)))


def _pieces(tiles: _Tiles, spacing: np.ndarray) -> Pieces:
    """Clip tiles by their cells; cells inside stay whole, and single cells need no clipping."""
    shapely = require_shapely()
    size = tiles.stop - tiles.first
    which, k = ranges(np.zeros(len(size), np.int64), size.prod(1))
    step = spacing[tiles.owner[which]]
    cell = tiles.first[which] + np.stack(np.divmod(k, size[which, 1]), 1)
    low, high = cell * step[:, None], (cell + 1) * step[:, None]
    shape, square = tiles.shape[which], shapely.box(*low.T, *high.T)
    alone = size.prod(1)[which] == 1
    inside = ~alone & shapely.covers(shape, square)
    border = ~inside & (alone | shapely.intersects(shape, square))
    x, area = 0.5 * (low + high), np.where(inside, step**2, 0.0)
    clipped = shape[border]
    crossed = ~alone[border]
    clipped[crossed] = shapely.intersection(clipped[crossed], square[border][crossed])
    x[border], area[border] = _centroids(clipped, shape[border]), shapely.area(clipped)
    return Pieces(tiles.owner[which], x, area)


def _centroids(pieces: np.ndarray, shapes: np.ndarray) -> Float[np.ndarray, "k 2"]:
    """Return the centroid of each piece, or where that is outside its polygon a point inside."""
    shapely = require_shapely()
    centre = shapely.centroid(pieces)
    x = np.stack([shapely.get_x(centre), shapely.get_y(centre)], 1)
    outside = ~shapely.intersects_xy(shapes, *x.T) & (shapely.area(pieces) > 0)
    inner = shapely.point_on_surface(pieces[outside])
    x[outside] = np.stack([shapely.get_x(inner), shapely.get_y(inner)], 1)
    return x
