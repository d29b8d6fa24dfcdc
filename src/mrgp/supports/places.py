"""Where a region lies, in words."""

from collections.abc import Sequence

import numpy as np

from mrgp.supports.axes import Axis
from mrgp.supports.support import Support


def place_in_words(support: Support, row: int, columns: Sequence[int] | None = None) -> str:
    """Return the centre of a region by the names of its inputs, dates and degrees as such.

    `columns` are those to name, all by default.

    >>> import mrgp
    >>> place_in_words(mrgp.intervals([0.0], [2.0], inputs="day"), 0)
    'day 1'
    """
    named = list(zip(support.input_names, support.centres[row], support.input_axes, strict=True))
    chosen = named if columns is None else [named[column] for column in columns]
    return ", ".join(f"{name} {_in_words(x, axis)}" for name, x, axis in chosen)


def _in_words(x: float, axis: Axis | None) -> str:
    if axis is None:
        return f"{x:.6g}"
    value = axis.physical(x)
    if axis.quantity == "time":
        return str(np.datetime64(int(np.rint(value)), "s")) + " UTC"
    return f"{value:.5f}"
