"""A network of GPs over regions: its factors at the nodes, and products of them (theory 3.3)."""

import functools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.data import Record, Records
from mrgp.gp import (
    AtNodes,
    Marginal,
    Mixture,
    Natural,
    block_information,
    for_each,
    map_rows,
    mean_at_nodes,
    nodes_of,
    product_covariance,
    rows_at_a_time,
    sum_of_products,
    sum_rows,
)
from mrgp.models.contract import Process
from mrgp.models.factors import Factors
from mrgp.supports import Support

Nodes = Float[Array, "b s d"]
NodeWeights = Float[Array, "b s"]


class Aggregates(eqx.Module):
    """What regions see of a network (unwrapped): L (mean_p + spread_p sum_q W_pq f_q).

    `whiten` turns the inducing variables of each factor white. Latent functions, and their weights
    in a task, go in the groups that q couples.
    """

    network: Any
    whiten: Factors

    def moments(
        self, q: Mixture, task: str, support: Support
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return mean and variance of a task on a support, in closed form (theory 3.7)."""
        weights = q.weights[:, None]
        means, variances = jax.vmap(lambda block: self.of_component(block, task, support))(q.blocks)
        mean = jnp.sum(weights * means, 0)
        return mean, jnp.sum(weights * (variances + (means - mean[None]) ** 2), 0)

    def joint(
        self, q: Mixture, task: str, support: Support
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, "n n"]]:
        """Return mean and joint covariance of a task on a support, in closed form."""
        p = self.network.levels.index(task)
        x, weights = nodes_of(support, self.network.rule)
        count = weights.size
        level, spread = self.network.levels.level(support, task), self.network.levels.spread[p]

        def component(block: Factors) -> tuple[Array, Array]:
            mean, pairs = jnp.zeros(count), jnp.zeros((count, count))
            pairs_of = self.marginals(block, p, x.reshape(1, count, -1))
            for group, (f, w) in zip(self.network.groups, pairs_of, strict=True):
                each = (len(group), count)
                mean += (f.mean * w.mean)[0].reshape(each).sum(0)
                pairs += product_covariance(f, w)[0].reshape(*each, *each).sum((0, 2))
            mean = jnp.sum(weights * mean.reshape(weights.shape), 1)
            pairs = pairs.reshape(*weights.shape, *weights.shape)
            covariance = jnp.einsum("ns,nsmt,mt->nm", weights, pairs, weights)
            return level + spread * mean, spread**2 * covariance

        means, covariances = jax.vmap(component)(q.blocks)
        pi = q.weights
        mean = pi @ means
        apart = means - mean[None]
        between = jnp.einsum("k,kn,km->nm", pi, apart, apart)
        return mean, jnp.einsum("k,knm->nm", pi, covariances) + between

    def mixture(
        self, q: Mixture, task: str, support: Support, draws: Any
    ) -> tuple[Float[AnyArray, "n j"], Float[AnyArray, "n j"]]:
        """Return moments given draws of the weights: a mixture of Gaussians over the draws.

        `draws` has standard normal numbers for the inducing variables of every weight,
        [components, draws, m]; what they leave open of W enters by its moments.
        """
        p = self.network.levels.index(task)
        level, spread = self.network.levels.level(support, task), self.network.levels.spread[p]

        def chunk(x: Array, weights: Array) -> tuple[Array, ...]:
            seen = self.views(p, x)

            def component(block: Factors, noise: tuple[Array, ...]) -> tuple[Array, Array]:
                f = [a.marginal(qf) for (a, _), (qf, _) in zip(seen, block.of_task(p), strict=True)]

                def one(normals: tuple[Array, ...]) -> tuple[Array, Array]:
                    parts = zip(seen, block.w[p], normals, strict=True)
                    w = [
                        self.linked(b.given(qw.mean + jnp.tril(qw.root) @ e))
                        for (_, b), qw, e in parts
                    ]
                    return sum_of_products(self.tiled(weights), f, w)

                return jax.vmap(one)(noise)

            found = jax.vmap(component)(q.blocks, draws[p])
            return tuple(moments.reshape(-1, x.shape[0]).T for moments in found)

        x, weights = nodes_of(support, self.network.rule)
        count = draws[p][0].shape[0] * draws[p][0].shape[1]
        width = self.row_width(x.shape[1]) + count * x.shape[1] * (x.shape[1] + 2)
        means, variances = map_rows(chunk, (x, weights), rows_at_a_time(width))
        return level[:, None] + spread * means, spread**2 * variances

    def of_component(
        self, q: Factors, task: str, support: Support
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return mean and variance of a task under one component (theory 3.3)."""
        p = self.network.levels.index(task)
        x, weights = nodes_of(support, self.network.rule)

        def chunk(x: Array, weights: Array) -> tuple[Array, Array]:
            pairs = self.marginals(q, p, x)
            return sum_of_products(self.tiled(weights), *zip(*pairs, strict=True))

        size = rows_at_a_time(self.row_width(x.shape[1]))
        mean, variance = map_rows(chunk, (x, weights), size)
        spread = self.network.levels.spread[p]
        return self.network.levels.level(support, task) + spread * mean, spread**2 * variance

    def information(
        self, q: Factors, process: Process, record: Record, group: int, which: str
    ) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
        """Return what a process says of one block, given the moments of all others."""
        p = self.network.levels.index(process[1])
        spread = self.network.levels.spread[p]
        x, weights = nodes_of(record.support, self.network.rule)
        y = (jnp.asarray(record.y) - self.network.levels.level(record.support, process[1])) / spread
        precision = record.weights * spread**2 / self.network.noise.of_rows(process, record)

        def chunk(x: Array, weights: Array, y: Array, precision: Array) -> tuple[Array, Array]:
            rest = jnp.zeros(x.shape[0])
            for other in set(range(len(self.network.groups))) - {group}:
                rest += self.group_mean(q, p, other, x, weights)
            f, w = self.view(p, group, x)
            qf, qw = q.of_task(p)[group]
            own, other = (f, self.linked(w.marginal(qw))) if which == "f" else (w, f.marginal(qf))
            return block_information(own, self.tiled(weights)[group], other, y - rest, precision)

        size = rows_at_a_time(self.row_width(x.shape[1]))
        return sum_rows(chunk, (x, weights, y, precision), size)

    def view(self, task: int, group: int, x: Nodes) -> tuple[AtNodes, AtNodes]:
        """Return a group of latent functions and its weights in a task, at nodes."""
        net, members = self.network, self.network.groups[group]

        def stacked(kernels: Any, z: Any, whiten: Any) -> AtNodes:
            pairs = [(kernels[i], whiten[i]) for i in members]
            return AtNodes.stack(for_each(lambda pair: AtNodes.of(pair[0], z, pair[1], x), pairs))

        return (
            stacked(net.kernels_f, net.locations_f, self.whiten.f),
            stacked(net.kernels_w[task], net.locations_w, self.whiten.w[task]),
        )

    def views(self, task: int, x: Nodes) -> list[tuple[AtNodes, AtNodes]]:
        """Return all groups at nodes."""
        return [self.view(task, g, x) for g in range(len(self.network.groups))]

    def marginals(self, q: Factors, task: int, x: Nodes) -> list[tuple[Marginal, Marginal]]:
        """Return the moments of all groups and of their linked weights at nodes."""
        pairs = zip(self.views(task, x), q.of_task(task), strict=True)
        return [(f.marginal(qf), self.linked(w.marginal(qw))) for (f, w), (qf, qw) in pairs]

    def group_mean(
        self, q: Factors, task: int, group: int, x: Nodes, weights: NodeWeights
    ) -> Float[Array, " b"]:
        """Return the mean of L sum_q W_q f_q over one group, without what a variance needs."""
        qf, qw = q.of_task(task)[group]
        members = self.network.groups[group]

        def means(kernels: Any, z: Any, white: Any, mean: Any) -> Array:
            pairs = zip(members, jnp.split(mean, len(members)), strict=True)
            return jnp.concatenate(
                [mean_at_nodes(kernels[i], z, white[i], m, x) for i, m in pairs], 1
            )

        f = means(self.network.kernels_f, self.network.locations_f, self.whiten.f, qf.mean)
        if self.network.positive:
            w = self.linked(self.view(task, group, x)[1].marginal(qw)).mean
        else:
            w = means(
                self.network.kernels_w[task], self.network.locations_w, self.whiten.w[task], qw.mean
            )
        return jnp.sum(self.tiled(weights)[group] * f * w, 1)

    def features_of_f(self, task: int, support: Support) -> Float[Array, "n m"]:
        """Return L (E[W] f) by the whitened inducing variables of f, W at its posterior mean."""
        x, weights = nodes_of(support, self.network.rule)

        def chunk(x: Array, weights: Array) -> Array:
            found = []
            for group, (f, w) in enumerate(self.views(task, x)):
                of_component = jax.vmap(lambda q, w=w: self.linked(w.marginal(q)).mean)
                means = of_component(self.network.q.blocks.w[task][group])
                mean = jnp.einsum("k,kbs->bs", self.network.q.weights, means)
                scaled = self.tiled(weights)[group] * mean
                found.append(f.means(scaled))
            return jnp.concatenate(found, 1)

        return map_rows(chunk, (x, weights), rows_at_a_time(self.row_width(x.shape[1])))

    def tiled(self, weights: NodeWeights) -> list[Float[Array, "b _"]]:
        """Return the nodes' weights, once for every latent function of each group."""
        return [jnp.tile(weights, (1, len(group))) for group in self.network.groups]

    def linked(self, weight: Marginal) -> Marginal:
        """Return what multiplies f: W itself, or exp(W)."""
        return weight.exp() if self.network.positive else weight

    def row_width(self, nodes: int) -> int:
        """Return how many numbers a row of so many nodes needs at once."""
        features = self.network.locations_f.shape[0] + self.network.locations_w.shape[0]
        squares = sum(len(group) ** 2 for group in self.network.groups)
        return squares * nodes * (2 * features + 4 * nodes)

    def best_f(self, q: Factors, records: Records, group: int) -> Natural:
        """Return the best q of one group of latent functions, given the rest (theory 3.6)."""
        pairs = zip(self.network.processes, records, strict=True)
        return _optimum([self.information(q, p, r, group, "f") for p, r in pairs])

    def best_w(self, q: Factors, records: Records, group: int) -> tuple[Natural, ...]:
        """Return the best q of one group's weights in every task, given the rest (theory 3.6).

        Given the latent functions, tasks do not depend on one another. Only the identity link has
        an explicit optimum.
        """
        found: dict[str, list[Any]] = {task: [] for task in self.network.levels.names}
        for process, record in zip(self.network.processes, records, strict=True):
            said = self.information(q, process, record, group, "w")
            found[process[1]].append(said)
        # A task that no record sees keeps its prior.
        size = len(self.network.groups[group]) * self.network.locations_w.shape[0]
        nothing = jnp.zeros(size), jnp.zeros((size, size))
        return tuple(_optimum([nothing, *parts]) for parts in found.values())


def _optimum(parts: Sequence[tuple[Array, Array]]) -> Natural:
    return Natural.optimal(*functools.reduce(lambda a, b: jax.tree.map(jnp.add, a, b), parts))
