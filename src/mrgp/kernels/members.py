"""The kernels that a composed kernel has inside it, and their parameters by name."""

import dataclasses
from typing import Any

import jax

from mrgp.kernels.base import Kernel, LeafKernel, Product, Scale, Sum, View
from mrgp.parameters import Parameter


def single_kernels(kernel: Kernel) -> list[Kernel]:
    """List the kernels that a kernel is composed of, down to those that are not composed.

    >>> from mrgp import RBF, White
    >>> [type(k).__name__ for k in single_kernels(2.0 * RBF() + White())]
    ['RBF', 'White']
    """

    def is_single(node: Any) -> bool:
        return isinstance(node, Kernel) and not isinstance(node, Sum | Product | Scale | View)

    return [k for k in jax.tree.leaves(kernel, is_leaf=is_single) if isinstance(k, Kernel)]


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
