"""Places that are asked for at places of the data, or next to them, but not at them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from mrgp.data import Records
from mrgp.kernels.structured import has_white
from mrgp.models import Model
from mrgp.parameters import unwrap
from mrgp.supports import Axis, Products, Support
from mrgp.supports.timing import SAME_PLACE

NEXT_TO, FEW = 1e-3, 200
"""Shares of the extent of the data within which places are next to one another, and how many
places at most are looked at: among the cells of a map some always are."""


def at_places(
    model: Model, records: Records | None, support: Support, space: Sequence[int]
) -> Support:
    """Return a support at the very places of the data where it differs from them by rounding.

    What is local to a place (theory 12.2) is known at that very place alone, and the same text of a
    coordinate may come to other last digits in another table.
    """
    known = _known(model, records, list(space))
    if known is None:
        return support
    near = SAME_PLACE * float(np.max(np.ptp(known, axis=0)))
    flat = support.pointlike
    levels = {d: np.unique(column) for d, column in zip(space, known.T, strict=True) if flat[d]}
    return _snapped(support, levels, near)


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
    columns = list(space)
    known = _known(model, records, columns)
    if known is None:
        return None
    asked = _places(support, columns)
    if not 0 < len(asked) <= FEW:
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


def _known(model: Model, records: Records | None, columns: list[int]) -> Any:
    """Return the places of the data; None where nothing is local to them, or they are too few."""
    linear = model.linear
    if linear is None or records is None or not columns:
        return None
    if not any(has_white(kernel) for kernel in unwrap(linear.solver.kernels)):
        return None
    parts = [_places(record.support, columns) for record in records]
    known = np.unique(np.concatenate(parts), axis=0)
    return known if len(known) > 1 else None


def _snapped(support: Support, levels: Mapping[int, np.ndarray], near: float) -> Support:
    """Return a support whose coordinates are at the levels of their input that they are near."""
    if isinstance(support, Products):
        parts = []
        for part, columns in support.members:
            local = {i: levels[d] for i, d in enumerate(columns) if d in levels}
            parts.append(_snapped(part, local, near))
        return dataclasses.replace(support, parts=tuple(parts))
    moved = {}
    for name in ("x", "lower", "upper"):
        if levels and hasattr(support, name):
            x = np.array(getattr(support, name))
            for d, known in levels.items():
                x[..., d] = _nearest(x[..., d], known, near)
            moved[name] = x
    return dataclasses.replace(support, **moved)


def _nearest(x: np.ndarray, known: np.ndarray, near: float) -> np.ndarray:
    """Return numbers, those near one that is known in its place."""
    after = np.clip(np.searchsorted(known, x), 1, len(known) - 1) if len(known) > 1 else 0
    before = np.maximum(after - 1, 0)
    closest = np.where(np.abs(known[before] - x) < np.abs(known[after] - x), before, after)
    return np.where(np.abs(known[closest] - x) <= near, known[closest], x)


def _places(support: Support, columns: list[int]) -> Any:
    flat = support.pointlike
    if not all(flat[d] for d in columns):
        return np.zeros((0, len(columns)))
    return np.unique(np.asarray(support.centres)[:, columns], axis=0)
