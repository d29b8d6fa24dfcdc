"""What the numbers of an input mean: dates, degrees of longitude and latitude."""

import dataclasses
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

Quantity = Literal["time", "longitude", "latitude"]


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


def same_turn(lon: Any, about: float) -> Float[np.ndarray, "..."]:
    """Return longitudes within half a turn of one of them.

    >>> same_turn([359.5, 0.5], 0.0)
    array([-0.5,  0.5])
    """
    lon = np.asarray(lon, dtype=np.float64)
    return np.asarray(lon - 360.0 * np.round((lon - about) / 360.0))
