"""What likelihoods have in common: values of either sign, positive ones, counts."""

import abc

import jax.numpy as jnp

from mrgp.distributions import COUNTS, GAUSSIANS
from mrgp.likelihoods.likelihood import Domain, Rows, Values
from mrgp.links import Scale


class OfReals:
    """Values of either sign about mu, which is seen as it is, with a noise variance to learn.

    >>> from mrgp import StudentT
    >>> StudentT().scale, StudentT().own
    ('real', 'noise_variance')
    """

    scale: Scale = "real"
    domain: Domain = "real"
    own = "noise_variance"
    distribution = GAUSSIANS


class OfPositives(abc.ABC):
    """Values about a positive mu, whose logarithm is seen as Gaussian.

    >>> from mrgp import GammaValues, Poisson
    >>> isinstance(GammaValues(), OfPositives), Poisson().scale
    (True, 'log')
    """

    conjugate = False
    scale: Scale = "log"

    def log_prob(self, y: Rows, mu: Rows, noise: Rows) -> Values:
        """Return log p(y | mu)."""
        logs = jnp.log(jnp.asarray(mu))
        return self.expected_log_prob(y, logs, jnp.zeros_like(logs), noise)

    @abc.abstractmethod
    def expected_log_prob(self, y: Rows, mean: Rows, variance: Rows, noise: Rows) -> Values:
        """Return E[log p(y | mu)] where log mu is N(mean, variance)."""


class OfAmounts(OfPositives):
    """Positive values.

    >>> from mrgp import GammaValues
    >>> GammaValues().domain
    'positive'
    """

    domain: Domain = "positive"


class OfCounts(OfPositives):
    """Counts.

    >>> from mrgp import NegativeBinomial
    >>> NegativeBinomial().domain
    'count'
    """

    domain: Domain = "count"
    distribution = COUNTS
