"""Places that are asked for next to places of the data, but not at them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from mrgp.data import Records
from mrgp.kernels.structured import has_white
from mrgp.models import Model
from mrgp.parameters import unwrap
from mrgp.supports import Axis, Support
from mrgp.supports.timing import SAME_PLACE

NEXT_TO, FEW = 1e-3, 200
"""Shares of the extent of the data within which places are next to one another, and how many
places at most are looked at: among the cells of a map some always are."""


def next_to_places(
    model: Model,
    records: Records | None,
    support: Support,
    space: Sequence[int],
    axes: Sequence[Axis | None] | None = None,
) -> str | None:
    """Say which places of a support lie next to places of the data, where that makes a difference.

    What is local to a place (theory 12.2) is known at that very place alone.
    """
    linear = model.linear
    if linear is None or records is None or not len(space):
        return None
    if not any(has_white(kernel) for kernel in unwrap(linear.solver.kernels)):
        return None
    columns = list(space)
    asked = _places(support, columns)
    parts = [_places(record.support, columns) for record in records]
    known = np.unique(np.concatenate(parts), axis=0)
    if not 0 < len(asked) <= FEW or len(known) < 2:
        return None
    extent = float(np.max(np.ptp(known, axis=0)))
    far, _ = KDTree(known).query(asked)
    missed = (far > SAME_PLACE * extent) & (far < NEXT_TO * extent)
    if not missed.any():
        return None
    axis = axes[columns[0]] if axes is not None else None
    unit = f" {axis.unit}" if axis is not None and axis.unit else ""
    return (
        f"{missed.sum()} of {len(asked)} places lie next to places of the data, but not at them"
        f" (the first by {far[np.argmax(missed)]:.2g}{unit}): what is local to a place is known at"
        " the place itself alone. Give coordinates just as the data have them to predict there."
    )


def _places(support: Support, columns: list[int]) -> Any:
    flat = support.pointlike
    if not all(flat[d] for d in columns):
        return np.zeros((0, len(columns)))
    return np.unique(np.asarray(support.centres)[:, columns], axis=0)
