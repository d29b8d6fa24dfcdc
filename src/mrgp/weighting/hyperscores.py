"""Scores of the kernel's parameters, the paper's choice for composite weights (theory 4.2)."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from mrgp._linalg import add_diagonal, cholesky, inverse_lower
from mrgp.data import Records
from mrgp.gp import prior_covariance
from mrgp.models import Linear, Model, as_arrays
from mrgp.parameters import partition, unwrap
from mrgp.weighting.sandwich import CLOSEST, CLUSTERS_EACH, Rows, Sandwich, leading_directions

MOST_VALUES = 1500


def kernel_sandwich(model: Model, records: Records, sources: Rows, clusters: Rows) -> Sandwich:
    """Return H and J of the composite marginal likelihood by the kernel's raw parameters."""
    linear: Any = model.linear
    if linear is None or not linear.solver.keeps_data or len(sources) > MOST_VALUES:
        raise ValueError(
            'parameters="kernel" needs a model with a dense covariance: MRGP, or MRGPRN with'
            f' kernel_w="constant", without inducing inputs, and at most {MOST_VALUES} values; use'
            ' parameters="function".'
        )
    if not jax.tree.leaves(partition(_kernels(linear))[0]):
        raise ValueError(
            'parameters="kernel": the kernel has no parameters to learn, and so no scores; use'
            ' parameters="function".'
        )
    solver = linear.solver.dense(len(sources), 'parameters="kernel"')
    linear = dataclasses.replace(linear, solver=solver)
    found = _derivatives(as_arrays(linear), as_arrays(records))
    information, scores = (np.asarray(x) for x in found)
    number, count = len(records), int(clusters.max()) + 1
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


def _kernels(model: Linear) -> Any:
    return model.solver.kernels


@eqx.filter_jit
def _derivatives(
    model: Linear, records: Records
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
            alone = at(vector).alone(i)
            read = alone.readings((record,))
            prior = prior_covariance(unwrap(alone.solver.kernels), read, model.solver.rule)
            root = inverse_lower(cholesky(add_diagonal(prior, read.noise)))
            inverse = jax.lax.stop_gradient(root.T @ root)
            pull = inverse @ read.residual
            found.append(0.5 * pull * (prior @ pull) - 0.5 * jnp.sum(inverse * prior.T, 1))
        return jnp.concatenate(found)

    return -jax.hessian(evidence)(start), jax.jacfwd(shares)(start)
