"""Covariances of aggregates: a kernel meets two supports (theory 1.2 to 1.4).

Terms of a kernel that are products over the inputs are averaged over boxes in closed form; where a
factor joins several inputs along which a region has width, the region becomes quadrature nodes.
Rows are worked through in chunks that fit in cache, recomputed in the backward pass.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import float64
from mrgp.gp.averages import DEFAULT_ORDER, Interval, interval_mean
from mrgp.gp.chunks import map_rows, rows_at_a_time
from mrgp.gp.forms import alike, means_of
from mrgp.kernels import Binding, Factor, Kernel, Product, Stationary, Term, White
from mrgp.kernels.base import View
from mrgp.kernels.structured import has_white, is_stationary
from mrgp.parameters import unwrap
from mrgp.supports import Atoms, Geometry, Lattice, Partition, Polygons, Products, Shapes, Support
from mrgp.supports.quadrature import DEFAULT_RULE, GaussLegendre, Rule, Sobol, along

_PAIRS_SHARE, _CLOSED_FORM_SHARE = 4, 32
_SYMMETRIC_BLOCKS = 4
_MANY_NODES = 16
_FEW_PAIRS = 2**16

Lattices = tuple[Lattice | None, Lattice | None]


def cross_covariance(
    kernel: Kernel,
    first: Support,
    second: Support,
    rule: Rule = DEFAULT_RULE,
    lattices: Lattices = (None, None),
) -> Float[Array, "n m"]:
    """Return cov((L f)_n, (L' f)_m) for f with this kernel (bound and unwrapped).

    Where the sides of boxes are known to repeat, by their `lattices`, and the kernel is made of
    products over single inputs, it is found once for each pair of intervals.

    >>> from mrgp import Linear, intervals, points
    >>> slope = Linear(variance=1.0, origin=0.0, dims=0)
    >>> cross_covariance(slope, intervals([0.0], [4.0]), points([[3.0]])).tolist()  # 2 times 3
    [[6.0]]
    """
    if any(lattice is not None for lattice in lattices) and _by_single_inputs(kernel):
        return _cross_of_lattices(kernel, (first, second), lattices, rule)
    zero = jnp.zeros((len(first), len(second)))
    return _over_routes(_cross, _routes(kernel, (first, second), rule), zero)


def _by_single_inputs(kernel: Kernel) -> bool:
    return not has_white(kernel) and not any(map(_joined, kernel.sum_of_products()))


def _cross_of_lattices(
    kernel: Kernel, supports: tuple[Support, Support], lattices: Lattices, rule: Rule
) -> Float[Array, "n m"]:
    def sides(support: Support, lattice: Lattice | None) -> tuple[Array, Array]:
        if lattice is not None:
            return jnp.asarray(lattice.lower), jnp.asarray(lattice.upper)
        lower, upper = support.bounds
        return jnp.asarray(lower).T, jnp.asarray(upper).T

    def spread(values: Array, d: int) -> Array:
        """Return what each region has of what was found for intervals along an input."""
        for axis, lattice in enumerate(lattices):
            values = values if lattice is None else jnp.take(values, lattice.index[d], axis)
        return values

    (low, high), (low2, high2) = map(sides, supports, lattices)
    flat, other = (s.pointlike for s in supports)
    mean = _Mean(kernel.sum_of_products(), (flat, other), rule)
    total = jnp.zeros([len(s) for s in supports])
    for term in kernel.sum_of_products():
        value = jnp.asarray(term.coefficient)
        for dims, means in alike(term.factors, flat, other):
            at = np.array(dims)
            pairs = low[at, :, None], high[at, :, None], low2[at, None, :], high2[at, None, :]
            found = means_of(means, pairs, (flat[dims[0]], other[dims[0]]), mean.order)
            for d, values in zip(dims, found, strict=True):
                value = value * spread(values, d)
        total = total + value
    first, second = (jnp.asarray(s.total) for s in supports)
    return first[:, None] * second[None, :] * total


def _cross(mean: "_Mean", a: Atoms, b: Atoms) -> Float[Array, "n m"]:
    columns = b.weights.shape[0] * b.weights.shape[1]
    z_lower, z_upper = (jnp.asarray(x).reshape(1, 1, columns, -1) for x in (b.lower, b.upper))

    def chunk(lower: Array, upper: Array, weights: Array) -> Array:
        values = mean(lower[:, :, None, :], upper[:, :, None, :], z_lower, z_upper)
        rows = _contract(weights, values)
        if b.weights.shape[1] == 1:
            return rows * b.weights[None, :, 0]
        return jnp.einsum("nms,ms->nm", rows.reshape(-1, *b.weights.shape), b.weights)

    return mean.scale * map_rows(chunk, a[:3], mean.rows(a.weights.shape[1] * columns))


def variance(kernel: Kernel, support: Support, rule: Rule = DEFAULT_RULE) -> Float[Array, " n"]:
    """Return var((L f)_n) for f with this kernel (bound and unwrapped).

    >>> from mrgp import Matern12, intervals
    >>> found = variance(Matern12(1.0, variance=1.0, dims=0), intervals([0.0], [1.0]))
    >>> round(float(found[0]), 4)  # 2 / e
    0.7358
    """
    return _over_routes(_variance, _routes(kernel, (support,), rule), jnp.zeros(len(support)))


def variance_by_shape(
    kernel: Kernel, support: Support, shapes: Shapes | None, rule: Rule = DEFAULT_RULE
) -> Float[Array, " n"]:
    """Return var((L f)_n), once for all regions of one shape where the kernel is stationary."""
    if shapes is None or not is_stationary(kernel):
        return variance(kernel, support, rule)
    return variance(kernel, shapes.regions, rule)[shapes.index]


def _variance(mean: "_Mean", atoms: Atoms) -> Float[Array, " n"]:
    nodes = atoms.weights.shape[1]
    count = _SYMMETRIC_BLOCKS if nodes >= _MANY_NODES else 1
    edges = np.linspace(0, nodes, count + 1).astype(int)
    blocks = [slice(a, b) for a, b in itertools.pairwise(edges)]

    def chunk(lower: Array, upper: Array, weights: Array) -> Array:
        if nodes == 1:
            own = lower[:, 0], upper[:, 0]
            return weights[:, 0] ** 2 * mean(*own, *own)
        # Pairs of nodes are symmetric: blocks off the diagonal count twice.
        total = jnp.zeros(weights.shape[0])
        for i, j in itertools.combinations_with_replacement(blocks, 2):
            first = lower[:, i, None], upper[:, i, None]
            second = lower[:, None, j], upper[:, None, j]
            block = jnp.einsum("ns,nst,nt->n", weights[:, i], mean(*first, *second), weights[:, j])
            total += block if i == j else 2.0 * block
        return total

    return mean.scale * map_rows(chunk, atoms[:3], mean.rows(nodes**2))


def full_covariance(
    kernel: Kernel,
    supports: tuple[Support, ...],
    rule: Rule = DEFAULT_RULE,
    lattices: Sequence[Lattice | None] | None = None,
) -> list[list[Float[Array, "n m"]]]:
    """Return the blocks of the covariance among several supports.

    >>> from mrgp import Linear, intervals, points
    >>> supports = intervals([0.0], [4.0]), points([[3.0]])
    >>> blocks = full_covariance(Linear(variance=1.0, origin=0.0, dims=0), supports)
    >>> [[float(block[0, 0]) for block in row] for row in blocks]
    [[4.0, 6.0], [6.0, 9.0]]
    """
    blocks: list[list[Array]] = [[] for _ in supports]
    known = lattices or [None] * len(supports)
    for i, a in enumerate(supports):
        for j, b in enumerate(supports):
            if j < i:
                blocks[i].append(blocks[j][i].T)
            else:
                blocks[i].append(cross_covariance(kernel, a, b, rule, (known[i], known[j])))
    return blocks


class QuadratureError(NamedTuple):
    """How far prior standard deviations are off under a rule, relative to a finer one.

    >>> print(QuadratureError(largest=0.01, mean=0.002, region=3))
    relative error of the prior sd: at most 1.0e-02 (region 3), 2.0e-03 on average
    """

    largest: float
    mean: float
    region: int

    def __str__(self) -> str:
        return (
            f"relative error of the prior sd: at most {self.largest:.1e} (region {self.region}),"
            f" {self.mean:.1e} on average"
        )


@float64
def quadrature_error(
    support: Support, rule: Rule, kernel: Kernel, finer: Rule | None = None
) -> QuadratureError:
    """Measure a quadrature rule on a support against a finer one.

    The default reference averages the kernel input by input where it is a product, and is
    Gauss-Legendre with up to three times the nodes otherwise. Polygons have nodes of their own,
    whatever the rule, and are compared with `refine()`, alone or in products: about three quarters
    of their error shows. Nodes that were given define their aggregate, and so do polygons without
    outlines: their error is zero. The kernel's lengthscale matters: a rule that is good for a
    smooth field may be poor for a rough one.

    >>> import mrgp
    >>> cells = mrgp.boxes([[0.0, 0.0]], [[1.0, 1.0]])
    >>> print(mrgp.quadrature_error(cells, mrgp.Midpoint(10), mrgp.RBF(lengthscale=0.5)))
    relative error of the prior sd: at most 1.9e-03 (region 0), 1.9e-03 on average
    """
    geometry = Geometry.of((support,))
    bound = unwrap(kernel.bind(Binding(geometry)))
    # A shifted copy has no outlines to refine.
    reference = _refined(support).shift(geometry.centre)
    if finer is not None:
        reference = reference.quadrature(finer)
    elif needs_nodes(bound, support):
        reference = reference.quadrature(_finer(rule, support.pointlike.count(False)))
    nodes = support.shift(geometry.centre).quadrature(rule)
    coarse, fine = (np.asarray(variance(bound, s)) for s in (nodes, reference))
    # White alone has no variance over regions: there is nothing to be wrong about.
    error = np.abs(np.sqrt(coarse / np.where(fine > 0, fine, 1.0)) - np.where(fine > 0, 1.0, 0.0))
    return QuadratureError(float(error.max()), float(error.mean()), int(error.argmax()))


def _refined(support: Support) -> Support:
    """Return a support with more nodes inside its polygons, where their outlines are known."""
    if isinstance(support, Polygons) and support.outlines is not None:
        return support.refine()
    if isinstance(support, Products):
        # Densities that are grids find their inputs by name.
        return support.map_parts(lambda part, _: _refined(part))
    return support


def _finer(rule: Rule, sides: int) -> Rule:
    number = getattr(rule, "number", 8)
    most = max(number) if isinstance(number, tuple) else number
    if isinstance(rule, Sobol):
        most = math.ceil(most ** (1 / sides))
    return GaussLegendre(max(most + 2, min(3 * most, int(1000 ** (1 / sides)))))


def needs_nodes(kernel: Kernel, support: Support) -> bool:
    """Tell whether a kernel joins inputs along which a support has width.

    >>> from mrgp import RBF, Matern32, boxes
    >>> cell = boxes([[0.0, 0.0]], [[1.0, 1.0]])
    >>> [needs_nodes(k(1.0, variance=1.0, dims=(0, 1)), cell) for k in (RBF, Matern32)]
    [False, True]
    """
    flat = support.pointlike
    return not all(flat[d] for term in kernel.sum_of_products() for d in _joined(term))


class _Mean:
    """The mean of a kernel, or of some of its terms, over pairs of boxes, up to `scale`."""

    def __init__(
        self,
        kernel: Kernel | tuple[Term, ...],
        flats: Sequence[tuple[bool, ...]],
        rule: Rule,
        pairs: int = 0,
    ):
        # A common variance is multiplied in once averages are taken: there is less to multiply.
        self.scale = jnp.ones(())
        if isinstance(kernel, Stationary):
            self.scale = jnp.asarray(kernel.variance)
            kernel = dataclasses.replace(kernel, variance=np.ones(()))
        self.kernel, self.flat, self.other = kernel, flats[0], flats[-1]
        # Inputs together are less to compile, and more to compute where there are many pairs.
        self.together = pairs <= _FEW_PAIRS
        # Pairs are many and cheap, and stay in a smaller cache than products of factors at nodes.
        self.share = _PAIRS_SHARE if all(map(all, flats)) else _CLOSED_FORM_SHARE
        number = getattr(rule, "number", 1)
        self.order = max(DEFAULT_ORDER, number if isinstance(number, int) else max(number))

    def rows(self, width: int) -> int:
        """Return how many rows of so many pairs of boxes stay in cache."""
        return rows_at_a_time(width, self.share)

    def __call__(self, lower: Array, upper: Array, lower2: Array, upper2: Array) -> Array:
        """Average over boxes and others, or over boxes and themselves where both are the same."""
        if isinstance(self.kernel, Kernel):
            return self.kernel.pair(lower, lower2)
        first = _intervals(lower, upper, self.flat)
        second = first if lower2 is lower else _intervals(lower2, upper2, self.other)
        shape = jnp.broadcast_shapes(lower.shape[:-1], lower2.shape[:-1])
        values = (self._term(term, first, second) for term in self.kernel)
        return jnp.broadcast_to(functools.reduce(jnp.add, values), shape)

    def _term(self, term: Term, first: list[Interval], second: list[Interval]) -> Array:
        value = jnp.asarray(term.coefficient)
        for dims, kernel in term.factors:
            if len(dims) > 1:
                x, z = (jnp.stack([s[d].lower for d in dims], -1) for s in (first, second))
                value = value * kernel.pair(x, z)
        for dims, kernels in alike(term.factors, self.flat, self.other):
            if len(dims) == 1 or not self.together:
                for d, kernel in zip(dims, kernels, strict=True):
                    value = value * interval_mean(kernel, first[d], second[d], self.order)
                continue
            one, other = first[dims[0]], second[dims[0]]
            sides = (first,) if one is other else (first, second)
            ends = [jnp.stack([side[d][i] for d in dims]) for side in sides for i in (0, 1)]
            found = means_of(kernels, ends, (one.flat, other.flat), self.order)
            value = functools.reduce(jnp.multiply, found, value)
        return value


def _intervals(lower: Array, upper: Array, flat: tuple[bool, ...]) -> list[Interval]:
    return [Interval(lower[..., d], upper[..., d], f) for d, f in enumerate(flat)]


_Route = tuple[_Mean, list[Atoms]]


def _over_routes(
    factor: Callable[..., Array], routes: Iterable[list[_Route]], zero: Array
) -> Array:
    """Sum over routes the product of a factor of each mean and the atoms that go with it."""
    products = (functools.reduce(jnp.multiply, (factor(m, *a) for m, a in r)) for r in routes)
    return functools.reduce(jnp.add, products, zero)


def _routes(kernel: Kernel, supports: Sequence[Support], rule: Rule) -> Iterator[list[_Route]]:
    """Split a kernel into groups of terms, and write the supports as each group needs them.

    A covariance is the sum over what this yields of the product over each list. A term that joins
    inputs sees quadrature nodes along those inputs alone. What a support becomes depends on the
    term and on nothing else, so that all blocks of a covariance agree.
    """
    solid = {d for s in supports for d in s.solid}
    if not any(isinstance(s, Products) for s in supports):
        if all(all(s.pointlike) for s in supports) and not (solid and has_white(kernel)):
            atoms = [s.atoms() for s in supports]
            yield [(_Mean(kernel, [a.flat for a in atoms], rule), atoms)]
            return
        groups: dict[tuple[int, ...], list[Term]] = {}
        for term in _not_vanishing(kernel, solid):
            groups.setdefault(_joined(term), []).append(term)
        for terms in groups.values():
            yield [_route(terms, supports, rule)]
        return
    for term in _not_vanishing(kernel, solid):
        partition = _common_blocks(term, supports)
        pieces = zip(*(s.factors(partition) for s in supports), strict=True)
        yield [
            _route([_restrict(term, columns, first=i == 0)], piece, along(rule, columns))
            for i, (columns, piece) in enumerate(zip(partition, pieces, strict=True))
        ]


def _not_vanishing(kernel: Kernel, solid: set[int]) -> Iterator[Term]:
    """Return the terms without those of White along inputs whose nodes stand for regions."""
    for term in kernel.sum_of_products():
        if not any(solid & _white_along(f.kernel, f.dims) for f in term.factors):
            yield term


def _white_along(kernel: Kernel, dims: tuple[int, ...]) -> set[int]:
    """Return the inputs that White sees inside a kernel of the columns `dims`."""
    if isinstance(kernel, View):
        return _white_along(kernel.kernel, tuple(dims[d] for d in kernel.columns))
    if isinstance(kernel, White):
        return {dims[d] for d in kernel.columns}
    if isinstance(kernel, Product):
        return {d for part in kernel.kernels for d in _white_along(part, dims)}
    return set(dims) if has_white(kernel) else set()


def _route(terms: Sequence[Term], supports: Sequence[Support], rule: Rule) -> _Route:
    joined = _joined(terms[0])
    atoms = [s.atoms(joined, rule) for s in supports]
    widened = any(not f for s in supports for d, f in enumerate(s.pointlike) if d in joined)
    if widened and any(has_white(f.kernel) for t in terms for f in t.factors if len(f.dims) > 1):
        raise ValueError(
            "White times a kernel that joins several inputs cannot be averaged over boxes; use"
            " product=True in the other kernel, or add White instead of multiplying."
        )
    pairs = math.prod(a.weights.size for a in atoms)
    return _Mean(tuple(terms), [a.flat for a in atoms], rule, pairs), atoms


def _common_blocks(term: Term, supports: Sequence[Support]) -> Partition:
    """Return the finest groups of inputs over which supports and term are all products."""
    groups = [{d} for d in range(supports[0].dimension)]
    for joined in (*(b for s in supports for b in s.blocks), *(f.dims for f in term.factors)):
        merged = {d for g in groups if g & set(joined) for d in g}
        groups = [g for g in groups if not g & merged] + [merged]
    return tuple(sorted(tuple(sorted(g)) for g in groups))


def _restrict(term: Term, columns: tuple[int, ...], *, first: bool) -> Term:
    """Return a term's factors on some columns, numbered anew; the first has the coefficient."""
    factors = tuple(
        Factor(tuple(columns.index(d) for d in f.dims), f.kernel)
        for f in term.factors
        if f.dims[0] in columns
    )
    return Term(term.coefficient if first else 1.0, factors)


def _joined(term: Term) -> tuple[int, ...]:
    """Return the inputs that a factor of the term joins with others."""
    return tuple(sorted(d for f in term.factors if len(f.dims) > 1 for d in f.dims))


def _contract(weights: Float[Array, "b s"], values: Float[Array, "b s m"]) -> Float[Array, "b m"]:
    if weights.shape[1] == 1:
        return weights * values[:, 0, :]
    return jnp.einsum("bs,bsm->bm", weights, values)
