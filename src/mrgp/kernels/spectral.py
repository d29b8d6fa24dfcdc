"""A kernel given by its spectrum: a mixture of bands of frequencies."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import Batch, BatchInputs
from mrgp.kernels.base import LeafKernel, Term
from mrgp.kernels.binding import LONGEST, VARIANCE_LOG_SD, Binding, Open, bind_positive
from mrgp.parameters import Parameter, fixed
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

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
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
        rows = (
            jnp.asarray(v).reshape(self.components, -1) for v in (self.frequency, self.bandwidth)
        )
        frequency, bandwidth = (jnp.broadcast_to(v, shape) for v in rows)
        return weight / jnp.sum(weight), frequency, bandwidth

    def bind_numbers(self, dims: tuple[int, ...], binding: Binding) -> dict[str, Any]:
        return super().bind_numbers(dims, binding) | {
            "weight": self._bind_weight(binding),
            "frequency": self._bind_frequency(dims, binding),
            "bandwidth": self._bind_bandwidth(dims, binding),
        }

    def _bind_weight(self, binding: Binding) -> Parameter:
        equal = np.full(self.components, 1.0 / self.components)
        start = self._start("weight", equal)
        if self.components == 1 and not isinstance(self.weight, Parameter):
            return fixed(start)
        return bind_positive(self.weight, start, binding, (equal, VARIANCE_LOG_SD), scale=equal)

    def _bind_frequency(self, dims: tuple[int, ...], binding: Binding) -> Parameter:
        low, high = _range(binding.geometry, dims)
        start = self._start("frequency", _ladder(low, high, self.components))
        middle, ceiling = _like(start, np.sqrt(low * high)), LONGEST * _like(start, high)
        sd = _like(start, np.maximum(np.log(high / low) / (2 * ONE_PERCENT), 0.5))
        return bind_positive(
            self.frequency, start, binding, (middle, sd), scale=middle, ceiling=ceiling
        )

    def _bind_bandwidth(self, dims: tuple[int, ...], binding: Binding) -> Parameter:
        geometry = binding.geometry
        low, high = _range(geometry, dims)
        # Neighbours on the ladder of frequencies touch, so that no frequency starts unseen.
        ratio = np.maximum((high / low) ** (1.0 / self.components), NARROWEST_RATIO)
        touching = _ladder(low, high, self.components) * (ratio - 1.0) / (ratio + 1.0)
        start = self._start("bandwidth", touching)
        # A band of width b fades over 1 / (2 pi b): the priors of lengthscales, turned over.
        extent, typical = (v[list(dims)] for v in (geometry.extent, geometry.typical))
        middle = _like(start, 1.0 / (2 * np.pi * typical))
        floor = np.minimum(_like(start, 1.0 / (2 * np.pi * LONGEST * extent)), 0.5 * start)
        return bind_positive(
            self.bandwidth, start, binding, (middle, VARIANCE_LOG_SD), scale=middle, floor=floor
        )

    def _start(self, name: str, default: np.ndarray) -> Float[np.ndarray, "q *d"]:
        """Return where numbers start, as given or by default, one for each component or a row."""
        value = getattr(self, name)
        start = value.raw if isinstance(value, Parameter) else default if value is None else value
        start = np.asarray(start, np.float64)
        if start.shape not in (default.shape[:1], default.shape):
            inputs = default.shape[1:]
            rows = f", or a row of {inputs[0]} for each" if inputs else ""
            raise ValueError(
                f"SpectralMixture: {name} must be {self.components} numbers, one for each"
                f" component{rows}; got shape {start.shape}."
            )
        return start

    def sum_of_products(self) -> tuple[Term, ...]:
        if len(self.columns) == 1:
            return self.product_over_inputs()
        shares, *bands = self.bands()
        terms: list[Term] = []
        for q in range(self.components):
            variance = self.variance * shares[q]
            one = dataclasses.replace(self, components=1, weight=np.ones(1), variance=variance)
            frequency, bandwidth = (list(band[q, :, None]) for band in bands)
            terms += one.product_over_inputs(frequency=frequency, bandwidth=bandwidth)
        return tuple(terms)


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
