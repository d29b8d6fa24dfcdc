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
from jaxtyping import Float

from mrgp._types import AnyArray, Inputs, Vector
from mrgp.supports.quadrature import DEFAULT_RULE, Rule
from mrgp.supports.quadrature import along as rule_along
from mrgp.supports.regions import Boxes, Nodes, Points, center_points
from mrgp.supports.support import Atoms, Kind, Partition, Support, check_inputs


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

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, index: Any) -> "Products":
        return dataclasses.replace(self, parts=tuple(part[index] for part in self.parts))

    @property
    def dimension(self) -> int:
        return sum(map(len, self.columns))

    @property
    def total(self) -> Vector:
        return functools.reduce(operator.mul, (part.total for part in self.parts))

    @property
    def moment(self) -> Inputs:
        moments = []
        for i, part in enumerate(self.parts):
            others = (other.total for j, other in enumerate(self.parts) if j != i)
            moments.append(part.moment * functools.reduce(operator.mul, others)[:, None])
        return self._place(moments)

    @property
    def bounds(self) -> tuple[Inputs, Inputs]:
        lower, upper = zip(*(part.bounds for part in self.parts), strict=True)
        return self._place(lower), self._place(upper)

    def affine(self, scale: Float[AnyArray, " d"], offset: Float[AnyArray, " d"]) -> "Products":
        parts = (
            part.affine(scale[np.array(columns)], offset[np.array(columns)])
            for part, columns in zip(self.parts, self.columns, strict=True)
        )
        return dataclasses.replace(self, parts=tuple(parts), axes=None)

    @property
    def blocks(self) -> Partition:
        return tuple(
            tuple(columns[d] for d in block)
            for part, columns in zip(self.parts, self.columns, strict=True)
            for block in part.blocks
        )

    @property
    def solid(self) -> tuple[int, ...]:
        pairs = zip(self.parts, self.columns, strict=True)
        return tuple(sorted(columns[d] for part, columns in pairs for d in part.solid))

    @property
    def pointlike(self) -> tuple[bool, ...]:
        flat = np.zeros(self.dimension, dtype=bool)
        for part, columns in zip(self.parts, self.columns, strict=True):
            flat[list(columns)] = part.pointlike
        return tuple(flat.tolist())

    def factors(self, partition: Partition) -> tuple[Support, ...]:
        pieces: list[list[tuple[Support, tuple[int, ...]]]] = [[] for _ in partition]
        for part, columns in zip(self.parts, self.columns, strict=True):
            shares = [tuple(columns.index(d) for d in g if d in columns) for g in partition]
            local = part.factors(tuple(share for share in shares if share))
            for piece, group, share in zip(pieces, partition, shares, strict=True):
                if share:
                    piece.append((local[0], tuple(group.index(columns[d]) for d in share)))
                    local = local[1:]
        return tuple(
            piece[0][0]
            if len(piece) == 1
            else of_parts(piece, {"kind": _joint_kind(p for p, _ in piece)})
            for piece in pieces
        )

    def atoms(self, along: tuple[int, ...] = (), rule: Rule = DEFAULT_RULE) -> Atoms:
        pieces = []
        for part, columns in zip(self.parts, self.columns, strict=True):
            chosen = tuple(i for i, d in enumerate(columns) if d in along)
            pieces.append(part.atoms(chosen, rule_along(rule, columns)))
        flat = tuple(f or d in along for d, f in enumerate(self.pointlike))
        counts = [piece.weights.shape[1] for piece in pieces]
        index = np.indices(counts).reshape(len(counts), -1)
        lower = self._place([p.lower[:, i] for p, i in zip(pieces, index, strict=True)])
        upper = self._place([p.upper[:, i] for p, i in zip(pieces, index, strict=True)])
        weights = (p.weights[:, i] for p, i in zip(pieces, index, strict=True))
        return Atoms(lower, upper, functools.reduce(operator.mul, weights), flat)

    def quadrature(self, rule: Rule = DEFAULT_RULE) -> Nodes:
        """Replace each region by the tensor product of its parts' nodes."""
        atoms = self.atoms(tuple(range(self.dimension)), rule)
        wide = tuple(d for d, flat in enumerate(self.pointlike) if not flat or d in self.solid)
        return Nodes(atoms.lower, atoms.weights, wide=wide, **self.labels)

    def collapse(self) -> Points:
        """Return the center-point view: one node at the weighted centre, with all the weight."""
        return center_points(self)

    def _place(self, arrays: Sequence[AnyArray]) -> AnyArray:
        """Join the parts' columns, each at its place."""
        order = np.argsort(np.concatenate([np.array(c) for c in self.columns]))
        concatenate: Callable[..., AnyArray] = np.concatenate
        if not all(isinstance(a, np.ndarray) for a in arrays):
            concatenate = jnp.concatenate
        return concatenate(arrays, -1)[..., order]


def product(first: Any, second: Any, *others: Any, inputs: Any = None) -> Support:
    """Take supports of different inputs together, row by row: polygon x month, cell x hour.

    All have the same number of regions, or one, which is then repeated. The inputs are those of
    the first and then those of the next. Points and boxes give boxes; anything else stays a
    product, whose covariances are products of its parts' where the kernel allows it. A mean times
    a mean is a mean; with a sum among them the product is a sum.

    >>> from mrgp import intervals, points
    >>> product(points([[0.0, 51.5]], inputs=("lon", "lat")), intervals([0.0], [24.0]))
    Boxes(1 mean: lon 0 to 0; lat 51.5 to 51.5; x3 0 to 24, width 24)
    """
    parts = (first, second, *others)
    for part in parts:
        if not isinstance(part, Support):
            raise TypeError(f"product takes supports, as product(a, b); got {type(part).__name__}.")
        if part.covariates is not None:
            raise ValueError(
                "product: add covariates after taking the product, with_covariates(...) last."
            )
    parts = _as_long_as_one_another(parts)
    names = _joint_names(parts) if inputs is None else inputs
    names = check_inputs(names, sum(p.dimension for p in parts), "product")
    axes = tuple(a for p in parts for a in p.axes or (None,) * p.dimension)
    labels = {"inputs": names, "kind": _joint_kind(parts), "axes": axes if any(axes) else None}
    if all(isinstance(p, Points | Boxes) for p in parts):
        return _join_boxes(parts, labels)
    edges = np.cumsum([0, *(p.dimension for p in parts)])
    columns = (tuple(range(a, b)) for a, b in itertools.pairwise(edges))
    bare = (dataclasses.replace(p, inputs=None, axes=None) for p in parts)
    return of_parts(zip(bare, columns, strict=True), labels)


def of_parts(pieces: Iterable[tuple[Support, tuple[int, ...]]], labels: dict[str, Any]) -> Products:
    """Make a product of supports of some columns each; the parts of products become its own."""
    flattened: list[tuple[Support, tuple[int, ...]]] = []
    for part, columns in pieces:
        if isinstance(part, Products):
            inner = zip(part.parts, part.columns, strict=True)
            flattened += [(piece, tuple(columns[d] for d in own)) for piece, own in inner]
        else:
            flattened.append((part, columns))
    parts, columns = zip(*flattened, strict=True)
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


def _joint_kind(parts: Iterable[Support]) -> Kind:
    """Return the kind of a product: a sum where one of its parts is."""
    return "sum" if any(part.kind == "sum" for part in parts) else "mean"


def _joint_names(parts: tuple[Support, ...]) -> tuple[str, ...] | None:
    """Return the parts' names; inputs without one go by their place in the product."""
    if all(p.inputs is None for p in parts):
        return None
    names: list[str] = []
    for part in parts:
        start = len(names) + 1
        names += part.inputs or (f"x{start + d}" for d in range(part.dimension))
    return tuple(names)


def _join_boxes(parts: tuple[Support, ...], labels: dict[str, Any]) -> Support:
    lower, upper = (np.concatenate([p.bounds[side] for p in parts], 1) for side in (0, 1))
    total = functools.reduce(operator.mul, (np.asarray(p.total) for p in parts))
    if all(isinstance(p, Points) for p in parts):
        return Points(lower, total, **labels)
    flat = tuple(f for p in parts for f in p.pointlike)
    return Boxes(lower, upper, total, flat, **labels)
