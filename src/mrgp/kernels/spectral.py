"""A kernel given by its spectrum: a mixture of bands of frequencies."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.kernels.base import Factor, Kernel, LeafKernel, Term
from mrgp.kernels.binding import LONGEST, VARIANCE_LOG_SD, Binding, Open, bind_variance
from mrgp.parameters import LogNormal, Parameter, fixed, positive
from mrgp.supports import Geometry

GOLDEN = 0.5 * (5**0.5 - 1)
ONE_PERCENT = 2.326
NARROWEST_RATIO = 2.0


class SpectralMixture(LeafKernel):
    """A sum of waves that fade: each component is a band of frequencies, in cycles per unit.

    With s_q the weight of component q over the sum of weights, of which only ratios matter,

        k = variance sum_q s_q prod_d exp(-2 (pi bandwidth_qd t_d)^2) cos(2 pi frequency_qd t_d)

    at the difference t = x - z. Frequencies and bandwidths have the shape [components, inputs]; of
    shape [components] they are shared by the inputs. Left open, frequencies start spread between
    one cycle over the domain and one in two spacings, the same in every run.

    Means over boxes are closed form at any frequency. Where another kernel multiplies this one on
    the same input, they are quadrature, good for intervals of up to 15 periods (theory 1.4). Both
    cost far more than means of a Matern: fit intervals by the hundred, not by the thousand.

    >>> SpectralMixture(1, frequency=[0.25], bandwidth=[0.01])([[0.0]], [[2.0]]).round(3)
    array([[-0.992]])
    """

    components: Any = eqx.field(static=True, default=4)
    weight: Open = None
    frequency: Open = None
    bandwidth: Open = None

    def __check_init__(self) -> None:
        if type(self.components) is not int or self.components < 1:
            raise ValueError(
                "SpectralMixture: components must be a whole number, at least 1; got"
                f" {self.components!r}."
            )

    def pair(
        self, x: Float[AnyArray, "*#batch d"], z: Float[AnyArray, "*#batch d"]
    ) -> Float[Array, "*batch"]:
        shares, frequency, bandwidth = self.bands()
        lags = [x[..., d] - z[..., d] for d in self.columns]
        values = []
        for q in range(self.components):
            squares = [(bandwidth[q, i] * lag) ** 2 for i, lag in enumerate(lags)]
            waves = [jnp.cos(2.0 * jnp.pi * frequency[q, i] * lag) for i, lag in enumerate(lags)]
            fade = jnp.exp(-2.0 * jnp.pi**2 * functools.reduce(jnp.add, squares))
            values.append(shares[q] * fade * functools.reduce(jnp.multiply, waves))
        return self.variance * functools.reduce(jnp.add, values)

    def bands(self) -> tuple[Float[Array, " q"], Float[Array, "q d"], Float[Array, "q d"]]:
        """Return shares of the variance, frequencies and bandwidths."""
        weight, shape = jnp.asarray(self.weight), (self.components, len(self.columns))
        rows = (jnp.asarray(v) for v in (self.frequency, self.bandwidth))
        frequency, bandwidth = (
            jnp.broadcast_to(v.reshape(self.components, -1), shape) for v in rows
        )
        return weight / jnp.sum(weight), frequency, bandwidth

    def bind(self, binding: Binding) -> Kernel:
        dims = self.bound_dims(binding.geometry)
        return dataclasses.replace(
            self,
            weight=self._bind_weight(binding),
            frequency=self._bind_frequency(dims, binding),
            bandwidth=self._bind_bandwidth(dims, binding),
            variance=bind_variance(self.variance, binding),
            dims=dims,
        )

    def _bind_weight(self, binding: Binding) -> Parameter:
        if isinstance(self.weight, Parameter):
            return self._checked(self.weight, "weight", None)
        equal = np.full(self.components, 1.0 / self.components)
        start = equal if self.weight is None else np.asarray(self.weight, np.float64)
        self._checked(start, "weight", None)
        if self.components == 1:
            return fixed(start)
        prior = LogNormal(equal, np.asarray(VARIANCE_LOG_SD)) if binding.priors else None
        return positive(start, prior, scale=equal)

    def _bind_frequency(self, dims: tuple[int, ...], binding: Binding) -> Parameter:
        if isinstance(self.frequency, Parameter):
            return self._checked(self.frequency, "frequency", dims)
        low, high = _range(binding.geometry, dims)
        start = _ladder(low, high, self.components) if self.frequency is None else self.frequency
        start = self._checked(np.asarray(start, np.float64), "frequency", dims)
        middle = _like(start, np.sqrt(low * high))
        if not binding.priors:
            return positive(start, scale=middle)
        sd = np.maximum(np.log(high / low) / (2 * ONE_PERCENT), 0.5)
        prior = LogNormal(middle, _like(start, sd))
        ceiling = LONGEST * _like(start, high)
        return positive(start, prior, scale=middle, ceiling=ceiling)

    def _bind_bandwidth(self, dims: tuple[int, ...], binding: Binding) -> Parameter:
        if isinstance(self.bandwidth, Parameter):
            return self._checked(self.bandwidth, "bandwidth", dims)
        geometry = binding.geometry
        low, high = _range(geometry, dims)
        # Neighbours on the ladder of frequencies touch, so that no frequency starts unseen.
        ratio = np.maximum((high / low) ** (1.0 / self.components), NARROWEST_RATIO)
        touching = _ladder(low, high, self.components) * (ratio - 1.0) / (ratio + 1.0)
        start = touching if self.bandwidth is None else self.bandwidth
        start = self._checked(np.asarray(start, np.float64), "bandwidth", dims)
        # A band of width b fades over 1 / (2 pi b): the priors of lengthscales, turned over.
        extent, typical = (v[list(dims)] for v in (geometry.extent, geometry.typical))
        middle = _like(start, 1.0 / (2 * np.pi * typical))
        least = _like(start, 1.0 / (2 * np.pi * LONGEST * extent))
        prior = LogNormal(middle, np.asarray(VARIANCE_LOG_SD)) if binding.priors else None
        return positive(start, prior, scale=middle, floor=np.minimum(least, 0.5 * start))

    def _checked(self, value: Open, name: str, dims: tuple[int, ...] | None) -> Open:
        shape = np.shape(value.raw if isinstance(value, Parameter) else value)
        allowed = [(self.components,)] + ([(self.components, len(dims))] if dims else [])
        if shape not in allowed:
            rows = f", or a row of {len(dims)} for each" if dims else ""
            raise ValueError(
                f"SpectralMixture: {name} must be {self.components} numbers, one for each"
                f" component{rows}; got shape {shape}."
            )
        return value

    def sum_of_products(self) -> tuple[Term, ...]:
        one = np.ones(())
        if len(self.columns) == 1:
            local = dataclasses.replace(self, variance=one, dims=(0,))
            return (Term(self.variance, (Factor(self.columns, local),)),)
        shares, frequency, bandwidth = self.bands()

        def wave(q: int, i: int) -> Kernel:
            band = (frequency[q, i][None], bandwidth[q, i][None])
            return SpectralMixture(1, np.ones(1), *band, variance=one, dims=(0,))

        return tuple(
            Term(
                self.variance * shares[q],
                tuple(Factor((d,), wave(q, i)) for i, d in enumerate(self.columns)),
            )
            for q in range(self.components)
        )


def _range(geometry: Geometry, dims: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest frequency that the data can show, for each input."""
    low, high = 1.0 / geometry.extent[list(dims)], 0.5 / geometry.spacing[list(dims)]
    return low, np.maximum(low, high)


def _ladder(low: np.ndarray, high: np.ndarray, components: int) -> Float[np.ndarray, "q d"]:
    """Spread frequencies evenly on a log scale.

    Components go up the first input in order, and through the others by multiples of the golden
    ratio, so that low and high frequencies of different inputs meet.
    """
    steps = np.arange(components)[:, None] + 0.5
    strides = np.array([1.0 / components, *(GOLDEN * np.arange(1, len(low)))])
    return low * (high / low) ** ((steps * strides) % 1.0)


def _like(start: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Give one value for each input the shape of `start`, by geometric mean if inputs share it."""
    shared = start.ndim == 1
    return np.broadcast_to(np.exp(np.log(values).mean()) if shared else values, start.shape)
