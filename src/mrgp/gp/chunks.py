"""Work through rows in chunks that fit in cache, recomputed in the backward pass."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

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
    n = arrays[0].shape[0]
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
    if arrays[0].shape[0] <= size:
        return function(*(jnp.asarray(x) for x in arrays))
    _, parts = _split(arrays, size)
    block = jax.checkpoint(lambda part: function(*part))
    shapes = jax.eval_shape(block, jax.tree.map(lambda x: x[0], parts))
    zero = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    def add(total: Any, part: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, block(part)), None

    return jax.lax.scan(add, zero, parts)[0]


def _split(arrays: tuple[Any, ...], size: int) -> tuple[int, tuple[Array, ...]]:
    """Return arrays as chunks of equal size, the last filled up with zeros."""
    n = arrays[0].shape[0]
    chunks = math.ceil(n / size)
    size = math.ceil(n / chunks)

    def split(x: Any) -> Array:
        padding = [(0, chunks * size - n)] + [(0, 0)] * (x.ndim - 1)
        return jnp.pad(jnp.asarray(x), padding).reshape(chunks, size, *x.shape[1:])

    return chunks, tuple(split(x) for x in arrays)
