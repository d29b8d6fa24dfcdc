"""How a kernel's recipe meets the data: starting values, priors and limits of its numbers."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from mrgp.parameters import LogNormal, Parameter, fixed, positive
from mrgp.supports import Geometry

Open = Any
"""A number of a kernel. In a recipe: a starting value, a `Parameter`, or None for "from the data";
in a bound kernel: a `Parameter`; after `unwrap`: an array."""

Shapes = tuple[tuple[int, ...], ...]

VARIANCE_LOG_SD = 1.5
LONGEST = 3.0
LARGEST = 100.0


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


def start_of(value: Open, default: Any, shapes: Shapes, name: str) -> Float[np.ndarray, "..."]:
    """Return where a number starts, as given or by default, if it is of one of the shapes."""
    start = value.raw if isinstance(value, Parameter) else default if value is None else value
    check_shape(start, shapes, name)
    return np.asarray(start, np.float64)


def bind_positive(
    value: Open, start: Any, binding: Binding, prior: tuple[Any, Any], **limits: Any
) -> Parameter:
    """Keep a given parameter, or train a positive number, with limits as `positive` takes them.

    By default its prior is log-normal of this median and log-sd, and the ceiling holds with it.
    """
    if isinstance(value, Parameter):
        return value
    if not binding.priors:
        limits.pop("ceiling", None)
        return positive(start, **limits)
    return positive(start, LogNormal(*map(np.asarray, prior)), **limits)


def bind_unitless(
    value: Open, binding: Binding, name: str, least: float, **limits: Any
) -> Parameter:
    """Start a number without a unit at the given one, or at one; `least` is its default floor."""
    start = start_of(value, 1.0, ((),), name)
    floor = min(least, 0.5 * float(start))
    return bind_positive(value, start, binding, (1.0, 1.0), floor=floor, **limits)


def bind_lengthscale(value: Open, dims: tuple[int, ...], binding: Binding) -> Parameter:
    """Start a lengthscale at the given number, or one for each input from the geometry.

    The default prior leaves little mass below the spacing of supports and little above the domain,
    and a fit stops at three times the domain (theory 5.6).
    """
    geometry, columns = binding.geometry, list(dims)
    typical, spread, extent = (
        lengths[columns] for lengths in (geometry.typical, geometry.log_spread, geometry.extent)
    )
    start = start_of(value, typical, ((), (len(dims),)), "lengthscale")
    if start.ndim == 0:
        typical, spread, extent = np.exp(np.log(typical).mean()), spread.max(), extent.max()
    scale = np.broadcast_to(typical, start.shape)
    return bind_positive(
        value, start, binding, (typical, spread), scale=scale, ceiling=LONGEST * extent
    )


def bind_variance(value: Open, binding: Binding, scale: Any = 1.0) -> Parameter:
    """Start a variance at the given number, or at `scale` times the variance of the data."""
    typical = np.asarray(binding.variance * scale, np.float64)
    start = start_of(value, typical, ((), typical.shape), "variance")
    if value is None and binding.freeze:
        return fixed(typical)
    if start.ndim == 0:
        typical = np.exp(np.log(typical).mean())
    scale = np.broadcast_to(typical, start.shape)
    return bind_positive(
        value, start, binding, (typical, VARIANCE_LOG_SD), scale=scale, ceiling=LARGEST * scale
    )


def bind_origin(value: Open, dims: tuple[int, ...], binding: Binding, kernel: str) -> np.ndarray:
    """Return the origin for each input in centred coordinates: the given one, or the centre."""
    if isinstance(value, Parameter):
        raise ValueError(f"{kernel}: origin is a plain number, or one for each input.")
    centre = binding.geometry.centre[list(dims)]
    given = centre if value is None else np.asarray(value, np.float64)
    check_shape(given, ((), (len(dims),)), f"{kernel}: origin")
    return np.broadcast_to(given - centre, (len(dims),))


def bind_held(value: Open, name: str, *, zero: bool = True) -> Parameter:
    """Hold a number unless it is given as a parameter; `zero` says whether it may be zero."""
    held = value if isinstance(value, Parameter) else fixed(value)
    check_shape(held.raw, ((),), name)
    number = float(held.value)
    if number < 0 or (number == 0 and not zero):
        raise ValueError(
            f"{name} must {'not be negative' if zero else 'be positive'}; got {number}."
        )
    return held


def check_shape(value: Any, allowed: Shapes, name: str) -> None:
    """Refuse a number of the wrong shape."""
    shape = np.shape(value)
    if shape not in allowed:
        several = sorted({s[0] for s in allowed if s})
        more = f" or {several[0]}, one for each input the kernel sees" if several else ""
        raise ValueError(f"{name} must be one number{more}; got shape {shape}.")
