"""What values of a likelihood need beside themselves: exposures and trials, and which there are."""

import warnings
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from mrgp.likelihoods import Likelihood
from mrgp.supports import Support

Vector = Float[np.ndarray, " n"]


def check_exposure(
    given: Any, likelihood: Likelihood, support: Support, label: str
) -> Vector | None:
    """Return the exposure of every row, or say what is wrong with it."""
    if given is None:
        return None
    if likelihood.domain == "successes":
        raise ValueError(
            f"{label}: successes have trials=, and no exposure=; the field is a probability."
        )
    values = _one_each(given, len(support), f"{label}: exposure")
    _refuse(~(np.isfinite(values) & (values > 0)), values, f"{label}: exposure must be positive")
    if support.kind == "sum":
        warnings.warn(
            f"{label}: the support is of sums, and there is an exposure too: both multiply the"
            " field. Where the exposure is inside the regions, leave exposure= out; else use"
            ' kind="mean".',
            stacklevel=4,
        )
    return values


def check_trials(given: Any, likelihood: Likelihood, y: Vector, label: str) -> Vector | None:
    """Return the trials of every row, or say what is wrong with them."""
    if likelihood.domain != "successes":
        if given is not None:
            raise ValueError(f"{label}: trials= go with mrgp.Binomial(); leave them out.")
        return None
    if given is None:
        raise ValueError(f"{label}: mrgp.Binomial() needs trials=, one number or one for each row.")
    values = _one_each(given, len(y), f"{label}: trials")
    seen = ~np.isnan(y)
    wrong = seen & ~((values >= 1) & (values == np.round(values)))
    _refuse(wrong, values, f"{label}: trials must be whole numbers, at least 1")
    return np.where(seen, values, 1.0)


def check_domain(likelihood: Likelihood, y: Vector, trials: Vector | None, label: str) -> None:
    """Refuse values that a likelihood cannot have."""
    seen, name = ~np.isnan(y), likelihood.name
    if likelihood.domain == "positive":
        _refuse(seen & (y <= 0), y, f"{label}: values of {name!r} must be positive")
    if likelihood.domain in ("count", "successes"):
        _refuse(seen & (y < 0), y, f"{label}: counts must not be negative")
        _refuse(seen & (y != np.round(y)), y, f"{label}: counts must be whole numbers")
    if trials is not None:
        _refuse(seen & (y > trials), y, f"{label}: successes must not exceed trials")


def _one_each(given: Any, count: int, what: str) -> Vector:
    values = np.asarray(given, dtype=np.float64)
    if values.shape not in ((), (count,)):
        raise ValueError(
            f"{what} must be one number or {count}, one for each row; got shape {values.shape}."
        )
    return np.broadcast_to(values, (count,)).copy()


def _refuse(wrong: Bool[np.ndarray, " n"], values: Vector, what: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{what}; {wrong.sum()} of {len(values)} are not, first row {row} with"
            f" {values[row]:.6g}. Correct them, or use NaN for missing values."
        )
