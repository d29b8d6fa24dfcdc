"""A tree of GPs: bases, layers over their values, and the mixture of a task (theory 5)."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.data import Record, Scaling
from mrgp.gp import Posterior, map_rows, rows_at_a_time
from mrgp.models.at_nodes import nodes_of
from mrgp.models.mixing import by_precision, in_order, reliability, slices
from mrgp.models.parts import Blend, Node, Outcome, Part, layer_record, normals
from mrgp.models.recipe import Process
from mrgp.parameters import Parameter
from mrgp.supports import Rule, Support

States = dict[str, Posterior]
Variance = Literal["mixture", "independent"]


class Components(eqx.Module):
    """A prediction by components, and beside it what each expert says and its weight.

    Rows are regions. `experts` has the means and variances of each expert's own components, all
    of equal weight.
    """

    weights: Float[AnyArray, "n k"]
    means: Float[AnyArray, "n k"]
    variances: Float[AnyArray, "n k"]
    experts: Mapping[str, tuple[Float[AnyArray, "n j"], Float[AnyArray, "n j"]]]
    shares: Mapping[str, Float[AnyArray, " n"]]


class Pieces(NamedTuple):
    """Experts at the nodes of regions: slices of the mixture, and what each expert has in them."""

    widths: Float[Array, "k b"]
    parts: Float[Array, "k a b s"]
    shares: Float[Array, "a b s"]
    outcomes: tuple[Outcome, ...]
    labels: tuple[str, ...]


class Tree(eqx.Module):
    """Base GPs of every process, layers that take their values, and mixtures of experts.

    `nodes` are in the order in which they can be computed. The model works in the user's own
    coordinates, and its parts in theirs.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 2.0], name="sites")
    >>> [node.name for node in mrgp.MRDGP().build(mrgp.Dataset([seen])).nodes]
    ['base[sites]']
    """

    parts: dict[str, Part]
    nodes: tuple[Node, ...] = eqx.field(static=True)
    blends: tuple[Blend, ...] = eqx.field(static=True)
    processes: tuple[Process, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    beside: tuple[int, ...] = eqx.field(static=True)
    mixing: str | Callable[..., Any] = eqx.field(static=True)
    combine: Variance = eqx.field(static=True)
    samples: int = eqx.field(static=True)
    seed: int = eqx.field(static=True)
    rule: Rule = eqx.field(static=True)

    @property
    def key(self) -> Array:
        """The key of the paths with which the layers are trained."""
        with jax.ensure_compile_time_eval():
            return jax.random.key(self.seed)

    @property
    def ancestors(self) -> frozenset[str]:
        """The nodes whose values a layer takes, directly or as experts of a mixture."""
        parents = {node.parent for node in self.nodes}
        mixed = {n for b in self.blends if b.name in parents for _, n in b.experts}
        return frozenset(n.name for n in self.nodes if n.name in parents | mixed)

    def log_evidence(self, records: Sequence[Record]) -> Float[Array, ""]:
        """Return the bound: those of the bases, and of the layers given their parents' paths."""
        return self._climb(records)[0]

    def condition(self, records: Sequence[Record]) -> States:
        """Return the posterior of every part."""
        return self._climb(records, everywhere=True)[1]

    def _climb(
        self, records: Sequence[Record], everywhere: bool = False
    ) -> tuple[Float[Array, ""], States]:
        total, states = jnp.zeros(()), {}
        for node in self.nodes:
            part = self.parts[node.name]
            record = self.record_of(states, node, records[self.processes.index(node.process)])
            if everywhere or node.name in self.ancestors:
                states[node.name] = part.gp.condition([record])
            if not everywhere:
                total += part.gp.log_evidence([record])
        return total, states

    def record_of(self, states: States, node: Node, record: Record) -> Record:
        """Return what a node is to explain, in its own coordinates."""
        part = self.parts[node.name]
        if node.parent is None:
            return part.record(record)
        rows: Any = part.rows
        # Not a minibatch, whose rows would stand for others.
        seen = dataclasses.replace(
            record.take(rows), weight=jnp.asarray(record.weight), shapes=None
        )
        return part.record(self.layer_data(states, node, seen, part.slope))

    def layer_data(
        self, states: States, node: Node, record: Record, slope: Float[AnyArray, ""]
    ) -> Record:
        """Return what a layer is to explain of a target, in the user's coordinates."""
        x, weights = nodes_of(self, record.support)
        h = self.draws(states, str(node.parent), x, self.key, self.samples)
        return layer_record(slope, h, record, x[..., np.array(self.beside, int)], weights)

    def outcome(
        self, states: States, name: str, x: Float[Array, "b s d"], key: Array, paths: int
    ) -> Outcome:
        """Return what a node says at the nodes of regions, along each path."""
        node = next(n for n in self.nodes if n.name == name)
        part = self.parts[name]
        if node.parent is None:
            return part.at_nodes(states[name], x)
        h = self.draws(states, node.parent, x, key, paths)
        return part.after(states[name], h, x[..., np.array(self.beside, int)])

    def draws(
        self, states: States, name: str, x: Float[Array, "b s d"], key: Array, paths: int
    ) -> Float[Array, "j b s"]:
        """Draw paths of a node, or of a mixture, jointly over the nodes of each region."""
        white = normals(key, name, paths, x.shape[1])
        blend = next((b for b in self.blends if b.name == name), None)
        if blend is None:
            return self.outcome(states, name, x, key, paths).draws(white)
        outcomes = [self.outcome(states, n, x, key, paths) for _, n in blend.experts]
        found = [
            o.draws(normals(key, f"{name} {n}", paths, x.shape[1]))
            for o, (_, n) in zip(outcomes, blend.experts, strict=True)
        ]
        # One number chooses the expert at all nodes of a region, as in `slices`.
        ends = jnp.cumsum(self.shares(states, blend, x, outcomes), 0)
        level = jax.scipy.special.ndtr(white[:, :1])[:, None, :]
        chosen = jnp.sum(level[None] >= ends[:-1, None], 0)
        return jnp.sum(jnp.stack([jnp.where(chosen == a, f, 0.0) for a, f in enumerate(found)]), 0)

    def reliability(
        self, states: States, name: str, x: Float[Array, "b s d"]
    ) -> Float[Array, "b s"]:
        """Return how much is known at nodes of the values that a node, or a mixture, rests on."""
        blend = next((b for b in self.blends if b.name == name), None)
        if blend is not None:
            parts = [self.reliability(states, n, x) for _, n in blend.experts]
            return 1.0 - jnp.prod(1.0 - jnp.stack(parts), 0)
        node = next(n for n in self.nodes if n.name == name)
        if node.parent is not None:
            return self.reliability(states, node.parent, x)
        part = self.parts[name]
        variance = part.at_nodes(states[name], x).variance
        return reliability(variance, part.prior_variance(x), jnp.asarray(part.floor))

    def shares(
        self,
        states: States,
        blend: Blend,
        x: Float[Array, "b s d"],
        outcomes: Sequence[Outcome],
        given: Float[Array, "b s a"] | None = None,
    ) -> Float[Array, "a b s"]:
        """Return the weight of each expert at the nodes (theory 5.7), or those given."""
        if given is not None:
            return given.transpose(2, 0, 1)
        count = len(blend.experts)
        like = jnp.ones((count, *x.shape[:2]))
        if self.mixing == "average" or count == 1:
            return like / count
        if self.mixing == "precision":
            base = self.parts[blend.experts[0][1]]
            return by_precision([o.variance for o in outcomes], base.prior_variance(x))
        if self.mixing == "base":
            return jnp.where((jnp.arange(count) == 0)[:, None, None], like, 0.0)
        return in_order([self.reliability(states, n, x) for _, n in blend.experts])

    def components(
        self,
        states: States,
        support: Support,
        task: str,
        source: str | None,
        key: Array,
        paths: int,
        given: Float[AnyArray, "n s a"] | None = None,
    ) -> Components:
        """Predict a task, or what a source reports of it, region by region (theory 5.8).

        `given` are the experts' weights at the nodes, where a function of the user's has them.
        """
        x, weights = nodes_of(self, support)

        def chunk(x: Array, weights: Array, given: Array | None = None) -> Components:
            found = self._pieces(states, task, source, x, weights, key, paths, given)
            means, variances = [], []
            for part in found.parts:
                sums = [
                    over_nodes(o, weights * p) for o, p in zip(found.outcomes, part, strict=True)
                ]
                means.append(_total([mean for mean, _ in sums]))
                variances.append(_total([variance for _, variance in sums]))
            count = means[0].shape[1]
            alone = [over_nodes(outcome, weights) for outcome in found.outcomes]
            size = jnp.abs(weights) / jnp.sum(jnp.abs(weights), 1, keepdims=True)
            return Components(
                jnp.repeat(found.widths.T / count, count, axis=1),
                jnp.concatenate(means, 1),
                jnp.concatenate(variances, 1),
                dict(zip(found.labels, alone, strict=False)),
                {a: jnp.sum(size * s, 1) for a, s in zip(found.labels, found.shares, strict=False)},
            )

        widest = max(state.alpha.shape[0] for state in states.values())
        width = x.shape[1] * (2 * widest + paths * (widest + x.shape[1]))
        rows = (x, weights) if given is None else (x, weights, given)
        return map_rows(chunk, rows, rows_at_a_time(width))

    def _pieces(
        self,
        states: States,
        task: str,
        source: str | None,
        x: Float[Array, "b s d"],
        weights: Float[Array, "b s"],
        key: Array,
        paths: int,
        given: Float[Array, "b s a"] | None = None,
    ) -> Pieces:
        """Return what experts say of regions, and how they share them."""
        blend, node = self.blend(task), self._node_of(task, source)
        every = jnp.ones((1, *weights.shape))
        if node is not None:
            outcome = self.outcome(states, node.name, x, key, paths)
            return Pieces(every[:, :, 0], every[None], every, (outcome,), ())
        outcomes = tuple(self.outcome(states, n, x, key, paths) for _, n in blend.experts)
        shares = self.shares(states, blend, x, outcomes, given)
        labels = tuple(label for label, _ in blend.experts)
        if self.combine == "independent":
            return Pieces(every[:, :, 0], shares[None], shares, outcomes, labels)
        return Pieces(*slices(shares, weights), shares, outcomes, labels)

    def moments(
        self,
        state: States,
        support: Support,
        task: str,
        source: str | None,
        given: Float[AnyArray, "n s a"] | None = None,
        key: Array | None = None,
        paths: int | None = None,
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, " n"]]:
        """Return mean and variance of a task, or of what a source reports of it."""
        key, paths = self.key if key is None else key, paths or self.samples
        found = self.components(state, support, task, source, key, paths, given)
        mean = jnp.sum(found.weights * found.means, 1)
        spread = found.variances + (found.means - mean[:, None]) ** 2
        return mean, jnp.sum(found.weights * spread, 1)

    def joint(
        self,
        state: States,
        support: Support,
        task: str,
        source: str | None,
        given: Float[AnyArray, "n s a"] | None = None,
        key: Array | None = None,
        paths: int | None = None,
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, "n n"]]:
        """Return mean and joint covariance; correlations come from paths over all the regions."""
        key, paths = self.key if key is None else key, paths or self.samples
        x, weights = nodes_of(self, support)
        n, s = weights.shape
        whole = weights.reshape(1, n * s)
        every = None if given is None else jnp.asarray(given).reshape(1, n * s, -1)
        found = self._pieces(state, task, source, x.reshape(1, n * s, -1), whole, key, paths, every)
        rows = (jnp.eye(n)[:, :, None] * weights[None]).reshape(n, n * s)
        second, centre = jnp.zeros((n, n)), jnp.zeros(n)
        for width, part in zip(found.widths[:, 0], found.parts, strict=True):
            pairs = [(o, rows * p) for o, p in zip(found.outcomes, part, strict=True)]
            mean = _total([o.mean[:, 0] @ r.T for o, r in pairs])
            within = _total([jnp.mean(r @ o.covariance[:, 0] @ r.T, 0) for o, r in pairs])
            second += width * (within + mean.T @ mean / mean.shape[0])
            centre += width * jnp.mean(mean, 0)
        drawn = second - centre[:, None] * centre[None, :]
        mean, variance = self.moments(state, support, task, source, given, key, paths)
        scale = jnp.sqrt(variance / jnp.maximum(jnp.diagonal(drawn), jnp.finfo(float).tiny))
        return mean, drawn * scale[:, None] * scale[None, :]

    def asked(
        self, support: Support, task: str, source: str | None
    ) -> Float[np.ndarray, "n s a"] | None:
        """Ask a function of the user's for the weights of the target's experts at nodes."""
        blend = self.blend(task)
        mixed = self._node_of(task, source) is None and blend == self.blends[-1]
        if not callable(self.mixing) or not mixed:
            return None
        x, _ = nodes_of(self, support)
        places = np.asarray(x, np.float64).reshape(-1, x.shape[2])
        given = np.asarray(self.mixing(places), np.float64)
        count = len(blend.experts)
        if given.shape != (len(places), count):
            labels = [label for label, _ in blend.experts]
            raise ValueError(
                f"mixing: the function must return a weight for each of the experts {labels}, shape"
                f" {(len(places), count)}; got {given.shape}."
            )
        if not np.all(np.isfinite(given) & (given >= 0)) or not np.all(given.sum(1) > 0):
            raise ValueError("mixing: weights must be finite, not negative, and not all zero.")
        return (given / given.sum(1, keepdims=True)).reshape(*x.shape[:2], count)

    def blend(self, task: str) -> Blend:
        """Return the mixture of a task."""
        return next(b for b in self.blends if b.task == task)

    def _node_of(self, task: str, source: str | None) -> Node | None:
        """Return the node that speaks for a source, or None for the mixture of a task."""
        if source is None or source == self.blend(task).target:
            return None
        return [n for n in self.nodes if n.process == (source, task)][-1]

    def observation_noise(self, process: Process) -> float:
        """Return the noise variance of a new observation: that of the process's first node."""
        node = next(n for n in self.nodes if n.process == process)
        return self.parts[node.name].gp.observation_noise(process)

    def named(self) -> dict[str, Parameter]:
        """Return the parameters by name, those of each node behind its own."""
        return {
            f"{node.name}.{_plain(name)}": parameter
            for node in self.nodes
            for name, parameter in self.parts[node.name].gp.named().items()
        }

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return the parameters' values by name, in the user's units."""
        return {
            f"{node.name}.{_plain(name)}": value
            for node in self.nodes
            for name, value in self.parts[node.name]
            .gp.report(self.parts[node.name].scaling)
            .items()
        }

    def account(self, state: States) -> str:
        """Say which experts there are, and what they were trained on."""
        layers = [n for n in self.nodes if n.parent is not None]
        counts = [len(np.asarray(self.parts[n.name].rows)) for n in layers]
        each = [f"{n.name} on {_counted(c, 'value')}" for n, c in zip(layers, counts, strict=True)]
        trained = f": {', '.join(each)}" if each else ""
        bases = len(self.nodes) - len(layers)
        exact = any(part.gp.locations is None for part in self.parts.values())
        kept = "; exact bases keep their training data in the fit, and its file" if exact else ""
        return (
            f"tree of {_counted(bases, 'base GP')} and {_counted(len(layers), 'layer')}{trained};"
            f" {self.samples} paths{kept}"
        )


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


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _plain(name: str) -> str:
    """Leave the source out of a part's parameter: the part's name has it."""
    return name.split("[")[0] if name.startswith(("noise_variance", "offset", "ratio")) else name
