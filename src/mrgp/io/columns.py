"""The columns of a data frame as numbers, dates and windows, each error naming the column."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.config.names import did_you_mean, listed, without_end
from mrgp.io.quantities import check_time_unit, instants
from mrgp.supports import Axis, Side

NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty")
DATES = ("datetime", "datetime64", "date")
CONVERT = " Convert the column, with pandas.to_numeric, or pandas.to_datetime if these are dates."

WHERE = "from_frame"

Numbers = Float[np.ndarray, " n"]


def check_frame(frame: Any, wanted: Iterable[Any]) -> Any:
    """Accept a pandas frame with rows; named levels of its index count as columns."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        hint = " Call its to_pandas() first." if hasattr(frame, "to_pandas") else ""
        raise TypeError(
            f"{WHERE} takes a pandas DataFrame first; got {type(frame).__name__}.{hint}"
        )
    if len(frame) == 0:
        raise ValueError(f"{WHERE}: the frame has no rows. Leave the source out.")
    levels = [n for n in wanted if n in frame.index.names and n not in frame.columns]
    return frame.reset_index(level=levels) if levels else frame


def column_of(frame: Any, name: Any, said: str = "") -> Any:
    """Return a column, or say what there is instead; `said` is where it was named."""
    columns = list(frame.columns)
    found = columns.count(name)
    if found > 1:
        raise ValueError(
            f"{WHERE}: {found} columns are named {name!r}. Rename them, or drop all but one."
        )
    if found == 0:
        raise ValueError(
            f"{WHERE}: there is no column {name!r}{said}.{did_you_mean(str(name), columns)} The"
            f" columns are {listed(map(repr, columns))}."
        )
    return frame[name]


def values(frame: Any, name: Any) -> Numbers:
    """Return a column of numbers, missing ones as NaN."""
    return _numbers(column_of(frame, name))


def _numbers(column: Any) -> Numbers:
    import pandas as pd

    kind = pd.api.types.infer_dtype(column, skipna=True)
    if isinstance(column.dtype, pd.CategoricalDtype):
        raise TypeError(
            f"{WHERE}: column {column.name!r} is categorical, but must be numbers. Use one column"
            " of 0 and 1 for each category (pandas.get_dummies)."
        )
    if pd.api.types.is_complex_dtype(column.dtype) or kind not in NUMBERS:
        raise TypeError(
            f"{WHERE}: column {column.name!r} must be numbers, with NaN for missing; got {kind}"
            f" ({column.dropna().iloc[0]!r} and others)."
            + (CONVERT if kind in ("string", "mixed", "mixed-integer") else "")
        )
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def point(frame: Any, name: Any, unit: str) -> Side:
    """Return a column of numbers or dates as an input at which regions are points."""
    column = column_of(frame, name)
    if is_periods(column):
        raise TypeError(
            f"{WHERE}: column {name!r} holds periods, which are windows, not points. Give it as"
            f" start={name!r}."
        )
    numbers, axis = _coordinate(column, unit)
    return Side(str(name), numbers, numbers, axis)


def window(frame: Any, start: Any, end: Any, unit: str) -> Side:
    """Return two columns, or one of periods, as an input along which regions are windows."""
    first = column_of(frame, start)
    periods = is_periods(first)
    if end is None and not periods:
        raise ValueError(f"{WHERE}: start={start!r} needs end=, the column of where windows end.")
    end = start if end is None else end
    last = column_of(frame, end)
    first = first.dt.start_time if periods else first
    last = (last + 1).dt.start_time if is_periods(last) else last
    if _is_dated(first) != _is_dated(last):
        raise TypeError(
            f"{WHERE}: one of {start!r} and {end!r} holds dates and the other does not."
        )
    (lower, axis), (upper, other) = (_coordinate(column, unit) for column in (first, last))
    if axis is not None and other is not None and axis != other:
        raise ValueError(
            f"{WHERE}: {start!r} is in time zone {axis.zone}, but {end!r} in {other.zone}. Bring"
            " them to one, with .dt.tz_localize or .dt.tz_convert."
        )
    wrong = upper < lower
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{WHERE}: {end!r} is before {start!r} in {wrong.sum()} of {len(wrong)} rows, first in"
            f" row {row} ({first.iloc[row]} to {last.iloc[row]}). Swap them."
        )
    name = without_end(str(start)) or ("time" if axis else str(start))
    return Side(str(start) if periods else name, lower, upper, axis)


def _coordinate(column: Any, unit: str) -> tuple[Numbers, Axis | None]:
    """Return a column of numbers or dates as numbers, with the axis of dates."""
    import pandas as pd

    name = column.name
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        raise TypeError(
            f"{WHERE}: column {name!r} holds durations. Turn them into numbers, as"
            f' frame[{name!r}] / pandas.Timedelta("1h").'
        )
    dated = _is_dated(column)
    numbers = None if dated else _numbers(column)
    gaps = column.isna().to_numpy() if numbers is None else ~np.isfinite(numbers)
    if gaps.any():
        raise ValueError(
            f"{WHERE}: column {name!r} is {'NaT' if dated else 'NaN or infinite'} in {gaps.sum()}"
            f" of {len(gaps)} rows, first in row {np.argmax(gaps)}. A region needs a place: drop"
            f" those rows, as frame.dropna(subset=[{name!r}])."
        )
    if numbers is not None:
        return numbers, None
    check_time_unit(unit, WHERE)
    try:
        return instants(pd.to_datetime(column), unit)
    except ValueError as error:
        raise ValueError(
            f"{WHERE}: the dates of column {name!r} do not go together ({error}). Dates without a"
            " zone count as UTC; bring all to one zone, as"
            f" pandas.to_datetime(frame[{name!r}], utc=True)."
        ) from None


def is_several(names: Any) -> bool:
    """Tell several columns, in a list, an array or an index, from one.

    >>> is_several(np.array(["a", "b"])), is_several("ab")
    (True, False)
    """
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        return False
    return getattr(names, "ndim", 1) > 0


def as_list(names: Any) -> list[Any]:
    """Accept one column or several."""
    if names is None:
        return []
    if not is_several(names):
        return [names]
    return names.tolist() if hasattr(names, "tolist") else list(names)


def order_of(names: Sequence[str], inputs: Any, where: str) -> tuple[list[int], tuple[str, ...]]:
    """Return the order and the names that `inputs=` gives to inputs.

    The names that are there already, in another order, put the inputs into that order; other
    names are given in the order that is there; a mapping renames some.

    >>> order_of(["lon", "lat", "time"], ("time", "lon", "lat"), "from_frame")
    ([2, 0, 1], ('time', 'lon', 'lat'))
    >>> order_of(["lon", "lat"], {"lon": "east"}, "from_frame")
    ([0, 1], ('east', 'lat'))
    """
    given = tuple(names if inputs is None else as_list(inputs))
    if isinstance(inputs, Mapping):
        unknown = [name for name in inputs if name not in names]
        if unknown:
            raise ValueError(
                f"{where}: inputs= renames {unknown[0]!r}, but the inputs are {tuple(names)}."
            )
        given = tuple(str(inputs.get(name, name)) for name in names)
    taken = sorted(name for name in set(given) if given.count(name) > 1)
    if taken or len(given) != len(names):
        twice = f" {taken[0]!r} is given twice." if taken else ""
        raise ValueError(
            f"{where}: each of the {len(names)} inputs needs a name of its own; got {given}.{twice}"
            " Name them with inputs=."
        )
    if sorted(given) == sorted(names) and not isinstance(inputs, Mapping):
        return [list(names).index(name) for name in given], given
    return list(range(len(names))), given


def is_periods(column: Any) -> bool:
    """Tell whether a column holds periods, such as months."""
    return column.dtype.name.startswith("period")


def _is_dated(column: Any) -> bool:
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return True
    return column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) in DATES
