"""What a likelihood is, and what is expected of rows.

It sees mu as Gaussian on a scale of its own: mu itself, its logarithm, or the z of which it is Phi
(theory 11.3, 11.4).
"""

from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.distributions import GAUSSIANS, Distribution, Parts, Pieces
from mrgp.links import Scale

QUADRATURE = 20

Rows = Float[AnyArray, " n"]
Values = Float[Array, " n"]
Domain = Literal["real", "positive", "count", "successes"]
"""Which values there are: any, positive ones, whole numbers, or whole numbers up to the trials."""


@runtime_checkable
class Likelihood(Protocol):
    """How the values of a source scatter about mu, what its supports see of the field.

    `conjugate` says that a Gaussian field stays Gaussian given values. `own` names the parameter
    that every source with this likelihood has (None: it has none); `noise` is its value in each
    row, or the trials of a binomial.

    >>> from mrgp.likelihoods import Gaussian
    >>> isinstance(Gaussian(), Likelihood), isinstance(GAUSSIANS, Likelihood)
    (True, False)
    """

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def conjugate(self) -> bool:
        """Whether the posterior of a Gaussian field is Gaussian."""
        ...

    @property
    def scale(self) -> Scale:
        """The scale on which mu is Gaussian."""
        ...

    @property
    def domain(self) -> Domain:
        """Which values there are."""
        ...

    @property
    def own(self) -> str | None:
        """The name of its parameter."""
        ...

    def log_prob(self, y: Rows, mu: Rows, noise: Rows) -> Values:
        """Return log p(y | mu)."""
        ...

    def expected_log_prob(self, y: Rows, mean: Rows, variance: Rows, noise: Rows) -> Values:
        """Return E[log p(y | mu)] where mu, on the likelihood's scale, is N(mean, variance)."""
        ...

    def observe(self, parts: Parts, noise: Any, of: Distribution = GAUSSIANS) -> Pieces:
        """Return the components of a new value, from those of mu, whose distribution is `of`."""
        ...

    @property
    def distribution(self) -> Distribution:
        """What a new value is distributed as."""
        ...


@runtime_checkable
class Censorable(Likelihood, Protocol):
    """A likelihood that can say of a value that it lies below a limit, or above.

    >>> from mrgp.likelihoods import Gaussian, Poisson
    >>> isinstance(Gaussian(), Censorable), isinstance(Poisson(), Censorable)
    (True, False)
    """

    def expected_log_tail(
        self, limit: Rows, mean: Rows, variance: Rows, noise: Rows, side: Rows
    ) -> Values:
        """Return E[log P(y beyond the limit)], below it where `side` is -1, above where it is 1."""
        ...


def expected_of_rows(
    likelihood: Likelihood,
    y: Rows,
    mean: Rows,
    variance: Rows,
    noise: Rows,
    censored: Rows | None = None,
) -> Values:
    """Return what is expected of every row, of those beyond a limit that they are beyond it.

    >>> from mrgp.likelihoods import GAUSSIAN
    >>> one = np.ones(2)
    >>> found = expected_of_rows(GAUSSIAN, one, one, 0 * one, one, censored=np.array([0.0, -1.0]))
    >>> [round(float(value), 3) for value in found]  # log N(1 | 1, 1), log 1/2
    [-0.919, -0.693]
    """
    rows = likelihood.expected_log_prob(y, mean, variance, noise)
    if censored is None or not isinstance(likelihood, Censorable):
        return rows
    side = jnp.asarray(censored)
    tail = likelihood.expected_log_tail(y, mean, variance, noise, jnp.where(side == 0, 1.0, side))
    return jnp.where(side == 0, rows, tail)


def by_quadrature(function: Callable[[Array], Array], mean: Rows, variance: Rows) -> Values:
    """Return E[function(z)] for z ~ N(mean, variance), by Gauss and Hermite's rule.

    >>> float(by_quadrature(lambda z: z**2, jnp.ones(1), jnp.ones(1))[0].round(6))
    2.0
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE)
    # The square root has no slope at zero; no variance is so small that it matters.
    sd = jnp.sqrt(jnp.maximum(jnp.asarray(variance), 1e-14))
    values = jax.vmap(lambda node: function(jnp.asarray(mean) + node * sd))(jnp.asarray(nodes))
    return jnp.asarray(weights / weights.sum()) @ values


def tempering_constant(
    noise: Float[AnyArray, " n"], weight: Float[AnyArray, " n"]
) -> Float[Array, ""]:
    """Return what N(y|m,s2)^phi has beyond N(y|m,s2/phi), in logs, summed over rows (theory 2.2).

    It is zero at phi = 1 and does not involve y, but it depends on the noise and so matters to
    the fit of hyperparameters.

    >>> float(tempering_constant(jnp.ones(1), jnp.ones(1)))
    0.0
    """
    log_noise = jnp.log(2.0 * jnp.pi * noise)
    return jnp.sum(0.5 * (log_noise - jnp.log(weight)) - 0.5 * weight * log_noise)
