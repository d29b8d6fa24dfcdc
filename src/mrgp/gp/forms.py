"""Kernels of one form, which differ in their numbers alone: they are compiled once for all."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp.gp.averages import Interval, interval_mean
from mrgp.kernels import Factor, Kernel


def for_each(function: Callable[..., Any], kernels: Sequence[Any]) -> list[Any]:
    """Apply a function to kernels; those of one form go together, and are compiled once.

    >>> from mrgp import RBF
    >>> kernels, here = [RBF(1.0, variance=v, dims=0) for v in (1.0, 4.0)], jnp.zeros(1)
    >>> [float(found) for found in for_each(lambda kernel: kernel.pair(here, here), kernels)]
    [1.0, 4.0]
    """
    if len({form_of(kernel) for kernel in kernels}) != 1 or len(kernels) == 1:
        return [function(kernel) for kernel in kernels]
    found = jax.vmap(function)(jax.tree.map(lambda *leaves: jnp.stack(leaves), *kernels))
    return [jax.tree.map(lambda x, q=q: x[q], found) for q in range(len(kernels))]


def form_of(kernel: Any) -> tuple[Any, ...]:
    """Return all of a kernel but its numbers: its structure, and the shapes of its leaves."""
    leaves, structure = jax.tree.flatten(kernel)
    return structure, *map(jnp.shape, leaves)


def alike(
    factors: Sequence[Factor], flat: Sequence[bool], other: Sequence[bool]
) -> Iterator[tuple[list[int], list[Kernel]]]:
    """Group the factors over single inputs by the form of their kernel and of their sides."""
    found: dict[Any, list[tuple[int, Kernel]]] = {}
    for dims, kernel in factors:
        if len(dims) == 1:
            (d,) = dims
            found.setdefault((form_of(kernel), flat[d], other[d]), []).append((d, kernel))
    for group in found.values():
        dims, kernels = zip(*group, strict=True)
        yield list(dims), list(kernels)


def means_of(
    kernels: Sequence[Kernel], ends: Sequence[Array], flat: tuple[bool, bool], order: int
) -> Float[Array, "k ..."]:
    """Return the means of kernels of one form, each over its own pairs of intervals.

    They are found together: closed forms are long, and are compiled once for all inputs. `ends`
    has the lower and upper ends of the first and, unless they are the same, of the others.
    """

    def mean(kernel: Kernel, *ends: Array) -> Array:
        first = second = Interval(ends[0], ends[1], flat[0])
        if len(ends) > 2:
            second = Interval(ends[2], ends[3], flat[1])
        shape = jnp.broadcast_shapes(*map(jnp.shape, ends))
        return jnp.broadcast_to(interval_mean(kernel, first, second, order), shape)

    return jax.vmap(mean)(jax.tree.map(lambda *leaves: jnp.stack(leaves), *kernels), *ends)
