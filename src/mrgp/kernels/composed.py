"""Kernels made of others: over groups of inputs, and the kernels that they have inside."""

import dataclasses
from typing import Any

import equinox as eqx
import jax

from mrgp._types import Batch, BatchInputs
from mrgp.kernels.base import Kernel, LeafKernel, Product, Scale, Sum, Term, View
from mrgp.kernels.binding import Binding
from mrgp.parameters import Parameter
from mrgp.supports import Spaces


class Separable(Kernel):
    """A product of kernels over groups of named inputs, made by `separable`.

    >>> from mrgp import Linear
    >>> k = separable(x1=Linear(variance=1.0), space=Linear(variance=1.0))
    >>> k([[2.0, 3.0]], [[5.0, 7.0]]).tolist()  # 2 * 5 times 3 * 7
    [[210.0]]
    """

    groups: tuple[str, ...] = eqx.field(static=True)
    kernels: tuple[Kernel, ...]

    def pair(self, x: BatchInputs, z: BatchInputs) -> Batch:
        raise NotImplementedError("bind a separable kernel before use")

    def bind(self, binding: Binding) -> Kernel:
        geometry, names = binding.geometry, binding.geometry.names
        rest = tuple(names[d] for d in geometry.open if names[d] not in self.groups)
        others = [group for group in self.groups if group not in names]
        if len(others) != bool(rest):
            raise ValueError(
                f"separable({'=, '.join(self.groups)}=) does not fit the inputs {names}: give one"
                " keyword for each input, with at most one (such as space=) for all the remaining"
                " ones. Supports name their inputs by inputs=."
            )
        groups = zip(self.groups, self.kernels, strict=True)
        placed = (k.on(*((group,) if group in names else rest)) for group, k in groups)
        return Product(tuple(placed)).bind(binding)

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


def single_kernels(kernel: Kernel) -> list[Kernel]:
    """List the kernels that a kernel is composed of, down to those that are not composed.

    >>> from mrgp import RBF, White
    >>> [type(k).__name__ for k in single_kernels(2.0 * RBF() + White())]
    ['RBF', 'White']
    """

    def is_single(node: Any) -> bool:
        return isinstance(node, Kernel) and not isinstance(node, Sum | Product | Scale | View)

    return [k for k in jax.tree.leaves(kernel, is_leaf=is_single) if isinstance(k, Kernel)]


def lengthscale_inputs(tree: Any) -> dict[int, Spaces]:
    """Return the columns along which each number of a lengthscale is, by the parameter's `id`.

    Those of a share of a period are along none.

    >>> from mrgp import RBF
    >>> from mrgp.supports import Geometry
    >>> bound = RBF().bind(Binding(Geometry.unit(2)))
    >>> lengthscale_inputs(bound)[id(bound.lengthscale)]
    ((0,), (1,))
    """
    leaves = jax.tree.leaves(tree, is_leaf=lambda node: isinstance(node, LeafKernel))
    return {
        id(getattr(leaf, "lengthscale", None)): getattr(leaf, "along", ((),))
        for leaf in leaves
        if isinstance(leaf, LeafKernel) and hasattr(leaf, "lengthscale")
    }


def kernel_parameters(kernel: Kernel, inputs: tuple[str, ...]) -> dict[str, Parameter]:
    """Return the parameters of a bound kernel by name.

    The parts of a composed kernel go by their class, with their inputs where they see only some,
    and a number where that is not enough: `kernel.Matern32(time).lengthscale`.

    >>> from mrgp import Constant, White
    >>> from mrgp.kernels import Binding
    >>> from mrgp.supports import Geometry
    >>> bound = (White() + Constant()).bind(Binding(Geometry.unit(1)))
    >>> list(kernel_parameters(bound, ("time",)))
    ['kernel.White.variance', 'kernel.Constant.variance']
    """
    found: dict[str, Parameter] = {}
    used: dict[str, int] = {}
    for leaf in single_kernels(kernel):
        prefix = "kernel"
        if leaf is not kernel:
            prefix += f".{type(leaf).__name__}"
            if isinstance(leaf, LeafKernel) and len(leaf.columns) < len(inputs):
                prefix += f"({', '.join(inputs[d] for d in leaf.columns)})"
            used[prefix] = used.get(prefix, 0) + 1
            prefix += f" {used[prefix]}" if used[prefix] > 1 else ""
        for field in dataclasses.fields(leaf):
            value = getattr(leaf, field.name)
            if isinstance(value, Parameter):
                found[f"{prefix}.{field.name}"] = value
    return found
