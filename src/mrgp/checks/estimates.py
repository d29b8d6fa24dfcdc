"""What covariates do to the field: levels of categories, slopes of numbers (theory 12.3)."""

from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp._types import float64
from mrgp.inference import Fit
from mrgp.models.effects import effect_terms
from mrgp.supports import Points

NORMAL = 1.959963984540054


@float64
def effects(fit: Fit) -> Any:
    """Return the effects of a fit's covariates, one row for each level and each slope.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> effects(mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen])))
    Traceback (most recent call last):
    ValueError: effects: the fit has none. Covariates that no kernel names have effects...
    """
    import pandas as pd

    rows: dict[str, tuple[float, float]] = {}
    linear: Any = fit.model.linear
    for column, term in _terms(fit):
        name, levels = fit.inputs[column], _levels(fit)[column]
        at = _places(fit, column, term, levels)
        mean, covariance = (np.asarray(v) for v in linear.part(fit.state, term, at))
        # A level is told about the mean of all; a slope is what one unit adds.
        names = [name] if levels is None else [f"{name}={level}" for level in levels]
        about = np.array([[-1.0, 1.0]]) if levels is None else _centring(len(levels))
        mean, covariance = about @ mean, about @ covariance @ about.T
        deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        rows |= dict(zip(names, zip(mean.tolist(), deviations.tolist(), strict=True), strict=True))
    if not rows:
        raise ValueError(
            "effects: the fit has none. Covariates that no kernel names have effects in MRGP: give"
            " them as points(x, covariates=frame) or from_frame(..., covariates=[...])."
        )
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "sd"])
    reach = NORMAL * frame["sd"]
    return frame.assign(lower_95=frame["mean"] - reach, upper_95=frame["mean"] + reach)


def has_effects(fit: Fit) -> bool:
    """Tell whether covariates have effects in a fit.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> has_effects(mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen])))
    False
    """
    return bool(_terms(fit))


def _terms(fit: Fit) -> list[Any]:
    """Return the terms of a fit's kernel that are effects of its covariates."""
    linear = fit.model.linear
    if linear is None or linear.field is None:
        return []
    known = _levels(fit)
    return [found for found in effect_terms(linear.field) if found[0] in known]


def _levels(fit: Fit) -> dict[int, tuple[str, ...] | None]:
    """Return the levels of each covariate, by its column; those of numbers are None."""
    return {
        fit.inputs.index(name): field.levels
        for field in fit.covariates or ()
        for name in field.names
    }


def _places(fit: Fit, column: int, term: Any, levels: tuple[str, ...] | None) -> Points:
    """Return a point for each level, or two that are one unit apart, about the term's origin."""
    values = np.arange(2.0 if levels is None else len(levels))
    x = np.zeros((len(values), len(fit.inputs)))
    x[:, column] = np.asarray(term.origin).ravel()[0] + values
    return Points(x, np.ones(len(values)))


def _centring(count: int) -> Float[np.ndarray, "n n"]:
    return np.eye(count) - 1.0 / count
