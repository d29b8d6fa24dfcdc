"""What a kernel is, and how kernels combine: sums, products, scaling, chosen inputs."""

import abc
import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray, Inputs, Scalar, float64
from mrgp.kernels.binding import Binding, Open
from mrgp.parameters import Parameter, fixed, unwrap
from mrgp.supports import Geometry

Dims = tuple[int | str, ...] | None
"""The inputs a kernel sees, by number or name; None is all of them."""

_POSITIVE = ("lengthscale", "variance", "period", "alpha", "weight_variance")
_POSITIVE += ("weight", "frequency", "bandwidth")


class Factor(NamedTuple):
    """A kernel over a few inputs: `kernel` takes the columns `dims`, in order.

    >>> from mrgp import RBF
    >>> (term,) = RBF(1.0, variance=2.0, dims=(0, 2)).sum_of_products()
    >>> [factor.dims for factor in term.factors]
    [(0,), (2,)]
    """

    dims: tuple[int, ...]
    kernel: "Kernel"


class Term(NamedTuple):
    """A coefficient times a product of factors over disjoint inputs.

    >>> from mrgp import RBF
    >>> (term,) = RBF(1.0, variance=2.0, dims=(0, 2)).sum_of_products()
    >>> term.coefficient, len(term.factors)
    (2.0, 2)
    """

    coefficient: Scalar
    factors: tuple[Factor, ...]


class Kernel(eqx.Module):
    """A covariance function of two inputs.

    As a recipe a kernel holds numbers, `Parameter`s, or None for "from the data". `bind` fills the
    recipe in and `unwrap` turns it into arrays, on which `pair` and `sum_of_products` run.
    """

    @abc.abstractmethod
    def pair(
        self, x: Float[AnyArray, "*#batch d"], z: Float[AnyArray, "*#batch d"]
    ) -> Float[Array, "*batch"]:
        """Return k(x, z), broadcasting over all axes but the last."""

    @abc.abstractmethod
    def bind(self, binding: Binding) -> "Kernel":
        """Resolve input names and give every open number a starting value and a prior."""

    @abc.abstractmethod
    def on(self, *dims: int | str) -> "Kernel":
        """Restrict the kernel to some inputs, by number or name."""

    @abc.abstractmethod
    def sum_of_products(self) -> tuple[Term, ...]:
        """Write the kernel as a sum of products over disjoint inputs, as fine as it goes."""

    def cross(self, x: Inputs, z: Float[AnyArray, "m d"]) -> Float[Array, "n m"]:
        """Return the matrix k(x_n, z_m)."""
        return self.pair(x[:, None, :], z[None, :, :])

    @float64
    def __call__(self, x: Any, z: Any = None) -> Float[AnyArray, "n m"]:
        """Evaluate the kernel between the rows of `x` and those of `z` (default: `x`).

        >>> from mrgp import RBF
        >>> RBF(lengthscale=2.0)([[0.0]], [[2.0]]).round(4)
        array([[0.6065]])
        """
        x = _rows(x, "x")
        z = x if z is None else _rows(z, "z")
        if x.shape[1] != z.shape[1]:
            raise ValueError(f"x has {x.shape[1]} inputs and z has {z.shape[1]}; they must agree.")
        kernel = unwrap(self.bind(Binding(Geometry.unit(x.shape[1]))))
        return kernel.cross(jnp.asarray(x), jnp.asarray(z))

    def __add__(self, other: Any) -> "Kernel":
        return Sum((*_members(self, Sum), *_members(_as_kernel(other), Sum)))

    def __radd__(self, other: Any) -> "Kernel":
        return self + other

    def __mul__(self, other: Any) -> "Kernel":
        if isinstance(other, Kernel):
            return Product((*_members(self, Product), *_members(other, Product)))
        return Scale(_positive(other), self)

    def __rmul__(self, other: Any) -> "Kernel":
        return self * other


class LeafKernel(Kernel):
    """A kernel that is not made of others: it has a variance and sees some of the inputs.

    >>> from mrgp import RBF
    >>> bound = RBF(dims="x2").bind(Binding(Geometry.unit(3)))
    >>> bound.columns
    (1,)
    """

    variance: Open = eqx.field(default=None, kw_only=True)
    dims: Dims = eqx.field(
        static=True, default=None, kw_only=True, converter=lambda dims: _as_dims(dims)
    )

    def __check_init__(self) -> None:
        for name in _POSITIVE:
            value = getattr(self, name, None)
            if isinstance(value, int | float | str | tuple | list) and not _are_positive(value):
                raise ValueError(
                    f"{type(self).__name__}: {name} must be positive and finite; got {value}."
                )

    def on(self, *dims: int | str) -> Kernel:
        if self.dims is not None:
            raise ValueError(f"{type(self).__name__} already sees the inputs {self.dims}.")
        return dataclasses.replace(self, dims=dims)

    def sum_of_products(self) -> tuple[Term, ...]:
        local = dataclasses.replace(self, dims=tuple(range(len(self.columns))))
        return (Term(1.0, (Factor(self.columns, local),)),)

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns a bound kernel sees."""
        return tuple(d for d in self.dims or () if isinstance(d, int))

    def per_input(self, value: Open) -> list[Float[Array, ""]]:
        """Return one number for each input, from one for all or one for each."""
        values = jnp.broadcast_to(jnp.asarray(value), (len(self.columns),))
        return [values[i] for i in range(len(self.columns))]

    def bound_dims(self, geometry: Geometry) -> tuple[int, ...]:
        """Return the columns that `dims` means in this geometry."""
        if self.dims is None:
            return tuple(range(len(geometry.names)))
        columns = tuple(geometry.index(d) for d in self.dims)
        if len(set(columns)) != len(columns):
            raise ValueError(f"{type(self).__name__}: dims={self.dims} names an input twice.")
        return columns


class Sum(Kernel):
    """The sum of kernels, made by `k1 + k2`.

    >>> from mrgp import Constant
    >>> (Constant(2.0) + Constant(3.0))([[0.0]]).tolist()
    [[5.0]]
    """

    kernels: tuple[Kernel, ...]

    def pair(
        self, x: Float[AnyArray, "*#batch d"], z: Float[AnyArray, "*#batch d"]
    ) -> Float[Array, "*batch"]:
        return functools.reduce(jnp.add, (k.pair(x, z) for k in self.kernels))

    def bind(self, binding: Binding) -> Kernel:
        share = binding._replace(variance=binding.variance / len(self.kernels))
        return Sum(tuple(k.bind(share) for k in self.kernels))

    def on(self, *dims: int | str) -> Kernel:
        return Sum(tuple(k.on(*dims) for k in self.kernels))

    def sum_of_products(self) -> tuple[Term, ...]:
        return tuple(term for k in self.kernels for term in k.sum_of_products())


class Product(Kernel):
    """The product of kernels, made by `k1 * k2`.

    Where several single kernels leave their variance open, the first is trained and the others are
    held, since the data can tell no more than their product. Where one is given, all open ones are
    held.

    >>> from mrgp import Constant
    >>> (Constant(2.0) * Constant(3.0))([[0.0]]).tolist()
    [[6.0]]
    """

    kernels: tuple[Kernel, ...]

    def pair(
        self, x: Float[AnyArray, "*#batch d"], z: Float[AnyArray, "*#batch d"]
    ) -> Float[Array, "*batch"]:
        return functools.reduce(jnp.multiply, (k.pair(x, z) for k in self.kernels))

    def bind(self, binding: Binding) -> Kernel:
        trained = [i for i, k in enumerate(self.kernels) if _trains_variance(k)]
        carrier = (trained or [0])[0] if not binding.freeze else -1
        given = any(_trains_variance(k) and not _open_variance(k) for k in self.kernels)
        unit = binding._replace(variance=1.0, freeze=True)
        bound = []
        for i, kernel in enumerate(self.kernels):
            carries = i == carrier and not (given and _open_variance(kernel))
            bound.append(kernel.bind(binding if carries else unit))
        return Product(tuple(bound))

    def on(self, *dims: int | str) -> Kernel:
        return Product(tuple(k.on(*dims) for k in self.kernels))

    def sum_of_products(self) -> tuple[Term, ...]:
        choices = itertools.product(*(k.sum_of_products() for k in self.kernels))
        return tuple(functools.reduce(_multiply, choice) for choice in choices)


class Scale(Kernel):
    """A kernel times a fixed number, made by `2.0 * k`.

    >>> from mrgp import Constant
    >>> (2.0 * Constant(3.0))([[0.0]]).tolist()
    [[6.0]]
    """

    factor: Scalar
    kernel: Kernel

    def pair(
        self, x: Float[AnyArray, "*#batch d"], z: Float[AnyArray, "*#batch d"]
    ) -> Float[Array, "*batch"]:
        return jnp.asarray(self.factor) * self.kernel.pair(x, z)

    def bind(self, binding: Binding) -> Kernel:
        inner = binding._replace(variance=binding.variance / float(self.factor))
        return Scale(np.asarray(self.factor, np.float64), self.kernel.bind(inner))

    def on(self, *dims: int | str) -> Kernel:
        return Scale(self.factor, self.kernel.on(*dims))

    def sum_of_products(self) -> tuple[Term, ...]:
        terms = self.kernel.sum_of_products()
        return tuple(Term(self.factor * t.coefficient, t.factors) for t in terms)


class Separable(Kernel):
    """A product of kernels over groups of named inputs, made by `separable`.

    >>> from mrgp import Linear
    >>> k = separable(x1=Linear(variance=1.0), space=Linear(variance=1.0))
    >>> k([[2.0, 3.0]], [[5.0, 7.0]]).tolist()  # 2 * 5 times 3 * 7
    [[210.0]]
    """

    groups: tuple[str, ...] = eqx.field(static=True)
    kernels: tuple[Kernel, ...]

    def pair(
        self, x: Float[AnyArray, "*#batch d"], z: Float[AnyArray, "*#batch d"]
    ) -> Float[Array, "*batch"]:
        raise NotImplementedError("bind a separable kernel before use")

    def bind(self, binding: Binding) -> Kernel:
        names = binding.geometry.names
        rest = tuple(name for name in names if name not in self.groups)
        others = [group for group in self.groups if group not in names]
        if len(others) != bool(rest):
            raise ValueError(
                f"separable({'=, '.join(self.groups)}=) does not fit the inputs {names}: give one"
                " keyword for each input, with at most one (such as space=) for all the remaining"
                " ones. Supports name their inputs by inputs=."
            )
        placed = (k.on(*((g,) if g in names else rest)) for g, k in self._items())
        return Product(tuple(placed)).bind(binding)

    def _items(self) -> zip:
        return zip(self.groups, self.kernels, strict=True)

    def on(self, *dims: int | str) -> Kernel:
        raise ValueError("A separable kernel already chooses its inputs.")

    def sum_of_products(self) -> tuple[Term, ...]:
        raise NotImplementedError("bind a separable kernel before use")


def separable(**kernels: Kernel) -> Kernel:
    """Multiply kernels over groups of inputs, given by name.

    A keyword that is no input's name stands for all the inputs not named otherwise.

    >>> from mrgp import Matern32, Periodic
    >>> k = separable(time=Matern32() + Periodic(24), space=Matern32())
    """
    if not kernels:
        raise ValueError("separable needs at least one kernel, such as time=Matern32().")
    return Separable(tuple(kernels), tuple(kernels.values()))


def _multiply(a: Term, b: Term) -> Term:
    """Multiply terms; factors that share an input become one factor over their joint inputs."""
    factors = list(a.factors)
    for new in b.factors:
        shared = [f for f in factors if set(f.dims) & set(new.dims)]
        factors = [f for f in factors if f not in shared]
        factors.append(functools.reduce(_join, shared, new))
    return Term(a.coefficient * b.coefficient, tuple(factors))


def _join(a: Factor, b: Factor) -> Factor:
    dims = tuple(sorted({*a.dims, *b.dims}))
    kernels = (View(tuple(dims.index(d) for d in f.dims), f.kernel) for f in (a, b))
    return Factor(dims, Product(tuple(kernels)))


class View(Kernel):
    """A bound kernel applied to some columns of its argument."""

    columns: tuple[int, ...] = eqx.field(static=True)
    kernel: Kernel

    def pair(
        self, x: Float[AnyArray, "*#batch d"], z: Float[AnyArray, "*#batch d"]
    ) -> Float[Array, "*batch"]:
        index = np.array(self.columns)
        return self.kernel.pair(x[..., index], z[..., index])

    def bind(self, binding: Binding) -> Kernel:
        return self

    def on(self, *dims: int | str) -> Kernel:
        raise ValueError("A view already chooses its inputs.")

    def sum_of_products(self) -> tuple[Term, ...]:
        return (Term(1.0, (Factor(self.columns, self.kernel),)),)


def _members(kernel: Kernel, kind: type[Sum] | type[Product]) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, kind) else (kernel,)


def _open_variance(kernel: Kernel) -> bool:
    """Tell whether a single kernel, scaled or not, leaves its variance to the data."""
    inner = kernel.kernel if isinstance(kernel, Scale) else kernel
    return isinstance(inner, LeafKernel) and inner.variance is None


def _trains_variance(kernel: Kernel) -> bool:
    """Tell whether a kernel has a variance of its own to train."""
    inner = kernel.kernel if isinstance(kernel, Scale) else kernel
    if not isinstance(inner, LeafKernel):
        return True
    return not isinstance(inner.variance, Parameter) or inner.variance.trainable


def _as_kernel(value: Any) -> Kernel:
    if isinstance(value, Kernel):
        return value
    from mrgp.kernels.structured import Constant

    return Constant(fixed(_positive(value)))


def _positive(value: Any) -> float:
    if not isinstance(value, int | float | np.number) or not (np.isfinite(value) and value > 0):
        raise ValueError(f"A kernel is combined with kernels and positive numbers; got {value!r}.")
    return float(value)


def _are_positive(value: Any) -> bool:
    numbers = np.asarray(value)
    return numbers.dtype.kind in "fiu" and bool(
        np.all(np.isfinite(numbers)) and np.all(numbers > 0)
    )


def _as_dims(dims: Any) -> Dims:
    if dims is None:
        return None
    dims = (dims,) if isinstance(dims, int | str) else tuple(dims)
    if not dims or not all(isinstance(d, int | str) for d in dims):
        raise ValueError(f"dims= takes input names or numbers; got {dims}.")
    return dims


def _rows(x: Any, name: str) -> np.ndarray:
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2:
        raise ValueError(f"{name} must have shape [n, d]; got {x.shape}.")
    return x
