"""Where a region lies, in words."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from mrgp.supports.axes import Axis
from mrgp.supports.support import Support


def place_in_words(support: Support, row: int, columns: Sequence[int] | None = None) -> str:
    """Return the centre of a region by the names of its inputs, dates and degrees as such.

    `columns` are those to name, all by default.

    >>> import mrgp
    >>> place_in_words(mrgp.intervals([0.0], [2.0], inputs="day"), 0)
    'day 1'
    """
    chosen = list(range(support.dimension) if columns is None else columns)
    return in_words(support, support.centres[row][chosen], chosen)


def in_words(support: Support, x: Float[np.ndarray, " c"], columns: Sequence[int]) -> str:
    """Return numbers of some inputs of a support by their names, dates and degrees as such.

    >>> import mrgp
    >>> in_words(mrgp.points([[0.0, 1.0]], inputs=("day", "x")), np.array([7.0]), [1])
    'x 7'
    """
    names, axes = support.input_names, support.input_axes
    pairs = zip(columns, x, strict=True)
    return ", ".join(f"{names[d]} {_in_words(value, axes[d])}" for d, value in pairs)


def _in_words(x: float, axis: Axis | None) -> str:
    if axis is None:
        return f"{x:.6g}"
    value = axis.physical(x)
    if axis.quantity == "time":
        return str(np.datetime64(int(np.rint(value)), "s")) + " UTC"
    return f"{value:.5f}"
