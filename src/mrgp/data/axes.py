"""One set of axes for supports that come with dates or degrees."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.supports import Axis, Boxes, Grid, Product, Support

Axes = tuple[Axis | None, ...]
Numbers = Float[np.ndarray, " d"]


def common_axes(supports: Sequence[Support]) -> Axes | None:
    """Return, input by input, the first axis that any of the supports knows."""
    known = [s.axes for s in supports if s.axes is not None]
    if not known:
        return None
    return tuple(next(filter(None, of_input), None) for of_input in zip(*known, strict=True))


def harmonise(support: Support, axes: Axes | None, label: str = "the support") -> Support:
    """Write a support in the numbers of other axes: days as hours, kilometres about one centre.

    Inputs without an axis of their own are taken to be in the numbers wanted. Boxes stay boxes.
    A total is an integral over the inputs, so that its measure is rewritten too.

    >>> import mrgp
    >>> hours, days = Axis("time", 0.0, 3600.0, "h"), Axis("time", 0.0, 86400.0, "D")
    >>> today = dataclasses.replace(mrgp.intervals([1.0], [2.0], inputs="time"), axes=(days,))
    >>> harmonise(today, (hours,))
    Boxes(1 mean: time 24 to 48, width 24)
    """
    if support.axes == axes:
        return support
    own = support.axes or (None,) * support.dimension
    axes = axes or (None,) * support.dimension
    scale, offset = np.ones(support.dimension), np.zeros(support.dimension)
    for d, (mine, wanted) in enumerate(zip(own, axes, strict=True)):
        if mine is None:
            continue
        if wanted is None or mine.quantity != wanted.quantity:
            expected = "plain numbers" if wanted is None else wanted.quantity
            raise ValueError(
                f"{label}: the input {support.input_names[d]!r} is {mine.quantity}, but {expected}"
                " in the data before. Read all of them with from_frame or from_grid, and give the"
                " inputs in one order."
            )
        scale[d], offset[d] = wanted.from_axis(_nearest_turn(mine, wanted))
    if np.any(scale != 1) or np.any(offset != 0):
        support = _moved(_measured(support, scale), scale, offset)
    return dataclasses.replace(support, axes=axes if any(axes) else None)


def describe(axis: Axis) -> str:
    """Say what the numbers of an axis are.

    >>> describe(Axis("time", 0.0, 3600.0, "h"))
    'h since 1970-01-01 UTC'
    """
    if axis.quantity == "time":
        since = np.datetime64(round(axis.origin * 1e6), "us").astype("datetime64[s]")
        return f"{axis.unit} since {str(since).removesuffix('T00:00:00')} UTC"
    return f"{axis.unit} from {axis.quantity} {axis.origin:.6g}"


def _nearest_turn(axis: Axis, other: Axis) -> Axis:
    """Count longitudes from the same side of the date line as another axis does."""
    if axis.quantity != "longitude":
        return axis
    turns = round((axis.origin - other.origin) / 360)
    return dataclasses.replace(axis, origin=axis.origin - 360.0 * turns) if turns else axis


def _moved(support: Support, scale: Numbers, offset: Numbers) -> Support:
    """Write a support as scale * x + offset; polygons take their outlines along.

    Densities that are functions of the numbers would no longer fit such outlines.
    """
    if isinstance(support, Product):
        pairs = zip(support.parts, support.columns, strict=True)
        parts = (_moved(part, scale[list(c)], offset[list(c)]) for part, c in pairs)
        return dataclasses.replace(support, parts=tuple(parts))
    moved = support.affine(scale, offset)
    outlines = getattr(support, "outlines", None)
    if outlines is None or not all(isinstance(f.source, Grid) for f in outlines.densities):
        return moved
    import shapely

    shapes = shapely.transform(outlines.shapes, lambda x: scale * x + offset)
    return dataclasses.replace(moved, outlines=dataclasses.replace(outlines, shapes=shapes))


def _measured(support: Support, scale: Numbers) -> Support:
    """Write the measure of totals in new units: a day's integral is 24 times larger in hours."""
    if support.kind != "sum":
        return support
    if isinstance(support, Product):
        pairs = zip(support.parts, support.columns, strict=True)
        parts = tuple(_measured(part, scale[list(columns)]) for part, columns in pairs)
        return dataclasses.replace(support, parts=parts)
    if isinstance(support, Boxes):
        lower, upper = support.bounds
        factor = np.where(np.asarray(upper > lower), scale, 1.0).prod(1)
        return dataclasses.replace(support, weights=support.weights * factor)
    weights: Any = getattr(support, "weights", None)
    factor = float(scale[list(support.solid)].prod())
    return support if factor == 1 else dataclasses.replace(support, weights=weights * factor)
