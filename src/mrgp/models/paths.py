"""Paths drawn through a tree of GPs, and what its experts say along them (theory 5.4, 5.7)."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.gp import map_rows, nodes_of, rows_at_a_time
from mrgp.models.answers import Components, columns_of
from mrgp.models.mixing import by_precision, in_order, reliability, slices
from mrgp.models.parts import Blend, Outcome, States, normals
from mrgp.supports import Support

Nodes = Float[Array, "b s d"]
Given = Float[AnyArray, "n s a"] | None
"""The experts' weights at the nodes, where a function of the user's has them."""


class Split(NamedTuple):
    """Experts at the nodes of regions: slices of the mixture, and what each expert has in them."""

    widths: Float[Array, "k b"]
    parts: Float[Array, "k a b s"]
    shares: Float[Array, "a b s"]
    outcomes: tuple[Outcome, ...]
    labels: tuple[str, ...]


class Paths(eqx.Module):
    """A tree with the posteriors of its parts, and `count` paths drawn through it with a key."""

    tree: Any
    states: States
    key: Array
    count: int = eqx.field(static=True)

    def outcome(self, name: str, x: Nodes) -> Outcome:
        """Return what a branch says at the nodes of regions, along each path."""
        branch, part = self.tree.branch(name), self.tree.parts[name]
        if branch.parent is None:
            return part.at_nodes(self.states[name], x)
        h = self.draws(branch.parent, x)
        return part.after(self.states[name], h, x[..., np.array(self.tree.beside, int)])

    def draws(self, name: str, x: Nodes) -> Float[Array, "j b s"]:
        """Draw paths of a branch, or of a mixture, jointly over the nodes of each region."""
        white = normals(self.key, name, self.count, x.shape[1])
        blend = self.tree.blend_named(name)
        if blend is None:
            return self.outcome(name, x).draws(white)
        outcomes = [self.outcome(n, x) for _, n in blend.experts]
        found = [
            o.draws(normals(self.key, f"{name} {n}", self.count, x.shape[1]))
            for o, (_, n) in zip(outcomes, blend.experts, strict=True)
        ]
        # One number chooses the expert at all nodes of a region, as in `slices`.
        ends = jnp.cumsum(self.shares(blend, x, outcomes), 0)
        level = jax.scipy.special.ndtr(white[:, :1])[:, None, :]
        chosen = jnp.sum(level[None] >= ends[:-1, None], 0)
        return jnp.sum(jnp.stack([jnp.where(chosen == a, f, 0.0) for a, f in enumerate(found)]), 0)

    def reliability(self, name: str, x: Nodes) -> Float[Array, "b s"]:
        """Return how much is known at nodes of the values that a branch, or mixture, rests on."""
        blend = self.tree.blend_named(name)
        if blend is not None:
            parts = [self.reliability(n, x) for _, n in blend.experts]
            return 1.0 - jnp.prod(1.0 - jnp.stack(parts), 0)
        parent = self.tree.branch(name).parent
        if parent is not None:
            return self.reliability(parent, x)
        part = self.tree.parts[name]
        variance = part.at_nodes(self.states[name], x).variance
        return reliability(variance, part.prior_variance(x), jnp.asarray(part.floor))

    def shares(
        self, blend: Blend, x: Nodes, outcomes: Sequence[Outcome], given: Given = None
    ) -> Float[Array, "a b s"]:
        """Return the weight of each expert at the nodes (theory 5.7), or those given."""
        if given is not None:
            return jnp.asarray(given).transpose(2, 0, 1)
        count, mixing = len(blend.experts), self.tree.mixing
        like = jnp.ones((count, *x.shape[:2]))
        if mixing == "average" or count == 1:
            return like / count
        if mixing == "precision":
            base = self.tree.parts[blend.experts[0][1]]
            return by_precision([o.variance for o in outcomes], base.prior_variance(x))
        if mixing == "base":
            return jnp.where((jnp.arange(count) == 0)[:, None, None], like, 0.0)
        return in_order([self.reliability(n, x) for _, n in blend.experts])

    def over_regions(
        self, name: str, support: Support
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"]]:
        """Return mean and variance of what a branch says of regions, for each path."""
        x, weights = nodes_of(support, self.tree.rule)
        return over_nodes(self.outcome(name, x), weights)

    def components(
        self, support: Support, task: str, source: str | None, given: Given
    ) -> Components:
        """Predict a task, or what a source reports of it, region by region (theory 5.8)."""
        x, weights = nodes_of(support, self.tree.rule)

        def chunk(x: Array, weights: Array, given: Array | None = None) -> Components:
            found = self._split(task, source, x, weights, given)
            means, variances = [], []
            for part in found.parts:
                pairs = zip(found.outcomes, part, strict=True)
                sums = [over_nodes(outcome, weights * share) for outcome, share in pairs]
                means.append(_total([mean for mean, _ in sums]))
                variances.append(_total([variance for _, variance in sums]))
            count = means[0].shape[1]
            alone = [over_nodes(outcome, weights) for outcome in found.outcomes]
            size = jnp.abs(weights) / jnp.sum(jnp.abs(weights), 1, keepdims=True)
            return Components(
                jnp.repeat(found.widths.T / count, count, axis=1),
                jnp.concatenate(means, 1),
                jnp.concatenate(variances, 1),
                experts=dict(zip(found.labels, alone, strict=False)),
                shares={
                    label: jnp.sum(size * share, 1)
                    for label, share in zip(found.labels, found.shares, strict=False)
                },
            )

        widest = max(columns_of(state) for state in self.states.values())
        width = x.shape[1] * (2 * widest + self.count * (widest + x.shape[1]))
        rows = (x, weights) if given is None else (x, weights, given)
        return map_rows(chunk, rows, rows_at_a_time(width))

    def joint(
        self, support: Support, task: str, source: str | None, given: Given
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, "n n"]]:
        """Return mean and joint covariance; correlations come from paths over all the regions."""
        x, weights = nodes_of(support, self.tree.rule)
        n, s = weights.shape
        whole = weights.reshape(1, n * s)
        every = None if given is None else jnp.asarray(given).reshape(1, n * s, -1)
        found = self._split(task, source, x.reshape(1, n * s, -1), whole, every)
        rows = (jnp.eye(n)[:, :, None] * weights[None]).reshape(n, n * s)
        second, centre = jnp.zeros((n, n)), jnp.zeros(n)
        for width, part in zip(found.widths[:, 0], found.parts, strict=True):
            pairs = [(o, rows * p) for o, p in zip(found.outcomes, part, strict=True)]
            mean = _total([o.mean[:, 0] @ r.T for o, r in pairs])
            within = _total([jnp.mean(r @ o.covariance[:, 0] @ r.T, 0) for o, r in pairs])
            second += width * (within + mean.T @ mean / mean.shape[0])
            centre += width * jnp.mean(mean, 0)
        drawn = second - centre[:, None] * centre[None, :]
        alone = self.components(support, task, source, given)
        mean = jnp.sum(alone.weights * alone.means, 1)
        spread = alone.variances + (alone.means - mean[:, None]) ** 2
        variance = jnp.sum(alone.weights * spread, 1)
        scale = jnp.sqrt(variance / jnp.maximum(jnp.diagonal(drawn), jnp.finfo(float).tiny))
        return mean, drawn * scale[:, None] * scale[None, :]

    def _split(
        self,
        task: str,
        source: str | None,
        x: Nodes,
        weights: Float[Array, "b s"],
        given: Given,
    ) -> Split:
        """Return what experts say of regions, and how they share them."""
        blend, branch = self.tree.blend(task), self.tree.speaker(task, source)
        every = jnp.ones((1, *weights.shape))
        if branch is not None:
            return Split(every[:, :, 0], every[None], every, (self.outcome(branch.name, x),), ())
        outcomes = tuple(self.outcome(n, x) for _, n in blend.experts)
        shares = self.shares(blend, x, outcomes, given)
        labels = tuple(label for label, _ in blend.experts)
        if self.tree.combine == "independent":
            return Split(every[:, :, 0], shares[None], shares, outcomes, labels)
        return Split(*slices(shares, weights), shares, outcomes, labels)


def over_nodes(
    outcome: Outcome, weights: Float[Array, "b s"]
) -> tuple[Float[Array, "b j"], Float[Array, "b j"]]:
    """Return mean and variance of the weighted sum over nodes, for each path."""
    mean = jnp.einsum("bs,jbs->bj", weights, outcome.mean)
    variance = jnp.einsum("bs,jbst,bt->bj", weights, outcome.covariance, weights)
    return mean, jnp.maximum(variance, 0.0)


def _total(parts: Sequence[Float[Array, "..."]]) -> Float[Array, "..."]:
    """Add what experts say; one that has a single path says it on all."""
    return functools.reduce(jnp.add, jnp.broadcast_arrays(*parts))
