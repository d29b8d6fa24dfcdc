"""What the numbers of an input stand for: dates, degrees of longitude and latitude.

Dates are hours (or another unit) since 1970-01-01 UTC; one without a time zone is taken as UTC. A
double resolves hours since 1970 to a fifth of a microsecond; dates come back to the microsecond.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.data.harmony import Axes
from mrgp.supports import Axis, same_turn

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "D": 86400.0}
NANOSECONDS_REACH = 2**63 // 1000
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
DECIMALS = 10
"""Degrees come back to 1e-10, a hundredth of a millimetre: decimal fractions as they were."""


def check_time_unit(unit: Any, where: str) -> None:
    """Refuse a unit of time that is not in the table."""
    if unit not in SECONDS:
        raise ValueError(f"{where}: time_unit= is one of {tuple(SECONDS)}; got {unit!r}.")


def instants(dates: Any, unit: str) -> tuple[Float[np.ndarray, " n"], Axis]:
    """Return dates, a pandas Series or index without gaps, as numbers, and their axis.

    >>> import pandas as pd
    >>> numbers, axis = instants(pd.Series(pd.to_datetime(["1970-01-02 12:30"])), "h")
    >>> numbers, axis.unit, axis.zone
    (array([36.5]), 'h', None)
    """
    import pandas as pd

    index = pd.DatetimeIndex(dates)
    zone = None if index.tz is None else _zone_name(index)
    if index.tz is not None:
        index = index.tz_convert("UTC").tz_localize(None)
    values = index.to_numpy()
    ticks = _TICKS[np.datetime_data(values.dtype)[0]] * int(SECONDS[unit])
    # Whole units and the rest apart: nanoseconds since 1970 have more digits than a double.
    whole, rest = np.divmod(values.astype(np.int64), ticks)
    return whole + rest / ticks, Axis("time", 0.0, SECONDS[unit], unit, zone)


def dates(numbers: Any, axis: Axis) -> Any:
    """Return numbers on an axis of time as a pandas index of dates, in the zone they came in.

    >>> dates([36.5], Axis("time", 0.0, 3600.0, "h", "Europe/Paris"))[0].isoformat()
    '1970-01-02T13:30:00+01:00'
    """
    import pandas as pd

    numbers = np.asarray(numbers, dtype=np.float64)
    whole = np.floor(numbers)
    parts = (whole * axis.step, (numbers - whole) * axis.step, axis.origin)
    micro = sum(np.rint(np.asarray(part) * 1e6).astype(np.int64) for part in parts)
    index = pd.DatetimeIndex(np.asarray(micro).view("datetime64[us]"))
    # Nanoseconds, which every version of pandas and xarray takes, reach from 1677 to 2262.
    if np.all(np.abs(micro) < NANOSECONDS_REACH):
        index = index.as_unit("ns")
    return index if axis.zone is None else index.tz_localize("UTC").tz_convert(axis.zone)


def wall_clock(index: Any, local: bool) -> Any:
    """Return dates without their zone: as UTC, or as clocks there show them."""
    if index.tz is None:
        return index.to_numpy()
    shown = index.tz_localize(None) if local else index.tz_convert("UTC").tz_localize(None)
    if not shown.is_unique and index.is_unique:
        raise ValueError(
            f"The clocks of {index.tz} go back within these dates, so that an hour comes twice. Use"
            " UTC, with local=False."
        )
    return shown.to_numpy()


def _zone_name(index: Any) -> str:
    """Return a name from which pandas can make the zone again, or UTC where there is none."""
    import pandas as pd

    name = str(index.tz)
    try:
        pd.Timestamp(0, tz="UTC").tz_convert(name)
    except (KeyError, ValueError):
        # Zones of other libraries may have no such name, but most are a fixed offset.
        offsets = set(index.strftime("%z"))
        fixed = offsets.pop() if len(offsets) == 1 else "+0000"
        return f"UTC{fixed[:3]}:{fixed[3:5]}" if fixed != "+0000" else "UTC"
    return name


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


def quantities_of(names: Sequence[str], axes: Axes | None) -> dict[str, str | None]:
    """Return what each input stands for, "time", "longitude" or "latitude", where that is known.

    >>> quantities_of(["hour", "depth"], (Axis("time", 0.0, 3600.0, "h"), None))
    {'hour': 'time', 'depth': None}
    """
    pairs = itertools.zip_longest(names, axes or ())
    return {name: None if axis is None else axis.quantity for name, axis in pairs}
