"""A network's factors at the nodes of regions (theory 3.3).

Functions of an unwrapped network: its latent functions, and its weights in a task, in groups.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp.gp import AtNodes, Marginal, map_rows, mean_at_nodes, rows_at_a_time
from mrgp.models.factors import Factors
from mrgp.supports import Support


def view(
    network: Any, whiten: Factors, task: int, group: int, x: Float[Array, "b s d"]
) -> tuple[AtNodes, AtNodes]:
    """Return a group of latent functions and its weights in a task, at nodes."""
    z, v = network.locations_f, network.locations_w
    kernels, white = network.kernels_w[task], whiten.w[task]
    members = network.groups[group]
    return (
        AtNodes.stack([AtNodes.of(network.kernels_f[i], z, whiten.f[i], x) for i in members]),
        AtNodes.stack([AtNodes.of(kernels[i], v, white[i], x) for i in members]),
    )


def views(
    network: Any, whiten: Factors, task: int, x: Float[Array, "b s d"]
) -> list[tuple[AtNodes, AtNodes]]:
    """Return all groups at nodes."""
    return [view(network, whiten, task, g, x) for g in range(len(network.groups))]


def marginals(
    network: Any, q: Factors, whiten: Factors, task: int, x: Float[Array, "b s d"]
) -> list[tuple[Marginal, Marginal]]:
    """Return the moments of all groups and of their linked weights at nodes."""
    pairs = zip(views(network, whiten, task, x), q.of_task(task), strict=True)
    return [(f.marginal(qf), linked(network, w.marginal(qw))) for (f, w), (qf, qw) in pairs]


def group_mean(
    network: Any,
    q: Factors,
    whiten: Factors,
    task: int,
    group: int,
    x: Float[Array, "b s d"],
    weights: Float[Array, "b s"],
) -> Float[Array, " b"]:
    """Return the mean of L sum_q W_q f_q over one group, without what a variance needs."""
    qf, qw = q.of_task(task)[group]
    members = network.groups[group]
    z, v = network.locations_f, network.locations_w
    kernels = network.kernels_w[task]
    parts = jnp.split(qf.mean, len(members))
    f = [
        mean_at_nodes(network.kernels_f[i], z, whiten.f[i], mean, x)
        for i, mean in zip(members, parts, strict=True)
    ]
    if network.positive:
        w = linked(network, view(network, whiten, task, group, x)[1].marginal(qw)).mean
    else:
        parts = jnp.split(qw.mean, len(members))
        pairs = zip(members, parts, strict=True)
        means = [mean_at_nodes(kernels[i], v, whiten.w[task][i], m, x) for i, m in pairs]
        w = jnp.concatenate(means, 1)
    return jnp.sum(tiled(network, weights)[group] * jnp.concatenate(f, 1) * w, 1)


def features_of_f(
    network: Any, whiten: Factors, task: int, support: Support
) -> Float[Array, "n m"]:
    """Return L (E[W] f) by the whitened inducing variables of f, W being at its posterior mean."""
    x, weights = nodes_of(network, support)

    def chunk(x: Array, weights: Array) -> Array:
        found = []
        for group, (f, w) in enumerate(views(network, whiten, task, x)):
            of_component = jax.vmap(lambda q, w=w: linked(network, w.marginal(q)).mean)
            means = of_component(network.q.blocks.w[task][group])
            mean = jnp.einsum("k,kbs->bs", network.q.weights, means)
            found.append(jnp.einsum("bs,bsm->bm", tiled(network, weights)[group] * mean, f.alpha))
        return jnp.concatenate(found, 1)

    return map_rows(chunk, (x, weights), rows_at_a_time(row_width(network, x.shape[1])))


def tiled(network: Any, weights: Float[Array, "b s"]) -> list[Float[Array, "b _"]]:
    """Return the nodes' weights, once for every latent function of each group."""
    return [jnp.tile(weights, (1, len(group))) for group in network.groups]


def linked(network: Any, weight: Marginal) -> Marginal:
    """Return what multiplies f: W itself, or exp(W)."""
    return weight.exp() if network.positive else weight


def nodes_of(network: Any, support: Support) -> tuple[Float[Array, "n s d"], Float[Array, "n s"]]:
    """Return the nodes of regions and their weights under the network's rule."""
    atoms = support.quadrature(network.rule).atoms()
    return jnp.asarray(atoms.lower), jnp.asarray(atoms.weights)


def row_width(network: Any, nodes: int) -> int:
    """Return how many numbers a row of so many nodes needs at once."""
    features = network.locations_f.shape[0] + network.locations_w.shape[0]
    squares = sum(len(group) ** 2 for group in network.groups)
    return squares * nodes * (2 * features + 4 * nodes)
