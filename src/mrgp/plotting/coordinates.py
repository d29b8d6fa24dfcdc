"""Inputs as the user knows them: degrees, dates, plain numbers; and slices of what is not drawn."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from mrgp.supports import Axis, Support

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DAY = 86400.0
EQUAL_UP_TO = 5.0
"""Two plain inputs are drawn to one scale unless one is this many times as long as the other."""

PAIRS = (
    ("lon", "lat"),
    ("longitude", "latitude"),
    ("x", "y"),
    ("east", "north"),
    ("easting", "northing"),
)


class Coordinate(NamedTuple):
    """One input of some regions, from `lower` to `upper`: degrees, days since 1970, or numbers."""

    name: str
    lower: Float[np.ndarray, " n"]
    upper: Float[np.ndarray, " n"]
    axis: Axis | None = None

    @property
    def middle(self) -> Float[np.ndarray, " n"]:
        """The middles of the regions."""
        return 0.5 * (self.lower + self.upper)

    @property
    def ends(self) -> tuple[float, float]:
        """From where to where all regions go."""
        return float(self.lower.min()), float(self.upper.max())

    @property
    def dated(self) -> bool:
        """Whether the numbers are dates."""
        return self.axis is not None and self.axis.quantity == "time"

    @property
    def label(self) -> str:
        """The name with the unit, or the time zone of dates."""
        if self.axis is None:
            return self.name
        return with_units(self.name, self.axis.zone if self.dated else "°")

    @property
    def distinct(self) -> int:
        """How many different places there are."""
        return _count([self])

    def take(self, rows: Any) -> "Coordinate":
        """Return the input of some regions."""
        return self._replace(lower=self.lower[rows], upper=self.upper[rows])

    def words(self, low: float, high: float) -> str:
        """Say a place on this input, or a window."""
        ends = [self._word(end) for end in ((low,) if low == high else (low, high))]
        if len(ends) == 2 and self.dated and ends[0][:10] == ends[1][:10] and ends[0][10:]:
            ends[1] = ends[1][11:]
        return " to ".join(ends)

    def _word(self, value: float) -> str:
        if not self.dated:
            return f"{value:.5g}"
        said = _as_date(value, self.axis).strftime("%Y-%m-%d %H:%M")
        return said.removesuffix(" 00:00")


def with_units(name: str, units: str | None) -> str:
    """Return a name with its units, as labels have it.

    >>> with_units("no2", "ug/m3"), with_units("no2", None)
    ('no2 (ug/m3)', 'no2')
    """
    return f"{name} ({units})" if units else name


def coordinates(support: Support) -> dict[str, Coordinate]:
    """Return the inputs of a support as the user knows them, covariates apart.

    >>> import mrgp
    >>> found = coordinates(mrgp.boxes([[0.0, 1.0]], [[2.0, 1.0]], inputs=("hour", "x")))
    >>> [(c.name, c.middle.tolist(), c.distinct) for c in found.values()]
    [('hour', [1.0], 1), ('x', [1.0], 1)]
    """
    support = laid_out(support)
    lower, upper = (np.asarray(side, dtype=np.float64) for side in support.bounds)
    added = {name for field in support.covariates or () for name in field.names}
    axes = (*(support.axes or ()), *(None,) * support.dimension)
    return {
        name: Coordinate(name, shown(lower[:, d], axis), shown(upper[:, d], axis), axis)
        for d, (name, axis) in enumerate(zip(support.input_names, axes, strict=False))
        if name not in added
    }


def joined(several: Sequence[Coordinate]) -> Coordinate:
    """Return one input of several supports as of one."""
    low, high = (np.concatenate([getattr(c, end) for c in several]) for end in ("lower", "upper"))
    return several[0]._replace(lower=low, upper=high)


def laid_out(support: Support) -> Support:
    """Return the regions that nodes were laid out in, where they are known."""
    origin = getattr(support, "origin", None)
    if origin is None:
        return support
    regions, count = origin.regions, origin.regions.dimension
    axes = None if support.axes is None else support.axes[:count]
    return dataclasses.replace(regions, inputs=support.input_names[:count], axes=axes)


def shown(numbers: Any, axis: Axis | None) -> Float[np.ndarray, "..."]:
    """Return numbers of an axis in degrees, or in days since 1970, as pictures count dates.

    >>> shown([36.0], Axis("time", 0.0, 3600.0, "h"))
    array([1.5])
    """
    numbers = np.asarray(numbers, dtype=np.float64)
    if axis is None:
        return numbers
    if axis.quantity == "time":
        # Origin and step apart: their sum has more digits than a double holds.
        return axis.origin / DAY + numbers * (axis.step / DAY)
    return axis.origin + axis.step * numbers


def _as_date(days: float, axis: Axis | None) -> Any:
    import pandas as pd

    date = pd.Timestamp(days, unit="D", tz="UTC").round("s")
    return date if axis is None or axis.zone is None else date.tz_convert(axis.zone)


def set_axis(axes: "Axes", side: str, coordinate: Coordinate) -> None:
    """Label the x or y axis of a picture, with dates in their zone where there are any."""
    which = getattr(axes, f"{side}axis")
    which.set_label_text(coordinate.label)
    if not coordinate.dated:
        return
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    zone = _as_date(0.0, coordinate.axis).tzinfo
    locator = AutoDateLocator(tz=zone, minticks=3, maxticks=8)
    which.set_major_locator(locator)
    which.set_major_formatter(ConciseDateFormatter(locator, tz=zone))


def aspect_of(x: Coordinate, y: Coordinate) -> Any:
    """Return how much longer a unit of y is drawn than one of x: for degrees, as on the ground.

    Dates, and plain inputs of very different extent, have no common scale.
    """
    if x.dated or y.dated:
        return "auto"
    if x.axis is not None and y.axis is not None:
        # A step is one kilometre along both.
        return x.axis.step / y.axis.step
    if (x.name.lower(), y.name.lower()) in PAIRS[:2] and np.all(np.abs(y.middle) < 89):
        return float(1 / np.cos(np.radians(np.mean(y.ends))))
    short, long = sorted(float(np.ptp(c.ends)) for c in (x, y))
    return "auto" if long > EQUAL_UP_TO * short > 0 else 1.0


def across_of(found: dict[str, Coordinate]) -> tuple[str, str]:
    """Return the two inputs of a map: longitude and latitude, or the two that vary most.

    A pair of place of which neither varies is none where two other inputs do: a section at one site
    is drawn over depth and time.
    """
    varying = [name for name, c in found.items() if c.distinct > 1]
    for pair in pairs_of_place({name: c.axis for name, c in found.items()}):
        if len(varying) < 2 or set(pair) & set(varying):
            return pair
    most = sorted(found, key=lambda name: -found[name].distinct)[:2]
    first, second = (name for name in found if name in most)
    return first, second


def pairs_of_place(inputs: Mapping[str, Axis | None]) -> list[tuple[str, str]]:
    """Return pairs of inputs that are places, by their axes or names, eastward first.

    >>> pairs_of_place({"Y": None, "depth": None, "X": None})
    [('X', 'Y')]
    """
    quantity = {axis.quantity: name for name, axis in inputs.items() if axis is not None}
    lowered = {name.lower(): name for name in inputs}
    return [
        (names[east], names[north])
        for names, pairs in ((quantity, PAIRS[1:2]), (lowered, PAIRS))
        for east, north in pairs
        if east in names and north in names
    ]


class Slice(NamedTuple):
    """A place, or a window, along each input that a picture does not show.

    `spans` are windows of everything: of inputs that cannot be cut, as along the way of a sensor
    that moves.
    """

    inputs: tuple[Coordinate, ...] = ()
    spans: tuple[Coordinate, ...] = ()

    @property
    def words(self) -> str:
        """The place in words."""
        said = []
        for c in (*self.inputs, *self.spans):
            place = c.words(*c.ends)
            said.append(place if c.dated else f"{c.name} {place}")
        return ", ".join(said)

    def rows(self, support: Support, *, exact: bool = False) -> np.ndarray:
        """Tell which regions of a support meet the slice or, if `exact`, are those of the slice.

        Windows may overlap, as running means do: the support that a slice was taken from is asked
        for exactly its regions.
        """
        found, belongs = coordinates(support), _same if exact else _meet
        chosen = np.ones(len(support), bool)
        for several, test in ((self.inputs, belongs), (self.spans, _touch)):
            for place in several:
                if place.name in found:
                    chosen &= test(found[place.name], *place.ends)
        return chosen


EVERYWHERE = Slice()
"""The slice that holds all regions."""


def _near(low: float, high: float) -> float:
    return 1e-9 * max(1.0, abs(low), abs(high))


def _same(c: Coordinate, low: float, high: float) -> np.ndarray:
    """Tell which regions go from one end of a window to the other."""
    near = _near(low, high)
    return (np.abs(c.lower - low) <= near) & (np.abs(c.upper - high) <= near)


def _touch(c: Coordinate, low: float, high: float) -> np.ndarray:
    """Tell which regions meet a window, its ends included."""
    near = _near(low, high)
    return (c.upper >= low - near) & (c.lower <= high + near)


def _meet(c: Coordinate, low: float, high: float) -> np.ndarray:
    """Tell which regions meet a window; windows that only touch do not."""
    near = _near(low, high)
    # Where two meet, the later start lies in both; the end of a window lies outside.
    start = np.maximum(c.lower, low)

    def holds(lower: Any, upper: Any) -> np.ndarray:
        return np.where(upper - lower > near, start < upper - near, start <= upper + near)

    return holds(c.lower, c.upper) & holds(low, high)


def slices_of(support: Support, shown_inputs: Sequence[str], most: int) -> list[Slice]:
    """Return what a support has along the inputs that are not shown: few, evenly chosen.

    An input that is given by the place, as elevation is, makes no slices of its own. That is seen
    where places repeat; where they do not, and for dates, the slice says from where to where the
    input goes.
    """
    found = coordinates(support)
    places = [found[name] for name in shown_inputs]
    count = _count(places)
    cut, spans = [], []
    for c in (c for name, c in found.items() if name not in shown_inputs):
        if c.distinct == 1 or _count([*places, c]) > count:
            cut.append(c)
        elif c.dated or count == len(support):
            low, high = c.ends
            spans.append(c._replace(lower=np.array([low]), upper=np.array([high])))
    if not cut:
        return [Slice((), tuple(spans))]
    _, first = np.unique(cells_of(cut), axis=0, return_index=True)
    chosen = first[evenly(len(first), most)]
    return [Slice(tuple(c.take([row]) for c in cut), tuple(spans)) for row in chosen]


def cells_of(several: Sequence[Coordinate]) -> Float[np.ndarray, "n _"]:
    """Return the ends of regions along some inputs, row by row, equal where regions are."""
    return np.column_stack([side for c in several for side in (c.lower, c.upper)]).round(9)


def _count(several: Sequence[Coordinate]) -> int:
    return len(np.unique(cells_of(several), axis=0))


def evenly(count: int, most: int) -> np.ndarray:
    """Return at most so many of the numbers below a count, evenly chosen; one is the middle.

    >>> evenly(10, 4), evenly(10, 1)
    (array([0, 3, 6, 9]), array([5]))
    """
    if most == 1:
        return np.array([count // 2])
    return np.unique(np.linspace(0, count - 1, most).round().astype(int))
