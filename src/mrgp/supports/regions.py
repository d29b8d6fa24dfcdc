"""Points, nodes and boxes, and the functions that make them from arrays."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from mrgp._types import AnyArray, Inputs, NodeInputs, NodeWeights, Vector
from mrgp.supports.origins import Origin
from mrgp.supports.quadrature import DEFAULT_RULE, Rule
from mrgp.supports.support import (
    Atoms,
    Kind,
    Partition,
    Support,
    check_coordinates,
    check_inputs,
    check_kind,
    check_multiplier,
    require_finite,
    stretched,
)


class Points(Support):
    """Single locations, each with a weight (one for means).

    >>> points([[2.0]], kind="sum", weights=[3.0]).moment
    array([[6.]])
    """

    x: Inputs
    weights: Vector

    def __len__(self) -> int:
        return self.x.shape[0]

    def __getitem__(self, index: Any) -> "Points":
        index = as_rows(index, len(self))
        return dataclasses.replace(self, x=self.x[index], weights=self.weights[index])

    @property
    def dimension(self) -> int:
        return self.x.shape[-1]

    @property
    def total(self) -> Vector:
        return self.weights

    @property
    def moment(self) -> Inputs:
        return self.weights[:, None] * self.x

    @property
    def bounds(self) -> tuple[Inputs, Inputs]:
        return self.x, self.x

    def affine(self, scale: Float[AnyArray, " d"], offset: Float[AnyArray, " d"]) -> "Points":
        return dataclasses.replace(self, x=stretched(self.x, scale, offset), axes=None)

    @property
    def blocks(self) -> Partition:
        return tuple((d,) for d in range(self.dimension))

    def factors(self, partition: Partition) -> tuple["Points", ...]:
        counts = _first_carries(self.weights, len(partition))
        return tuple(
            Points(self.x[:, list(columns)], w, kind=self.kind)
            for columns, w in zip(partition, counts, strict=True)
        )

    def atoms(self, along: tuple[int, ...] = (), rule: Rule = DEFAULT_RULE) -> Atoms:
        x = self.x[:, None, :]
        return Atoms(x, x, self.weights[:, None], (True,) * self.dimension)

    def quadrature(self, rule: Rule = DEFAULT_RULE) -> "Nodes":
        return Nodes(self.x[:, None, :], self.weights[:, None], **self.labels)

    def collapse(self) -> "Points":
        """Return the points themselves."""
        return self


class Nodes(Support):
    """Weighted sums over given nodes; nodes of zero weight are padding.

    `wide` are the inputs along which the nodes were laid out inside regions of positive measure,
    and `origin` has those regions; a copy with other coordinates (`affine`) has none.

    >>> nodes([[[0.0], [4.0]]], [[3.0, 1.0]]).collapse().x
    array([[1.]])
    """

    x: NodeInputs
    weights: NodeWeights
    wide: tuple[int, ...] = eqx.field(static=True, default=(), kw_only=True)
    origin: Origin | None = eqx.field(static=True, default=None, kw_only=True)

    def __len__(self) -> int:
        return self.x.shape[0]

    def __getitem__(self, index: Any) -> "Nodes":
        i = as_rows(index, len(self))
        origin = None if self.origin is None else self.origin[i]
        return dataclasses.replace(self, x=self.x[i], weights=self.weights[i], origin=origin)

    @property
    def dimension(self) -> int:
        return self.x.shape[-1]

    @property
    def total(self) -> Vector:
        return self.weights.sum(1)

    @property
    def moment(self) -> Inputs:
        return (self.weights[:, :, None] * self.x).sum(1)

    @property
    def bounds(self) -> tuple[Inputs, Inputs]:
        used = (np.asarray(self.weights) != 0)[:, :, None]
        x = np.asarray(self.x)
        return np.where(used, x, np.inf).min(1), np.where(used, x, -np.inf).max(1)

    @property
    def solid(self) -> tuple[int, ...]:
        return self.wide

    def affine(self, scale: Float[AnyArray, " d"], offset: Float[AnyArray, " d"]) -> "Nodes":
        return dataclasses.replace(self, x=stretched(self.x, scale, offset), origin=None, axes=None)

    def atoms(self, along: tuple[int, ...] = (), rule: Rule = DEFAULT_RULE) -> Atoms:
        return Atoms(self.x, self.x, self.weights, (True,) * self.dimension)

    def quadrature(self, rule: Rule = DEFAULT_RULE) -> "Nodes":
        return self

    def collapse(self) -> Points:
        """Return the center-point view: one node at the weighted centre, with all the weight."""
        return center_points(self)


class Boxes(Support):
    """Axis-aligned boxes; a side may have zero width (a sensor, an instant).

    >>> boxes([[0.0, 5.0]], [[2.0, 5.0]], kind="sum").total
    array([2.])
    """

    lower: Inputs
    upper: Inputs
    weights: Vector
    flat: tuple[bool, ...] = eqx.field(static=True)

    def __len__(self) -> int:
        return self.lower.shape[0]

    def __getitem__(self, index: Any) -> "Boxes":
        i = as_rows(index, len(self))
        lower, upper, weights = self.lower[i], self.upper[i], self.weights[i]
        return dataclasses.replace(self, lower=lower, upper=upper, weights=weights)

    @property
    def dimension(self) -> int:
        return self.lower.shape[-1]

    @property
    def total(self) -> Vector:
        return self.weights

    @property
    def moment(self) -> Inputs:
        return self.weights[:, None] * 0.5 * (self.lower + self.upper)

    @property
    def bounds(self) -> tuple[Inputs, Inputs]:
        return self.lower, self.upper

    def affine(self, scale: Float[AnyArray, " d"], offset: Float[AnyArray, " d"]) -> "Boxes":
        lower, upper = (stretched(v, scale, offset) for v in (self.lower, self.upper))
        return dataclasses.replace(self, lower=lower, upper=upper, axes=None)

    @property
    def pointlike(self) -> tuple[bool, ...]:
        return self.flat

    @property
    def blocks(self) -> Partition:
        return tuple((d,) for d in range(self.dimension))

    def factors(self, partition: Partition) -> tuple["Boxes", ...]:
        counts = _first_carries(self.weights, len(partition))
        sides = [(list(columns), tuple(self.flat[d] for d in columns)) for columns in partition]
        return tuple(
            Boxes(self.lower[:, columns], self.upper[:, columns], w, flat, kind=self.kind)
            for (columns, flat), w in zip(sides, counts, strict=True)
        )

    def atoms(self, along: tuple[int, ...] = (), rule: Rule = DEFAULT_RULE) -> Atoms:
        lower, upper = self.lower[:, None, :], self.upper[:, None, :]
        if all(self.flat[d] for d in along):
            return Atoms(lower, upper, self.weights[:, None], self.flat)
        chosen = tuple(d in along for d in range(self.dimension))
        whole = tuple(f or not c for f, c in zip(self.flat, chosen, strict=True))
        unit, share = rule.on_unit_cube(whole)
        x = lower + (upper - lower) * unit[None, :, :]
        mask = np.array(chosen)
        flat = tuple(f or c for f, c in zip(self.flat, chosen, strict=True))
        weights = self.weights[:, None] * share[None, :]
        return Atoms(_where(mask, x, lower), _where(mask, x, upper), weights, flat)

    def quadrature(self, rule: Rule = DEFAULT_RULE) -> Nodes:
        """Replace each box by the nodes of a rule (`Midpoint`, `GaussLegendre`, `Sobol`)."""
        atoms = self.atoms(tuple(range(self.dimension)), rule)
        wide = tuple(d for d, flat in enumerate(self.flat) if not flat)
        return Nodes(atoms.lower, atoms.weights, wide=wide, **self.labels)

    def collapse(self) -> Points:
        """Return the center-point view: one node at the centre, carrying all the weight."""
        return center_points(self)


def points(x: Any, *, inputs: Any = None, kind: Kind = "mean", weights: Any = None) -> Points:
    """Place each value at one location.

    `x` has shape [n, d]; `inputs` names the columns (a data frame brings its own). With
    `kind="sum"` each point counts `weights` times (default one).

    >>> points([[0.0, 51.5], [1.0, 51.4]], inputs=("time", "lat"))
    Points(2 means: time 0 to 1; lat 51.4 to 51.5)
    """
    if inputs is None and hasattr(x, "columns"):
        inputs = tuple(map(str, x.columns))
    x = check_coordinates(x, 2, "x", "points")
    require_finite(x, "x", "points")
    names = check_inputs(inputs, x.shape[1], "points")
    multiplier = check_multiplier(weights, len(x), check_kind(kind, "points"), "points")
    return Points(x, multiplier, inputs=names, kind=kind)


def nodes(x: Any, weights: Any = None, *, inputs: Any = None, kind: Kind = "mean") -> Nodes:
    """Let each value be a weighted mean, or a weighted sum, over its own nodes.

    `x` has shape [n, s, d] and `weights` [n, s]. A mean scales the weights of each region to sum
    to one (default: equal weights); a sum takes them as they are (default: one). Pad regions
    with fewer nodes by zero weights.

    >>> nodes([[[0.0], [1.0], [2.0]]])
    Nodes(1 mean of 3 nodes: x1 0 to 2, width 2)
    """
    where = "nodes"
    x = check_coordinates(x, 3, "x", where)
    check_kind(kind, where)
    names = check_inputs(inputs, x.shape[2], where)
    if x.shape[1] == 0:
        raise ValueError(f"nodes: every region needs at least one node; got shape {x.shape}.")
    given = np.ones(x.shape[:2]) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != x.shape[:2]:
        raise ValueError(
            f"nodes: weights must have shape [n, s] = {x.shape[:2]} to fit x; got {given.shape}."
        )
    if not np.isfinite(given).all():
        raise ValueError("nodes: weights must be finite; give padding nodes the weight 0.")
    empty = ~(given != 0).any(1)
    if empty.any():
        raise ValueError(
            f"nodes: all weights are zero in {empty.sum()} of {len(empty)} regions, first in row"
            f" {np.argmax(empty)}. Drop those regions."
        )
    x = _fill_padding(x, given)
    require_finite(x, "x", where)
    if kind == "mean":
        total = given.sum(1, keepdims=True)
        if np.any(np.abs(total) <= 1e-12 * np.abs(given).sum(1, keepdims=True)):
            raise ValueError('nodes: weights of a mean must not sum to zero; use kind="sum".')
        given = given / total
    return Nodes(x, given, inputs=names, kind=kind)


def boxes(
    lower: Any, upper: Any, *, inputs: Any = None, kind: Kind = "mean", weights: Any = None
) -> Boxes:
    """Let each value be the mean, or the integral, over an axis-aligned box.

    `lower` and `upper` have shape [n, d]; sides of zero width are allowed and do not count
    towards the volume. With `kind="sum"` a region's integral is multiplied by `weights` (default
    one).

    >>> boxes([[0.0, 0.0]], [[1.0, 2.0]], inputs=("lon", "lat"))
    Boxes(1 mean: lon 0 to 1, width 1; lat 0 to 2, width 2)
    """
    return _boxes(lower, upper, 2, inputs, kind, weights, "boxes")


def intervals(
    start: Any, end: Any, *, inputs: Any = None, kind: Kind = "mean", weights: Any = None
) -> Boxes:
    """Let each value be the mean, or the integral, over an interval of one input.

    >>> intervals([0.0, 24.0], [24.0, 48.0], inputs="hour")
    Boxes(2 means: hour 0 to 48, width 24)
    """
    return _boxes(start, end, 1, inputs, kind, weights, "intervals")


def _boxes(
    lower: Any, upper: Any, ndim: int, inputs: Any, kind: Kind, weights: Any, where: str
) -> Boxes:
    low, high = ("lower", "upper") if ndim == 2 else ("start", "end")
    lower = check_coordinates(lower, ndim, low, where)
    upper = check_coordinates(upper, ndim, high, where)
    if lower.shape != upper.shape:
        raise ValueError(
            f"{where}: {low} and {high} must have one shape; got {lower.shape} and {upper.shape}."
        )
    require_finite(lower, low, where)
    require_finite(upper, high, where)
    if ndim == 1:
        lower, upper = lower[:, None], upper[:, None]
    wrong = (upper < lower).any(1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{where}: {high} is below {low} in {wrong.sum()} of {len(wrong)} rows, first in row"
            f" {row} ({low} {lower[row]}, {high} {upper[row]}). Swap them."
        )
    names = check_inputs(inputs, lower.shape[1], where)
    multiplier = check_multiplier(weights, len(lower), check_kind(kind, where), where)
    width = upper - lower
    volume = np.where(width > 0, width, 1.0).prod(1)
    total = volume * multiplier if kind == "sum" else multiplier
    flat = tuple(bool(f) for f in (width == 0).all(0))
    return Boxes(lower, upper, total, flat, inputs=names, kind=kind)


def join_nodes(supports: Sequence[Support]) -> Nodes:
    """Join nodes of supports that are solid along the same inputs, padded to one number each."""
    parts = [support.atoms() for support in supports]
    width = max(part.weights.shape[1] for part in parts)
    pad = [width - part.weights.shape[1] for part in parts]
    x = [
        np.pad(p.lower, ((0, 0), (0, k), (0, 0)), mode="edge")
        for p, k in zip(parts, pad, strict=True)
    ]
    weights = [np.pad(p.weights, ((0, 0), (0, k))) for p, k in zip(parts, pad, strict=True)]
    first = supports[0]
    return Nodes(np.concatenate(x), np.concatenate(weights), wide=first.solid, **first.labels)


def center_points(support: Support) -> Points:
    """Return one node a region, at the weighted centre, carrying the region's total weight."""
    total = support.total
    if np.any(np.asarray(total) == 0):
        raise ValueError(
            "collapse: a region whose weights sum to zero has no centre; drop contrasts first."
        )
    centre = support.moment / total[:, None]
    return Points(centre, total, **support.labels)


def _first_carries(weights: Vector, count: int) -> list[AnyArray]:
    """Return the weights and then ones, so that the product over groups is the weights."""
    ones = np.ones_like if isinstance(weights, np.ndarray) else jnp.ones_like
    return [weights, *(ones(weights) for _ in range(count - 1))]


def _where(mask: np.ndarray, chosen: AnyArray, other: AnyArray) -> AnyArray:
    """Take some input columns from one array and the rest from another, NumPy or JAX."""
    where = np.where if isinstance(chosen, np.ndarray) else jnp.where
    return where(mask[None, None, :], chosen, other)


def _fill_padding(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Give zero-weight nodes the coordinates of a used node, since 0 * nan = nan (theory 1.1)."""
    used = weights != 0
    first = np.take_along_axis(x, np.argmax(used, 1)[:, None, None], axis=1)
    return np.where(used[:, :, None], x, first)


def as_rows(index: Any, n: int) -> Any:
    """Keep one region a region: an integer selects a support of length one."""
    if isinstance(index, int | np.integer):
        if not -n <= index < n:
            raise IndexError(f"Region {index} does not exist; there are {n}.")
        return slice(index % n, index % n + 1)
    return np.asarray(index, dtype=int if not index else None) if isinstance(index, list) else index
