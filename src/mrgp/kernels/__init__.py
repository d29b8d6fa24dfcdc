"""HOW points covary: kernels over inputs, their sums and products."""

from mrgp.kernels.base import (
    Factor,
    Kernel,
    LeafKernel,
    Product,
    Scale,
    Separable,
    Sum,
    Term,
    kernel_parameters,
    separable,
)
from mrgp.kernels.binding import Binding
from mrgp.kernels.stationary import RBF, Matern, Matern12, Matern32, Matern52, Stationary
from mrgp.kernels.structured import Constant, Linear, Periodic, White, has_white, is_stationary

__all__ = [
    "RBF",
    "Binding",
    "Constant",
    "Factor",
    "Kernel",
    "LeafKernel",
    "Linear",
    "Matern",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Product",
    "Scale",
    "Separable",
    "Stationary",
    "Sum",
    "Term",
    "White",
    "has_white",
    "is_stationary",
    "kernel_parameters",
    "separable",
]
