"""The shape alphabet, and double precision at the edge of the API.

Axis names used in annotations throughout: `n` observation, `m` inducing point or second
set of observations, `s` node of a support, `d` input dimension, `k` mixture component.
"""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from mrgp._hush import hushed

AnyArray = Array | np.ndarray
Scalar = Float[AnyArray, ""] | float
Vector = Float[AnyArray, " n"]
Inputs = Float[AnyArray, "n d"]
NodeInputs = Float[AnyArray, "n s d"]
NodeWeights = Float[AnyArray, "n s"]
BatchInputs = Float[AnyArray, "*#batch d"]
Batch = Float[Array, "*batch"]
Square = Float[Array, "n n"]
Number = Float[Array, ""]

P = ParamSpec("P")
R = TypeVar("R")


def to_numpy(tree: Any) -> Any:
    """Turn every concrete JAX array of a tree into a NumPy array."""

    def leaf(value: Any) -> Any:
        concrete = isinstance(value, jax.Array) and not isinstance(value, Tracer)
        return np.array(value) if concrete else value

    return jax.tree.map(leaf, tree)


def float64(function: Callable[P, R]) -> Callable[P, R]:
    """Run a public function in double precision, whatever the host program uses.

    JAX's precision switch is entered as a context and left again; arrays in the result come
    back as NumPy, which keeps float64 outside the context. Alarms of the compiler stay away.
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        with hushed(), jax.enable_x64(True):
            return to_numpy(function(*args, **kwargs))

    return wrapper
