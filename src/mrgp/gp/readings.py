"""What sources read of latent functions: the rows of a linear-Gaussian model (theory 2.1, 2.2)."""

import functools
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mrgp._types import AnyArray
from mrgp.gp.covariance import cross_covariance, full_covariance, variance
from mrgp.kernels import Kernel
from mrgp.likelihoods import GAUSSIAN, Likelihood, tempering_constant
from mrgp.supports import DEFAULT_RULE, Rule, Shapes, Support

Kernels = tuple[Kernel, ...]
"""The kernels of independent GPs, f_1 to f_Q (bound and unwrapped)."""

Ratio = Float[AnyArray, " q"]


class Reading(eqx.Module):
    """Values y = level + sum_q r_q L f_q + noise of one source, for independent GPs f_q.

    `noise` is the noise variance s2 of every row and `weight` its composite weight phi.

    >>> from mrgp import points
    >>> x, y = points([[0.0], [1.0]]), jnp.array([2.0, 3.0])
    >>> reading = Reading(x, jnp.ones(1), y, jnp.ones(2), noise=jnp.ones(2))
    >>> reading.take(jnp.array([1])).residual.tolist()
    [2.0]
    """

    support: Support
    ratio: Ratio
    y: Float[AnyArray, " n"]
    level: Float[AnyArray, " n"]
    noise: Float[AnyArray, " n"]
    weight: Float[AnyArray, " n"] | float = 1.0
    shapes: Shapes | None = None
    likelihood: Likelihood = eqx.field(static=True, default=GAUSSIAN)

    @property
    def residual(self) -> Float[Array, " n"]:
        """The values without their level."""
        return jnp.asarray(self.y) - self.level

    @property
    def effective_noise(self) -> Float[Array, " n"]:
        """s2 / phi, the noise under which the tempered posterior is that of phi = 1."""
        return jnp.asarray(self.noise) / self.weight

    def take(self, rows: Int[Array, " b"]) -> "Reading":
        """Return some rows."""
        weight = self.weight if jnp.ndim(self.weight) == 0 else jnp.asarray(self.weight)[rows]
        shapes = None if self.shapes is None else self.shapes[rows]
        return Reading(
            self.support[rows],
            self.ratio,
            self.y[rows],
            self.level[rows],
            self.noise[rows],
            weight,
            shapes,
            self.likelihood,
        )


class Readings(NamedTuple):
    """The readings of all sources; `shared` is the covariance of errors they have in common.

    >>> from mrgp import points
    >>> one = jnp.ones(1)
    >>> once = Reading(points([[0.0]]), one, 2 * one, 0 * one, noise=one, weight=0.5)
    >>> read = Readings((once, once))
    >>> len(read), read.noise.tolist()
    (2, [2.0, 2.0])
    """

    sources: tuple[Reading, ...]
    shared: Float[Array, "n n"] | None = None

    def __len__(self) -> int:
        return sum(source.y.shape[0] for source in self.sources)

    @property
    def residual(self) -> Float[Array, " n"]:
        """The residuals of all values, one source after another."""
        return jnp.concatenate([source.residual for source in self.sources])

    @property
    def noise(self) -> Float[Array, " n"]:
        """The effective noise that each value has alone."""
        return jnp.concatenate([source.effective_noise for source in self.sources])

    @property
    def tempering(self) -> Float[Array, ""]:
        """What weights add to the log evidence beyond a larger noise (theory 2.2)."""
        if self.shared is not None:
            # Shared errors count once: there are no weights.
            return jnp.zeros(())
        rows = [jnp.broadcast_to(jnp.asarray(s.weight), s.y.shape) for s in self.sources]
        parts = [tempering_constant(s.noise, w) for s, w in zip(self.sources, rows, strict=True)]
        return jnp.sum(jnp.stack(parts))


def mixed_covariance(
    kernels: Kernels, ratio: Ratio, first: Support, other: Ratio, second: Support, rule: Rule
) -> Float[Array, "n m"]:
    """Return the covariance between sum_q r_q L f_q and sum_q r'_q L' f_q."""
    parts = (
        r * s * cross_covariance(k, first, second, rule)
        for k, r, s in zip(kernels, ratio, other, strict=True)
    )
    return functools.reduce(jnp.add, parts)


def prior_covariance(kernels: Kernels, readings: Readings, rule: Rule) -> Float[Array, "n n"]:
    """Return the covariance of what all sources see, without noise.

    >>> from mrgp import RBF, points
    >>> x, one = points([[0.0]]), jnp.ones(1)
    >>> sources = tuple(Reading(x, ratio * one, one, 0 * one, one) for ratio in (1.0, 2.0))
    >>> kernels = (RBF(1.0, variance=1.0, dims=0),)
    >>> prior_covariance(kernels, Readings(sources), DEFAULT_RULE).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    total, sources = jnp.zeros(()), readings.sources
    for q, kernel in enumerate(kernels):
        blocks = full_covariance(kernel, tuple(s.support for s in sources), rule)
        scaled = [
            [a.ratio[q] * b.ratio[q] * block for b, block in zip(sources, row, strict=True)]
            for a, row in zip(sources, blocks, strict=True)
        ]
        total = total + jnp.block(scaled)
    return total


class Posterior(eqx.Module):
    """Gaussian processes given data, as covariances with a set of anchors.

    With k the covariances between g = sum_q r_q L f_q and the anchors: mean k^T alpha, variance
    var(g) - |root k|^2. Anchors are inducing inputs of each f_q, or the data's own supports, with
    ratios of their own. `unexplained` is the prior variance that inducing inputs cannot express,
    as a share of the noise, on average.

    >>> from mrgp import RBF, points
    >>> kernels, x, one = (RBF(1.0, variance=1.0, dims=0),), points([[0.0]]), jnp.ones(1)
    >>> posterior = Posterior((x,), (one,), one, 0.5**0.5 * one[None], jnp.zeros(()))
    >>> [round(float(moment[0]), 3) for moment in posterior.moments(kernels, one, x)]
    [1.0, 0.5]
    """

    anchors: tuple[Support, ...]
    ratios: tuple[Ratio, ...]
    alpha: Float[AnyArray, " m"]
    root: Float[AnyArray, "r m"]
    unexplained: Float[AnyArray, ""]

    def moments(
        self, kernels: Kernels, ratio: Ratio, support: Support, rule: Rule = DEFAULT_RULE
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return mean and variance of sum_q r_q L f_q on a support."""
        cross = self.cross(kernels, ratio, support, rule)
        explained = jnp.sum((cross @ self.root.T) ** 2, 1)
        parts = (r**2 * variance(k, support, rule) for k, r in zip(kernels, ratio, strict=True))
        prior = functools.reduce(jnp.add, parts)
        return cross @ self.alpha, jnp.maximum(prior - explained, 0.0)

    def joint(
        self, kernels: Kernels, ratio: Ratio, support: Support, rule: Rule = DEFAULT_RULE
    ) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """Return mean and full covariance of sum_q r_q L f_q on a support."""
        cross = self.cross(kernels, ratio, support, rule)
        explained = cross @ self.root.T
        prior = mixed_covariance(kernels, ratio, support, ratio, support, rule)
        return cross @ self.alpha, prior - explained @ explained.T

    def cross(
        self, kernels: Kernels, ratio: Ratio, support: Support, rule: Rule = DEFAULT_RULE
    ) -> Float[Array, "n m"]:
        """Return the covariance between sum_q r_q L f_q and the anchors."""
        blocks = (
            mixed_covariance(kernels, ratio, support, r, anchor, rule)
            for anchor, r in zip(self.anchors, self.ratios, strict=True)
        )
        return jnp.concatenate(list(blocks), 1)


class Smoother(NamedTuple):
    """S = F^T F with residuals (I - S) e, for values e in units of their noise's sd (theory 4.3).

    Column n of `basis` is how observation n pulls on the latent functions, in coordinates in which
    their posterior covariance is the identity: F F^T is the information of the likelihood there,
    I - F F^T that of the prior, and F r is the score of observations with residuals r. `lift` has
    these coordinates by the posterior's anchors: their covariance with f(x) is k(x, anchors) lift.

    >>> half = jnp.full((1, 1), 0.5**0.5)
    >>> (Smoother(half, jnp.ones(1), half).basis ** 2).round(3).tolist()  # of itself
    [[0.5]]
    """

    basis: Float[AnyArray, "m n"]
    residual: Float[AnyArray, " n"]
    lift: Float[AnyArray, "a m"]
