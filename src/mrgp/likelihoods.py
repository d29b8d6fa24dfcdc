"""p(y | moments): Gaussian noise, tempered by composite weights (theory 2.2)."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp._types import AnyArray


def tempering_constant(
    noise: Float[AnyArray, " n"], weight: Float[AnyArray, " n"]
) -> Float[Array, ""]:
    """Return what N(y|m,s2)^phi has beyond N(y|m,s2/phi), in logs, summed over rows.

    It is zero at phi = 1 and does not involve y, but it depends on the noise and so matters to
    the fit of hyperparameters.
    """
    log_noise = jnp.log(2.0 * jnp.pi * noise)
    return jnp.sum(0.5 * (log_noise - jnp.log(weight)) - 0.5 * weight * log_noise)
