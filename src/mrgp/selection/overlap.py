"""Which regions of a source see what those of another see."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from mrgp.selection.sightings import covariate_names
from mrgp.supports import Support

Corners = Float[np.ndarray, "n d"]


def meets(support: Support, other: Support) -> Bool[np.ndarray, " n"]:
    """Tell which regions see what some region of another support sees, by their bounds.

    Points never coincide, and see the same where they are nearer than the spacing of the two.

    >>> import mrgp
    >>> meets(mrgp.points([[0.5], [7.0]]), mrgp.intervals([0.0, 1.0], [1.0, 2.0])).tolist()
    [True, False]
    """
    # A source without covariates has none of their values, and sees the same places.
    known = covariate_names(support)
    columns = [d for d, name in enumerate(support.input_names) if name not in known]
    low, high = (np.asarray(side)[:, columns] for side in support.bounds)
    lower, upper = (np.asarray(side)[:, columns] for side in other.bounds)
    reach = 0.5 * np.maximum(_spacing(low, high), _spacing(lower, upper))
    # Along an input where either has width, the width says what is seen.
    wide: Any = np.median(high - low, 0) + np.median(upper - lower, 0)
    reach = np.where(wide > 0, 0.0, reach)
    sides = zip(low - reach, high + reach, strict=True)
    return np.array([np.all((lower <= b) & (upper >= a), 1).any() for a, b in sides], bool)


def _spacing(lower: Corners, upper: Corners) -> Float[np.ndarray, " d"]:
    """Return how far apart places would be along each input if they filled their bounds evenly."""
    middle = 0.5 * (lower + upper)
    count = len(np.unique(middle, axis=0))
    return np.ptp(middle, axis=0) / count ** (1.0 / middle.shape[1])
