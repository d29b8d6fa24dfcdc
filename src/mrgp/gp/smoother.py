"""The linear smoother behind a Gaussian posterior, in units of the noise (theory 4.3)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp._linalg import add_diagonal, cholesky, solve_lower
from mrgp._types import AnyArray
from mrgp.gp.conditioning import Kernels, Sources, Whiteners, features, prior_covariance
from mrgp.supports import DEFAULT_RULE, Rule

KNOWN = 1e-6


class Smoother(NamedTuple):
    """S = F^T F with residuals (I - S) e, for values e in units of their noise's sd.

    Column n of `basis` is how observation n pulls on the latent functions, in coordinates in which
    their posterior covariance is the identity: F F^T is the information of the likelihood there,
    I - F F^T that of the prior, and F r is the score of observations with residuals r. `lift` has
    these coordinates by the posterior's anchors: their covariance with f(x) is k(x, anchors) lift.

    >>> one = jnp.ones((1, 1))
    >>> smoother = Smoother.of(features=one, values=jnp.array([2.0]), white=one)
    >>> smoother.residual.round(3).tolist()  # half of the value is left
    [1.0]
    """

    basis: Float[AnyArray, "m n"]
    residual: Float[AnyArray, " n"]
    lift: Float[AnyArray, "a m"]

    @classmethod
    def of(
        cls,
        features: Float[Array, "m n"],
        values: Float[Array, " n"],
        white: Float[Array, "m a"],
    ) -> "Smoother":
        """Smooth values by features of whitened functions, both in units of the noise's sd."""
        factor = cholesky(add_diagonal(features @ features.T, 1.0))
        basis = solve_lower(factor, features)
        return cls(basis, values - basis.T @ (basis @ values), solve_lower(factor, white).T)


def exact_smoother(kernels: Kernels, sources: Sources, rule: Rule = DEFAULT_RULE) -> Smoother:
    """Return the smoother of the dense covariance, by its eigenvectors.

    >>> from mrgp import RBF, points
    >>> from mrgp.gp import LinearGaussian
    >>> data = LinearGaussian(points([[0.0]]), jnp.ones(1), jnp.array([2.0]), jnp.ones(1))
    >>> smoother = exact_smoother((RBF(1.0, variance=3.0, dims=0),), (data,))
    >>> round(float(smoother.residual[0]), 3)  # 2 / (3 + 1)
    0.5
    """
    scale = jnp.sqrt(jnp.concatenate([s.noise for s in sources]))
    prior = prior_covariance(kernels, sources, rule) / (scale[:, None] * scale[None, :])
    eigenvalues, vectors = jnp.linalg.eigh(prior)
    shrink = jnp.maximum(eigenvalues, 0.0)
    shrink = shrink / (1.0 + shrink)
    values = vectors.T @ (jnp.concatenate([s.residual for s in sources]) / scale)
    # Directions about which nothing is known have no lift: nothing is to be adjusted there.
    known = eigenvalues > KNOWN
    size = jnp.where(known, eigenvalues, 1.0)
    lift = jnp.where(known, 1.0 / jnp.sqrt(size * (1.0 + size)), 0.0)
    return Smoother(
        basis=jnp.sqrt(shrink)[:, None] * vectors.T,
        residual=vectors @ ((1.0 - shrink) * values),
        lift=vectors * lift[None, :] / scale[:, None],
    )


def sparse_smoother(
    kernels: Kernels,
    sources: Sources,
    locations: Float[AnyArray, "m d"],
    whiten: Whiteners,
    rule: Rule = DEFAULT_RULE,
) -> Smoother:
    """Return the smoother of the collapsed bound's posterior.

    >>> from mrgp import RBF, points
    >>> from mrgp.gp import LinearGaussian, whiteners
    >>> kernels, z = (RBF(1.0, variance=3.0, dims=0),), jnp.zeros((1, 1))
    >>> data = LinearGaussian(points([[0.0]]), jnp.ones(1), jnp.array([2.0]), jnp.ones(1))
    >>> sparse_smoother(kernels, (data,), z, whiteners(kernels, z)).residual.round(3).tolist()
    [0.5]
    """
    parts = [features(kernels, s, locations, whiten, rule)[0] for s in sources]
    scale = jnp.sqrt(jnp.concatenate([s.noise for s in sources]))
    residual = jnp.concatenate([s.residual for s in sources])
    white = jax.scipy.linalg.block_diag(*whiten)
    return Smoother.of(jnp.concatenate(parts, 1) / scale[None, :], residual / scale, white)
