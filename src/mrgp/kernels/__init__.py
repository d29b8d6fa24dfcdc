"""HOW points covary: kernels over inputs, their sums and products."""

from mrgp.kernels.base import Constant, Factor, Kernel, LeafKernel, Product, Scale, Sum, Term
from mrgp.kernels.binding import Binding
from mrgp.kernels.composed import (
    Separable,
    kernel_parameters,
    lengthscale_inputs,
    separable,
    single_kernels,
)
from mrgp.kernels.nonstationary import ArcCosine, Polynomial
from mrgp.kernels.spectral import SpectralMixture
from mrgp.kernels.stationary import (
    RBF,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    Stationary,
)
from mrgp.kernels.structured import Category, Linear, Periodic, White, has_white, is_stationary

__all__ = [
    "RBF",
    "ArcCosine",
    "Binding",
    "Category",
    "Constant",
    "Factor",
    "Kernel",
    "LeafKernel",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Polynomial",
    "Product",
    "RationalQuadratic",
    "Scale",
    "Separable",
    "SpectralMixture",
    "Stationary",
    "Sum",
    "Term",
    "White",
    "has_white",
    "is_stationary",
    "kernel_parameters",
    "lengthscale_inputs",
    "separable",
    "single_kernels",
]
