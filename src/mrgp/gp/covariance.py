"""Covariances of aggregates: a kernel meets two supports (theory 1.2 to 1.4).

Terms of a kernel that are products over the inputs are averaged over boxes in closed form; where a
factor joins several inputs along which a region has width, the region becomes quadrature nodes.
Rows are worked through in chunks that fit in cache, recomputed in the backward pass.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import float64
from mrgp.gp.averages import DEFAULT_ORDER, Interval, interval_mean
from mrgp.kernels import Binding, Kernel, Term, has_white
from mrgp.parameters import unwrap
from mrgp.supports import DEFAULT_RULE, Atoms, GaussLegendre, Geometry, Rule, Sobol, Support

_CPU_CHUNK_BYTES = 2**20
_GPU_CHUNK_BYTES = 2**28
_CLOSED_FORM_SHARE = 8
_SYMMETRIC_BLOCKS = 4


def cross_covariance(
    kernel: Kernel, first: Support, second: Support, rule: Rule = DEFAULT_RULE
) -> Float[Array, "n m"]:
    """Return cov((L f)_n, (L' f)_m) for f with this kernel (bound and unwrapped)."""
    blocks = (_cross(mean, a, b) for mean, (a, b) in _routes(kernel, (first, second), rule))
    return functools.reduce(jnp.add, blocks)


def _cross(mean: "_Mean", a: Atoms, b: Atoms) -> Float[Array, "n m"]:
    columns = b.weights.shape[0] * b.weights.shape[1]
    z_lower, z_upper = (jnp.asarray(x).reshape(1, 1, columns, -1) for x in (b.lower, b.upper))

    def chunk(lower: Array, upper: Array, weights: Array) -> Array:
        values = mean(lower[:, :, None, :], upper[:, :, None, :], z_lower, z_upper)
        rows = _contract(weights, values)
        if b.weights.shape[1] == 1:
            return rows * b.weights[None, :, 0]
        return jnp.einsum("nms,ms->nm", rows.reshape(-1, *b.weights.shape), b.weights)

    return _by_chunks(chunk, a, a.weights.shape[1] * columns, mean.closed)


def variance(kernel: Kernel, support: Support, rule: Rule = DEFAULT_RULE) -> Float[Array, " n"]:
    """Return var((L f)_n) for f with this kernel (bound and unwrapped)."""
    parts = (_variance(mean, atoms) for mean, (atoms,) in _routes(kernel, (support,), rule))
    return functools.reduce(jnp.add, parts)


def _variance(mean: "_Mean", atoms: Atoms) -> Float[Array, " n"]:
    nodes = atoms.weights.shape[1]
    edges = np.linspace(0, nodes, min(nodes, _SYMMETRIC_BLOCKS) + 1).astype(int)
    blocks = [slice(a, b) for a, b in itertools.pairwise(edges)]

    def chunk(lower: Array, upper: Array, weights: Array) -> Array:
        if nodes == 1:
            return weights[:, 0] ** 2 * mean(lower[:, 0], upper[:, 0])
        # Pairs of nodes are symmetric: blocks off the diagonal count twice.
        total = jnp.zeros(weights.shape[0])
        for i, j in itertools.combinations_with_replacement(blocks, 2):
            rows, columns = (
                (lower[:, i, None], upper[:, i, None]),
                (lower[:, None, j], upper[:, None, j]),
            )
            block = jnp.einsum("ns,nst,nt->n", weights[:, i], mean(*rows, *columns), weights[:, j])
            total += block if i == j else 2.0 * block
        return total

    return _by_chunks(chunk, atoms, nodes**2, mean.closed)


def full_covariance(
    kernel: Kernel, supports: tuple[Support, ...], rule: Rule = DEFAULT_RULE
) -> list[list[Float[Array, "n m"]]]:
    """Return the blocks of the covariance among several supports."""
    blocks: list[list[Array]] = [[] for _ in supports]
    for i, a in enumerate(supports):
        for j, b in enumerate(supports):
            blocks[i].append(blocks[j][i].T if j < i else cross_covariance(kernel, a, b, rule))
    return blocks


class QuadratureError(NamedTuple):
    """How far prior standard deviations are off under a rule, relative to a finer one."""

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
    Gauss-Legendre with up to three times the nodes otherwise. The kernel's lengthscale matters: a
    rule that is good for a smooth field may be poor for a rough one.

    >>> import mrgp
    >>> cells = mrgp.boxes([[0.0, 0.0]], [[1.0, 1.0]])
    >>> print(mrgp.quadrature_error(cells, mrgp.Midpoint(10), mrgp.RBF(lengthscale=0.5)))
    relative error of the prior sd: at most 1.9e-03 (region 0), 1.9e-03 on average
    """
    geometry = Geometry.of((support,))
    bound = unwrap(kernel.bind(Binding(geometry)))
    support = support.shift(geometry.centre)
    if finer is not None:
        reference = support.quadrature(finer)
    elif needs_nodes(bound, support):
        reference = support.quadrature(_finer(rule, support.atoms().flat.count(False)))
    else:
        reference = support
    coarse, fine = variance(bound, support.quadrature(rule)), variance(bound, reference)
    error = np.abs(np.sqrt(np.asarray(coarse) / np.asarray(fine)) - 1.0)
    return QuadratureError(float(error.max()), float(error.mean()), int(error.argmax()))


def _finer(rule: Rule, sides: int) -> Rule:
    number = getattr(rule, "number", 8)
    most = max(number) if isinstance(number, tuple) else number
    if isinstance(rule, Sobol):
        most = math.ceil(most ** (1 / sides))
    return GaussLegendre(max(most + 2, min(3 * most, int(1000 ** (1 / sides)))))


def needs_nodes(kernel: Kernel, support: Support) -> bool:
    """Tell whether a kernel joins inputs along which a support has width."""
    flat = support.atoms().flat
    return not all(flat[d] for term in kernel.sum_of_products() for d in _joined(term))


class _Mean:
    """The mean of a kernel, or of some of its terms, over pairs of boxes."""

    def __init__(
        self, kernel: Kernel | tuple[Term, ...], flats: Sequence[tuple[bool, ...]], rule: Rule
    ):
        self.kernel, self.flat, self.other = kernel, flats[0], flats[-1]
        self.closed = not all(map(all, flats))
        number = getattr(rule, "number", 1)
        self.order = max(DEFAULT_ORDER, number if isinstance(number, int) else max(number))

    def __call__(
        self, lower: Array, upper: Array, lower2: Array | None = None, upper2: Array | None = None
    ) -> Array:
        """Average over boxes and others, or over boxes and themselves where none are given."""
        if isinstance(self.kernel, Kernel):
            return self.kernel.pair(lower, lower if lower2 is None else lower2)
        first = second = _intervals(lower, upper, self.flat)
        shape = lower.shape[:-1]
        if lower2 is not None and upper2 is not None:
            second = _intervals(lower2, upper2, self.other)
            shape = jnp.broadcast_shapes(shape, lower2.shape[:-1])
        values = (self._term(term, first, second) for term in self.kernel)
        return jnp.broadcast_to(functools.reduce(jnp.add, values), shape)

    def _term(self, term: Term, first: list[Interval], second: list[Interval]) -> Array:
        value = jnp.asarray(term.coefficient)
        for dims, kernel in term.factors:
            if len(dims) == 1:
                (d,) = dims
                value = value * interval_mean(kernel, first[d], second[d], self.order)
            else:
                x, z = (jnp.stack([s[d].lower for d in dims], -1) for s in (first, second))
                value = value * kernel.pair(x, z)
        return value


def _intervals(lower: Array, upper: Array, flat: tuple[bool, ...]) -> list[Interval]:
    return [Interval(lower[..., d], upper[..., d], f) for d, f in enumerate(flat)]


def _routes(
    kernel: Kernel, supports: Sequence[Support], rule: Rule
) -> Iterator[tuple[_Mean, list[Atoms]]]:
    """Split a kernel into groups of terms, and write the supports as each group needs them.

    A term that joins inputs sees quadrature nodes along those inputs alone. What a support becomes
    depends on the term and on nothing else, so that all blocks of a covariance agree.
    """
    if all(all(s.atoms().flat) for s in supports):
        atoms = [s.atoms() for s in supports]
        yield _Mean(kernel, [a.flat for a in atoms], rule), atoms
        return
    groups: dict[tuple[int, ...], list[Term]] = {}
    for term in kernel.sum_of_products():
        groups.setdefault(_joined(term), []).append(term)
    for joined, terms in groups.items():
        atoms = [s.atoms(joined, rule) for s in supports]
        widened = any(not f for s in supports for d, f in enumerate(s.atoms().flat) if d in joined)
        if widened and any(
            has_white(f.kernel) for t in terms for f in t.factors if len(f.dims) > 1
        ):
            raise ValueError(
                "White times a kernel that joins several inputs cannot be averaged over boxes; use"
                " product=True in the other kernel, or add White instead of multiplying."
            )
        yield _Mean(tuple(terms), [a.flat for a in atoms], rule), atoms


def _joined(term: Term) -> tuple[int, ...]:
    """Return the inputs that a factor of the term joins with others."""
    return tuple(sorted(d for f in term.factors if len(f.dims) > 1 for d in f.dims))


def _contract(weights: Float[Array, "b s"], values: Float[Array, "b s m"]) -> Float[Array, "b m"]:
    if weights.shape[1] == 1:
        return weights * values[:, 0, :]
    return jnp.einsum("bs,bsm->bm", weights, values)


def _by_chunks(
    function: Callable[[Array, Array, Array], Array], atoms: Atoms, width: int, closed: bool
) -> Array:
    """Apply a function to rows of atoms, as many at a time as stay in cache at `width` each."""
    budget = _CPU_CHUNK_BYTES if jax.default_backend() == "cpu" else _GPU_CHUNK_BYTES
    if closed:
        budget //= _CLOSED_FORM_SHARE
    arrays = tuple(jnp.asarray(x) for x in atoms[:3])
    n = arrays[0].shape[0]
    size = max(1, budget // (8 * max(width, 1)))
    if n <= size:
        return function(*arrays)
    chunks = math.ceil(n / size)
    size = math.ceil(n / chunks)

    def split(x: Array) -> Array:
        padding = [(0, chunks * size - n)] + [(0, 0)] * (x.ndim - 1)
        return jnp.pad(x, padding).reshape(chunks, size, *x.shape[1:])

    checkpointed = jax.checkpoint(lambda parts: function(*parts))
    result = jax.lax.map(checkpointed, tuple(split(x) for x in arrays))
    return result.reshape(chunks * size, *result.shape[2:])[:n]
