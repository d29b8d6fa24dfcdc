"""HOW values scatter about mu, what their supports see: p(y | mu), and what is expected of it.

A likelihood is a value that `Observations` carries through the record to the bound, the posterior,
the prediction and its scores.
"""

from mrgp.likelihoods.amounts import GammaValues, LogNormalValues
from mrgp.likelihoods.events import Binomial, NegativeBinomial, Poisson
from mrgp.likelihoods.likelihood import (
    Censorable,
    Likelihood,
    by_quadrature,
    expected_of_rows,
    tempering_constant,
)
from mrgp.likelihoods.noises import GAUSSIAN, Gaussian, StudentT
from mrgp.likelihoods.words import LIKELIHOODS, as_likelihood

__all__ = [
    "GAUSSIAN",
    "LIKELIHOODS",
    "Binomial",
    "Censorable",
    "GammaValues",
    "Gaussian",
    "Likelihood",
    "LogNormalValues",
    "NegativeBinomial",
    "Poisson",
    "StudentT",
    "as_likelihood",
    "by_quadrature",
    "expected_of_rows",
    "tempering_constant",
]
