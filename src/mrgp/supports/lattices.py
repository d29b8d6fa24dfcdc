"""Boxes whose sides repeat, as those of a grid do: the few intervals there are along each input."""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from mrgp._compiled import filled
from mrgp._types import AnyArray
from mrgp.supports.support import Boxes, Support

FEWEST = 16
SAVING = 4


class Lattice(eqx.Module):
    """The intervals along each input, from `lower` to `upper`, and which of them each box has.

    A mean over pairs of boxes that is a product over the inputs is found for pairs of intervals.
    Inputs with fewer intervals than others repeat the last.

    >>> from mrgp import boxes
    >>> corners = [[float(i), float(j)] for i in range(8) for j in range(4)]
    >>> lattice = lattice_of(boxes(corners, [[i + 1, j + 1] for i, j in corners]))
    >>> lattice.lower.shape, lattice[:5].index.tolist()
    ((2, 8), [[0, 0, 0, 0, 1], [0, 1, 2, 3, 0]])
    """

    lower: Float[AnyArray, "d u"]
    upper: Float[AnyArray, "d u"]
    index: Int[AnyArray, "d n"]

    def __getitem__(self, rows: Any) -> "Lattice":
        return Lattice(self.lower, self.upper, self.index[:, rows])

    def filled(self) -> "Lattice":
        """Return the lattice with intervals repeated up to a size for which code is compiled."""
        rows = filled(self.lower.shape[1])
        return Lattice(self.lower[:, rows], self.upper[:, rows], self.index)


def lattice_of(support: Support) -> Lattice | None:
    """Return the intervals that boxes are made of, or None where that would save little.

    >>> from mrgp import boxes, points
    >>> lattice_of(points([[0.0], [1.0]])) is None
    True
    """
    if not isinstance(support, Boxes) or len(support) < FEWEST:
        return None
    lower, upper = (np.asarray(bound) for bound in support.bounds)
    found = [
        np.unique(np.stack(ends, 1), axis=0, return_inverse=True)
        for ends in zip(lower.T, upper.T, strict=True)
    ]
    most = max(len(intervals) for intervals, _ in found)
    if SAVING * most > len(support):
        return None
    every = [intervals[np.minimum(np.arange(most), len(intervals) - 1)] for intervals, _ in found]
    ends = np.stack(every)
    return Lattice(ends[..., 0], ends[..., 1], np.stack([index.ravel() for _, index in found]))
