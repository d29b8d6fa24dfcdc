"""Outlines of polygons: read, repaired, cut into pieces by a grid, and overlapping (theory 1.1)."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from mrgp._extras import needed
from mrgp.supports.components import Index, Links, ranges

POLYGON, COLLECTION = 3, 7
"""Numbers of shapely's types: single geometries go up to polygons."""

NEGLIGIBLE = 1e-6
"""Overlaps below this share of a side's width, or of the smaller area, are taken for rounding."""

_SPECK = 1e-12
_FAR = 2**62
_CUTS = 12
_AT_ONCE = 2**10
_TESTS_AT_FIRST = 2**14


class _Shapely:
    """Shapely, imported where it is first used, or an error that says how to install it."""

    def __getattr__(self, name: str) -> Any:
        otherwise = 'Polygons need shapely, which is not installed: pip install "mrgp[geo]".'
        return getattr(needed("shapely", otherwise), name)


shapely: Any = _Shapely()


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

    def take(self, rows: np.ndarray) -> "Pieces":
        """Select some of the pieces."""
        return Pieces(*(field[rows] for field in self))

    @classmethod
    def joined(cls, found: Iterable["Pieces"]) -> "Pieces":
        """Put pieces after one another."""
        return cls(*(np.concatenate(fields) for fields in zip(*found, strict=True)))


def read(geometries: Any, where: str) -> tuple[np.ndarray, int]:
    """Return valid polygons and multipolygons in the plane, and how many had to be repaired."""
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
    parts = _single(shapely.make_valid(_single(np.array([shape]))))
    return shapely.union_all(parts[shapely.get_type_id(parts) == POLYGON])


def _single(shapes: np.ndarray) -> np.ndarray:
    while (shapely.get_type_id(shapes) > POLYGON).any():
        shapes = shapely.get_parts(shapes)
    return shapes


class _Tiles(NamedTuple):
    """What of polygons lies in a range of cells, from `first` up to `stop`."""

    owner: Int[np.ndarray, " k"]
    shape: np.ndarray
    first: Int[np.ndarray, "k 2"]
    stop: Int[np.ndarray, "k 2"]

    def take(self, rows: np.ndarray | slice) -> "_Tiles":
        return _Tiles(*(field[rows] for field in self))


def cut(shapes: np.ndarray, spacing: Float[np.ndarray, " n"]) -> Pieces:
    """Cut each polygon along the multiples of its spacing, and place each piece at its centroid.

    Where a centroid lies outside, a point inside the piece takes its place. Areas add up to those
    of the polygons.
    """
    anywhere = np.full((len(shapes), 2), _FAR)
    tiles = _fitted(_Tiles(np.arange(len(shapes)), shapes, -anywhere, anywhere), spacing)
    pieces, whole = Pieces.joined(_pieces(tiles, spacing)), shapely.area(shapes)
    # Rounding in the outlines leaves specks beyond the edges of cells.
    pieces = pieces.take(pieces.area > _SPECK * whole[pieces.owner])
    exact = whole / np.bincount(pieces.owner, pieces.area, len(shapes))
    return pieces._replace(area=pieces.area * exact[pieces.owner])


def _pieces(tiles: _Tiles, spacing: Float[np.ndarray, " n"]) -> Iterator[Pieces]:
    """Cut tiles into ever smaller ones, down to single cells; those that lie inside stay whole.

    A cell then meets a small part of a long outline, and no cell is looked at far from it.
    """
    for start in range(0, len(tiles.owner), _AT_ONCE):
        some = tiles.take(slice(start, start + _AT_ONCE))
        single = (some.stop - some.first).prod(1) == 1
        yield _clipped(some.take(single))
        inside, border = _smaller(some.take(~single), spacing)
        yield _squares(inside, spacing)
        yield from _pieces(border, spacing)


def _smaller(tiles: _Tiles, spacing: Float[np.ndarray, " n"]) -> tuple[_Tiles, _Tiles]:
    """Cut tiles along both sides; return the parts inside the shapes, and those across borders."""
    shapely.prepare(tiles.shape)
    size = tiles.stop - tiles.first
    length = -(-size // _CUTS)
    count = -(-size // length)
    which, k = ranges(np.zeros(len(size), np.int64), count.prod(1))
    place = np.stack(np.divmod(k, count[which, 1]), 1)
    tiles, length = tiles.take(which), length[which]
    first = tiles.first + place * length
    tiles = tiles._replace(first=first, stop=np.minimum(first + length, tiles.stop))
    step = spacing[tiles.owner, None]
    square = shapely.box(*(tiles.first * step).T, *(tiles.stop * step).T)
    inside = shapely.covers(tiles.shape, square)
    across = np.flatnonzero(~inside & shapely.intersects(tiles.shape, square))
    shape = shapely.intersection(tiles.shape[across], square[across])
    for n in np.flatnonzero(shapely.get_type_id(shape) == COLLECTION):
        shape[n] = _areas(shape[n])
    border = tiles.take(across)._replace(shape=shape).take(shapely.area(shape) > 0)
    return tiles.take(inside), _fitted(border, spacing)


def _fitted(tiles: _Tiles, spacing: Float[np.ndarray, " n"]) -> _Tiles:
    """Leave out cells that the shapes do not reach; rounding may carry shapes a little beyond."""
    bounds = shapely.bounds(tiles.shape) / spacing[tiles.owner, None]
    first = np.clip(np.floor(bounds[:, :2]).astype(np.int64), tiles.first, tiles.stop - 1)
    stop = np.clip(np.ceil(bounds[:, 2:]).astype(np.int64), first + 1, tiles.stop)
    return tiles._replace(first=first, stop=stop)


def _squares(tiles: _Tiles, spacing: Float[np.ndarray, " n"]) -> Pieces:
    """Return the cells of tiles that lie inside."""
    size = tiles.stop - tiles.first
    which, k = ranges(np.zeros(len(size), np.int64), size.prod(1))
    cell = tiles.first[which] + np.stack(np.divmod(k, size[which, 1]), 1)
    owner = tiles.owner[which]
    return Pieces(owner, (cell + 0.5) * spacing[owner, None], spacing[owner] ** 2)


def _clipped(tiles: _Tiles) -> Pieces:
    """Place what lies in single cells at its centroid, or at a point inside if that is outside."""
    x = shapely.get_coordinates(shapely.centroid(tiles.shape))
    outside = ~shapely.intersects_xy(tiles.shape, *x.T)
    x[outside] = shapely.get_coordinates(shapely.point_on_surface(tiles.shape[outside]))
    return Pieces(tiles.owner, x, shapely.area(tiles.shape))


def rectangles(lower: Float[np.ndarray, "k 2"], upper: Float[np.ndarray, "k 2"]) -> np.ndarray:
    """Return boxes as geometries: rectangles, or lines and points where sides have no width.

    >>> rectangles(np.zeros((2, 2)), np.array([[1.0, 0.0], [0.0, 0.0]]))
    array([<LINESTRING (0 0, 1 0)>, <POINT (0 0)>], dtype=object)
    """
    made, sides = np.empty(len(lower), object), (upper > lower).sum(1)
    area, line, point = (sides == count for count in (2, 1, 0))
    made[area] = shapely.box(*lower[area].T, *upper[area].T)
    made[line] = shapely.linestrings(np.stack([lower[line], upper[line]], 1))
    made[point] = shapely.points(lower[point])
    return made


def overlapping(
    footprints: np.ndarray, polygons: int, joined: Links | None = None
) -> Iterator[tuple[Index, Index]]:
    """Yield pairs (i, j) of footprints that overlap, j among the first, which are polygons.

    Where only connectedness matters, and the caller adds all pairs to `joined`, those that it
    connects already are left out: many polygons over one place then cost no more than a few.
    """
    shapely.prepare(footprints[:polygons])
    tree = shapely.STRtree(footprints[:polygons])
    for start in range(0, len(footprints), _AT_ONCE):
        i, j = tree.query(footprints[start : start + _AT_ONCE])
        i = i + start
        once = (i >= polygons) | (i < j)
        i, j, size = i[once], j[once], _TESTS_AT_FIRST
        while len(i):
            found = overlap(footprints[i[:size]], footprints[j[:size]])
            yield i[:size][found], j[:size][found]
            i, j, size = i[size:], j[size:], 2 * size
            if joined is not None:
                apart = joined.labels()[i] != joined.labels()[j]
                i, j = i[apart], j[apart]


def overlap(footprints: np.ndarray, polygons: np.ndarray) -> Bool[np.ndarray, " k"]:
    """Tell, pair by pair, whether a footprint shares area, or else inner places, with a polygon.

    >>> from shapely import Point, box
    >>> overlap(np.array([box(1, 0, 2, 1), Point(0.5, 0.5)]), np.array([box(0, 0, 1, 1)] * 2))
    array([False,  True])
    """
    found = shapely.contains_properly(polygons, footprints)
    sides = shapely.get_dimensions(footprints)
    unclear = np.flatnonzero(~found & (sides > 0) & shapely.intersects(polygons, footprints))
    line, area = unclear[sides[unclear] == 1], unclear[sides[unclear] == 2]
    found[line] = shapely.relate_pattern(footprints[line], polygons[line], "T********")
    least = np.minimum(shapely.area(footprints[area]), shapely.area(polygons[area]))
    shared = shapely.area(shapely.intersection(footprints[area], polygons[area]))
    found[area] = shared > NEGLIGIBLE * least
    return found
