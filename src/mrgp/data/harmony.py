"""One set of axes for supports that come with dates or degrees."""

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from mrgp.supports import Axis, Nodes, Polygons, Products, Support, same_turn

NARROW = 5.0
"""Degrees up to which local kilometres need no word."""

WIDEST = 60.0
NEAREST_POLE = 80.0
MOST_OFF = 0.25
"""How far off distances from west to east may be, as a share, at the edges of an area."""

LOCAL = (
    f"Kilometres about the middle serve where distances are off by {MOST_OFF:.0%} at most, over"
    f" {WIDEST:g} degrees of longitude, and up to {NEAREST_POLE:g} degrees from the equator."
    " Project the data to a metric CRS that suits them, the same for all sources, and pass the"
    " projected coordinates with crs=False; or choose a smaller area"
)
_ROUNDING = 1e-9

Axes = tuple[Axis | None, ...]
Numbers = Float[np.ndarray, " d"]


def common_axes(supports: Sequence[Support]) -> Axes | None:
    """Return, input by input, the first axis that any of the supports knows.

    >>> import mrgp
    >>> hours, plain = Axis("time", 0.0, 3600.0, "h"), mrgp.points([[1.0]])
    >>> common_axes([plain, dataclasses.replace(plain, axes=(hours,))]) == (hours,)
    True
    """
    known = [s.axes for s in supports if s.axes is not None]
    if not known:
        return None
    return tuple(next(filter(None, of_input), None) for of_input in zip(*known, strict=True))


def harmonise(support: Support, axes: Axes | None, label: str = "the support") -> Support:
    """Write a support in the numbers of other axes: days as hours, kilometres about one centre.

    Inputs without an axis of their own are taken to be in the numbers wanted. Boxes stay boxes.
    A total is an integral over the inputs, so that its measure is rewritten too. Places too far
    from the origin of local kilometres are refused.

    >>> import mrgp
    >>> hours, days = Axis("time", 0.0, 3600.0, "h"), Axis("time", 0.0, 86400.0, "D")
    >>> today = dataclasses.replace(mrgp.intervals([1.0], [2.0], inputs="time"), axes=(days,))
    >>> harmonise(today, (hours,))
    Boxes(1 mean: time 1970-01-02T00:00 to 1970-01-03T00:00, width 24 h)
    """
    if support.axes == axes:
        return support
    axes = axes or (None,) * support.dimension
    scale, offset = np.ones(support.dimension), np.zeros(support.dimension)
    for d, (mine, wanted) in enumerate(zip(support.input_axes, axes, strict=True)):
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
        _require_movable(support, label)
        support = _moved(_measured(support, scale, label), scale, offset)
    support = dataclasses.replace(support, axes=axes if any(axes) else None)
    _require_local(support, label)
    return support


def warn_of_plain_numbers(
    support: Support, axes: Axes | None, label: str, known: str, stacklevel: int
) -> None:
    """Say which inputs without an axis are taken to be in the numbers of one."""
    own = support.input_axes
    for name, mine, wanted in zip(support.input_names, own, axes or own, strict=True):
        if mine is None and wanted is not None:
            warnings.warn(
                f"{label}: the input {name!r} is in plain numbers, which are taken as"
                f" {describe(wanted)}, as {known} it. Read it with from_frame or from_grid to be"
                " sure.",
                stacklevel=stacklevel + 1,
            )


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
    return dataclasses.replace(axis, origin=float(same_turn(axis.origin, other.origin)))


def _require_movable(support: Support, label: str) -> None:
    """Refuse covariates that a function gave for the old numbers: for the new ones they differ."""
    if not all(field.on_grid or field.in_rows for field in support.covariates or ()):
        raise ValueError(
            f"{label}: its covariates come from a function of numbers in other units, or from"
            " another origin. Add them to all sources at once, with"
            " Dataset([...]).with_covariates(...); a fit finds them itself where it predicts."
        )


def share_off(latitudes: Any, parallel: float) -> float:
    """Return how far off distances along parallels are where one of them sets the scale.

    >>> round(share_off([33.8, 36.6], 35.2), 3)
    0.018
    """
    lengths = np.cos(np.radians(np.asarray(latitudes, dtype=np.float64)))
    return float(np.max(np.abs(np.cos(np.radians(parallel)) / np.maximum(lengths, 1e-9) - 1)))


def _require_local(support: Support, label: str) -> None:
    """Refuse places farther from the origin of local kilometres than a source of its own may be."""
    for name, lower, upper, axis in support.sides:
        if axis is None or axis.quantity == "time" or axis.unit != "km":
            continue
        ends = np.array([np.min(lower, initial=0.0), np.max(upper, initial=0.0)])
        reach = axis.step * np.max(np.abs(ends))
        if axis.quantity == "longitude":
            far = reach > 0.5 * WIDEST + _ROUNDING
        else:
            far = share_off(axis.physical(ends), axis.origin) > MOST_OFF + _ROUNDING
        if far:
            raise ValueError(
                f"{label}: the input {name!r} lies up to {reach:.3g} degrees of"
                f" {axis.quantity} away from {axis.origin:.6g}, the middle of the data before."
                f" {LOCAL}, or give the widest source first."
            )


def _moved(support: Support, scale: Numbers, offset: Numbers) -> Support:
    """Write a support as scale * x + offset; polygons take their outlines along.

    Densities that are functions of the numbers no longer fit such outlines, and become stale.
    """
    if np.all(scale == 1) and np.all(offset == 0):
        return support
    if isinstance(support, Products):
        return support.map_parts(lambda part, d: _moved(part, scale[d], offset[d]))
    moved = support.affine(scale, offset)
    outlines = getattr(support, "outlines", None)
    if outlines is None:
        return moved
    import shapely

    shapes = shapely.transform(outlines.shapes, lambda x: scale * x + offset)
    stale = outlines.stale or not all(density.on_grid for density in outlines.densities)
    outlines = dataclasses.replace(outlines, shapes=shapes, stale=stale)
    return dataclasses.replace(moved, outlines=outlines)


def _measured(support: Support, scale: Numbers, label: str) -> Support:
    """Write the measure of totals in new units: a day's integral is 24 times larger in hours."""
    if support.kind != "sum":
        return support
    if isinstance(support, Products):
        return support.map_parts(lambda part, d: _measured(part, scale[d], label))
    factor = np.where(_extended(support, scale, label), scale, 1.0).prod(1)
    if np.all(factor == 1):
        return support
    weights = np.asarray(support.weights)  # pyright: ignore[reportAttributeAccessIssue]
    factor = factor.reshape(-1, *(1,) * (weights.ndim - 1))
    return dataclasses.replace(support, weights=weights * factor)


def _extended(support: Support, scale: Numbers, label: str) -> Bool[np.ndarray, "n d"]:
    """Return along which inputs each region has an extent that counts towards its measure."""
    if isinstance(support, Polygons) or not isinstance(support, Nodes):
        return _wider(support)
    solid = np.isin(np.arange(support.dimension), support.solid)
    if support.origin is not None:
        known = _wider(support.origin.regions)
        added = np.zeros((len(support), support.dimension - known.shape[1]), bool)
        return solid & np.hstack([known, added])
    spread = np.ptp(np.asarray(support.x), axis=1) > 0
    unknown = solid & (scale != 1) & ~spread
    if unknown.any():
        row, d = np.argwhere(unknown)[0]
        raise ValueError(
            f"{label}: totals change with the units of {support.input_names[d]!r}, but the nodes of"
            f" {unknown.any(1).sum()} of {len(support)} regions coincide along it, first of region"
            f" {row}, which may have an extent there or none. Read all sources in the same units"
            " (time_unit=), or turn regions into nodes after the Dataset is made."
        )
    return solid & spread


def _wider(support: Support) -> Bool[np.ndarray, "n d"]:
    lower, upper = support.bounds
    return np.asarray(upper) > np.asarray(lower)
