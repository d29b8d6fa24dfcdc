"""Kernels with structure of their own: periodic, linear, white, categories."""

import functools
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mrgp._types import Batch, BatchInputs
from mrgp.kernels.base import Constant, Factor, Kernel, LeafKernel, Term
from mrgp.kernels.binding import Binding, Open, bind_held, bind_origin, bind_unitless, bind_variance
from mrgp.kernels.composed import single_kernels
from mrgp.kernels.spectral import SpectralMixture
from mrgp.kernels.stationary import Stationary

SHORTEST = 0.03
"""The shortest lengthscale of `Periodic` that a fit may reach; its series is accurate above it."""


class Periodic(LeafKernel):
    """A kernel that repeats: variance * exp(-2 sum_d sin^2(pi (x - z)_d / period) / lengthscale^2).

    The period is in the units of the input and stays fixed unless given as `positive(24.0)`; the
    lengthscale has no unit.

    >>> Periodic(24)([[1.0]], [[49.0]]).round(4)
    array([[1.]])
    """

    period: Open = 1.0
    lengthscale: Open = None

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        sines = (jnp.sin(jnp.pi * (x[..., d] - z[..., d]) / self.period) ** 2 for d in self.columns)
        total = functools.reduce(jnp.add, sines)
        return self.variance * jnp.exp(-2.0 * total / self.lengthscale**2)

    def bind_numbers(self, dims: tuple[int, ...], binding: Binding) -> dict[str, Any]:
        return super().bind_numbers(dims, binding) | {
            "period": bind_held(self.period, "Periodic: period", zero=False),
            "lengthscale": bind_unitless(self.lengthscale, binding, "lengthscale", SHORTEST),
        }

    def sum_of_products(self) -> tuple[Term, ...]:
        return self.product_over_inputs()


class Linear(LeafKernel):
    """Linear functions of the inputs: sum_d variance_d (x - origin)_d (z - origin)_d.

    `origin` is in the user's coordinates; a fit takes the centre of the data unless it is given.

    >>> Linear(variance=2.0, origin=1.0)([[3.0]], [[2.0]])
    array([[4.]])
    """

    variance: Open = None
    origin: Open = None

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        variance, origin = self.per_input(self.variance), self.per_input(self.origin)
        products = (
            v * (x[..., d] - o) * (z[..., d] - o)
            for d, v, o in zip(self.columns, variance, origin, strict=True)
        )
        return functools.reduce(jnp.add, products)

    def bind_numbers(self, dims: tuple[int, ...], binding: Binding) -> dict[str, Any]:
        extent = binding.geometry.extent[list(dims)]
        return {
            "variance": bind_variance(self.variance, binding, scale=1.0 / extent**2),
            "origin": bind_origin(self.origin, dims, binding, "Linear"),
        }

    def sum_of_products(self) -> tuple[Term, ...]:
        variance, origin = self.per_input(self.variance), self.per_input(self.origin)
        return tuple(
            Term(v, (Factor((d,), Linear(variance=np.ones(()), origin=o, dims=(0,))),))
            for d, v, o in zip(self.columns, variance, origin, strict=True)
        )


class White(LeafKernel):
    """Variation of its own at every place: variance where x = z, zero elsewhere.

    It averages to nothing over any region of positive measure.

    >>> White(2.0)([[0.0], [1.0]])
    array([[2., 0.],
           [0., 2.]])
    """

    variance: Open = None
    reads_codes: ClassVar[bool] = True

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        same = (x[..., d] == z[..., d] for d in self.columns)
        return jnp.where(functools.reduce(jnp.logical_and, same), self.variance, 0.0)

    def sum_of_products(self) -> tuple[Term, ...]:
        return self.product_over_inputs()


class Category(LeafKernel):
    """Levels of a category: variance where x and z are of one, zero elsewhere (theory 12.3).

    It sees codes, which count from zero; those below zero are of no category, and vary with
    nothing, and so are all but those that `only` names, if it does. Over a region it averages as
    its nodes do, by their shares of each category.

    >>> Category(2.0)([[0.0], [1.0]], [[1.0]])
    array([[0.],
           [2.]])
    """

    variance: Open = None
    origin: Open = None
    only: tuple[int, ...] | None = eqx.field(static=True, default=None)
    reads_codes: ClassVar[bool] = True

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        same = jnp.ones((), bool)
        for d, origin in zip(self.columns, self.per_input(self.origin), strict=True):
            code, other = jnp.round(x[..., d] - origin), jnp.round(z[..., d] - origin)
            counts = code >= 0 if self.only is None else jnp.isin(code, np.array(self.only, float))
            same = same & (code == other) & counts
        return jnp.where(same, self.variance, 0.0)

    def bind_numbers(self, dims: tuple[int, ...], binding: Binding) -> dict[str, Any]:
        given = np.zeros(()) if self.origin is None else self.origin
        origin = bind_origin(given, dims, binding, "Category")
        return super().bind_numbers(dims, binding) | {"origin": origin}

    def sum_of_products(self) -> tuple[Term, ...]:
        return self.product_over_inputs(origin=self.per_input(self.origin))


def has_white(kernel: Kernel) -> bool:
    """Tell whether a kernel contains `White` anywhere.

    >>> has_white(Linear() + White()), has_white(Linear() + Constant())
    (True, False)
    """
    return any(isinstance(k, White) for k in single_kernels(kernel))


def is_stationary(kernel: Kernel) -> bool:
    """Tell whether a kernel is known to depend on the difference of its inputs alone.

    >>> is_stationary(Periodic(24) + White()), is_stationary(Linear())
    (True, False)
    """
    known = Stationary | Periodic | SpectralMixture | Constant | White
    return all(isinstance(k, known) for k in single_kernels(kernel))
