"""How a kernel's recipe meets the data: starting values, priors and limits of its numbers."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from mrgp.parameters import LogNormal, Normal, Parameter, fixed, positive, real
from mrgp.supports import Geometry, Spaces, grouped

Open = Any
"""A number of a kernel. In a recipe: a starting value, a `Parameter`, or None for "from the data";
in a bound kernel: a `Parameter`; after `unwrap`: an array."""

Shapes = tuple[tuple[int, ...], ...]

VARIANCE_LOG_SD = 1.5
STRETCH_SD = 0.7
LONGEST = 3.0
LARGEST = 100.0


class Binding(NamedTuple):
    """What a kernel must know of the data to fill in what its recipe leaves open.

    `freeze` keeps a variance that the recipe leaves open at its starting value. `largest` is the
    most that the variance of a term may be, whatever its share; by default 100 times the share.
    `log_sd` is how far a variance may well be from where it starts.

    >>> from mrgp import RBF
    >>> bound = RBF().bind(Binding(Geometry.unit(1), variance=4.0))
    >>> float(bound.variance.value)
    4.0
    """

    geometry: Geometry
    variance: float = 1.0
    priors: bool = False
    freeze: bool = False
    largest: float | None = None
    log_sd: float = VARIANCE_LOG_SD


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


def bind_lengthscale(
    value: Open, dims: tuple[int, ...], binding: Binding
) -> tuple[Parameter, Spaces]:
    """Start a lengthscale at the given numbers, or by the geometry one for each space.

    Inputs of one space share a number, and others have one each. The default prior leaves little
    mass below the spacing of supports and little above the domain, and a fit stops at three times
    the domain (theory 5.6). Returns the places in `dims` of the inputs of each number too.
    """
    geometry = binding.geometry
    groups = grouped(dims, geometry.spaces)
    shapes = ((), (len(dims),), (len(groups),))
    given = start_of(value, np.ones(len(groups)), shapes, "lengthscale")
    if given.ndim == 0:
        groups = (dims,)
    elif len(given) == len(dims):
        groups = tuple((d,) for d in dims)
    # What inputs have in common is typical of all, and as wide as the widest of them.
    lengths = geometry.typical, geometry.log_spread, geometry.extent
    typical = np.array([np.exp(np.log(lengths[0][list(g)]).mean()) for g in groups])
    spread, extent = (np.array([of[list(g)].max() for g in groups]) for of in lengths[1:])
    typical, spread, extent = (x.reshape(given.shape) for x in (typical, spread, extent))
    start = typical if value is None else given
    ceiling = LONGEST * extent
    made = bind_positive(value, start, binding, (typical, spread), scale=typical, ceiling=ceiling)
    return made, tuple(tuple(map(dims.index, group)) for group in groups)


def bind_stretch(value: Open, size: int, binding: Binding) -> Parameter:
    """Start the form of an ellipse at a circle, or as given, with a prior about a circle."""
    count = size * (size + 1) // 2 - 1
    start = start_of(value, np.zeros(count), ((count,),), "stretch")
    if isinstance(value, Parameter):
        return value
    prior = Normal(np.zeros(count), np.full(count, STRETCH_SD)) if binding.priors else None
    return real(start, prior)


def bind_variance(value: Open, binding: Binding, scale: Any = 1.0) -> Parameter:
    """Start a variance at the given number, or at `scale` times the variance of the data."""
    typical = np.asarray(binding.variance * scale, np.float64)
    most = LARGEST * binding.variance if binding.largest is None else binding.largest
    start = start_of(value, typical, ((), typical.shape), "variance")
    if value is None and binding.freeze:
        return fixed(typical)
    if start.ndim == 0:
        typical = np.exp(np.log(typical).mean())
    scale = np.broadcast_to(typical, start.shape)
    ceiling = most / binding.variance * scale
    return bind_positive(
        value, start, binding, (typical, binding.log_sd), scale=scale, ceiling=ceiling
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
        more = f" or {several[-1]}, one for each input the kernel sees" if several else ""
        raise ValueError(f"{name} must be one number{more}; got shape {shape}.")
