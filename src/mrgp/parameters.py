"""Parameters as values: a transform, a prior, and one `unwrap`.

A `Parameter` stores an unconstrained array `raw`; its value is a fixed transform of it, relative to
a scale taken from the data: optimisers see numbers of order one, whatever units the user works in.
"""

import abc
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import expit

from mrgp._types import AnyArray, float64

T = TypeVar("T")
FURTHEST = 12.0


class Prior(eqx.Module):
    """A density over a parameter.

    >>> isinstance(LogNormal(median=1.0, sd=1.0), Prior), isinstance(positive(1.0), Prior)
    (True, False)
    """

    @abc.abstractmethod
    def log_density(self, value: Float[AnyArray, "..."]) -> Float[AnyArray, "..."]:
        """Return log p(value), elementwise."""


def _hyperparameter(value: Any) -> Any:
    numbers = isinstance(value, int | float | np.ndarray)
    if numbers and not np.all((np.asarray(value) > 0) & np.isfinite(value)):
        raise ValueError(f"A prior's numbers must be positive and finite; got {value}.")
    return float(value) if isinstance(value, int) else value


class LogNormal(Prior):
    """log value ~ N(log median, sd^2).

    >>> round(float(LogNormal(median=1.0, sd=1.0).log_density(np.array(1.0))), 3)
    -0.919
    """

    median: Any = eqx.field(converter=_hyperparameter)
    sd: Any = eqx.field(converter=_hyperparameter)

    def log_density(self, value: Float[AnyArray, "..."]) -> Float[AnyArray, "..."]:
        return Normal(jnp.log(self.median), self.sd).log_density(jnp.log(value)) - jnp.log(value)


class Gamma(Prior):
    """Gamma density with the given shape and rate (mean shape / rate).

    >>> float(Gamma(shape=2.0, rate=1.0).log_density(np.array(1.0)))
    -1.0
    """

    shape: Any = eqx.field(converter=_hyperparameter)
    rate: Any = eqx.field(converter=_hyperparameter)

    def log_density(self, value: Float[AnyArray, "..."]) -> Float[AnyArray, "..."]:
        constant = self.shape * jnp.log(self.rate) - jax.scipy.special.gammaln(self.shape)
        return constant + (self.shape - 1.0) * jnp.log(value) - self.rate * value


class InverseGamma(Prior):
    """Inverse-gamma density with the given shape and scale (mode scale / (shape + 1)).

    >>> print(f"{float(InverseGamma(shape=2.0, scale=3.0).log_density(np.array(1.0))):.3f}")
    -0.803
    """

    shape: Any = eqx.field(converter=_hyperparameter)
    scale: Any = eqx.field(converter=_hyperparameter)

    def log_density(self, value: Float[AnyArray, "..."]) -> Float[AnyArray, "..."]:
        inverse = Gamma(self.shape, self.scale).log_density(jnp.reciprocal(value))
        return inverse - 2.0 * jnp.log(value)


class HalfNormal(Prior):
    """The positive half of N(0, scale^2).

    >>> print(f"{float(HalfNormal(scale=1.0).log_density(np.array(1.0))):.3f}")
    -0.726
    """

    scale: Any = eqx.field(converter=_hyperparameter)

    def log_density(self, value: Float[AnyArray, "..."]) -> Float[AnyArray, "..."]:
        constant = 0.5 * jnp.log(2 / jnp.pi) - jnp.log(self.scale)
        return constant - 0.5 * (value / self.scale) ** 2


class Normal(Prior):
    """N(mean, sd^2), for parameters of either sign.

    >>> print(f"{float(Normal(mean=0.0, sd=1.0).log_density(np.array(1.0))):.3f}")
    -1.419
    """

    mean: Any
    sd: Any = eqx.field(converter=_hyperparameter)

    def log_density(self, value: Float[AnyArray, "..."]) -> Float[AnyArray, "..."]:
        z = (value - self.mean) / self.sd
        return -0.5 * z**2 - jnp.log(self.sd) - 0.5 * jnp.log(2 * jnp.pi)


class Transform(eqx.Module):
    """A smooth one-to-one map from unconstrained coordinates to parameter values.

    >>> float(positive(2.0, floor=1.0).transform.forward(np.zeros(())))
    2.0
    """

    @abc.abstractmethod
    def forward(self, raw: AnyArray) -> Any:
        """Map raw coordinates to the value."""

    @abc.abstractmethod
    def log_jacobian(self, raw: AnyArray) -> Float[AnyArray, "..."]:
        """Return log |d value / d raw|, elementwise for elementwise transforms."""

    def bounds(self) -> tuple[Any, Any]:
        """Return how low and how high raw coordinates may go in a fit."""
        return -np.inf, np.inf


def _on_host(raw: Any) -> bool:
    """Tell NumPy values, for which nothing is to be compiled."""
    return isinstance(raw, np.ndarray | np.generic)


class _Real(Transform):
    """value = origin + scale * raw."""

    origin: Any
    scale: Any

    def forward(self, raw: AnyArray) -> Any:
        return self.origin + self.scale * raw

    def log_jacobian(self, raw: AnyArray) -> Float[AnyArray, "..."]:
        return jnp.log(self.scale) + jnp.zeros_like(raw)


class _Positive(Transform):
    """value = floor + scale * exp(raw), kept below a ceiling in fits."""

    floor: Any
    scale: Any
    ceiling: Any

    def forward(self, raw: AnyArray) -> Any:
        return self.floor + self.scale * (np if _on_host(raw) else jnp).exp(raw)

    def log_jacobian(self, raw: AnyArray) -> Float[AnyArray, "..."]:
        return jnp.log(self.scale) + raw

    def bounds(self) -> tuple[Any, Any]:
        floor, scale, ceiling = map(np.asarray, (self.floor, self.scale, self.ceiling))
        ceiling = np.log((ceiling - floor) / scale)
        return -FURTHEST, np.minimum(ceiling, FURTHEST)


class _Bounded(Transform):
    """value = low + (high - low) * logistic(raw)."""

    low: Any
    high: Any

    def forward(self, raw: AnyArray) -> Any:
        logistic = expit(raw) if _on_host(raw) else jax.nn.sigmoid(raw)
        return self.low + (self.high - self.low) * logistic

    def log_jacobian(self, raw: AnyArray) -> Float[AnyArray, "..."]:
        return jnp.log(self.high - self.low) + jax.nn.log_sigmoid(raw) + jax.nn.log_sigmoid(-raw)

    def bounds(self) -> tuple[Any, Any]:
        return -FURTHEST, FURTHEST


class _LowerTriangular(Transform):
    """A lower-triangular matrix with positive diagonal; raw lists its rows, diagonal in logs."""

    size: int = eqx.field(static=True)

    def forward(self, raw: AnyArray) -> Any:
        rows, columns = np.tril_indices(self.size)
        if _on_host(raw):
            found = np.zeros((self.size, self.size), raw.dtype)
            found[rows, columns] = np.where(rows == columns, np.exp(raw), raw)
            return found
        values = jnp.where(rows == columns, jnp.exp(jnp.where(rows == columns, raw, 0.0)), raw)
        return jnp.zeros((self.size, self.size), raw.dtype).at[rows, columns].set(values)

    def log_jacobian(self, raw: AnyArray) -> Float[AnyArray, "..."]:
        rows, columns = np.tril_indices(self.size)
        return jnp.where(rows == columns, raw, 0.0)


class Parameter(eqx.Module):
    """A value with its transform, its prior, and whether it is trained.

    Made by `positive`, `bounded`, `lower_triangular` and `fixed`; give one wherever a model or a
    kernel takes a number.

    >>> lengthscale = positive(2.0)
    >>> float(lengthscale.value), lengthscale.trainable
    (2.0, True)
    """

    raw: Any
    transform: Transform
    prior: Prior | None = None
    trainable: bool = eqx.field(static=True, default=True)

    @property
    @float64
    def value(self) -> Any:
        """The constrained value."""
        found = self.transform.forward(self.raw)
        # NumPy turns arithmetic of numbers without axes into scalars.
        return np.asarray(found) if isinstance(found, np.generic) else found

    def log_prior(self) -> Float[Array, ""]:
        """Return the prior's log density in raw coordinates, Jacobian included."""
        if self.prior is None or not self.trainable:
            return jnp.zeros(())
        return jnp.sum(self.prior.log_density(self.value) + self.transform.log_jacobian(self.raw))


def positive(
    value: Any,
    prior: Prior | None = None,
    *,
    floor: Any = 0.0,
    ceiling: Any = np.inf,
    scale: Any = None,
) -> Parameter:
    """Make a trained positive parameter that starts at `value`.

    `floor` and `ceiling` are the least and the largest value a fit may give it, `scale` the size of
    one unit for the optimiser (default: the value itself).

    >>> float(positive(2.0).value)
    2.0
    """
    value, excess = _number(value), _number(value) - floor
    if not np.all(excess > 0):
        raise ValueError(f"A positive parameter must exceed {floor}; got {value}.")
    scale = excess if scale is None else _number(scale)
    ceiling = np.broadcast_to(np.maximum(ceiling, value), value.shape)
    raw = _number(np.log(excess / scale))
    return Parameter(raw, _Positive(_number(floor), scale, ceiling), prior)


def bounded(value: Any, low: float, high: float, prior: Prior | None = None) -> Parameter:
    """Make a trained parameter confined to (low, high).

    >>> float(bounded(0.5, low=0.0, high=1.0).value)
    0.5
    """
    value = _number(value)
    if not (low < high and np.all(value > low) and np.all(value < high)):
        raise ValueError(f"bounded needs low < value < high; got {low}, {value}, {high}.")
    share = (value - low) / (high - low)
    raw = _number(np.log(share) - np.log1p(-share))
    return Parameter(raw, _Bounded(_number(low), _number(high)), prior)


def real(value: Any, prior: Prior | None = None, *, scale: Any = 1.0) -> Parameter:
    """Make a trained unconstrained parameter; `scale` is the size of one unit for the optimiser.

    >>> float(real(-3.0).value)
    -3.0
    """
    value = _number(value)
    transform = _Real(value, np.broadcast_to(_number(scale), value.shape))
    return Parameter(np.zeros_like(value), transform, prior)


def stretched(parameter: Parameter, factor: float) -> Parameter:
    """Start a trained positive parameter at `factor` times its value, within its limits.

    >>> float(stretched(positive(2.0), 3.0).value.round(6))
    6.0
    """
    if not (parameter.trainable and isinstance(parameter.transform, _Positive)):
        return parameter
    floor, scale = parameter.transform.floor, parameter.transform.scale
    raw = np.log(np.maximum(factor * parameter.value - floor, 1e-3 * scale) / scale)
    raw = _number(np.clip(raw, *parameter.transform.bounds()))
    return eqx.tree_at(lambda p: p.raw, parameter, raw)


def lower_triangular(matrix: Any) -> Parameter:
    """Make a trained lower-triangular matrix with positive diagonal.

    >>> lower_triangular([[1.0, 0.0], [0.5, 2.0]]).value.tolist()
    [[1.0, 0.0], [0.5, 2.0]]
    """
    matrix = _number(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"lower_triangular takes a square matrix; got shape {matrix.shape}.")
    if np.any(np.triu(matrix, 1) != 0) or np.any(np.diag(matrix) <= 0):
        raise ValueError("lower_triangular takes zeros above a positive diagonal.")
    rows, columns = np.tril_indices(len(matrix))
    values = matrix[rows, columns]
    raw = np.where(rows == columns, np.log(np.where(rows == columns, values, 1.0)), values)
    return Parameter(raw, _LowerTriangular(len(matrix)))


def fixed(value: Any) -> Parameter:
    """Make a parameter that keeps its value in every fit.

    >>> float(fixed(24.0).value)
    24.0
    """
    value = _number(value)
    return Parameter(value, _Real(np.zeros_like(value), np.ones_like(value)), trainable=False)


def _number(value: Any) -> np.ndarray:
    array = np.asarray(value, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"A parameter must be finite; got {value}.")
    return array


def is_parameter(node: Any) -> bool:
    """Tell a `Parameter` from any other node of a tree.

    >>> is_parameter(fixed(1.0)), is_parameter(1.0)
    (True, False)
    """
    return isinstance(node, Parameter)


def unwrap(tree: T) -> T:
    """Replace every parameter of a tree by its value.

    >>> float(unwrap({"ratio": fixed(0.5)})["ratio"])
    0.5
    """
    return jax.tree.map(lambda p: p.value if is_parameter(p) else p, tree, is_leaf=is_parameter)


def parameters(tree: Any) -> list[Parameter]:
    """List the parameters of a tree, in order.

    >>> len(parameters([positive(1.0), "not one", fixed(2.0)]))
    2
    """
    return [p for p in jax.tree.leaves(tree, is_leaf=is_parameter) if is_parameter(p)]


def log_prior(tree: Any) -> Float[Array, ""]:
    """Sum the log priors of a tree's parameters, in raw coordinates.

    >>> round(float(log_prior([positive(1.0, LogNormal(1.0, 1.0)), fixed(2.0)])), 4)
    -0.9189
    """
    return sum((p.log_prior() for p in parameters(tree)), jnp.zeros(()))


def partition(tree: T) -> tuple[T, T]:
    """Split a tree into its trained raw arrays and everything else (join with `eqx.combine`).

    >>> [[p.raw is None for p in part] for part in partition([positive(2.0), fixed(3.0)])]
    [[False, True], [True, False]]
    """

    def mask(node: Any) -> Any:
        frozen = jax.tree.map(lambda _: False, node)
        return eqx.tree_at(lambda p: p.raw, frozen, node.trainable) if is_parameter(node) else False

    return eqx.partition(tree, jax.tree.map(mask, tree, is_leaf=is_parameter))


def limits(tree: Any) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]]:
    """Return how low and how high each trained raw coordinate may go, in order.

    >>> limits([positive(1.0, ceiling=np.e), fixed(2.0)])
    (array([-12.]), array([1.]))
    """
    trained = [p for p in parameters(tree) if p.trainable]
    pairs = [[np.broadcast_to(b, np.shape(p.raw)) for b in p.transform.bounds()] for p in trained]
    low, high = ([np.ravel(pair[i]) for pair in pairs] for i in (0, 1))
    return np.concatenate([np.zeros(0), *low]), np.concatenate([np.zeros(0), *high])


def at_limit(parameter: Parameter) -> bool:
    """Tell whether a trained parameter ended where a fit may go no further.

    >>> at_limit(positive(2.0, ceiling=2.0)), at_limit(positive(1.0, ceiling=2.0))
    (True, False)
    """
    low, high = parameter.transform.bounds()
    raw = np.asarray(parameter.raw)
    return bool(np.any((raw <= np.asarray(low) + 1e-6) | (raw >= np.asarray(high) - 1e-6)))
