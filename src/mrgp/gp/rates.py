"""Fields behind a link, g(f), seen by regions through whitened inducing variables (theory 11)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp._linalg import gaussian_kl, inverse_lower, log_determinant, whitener
from mrgp._types import AnyArray
from mrgp.gp.chunks import map_rows, rows_at_a_time, sum_rows, sum_with_slopes
from mrgp.gp.forms import for_each
from mrgp.gp.products import nodes_of
from mrgp.gp.readings import Kernels
from mrgp.gp.variational import Moments, Natural
from mrgp.likelihoods import Likelihood, Poisson, expected_of_rows
from mrgp.links import Link, jensen_on_log, on_scale, region_moments
from mrgp.supports import DEFAULT_RULE, Rule, Support

BACKTRACKS = 12
LARGEST_HELD = 2**30


class Scatter(NamedTuple):
    """How the values of a source scatter, and whether some lie beyond a limit.

    >>> Scatter(Poisson(), censored=False).likelihood.name
    'poisson'
    """

    likelihood: Likelihood
    censored: bool


class Seen(NamedTuple):
    """The rows of one source: weights of their nodes, f's level there, and what was seen.

    `scale` is what multiplies the field: the exposure of each row, and the ratio of the source.

    >>> Seen._fields[:3]
    ('weights', 'level', 'scale')
    """

    weights: Float[Array, "n s"]
    level: Float[Array, "n s"]
    scale: Float[Array, " n"]
    y: Float[Array, " n"]
    noise: Float[Array, " n"]
    phi: Float[Array, " n"]
    censored: Float[Array, " n"]


Places = tuple[Array, ...]
"""The nodes x of regions, or what the GPs have there: `LinkedField.features`."""


class Pull(NamedTuple):
    """What q says of f, by features of nodes.

    f has the mean `features @ mean`, and its covariance differs from the prior's by
    `features @ change @ features.T`.

    >>> Pull.of(Moments(jnp.ones(1), 0.25 * jnp.eye(1))).change.tolist()
    [[-0.75]]
    """

    mean: Float[AnyArray, " m"]
    change: Float[AnyArray, "m m"]

    @classmethod
    def of(cls, q: Moments) -> "Pull":
        """Return it for white features."""
        return cls(q.mean, q.covariance - jnp.eye(q.mean.shape[0]))

    def coloured(self, whiten: Any) -> "Pull":
        """Return it for features that are covariances with inducing variables."""
        white = jax.scipy.linalg.block_diag(*whiten)
        return Pull(white.T @ self.mean, white.T @ self.change @ white)


class LinkedField(eqx.Module):
    """GPs at nodes given q of whitened inducing variables, and the field g(level + sum_q r_q f_q).

    >>> from mrgp import RBF, points
    >>> field = LinkedField((RBF(1.0, variance=1.0, dims=0),), jnp.zeros((1, 1)), "log")
    >>> q = Moments(jnp.zeros(1), jnp.eye(1))
    >>> x, one = jnp.zeros((1, 1, 1)), jnp.ones((1, 1))
    >>> mean, _ = field.moments(q, jnp.ones(1), x, one, 0 * one)
    >>> round(float(mean[0]), 3)  # e^(1/2)
    1.649
    """

    kernels: Kernels
    locations: Float[AnyArray, "m d"]
    link: Link = eqx.field(static=True)
    rule: Rule = eqx.field(static=True, default=DEFAULT_RULE)
    whiten: Any = None

    def whitened(self) -> "LinkedField":
        """Return the field with what turns its inducing variables white, found once."""
        found = for_each(lambda k: whitener(k.cross(self.locations, self.locations)), self.kernels)
        return eqx.tree_at(lambda f: f.whiten, self, tuple(found), is_leaf=lambda x: x is None)

    def features(
        self, ratio: Float[Array, " q"], x: Float[Array, "b s d"]
    ) -> tuple[Float[Array, "b s m"], Float[Array, "b s s"]]:
        """Return how sum_q r_q f_q at nodes loads on white inducing variables, and its covariance.

        Inducing variables of all GPs are stacked, those of the first GP first.
        """
        whiten = self.whiten if self.whiten is not None else self.whitened().whiten
        crossed, own = self.crossed(ratio, x)
        b, s, _ = x.shape
        parts = jnp.split(crossed.reshape(b * s, -1), len(whiten), axis=1)
        white = [part @ w.T for part, w in zip(parts, whiten, strict=True)]
        return jnp.concatenate(white, 1).reshape(b, s, -1), own

    def crossed(
        self, ratio: Float[Array, " q"], x: Float[Array, "b s d"]
    ) -> tuple[Float[Array, "b s m"], Float[Array, "b s s"]]:
        """Return the covariance of sum_q r_q f_q at nodes with inducing variables, and its own."""
        b, s, d = x.shape
        flat, parts, own = x.reshape(b * s, d), [], jnp.zeros(())
        for kernel, r in zip(self.kernels, ratio, strict=True):
            parts.append(r * kernel.cross(flat, self.locations))
            own = own + r**2 * kernel.pair(x[:, :, None, :], x[:, None, :, :])
        return jnp.concatenate(parts, 1).reshape(b, s, -1), own

    def at_nodes(
        self, pull: Pull, features: Float[Array, "b s m"], own: Float[Array, "b s s"]
    ) -> tuple[Float[Array, "b s"], Float[Array, "b s s"]]:
        """Return mean and covariance among the nodes of each region, given their features."""
        b, s, m = features.shape
        # Prior and posterior together, at all nodes: one large product, and not many small ones.
        change = features.reshape(b * s, m) @ pull.change
        pairs = jnp.einsum("bsm,btm->bst", change.reshape(b, s, m), features)
        return features @ pull.mean, own + pairs

    def moments(
        self,
        q: Moments,
        ratio: Float[Array, " q"],
        x: Float[Array, "b s d"],
        weights: Float[Array, "b s"],
        level: Float[Array, "b s"],
    ) -> tuple[Float[Array, " b"], Float[Array, " b"]]:
        """Return mean and variance of the field over regions."""
        mean, covariance = self.at_nodes(Pull.of(q), *self.features(ratio, x))
        return region_moments(self.link, weights, level + mean, covariance)

    def expected(
        self, pull: Pull, of: Scatter, features: tuple[Array, Array], seen: Seen
    ) -> Float[Array, ""]:
        """Return E_q[log p] of some rows of a source, weighted; rows of weight zero add nothing."""
        f, covariance = self.at_nodes(pull, *features)
        counts, f = seen.phi > 0, seen.level + f
        some = jnp.where(counts[:, None], seen.weights, 1.0 / seen.weights.shape[1])
        some = some * jnp.where(counts, seen.scale, 1.0)[:, None]
        mean, variance = region_moments(self.link, some, f, covariance)
        likelihood = of.likelihood
        if isinstance(likelihood, Poisson) and likelihood.bound == "jensen" and self.link == "log":
            mean, variance = jensen_on_log(some, f, mean)
        else:
            mean, variance = on_scale(likelihood.scale, mean, variance)
        y, noise = (jnp.where(counts, part, 1.0) for part in (seen.y, seen.noise))
        censored = seen.censored if of.censored else None
        rows = expected_of_rows(likelihood, y, mean, variance, noise, censored)
        return jnp.sum(jnp.where(counts, seen.phi * rows, 0.0))

    def total(
        self, q: Moments, of: Scatter, ratio: Float[Array, " q"], places: Places, seen: Seen
    ) -> Float[Array, ""]:
        """Return E_q[log p] of a source, so many rows at a time that memory is bounded.

        Its slopes by parameters come by covariances with inducing variables: to turn them white
        would be most of the work.
        """
        whiten = self.whiten if self.whiten is not None else self.whitened().whiten
        plain = LinkedField(self.kernels, self.locations, self.link, self.rule)
        moving, still = eqx.partition(plain, eqx.is_inexact_array)
        shared = (moving, Pull.of(q).coloured(whiten), ratio)

        def of_rows(shared: Any, rows: Any, beside: Any) -> Array:
            field, pull, ratio = eqx.combine(shared[0], still), *shared[1:]
            level, scale, noise = rows
            x, weights, y, phi, censored = beside
            seen = Seen(weights, level, scale, y, noise, phi, censored)
            return field.expected(pull, of, field.crossed(ratio, x), seen)

        rows = (seen.level, seen.scale, seen.noise)
        beside = (*places, seen.weights, seen.y, seen.phi, seen.censored)
        return sum_with_slopes(of_rows, shared, rows, beside, self._at_a_time(seen))

    def slopes(
        self, q: Moments, of: Scatter, ratio: Float[Array, " q"], places: Places, seen: Seen
    ) -> tuple[Float[Array, ""], Moments]:
        """Return E_q[log p] of a source with its slopes in mean and covariance, in one pass."""

        def of_rows(*parts: Array) -> tuple[Array, Moments]:
            where, rows = parts[: len(places)], Seen(*parts[len(places) :])
            features = where if len(where) == 2 else self.features(ratio, *where)
            return jax.value_and_grad(lambda q: self.expected(Pull.of(q), of, features, rows))(q)

        return sum_rows(of_rows, (*places, *seen), self._at_a_time(seen))

    def held(self, ratio: Float[Array, " q"], places: Places, seen: Seen) -> Places:
        """Return the features at nodes, to be used again, where memory allows."""
        (x,) = places
        n, s, _ = x.shape
        if 8 * n * s * (self._columns + s) > LARGEST_HELD:
            return places
        return map_rows(lambda x: self.features(ratio, x), places, self._at_a_time(seen))

    @property
    def _columns(self) -> int:
        return len(self.kernels) * self.locations.shape[0]

    def _at_a_time(self, seen: Seen) -> int:
        nodes = seen.weights.shape[1]
        return max(16, rows_at_a_time(nodes * (self._columns + nodes)))


class Step(NamedTuple):
    """A q by natural parameters and moments, with the bound, and the slopes of what is expected.

    >>> Step._fields
    ('natural', 'moments', 'slopes', 'bound')
    """

    natural: Natural
    moments: Moments
    slopes: Moments
    bound: Float[Array, ""]


def strict_moments(natural: Natural) -> tuple[Moments, Float[Array, ""]]:
    """Return moments and divergence; not a number where the precision is not positive definite.

    >>> q, divergence = strict_moments(Natural(jnp.ones(1), -jnp.eye(1)))
    >>> bool(jnp.isnan(divergence))
    True
    """
    factor = jnp.linalg.cholesky(natural.precision)
    inverse = inverse_lower(factor)
    covariance = inverse.T @ inverse
    mean = covariance @ natural.shift
    return Moments(mean, covariance), gaussian_kl(
        mean, jnp.trace(covariance), -log_determinant(factor)
    )


def damped_step(before: Step, evaluate: Any) -> Step:
    """Take a natural-gradient step, halved until precision stays positive and the bound rises.

    `evaluate` makes a `Step` of natural parameters. Where no step raises the bound, q stays.

    >>> one = jnp.ones(1)
    >>> def evaluate(natural):  # of -(u - 2)^2 / 2
    ...     q, divergence = strict_moments(natural)
    ...     slopes = Moments(2 - q.mean, -0.5 * jnp.eye(1))
    ...     value = -0.5 * ((q.mean[0] - 2) ** 2 + q.covariance[0, 0])
    ...     return Step(natural, q, slopes, value - divergence)
    >>> round(float(damped_step(evaluate(Natural.standard(1)), evaluate).moments.mean[0]), 3)
    1.0
    """

    def trial(rate: Array) -> Step:
        return evaluate(before.natural.step(before.moments, before.slopes, rate))

    def lower(state: tuple[Array, Step]) -> Array:
        rate, found = state
        return ~(found.bound >= before.bound) & (rate > 0.5**BACKTRACKS)

    def halve(state: tuple[Array, Step]) -> tuple[Array, Step]:
        rate = 0.5 * state[0]
        return rate, trial(rate)

    _, found = jax.lax.while_loop(lower, halve, (jnp.ones(()), trial(jnp.ones(()))))
    better = found.bound >= before.bound
    return jax.tree.map(lambda new, old: jnp.where(better, new, old), found, before)


def seen_nodes(support: Support, rule: Rule) -> tuple[Array, Array]:
    """Return nodes and weights of regions; nodes of no weight lie at the region's first one.

    >>> from mrgp import nodes
    >>> seen_nodes(nodes([[[2.0], [9.0]]], [[1.0, 0.0]]), DEFAULT_RULE)[0].ravel().tolist()
    [2.0, 2.0]
    """
    x, weights = nodes_of(support, rule)
    first = jnp.argmax(weights != 0, 1)
    place = jnp.take_along_axis(x, first[:, None, None], 1)
    return jnp.where((weights != 0)[:, :, None], x, place), weights
