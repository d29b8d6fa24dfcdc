"""Kernels with structure of their own: periodic, linear, constant, white."""

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.kernels.base import Factor, Kernel, LeafKernel, Term
from mrgp.kernels.binding import Binding, Open, bind_origin, bind_variance, check_shape
from mrgp.kernels.members import single_kernels
from mrgp.kernels.spectral import SpectralMixture
from mrgp.kernels.stationary import Stationary
from mrgp.parameters import LogNormal, Parameter, fixed, positive

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

    def pair(
        self, x: Float[AnyArray, "*#batch d"], z: Float[AnyArray, "*#batch d"]
    ) -> Float[Array, "*batch"]:
        sines = (jnp.sin(jnp.pi * (x[..., d] - z[..., d]) / self.period) ** 2 for d in self.columns)
        total = functools.reduce(jnp.add, sines)
        return self.variance * jnp.exp(-2.0 * total / self.lengthscale**2)

    def bind(self, binding: Binding) -> Kernel:
        period = self.period if isinstance(self.period, Parameter) else fixed(self.period)
        check_shape(period.raw, ((),), "period")
        if not np.all(np.asarray(period.value) > 0):
            raise ValueError(f"Periodic: period must be positive; got {float(period.value)}.")
        lengthscale = self.lengthscale
        if not isinstance(lengthscale, Parameter):
            prior = LogNormal(np.ones(()), np.ones(())) if binding.priors else None
            start = 1.0 if lengthscale is None else lengthscale
            lengthscale = positive(start, prior, floor=min(SHORTEST, 0.5 * np.min(start)))
        check_shape(lengthscale.raw, ((),), "lengthscale")
        return dataclasses.replace(
            self,
            period=period,
            lengthscale=lengthscale,
            variance=bind_variance(self.variance, binding),
            dims=self.bound_dims(binding.geometry),
        )

    def sum_of_products(self) -> tuple[Term, ...]:
        one = dataclasses.replace(self, variance=np.ones(()), dims=(0,))
        return (Term(self.variance, tuple(Factor((d,), one) for d in self.columns)),)


class Linear(LeafKernel):
    """Linear functions of the inputs: sum_d variance_d (x - origin)_d (z - origin)_d.

    `origin` is in the user's coordinates; a fit takes the centre of the data unless it is given.

    >>> Linear(variance=2.0, origin=1.0)([[3.0]], [[2.0]])
    array([[4.]])
    """

    variance: Open = None
    origin: Open = None

    def pair(
        self, x: Float[AnyArray, "*#batch d"], z: Float[AnyArray, "*#batch d"]
    ) -> Float[Array, "*batch"]:
        variance, origin = self.per_input(self.variance), self.per_input(self.origin)
        products = (
            v * (x[..., d] - o) * (z[..., d] - o)
            for d, v, o in zip(self.columns, variance, origin, strict=True)
        )
        return functools.reduce(jnp.add, products)

    def bind(self, binding: Binding) -> Kernel:
        dims = self.bound_dims(binding.geometry)
        origin = bind_origin(self.origin, dims, binding, "Linear")
        extent = binding.geometry.extent[list(dims)]
        variance = bind_variance(self.variance, binding, scale=1.0 / extent**2)
        return dataclasses.replace(self, variance=variance, origin=origin, dims=dims)

    def sum_of_products(self) -> tuple[Term, ...]:
        variance, origin = self.per_input(self.variance), self.per_input(self.origin)
        one = np.ones(())
        return tuple(
            Term(v, (Factor((d,), Linear(variance=one, origin=o, dims=(0,))),))
            for d, v, o in zip(self.columns, variance, origin, strict=True)
        )


class Constant(LeafKernel):
    """A constant: the same unknown level everywhere.

    >>> Constant(2.0)([[0.0]], [[5.0]])
    array([[2.]])
    """

    variance: Open = None

    def pair(
        self, x: Float[AnyArray, "*#batch d"], z: Float[AnyArray, "*#batch d"]
    ) -> Float[Array, "*batch"]:
        shape = jnp.broadcast_shapes(x.shape[:-1], z.shape[:-1])
        return jnp.broadcast_to(jnp.asarray(self.variance), shape)

    def bind(self, binding: Binding) -> Kernel:
        dims = self.bound_dims(binding.geometry)
        return dataclasses.replace(self, variance=bind_variance(self.variance, binding), dims=dims)

    def sum_of_products(self) -> tuple[Term, ...]:
        return (Term(self.variance, ()),)


class White(LeafKernel):
    """Variation of its own at every place: variance where x = z, zero elsewhere.

    It averages to nothing over any region of positive measure.

    >>> White(2.0)([[0.0], [1.0]])
    array([[2., 0.],
           [0., 2.]])
    """

    variance: Open = None

    def pair(
        self, x: Float[AnyArray, "*#batch d"], z: Float[AnyArray, "*#batch d"]
    ) -> Float[Array, "*batch"]:
        same = (x[..., d] == z[..., d] for d in self.columns)
        return jnp.where(functools.reduce(jnp.logical_and, same), self.variance, 0.0)

    def bind(self, binding: Binding) -> Kernel:
        dims = self.bound_dims(binding.geometry)
        return dataclasses.replace(self, variance=bind_variance(self.variance, binding), dims=dims)

    def sum_of_products(self) -> tuple[Term, ...]:
        one = White(variance=np.ones(()), dims=(0,))
        return (Term(self.variance, tuple(Factor((d,), one) for d in self.columns)),)


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
