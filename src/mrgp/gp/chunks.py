"""Work through rows in chunks that fit in cache, recomputed in the backward pass."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from mrgp.devices import each_share, gathered, shares

_CPU_CHUNK_BYTES = 2**22
_GPU_CHUNK_BYTES = 2**28


def rows_at_a_time(width: int, share: int = 1) -> int:
    """Return how many rows of `width` numbers go together; `share` divides the budget.

    >>> rows_at_a_time(1024, share=4) * 4 == rows_at_a_time(1024)
    True
    """
    budget = _CPU_CHUNK_BYTES if jax.default_backend() == "cpu" else _GPU_CHUNK_BYTES
    return max(1, budget // (share * 8 * max(width, 1)))


def map_rows(function: Callable[..., Any], arrays: tuple[Any, ...], size: int) -> Any:
    """Apply a function of rows, `size` at a time; it returns arrays with the same rows.

    >>> map_rows(lambda x: 2 * x, (jnp.arange(3),), size=2).tolist()
    [0, 2, 4]
    """
    devices, n = shares(), arrays[0].shape[0]
    if devices > 1:
        _, parts = _split(arrays, math.ceil(n / devices), devices)
        found = each_share(lambda *part: map_rows(function, part, size), *parts)
        return jax.tree.map(lambda x: gathered(x.reshape(-1, *x.shape[2:])[:n]), found)
    if n <= size:
        return function(*(jnp.asarray(x) for x in arrays))
    chunks, parts = _split(arrays, size)
    mapped = jax.lax.map(jax.checkpoint(lambda part: function(*part)), parts)
    return jax.tree.map(lambda x: x.reshape(chunks * x.shape[1], *x.shape[2:])[:n], mapped)


def sum_rows(function: Callable[..., Any], arrays: tuple[Any, ...], size: int) -> Any:
    """Sum a function over rows, `size` at a time; rows of zeros must add nothing.

    >>> int(sum_rows(jnp.sum, (jnp.arange(5),), size=2))
    10
    """
    devices, n = shares(), arrays[0].shape[0]
    if devices > 1:
        # Each device works through a part of the rows as it would through all of them.
        _, parts = _split(arrays, math.ceil(n / devices), devices)
        sums = each_share(lambda *part: _sum_blocks(function, part, size), *parts)
        return jax.tree.map(lambda part: jnp.sum(part, 0), sums)
    return _sum_blocks(function, arrays, size)


def _sum_blocks(function: Callable[..., Any], arrays: tuple[Any, ...], size: int) -> Any:
    if arrays[0].shape[0] <= size:
        return function(*(jnp.asarray(x) for x in arrays))
    _, parts = _split(arrays, size)
    block = jax.checkpoint(lambda part: function(*part))
    shapes = jax.eval_shape(block, jax.tree.map(lambda x: x[0], parts))
    zero = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    def add(total: Any, part: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, block(part)), None

    return jax.lax.scan(add, zero, parts)[0]


def sum_with_slopes(
    function: Callable[..., Array], shared: Any, rows: Any, beside: Any, size: int
) -> Array:
    """Sum function(shared, rows, beside) over rows, with slopes found in the same pass.

    Slopes of `sum_rows` work through the rows twice. Here those by what is `shared` and by `rows`
    come with the value; nothing is differentiated by `beside`.

    >>> x, two = jnp.arange(3.0), jnp.full(3, 2.0)
    >>> def total(a):
    ...     return sum_with_slopes(lambda a, x, z: jnp.sum(a * x * z), a, x, two, size=2)
    >>> [float(part) for part in jax.value_and_grad(total)(jnp.asarray(2.0))]
    [12.0, 6.0]
    """
    slopes = jax.value_and_grad(function, argnums=(0, 1))

    def add(total: Any, part: Any) -> tuple[Any, Any]:
        value, (by_shared, by_rows) = slopes(total[0], *part)
        return (total[0], *jax.tree.map(jnp.add, total[1:], (value, by_shared))), by_rows

    @jax.custom_vjp
    def total(shared: Any, rows: Any, beside: Any) -> Array:
        leaves, tree = jax.tree.flatten((rows, beside))
        part = lambda *some: function(shared, *jax.tree.unflatten(tree, some))  # noqa: E731
        return sum_rows(part, tuple(leaves), size)

    def forward(shared: Any, rows: Any, beside: Any) -> tuple[Array, Any]:
        leaves, tree = jax.tree.flatten((rows, beside))
        count = leaves[0].shape[0]
        _, parts = _split(tuple(leaves), min(size, count))
        none = jnp.zeros(()), jax.tree.map(jnp.zeros_like, shared)
        (_, value, by_shared), by_rows = jax.lax.scan(
            add, (shared, *none), jax.tree.unflatten(tree, parts)
        )
        joined = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:count], by_rows)
        return value, (by_shared, joined)

    def backward(found: Any, slope: Array) -> tuple[Any, Any, None]:
        by_shared, by_rows = jax.tree.map(lambda x: slope * x, found)
        return by_shared, by_rows, None

    total.defvjp(forward, backward)
    return total(shared, rows, beside)


def _split(
    arrays: tuple[Any, ...], size: int, chunks: int | None = None
) -> tuple[int, tuple[Array, ...]]:
    """Return arrays as chunks of equal size, the last filled up with zeros."""
    n = arrays[0].shape[0]
    if chunks is None:
        chunks = math.ceil(n / size)
        size = math.ceil(n / chunks)

    def split(x: Any) -> Array:
        padding = [(0, chunks * size - n)] + [(0, 0)] * (x.ndim - 1)
        return jnp.pad(jnp.asarray(x), padding).reshape(chunks, size, *x.shape[1:])

    return chunks, tuple(split(x) for x in arrays)
