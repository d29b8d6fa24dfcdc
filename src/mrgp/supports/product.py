"""Row-wise products of supports: polygon x month, cell x hour."""

import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mrgp._types import AnyArray, Inputs, Vector
from mrgp.supports.quadrature import DEFAULT_RULE, Rule
from mrgp.supports.quadrature import along as rule_along
from mrgp.supports.regions import check_inputs, require_supports
from mrgp.supports.spaces import Spaces, check_space
from mrgp.supports.support import (
    Atoms,
    Columns,
    Kind,
    Members,
    Partition,
    PerInput,
    Rectangular,
    Support,
    like,
)


class Products(Support):
    """Regions that are products of regions of groups of inputs, row by row.

    `columns[i]` are the inputs of `parts[i]`, in ascending order. A kernel that is a product over
    the same groups is averaged group by group (theory 1.4).

    >>> from mrgp import intervals, nodes
    >>> places = nodes([[[0.0], [1.0]]], inputs="east")
    >>> product(places, intervals([8.0], [9.0], inputs="hour")).columns
    ((0,), (1,))
    """

    parts: tuple[Support, ...]
    columns: Partition = eqx.field(static=True)

    @property
    def members(self) -> Members:
        return tuple(zip(self.parts, self.columns, strict=True))

    def __getitem__(self, index: Any) -> "Products":
        return dataclasses.replace(self, parts=tuple(part[index] for part in self.parts))

    @property
    def dimension(self) -> int:
        return sum(map(len, self.columns))

    @property
    def total(self) -> Vector:
        return _multiplied(part.total for part in self.parts)

    @property
    def moment(self) -> Inputs:
        moments = []
        for i, part in enumerate(self.parts):
            others = (other.total for j, other in enumerate(self.parts) if j != i)
            moments.append(part.moment * _multiplied(others)[:, None])
        return placed(moments, self.columns)

    @property
    def bounds(self) -> tuple[Inputs, Inputs]:
        lower, upper = zip(*(part.bounds for part in self.parts), strict=True)
        return placed(lower, self.columns), placed(upper, self.columns)

    def map_parts(self, function: Callable[[Support, list[int]], Support]) -> "Products":
        """Change each part, which for this has its names and axes, by a function of its columns."""
        parts = []
        for part, columns in self.members:
            names, axes = ([of[d] for d in columns] for of in (self.input_names, self.input_axes))
            named = dataclasses.replace(part, inputs=tuple(names), axes=tuple(axes))
            changed = function(named, list(columns))
            parts.append(dataclasses.replace(changed, inputs=None, axes=None))
        return dataclasses.replace(self, parts=tuple(parts))

    def affine(self, scale: PerInput, offset: PerInput) -> "Products":
        groups = ((part, np.array(columns)) for part, columns in self.members)
        parts = (part.affine(scale[columns], offset[columns]) for part, columns in groups)
        return dataclasses.replace(self, parts=tuple(parts), axes=None)

    @property
    def blocks(self) -> Partition:
        return tuple(
            tuple(columns[d] for d in block)
            for part, columns in self.members
            for block in part.blocks
        )

    @property
    def solid(self) -> Columns:
        return tuple(sorted(columns[d] for part, columns in self.members for d in part.solid))

    @property
    def pointlike(self) -> tuple[bool, ...]:
        flat = placed([np.array(part.pointlike) for part in self.parts], self.columns)
        return tuple(flat.tolist())

    def factors(self, partition: Partition) -> tuple[Support, ...]:
        pieces: list[list[tuple[Support, Columns]]] = [[] for _ in partition]
        for part, columns in self.members:
            shares = [tuple(columns.index(d) for d in g if d in columns) for g in partition]
            local = iter(part.factors(tuple(share for share in shares if share)))
            for piece, group, share in zip(pieces, partition, shares, strict=True):
                if share:
                    piece.append((next(local), tuple(group.index(columns[d]) for d in share)))
        return tuple(of_parts(piece, {"kind": _joint_kind(piece)}) for piece in pieces)

    def atoms(self, along: Columns = (), rule: Rule = DEFAULT_RULE) -> Atoms:
        pieces = []
        for part, columns in self.members:
            chosen = tuple(i for i, d in enumerate(columns) if d in along)
            pieces.append(part.atoms(chosen, rule_along(rule, columns))[:3])
        lower, upper, weights = all_combinations(pieces)
        lower, upper = placed(lower, self.columns), placed(upper, self.columns)
        flat = tuple(f or d in along for d, f in enumerate(self.pointlike))
        return Atoms(lower, upper, _multiplied(weights), flat)


def placed(arrays: Sequence[AnyArray], columns: Partition) -> AnyArray:
    """Join arrays of some columns each, every column at its place."""
    order = np.argsort(np.concatenate([np.array(c) for c in columns]))
    numpy = all(isinstance(a, np.ndarray) for a in arrays)
    return (np if numpy else jnp).concatenate(arrays, -1)[..., order]


def all_combinations(pieces: Sequence[tuple[AnyArray, ...]]) -> list[list[AnyArray]]:
    """Take every node of one part with every node of the others, field by field."""
    index = np.indices([piece[-1].shape[1] for piece in pieces]).reshape(len(pieces), -1)
    fields = zip(*pieces, strict=True)
    return [[part[:, i] for part, i in zip(field, index, strict=True)] for field in fields]


def _multiplied(arrays: Iterable[AnyArray]) -> AnyArray:
    return functools.reduce(operator.mul, arrays)


def product(
    first: Any, second: Any, *others: Any, inputs: Any = None, space: Any = None
) -> Support:
    """Take supports of different inputs together, row by row: polygon x month, cell x hour.

    All have the same number of regions, or one, which is then repeated. The inputs are those of
    the first and then those of the next. Points and boxes give boxes; anything else stays a
    product, whose covariances are products of its parts' where the kernel allows it. A mean times
    a mean is a mean; with a sum among them the product is a sum. `space` is as in `points`; left
    out, the spaces are those that parts were given.

    >>> from mrgp import intervals, points
    >>> product(points([[0.0, 51.5]], inputs=("lon", "lat")), intervals([0.0], [24.0]))
    Boxes(1 mean: lon 0 to 0; lat 51.5 to 51.5; x3 0 to 24, width 24)
    """
    parts = (first, second, *others)
    require_supports(parts, "product")
    if any(part.covariates is not None for part in parts):
        raise ValueError(
            "product: add covariates after taking the product, with_covariates(...) last."
        )
    parts = _as_long_as_one_another(parts)
    edges = np.cumsum([0, *(p.dimension for p in parts)])
    columns = (tuple(range(a, b)) for a, b in itertools.pairwise(edges))
    members = list(zip(parts, columns, strict=True))
    if inputs is None and any(part.inputs for part in parts):
        # Inputs without a name go by their place in the product.
        inputs = [name for p, c in members for name in p.inputs or (f"x{d + 1}" for d in c)]
    names = check_inputs(inputs, int(edges[-1]), "product")
    axes = tuple(axis for part in parts for axis in part.input_axes)
    labels = {
        "inputs": names,
        "kind": _joint_kind(members),
        "axes": axes if any(axes) else None,
        "space": _joint_space(members, names, space),
    }
    if all(isinstance(p, Rectangular) for p in parts):
        return _join_boxes(parts, labels)
    bare = [(dataclasses.replace(p, inputs=None, axes=None, space=None), c) for p, c in members]
    return of_parts(bare, labels)


def of_parts(pieces: Sequence[tuple[Support, Columns]], labels: dict[str, Any]) -> Support:
    """Make a product of supports of some columns each; the parts of products become its own.

    One alone is its own product.
    """
    if len(pieces) == 1:
        return pieces[0][0]
    members = [
        (part, tuple(columns[d] for d in own))
        for piece, columns in pieces
        for part, own in piece.members
    ]
    parts, columns = zip(*members, strict=True)
    return Products(parts, columns, **labels)


def _as_long_as_one_another(parts: tuple[Support, ...]) -> tuple[Support, ...]:
    """Repeat supports of one region as often as the others have regions."""
    counts = {len(part) for part in parts} - {1}
    if len(counts) > 1:
        raise ValueError(
            "product: supports must have the same number of regions, or one; got"
            f" {' and '.join(str(len(part)) for part in parts)}. Every region goes with the region"
            " of the same row; select rows so that they match."
        )
    count = counts.pop() if counts else 1
    return tuple(p if len(p) == count else p[np.zeros(count, dtype=int)] for p in parts)


def _joint_kind(pieces: Iterable[tuple[Support, Columns]]) -> Kind:
    """Return the kind of a product: a sum where one of its parts is."""
    return "sum" if any(part.kind == "sum" for part, _ in pieces) else "mean"


def _joint_space(
    members: Sequence[tuple[Support, Columns]], names: tuple[str, ...] | None, space: Any
) -> Spaces | None:
    """Return the spaces of a product: as given, or those that its parts were given."""
    if space is not None or all(part.space is None for part, _ in members):
        known = names or tuple(f"x{d + 1}" for _, columns in members for d in columns)
        return check_space(space, known, "product")
    return tuple(
        tuple(columns[d] for d in group) for part, columns in members for group in part.spaces
    )


def _join_boxes(parts: tuple[Support, ...], labels: dict[str, Any]) -> Support:
    lower, upper = (np.concatenate([p.bounds[side] for p in parts], 1) for side in (0, 1))
    total = _multiplied(np.asarray(p.total) for p in parts)
    flat = tuple(f for p in parts for f in p.pointlike)
    return like(parts, (lower, upper), total, flat, **labels)
