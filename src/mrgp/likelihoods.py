"""p(y | mu): how values scatter about what their support sees, and what predictions of them are.

A likelihood is a value that `Observations` carries through the record to the bound, the posterior,
the prediction and its scores. A distribution is what a prediction has for each region: components
along the first axis, each by its mean and variance.
"""

import dataclasses
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import ndtr, ndtri

from mrgp._types import AnyArray

BISECTIONS = 60

Rows = Float[AnyArray, " n"]
Mixed = Float[np.ndarray, "k n"]
Parts = tuple[Mixed, Mixed, Mixed]
"""Weights, means and variances of the components."""

Draws = Float[np.ndarray, "j n"]
Matrix = Float[np.ndarray, "a b"]
Vector = Float[np.ndarray, " n"]


@runtime_checkable
class Distribution(Protocol):
    """What is predicted of every region: a mixture whose components have a mean and a variance.

    >>> isinstance(Gaussians(), Distribution)
    True
    """

    def moments(self, parts: Parts) -> tuple[Vector, Vector]:
        """Return mean and variance of each region."""
        ...

    def cdf(self, parts: Parts, value: Any) -> Vector:
        """Return P(value <= t)."""
        ...

    def exceedance(self, parts: Parts, value: Any) -> Vector:
        """Return P(value > t), as exact in the tail as `cdf` is in its own."""
        ...

    def log_density(self, parts: Parts, value: Any) -> Vector:
        """Return the log density, or log probability, of a value."""
        ...

    def quantile(self, parts: Parts, q: float) -> Vector:
        """Return the q-quantile."""
        ...

    def crps(self, parts: Parts, value: Any) -> Vector:
        """Return the continuous ranked probability score of a value."""
        ...

    def sample(self, parts: Parts, rng: np.random.Generator, count: int) -> Draws:
        """Draw values, independent from region to region."""
        ...


@runtime_checkable
class Likelihood(Protocol):
    """How the values of a source scatter about mu, what its supports see of the field.

    `conjugate` says that a Gaussian field stays Gaussian given values: exact and collapsed
    inference serve such likelihoods alone.

    >>> isinstance(Gaussian(), Likelihood), isinstance(Gaussians(), Likelihood)
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

    def log_prob(self, y: Rows, mu: Rows, noise: Rows) -> Float[Array, " n"]:
        """Return log p(y | mu)."""
        ...

    def expected_log_prob(
        self, y: Rows, mean: Rows, variance: Rows, noise: Rows
    ) -> Float[Array, " n"]:
        """Return E[log p(y | mu)] for mu ~ N(mean, variance)."""
        ...

    def observe(self, means: Matrix, variances: Matrix, noise: Any) -> tuple[Matrix, Matrix]:
        """Return the components of a new value, from those of mu."""
        ...

    @property
    def distribution(self) -> Distribution:
        """What a new value is distributed as."""
        ...


@dataclasses.dataclass(frozen=True)
class Gaussians:
    """Mixtures of Gaussians, of which one Gaussian is the simplest.

    >>> one = np.ones((1, 1))
    >>> float(Gaussians().crps((one, 0 * one, one), [0.0])[0].round(3))
    0.234
    """

    def moments(self, parts: Parts) -> tuple[Vector, Vector]:
        """Return mean and variance of each region."""
        weights, means, variances = parts
        mean = (weights * means).sum(0)
        return mean, (weights * (variances + (means - mean) ** 2)).sum(0)

    def cdf(self, parts: Parts, value: Any) -> Vector:
        """Return P(value <= t)."""
        return (parts[0] * ndtr(_standardised(parts, value))).sum(0)

    def exceedance(self, parts: Parts, value: Any) -> Vector:
        """Return P(value > t)."""
        return (parts[0] * ndtr(-_standardised(parts, value))).sum(0)

    def log_density(self, parts: Parts, value: Any) -> Vector:
        """Return the log density of a value."""
        weights, _, variances = parts
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            squares = _standardised(parts, value) ** 2
            scale = 2 * np.pi * np.maximum(variances, np.finfo(float).tiny)
            return np.logaddexp.reduce(np.log(weights) - 0.5 * (squares + np.log(scale)), axis=0)

    def quantile(self, parts: Parts, q: float) -> Vector:
        """Return the q-quantile, which lies between those of the components."""
        _, means, variances = parts
        ends = means + ndtri(q) * np.sqrt(variances)
        low, high = ends.min(0), ends.max(0)
        if len(means) == 1:
            return low
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            below = self.cdf(parts, middle) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)

    def crps(self, parts: Parts, value: Any) -> Vector:
        """Return E|X - y| - E|X - X'| / 2, in closed form (theory 8)."""
        weights, means, variances = parts
        away = means - np.asarray(value, np.float64)
        to_value = (weights * _mean_absolute(away, variances)).sum(0)
        apart = (
            w * (weights * _mean_absolute(m - means, v + variances)).sum(0)
            for w, m, v in zip(*parts, strict=True)
        )
        return to_value - 0.5 * sum(apart)

    def sample(self, parts: Parts, rng: np.random.Generator, count: int) -> Draws:
        """Draw values, independent from region to region."""
        weights, means, variances = parts
        shape = (count, means.shape[1])
        cumulative = np.cumsum(weights, 0)[:, None, :]
        component = (rng.uniform(size=shape)[None] > cumulative[:-1]).sum(0)
        columns = np.arange(shape[1])
        mean, variance = means[component, columns], variances[component, columns]
        return mean + np.sqrt(variance) * rng.standard_normal(shape)


GAUSSIANS = Gaussians()


@dataclasses.dataclass(frozen=True)
class Gaussian:
    """Values with independent Gaussian noise: y = mu + N(0, s2).

    >>> one = np.ones(1)
    >>> found = Gaussian().expected_log_prob(one, one, one, one)
    >>> round(float(found[0]), 3)  # log N(1 | 1, 1) - 1/2
    -1.419
    """

    name = "gaussian"
    conjugate = True
    distribution = GAUSSIANS

    def log_prob(self, y: Rows, mu: Rows, noise: Rows) -> Float[Array, " n"]:
        """Return log N(y | mu, s2)."""
        return self.expected_log_prob(y, mu, jnp.zeros(()), noise)

    def expected_log_prob(
        self, y: Rows, mean: Rows, variance: Float[AnyArray, "*n"], noise: Rows
    ) -> Float[Array, " n"]:
        """Return E[log N(y | mu, s2)] for mu ~ N(mean, variance)."""
        squares = (jnp.asarray(y) - mean) ** 2 + variance
        return -0.5 * (jnp.log(2.0 * jnp.pi * jnp.asarray(noise)) + squares / noise)

    def observe(self, means: Matrix, variances: Matrix, noise: Any) -> tuple[Matrix, Matrix]:
        """Return the components of a new value: wider by the noise."""
        return means, variances + noise


GAUSSIAN = Gaussian()
LIKELIHOODS: dict[str, Likelihood] = {"gaussian": GAUSSIAN}


def as_likelihood(given: Any, label: str) -> Likelihood:
    """Accept a likelihood, or the word for one.

    >>> as_likelihood("gaussian", "source 'sensors'").name
    'gaussian'
    """
    if isinstance(given, str) and given in LIKELIHOODS:
        return LIKELIHOODS[given]
    if isinstance(given, str | type) or not isinstance(given, Likelihood):
        raise ValueError(f"{label}: likelihood= is one of {tuple(LIKELIHOODS)}; got {given!r}.")
    return given


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


def _standardised(parts: Parts, value: Any) -> Mixed:
    """Return (value - mean) / sd; a sd of zero counts as the smallest number."""
    _, means, variances = parts
    sd = np.sqrt(np.maximum(variances, np.finfo(float).tiny))
    with np.errstate(over="ignore"):
        return (np.asarray(value, np.float64) - means) / sd


def _mean_absolute(mean: Mixed, variance: Mixed) -> Mixed:
    """Return E|N(m, v)| = m (2 Phi(m / s) - 1) + 2 s phi(m / s)."""
    sd = np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    with np.errstate(over="ignore"):
        z = mean / sd
        density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return mean * (2 * ndtr(z) - 1) + 2 * sd * density
