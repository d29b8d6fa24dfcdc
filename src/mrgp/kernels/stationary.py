"""Kernels of the scaled distance: RBF, the Matern family, rational quadratic."""

import abc
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float

from mrgp._types import AnyArray, Batch, BatchInputs, float64
from mrgp.kernels.base import LeafKernel, Term
from mrgp.kernels.binding import (
    LARGEST,
    Binding,
    Open,
    bind_lengthscale,
    bind_stretch,
    bind_unitless,
)
from mrgp.supports import Spaces

LEAST_ALPHA = 0.01
METRICS = ("diagonal", "full")


class Stationary(LeafKernel):
    """A variance times a profile of the distance in lengthscales.

    One lengthscale is shared by all the inputs, and several are one for each (ARD). Left open,
    the inputs of one space share one, and each other input has its own. Subclass it for a kernel
    of your own that is a function of the distance.

    `metric="full"` turns and stretches the inputs of one space: equal correlations lie on an
    ellipse in any direction, of which `lengthscale` is the geometric mean and `stretch` the form.

    >>> class Cauchy(Stationary):
    ...     factorises = False
    ...
    ...     def profile(self, squared):
    ...         return 1.0 / (1.0 + squared)
    >>> Cauchy(lengthscale=2.0, variance=1.0)([[0.0]], [[2.0]])
    array([[0.5]])
    """

    lengthscale: Open = None
    groups: Spaces | None = eqx.field(static=True, default=None, kw_only=True)
    metric: str = eqx.field(static=True, default="diagonal", kw_only=True)
    stretch: Open = eqx.field(default=None, kw_only=True)

    def __check_init__(self) -> None:
        if self.metric not in METRICS:
            known = f"{type(self).__name__}: metric= is one of {METRICS}"
            raise ValueError(f"{known}; got {self.metric!r}.")
        if self.metric == "full" and getattr(self, "product", False):
            raise ValueError(
                f"{type(self).__name__}: a product over inputs cannot be turned; leave out"
                ' product=True or metric="full".'
            )

    @property
    def lengthscales(self) -> list[Float[Array, ""]]:
        """The lengthscale along each input that a bound kernel sees."""
        groups = self.groups or ()
        if all(len(group) == 1 for group in groups) or jnp.ndim(self.lengthscale) == 0:
            return self.per_input(self.lengthscale)
        owner = {place: i for i, group in enumerate(groups) for place in group}
        index = np.array([owner[place] for place in range(len(self.columns))])
        return self.per_input(self.lengthscale[index])

    @property
    def along(self) -> Spaces:
        """The columns along which a bound kernel has each number of its lengthscale."""
        groups = self.groups or tuple((place,) for place in range(len(self.columns)))
        return tuple(tuple(self.columns[place] for place in group) for group in groups)

    @abc.abstractmethod
    def profile(self, squared: Float[AnyArray, "*batch"]) -> Batch:
        """Return the correlation at a squared scaled distance."""

    @property
    @abc.abstractmethod
    def factorises(self) -> bool:
        """Whether the kernel is a product over its inputs."""

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        x, z = (self._turned(at[..., np.array(self.columns)]) for at in (x, z))
        precision = jnp.stack([1.0 / scale**2 for scale in self.lengthscales])
        squared = _squared_distance(precision, x, z)
        return self.variance * self.profile(squared)

    def bind_numbers(self, dims: tuple[int, ...], binding: Binding) -> dict[str, Any]:
        lengthscale, groups = bind_lengthscale(self.lengthscale, dims, binding)
        own = {"lengthscale": lengthscale, "groups": groups}
        if self.metric == "full":
            self._require_one_space(groups, dims, binding)
            own["stretch"] = bind_stretch(self.stretch, len(dims), binding)
        return super().bind_numbers(dims, binding) | own

    def _require_one_space(self, groups: Spaces, dims: tuple[int, ...], binding: Binding) -> None:
        """Refuse to turn inputs that are no directions of one space, or have lengths already."""
        names = tuple(binding.geometry.names[d] for d in dims)
        if len(dims) < 2 or len(groups) > 1:
            raise ValueError(
                f'{type(self).__name__}: metric="full" turns the inputs of one space, with one'
                f" lengthscale; it sees {names}. Name them with dims=, and say that they are one"
                f" space with space={names} of the supports."
            )

    def _turned(self, x: BatchInputs) -> BatchInputs:
        """Return the inputs in which distances are alike in all directions."""
        if self.metric == "diagonal":
            return x
        return jnp.asarray(x) @ turning(self.stretch, len(self.columns)).T

    @property
    @float64
    def ellipse(self) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
        """The lengthscales along the axes of an unwrapped kernel's ellipse, and the axes.

        The longest comes first; the axes are the columns.

        >>> kernel = RBF(2.0, variance=1.0, dims=(0, 1), metric="full", stretch=np.zeros(2))
        >>> kernel.ellipse[0]
        array([2., 2.])
        """
        turn = np.asarray(turning(self.stretch, len(self.columns)))
        scale = float(np.ravel(self.lengthscale)[0])
        precisions, axes = np.linalg.eigh(turn.T @ turn)
        return scale / np.sqrt(precisions), axes

    def sum_of_products(self) -> tuple[Term, ...]:
        if self.metric == "full" or not self.factorises:
            return super().sum_of_products()
        apart = [None] * len(self.columns)
        return self.product_over_inputs(lengthscale=self.lengthscales, groups=apart)


def turning(stretch: Float[AnyArray, " k"], size: int) -> Float[Array, "d d"]:
    """Return the lower-triangular matrix of determinant one that stretches and turns inputs.

    `stretch` has the logarithms of its diagonal but the last, and then what is below it.

    >>> turning(np.array([0.0, 0.5]), 2).tolist()
    [[1.0, 0.0], [0.5, 1.0]]
    """
    stretch = jnp.asarray(stretch)
    logs = jnp.concatenate([stretch[: size - 1], -jnp.sum(stretch[: size - 1])[None]])
    below = jnp.zeros((size, size)).at[np.tril_indices(size, -1)].set(stretch[size - 1 :])
    return below + jnp.diag(jnp.exp(logs))


@jax.custom_jvp
def _squared_distance(precision: Float[Array, " d"], x: BatchInputs, z: BatchInputs) -> Batch:
    """Return sum_d precision_d (x_d - z_d)^2, whose slopes in the precisions are matrix products.

    Left to itself, JAX would sum over all pairs for each input, which is slow.
    """
    squares = jnp.stack([(x[..., d] - z[..., d]) ** 2 for d in range(x.shape[-1])])
    return (precision @ squares.reshape(len(squares), -1)).reshape(squares.shape[1:])


def _slopes(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
    (precision, x, z), (by_precision, by_x, by_z) = primals, tangents
    value = _squared_distance(precision, x, z)
    slope = jnp.zeros_like(value)
    if not isinstance(by_precision, SymbolicZero):
        slope += _squared_distance(by_precision, x, z)
    for tangent, sign in ((by_x, 2.0), (by_z, -2.0)):
        if not isinstance(tangent, SymbolicZero):
            for d in range(len(precision)):
                slope += sign * precision[d] * (x[..., d] - z[..., d]) * tangent[..., d]
    return value, slope


_squared_distance.defjvp(_slopes, symbolic_zeros=True)


class RBF(Stationary):
    """The squared-exponential kernel, variance * exp(-r^2 / 2).

    >>> RBF(lengthscale=2.0)([[0.0]], [[2.0]]).round(4)
    array([[0.6065]])
    """

    @property
    def factorises(self) -> bool:
        return True

    def profile(self, squared: Float[AnyArray, "*batch"]) -> Batch:
        return jnp.exp(-0.5 * squared)


class Radial(Stationary):
    """A kernel of the distance that is no product over its inputs, unless asked for.

    The default is radial in the inputs it sees. `product=True` multiplies kernels of one input
    instead: another kernel, which is averaged over boxes input by input.
    """

    product: bool = eqx.field(static=True, default=False, kw_only=True)

    @property
    def factorises(self) -> bool:
        return self.product or len(self.columns) == 1

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        if not self.product:
            return super().pair(x, z)
        scales = zip(self.columns, self.lengthscales, strict=True)
        profiles = [self.profile(((x[..., d] - z[..., d]) / scale) ** 2) for d, scale in scales]
        return self.variance * functools.reduce(jnp.multiply, profiles)


class Matern(Radial):
    """A Matern kernel of half-integer smoothness, radial or with `product=True`."""


class Matern12(Matern):
    """The exponential kernel, variance * exp(-r).

    >>> Matern12(lengthscale=2.0)([[0.0]], [[2.0]]).round(4)
    array([[0.3679]])
    """

    def profile(self, squared: Float[AnyArray, "*batch"]) -> Batch:
        return jnp.exp(-root(squared))


class Matern32(Matern):
    """The Matern-3/2 kernel, once differentiable: variance * (1 + sqrt(3) r) exp(-sqrt(3) r).

    >>> Matern32(lengthscale=2.0)([[0.0]], [[2.0]]).round(4)
    array([[0.4834]])
    """

    def profile(self, squared: Float[AnyArray, "*batch"]) -> Batch:
        t = root(3.0 * squared)
        return (1.0 + t) * jnp.exp(-t)


class Matern52(Matern):
    """The Matern-5/2 kernel, twice differentiable.

    >>> Matern52(lengthscale=2.0)([[0.0]], [[2.0]]).round(4)
    array([[0.524]])
    """

    def profile(self, squared: Float[AnyArray, "*batch"]) -> Batch:
        t = root(5.0 * squared)
        return (1.0 + t + t**2 / 3.0) * jnp.exp(-t)


class RationalQuadratic(Radial):
    """A mixture of RBFs of many lengthscales: variance * (1 + r^2 / (2 alpha))^-alpha.

    A small `alpha` mixes widely; a large one makes an RBF. Means over intervals are quadrature,
    good to 1e-9 for intervals of up to 10 lengthscales and to 2e-6 for 100 (theory 1.4).

    >>> RationalQuadratic(lengthscale=2.0, alpha=1.0)([[0.0]], [[2.0]]).round(4)
    array([[0.6667]])
    """

    alpha: Open = None

    def profile(self, squared: Float[AnyArray, "*batch"]) -> Batch:
        return jnp.exp(-self.alpha * jnp.log1p(squared / (2.0 * self.alpha)))

    def bind_numbers(self, dims: tuple[int, ...], binding: Binding) -> dict[str, Any]:
        # Below its floor the kernel is nearly constant, and above its ceiling nearly an RBF.
        limits = {"least": LEAST_ALPHA, "ceiling": LARGEST, "scale": 1.0}
        alpha = bind_unitless(self.alpha, binding, "alpha", **limits)
        return super().bind_numbers(dims, binding) | {"alpha": alpha}


def root(squared: Float[AnyArray, "*batch"]) -> Batch:
    """Take a square root whose gradient at zero is zero instead of infinite."""
    away = squared > 0
    return jnp.where(away, jnp.sqrt(jnp.where(away, squared, 1.0)), 0.0)
