"""What pieces of regions cover of the plane of polygons, and which of it overlaps (theory 4.3)."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float

from mrgp.supports.components import Index, Links
from mrgp.supports.outlines import require_shapely

NEGLIGIBLE = 1e-6
"""Overlaps below this share of a side's width, or of the smaller area, are taken for rounding."""

_QUERIES_AT_ONCE = 2**10
_TESTS_AT_FIRST = 2**14


def rectangles(lower: Float[np.ndarray, "k 2"], upper: Float[np.ndarray, "k 2"]) -> np.ndarray:
    """Return boxes as geometries: rectangles, or lines and points where sides have no width.

    >>> rectangles(np.zeros((2, 2)), np.array([[1.0, 0.0], [0.0, 0.0]]))
    array([<LINESTRING (0 0, 1 0)>, <POINT (0 0)>], dtype=object)
    """
    shapely = require_shapely()
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
    shapely = require_shapely()
    shapely.prepare(footprints[:polygons])
    tree = shapely.STRtree(footprints[:polygons])
    for start in range(0, len(footprints), _QUERIES_AT_ONCE):
        i, j = tree.query(footprints[start : start + _QUERIES_AT_ONCE])
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
    shapely = require_shapely()
    found = shapely.contains_properly(polygons, footprints)
    sides = shapely.get_dimensions(footprints)
    unclear = np.flatnonzero(~found & (sides > 0) & shapely.intersects(polygons, footprints))
    line, area = unclear[sides[unclear] == 1], unclear[sides[unclear] == 2]
    found[line] = shapely.relate_pattern(footprints[line], polygons[line], "T********")
    least = np.minimum(shapely.area(footprints[area]), shapely.area(polygons[area]))
    shared = shapely.area(shapely.intersection(footprints[area], polygons[area]))
    found[area] = shared > NEGLIGIBLE * least
    return found
