"""The places that the nodes of several supports have in common (theory 7.1)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from mrgp.supports.components import Links, by_appearance
from mrgp.supports.quadrature import DEFAULT_RULE, Rule
from mrgp.supports.support import Support

TOLERANCE = 1e-9


class Places(NamedTuple):
    """Distinct places x, and each support as a matrix A over them: (L f)_n = sum_m A_nm f(x_m)."""

    x: Float[np.ndarray, "m d"]
    rows: tuple[Float[np.ndarray, "n m"], ...]


def shared_places(supports: Sequence[Support], rule: Rule = DEFAULT_RULE) -> Places:
    """Return the distinct nodes of all supports, in the order in which they appear.

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
