"""Inputs as the user knows them: degrees, dates, plain numbers."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.plotting.panels import Axes
from mrgp.supports import Axis, Side, Support

Vector = Float[np.ndarray, " n"]
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


class Coordinate(Side):
    """One input of some regions, from `lower` to `upper`: degrees, days since 1970, or numbers."""

    @property
    def ends(self) -> tuple[float, float]:
        """From where to where all regions go."""
        return float(self.lower.min()), float(self.upper.max())

    @property
    def dated(self) -> bool:
        """Whether the numbers are dates."""
        return self.quantity == "time"

    @property
    def label(self) -> str:
        """The name with the unit, or the time zone of dates."""
        if self.axis is None:
            return self.name
        return with_units(self.name, self.axis.zone if self.dated else "°")

    @property
    def distinct(self) -> int:
        """How many different places there are."""
        return count_of([self])

    def words(self, low: float, high: float) -> str:
        """Say a place on this input, or a window."""
        ends = [self._word(end) for end in ((low,) if low == high else (low, high))]
        if len(ends) == 2 and self.dated and ends[0][:10] == ends[1][:10] and ends[0][10:]:
            ends[1] = ends[1][11:]
        return " to ".join(ends)

    def _word(self, value: float) -> str:
        if not self.dated:
            return f"{value:.5g}"
        return self._date(value).strftime("%Y-%m-%d %H:%M").removesuffix(" 00:00")

    def _date(self, days: float) -> Any:
        import pandas as pd

        zone = "UTC" if self.axis is None or self.axis.zone is None else self.axis.zone
        return pd.Timestamp(days, unit="D", tz="UTC").round("s").tz_convert(zone)

    @staticmethod
    def join(several: "Sequence[Coordinate]") -> "Coordinate":
        """Return one input of several supports as of one."""
        lower, upper = [c.lower for c in several], [c.upper for c in several]
        return several[0]._replace(lower=np.concatenate(lower), upper=np.concatenate(upper))

    def label_axis(self, axes: Axes, side: str) -> None:
        """Label the x or y axis of a picture, with dates in their zone where there are any."""
        axis = getattr(axes, f"{side}axis")
        axis.set_label_text(self.label)
        if not self.dated:
            return
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        zone = self._date(0.0).tzinfo
        locator = AutoDateLocator(tz=zone, minticks=3, maxticks=8)
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))

    def aspect(self, y: "Coordinate") -> Any:
        """Return how much longer a unit of y is drawn than one of this: degrees as on the ground.

        Dates, and plain inputs of very different extent, have no common scale.
        """
        if self.dated or y.dated:
            return "auto"
        if self.axis is not None and y.axis is not None:
            # A step is one kilometre along both.
            return self.axis.step / y.axis.step
        if (self.name.lower(), y.name.lower()) in PAIRS[:2] and np.all(np.abs(y.middle) < 89):
            return float(1 / np.cos(np.radians(np.mean(y.ends))))
        short, long = sorted(float(np.ptp(c.ends)) for c in (self, y))
        return "auto" if long > EQUAL_UP_TO * short > 0 else 1.0


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
    added = {name for field in support.covariates or () for name in field.names}
    return {
        name: Coordinate(name, shown(lower, axis), shown(upper, axis), axis)
        for name, lower, upper, axis in support.sides
        if name not in added
    }


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
    # Origin and step apart: their sum has more digits than a double holds.
    unit = DAY if axis.quantity == "time" else 1.0
    return axis.origin / unit + numbers * (axis.step / unit)


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


def cells_of(several: Sequence[Coordinate]) -> Float[np.ndarray, "n _"]:
    """Return the ends of regions along some inputs, row by row, equal where regions are."""
    return np.column_stack([side for c in several for side in (c.lower, c.upper)]).round(9)


def count_of(several: Sequence[Coordinate]) -> int:
    """Return how many different regions there are over some inputs."""
    return len(np.unique(cells_of(several), axis=0))
