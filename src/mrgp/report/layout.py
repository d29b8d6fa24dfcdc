"""Which inputs a page shows, as a curve, a map and a slider; and the grid it shows them on."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from mrgp.data import Dataset
from mrgp.inference import Fit
from mrgp.io.quantities import restore
from mrgp.io.sides import tensor
from mrgp.plotting.coordinates import Vector, pairs_of_place, with_units
from mrgp.plotting.slices import evenly
from mrgp.supports import (
    Axis,
    Boxes,
    Points,
    Side,
    Support,
    bounds_of,
    boxes,
    points,
    time_column,
)
from mrgp.supports.quadrature import mesh

DEGREES = {"longitude": "°E", "latitude": "°N"}
MOST_CELLS = 2_000_000
MOST_ACROSS, LEAST_ACROSS, MOST_STEPS, CURVE = 60, 12, 24, 400
MARGIN = 0.03
UNEVEN = 8.0
"""How many times longer one side of a map may be before cells need not be square."""


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
        axes = (*(fit.axes or ()), *(None,) * len(names))[: len(names)]
        if len(names) == 1:
            return cls(names, axes, (0,), None, ())
        clock = time_column(names, axes)
        pairs = pairs_of_place(dict(zip(names, axes, strict=True)))
        order = [d for d in range(len(names)) if d != clock]
        if clock is not None and len(names) == 2:
            order.insert(0, clock)
        across = tuple(map(names.index, pairs[0])) if pairs else tuple(order[:2])
        others = [d for d in range(len(names)) if d not in across]
        along = clock if clock in others else next(iter(others), None)
        return cls(names, axes, across, along, tuple(d for d in others if d != along))

    def label(self, d: int) -> str:
        """Return an input's name with its unit, for an axis."""
        axis = self.axes[d]
        if axis is None:
            return self.names[d]
        zone = axis.zone or "UTC"
        return with_units(self.names[d], zone if self.is_time(d) else DEGREES[axis.quantity])

    def is_time(self, d: int) -> bool:
        """Tell whether an input has dates."""
        axis = self.axes[d]
        return axis is not None and axis.quantity == "time"


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
        sides, rows, shape = tensor(support.sides, where)
        several = [layout.names[d] for d in layout.held if shape[d] > 1]
        if several:
            raise ValueError(
                f"{where} varies along {several[0]!r}; a page has a map over two inputs and a"
                " slider for a third. Give the others one value each."
            )
        slider = () if layout.along is None else (layout.along,)
        order = (*layout.held, *slider, *reversed(layout.across))
        index = np.argsort(rows).reshape(shape).transpose(order)
        steps = 1 if layout.along is None else shape[layout.along]
        return cls(support, layout, tuple(sides), index.reshape(steps, -1, shape[layout.across[0]]))

    @property
    def steps(self) -> list[Support]:
        """The places of each step of the slider, row by row."""
        return [self.support[index.ravel()] for index in self.index]

    def middles(self, d: int) -> Vector:
        """Return the middles along an input in plain numbers: degrees, seconds, or as given."""
        return plain(self.sides[d].middle, self.sides[d].axis)

    def shown(self, d: int) -> list[Any]:
        """Return the middles along an input as the page writes them: numbers, or dates."""
        return written(self.sides[d].middle, self.sides[d].axis)


def default_grid(layout: Layout, data: Dataset | None) -> Support:
    """Return a grid over the extent of the data: 60 cells along its longer side, and 24 times.

    Times are those of the first source, evenly chosen where there are more: instants, or windows
    where all of its values have one length. In the numbers of the fit.
    """
    if data is None:
        raise ValueError(
            "write_report: the fit does not keep its data, so that there is no extent to draw a"
            " grid over. Give grid= (--grid on the command line), or the data of the fit as data=."
        )
    low, high = bounds_of(data.supports)
    low, high = np.where(high > low, low, low - 0.5), np.where(high > low, high, high + 0.5)
    first, last = (np.asarray(bound) for bound in data.supports[0].bounds)
    middles = 0.5 * (first + last)[:, : len(layout.names)]
    # What the page holds has one value.
    sides: list[Vector] = [np.atleast_1d(np.median(column)) for column in middles.T]
    if len(layout.across) == 1:
        sides[0] = np.linspace(low[0], high[0], CURVE)
    else:
        across = list(layout.across)
        margin = MARGIN * (high - low)
        counts = _counts((high - low)[across])
        low, high = low - margin, high + margin
        for d, count in zip(across, counts, strict=True):
            sides[d] = low[d] + (np.arange(count) + 0.5) / count * (high[d] - low[d])
    if layout.along is not None:
        # When the source has values: instants, or the middles of windows.
        there = np.unique(np.round(middles[:, layout.along], 9))
        sides[layout.along] = there[evenly(len(there), MOST_STEPS)]
    centres = mesh(*sides)
    lengths = np.zeros(len(layout.names))
    if layout.along is not None and layout.is_time(layout.along):
        lengths[layout.along] = window_of(data.supports[0], layout.along)
    wide = 0.5 * lengths
    made: Points | Boxes = points(centres, inputs=layout.names)
    if wide.any():
        made = boxes(centres - wide, centres + wide, inputs=layout.names)
    return dataclasses.replace(made, axes=layout.axes if any(layout.axes) else None)


def window_of(support: Support, along: int) -> float:
    """Return how long the regions of a support are along an input, or nought where they differ.

    >>> from mrgp import intervals, points
    >>> window_of(intervals([0.0, 1.0], [1.0, 2.0]), 0), window_of(points([[0.0]]), 0)
    (1.0, 0.0)
    """
    lower, upper = (np.asarray(bound)[:, along] for bound in support.bounds)
    longest = float((upper - lower).max())
    return longest if np.allclose(upper - lower, longest, rtol=1e-6, atol=0.0) else 0.0


def _counts(lengths: Float[np.ndarray, " 2"]) -> list[int]:
    """Return how many cells lie along each side, so that cells are square where they can be."""
    if lengths.max() > UNEVEN * lengths.min():
        return [MOST_ACROSS, MOST_ACROSS]
    counts = np.rint(MOST_ACROSS * lengths / lengths.max())
    return [max(int(count), LEAST_ACROSS) for count in counts]


def plain(numbers: Vector, axis: Axis | None) -> Vector:
    """Return numbers of an axis in the units of its quantity: degrees, seconds since 1970."""
    return numbers if axis is None else axis.physical(numbers)


def written(numbers: Vector, axis: Axis | None) -> list[Any]:
    """Return numbers of an axis as a page writes them: dates in their zone, degrees, numbers.

    >>> written(np.array([36.5]), Axis("time", 0.0, 3600.0, "h"))
    ['1970-01-02 12:30']
    """
    found = restore(numbers, axis)
    if axis is not None and axis.quantity == "time":
        whole = all(date.second == 0 and date.microsecond == 0 for date in found)
        return list(found.strftime("%Y-%m-%d %H:%M" if whole else "%Y-%m-%d %H:%M:%S"))
    # A zero has no sign.
    return [float(f"{value:.9g}") + 0.0 for value in found]
