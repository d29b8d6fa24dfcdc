"""What a kernel is, and how kernels combine: sums, products, scaling, chosen inputs."""

import abc
import dataclasses
import functools
import itertools
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray, Batch, BatchInputs, Inputs, Scalar, float64
from mrgp.kernels.binding import Binding, Open, bind_variance
from mrgp.parameters import Parameter, fixed, unwrap
from mrgp.supports import Geometry

Dims = tuple[int | str, ...] | None
"""The inputs a kernel sees, by number or name; None is all of them."""

_POSITIVE = ("lengthscale", "variance", "period", "alpha", "weight_variance")
_POSITIVE += ("weight", "frequency", "bandwidth")
_SIGNS = dict.fromkeys(_POSITIVE, (np.greater, "positive and finite"))
_SIGNS |= dict.fromkeys(("offset", "bias_variance"), (np.greater_equal, "finite and not negative"))


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
    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
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
        if not isinstance(other, Kernel):
            other = Constant(fixed(_positive(other)))
        return Sum.joined(self, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> "Kernel":
        if isinstance(other, Kernel):
            return Product.joined(self, other)
        return Scale(_positive(other), self)

    __rmul__ = __mul__


def _as_dims(dims: Any) -> Dims:
    if dims is None:
        return None
    dims = (dims,) if isinstance(dims, int | str) else tuple(dims)
    if not dims or not all(isinstance(d, int | str) for d in dims):
        raise ValueError(f"dims= takes input names or numbers; got {dims}.")
    return dims


class LeafKernel(Kernel):
    """A kernel that is not made of others: it has a variance and sees some of the inputs.

    >>> from mrgp import RBF
    >>> bound = RBF(dims="x2").bind(Binding(Geometry.unit(3)))
    >>> bound.columns
    (1,)
    """

    variance: Open = eqx.field(default=None, kw_only=True)
    dims: Dims = eqx.field(static=True, default=None, kw_only=True, converter=_as_dims)
    reads_codes: ClassVar[bool] = False

    def __check_init__(self) -> None:
        for name, (bound, words) in _SIGNS.items():
            value = getattr(self, name, np.ones(()))
            # Only what must be positive may be left to the data.
            left_open = value is None and bound is np.greater
            if not (left_open or _all_numbers(value, bound)):
                raise ValueError(f"{type(self).__name__}: {name} must be {words}; got {value}.")

    def bind(self, binding: Binding) -> Kernel:
        dims = self.bound_dims(binding.geometry)
        self._require_distances(dims, binding.geometry)
        return dataclasses.replace(self, dims=dims, **self.bind_numbers(dims, binding))

    def bind_numbers(self, dims: tuple[int, ...], binding: Binding) -> dict[str, Any]:
        """Return the kernel's numbers by field, as parameters; alone, it has a variance."""
        return {"variance": bind_variance(self.variance, binding)}

    def on(self, *dims: int | str) -> Kernel:
        if self.dims is not None:
            raise ValueError(f"{type(self).__name__} already sees the inputs {self.dims}.")
        return dataclasses.replace(self, dims=dims)

    def sum_of_products(self) -> tuple[Term, ...]:
        local = dataclasses.replace(self, dims=tuple(range(len(self.columns))))
        return (Term(1.0, (Factor(self.columns, local),)),)

    def product_over_inputs(self, **numbers: list[Any]) -> tuple[Term, ...]:
        """Write the kernel as one of unit variance of each input, whose numbers are these."""
        factors = []
        for i, d in enumerate(self.columns):
            own = {name: values[i] for name, values in numbers.items()}
            unit = dataclasses.replace(self, variance=np.ones(()), dims=(0,), **own)
            factors.append(Factor((d,), unit))
        return (Term(self.variance, tuple(factors)),)

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
            return geometry.open
        columns = tuple(geometry.index(d) for d in self.dims)
        if len(set(columns)) != len(columns):
            raise ValueError(f"{type(self).__name__}: dims={self.dims} names an input twice.")
        return columns

    def _require_distances(self, dims: tuple[int, ...], geometry: Geometry) -> None:
        """Refuse a kernel of numbers along an input of codes."""
        codes = [geometry.names[d] for d in dims if d in geometry.categories]
        if codes and not self.reads_codes:
            raise ValueError(
                f"{type(self).__name__}: {codes[0]!r} has categories, between which there are no"
                f' distances. Name other inputs with dims=, and add Category(dims="{codes[0]}").'
            )


class Constant(LeafKernel):
    """A constant: the same unknown level everywhere.

    >>> Constant(2.0)([[0.0]], [[5.0]])
    array([[2.]])
    """

    variance: Open = None
    reads_codes: ClassVar[bool] = True

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        shape = jnp.broadcast_shapes(x.shape[:-1], z.shape[:-1])
        return jnp.broadcast_to(jnp.asarray(self.variance), shape)

    def sum_of_products(self) -> tuple[Term, ...]:
        return (Term(self.variance, ()),)


class Several(Kernel):
    """Kernels that are combined into one."""

    kernels: tuple[Kernel, ...]

    def on(self, *dims: int | str) -> Kernel:
        return type(self)(tuple(k.on(*dims) for k in self.kernels))

    @classmethod
    def joined(cls, *kernels: Kernel) -> Kernel:
        """Combine kernels; those that are combined in this way already give their members."""
        members = ((k.kernels if isinstance(k, cls) else (k,)) for k in kernels)
        return cls(tuple(itertools.chain(*members)))


class Sum(Several):
    """The sum of kernels, made by `k1 + k2`.

    >>> from mrgp import Constant
    >>> (Constant(2.0) + Constant(3.0))([[0.0]]).tolist()
    [[5.0]]
    """

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        return functools.reduce(jnp.add, (k.pair(x, z) for k in self.kernels))

    def bind(self, binding: Binding) -> Kernel:
        share = binding._replace(variance=binding.variance / len(self.kernels))
        return Sum(tuple(k.bind(share) for k in self.kernels))

    def sum_of_products(self) -> tuple[Term, ...]:
        return tuple(term for k in self.kernels for term in k.sum_of_products())


class Product(Several):
    """The product of kernels, made by `k1 * k2`.

    Where several single kernels leave their variance open, the first is trained and the others are
    held, since the data can tell no more than their product. Where one is given, all open ones are
    held.

    >>> from mrgp import Constant
    >>> (Constant(2.0) * Constant(3.0))([[0.0]]).round(9).tolist()
    [[6.0]]
    """

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        return functools.reduce(jnp.multiply, (k.pair(x, z) for k in self.kernels))

    def bind(self, binding: Binding) -> Kernel:
        trained = [i for i, k in enumerate(self.kernels) if _trains_variance(k)]
        carrier = (trained or [0])[0] if not binding.freeze else -1
        given = any(_trains_variance(k) and not _open_variance(k) for k in self.kernels)
        unit = binding._replace(variance=1.0, freeze=True, largest=None)
        bound = []
        for i, kernel in enumerate(self.kernels):
            carries = i == carrier and not (given and _open_variance(kernel))
            bound.append(kernel.bind(binding if carries else unit))
        return Product(tuple(bound))

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

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        return jnp.asarray(self.factor) * self.kernel.pair(x, z)

    def bind(self, binding: Binding) -> Kernel:
        factor = float(self.factor)
        largest = None if binding.largest is None else binding.largest / factor
        inner = binding._replace(variance=binding.variance / factor, largest=largest)
        return Scale(np.asarray(self.factor, np.float64), self.kernel.bind(inner))

    def on(self, *dims: int | str) -> Kernel:
        return Scale(self.factor, self.kernel.on(*dims))

    def sum_of_products(self) -> tuple[Term, ...]:
        terms = self.kernel.sum_of_products()
        return tuple(Term(self.factor * t.coefficient, t.factors) for t in terms)


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

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        index = np.array(self.columns)
        return self.kernel.pair(x[..., index], z[..., index])

    def bind(self, binding: Binding) -> Kernel:
        return self

    def on(self, *dims: int | str) -> Kernel:
        raise ValueError("A view already chooses its inputs.")

    def sum_of_products(self) -> tuple[Term, ...]:
        return (Term(1.0, (Factor(self.columns, self.kernel),)),)


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


def _positive(value: Any) -> float:
    if not isinstance(value, int | float | np.number) or not (np.isfinite(value) and value > 0):
        raise ValueError(f"A kernel is combined with kernels and positive numbers; got {value!r}.")
    return float(value)


def _all_numbers(value: Any, bound: np.ufunc) -> bool:
    """Tell whether plain numbers are finite and beyond zero; arrays and parameters pass."""
    if not isinstance(value, int | float | str | tuple | list | None):
        return True
    numbers = np.asarray(value)
    return numbers.dtype.kind in "fiu" and bool(np.all(np.isfinite(numbers) & bound(numbers, 0)))


def _rows(x: Any, name: str) -> np.ndarray:
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2:
        raise ValueError(f"{name} must have shape [n, d]; got {x.shape}.")
    return x
