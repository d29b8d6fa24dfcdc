"""Kernels of the inner product of two inputs: polynomials, and wide neural networks."""

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from mrgp._types import AnyArray, Batch, BatchInputs
from mrgp.kernels.base import Factor, LeafKernel, Term
from mrgp.kernels.binding import Binding, Open, bind_held, bind_origin, bind_variance
from mrgp.kernels.stationary import root


class InnerProduct(LeafKernel):
    """A kernel of b + sum_d weight_variance_d (x - origin)_d (z - origin)_d, where b is `held`.

    One weight variance is shared by all the inputs; several, or none given, make one for each.
    `origin` is in the user's coordinates; a fit takes the centre of the data unless it is given.
    """

    held: ClassVar[str]
    weight_variance: Open = eqx.field(default=None, kw_only=True)
    origin: Open = eqx.field(default=None, kw_only=True)

    def centred(self, x: Float[AnyArray, "*batch d"]) -> list[Float[AnyArray, "*batch"]]:
        """Return the inputs that the kernel sees from its origin, one by one."""
        origins = zip(self.columns, self.per_input(self.origin), strict=True)
        return [x[..., d] - origin for d, origin in origins]

    def bind_numbers(self, dims: tuple[int, ...], binding: Binding) -> dict[str, Any]:
        extent, name = binding.geometry.extent[list(dims)], type(self).__name__
        # The variance carries the scale of the data; weights are relative to the domain.
        unit = binding._replace(variance=1.0, freeze=False)
        return super().bind_numbers(dims, binding) | {
            "weight_variance": bind_variance(self.weight_variance, unit, scale=1.0 / extent**2),
            "origin": bind_origin(self.origin, dims, binding, name),
            self.held: bind_held(getattr(self, self.held), f"{name}: {self.held}"),
        }


class Polynomial(InnerProduct):
    """Polynomials: variance * (offset + sum_d weight_variance_d (x - o)_d (z - o)_d)^degree.

    The offset weighs low powers against high ones. It stays fixed unless given as `positive(1.0)`,
    since weights and variance can make up for it; zero leaves the highest power alone. `origin` is
    in the user's coordinates; a fit takes the centre of the data unless it is given.

    Averages over boxes are exact. There are (degree + D)! / (degree! D!) terms in D inputs, all of
    which are averaged: high degrees belong on few inputs.

    >>> Polynomial(2, offset=1.0, weight_variance=1.0)([[3.0]], [[2.0]])
    array([[49.]])
    """

    held: ClassVar[str] = "offset"
    degree: Any = eqx.field(static=True, default=2)
    offset: Open = 1.0

    def __check_init__(self) -> None:
        if type(self.degree) is not int or self.degree < 1:
            raise ValueError(
                f"Polynomial: degree must be a whole number, at least 1; got {self.degree!r}."
            )

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        weights = self.per_input(self.weight_variance)
        parts = zip(weights, self.centred(x), self.centred(z), strict=True)
        inner = functools.reduce(jnp.add, (w * (a * b) for w, a, b in parts))
        return self.variance * (self.offset + inner) ** self.degree

    def sum_of_products(self) -> tuple[Term, ...]:
        if len(self.columns) == 1:
            return self.product_over_inputs()
        weights, origins = self.per_input(self.weight_variance), self.per_input(self.origin)
        terms = []
        # The multinomial theorem: powers[0] is that of the offset, the others those of the inputs.
        for powers in _compositions(self.degree, 1 + len(self.columns)):
            ways = math.factorial(self.degree) / math.prod(map(math.factorial, powers))
            coefficient = ways * self.variance * self.offset ** powers[0]
            factors = []
            for d, power, weight, o in zip(self.columns, powers[1:], weights, origins, strict=True):
                if power:
                    coefficient = coefficient * weight**power
                    factors.append(Factor((d,), _monomial(power, o)))
            terms.append(Term(coefficient, tuple(factors)))
        return tuple(terms)


class ArcCosine(InnerProduct):
    """A wide network of one hidden layer, with steps, ramps or squared ramps (order 0, 1, 2).

    Inputs become vectors of the length |x|^2 = bias_variance + sum_d weight_variance_d (x - o)_d^2
    and k(x, z) = variance / pi * |x|^order |z|^order J_order(angle between them), J_0 = pi - angle.
    Functions are continuous, and `order` times differentiable. The bias variance stays fixed unless
    given as `positive(1.0)`, since weights and variance can make up for it. `origin` is in the
    user's coordinates; a fit takes the centre of the data unless it is given.

    Means over intervals are quadrature, good to 1e-3, 1e-5 and 1e-6 of themselves at the orders 0,
    1 and 2; over boxes with several sides the regions become nodes (theory 1.4).

    >>> ArcCosine(1, weight_variance=1.0)([[0.0]], [[1.0]]).round(4)
    array([[1.0683]])
    """

    held: ClassVar[str] = "bias_variance"
    order: Any = eqx.field(static=True, default=0)
    bias_variance: Open = 1.0

    def __check_init__(self) -> None:
        if type(self.order) is not int or self.order not in (0, 1, 2):
            raise ValueError(f"ArcCosine: order must be 0, 1 or 2; got {self.order!r}.")

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        dot, area = self._dot_and_area(x, z)
        # pi - theta; at the origin without bias there is no angle, and a step is half on.
        nowhere = (dot == 0.0) & (area == 0.0)
        rest = jnp.arctan2(jnp.where(nowhere, 1.0, area), -dot)
        if self.order == 0:
            value = rest
        elif self.order == 1:
            value = area + rest * dot
        else:
            value = 3.0 * area * dot + rest * (area**2 + 3.0 * dot**2)
        return self.variance / jnp.pi * value

    def _dot_and_area(self, x: BatchInputs, z: BatchInputs) -> tuple[Batch, Batch]:
        """Return |x| |z| times the cosine and the sine of the angle between two mapped inputs.

        The area of the parallelogram comes from differences x - z, so that the angle between near
        inputs keeps its digits; an arccosine would lose half of them, and its slope at x = z. It is
        spanned from the shorter input, whose digits a sum with the longer would lose, and so is the
        same, to the last digit, when x and z swap.
        """
        weights, b = self.per_input(self.weight_variance), jnp.asarray(self.bias_variance)
        inputs = list(zip(weights, self.centred(x), self.centred(z), strict=True))
        dot = functools.reduce(jnp.add, (w * (p * q) for w, p, q in inputs)) + b
        squares = [b * w * (p - q) ** 2 for w, p, q in inputs]
        for (w, p, q), (v, r, s) in itertools.combinations(inputs, 2):
            longer = (p**2 + r**2) - (q**2 + s**2)
            first, second = _shorter(longer, p, q), _shorter(longer, r, s)
            squares.append(w * v * (first * (s - r) - second * (q - p)) ** 2)
        return dot, root(functools.reduce(jnp.add, squares))


def _shorter(
    longer: Float[AnyArray, "*batch"], x: Float[AnyArray, "*#batch"], z: Float[AnyArray, "*#batch"]
) -> Batch:
    """Take x, or z where x is the longer one, or the middle of equally long ones."""
    return jnp.where(longer > 0, z, jnp.where(longer < 0, x, 0.5 * (x + z)))


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """List the ways to write a whole number as a sum of `parts` whole numbers, in order."""
    # Bars between stars: each part is what lies between two bars.
    for bars in itertools.combinations(range(total + parts - 1), parts - 1):
        edges = itertools.pairwise((-1, *bars, total + parts - 1))
        yield tuple(stop - start - 1 for start, stop in edges)


def _monomial(power: int, origin: Float[AnyArray, ""]) -> Polynomial:
    """Return ((x - origin) (z - origin))^power, a kernel of one input."""
    zero, one = np.zeros(()), np.ones(())
    return Polynomial(power, zero, weight_variance=one, variance=one, origin=origin, dims=(0,))
