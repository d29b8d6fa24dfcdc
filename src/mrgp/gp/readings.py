"""What sources read of latent functions: the rows of a linear-Gaussian model (theory 2.1, 2.2)."""

import abc
import dataclasses
import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp._compiled import filled
from mrgp._types import AnyArray, Scalar
from mrgp.gp.covariance import cross_covariance, full_covariance, variance
from mrgp.gp.forms import for_each
from mrgp.kernels import Kernel
from mrgp.likelihoods import GAUSSIAN, Likelihood, expected_of_rows, tempering_constant
from mrgp.supports import DEFAULT_RULE, Lattice, Rule, Shapes, Support

Kernels = tuple[Kernel, ...]
"""The kernels of independent GPs, f_1 to f_Q (bound and unwrapped)."""

Ratio = Float[AnyArray, " q"]


class Reading(eqx.Module):
    """Values y = level + sum_q r_q L f_q + noise of one source, for independent GPs f_q.

    `noise` is the noise variance s2 of every row and `weight` its composite weight phi; `used`, if
    given, is 0 for rows that only fill a size for which code is compiled.

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
    used: Float[AnyArray, " n"] | None = None
    lattice: Lattice | None = None
    exposure: Float[AnyArray, " n"] | None = None
    censored: Float[AnyArray, " n"] | None = None

    @property
    def residual(self) -> Float[Array, " n"]:
        """The values without their level."""
        return self.masked(jnp.asarray(self.y) - self.level)

    @property
    def effective_noise(self) -> Float[Array, " n"]:
        """s2 / phi, the noise under which the tempered posterior is that of phi = 1."""
        return self.masked(jnp.asarray(self.noise) / self.weight, 1.0)

    def masked(self, values: Float[Array, " n"], other: float = 0.0) -> Float[Array, " n"]:
        """Return values with another number in rows that are not used."""
        if self.used is None:
            return values
        return jnp.where(jnp.asarray(self.used) > 0, values, other)

    def expected(self, mean: Float[AnyArray, " n"], variance: Float[AnyArray, " n"]) -> Array:
        """Return E[log p(y)] of each row, weighted, from moments on the likelihood's scale."""
        rows = expected_of_rows(self.likelihood, self.y, mean, variance, self.noise, self.censored)
        return self.masked(jnp.asarray(self.weight) * rows)

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
            None if self.used is None else self.used[rows],
            None if self.lattice is None else self.lattice[rows],
            None if self.exposure is None else self.exposure[rows],
            None if self.censored is None else self.censored[rows],
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
    def used(self) -> Float[Array, " n"]:
        """1 for rows that count, 0 for those that fill a size."""
        return jnp.concatenate([s.masked(jnp.ones(s.y.shape)) for s in self.sources])

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
        parts = []
        for source in self.sources:
            weight = jnp.broadcast_to(jnp.asarray(source.weight), source.y.shape)
            parts.append(tempering_constant(source.noise, source.masked(weight, 1.0)))
        return jnp.sum(jnp.stack(parts))


def mixed_covariance(
    kernels: Kernels, ratio: Ratio, first: Support, other: Ratio, second: Support, rule: Rule
) -> Float[Array, "n m"]:
    """Return the covariance between sum_q r_q L f_q and sum_q r'_q L' f_q."""
    found = for_each(lambda kernel: cross_covariance(kernel, first, second, rule), kernels)
    parts = (r * s * cross for cross, r, s in zip(found, ratio, other, strict=True))
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
    supports = tuple(s.support for s in sources)
    lattices = tuple(s.lattice for s in sources)
    found = for_each(lambda kernel: full_covariance(kernel, supports, rule, lattices), kernels)
    for q, blocks in enumerate(found):
        scaled = [
            [a.ratio[q] * b.ratio[q] * block for b, block in zip(sources, row, strict=True)]
            for a, row in zip(sources, blocks, strict=True)
        ]
        total = total + jnp.block(scaled)
    if all(source.used is None for source in sources):
        return total
    return total * readings.used[:, None] * readings.used[None, :]


class Conditioned(eqx.Module):
    """Gaussian processes given data: what is known of sum_q r_q L f_q on any support.

    >>> from mrgp import RBF, points
    >>> one = jnp.ones(1)
    >>> kernel = RBF(1.0, variance=1.0, dims=0)
    >>> given = Posterior((points([[0.0]]),), (one,), one, jnp.ones((1, 1)), np.zeros(()))
    >>> [float(v[0]) for v in given.moments((kernel,), one, points([[0.0]]))]
    [1.0, 0.0]
    """

    @property
    def most_nodes(self) -> int | None:
        """The number of points to ask about at a time, None where any will do."""
        return None

    @abc.abstractmethod
    def filled(self) -> "Conditioned":
        """Return the same, with rows filled up to a size for which code is compiled."""

    @abc.abstractmethod
    def explained(
        self, kernels: Kernels, ratio: Ratio, support: Support, rule: Rule = DEFAULT_RULE
    ) -> tuple[Float[Array, " n"], Float[Array, "n r"]]:
        """Return the mean, and F such that the prior covariance is less by F F^T."""

    def moments(
        self, kernels: Kernels, ratio: Ratio, support: Support, rule: Rule = DEFAULT_RULE
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return mean and variance of sum_q r_q L f_q on a support."""
        mean, known = self.explained(kernels, ratio, support, rule)
        own = for_each(lambda kernel: variance(kernel, support, rule), kernels)
        prior = functools.reduce(jnp.add, (r**2 * v for v, r in zip(own, ratio, strict=True)))
        return mean, jnp.maximum(prior - jnp.sum(known**2, 1), 0.0)

    def joint(
        self, kernels: Kernels, ratio: Ratio, support: Support, rule: Rule = DEFAULT_RULE
    ) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """Return mean and full covariance of sum_q r_q L f_q on a support."""
        mean, known = self.explained(kernels, ratio, support, rule)
        prior = mixed_covariance(kernels, ratio, support, ratio, support, rule)
        return mean, prior - known @ known.T


class Posterior(Conditioned):
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
    unexplained: Scalar

    def filled(self) -> "Posterior":
        """Return the posterior with anchors repeated up to sizes for which code is compiled."""
        rows = [filled(len(anchor)) for anchor in self.anchors]
        first = np.cumsum([0, *(len(anchor) for anchor in self.anchors)])
        used = [start + np.arange(len(a)) for start, a in zip(first, self.anchors, strict=False)]
        into = np.cumsum([0, *map(len, rows)])
        where = np.concatenate([at + np.arange(len(u)) for at, u in zip(into, used, strict=False)])
        alpha = np.zeros(into[-1])
        alpha[where] = self.alpha
        root = np.zeros((into[-1], into[-1]))
        root[: self.root.shape[0], where] = self.root
        anchors = tuple(a[r] for a, r in zip(self.anchors, rows, strict=True))
        return dataclasses.replace(self, anchors=anchors, alpha=alpha, root=root)

    def explained(
        self, kernels: Kernels, ratio: Ratio, support: Support, rule: Rule = DEFAULT_RULE
    ) -> tuple[Float[Array, " n"], Float[Array, "n r"]]:
        """Return the mean, and F such that the prior covariance is less by F F^T."""
        cross = self.cross(kernels, ratio, support, rule)
        return cross @ self.alpha, cross @ self.root.T

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


def some(source: Reading, rows: Int[Array, " b"]) -> tuple[Reading, Float[Array, " b"]]:
    """Return some rows of a source, and which of them are there: those beyond the last are not.

    >>> from mrgp import points
    >>> one = jnp.ones(1)
    >>> some(Reading(points([[0.0]]), one, one, one, one), jnp.arange(2))[1].tolist()
    [1.0, 0.0]
    """
    n = source.y.shape[0]
    # Arrays of NumPy cannot be asked for rows whose numbers are not known yet.
    known = jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x, source)
    return known.take(jnp.minimum(rows, n - 1)), jnp.where(rows < n, 1.0, 0.0)
