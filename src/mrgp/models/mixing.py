"""How experts share the prediction of a task over the inputs (theory 5.7)."""

from collections.abc import Sequence
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp._types import AnyArray

Mixing = Literal["precision", "reliability", "average", "base"]
"""Weights by what experts know, by what their bases know, all equal, or the base alone."""

SHARPNESS = 10.0
LEAST = 1e-12


def reliability(
    variance: Float[AnyArray, "b s"], prior: Float[AnyArray, "b s"], floor: Float[AnyArray, ""]
) -> Float[Array, "b s"]:
    """Return how much a base knows at each node: from zero, as in the prior, to one.

    `floor` is the variance where the base has data, a constant of the fit.
    """
    span = jnp.log(prior / floor)
    informed = span > LEAST
    lost = jnp.log(jnp.maximum(variance, LEAST * prior) / floor) / jnp.where(informed, span, 1.0)
    unknown = jnp.where(informed, jnp.clip(lost, 0.0, 1.0), 1.0)
    return 0.5 * (1.0 + jnp.tanh(SHARPNESS * (0.5 - unknown)))


def in_order(reliabilities: Sequence[Float[Array, "b s"]]) -> Float[Array, "a b s"]:
    """Give each expert its reliability's share of what those before it leave; the last takes all.

    >>> in_order([jnp.array([[0.5]]), jnp.array([[0.2]])]).ravel().tolist()
    [0.5, 0.5]
    """
    left, shares = jnp.ones_like(reliabilities[0]), []
    for r in reliabilities[:-1]:
        shares.append(left * r)
        left = left * (1.0 - r)
    return jnp.stack([*shares, left])


def by_precision(
    variances: Sequence[Float[Array, "b s"]], prior: Float[AnyArray, "b s"]
) -> Float[Array, "a b s"]:
    """Weigh experts by the precision that each has beyond the prior of the target.

    All experts speak of one quantity, whose `prior` variance is known before any data. One that
    knows no more than that has no say; where none does, all have the same.

    >>> by_precision([jnp.array([[0.25]]), jnp.array([[1.0]])], jnp.array([[1.0]])).ravel().tolist()
    [1.0, 0.0]
    """
    several = jnp.stack(list(variances))
    # Relative to the prior: weights do not depend on the units.
    relative = several / jnp.maximum(jnp.asarray(prior), jnp.finfo(float).tiny)[None]
    gained = jnp.maximum(1.0 / jnp.maximum(relative, LEAST) - 1.0, 0.0)
    total = gained.sum(0)[None]
    known = total > LEAST
    return jnp.where(known, gained / jnp.where(known, total, 1.0), 1.0 / len(several))


def slices(
    shares: Float[Array, "a b s"], weights: Float[AnyArray, "b s"]
) -> tuple[Float[Array, "a b"], Float[Array, "a a b s"]]:
    """Write the mixture on a region as components, each a way to choose an expert at every node.

    One number in [0, 1] chooses the expert at all nodes of a region: the experts' shares are laid
    end to end at each node, and a component is a slice of [0, 1], as wide as an expert's share is
    on average. Returns the width of each slice, and each expert's part in it at each node. At a
    point a slice is one expert; over a region where one expert hands over to the next, every slice
    goes with the one to the other.
    """
    size = jnp.abs(jnp.asarray(weights))
    size = size / size.sum(1, keepdims=True)
    ends = jnp.cumsum(shares, 0)
    starts = ends - shares
    upper = jnp.sum(size[None] * ends, -1)
    lower = jnp.sum(size[None] * starts, -1)
    widths = upper - lower
    shared = jnp.minimum(ends[None], upper[:, None, :, None])
    shared = jnp.maximum(shared - jnp.maximum(starts[None], lower[:, None, :, None]), 0.0)
    some = widths > LEAST
    parts = shared / jnp.where(some, widths, 1.0)[:, None, :, None]
    # A slice of no width has no say, but must stay a number.
    return jnp.where(some, widths, 0.0), jnp.where(some[:, None, :, None], parts, shares[None])
