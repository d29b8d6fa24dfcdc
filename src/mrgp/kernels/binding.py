"""How a kernel's recipe meets the data: starting values, priors and limits of its numbers."""

from typing import Any, NamedTuple

import numpy as np

from mrgp.parameters import LogNormal, Parameter, fixed, positive
from mrgp.supports import Geometry

Open = Any
"""A number of a kernel. In a recipe: a starting value, a `Parameter`, or None for "from the data";
in a bound kernel: a `Parameter`; after `unwrap`: an array."""

VARIANCE_LOG_SD = 1.5
ALPHA_LOG_SD = 1.0
LONGEST = 3.0
LARGEST = 100.0
LEAST_ALPHA = 0.01


class Binding(NamedTuple):
    """What a kernel must know of the data to fill in what its recipe leaves open.

    `freeze` keeps a variance that the recipe leaves open at its starting value.

    >>> from mrgp import RBF
    >>> bound = RBF().bind(Binding(Geometry.unit(1), variance=4.0))
    >>> float(bound.variance.value)
    4.0
    """

    geometry: Geometry
    variance: float = 1.0
    priors: bool = False
    freeze: bool = False


def bind_lengthscale(value: Open, dims: tuple[int, ...], binding: Binding) -> Parameter:
    """Start a lengthscale at the given number, or one for each input from the geometry.

    The default prior leaves little mass below the spacing of supports and little above the domain,
    and a fit stops at three times the domain (theory 5.6).
    """
    if isinstance(value, Parameter):
        check_shape(value.raw, ((), (len(dims),)), "lengthscale")
        return value
    typical, spread = binding.geometry.typical[list(dims)], binding.geometry.log_spread[list(dims)]
    if value is not None and np.ndim(value) == 0:
        typical, spread = np.exp(np.log(typical).mean()), spread.max()
    start = np.asarray(typical if value is None else value, np.float64)
    check_shape(start, ((), (len(dims),)), "lengthscale")
    scale = np.broadcast_to(typical, start.shape)
    if not binding.priors:
        return positive(start, scale=scale)
    extent = binding.geometry.extent[list(dims)]
    ceiling = LONGEST * (extent if start.ndim else extent.max())
    return positive(start, LogNormal(typical, spread), scale=scale, ceiling=ceiling)


def bind_variance(value: Open, binding: Binding, scale: Any = 1.0) -> Parameter:
    """Start a variance at the given number, or at `scale` times the variance of the data."""
    typical = np.asarray(binding.variance * scale, np.float64)
    start = value.raw if isinstance(value, Parameter) else typical if value is None else value
    check_shape(start, ((), typical.shape), "variance")
    if isinstance(value, Parameter):
        return value
    if value is None and binding.freeze:
        return fixed(typical)
    if np.ndim(start) == 0:
        typical = np.exp(np.log(typical).mean())
    scale = np.broadcast_to(typical, np.shape(start))
    if not binding.priors:
        return positive(start, scale=scale)
    prior = LogNormal(typical, np.asarray(VARIANCE_LOG_SD))
    return positive(start, prior, scale=scale, ceiling=LARGEST * scale)


def bind_alpha(value: Open, binding: Binding) -> Parameter:
    """Start the shape of a rational quadratic at the given number, or at one.

    Below its floor the kernel is nearly constant, and above its ceiling nearly an RBF.
    """
    start = value.raw if isinstance(value, Parameter) else 1.0 if value is None else value
    check_shape(start, ((),), "alpha")
    if isinstance(value, Parameter):
        return value
    floor = min(LEAST_ALPHA, 0.5 * float(start))
    if not binding.priors:
        return positive(start, scale=1.0, floor=floor)
    prior = LogNormal(np.ones(()), np.asarray(ALPHA_LOG_SD))
    return positive(start, prior, scale=1.0, floor=floor, ceiling=LARGEST)


def bind_origin(value: Open, dims: tuple[int, ...], binding: Binding, kernel: str) -> np.ndarray:
    """Return the origin for each input in centred coordinates: the given one, or the centre."""
    if isinstance(value, Parameter):
        raise ValueError(f"{kernel}: origin is a plain number, or one for each input.")
    centre = binding.geometry.centre[list(dims)]
    given = centre if value is None else np.asarray(value, np.float64)
    check_shape(given, ((), (len(dims),)), f"{kernel}: origin")
    return np.broadcast_to(given - centre, (len(dims),))


def bind_held(value: Open, name: str) -> Parameter:
    """Hold a number that others can make up for, unless it is given as a parameter."""
    held = value if isinstance(value, Parameter) else fixed(value)
    check_shape(held.raw, ((),), name)
    if not np.all(np.asarray(held.value) >= 0):
        raise ValueError(f"{name} must not be negative; got {float(held.value)}.")
    return held


def check_shape(value: Any, allowed: tuple[tuple[int, ...], ...], name: str) -> None:
    """Refuse a number of the wrong shape."""
    shape = np.shape(value)
    if shape not in allowed:
        several = sorted({s[0] for s in allowed if s})
        more = f" or {several[0]}, one for each input the kernel sees" if several else ""
        raise ValueError(f"{name} must be one number{more}; got shape {shape}.")
