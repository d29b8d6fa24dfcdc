"""Values as users give them, and those below a detection limit: known only to lie below it."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

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


def refuse_below(y: Vector, limits: Vector, label: str) -> None:
    """Refuse values at or below their limit, and say what may take their place."""
    below: Bool[np.ndarray, " n"] = y <= limits
    if not below.any():
        return
    row = int(np.argmax(below))
    raise ValueError(
        f"{label}: {below.sum()} of {(~np.isnan(y)).sum()} values are at or below the detection"
        f" limit, first in row {row} ({y[row]:.4g}, limit {limits[row]:.4g}). They are known only"
        " to lie below it, which a Gaussian likelihood cannot say. Put half the limit in their"
        " place, with a noise to match: y, noise = mrgp.below_limit(y, limit, noise_variance), and"
        " Observations(..., noise_variance=noise) without limit=. Or give NaN to leave them out,"
        " which makes predictions too high."
    )
