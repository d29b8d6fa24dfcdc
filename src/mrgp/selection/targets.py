"""Which source is predicted, and which of its values lie where others see."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from mrgp.data import Dataset
from mrgp.models.deep import by_size
from mrgp.supports import Support


def target_of(data: Dataset, target: Any = None) -> tuple[str, str]:
    """Return the process to predict: the one named, or the first task's of the finest support."""
    if target is not None:
        return data[tuple(target) if isinstance(target, list) else target].process
    task = data.tasks[0]
    return by_size(data, task)[0], task


def meets(support: Support, other: Support) -> Bool[np.ndarray, " n"]:
    """Tell which regions see what some region of another support sees, by their bounds.

    Points never coincide, and see the same where they are nearer than the spacing of the two.

    >>> import mrgp
    >>> meets(mrgp.points([[0.5], [7.0]]), mrgp.intervals([0.0, 1.0], [1.0, 2.0])).tolist()
    [True, False]
    """
    low, high = (np.asarray(side) for side in support.bounds)
    lower, upper = (np.asarray(side) for side in other.bounds)
    reach = 0.5 * np.maximum(_spacing(low, high), _spacing(lower, upper))
    # Along an input where either has width, the width says what is seen.
    wide: Any = np.median(high - low, 0) + np.median(upper - lower, 0)
    reach = np.where(wide > 0, 0.0, reach)
    return np.array(
        [
            np.any(np.all((lower - reach <= b) & (upper + reach >= a), 1))
            for a, b in zip(low, high, strict=True)
        ],
        bool,
    )


def _spacing(
    lower: Float[np.ndarray, "n d"], upper: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, " d"]:
    """Return how far apart places would be along each input if they filled their bounds evenly."""
    middle = 0.5 * (lower + upper)
    count = len(np.unique(middle, axis=0))
    return np.ptp(middle, axis=0) / count ** (1.0 / middle.shape[1])
