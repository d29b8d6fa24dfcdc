"""The word for each likelihood."""

from typing import Any

from mrgp.likelihoods.amounts import GammaValues, LogNormalValues
from mrgp.likelihoods.events import Binomial, NegativeBinomial, Poisson
from mrgp.likelihoods.likelihood import Likelihood
from mrgp.likelihoods.noises import GAUSSIAN, StudentT

_MADE: tuple[Likelihood, ...] = (
    GAUSSIAN,
    StudentT(),
    Poisson(),
    NegativeBinomial(),
    Binomial(),
    GammaValues(),
    LogNormalValues(),
)
LIKELIHOODS: dict[str, Likelihood] = {made.name: made for made in _MADE}


def as_likelihood(given: Any, label: str) -> Likelihood:
    """Accept a likelihood, or the word for one.

    >>> as_likelihood("gaussian", "source 'sensors'").name
    'gaussian'
    """
    if isinstance(given, str) and given in LIKELIHOODS:
        return LIKELIHOODS[given]
    if isinstance(given, str | type) or not isinstance(given, Likelihood):
        written = f" Write {given.__name__}()." if isinstance(given, type) else ""
        raise ValueError(
            f"{label}: likelihood= is one of {tuple(LIKELIHOODS)}, or a value such as"
            f" mrgp.Poisson(); got {given!r}.{written}"
        )
    return given
