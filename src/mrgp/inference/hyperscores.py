"""Scores of the kernel's parameters, the paper's choice for composite weights (theory 4.2)."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from mrgp._linalg import add_diagonal, cholesky, inverse_lower
from mrgp.data import Dataset, Record, Scaling
from mrgp.gp import prior_covariance
from mrgp.inference.objectives import as_arrays, build_objective
from mrgp.inference.sandwich import CLOSEST, CLUSTERS_EACH, Rows, Sandwich, leading_directions
from mrgp.models import Coregionalised, SingleGP
from mrgp.parameters import partition

MOST_VALUES = 1500


def kernel_sandwich(model: Any, data: Dataset, sources: Rows, clusters: Rows) -> Sandwich:
    """Return H and J of the composite marginal likelihood by the kernel's raw parameters."""
    dense = isinstance(model, SingleGP | Coregionalised) and model.locations is None
    if not dense or len(sources) > MOST_VALUES:
        raise ValueError(
            'parameters="kernel" needs a model with a dense covariance: MRGP, or MRGPRN with'
            f' kernel_w="constant", without inducing inputs, and at most {MOST_VALUES} values; use'
            ' parameters="function".'
        )
    if not jax.tree.leaves(partition(_kernels(model))[0]):
        raise ValueError(
            'parameters="kernel": the kernel has no parameters to learn, and so no scores; use'
            ' parameters="function".'
        )
    records = build_objective(model, data, Scaling.of(data), None).records
    information, scores = (np.asarray(x) for x in _derivatives(as_arrays(model), records))
    number, count = len(data), int(clusters.max()) + 1
    parts = np.zeros((count, number, scores.shape[1]))
    np.add.at(parts, (clusters, sources), scores)
    eigenvalues, vectors = np.linalg.eigh(information)
    if eigenvalues[0] <= CLOSEST * max(eigenvalues[-1], 1.0):
        raise ValueError(
            "The kernel's parameters are not all determined by the data: the information of the"
            ' composite likelihood is not positive. Use parameters="function".'
        )
    total = parts.sum(1)
    white = parts @ (vectors / np.sqrt(eigenvalues)[None])
    directions, strength = leading_directions(information, count // CLUSTERS_EACH)
    return Sandwich(
        information=information,
        variability=total.T @ total,
        own=np.sum(white**2, -1),
        shared=np.einsum("bap,bp->ba", white, white.sum(1)),
        dimension=float(len(information)),
        strength=strength,
        leading=total @ directions,
    )


def _kernels(model: Any) -> Any:
    return model.kernel if isinstance(model, SingleGP) else model.kernels


@eqx.filter_jit
def _derivatives(
    model: Any, records: Sequence[Record]
) -> tuple[Float[Array, "p p"], Float[Array, "n p"]]:
    """Return the information of the kernel's parameters, and the score of every observation.

    The gradient 1/2 a^T K' a - 1/2 tr(K^-1 K'), a = K^-1 e, is a sum over observations.
    """
    trained, frozen = partition(model)
    start, unravel = ravel_pytree(_kernels(trained))

    def at(vector: Array) -> Any:
        return eqx.combine(eqx.tree_at(_kernels, trained, unravel(vector)), frozen)

    def evidence(vector: Array) -> Array:
        built = at(vector)
        own = [built.alone(i).log_evidence((r,)) for i, r in enumerate(records)]
        return jnp.sum(jnp.stack(own))

    def shares(vector: Array) -> Array:
        found = []
        for i, record in enumerate(records):
            kernels, seen = at(vector).alone(i).linear((record,))
            prior = prior_covariance(kernels, seen, model.rule)
            root = inverse_lower(cholesky(add_diagonal(prior, seen[0].noise)))
            inverse = jax.lax.stop_gradient(root.T @ root)
            pull = inverse @ seen[0].residual
            found.append(0.5 * pull * (prior @ pull) - 0.5 * jnp.sum(inverse * prior.T, 1))
        return jnp.concatenate(found)

    return -jax.hessian(evidence)(start), jax.jacfwd(shares)(start)
