"""Kernels of time as linear stochastic differential equations (theory 10.1)."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.kernels import Constant, Kernel, Matern12, Matern32, Matern52, Periodic, Product, Sum
from mrgp.kernels.base import Scale, View

Length = AnyArray | float
"""How long a step in time is."""

HARMONICS = 12
"""Harmonics of `Periodic` that have states: exact to 1e-8 down to a lengthscale of 0.56."""

_ORDERS = {Matern12: 1, Matern32: 3, Matern52: 5}
_STATIONARY = {1: [[1.0]], 3: [[1.0, 0.0], [0.0, 1.0]]}
_STATIONARY |= {5: [[1.0, 0.0, -1 / 3], [0.0, 1 / 3, 0.0], [-1 / 3, 0.0, 1.0]]}


@dataclasses.dataclass(frozen=True)
class StateSpace:
    """f(t) = reads . x(t) for dx = drift x dt + noise, with the stationary covariance of x.

    `transition(dt)` is the exponential of drift * dt, and `known` its integrals in closed form.
    `reads` is made of zeros and ones.

    >>> wiggle = state_space(Matern12(2.0, variance=3.0, dims=0))
    >>> float(wiggle.stationary[0, 0]), round(float(wiggle.transition(2.0)[0, 0]), 4)
    (3.0, 0.3679)
    """

    drift: Float[AnyArray, "d d"]
    stationary: Float[AnyArray, "d d"]
    reads: Float[np.ndarray, " d"]
    transition: Callable[[Length], Float[Array, "d d"]]
    known: Callable[[Length], tuple[Array, Array]] | None = None

    @property
    def size(self) -> int:
        """The number of states."""
        return len(self.reads)

    @property
    def variance(self) -> Float[AnyArray, ""]:
        """The variance of f at an instant."""
        return self.reads @ self.stationary @ self.reads

    def integrals(self, dt: Length) -> tuple[Float[Array, "d d"], Float[Array, "d d"]]:
        """Return the integral of the transition from 0 to dt, and the integral of that.

        Where they are not `known`, both are blocks of one exponential without growing modes.
        """
        if self.known is not None:
            return self.known(dt)
        d = self.size
        zero, one = jnp.zeros((d, d)), jnp.eye(d)
        chain = jnp.block([[self.drift, zero, zero], [one, zero, zero], [zero, one, zero]])
        found = jax.scipy.linalg.expm(dt * chain, max_squarings=48)
        return found[d : 2 * d, :d], found[2 * d :, :d]


def refused_in_time(kernel: Kernel) -> str | None:
    """Name the first kernel inside one of time that has no state space, if any has not.

    >>> from mrgp import RBF
    >>> refused_in_time(Matern12(1.0, variance=1.0, dims=0) * RBF(1.0, variance=1.0, dims=0))
    'RBF'
    """
    if isinstance(kernel, Sum | Product):
        return next(filter(None, map(refused_in_time, kernel.kernels)), None)
    if isinstance(kernel, Scale | View):
        return refused_in_time(kernel.kernel)
    if isinstance(kernel, Constant | Periodic) or type(kernel) in _ORDERS:
        return None
    return type(kernel).__name__


def state_space(kernel: Kernel) -> StateSpace:
    """Write a kernel of one input as a state space.

    >>> from mrgp import Constant
    >>> level = state_space(Constant(2.0) + Matern12(1.0, variance=3.0, dims=0))
    >>> float(level.variance), level.size
    (5.0, 2)
    """
    if isinstance(kernel, View):
        return state_space(kernel.kernel)
    if isinstance(kernel, Sum):
        return functools.reduce(_added, map(state_space, kernel.kernels))
    if isinstance(kernel, Product):
        return functools.reduce(_multiplied, map(state_space, kernel.kernels))
    if isinstance(kernel, Scale):
        return _scaled(state_space(kernel.kernel), jnp.asarray(kernel.factor))
    if isinstance(kernel, Constant):
        return _scaled(CONSTANT, jnp.asarray(kernel.variance))
    if isinstance(kernel, Periodic):
        return _periodic(kernel)
    return _matern(kernel, _ORDERS[type(kernel)])


def _scaled(space: StateSpace, factor: Array) -> StateSpace:
    return dataclasses.replace(space, stationary=factor * space.stationary)


CONSTANT = StateSpace(np.zeros((1, 1)), np.ones((1, 1)), np.ones(1), lambda _: jnp.ones((1, 1)))


def _matern(kernel: Any, order: int) -> StateSpace:
    """Take f and its derivatives in units of the rate, which makes all but the rate constant."""
    size = (order + 1) // 2
    rate = math.sqrt(order) / jnp.reshape(jnp.asarray(kernel.lengthscale), ())
    unit = np.eye(size, k=1)
    unit[-1] = [-math.comb(size, k) for k in range(size)]
    # (unit + I) is nilpotent: the exponential is exp(-u) times a polynomial.
    powers = np.stack([np.linalg.matrix_power(unit + np.eye(size), k) for k in range(size)])
    powers = powers / np.array([math.factorial(k) for k in range(size)])[:, None, None]

    def transition(dt: Length) -> Array:
        u = rate * dt
        return jnp.exp(-u) * jnp.tensordot(jnp.stack([u**k for k in range(size)]), powers, 1)

    stationary = jnp.asarray(kernel.variance) * np.array(_STATIONARY[order])
    return StateSpace(rate * unit, stationary, np.eye(size)[0], transition)


def _periodic(kernel: Periodic) -> StateSpace:
    """Take the level and a pair of states for each of the first harmonics."""
    weights = harmonic_weights(kernel)
    speed = 2.0 * jnp.pi / jnp.reshape(jnp.asarray(kernel.period), ()) * np.arange(HARMONICS + 1.0)
    twice = np.repeat(np.arange(HARMONICS + 1), 2)[1:]

    def pairs(diagonal: Array, beside: Array) -> Array:
        """Put 2 x 2 blocks with these numbers on the diagonal, after the level's own."""
        cells = jnp.stack([jnp.stack([diagonal, beside], -1), jnp.stack([-beside, diagonal], -1)])
        blocks = jax.scipy.linalg.block_diag(*jnp.moveaxis(cells, 0, -2)[1:])
        return jax.scipy.linalg.block_diag(diagonal[:1, None], blocks)

    def transition(dt: Length) -> Array:
        return pairs(jnp.cos(speed * dt), jnp.sin(speed * dt))

    def known(dt: Length) -> tuple[Array, Array]:
        angle, rate = speed * dt, jnp.where(speed > 0, speed, 1.0)
        sine, rest = jnp.sin(angle), 2.0 * jnp.sin(0.5 * angle) ** 2
        once = pairs(jnp.where(speed > 0, sine / rate, dt), rest / rate)
        level = jnp.where(speed > 0, rest / rate**2, 0.5 * dt**2)
        return once, pairs(level, (angle - sine) / rate**2)

    reads = np.concatenate([[1.0], np.tile([1.0, 0.0], HARMONICS)])
    drift, stationary = pairs(jnp.zeros_like(speed), speed), jnp.diag(weights[twice])
    return StateSpace(drift, stationary, reads, transition, known)


def harmonic_weights(kernel: Periodic, number: int = HARMONICS) -> Float[Array, " h"]:
    """Return the variance of the level and of each harmonic of a periodic kernel.

    They are the Fourier coefficients of its profile, from equally spaced samples of one period.

    >>> weights = harmonic_weights(Periodic(24.0, lengthscale=1.0, variance=2.0, dims=0))
    >>> round(float(jnp.sum(weights)), 8)
    2.0
    """
    samples = 256
    phase = np.arange(samples) / samples
    shape = jnp.exp(-2.0 * np.sin(np.pi * phase) ** 2 / jnp.asarray(kernel.lengthscale) ** 2)
    order = np.arange(number + 1)
    waves = np.cos(2.0 * np.pi * order[:, None] * phase[None, :])
    found = np.where(order == 0, 1.0, 2.0) * (waves @ shape) / samples
    return jnp.asarray(kernel.variance) * jnp.maximum(found, 0.0)


def series_error(kernel: Kernel) -> float:
    """Return the largest share of variance that the series of a kernel of time leaves out.

    A sum leaves out at most the share of its worst part; a product keeps what all factors keep.

    >>> series_error(Matern12(1.0, variance=1.0, dims=0))
    0.0
    >>> round(series_error(Periodic(24.0, lengthscale=0.3, variance=2.0, dims=0)), 4)
    0.0003
    """
    if isinstance(kernel, Sum):
        return max(map(series_error, kernel.kernels))
    if isinstance(kernel, Product):
        return 1.0 - math.prod(1.0 - series_error(factor) for factor in kernel.kernels)
    if isinstance(kernel, Scale | View):
        return series_error(kernel.kernel)
    if not isinstance(kernel, Periodic):
        return 0.0
    told = jnp.sum(harmonic_weights(kernel)) / jnp.asarray(kernel.variance)
    return max(1.0 - float(told), 0.0)


def _added(a: StateSpace, b: StateSpace) -> StateSpace:
    return StateSpace(
        jax.scipy.linalg.block_diag(a.drift, b.drift),
        jax.scipy.linalg.block_diag(a.stationary, b.stationary),
        np.concatenate([a.reads, b.reads]),
        lambda dt: jax.scipy.linalg.block_diag(a.transition(dt), b.transition(dt)),
    )


def _multiplied(a: StateSpace, b: StateSpace) -> StateSpace:
    one, other = np.eye(a.size), np.eye(b.size)
    return StateSpace(
        jnp.kron(a.drift, other) + jnp.kron(one, b.drift),
        jnp.kron(a.stationary, b.stationary),
        np.kron(a.reads, b.reads),
        lambda dt: jnp.kron(a.transition(dt), b.transition(dt)),
    )
