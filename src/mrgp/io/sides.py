"""The sides of regions in a grid: from its coordinates, and back to them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from mrgp.io.quantities import instants, measure
from mrgp.supports import Axis, Kind, Side, Support, boxes, check_space, points, same_turn

Column = Float[np.ndarray, " n"]


def support_of(sides: Sequence[Side], kind: Kind, names: Sequence[str] | None = None) -> Support:
    """Return points where no side has width, and boxes otherwise; `names` are other names."""
    lower = np.column_stack([side.lower for side in sides])
    upper = np.column_stack([side.upper for side in sides])
    inputs = tuple(names or (side.name for side in sides))
    if np.array_equal(lower, upper):
        made: Support = points(lower, inputs=inputs, kind=kind)
    else:
        made = boxes(lower, upper, inputs=inputs, kind=kind)
    axes = tuple(side.axis for side in sides)
    return dataclasses.replace(made, axes=axes if any(axes) else None)


def within(support: Support, space: Any, where: str) -> Support:
    """Return a support whose inputs of these names are directions of one space, where given."""
    if space is None:
        return support
    return dataclasses.replace(support, space=check_space(space, support.input_names, where))


def cells_along(
    index: Any, name: str, ends: tuple[Any, Any] | None, unit: str, turning: bool
) -> Side:
    """Return the cells, or points, along one dimension of a grid, dates as numbers.

    `ends` are the bounds and the width of cells, where given, and None for points. With `turning`
    the coordinates are longitudes, which may jump by a full turn.
    """
    label = f"from_grid: the dimension {name!r}"
    centres, axis = numbers_of(index, unit, label)
    about = float(same_turn(centres[:1], 0.0)[0])
    if turning:
        centres = same_turn(centres, about)
    bounds, width = ends or (None, None)
    if bounds is not None:
        pairs = check_bounds(bounds, len(centres), label)
        flat, other = numbers_of(pairs.ravel(), unit, f"{label}, bounds")
        if (axis is None) != (other is None):
            raise TypeError(
                f"{label}: one of coordinate and bounds holds dates and the other does not."
            )
        flat = same_turn(flat, about) if turning else flat
        lower, upper = np.sort(flat.reshape(-1, 2), axis=1).T.copy()
        return Side(name, lower, upper, axis)
    if width is not None:
        half = 0.5 * _width(width, axis, label)
        return Side(name, centres - half, centres + half, axis)
    if ends is None or axis is not None or len(centres) == 1:
        return Side(name, centres, centres, axis)
    steps = np.diff(centres)
    if not (np.all(steps > 0) or np.all(steps < 0)):
        raise ValueError(
            f"{label} neither ascends nor descends, so that its cells have no edges. Call"
            f" sortby({name!r}), or give bounds= or instant=."
        )
    return Side(name, *edges_between(centres), axis)


def numbers_of(values: Any, unit: str, label: str) -> tuple[Column, Axis | None]:
    """Return a coordinate as numbers, with the axis of dates."""
    import pandas as pd

    index = pd.Index(values)
    if len(index) == 0:
        raise ValueError(f"{label} has no coordinates: the array is empty.")
    if index.hasnans:
        raise ValueError(f"{label} has missing coordinates. Drop them with dropna or isel.")
    if isinstance(index, pd.DatetimeIndex):
        return instants(index, unit)
    if isinstance(index, pd.TimedeltaIndex):
        raise TypeError(
            f"{label} holds durations. Turn them into numbers, dividing by"
            ' numpy.timedelta64(1, "h").'
        )
    if index.dtype.kind not in "fiu":
        raise TypeError(
            f"{label} must be numbers or datetime64; got {type(index[0]).__name__}. Dates of other"
            " calendars (cftime) are converted by convert_calendar('standard')."
        )
    return index.to_numpy(dtype=np.float64), None


def _width(width: Any, axis: Axis | None, label: str) -> float:
    import pandas as pd

    try:
        duration: Any = pd.Timedelta(width) if axis else width
        number = duration.total_seconds() / axis.step if axis else float(width)
    except (TypeError, ValueError):
        number = np.nan
    if not 0 < number < np.inf:
        kind = 'a duration such as "1h"' if axis else "a positive number"
        raise ValueError(f"{label}: width= must be {kind}; got {width!r}.")
    return float(number)


def edges_between(centres: Column) -> tuple[Column, Column]:
    """Return the ends of cells that meet half way between their centres.

    The outermost cells reach as far out as in.

    >>> edges_between(np.array([0.0, 1.0, 3.0]))
    (array([-0.5,  0.5,  2. ]), array([0.5, 2. , 4. ]))
    """
    middle = 0.5 * (centres[1:] + centres[:-1])
    first, last = 2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1]
    edges = np.concatenate([[first], middle, [last]])
    return np.minimum(edges[:-1], edges[1:]), np.maximum(edges[:-1], edges[1:])


def centres_within(lower: Column, upper: Column) -> Column:
    """Return the centres of cells: those that `edges_between` began with, or the middles.

    >>> centres_within(*edges_between(np.array([0.0, 1.0, 3.0])))
    array([0., 1., 3.])
    """
    middles = 0.5 * (lower + upper)
    width = upper - lower
    tolerance = 1e-9 * float(np.max(width, initial=0.0))
    if len(middles) < 3 or np.ptp(width) <= tolerance:
        return middles
    down = lower[0] > lower[1]
    edges = np.concatenate([upper[:1], lower]) if down else np.concatenate([lower[:1], upper])
    centres = middles.copy()
    for i in range(1, len(centres)):
        centres[i] = 2 * edges[i] - centres[i - 1]
    inside = (lower <= centres) & (centres <= upper)
    if inside.all() and np.allclose(edges_between(centres), (lower, upper), 0, tolerance):
        return centres
    return middles


def cells_at(side: Side, values: np.ndarray) -> Int[np.ndarray, " n"] | None:
    """Return the cell at each of some coordinates, dates or degrees, if each cell has one."""
    numbers, clock = numbers_of(values, "s", f"to_grid: like= along {side.name!r}")
    if side.axis is not None and (clock is None) != (side.quantity == "time"):
        numbers = measure(numbers, side.axis)
    cells = np.abs(numbers[:, None] - side.middle).argmin(1)
    slack = 1e-6 * (np.ptp(side.upper) or 1.0)
    inside = (numbers >= side.lower[cells] - slack) & (numbers <= side.upper[cells] + slack)
    whole = np.array_equal(np.sort(cells), np.arange(len(side.lower)))
    return cells if whole and inside.all() else None


def tensor(
    sides: list[Side], where: str
) -> tuple[list[Side], Int[np.ndarray, " n"], tuple[int, ...]]:
    """Return the cells along each dimension, the place of each row in the grid, and its shape.

    Cells ascend, or descend where the rows have them so.
    """
    along, places = [], []
    for side in sides:
        pairs = np.column_stack([side.lower, side.upper])
        cells, first, place = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        place = place.reshape(-1)
        if np.all(np.diff(first) < 0):
            cells, place = cells[::-1], len(cells) - 1 - place
        along.append(Side(side.name, cells[:, 0], cells[:, 1], side.axis))
        places.append(place)
    shape = tuple(len(side.lower) for side in along)
    rows = np.asarray(np.ravel_multi_index(tuple(places), shape))
    wanted = int(np.prod(shape))
    if len(np.unique(rows)) != wanted or len(rows) != wanted:
        sizes = " x ".join(f"{n} {side.name}" for n, side in zip(shape, along, strict=True))
        raise ValueError(
            f"{where}: {len(rows)} regions are no full grid of {sizes}, which has {wanted} cells,"
            " each once. Use to_frame() instead."
        )
    return along, rows, shape


def check_bounds(given: Any, count: int, label: str) -> np.ndarray:
    """Return bounds as [n, 2], from that or from n + 1 edges."""
    values = np.asarray(given)
    if values.shape == (count + 1,):
        values = np.column_stack([values[:-1], values[1:]])
    if values.shape != (count, 2):
        raise ValueError(
            f"{label}: bounds must have shape ({count}, 2), or be {count + 1} edges; got"
            f" {values.shape}."
        )
    return values
