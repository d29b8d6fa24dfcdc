"""Which kernels and supports can be solved along time, and why others cannot (theory 10.1)."""

from collections.abc import Mapping, Sequence
from typing import Any

from mrgp.gp.statespace import refused_in_time
from mrgp.kernels import Kernel
from mrgp.kernels.composed import single_kernels
from mrgp.supports import Support, taken_apart


def refusal(
    kernels: Sequence[Kernel],
    time: int,
    supports: Mapping[str, Support],
    names: Sequence[str],
) -> str | None:
    """Say why kernels or supports cannot be solved along time, or return None.

    Supports go by what they are called in words.

    >>> from mrgp import RBF
    >>> refusal((RBF(1.0, variance=1.0, dims=(0,)),), 0, {}, ("hour",))[:33]
    "RBF in 'hour' has no states of fi"
    """
    for kernel in kernels:
        for term in kernel.sum_of_products():
            for factor in term.factors:
                found = _refused_factor(factor, time, names)
                if found is not None:
                    return found
    for label, support in supports.items():
        try:
            taken_apart(support, time)
        except ValueError as error:
            return f"{label}: {error}; regions must be a place times an instant or a window in time"
    return None


def _refused_factor(factor: Any, time: int, names: Sequence[str]) -> str | None:
    if time not in factor.dims:
        return None
    label = names[time]
    if len(factor.dims) > 1:
        inner = ", ".join(sorted({type(k).__name__ for k in single_kernels(factor.kernel)}))
        return (
            f"{inner} joins {label!r} with other inputs in one distance; write a product, as"
            f" mrgp.separable({label}=mrgp.Matern32(), space=mrgp.Matern32())"
        )
    name = refused_in_time(factor.kernel)
    if name is None:
        return None
    return (
        f"{name} in {label!r} has no states of finite number; take Matern12, Matern32, Matern52,"
        " Periodic, Constant, or products and sums of those"
    )
