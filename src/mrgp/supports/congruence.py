"""Regions of one shape, which share one variance if a kernel is stationary; nodes at one place."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from mrgp._compiled import filled
from mrgp._types import AnyArray
from mrgp.supports.components import Links, by_appearance
from mrgp.supports.quadrature import DEFAULT_RULE, Rule
from mrgp.supports.support import Support

MOST_SHAPES = 256
TOLERANCE = 1e-9
NUMBERS_AT_A_TIME = 2**22


class Shapes(eqx.Module):
    """A few regions that stand for all others up to a shift: region n has shape `index[n]`.

    >>> from mrgp import intervals
    >>> shapes = congruent(intervals([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]))
    >>> len(shapes.regions), shapes[1:].index
    (1, array([0, 0]))
    """

    regions: Support
    index: Int[AnyArray, " n"]

    def __getitem__(self, rows: Any) -> "Shapes":
        return Shapes(self.regions, self.index[rows])

    def filled(self) -> "Shapes":
        """Return the shapes with the last repeated up to a size for which code is compiled."""
        return Shapes(self.regions[filled(len(self.regions))], self.index)


def congruent(support: Support, most: int = MOST_SHAPES) -> Shapes | None:
    """Find the regions that are shifts of one another, or None where there are too many shapes.

    Coordinates count as equal within 1e-9 of the widest region along their input, and weights
    within 1e-9 of themselves.

    >>> from mrgp import intervals
    >>> congruent(intervals([0.0, 1.0, 2.0, 4.0], [1.0, 2.0, 4.0, 6.0])).index
    array([0, 0, 1, 1])
    """
    if len(support) == 0:
        return None
    codes = np.stack([_codes(part) for part, _ in support.members], 1)
    index, first, _ = by_appearance(_hash(codes))
    if len(first) > min(most, max(1, len(support) // 2)):
        return None
    return Shapes(support[first], index)


def _codes(support: Support) -> Int[np.ndarray, " n"]:
    """Return one number for each shape, worked out for so many rows at a time."""
    lower, upper = (np.asarray(b) for b in support.bounds)
    width = (upper - lower).max(0)
    width = np.where(width > 0, width, 1.0)
    size = max(1, NUMBERS_AT_A_TIME // (support.nodes_per_region * (2 * support.dimension + 2)))
    chunks = (support[slice(start, start + size)] for start in range(0, len(support), size))
    return np.concatenate([_hash(_described(chunk, width)) for chunk in chunks])


def _described(support: Support, width: Float[np.ndarray, " d"]) -> Int[np.ndarray, "n c"]:
    """Return rounded sides, nodes relative to the first that counts, and weights, in a row each."""
    lower, upper, weights = (np.asarray(a) for a in support.atoms()[:3])
    n, used = len(weights), weights != 0
    origin = np.take_along_axis(lower, np.argmax(used, 1)[:, None, None], 1)
    # Padding may lie anywhere: it does not count.
    lengths = [np.where(used[:, :, None], v / width, 0.0) for v in (upper - lower, lower - origin)]
    sizes = np.log(np.where(used, np.abs(weights), 1.0))
    numbers = [*(v.reshape(n, -1) for v in lengths), sizes]
    rounded = [np.round(v / TOLERANCE).astype(np.int64) for v in numbers]
    return np.concatenate([*rounded, np.sign(weights).astype(np.int64)], 1)


def _hash(rows: Int[np.ndarray, "n c"]) -> Int[np.ndarray, " n"]:
    """Return one number for each row of several."""
    # Random odd multipliers modulo 2^64: two of a million shapes agree by chance once in 10,000.
    keys = np.random.default_rng(0).integers(1, 2**62, rows.shape[1]) * 2 + 1
    return (rows * keys).sum(1)


class Places(NamedTuple):
    """Distinct places x, and each support as a matrix A over them: (L f)_n = sum_m A_nm f(x_m)."""

    x: Float[np.ndarray, "m d"]
    rows: tuple[Float[np.ndarray, "n m"], ...]


def shared_places(supports: Sequence[Support], rule: Rule = DEFAULT_RULE) -> Places:
    """Return the distinct nodes of all supports, in the order in which they appear (theory 7.1).

    Nodes are one place where they agree within 1e-9 of the extent of all nodes; those of zero
    weight are none. Boxes become nodes by `rule`.

    >>> from mrgp import nodes, points
    >>> shared_places([points([[0.0], [1.0]]), nodes([[[1.0], [2.0]]])]).rows[1]
    array([[0. , 0.5, 0.5]])
    """
    found = [support.quadrature(rule).atoms() for support in supports]
    weights = [np.asarray(atoms.weights) for atoms in found]
    used = [w != 0 for w in weights]
    pairs = zip(found, used, strict=True)
    x = np.concatenate([np.asarray(atoms.lower)[mask] for atoms, mask in pairs])
    index, first, _ = by_appearance(_labels(x))
    ends = np.cumsum([mask.sum() for mask in used])
    rows = []
    for w, mask, columns in zip(weights, used, np.split(index, ends[:-1]), strict=True):
        matrix = np.zeros((len(w), len(first)))
        np.add.at(matrix, (np.nonzero(mask)[0], columns), w[mask])
        rows.append(matrix)
    return Places(x[first], tuple(rows))


def _labels(x: Float[np.ndarray, "k d"]) -> Int[np.ndarray, " k"]:
    """Number nodes so that those at one place have one number."""
    extent = np.ptp(x, axis=0)
    tree = KDTree(x / np.where(extent > 0, extent, 1.0))
    links = Links(len(x))
    links.add(*tree.query_pairs(TOLERANCE, output_type="ndarray").T)
    return links.labels()
