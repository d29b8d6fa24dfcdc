"""Numbers as users give them."""

from typing import Any

import numpy as np
from jaxtyping import Float


def as_values(values: Any, name: str) -> Float[np.ndarray, "..."]:
    """Return a float64 copy of values, masked ones as NaN, or say that they are not numbers.

    >>> as_values([1, None, 2.5], "y")
    array([1. , nan, 2.5])
    """
    if np.ma.isMaskedArray(values):
        values = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
    array = np.asarray(values)
    if array.dtype.kind == "O":
        # Python numbers beside None, as database drivers give them.
        array = np.array([np.nan if v is None else v for v in array.ravel()]).reshape(array.shape)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, with NaN for missing; got {array.dtype}.")
    return np.array(array, dtype=np.float64)
