"""The inputs of a set of regions, one by one: what frames and grids and supports share."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.io.clock import dates
from mrgp.supports import Axis, Kind, Support, boxes, points, same_turn

DECIMALS = 10
"""Degrees come back to 1e-10, a hundredth of a millimetre: decimal fractions as they were."""


@dataclasses.dataclass(frozen=True)
class Side:
    """One input of a set of regions, from `lower` to `upper`, on an axis or in plain numbers."""

    name: str
    lower: Float[np.ndarray, " n"]
    upper: Float[np.ndarray, " n"]
    axis: Axis | None = None

    @property
    def flat(self) -> bool:
        """Whether the regions are points along this input."""
        return np.array_equal(self.lower, self.upper)

    @property
    def quantity(self) -> str | None:
        """What the numbers stand for, "time", "longitude" or "latitude", where that is known."""
        return None if self.axis is None else self.axis.quantity

    def on(self, axis: Axis) -> "Side":
        """Write a side that is in the units of a quantity, such as degrees, on an axis of it."""
        lower, upper = (measure(ends, axis) for ends in (self.lower, self.upper))
        return dataclasses.replace(self, lower=lower, upper=upper, axis=axis)

    def __getitem__(self, rows: Any) -> "Side":
        return dataclasses.replace(self, lower=self.lower[rows], upper=self.upper[rows])


def measure(values: Float[np.ndarray, "..."], axis: Axis) -> Float[np.ndarray, "..."]:
    """Return seconds since 1970 or degrees as numbers on an axis; `restore` goes back."""
    if axis.quantity == "longitude":
        values = same_turn(values, axis.origin)
    return (values - axis.origin) / axis.step


def restore(numbers: Float[np.ndarray, "..."], axis: Axis | None) -> Any:
    """Return what the numbers of an axis stand for: dates, degrees, or themselves."""
    if axis is None:
        return numbers
    if axis.quantity == "time":
        return dates(numbers, axis)
    return np.round(axis.origin + axis.step * numbers, DECIMALS)


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


def sides_of(support: Support) -> list[Side]:
    """Return the inputs of a support, as wide as its regions."""
    lower, upper = (np.asarray(bound) for bound in support.bounds)
    axes = support.axes or (None,) * support.dimension
    return [
        Side(name, lower[:, d], upper[:, d], axis)
        for d, (name, axis) in enumerate(zip(support.input_names, axes, strict=True))
    ]


def quantities(names: Sequence[str], axes: Sequence[Axis | None] | None) -> dict[str, str | None]:
    """Return what each input stands for, "time", "longitude" or "latitude", where that is known.

    >>> quantities(["hour", "depth"], [Axis("time", 0.0, 3600.0, "h"), None])
    {'hour': 'time', 'depth': None}
    """
    pairs = itertools.zip_longest(names, axes or ())
    return {name: None if axis is None else axis.quantity for name, axis in pairs}
