"""Which inputs a page shows: one as a curve, two as a map, and one more with a slider."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from mrgp.inference import Fit
from mrgp.io.quantities import restore
from mrgp.io.sides import Side, sides_of, tensor
from mrgp.plotting.coordinates import PAIRS
from mrgp.selection.folds import CLOCKS
from mrgp.supports import Axis, Boxes, Points, Support

DEGREES = {"longitude": "°E", "latitude": "°N"}
MOST_CELLS = 2_000_000


@dataclasses.dataclass(frozen=True)
class Layout:
    """The inputs of a fit without its covariates, and the part that each has on the page.

    `across` are one input or two, `along` is the one of the slider, and `held` have one value.
    """

    names: tuple[str, ...]
    axes: tuple[Axis | None, ...]
    across: tuple[int, ...]
    along: int | None
    held: tuple[int, ...]

    @classmethod
    def of(cls, fit: Fit) -> "Layout":
        """Return the layout of a fit: longitude and latitude as a map, time with a slider."""
        added = {name for field in fit.covariates or () for name in field.names}
        names = tuple(name for name in fit.inputs if name not in added)
        known = fit.axes or (None,) * len(names)
        axes = tuple(known[d] if d < len(known) else None for d in range(len(names)))
        clock = _clock(names, axes)
        if len(names) == 1:
            return cls(names, axes, (0,), None, ())
        across = _pair(names, axes, clock)
        others = [d for d in range(len(names)) if d not in across]
        along = clock if clock in others else next(iter(others), None)
        return cls(names, axes, across, along, tuple(d for d in others if d != along))

    def label(self, d: int) -> str:
        """Return an input's name with its unit, for an axis."""
        axis = self.axes[d]
        if axis is None:
            return self.names[d]
        if axis.quantity == "time":
            return f"{self.names[d]} ({axis.zone or 'UTC'})"
        return f"{self.names[d]} ({DEGREES[axis.quantity]})"

    def is_time(self, d: int) -> bool:
        """Tell whether an input has dates."""
        axis = self.axes[d]
        return axis is not None and axis.quantity == "time"


def _clock(names: tuple[str, ...], axes: tuple[Axis | None, ...]) -> int | None:
    dated = [d for d, axis in enumerate(axes) if axis is not None and axis.quantity == "time"]
    named = [d for d, name in enumerate(names) if name.lower() in CLOCKS]
    return next(iter([*dated, *named]), None)


def _pair(
    names: tuple[str, ...], axes: tuple[Axis | None, ...], clock: int | None
) -> tuple[int, int]:
    """Return the two inputs of a map, the one to the right first."""
    quantities = [axis.quantity if axis else None for axis in axes]
    if "longitude" in quantities and "latitude" in quantities:
        return quantities.index("longitude"), quantities.index("latitude")
    lowered = [name.lower() for name in names]
    for east, north in PAIRS:
        if east in lowered and north in lowered:
            return lowered.index(east), lowered.index(north)
    if len(names) == 2:
        return (clock, 1 - clock) if clock is not None else (0, 1)
    first, second, *_ = (d for d in range(len(names)) if d != clock)
    return first, second


@dataclasses.dataclass(frozen=True)
class Grid:
    """A full grid of places: its sides, and which region of the support each cell is.

    `index` is over the slider's steps, the map's rows, and its columns.
    """

    support: Support
    layout: Layout
    sides: tuple[Side, ...]
    index: Int[np.ndarray, "t r c"]

    @classmethod
    def of(cls, support: Support, layout: Layout) -> "Grid":
        """Return the grid that a support is, or say why it is none."""
        where = "write_report: grid="
        if not isinstance(support, Points | Boxes) or support.dimension != len(layout.names):
            raise ValueError(
                f"{where} takes a full grid of points or cells over {layout.names}; got {support}."
            )
        if len(support) > MOST_CELLS:
            raise ValueError(
                f"{where} has {len(support):,} places; {MOST_CELLS:,} are the most that a page can"
                " show. Step wider."
            )
        sides, rows, shape = tensor(sides_of(support), where)
        several = [layout.names[d] for d in layout.held if shape[d] > 1]
        if several:
            raise ValueError(
                f"{where} varies along {several[0]!r}; a page has a map over two inputs and a"
                " slider for a third. Give the others one value each."
            )
        index = np.empty(len(rows), int)
        index[rows] = np.arange(len(rows))
        order = [*layout.held, *([] if layout.along is None else [layout.along])]
        order += list(reversed(layout.across))
        index = index.reshape(shape).transpose(order)
        steps = 1 if layout.along is None else shape[layout.along]
        return cls(support, layout, tuple(sides), index.reshape(steps, -1, shape[layout.across[0]]))

    @property
    def steps(self) -> int:
        """How many steps the slider has."""
        return self.index.shape[0]

    def middles(self, d: int) -> Float[np.ndarray, " n"]:
        """Return the middles along an input in plain numbers: degrees, seconds, or as given."""
        side = self.sides[d]
        return plain(0.5 * (side.lower + side.upper), side.axis)

    def shown(self, d: int) -> list[Any]:
        """Return the middles along an input as the page writes them: numbers, or dates."""
        side = self.sides[d]
        return written(0.5 * (side.lower + side.upper), side.axis)


def plain(numbers: Float[np.ndarray, " n"], axis: Axis | None) -> Float[np.ndarray, " n"]:
    """Return numbers of an axis in the units of its quantity: degrees, seconds since 1970."""
    return numbers if axis is None else axis.origin + axis.step * numbers


def written(numbers: Float[np.ndarray, " n"], axis: Axis | None) -> list[Any]:
    """Return numbers of an axis as a page writes them: dates in their zone, degrees, numbers.

    >>> written(np.array([36.5]), Axis("time", 0.0, 3600.0, "h"))
    ['1970-01-02 12:30']
    """
    if axis is not None and axis.quantity == "time":
        dates = restore(numbers, axis)
        whole = all(date.second == 0 and date.microsecond == 0 for date in dates)
        return list(dates.strftime("%Y-%m-%d %H:%M" if whole else "%Y-%m-%d %H:%M:%S"))
    return [float(f"{value:.9g}") for value in plain(numbers, axis)]
