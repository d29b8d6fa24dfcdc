"""Values that do not belong to the others: codes for missing values, and what stands far apart."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

LARGEST = 1e100
CODES = (-999.0, -999.9, -9999.0, -9999.9, -99999.0, -999999.0, 9999.0, 99999.0, 999999.0)
CODES += (-999.25, -999.99, -9999.99)
CODES += (-32767.0, -32768.0, 32767.0, 65535.0, -2147483647.0, -2147483648.0, 2147483647.0)
SHORT = (-99.0, -99.9, -99.99)
"""Codes that a quantity may well reach: they are codes where they come time and again."""

NETCDF = 9.969209968386869e36
"""The value that NetCDF's libraries put where nothing was written."""

HUGE = 1e19
FAR = 1000.0
FEWEST = 4
SEVERAL = 3
STILL, UNLIKELY = 6, 0.01
SHOWN = 5

Values = Float[np.ndarray, " n"]
Rows = Bool[np.ndarray, " n"]


def fill_values(y: Values) -> Rows:
    """Tell which values are codes for missing ones: known codes that stand apart from the others.

    A code stands apart where it is farther from all others than they are from one another and from
    zero, or negative where no other is. NetCDF's own value, and what no quantity reaches, always
    is one; -99 and its like are where they are repeated.

    >>> fill_values(np.array([3.0, -9999.0, 5.0])), fill_values(np.array([-9000.0, -9999.0]))
    (array([False,  True, False]), array([False, False]))
    """
    never = _is_one_of(np.abs(y), (NETCDF,)) | (np.abs(y) > LARGEST)
    suspects = never | _is_one_of(y, CODES) | (np.abs(y) > HUGE)
    others = y[~suspects & ~np.isnan(y)]
    if not len(others):
        return never
    low, high = others.min(), others.max()
    gap = np.maximum(low - y, y - high)
    apart = _apart(y, others)
    # What is huge may be the tail of much that is large.
    found = never | (suspects & apart & ((np.abs(y) <= HUGE) | (gap > FAR * (high - low))))
    short = short_codes(np.where(found, np.nan, y))
    return found | (short & np.isin(y, [v for v in set(y[short].tolist()) if np.sum(y == v) > 1]))


def short_codes(y: Values) -> Rows:
    """Tell which values are such as -99, and stand apart from the others as codes do.

    >>> short_codes(np.array([15.0, 25.0, -99.0, 20.0, 18.0]))
    array([False, False,  True, False, False])
    """
    suspects = _is_one_of(y, SHORT)
    others = y[~suspects & ~np.isnan(y)]
    if len(others) < FEWEST:
        return np.zeros(y.shape, bool)
    return suspects & _apart(y, others)


def _apart(y: Values, others: Float[np.ndarray, " m"]) -> Rows:
    """Tell which values are as far from all others as codes are."""
    low, high = others.min(), others.max()
    gap = np.maximum(low - y, y - high)
    return (gap > max(high - low, high, -low)) | ((y < 0) & (low >= 0))


def far_values(y: Values) -> Rows:
    """Tell which values stand a thousand spreads or more from the middle of all.

    >>> far_values(np.array([3.0, 4.0, 1e15, 5.0, 4.5]))
    array([False, False,  True, False, False])
    """
    seen = y[~np.isnan(y)]
    if len(seen) < FEWEST:
        return np.zeros(y.shape, bool)
    middle = np.median(seen)
    away = np.abs(y - middle)
    spread = 1.4826 * np.median(np.abs(seen - middle))
    if spread == 0:
        # More than half are one value: the others' own distance is the scale.
        others = np.abs(seen - middle)[seen != middle]
        spread = np.median(others) if len(others) else np.inf
    return (away > FAR * spread) | _beyond_a_gap(y, seen)


def _beyond_a_gap(y: Values, seen: Float[np.ndarray, " m"]) -> Rows:
    """Tell which values lie behind a gap of a thousand times all that is nearer to zero.

    They are half of all at most, and few where all others are zero, which has no scale.
    """
    ordered = np.sort(seen)
    gaps = np.diff(ordered)
    at = int(np.argmax(gaps))
    parts = (ordered[: at + 1], ordered[at + 1 :])
    near, far = sorted(parts, key=lambda part: np.abs(part).max())
    scale = 2.0 * np.abs(near).max() or FAR
    most = len(seen) / 2 if near.any() else FEWEST
    if gaps[at] <= FAR * scale or len(far) > most:
        return np.zeros(y.shape, bool)
    return (far.min() <= y) & (y <= far.max())


def shown_rows(rows: Rows, first: int = 0, noun: str = "row") -> str:
    """Return the numbers of some rows in words, the first few of many.

    >>> shown_rows(np.array([False, True])), shown_rows(np.ones(7, bool), first=2, noun="line")
    ('row 1', 'lines 2, 3, 4, 5, 6 and 2 others')
    """
    numbers = [str(row + first) for row in np.flatnonzero(rows)]
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    more = len(numbers) - SHOWN
    rest = f" and {more} other{'s' if more > 1 else ''}" if more > 0 else ""
    return f"{noun}s {', '.join(numbers[:SHOWN])}{rest}"


def _is_one_of(y: Any, codes: tuple[float, ...]) -> Rows:
    """Compare with codes that may have been through single precision."""
    found = np.zeros(y.shape, bool)
    for code in codes:
        found |= np.abs(y - code) <= 1e-6 * abs(code)
    return found


def still_runs(y: Values, place: Int[np.ndarray, " n"], time: Values) -> Int[np.ndarray, " n"]:
    """Number the runs of values that one place repeats for longer than chance explains; 0 is none.

    How often a value is that of the time before, in all other rows, says what chance is. A value
    that is the least or the greatest of all is a limit and may well stay, where it comes at other
    places or time and again.

    >>> y = np.concatenate([np.sin(np.arange(40.0)), np.full(12, 0.3), np.cos(np.arange(9.0))])
    >>> np.flatnonzero(still_runs(y, np.zeros(61, int), np.arange(61.0)))
    array([40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51])
    """
    found, rows = np.zeros(y.shape, int), np.flatnonzero(~np.isnan(y))
    rows = rows[np.lexsort([time[rows], place[rows]])]
    neighbours = place[rows][1:] == place[rows][:-1]
    same = neighbours & (y[rows][1:] == y[rows][:-1])
    run = np.concatenate([[0], np.cumsum(~same)])
    length = np.bincount(run)
    for which in np.flatnonzero(length >= STILL):
        mine = rows[run == which]
        value, repeats = y[mine[0]], length[which] - 1
        edge = value in (np.nanmin(y), np.nanmax(y))
        elsewhere = np.any(place[y == value] != place[mine[0]])
        again = len(np.unique(run[y[rows] == value])) >= SEVERAL
        others = neighbours.sum() - repeats
        if others < repeats or (edge and (elsewhere or again)):
            continue
        chance = (same.sum() - repeats + 1) / (others + 2)
        if np.log(len(rows)) + repeats * np.log(chance) < np.log(UNLIKELY):
            found[mine] = which + 1
    return found
