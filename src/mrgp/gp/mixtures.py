"""Mixtures of Gaussians as posteriors of several blocks of inducing variables (theory 3.2, 3.5)."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp._linalg import cholesky, log_determinant, solve_lower
from mrgp.gp.variational import Whitened

EntropyBound = Literal["bhattacharyya", "paper"]
_LOG_2PI = 1.8378770664093453


class Mixture(eqx.Module):
    """sum_k pi_k prod_blocks N(u | m_k, S_k), with u white under the prior.

    `blocks` is any tree of `Whitened` whose arrays have the components along their first axis;
    the weights pi are the softmax of `logits`.

    >>> apart = Whitened(mean=jnp.array([[-2.0], [2.0]]), root=jnp.ones((2, 1, 1)))
    >>> Mixture(logits=jnp.log(jnp.array([3.0, 1.0])), blocks=apart).weights.round(2).tolist()
    [0.75, 0.25]
    """

    logits: Any
    blocks: Any

    @property
    def weights(self) -> Float[Array, " k"]:
        """The weight of each component."""
        return jax.nn.softmax(jnp.asarray(self.logits))

    @property
    def components(self) -> int:
        """Number of components."""
        return self.logits.shape[0]

    def divergence(self, bound: EntropyBound = "bhattacharyya") -> Float[Array, ""]:
        """Return an upper bound on KL(q || N(0, I)), exact for one component by Bhattacharyya's.

        The paper's bound on the entropy is loose by (1 - log 2) / 2 for each dimension, even for
        one component.
        """
        blocks = [b for b in jax.tree.leaves(self.blocks, is_leaf=_is_block) if _is_block(b)]
        weights = self.weights
        prior = sum((_cross_entropy(b) for b in blocks), jnp.zeros(self.components))
        log_weights = jax.nn.log_softmax(jnp.asarray(self.logits))
        if bound == "paper":
            overlap = sum((_log_overlap(b) for b in blocks), jnp.zeros(()))
            own = jnp.zeros(self.components)
        else:
            overlap = sum((-_bhattacharyya(b) for b in blocks), jnp.zeros(()))
            own = sum((_entropy(b) for b in blocks), jnp.zeros(self.components))
        shared = jax.nn.logsumexp(log_weights[None, :] + overlap, axis=1)
        return jnp.sum(weights * (prior - own + shared))


def _is_block(node: Any) -> bool:
    return isinstance(node, Whitened)


def _cross_entropy(q: Whitened) -> Float[Array, " k"]:
    """Return -E_k[log N(u | 0, I)]."""
    squares = jnp.sum(q.mean**2, -1) + jnp.sum(jnp.tril(q.root) ** 2, (-2, -1))
    return 0.5 * (q.mean.shape[-1] * _LOG_2PI + squares)


def _log_determinants(q: Whitened) -> Float[Array, " k"]:
    return jnp.sum(jnp.log(jnp.diagonal(q.root, axis1=-2, axis2=-1) ** 2), -1)


def _entropy(q: Whitened) -> Float[Array, " k"]:
    return 0.5 * (q.mean.shape[-1] * (_LOG_2PI + 1.0) + _log_determinants(q))


def _pairs(q: Whitened) -> tuple[Float[Array, "k k"], Float[Array, "k k"]]:
    """Return d^T (S_k + S_l)^-1 d and log |S_k + S_l| for every pair of components."""
    roots = jnp.tril(q.root)
    covariances = roots @ jnp.swapaxes(roots, -1, -2)

    def pair(mean: Array, covariance: Array, other: Array, second: Array) -> tuple[Array, Array]:
        factor = cholesky(covariance + second)
        return jnp.sum(solve_lower(factor, mean - other) ** 2), log_determinant(factor)

    rows = jax.vmap(pair, in_axes=(None, None, 0, 0))
    return jax.vmap(rows, in_axes=(0, 0, None, None))(q.mean, covariances, q.mean, covariances)


def _log_overlap(q: Whitened) -> Float[Array, "k k"]:
    """Return log N(m_k | m_l, S_k + S_l)."""
    squares, log_dets = _pairs(q)
    return -0.5 * (squares + log_dets + q.mean.shape[-1] * _LOG_2PI)


def _bhattacharyya(q: Whitened) -> Float[Array, "k k"]:
    """Return the Bhattacharyya distance between every pair of components."""
    if q.mean.shape[0] == 1:
        return jnp.zeros((1, 1))
    squares, log_dets = _pairs(q)
    own = _log_determinants(q)
    halved = log_dets - q.mean.shape[-1] * jnp.log(2.0)
    distance = 0.25 * squares + 0.5 * (halved - 0.5 * (own[:, None] + own[None, :]))
    # A component is at no distance from itself; rounding must not say otherwise.
    return jnp.where(jnp.eye(len(own), dtype=bool), 0.0, distance)
