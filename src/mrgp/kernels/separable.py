"""Products of kernels over groups of inputs, given by name."""

import equinox as eqx

from mrgp._types import Batch, BatchInputs
from mrgp.kernels.base import Kernel, Product, Term
from mrgp.kernels.binding import Binding


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
        names = binding.geometry.names
        rest = tuple(name for name in names if name not in self.groups)
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
