"""What the numbers of an input mean: dates, degrees of longitude and latitude."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float

Quantity = Literal["time", "longitude", "latitude"]
Ends = Float[np.ndarray, " n"]
S = TypeVar("S", bound="Side")


@dataclasses.dataclass(frozen=True)
class Axis:
    """A number x on this axis stands for origin + step * x in the units of the quantity.

    Times are seconds since 1970-01-01 UTC; longitudes and latitudes are degrees. `unit` is the
    name of one step ("h", "km"), and `zone` the time zone in which dates are shown.

    >>> hours, days = Axis("time", 0.0, 3600.0, "h"), Axis("time", 86400.0, 86400.0, "D")
    >>> days.from_axis(hours)
    (0.041666666666666664, -1.0)
    >>> days.show(0.5), Axis("longitude", -0.1, 0.01, "km").show(3.0)
    ('1970-01-02T12:00', '-0.07000')
    """

    quantity: Quantity
    origin: float
    step: float
    unit: str
    zone: str | None = None

    def from_axis(self, other: "Axis") -> tuple[float, float]:
        """Return (scale, offset) such that scale * x + offset is on this axis for x on the other.

        Axes of one quantity differ by an affine map, so that boxes stay boxes.
        """
        if other.quantity != self.quantity:
            raise ValueError(
                f"An axis of {other.quantity} cannot be written as one of {self.quantity}."
            )
        return other.step / self.step, (other.origin - self.origin) / self.step

    def physical(self, x: Any) -> Any:
        """Return what numbers stand for: seconds since 1970, or degrees."""
        return self.origin + self.step * x

    def show(self, x: float) -> str:
        """Return what a number stands for, as one would type it: a date in UTC, or degrees."""
        there = self.physical(float(x))
        if self.quantity == "time":
            return str(np.datetime64(round(there), "s")).removesuffix(":00")
        return f"{there:.5f}"


class Side(NamedTuple):
    """One input of a set of regions, from `lower` to `upper`, on an axis or in plain numbers.

    >>> side = Side("hour", np.array([0.0, 1.0]), np.array([1.0, 4.0]))
    >>> str(side), side.take([1]).middle
    ('hour 0 to 4, widths 1 to 3', array([2.5]))
    """

    name: str
    lower: Ends
    upper: Ends
    axis: Axis | None = None

    @property
    def flat(self) -> bool:
        """Whether the regions are points along this input."""
        return np.array_equal(self.lower, self.upper)

    @property
    def middle(self) -> Ends:
        """The middles of the regions."""
        return 0.5 * (self.lower + self.upper)

    @property
    def quantity(self) -> Quantity | None:
        """What the numbers stand for, where that is known."""
        return None if self.axis is None else self.axis.quantity

    def take(self: S, rows: Any) -> S:
        """Return the input of some regions."""
        return self._replace(lower=self.lower[rows], upper=self.upper[rows])

    def __str__(self) -> str:
        ends = (float(np.min(self.lower)), float(np.max(self.upper)))
        first, last = (f"{end:.6g}" if self.axis is None else self.axis.show(end) for end in ends)
        text, width = f"{self.name} {first} to {last}", self.upper - self.lower
        if np.max(width) > 0:
            least, most = f"{np.min(width):.3g}", f"{np.max(width):.3g}"
            text += f", width {least}" if least == most else f", widths {least} to {most}"
            text += "" if self.axis is None else f" {self.axis.unit}"
        return text


TIMES = ("time", "t", "date", "datetime", "timestamp", "hour", "day", "week", "month", "year")


def time_column(names: Sequence[str], axes: Sequence[Axis | None] | None = None) -> int | None:
    """Return the input that is time: one of dates, or named so, or the only one there is.

    >>> time_column(("lon", "lat", "Hours")), time_column(("x1",)), time_column(("x1", "x2"))
    (2, 0, None)
    """
    dated = [d for d, axis in enumerate(axes or ()) if axis is not None and axis.quantity == "time"]
    named = [d for d, name in enumerate(names) if name.lower().removesuffix("s") in TIMES]
    found = dated or named
    if len(found) == 1:
        return found[0]
    return 0 if len(names) == 1 else None


def same_turn(lon: Any, about: float) -> Float[np.ndarray, "..."]:
    """Return longitudes within half a turn of one of them.

    >>> same_turn([359.5, 0.5], 0.0)
    array([-0.5,  0.5])
    """
    lon = np.asarray(lon, dtype=np.float64)
    return np.asarray(lon - 360.0 * np.round((lon - about) / 360.0))
