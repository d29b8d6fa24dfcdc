"""The inputs of a set of regions, one by one: what frames and grids and supports share."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.io.clock import dates
from mrgp.supports import Axis, Kind, Support, boxes, points

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

    def on(self, axis: Axis) -> "Side":
        """Write a side that is in the units of a quantity, such as degrees, on an axis of it."""
        lower, upper = ((v - axis.origin) / axis.step for v in (self.lower, self.upper))
        return dataclasses.replace(self, lower=lower, upper=upper, axis=axis)

    def __getitem__(self, rows: Any) -> "Side":
        return dataclasses.replace(self, lower=self.lower[rows], upper=self.upper[rows])


def restore(numbers: Float[np.ndarray, "..."], axis: Axis | None) -> Any:
    """Return what the numbers of an axis stand for: dates, degrees, or themselves."""
    if axis is None:
        return numbers
    if axis.quantity == "time":
        return dates(numbers, axis)
    return np.round(axis.origin + axis.step * numbers, DECIMALS)


def support_of(sides: Sequence[Side], kind: Kind) -> Support:
    """Return points where no side has width, and boxes otherwise."""
    names = tuple(side.name for side in sides)
    axes = tuple(side.axis for side in sides)
    lower = np.column_stack([side.lower for side in sides])
    if all(side.flat for side in sides):
        made: Support = points(lower, inputs=names, kind=kind)
    else:
        upper = np.column_stack([side.upper for side in sides])
        made = boxes(lower, upper, inputs=names, kind=kind)
    return dataclasses.replace(made, axes=axes if any(axes) else None)


def sides_of(support: Support) -> list[Side]:
    """Return the inputs of a support, as wide as its regions."""
    lower, upper = (np.asarray(bound) for bound in support.bounds)
    axes = support.axes or (None,) * support.dimension
    return [
        Side(name, lower[:, d], upper[:, d], axis)
        for d, (name, axis) in enumerate(zip(support.input_names, axes, strict=True))
    ]


def order_of(names: Sequence[str], inputs: Any, where: str) -> tuple[list[int], tuple[str, ...]]:
    """Return the order and the names that `inputs=` gives to inputs.

    The names that are there already, in another order, put the inputs into that order; other
    names are given in the order that is there; a mapping renames some.

    >>> order_of(["lon", "lat", "time"], ("time", "lon", "lat"), "from_frame")
    ([2, 0, 1], ('time', 'lon', 'lat'))
    >>> order_of(["lon", "lat"], {"lon": "east"}, "from_frame")
    ([0, 1], ('east', 'lat'))
    """
    there = list(range(len(names)))
    if isinstance(inputs, Mapping):
        unknown = [name for name in inputs if name not in names]
        if unknown:
            raise ValueError(
                f"{where}: inputs= renames {unknown[0]!r}, but the inputs are {tuple(names)}."
            )
        given = tuple(str(inputs.get(name, name)) for name in names)
    else:
        given = (inputs,) if isinstance(inputs, str) else tuple(names if inputs is None else inputs)
    if len(set(given)) != len(given) or len(given) != len(names):
        taken = sorted({name for name in given if given.count(name) > 1})
        twice = f" {taken[0]!r} is given twice." if taken else ""
        raise ValueError(
            f"{where}: each of the {len(names)} inputs needs a name of its own; got {given}.{twice}"
            " Name them with inputs=."
        )
    if sorted(given) == sorted(names) and not isinstance(inputs, Mapping):
        return [list(names).index(name) for name in given], given
    return there, given
