"""Values as users give them, and those below a detection limit: known only to lie below it."""

from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.likelihoods import Censorable, Likelihood

Vector = Float[np.ndarray, " n"]


def as_values(values: Any, name: str) -> Float[np.ndarray, "..."]:
    """Return a float64 copy of values, masked ones as NaN, or say that they are not numbers.

    >>> as_values([1, None, 2.5], "y")
    array([1. , nan, 2.5])
    """
    if np.ma.isMaskedArray(values):
        values = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
    array = np.asarray(values)
    if array.dtype.kind == "O":
        # Python numbers beside None, as database drivers give them.
        array = np.array([np.nan if v is None else v for v in array.ravel()]).reshape(array.shape)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, with NaN for missing; got {array.dtype}.")
    return np.array(array, dtype=np.float64)


def below_limit(y: Any, limit: Any, noise_variance: Any) -> tuple[Vector, Vector]:
    """Put half the limit in place of values at or below it, with the variance of not knowing more.

    For models that take no censored values (`Observations(..., limit=)`): networks and deep models.

    A value known only to lie between zero and the limit L has, if all of that range is alike, the
    mean L / 2 and the variance L^2 / 12, which is added to the noise. `noise_variance` is the noise
    of the values themselves, one number or one for each: where some are given, all must be. Left
    unknown, it can be taken from `fit.parameters()` of a fit without the values below. Returns
    the values and the noise variances for `Observations`. NaN stays missing.

    >>> y, noise = below_limit([3.0, 0.2], limit=0.6, noise_variance=0.01)
    >>> y, noise.round(3)
    (array([3. , 0.3]), array([0.01, 0.04]))
    """
    values = as_values(y, "below_limit: y")
    if values.ndim != 1:
        raise ValueError(f"below_limit: y must have shape [n]; got {values.shape}.")
    limits = check_limit(limit, values, "below_limit")
    if noise_variance is None:
        raise TypeError(
            "below_limit: noise_variance= must be given, because a source whose values differ in"
            " noise has all noises known. Take the instrument's, or that of a fit without the"
            ' values below the limit: fit.parameters()["noise_variance[name]"].'
        )
    noise = np.asarray(noise_variance, dtype=np.float64)
    if noise.shape not in ((), values.shape) or not np.all(noise > 0):
        raise ValueError(
            f"below_limit: noise_variance must be one positive number or {len(values)}; got"
            f" {noise_variance!r}."
        )
    below = values <= limits
    noise = np.broadcast_to(noise, values.shape)
    return np.where(below, limits / 2, values), noise + np.where(below, limits**2 / 12, 0.0)


def check_limit(limit: Any, y: Vector, label: str) -> Vector:
    """Return the detection limit of every value, or say what is wrong with it."""
    limits = np.asarray(limit, dtype=np.float64)
    if limits.shape not in ((), y.shape):
        raise ValueError(
            f"{label}: limit must be one number or {len(y)}, one for each value; got shape"
            f" {limits.shape}."
        )
    if not np.all(np.isfinite(limits) & (limits > 0)):
        raise ValueError(f"{label}: a detection limit must be positive and finite; got {limit!r}.")
    return np.broadcast_to(limits, y.shape).copy()


def check_limits(
    lower: Any, upper: Any, y: Vector, likelihood: Likelihood, label: str
) -> tuple[Vector | None, Vector | None]:
    """Return the limits below and above for every value, or say what is wrong with them."""
    if lower is not None:
        lower = check_limit(lower, y, label)
    if upper is not None:
        upper = np.asarray(upper, dtype=np.float64)
        if upper.shape not in ((), y.shape) or not np.all(np.isfinite(upper)):
            raise ValueError(
                f"{label}: upper_limit must be one finite number or {len(y)}, one for each value;"
                f" got {upper!r}."
            )
        upper = np.broadcast_to(upper, y.shape).copy()
    if lower is not None and upper is not None and np.any(lower >= upper):
        raise ValueError(f"{label}: limit must lie below upper_limit.")
    if censoring(y, lower, upper) is not None and not isinstance(likelihood, Censorable):
        raise ValueError(
            f"{label}: values at or beyond a limit go with the likelihoods 'gaussian', 'student_t'"
            f" and 'log_normal'; got {likelihood.name!r}. Give NaN to leave them out."
        )
    return lower, upper


def censoring(y: Vector, lower: Vector | None, upper: Vector | None) -> Vector | None:
    """Return -1 for values at or below their limit, 1 for those at or above, or None if all lie in.

    >>> censoring(np.array([0.5, 2.0]), np.array([0.5, 0.5]), None)
    array([-1.,  0.])
    """
    side = np.zeros(y.shape)
    if lower is not None:
        side = np.where(y <= lower, -1.0, side)
    if upper is not None:
        side = np.where(y >= upper, 1.0, side)
    return side if side.any() else None


def within(y: Vector, lower: Vector | None, upper: Vector | None) -> Vector:
    """Return values with those beyond a limit at the limit."""
    if lower is None and upper is None:
        return y
    low, high = (-np.inf if lower is None else lower), (np.inf if upper is None else upper)
    values = np.clip(y, low, high)
    values.flags.writeable = False
    return values
