"""Coasts, borders and cities under a map, from files that came with the package.

Coasts and borders of countries and the cities are those of Natural Earth, states those of the U.S.
Census Bureau; both are in the public domain. The arcs are those that the packages world-atlas and
us-atlas (Michael Bostock, ISC licence) redistribute, on a grid of a 500th of a degree.
"""

import io
import lzma
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from mrgp.report.ground import Ground
from mrgp.report.layout import Grid

FINE = 500
KINDS = ("coast", "border", "state")
ATTRIBUTION = {
    "coast": "Natural Earth (public domain)",
    "border": "Natural Earth (public domain)",
    "state": "U.S. Census Bureau (public domain)",
}
PIXELS = 1500
"""Steps of the drawing along the longer side of a map: finer ones would not be seen."""
WIDEST = 3.0
"""Degrees up to which a map is one of a city."""

Box = tuple[float, float, float, float]
"""West, east, south and north, in degrees."""


def extent_of(grid: Grid, ground: Ground | None = None) -> Box | None:
    """Return the extent of a map in degrees, or nothing where it is not known where it lies."""
    found: list[float] = []
    quantities = ("longitude", "latitude")
    for d, quantity in zip(grid.layout.across, quantities, strict=False):
        axis = grid.sides[d].axis
        if ground is None and (axis is None or axis.quantity != quantity):
            return None
        middles = grid.middles(d)
        half = 0.5 * float(np.ptp(middles)) / max(len(middles) - 1, 1)
        found += [float(middles.min()) - half, float(middles.max()) + half]
    if len(found) < 4:
        return None
    if ground is None:
        return found[0], found[1], found[2], found[3]
    return ground.box(found[:2], found[2:])


def backdrop(box: Box | None, ground: Ground | None = None) -> dict[str, Any] | None:
    """Return the lines and cities within an extent, and whose they are; on the map of a ground.

    >>> found = backdrop((0.5, 2.0, 50.8, 51.5))
    >>> [line["kind"] for line in found["lines"]], found["words"]
    (['coast'], 'Coast: Natural Earth (public domain).')
    """
    if box is None:
        return None
    clipped = {kind: _within(number, box) for number, kind in enumerate(KINDS)}
    lines: list[dict[str, Any]] = [
        {"kind": kind} | line for kind, line in clipped.items() if line["x"]
    ]
    # On the map of one city its name would only be in the way of its sites.
    wide = max(box[1] - box[0], box[3] - box[2]) > WIDEST
    cities: list[dict[str, Any]] = []
    if wide:
        cities = [{"name": n, "x": x, "y": y} for n, x, y in _cities(box)]
    if ground is not None:
        for line in lines:
            line["x"], line["y"] = _onto(ground, line["x"], line["y"])
        for city in cities:
            ([city["x"]], [city["y"]]) = _onto(ground, [city["x"]], [city["y"]])
    nouns = {"coast": "coast", "border": "borders", "state": "states"}
    owners: dict[str, list[str]] = {}
    for line in lines:
        owners.setdefault(ATTRIBUTION[line["kind"]], []).append(nouns[line["kind"]])
    if cities:
        owners.setdefault(ATTRIBUTION["coast"], []).append("cities")
    said = [f"{', '.join(what).capitalize()}: {whose}." for whose, what in owners.items()]
    return {"lines": lines, "cities": cities, "words": " ".join(said)}


def _onto(ground: Ground, lon: list[Any], lat: list[Any]) -> list[list[float | None]]:
    """Return places in degrees as they are on a map in a plane, with the gaps between lines."""
    given = np.array([lon, lat], np.float64)
    moved = np.array(ground.plane(*given))
    moved[:, np.isnan(given[0])] = np.nan
    return [[None if np.isnan(v) else float(f"{v:.8g}") for v in side] for side in moved]


def city_of(box: Box | None) -> str | None:
    """Return the city that a small extent is of: the one nearest its middle.

    >>> city_of((-0.5, 0.3, 51.3, 51.7)), city_of((-5.0, 5.0, 48.0, 55.0))
    ('London', None)
    """
    if box is None or max(box[1] - box[0], box[3] - box[2]) > WIDEST:
        return None
    middle = 0.5 * (box[0] + box[1]), 0.5 * (box[2] + box[3])
    inside = _cities(box)
    far = [abs(x - middle[0]) + abs(y - middle[1]) for _, x, y in inside]
    return inside[int(np.argmin(far))][0] if inside else None


def _cities(box: Box) -> list[tuple[str, float, float]]:
    names, (x, y) = _read()["city"], _read()["place"].T
    inside = (x >= box[0]) & (x <= box[1]) & (y >= box[2]) & (y <= box[3])
    return [(str(names[i]), float(x[i]), float(y[i])) for i in np.flatnonzero(inside)]


def _within(kind: int, box: Box) -> dict[str, list[float | None]]:
    """Return the parts of lines inside an extent, one after another with gaps between."""
    read = _read()
    x, y, line = read["x"], read["y"], read["line"]
    inside = (x >= box[0]) & (x <= box[1]) & (y >= box[2]) & (y <= box[3])
    inside &= read["kind"][line] == kind
    # One corner more at both ends, so that lines reach the edge of the map.
    same = line[1:] == line[:-1]
    wanted = inside.copy()
    wanted[1:] |= inside[:-1] & same
    wanted[:-1] |= inside[1:] & same
    rows = np.flatnonzero(wanted)
    if not len(rows):
        return {"x": [], "y": []}
    pixel = max(box[1] - box[0], box[3] - box[2]) / PIXELS
    begins = np.r_[True, (np.diff(rows) > 1) | (line[rows[1:]] != line[rows[:-1]])]
    ends = np.r_[begins[1:], True]
    cell = np.column_stack([x[rows], y[rows]]) // pixel
    rows_kept = begins | ends | np.r_[True, np.any(np.diff(cell, axis=0) != 0, axis=1)]
    found: dict[str, list[float | None]] = {"x": [], "y": []}
    for row in np.flatnonzero(rows_kept):
        for name, numbers in (("x", x), ("y", y)):
            gap = [None] if begins[row] and found[name] else []
            found[name] += [*gap, round(float(numbers[rows[row]]), 4)]
    return found


@cache
def _read() -> dict[str, np.ndarray]:
    """Return all lines corner by corner, in degrees, and the cities."""
    raw = lzma.decompress((files("mrgp.report") / "outlines.xz").read_bytes())
    with np.load(io.BytesIO(raw), allow_pickle=False) as stored:
        found = dict(stored)
    count, first = found["count"], found["first"]
    line = np.repeat(np.arange(len(count)), count)
    starts = np.cumsum(count) - count
    for column, (name, steps) in enumerate((("x", "east"), ("y", "north"))):
        moves = np.zeros(len(line), np.int64)
        others = np.ones(len(line), bool)
        others[starts] = False
        moves[others] = found.pop(steps)
        walked = np.cumsum(moves)
        found[name] = (walked - np.repeat(walked[starts] - first[:, column], count)) / FINE
    return found | {"line": line}
