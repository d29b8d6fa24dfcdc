"""Products of GPs, W f, averaged over the nodes of regions (theory 3.3 and 3.4).

A network of GPs is linear in each of its factors, but not in both: averages over a region need the
covariances of every factor among the region's nodes, S x S for each region.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.gp.chunks import map_rows
from mrgp.gp.readings import Conditioned
from mrgp.gp.variational import Moments, Whitened
from mrgp.kernels import Kernel, Stationary, single_kernels
from mrgp.supports import DEFAULT_RULE, Points, Rule, Support, along

ROOT_JITTER = 1e-6


class Marginal(NamedTuple):
    """Mean and covariance of a function at the nodes of each region.

    >>> f = Marginal(mean=jnp.zeros((1, 1)), covariance=jnp.ones((1, 1, 1)))
    >>> round(float(f.exp().mean[0, 0]), 4)  # exp(1/2)
    1.6487
    """

    mean: Float[Array, "b s"]
    covariance: Float[Array, "b s s"]

    @property
    def second_moment(self) -> Float[Array, "b s s"]:
        """E[f(s) f(s')]."""
        return self.covariance + self.mean[:, :, None] * self.mean[:, None, :]

    def exp(self) -> "Marginal":
        """Return the moments of e^f, those of a log-normal (theory 3.4)."""
        variances = jnp.diagonal(self.covariance, axis1=1, axis2=2)
        mean = jnp.exp(self.mean + 0.5 * variances)
        outer = mean[:, :, None] * mean[:, None, :]
        return Marginal(mean, outer * jnp.expm1(self.covariance))


class AtNodes(NamedTuple):
    """Independent GPs at the nodes of regions, through whitened inducing variables u.

    f_i = alpha_i u_i + a residual that is independent of u, with covariance own_i - alpha_i
    alpha_i^T. Their u may depend on one another: q is one Gaussian of all, those of the first GP
    first, and so are the nodes of a region in what is found of them.

    >>> at = AtNodes(alpha=jnp.ones((1, 1, 1, 1)), own=jnp.full((1, 1, 1, 1), 3.0))
    >>> [float(moment.ravel()[0]) for moment in at.given(jnp.array([5.0]))]
    [5.0, 2.0]
    """

    alpha: Float[Array, "i b s m"]
    own: Float[Array, "i b s s"]

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        locations: Float[AnyArray, "m d"],
        whiten: Float[AnyArray, "m m"],
        x: Float[AnyArray, "b s d"],
    ) -> "AtNodes":
        """Project a GP at nodes x on its inducing variables."""
        b, s, d = x.shape
        cross = kernel.cross(x.reshape(b * s, d), locations)
        alpha = (cross @ whiten.T).reshape(1, b, s, -1)
        return cls(alpha, kernel.pair(x[:, :, None, :], x[:, None, :, :])[None])

    @classmethod
    def stack(cls, parts: Sequence["AtNodes"]) -> "AtNodes":
        """Join independent GPs into one group."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(jnp.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def marginal(self, q: Whitened | Moments) -> Marginal:
        """Return the moments under q(u)."""
        i, b, s, m = self.alpha.shape
        # Prior and posterior together: one product of S x M matrices for each region, not two.
        change = _covariance(q) - jnp.eye(i * m)
        # Of one GP at all nodes at once: large matrix products are faster than many small ones.
        gain = jnp.einsum("ibsm,imn->ibsn", self.alpha, change.reshape(i, m, i * m))
        gain = gain.reshape(i, b, s, i, m)
        pairs = jnp.einsum("ibsjm,jbtm->bisjt", gain, self.alpha)
        return Marginal(self._mean(q.mean), pairs.reshape(b, i * s, i * s) + self._apart(self.own))

    def given(self, u: Float[AnyArray, " im"]) -> Marginal:
        """Return the moments given the inducing variables themselves."""
        left = self.own - self.alpha @ self.alpha.transpose(0, 1, 3, 2)
        return Marginal(self._mean(u), self._apart(left))

    def means(self, rows: Float[Array, "b t"]) -> Float[Array, "b im"]:
        """Return weighted sums over the nodes of each region, by u."""
        i, b, s, m = self.alpha.shape
        return jnp.einsum("bis,ibsm->bim", rows.reshape(b, i, s), self.alpha).reshape(b, i * m)

    def _mean(self, u: Float[AnyArray, " im"]) -> Float[Array, "b t"]:
        i, b, s, m = self.alpha.shape
        mean = jnp.einsum("ibsm,im->bis", self.alpha, jnp.asarray(u).reshape(i, m))
        return mean.reshape(b, i * s)

    def _apart(self, blocks: Float[Array, "i b s s"]) -> Float[Array, "b t t"]:
        """Put the covariance of each GP on the diagonal: they do not depend on one another."""
        i, b, s, _ = blocks.shape
        if i == 1:
            return blocks[0]
        same = jnp.eye(i)[None, :, None, :, None] * blocks.transpose(1, 0, 2, 3)[:, :, :, None, :]
        return same.reshape(b, i * s, i * s)


def nodes_of(
    support: Support, rule: Rule = DEFAULT_RULE
) -> tuple[Float[Array, "n s d"], Float[Array, "n s"]]:
    """Return the nodes of regions and their weights under a rule.

    >>> from mrgp import Midpoint, intervals
    >>> x, weights = nodes_of(intervals([0.0], [2.0]), Midpoint(2))
    >>> x.ravel().tolist(), weights.tolist()
    ([0.5, 1.5], [[0.5, 0.5]])
    """
    atoms = support.quadrature(rule).atoms()
    return jnp.asarray(atoms.lower), jnp.asarray(atoms.weights)


def posterior_at_nodes(
    posterior: Conditioned, kernel: Kernel, x: Float[AnyArray, "b s d"], rule: Rule = DEFAULT_RULE
) -> Marginal:
    """Return the moments of a conditioned GP among the nodes of each region.

    >>> from mrgp import Linear, points
    >>> from mrgp.gp import Posterior
    >>> slope, one = Linear(variance=1.0, origin=0.0, dims=0), jnp.ones(1)
    >>> seen = Posterior((points([[1.0]]),), (one,), 2 * one, jnp.zeros((1, 1)), jnp.zeros(()))
    >>> posterior_at_nodes(seen, slope, jnp.array([[[1.0], [3.0]]])).mean.tolist()
    [[2.0, 6.0]]
    """

    def some(x: Float[Array, "b s d"]) -> Marginal:
        b, s, d = x.shape
        nodes = Points(x.reshape(b * s, d), jnp.ones(b * s))
        mean, known = posterior.explained((kernel,), jnp.ones(1), nodes, rule)
        explained = known.reshape(b, s, -1)
        own = kernel.pair(x[:, :, None, :], x[:, None, :, :])
        covariance = own - explained @ explained.transpose(0, 2, 1)
        return Marginal(mean.reshape(b, s), covariance)

    most = posterior.most_nodes
    if most is None or x.shape[0] * x.shape[1] <= most:
        return some(jnp.asarray(x))
    return map_rows(some, (x,), max(1, most // x.shape[1]))


def node_roots(covariance: Float[Array, "*batch s s"]) -> Float[Array, "*batch s s"]:
    """Return what turns white numbers into draws at the nodes of each region, jointly.

    >>> node_roots(jnp.array([[4.0, 2.0], [2.0, 2.0]])).round(3).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    variances = jnp.maximum(jnp.diagonal(covariance, axis1=-2, axis2=-1), 0.0)
    if covariance.shape[-1] == 1:
        return jnp.sqrt(variances)[..., None]
    # Nodes close to one another share all but their last digits.
    scale = jnp.max(variances, -1)[..., None, None] + jnp.finfo(float).tiny
    jitter = jnp.broadcast_to(ROOT_JITTER * jnp.eye(covariance.shape[-1]), covariance.shape)
    return jnp.sqrt(scale) * jnp.linalg.cholesky(covariance / scale + jitter)


def mean_at_nodes(
    kernel: Kernel,
    locations: Float[AnyArray, "m d"],
    whiten: Float[AnyArray, "m m"],
    mean: Float[AnyArray, " m"],
    x: Float[AnyArray, "b s d"],
) -> Float[Array, "b s"]:
    """Return the mean of a GP at nodes, given that of u, without what its covariance needs.

    >>> from mrgp import Linear
    >>> z, one = jnp.ones((1, 1)), jnp.ones((1, 1))
    >>> slope, x = Linear(variance=1.0, origin=0.0, dims=0), jnp.array([[[1.0], [3.0]]])
    >>> mean_at_nodes(slope, z, whiten=one, mean=2 * one[0], x=x).tolist()
    [[2.0, 6.0]]
    """
    b, s, d = x.shape
    return (kernel.cross(x.reshape(b * s, d), locations) @ (whiten.T @ mean)).reshape(b, s)


def _covariance(q: Whitened | Moments) -> Float[Array, "m m"]:
    if isinstance(q, Moments):
        return jnp.asarray(q.covariance)
    root = jnp.tril(q.root)
    return root @ root.T


def product_covariance(f: Marginal, w: Marginal) -> Float[Array, "b s s"]:
    """Return the covariance of w f among nodes, for independent factors (theory 3.3).

    >>> one = Marginal(mean=jnp.ones((1, 1)), covariance=jnp.ones((1, 1, 1)))
    >>> float(product_covariance(one, one)[0, 0, 0])  # E[f^2] E[w^2] - 1
    3.0
    """
    # E[f f'] E[w w'] - E[f] E[f'] E[w] E[w'], without cancellation.
    outer = f.mean[:, :, None] * f.mean[:, None, :]
    return f.covariance * w.second_moment + outer * w.covariance


def sum_of_products(
    weights: Sequence[Float[AnyArray, "b _"]], f: Sequence[Marginal], w: Sequence[Marginal]
) -> tuple[Float[Array, " b"], Float[Array, " b"]]:
    """Return mean and variance of L sum_q w_q f_q for independent factors (theory 3.3).

    >>> one = Marginal(mean=jnp.ones((1, 1)), covariance=jnp.ones((1, 1, 1)))
    >>> mean, variance = sum_of_products([2 * jnp.ones((1, 1))], [one], [one])
    >>> float(mean[0]), float(variance[0])
    (2.0, 12.0)
    """
    mean, variance = jnp.zeros(()), jnp.zeros(())
    for weight, a, b in zip(weights, f, w, strict=True):
        mean = mean + jnp.sum(weight * a.mean * b.mean, 1)
        pairs = product_covariance(a, b)
        variance = variance + jnp.einsum("bs,bst,bt->b", weight, pairs, weight)
    return mean, variance


def block_information(
    own: AtNodes,
    weights: Float[AnyArray, "b t"],
    other: Marginal,
    residual: Float[Array, " b"],
    precision: Float[Array, " b"],
) -> tuple[Float[Array, " im"], Float[Array, "im im"]]:
    """Return what rows say of the inducing variables of one group, given the other (theory 3.6).

    `residual` is what the rest of the model leaves, `precision` that of the noise. The result is
    the score and the precision to add to the prior's: the optimum of q(u) has their sum.

    >>> one = jnp.ones((1, 1))
    >>> f, w = AtNodes(one[None, None], one[None, None]), Marginal(3 * one, one[None])
    >>> said = block_information(f, one, w, residual=2 * one[0], precision=one[0])
    >>> [part.tolist() for part in said]  # E[w] 2, E[w^2]
    [[6.0], [[10.0]]]
    """
    i, b, s, m = own.alpha.shape
    gain = (precision * residual)[:, None] * weights * other.mean
    pairs = precision[:, None, None] * weights[:, :, None] * weights[:, None, :]
    pairs = (pairs * other.second_moment).reshape(b, i, s, i, s)
    inner = jnp.einsum("bisjt,jbtm->ibsjm", pairs, own.alpha)
    said = jnp.einsum("ibsm,ibsn->imn", own.alpha, inner.reshape(i, b, s, i * m))
    return jnp.sum(own.means(gain), 0), said.reshape(i * m, i * m)


def too_few_nodes(kernels: Sequence[Kernel], support: Support, rule: Rule) -> str | None:
    """Say along which input a rule's nodes are too far apart for the kernels (unwrapped), if any.

    A rule of n nodes resolves regions of about n lengthscales.

    >>> from mrgp import GaussLegendre, RBF, intervals
    >>> wide = intervals([0.0], [100.0], inputs="hour")
    >>> too_few_nodes([RBF(1.0, variance=1.0, dims=0)], wide, GaussLegendre(5))
    'regions up to 100 lengthscales wide along hour are averaged over 5 nodes there, ...'
    """
    lower, upper = (np.asarray(side) for side in support.bounds)
    widths = np.max(upper - lower, 0, initial=0.0)
    for kernel in (k for given in kernels for k in single_kernels(given)):
        if not isinstance(kernel, Stationary):
            continue
        for d, scale in zip(kernel.columns, kernel.lengthscales, strict=True):
            number = getattr(along(rule, (d,)), "number", 1)
            count = number[0] if isinstance(number, tuple) else number
            ratio = float(widths[d]) / float(scale)
            if not support.pointlike[d] and ratio > count:
                return (
                    f"regions up to {ratio:.0f} lengthscales wide along {support.input_names[d]}"
                    f" are averaged over {count} nodes there, which is too coarse; use"
                    f" quadrature=mrgp.GaussLegendre({int(np.ceil(ratio)) + 2})"
                )
    return None
