"""A network of GPs: g_p = sum_q W_pq f_q with weights that vary over the inputs (theory 3)."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._linalg import whitener
from mrgp._types import AnyArray
from mrgp.data import Record, Scaling
from mrgp.gp import (
    EntropyBound,
    Mixture,
    Natural,
    Smoother,
    block_information,
    map_rows,
    product_covariance,
    rows_at_a_time,
    sum_of_products,
    sum_rows,
)
from mrgp.kernels import kernel_parameters
from mrgp.models.at_nodes import (
    features_of_f,
    group_mean,
    linked,
    marginals,
    nodes_of,
    row_width,
    tiled,
    view,
    views,
)
from mrgp.models.coregionalised import latent_parameters
from mrgp.models.factors import Factors, naturals_of, trained_q
from mrgp.models.recipe import Process
from mrgp.models.tasks import Tasks
from mrgp.parameters import Parameter, unwrap
from mrgp.supports import Rule, Support

Schedule = Literal["joint", "noise-last"]
LARGEST_JOINT = 8000


class NetworkPosterior(eqx.Module):
    """What prediction needs of a fitted network: q, and what turns inducing variables white.

    >>> q = Mixture(jnp.zeros(1), Factors((), ()))
    >>> NetworkPosterior(q, Factors((), ())).q.weights.tolist()
    [1.0]
    """

    q: Mixture
    whiten: Factors


class Network(eqx.Module):
    """y = L (mean_p + spread_p sum_q link(W_pq) f_q) + noise, with link 1 or exp.

    All factors are GPs of their own; `q` is the posterior of their whitened inducing variables, a
    mixture with one or more components. `groups` says which latent functions it couples: in each
    component the latent functions of a group, and their weights in a task, have a joint Gaussian.
    `components` and `schedule` are for fits.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 2.0], name="sites")
    >>> model = mrgp.MRGPRN(latents=2, coupled=False).build(mrgp.Dataset([seen]))
    >>> model.latents, model.groups, model.natural_rate
    (2, ((0,), (1,)), 0.25)
    """

    kernels_f: tuple[Any, ...]
    kernels_w: tuple[tuple[Any, ...], ...]
    tasks: Tasks
    locations_f: Any
    locations_w: Any
    q: Any
    inputs: tuple[str, ...] = eqx.field(static=True)
    groups: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    components: int = eqx.field(static=True)
    positive: bool = eqx.field(static=True)
    entropy: EntropyBound = eqx.field(static=True)
    schedule: Schedule = eqx.field(static=True)
    rule: Rule = eqx.field(static=True)

    @property
    def processes(self) -> tuple[Process, ...]:
        """The pairs (source, task)."""
        return self.tasks.processes

    @property
    def latents(self) -> int:
        """Number of latent functions."""
        return len(self.kernels_f)

    def log_evidence(self, records: Sequence[Record]) -> Float[Array, ""]:
        """Return the bound of the model's own q (theory 3.5)."""
        model = unwrap(self)
        by_component = jax.vmap(lambda blocks: self.expected_log_likelihood(blocks, records))
        expected = jnp.vdot(model.q.weights, by_component(model.q.blocks))
        return expected - model.q.divergence(model.entropy)

    def expected_log_likelihood(self, q: Factors, records: Sequence[Record]) -> Float[Array, ""]:
        """Return E_q[log p(records)], weighted, for one component (theory 3.3)."""
        model = unwrap(self)
        whiten = model.whiteners()
        total = jnp.zeros(())
        for i, record in enumerate(records):
            p = model.tasks.index(i)
            noise, weight = model.tasks.noise(i, record)
            mean, variance = model._moments(q, whiten, p, record.support)
            squares = (jnp.asarray(record.y) - mean) ** 2 + variance
            total += jnp.sum(-0.5 * weight * (jnp.log(2.0 * jnp.pi * noise) + squares / noise))
        return total

    def whiteners(self) -> Factors:
        """Return what turns the inducing variables of each factor white (of an unwrapped model)."""

        def white(kernel: Any, z: Any) -> Array:
            return whitener(kernel.cross(z, z))

        return Factors(
            tuple(white(k, self.locations_f) for k in self.kernels_f),
            tuple(tuple(white(k, self.locations_w) for k in row) for row in self.kernels_w),
        )

    def best_f(self, q: Factors, whiten: Factors, records: Sequence[Record], group: int) -> Natural:
        """Return the best q of one group of latent functions, given the rest (theory 3.6)."""
        model = unwrap(self)
        return _optimum(
            [model._information(q, whiten, i, r, group, "f") for i, r in enumerate(records)]
        )

    def best_w(
        self, q: Factors, whiten: Factors, records: Sequence[Record], group: int
    ) -> tuple[Natural, ...]:
        """Return the best q of one group's weights in every task, given the rest (theory 3.6).

        Given the latent functions, tasks do not depend on one another. Only the identity link has
        an explicit optimum.
        """
        model = unwrap(self)
        found: list[list[Any]] = [[] for _ in model.tasks.names]
        for i, record in enumerate(records):
            said = model._information(q, whiten, i, record, group, "w")
            found[model.tasks.index(i)].append(said)
        # A task that no record sees keeps its prior.
        size = len(model.groups[group]) * model.locations_w.shape[0]
        nothing = jnp.zeros(size), jnp.zeros((size, size))
        return tuple(_optimum([nothing, *parts]) for parts in found)

    @property
    def natural_rate(self) -> float:
        """A natural-gradient step of all blocks at once that does not overshoot (theory 3.6)."""
        return 0.5 / len(self.groups)

    def natural_q(self) -> Factors | None:
        """Return the model's q by natural parameters; a mixture has none."""
        q = unwrap(self.q)
        return naturals_of(q) if q.components == 1 else None

    def with_natural(self, q: Factors) -> "Network":
        """Return the model with a q that natural gradients found."""
        found = trained_q(_moments_of(q))
        return eqx.tree_at(lambda m: m.q, self, found, is_leaf=lambda x: x is None)

    def full_bound(self, q: Factors, records: Sequence[Record]) -> Float[Array, ""]:
        """Return the bound of a q by natural parameters."""
        solved = q.map(lambda natural: natural.moments())
        divergence = jnp.sum(jnp.stack([d for _, d in solved.parts()]))
        moments = solved.map(lambda pair: pair[0])
        return self.expected_log_likelihood(moments, records) - divergence

    def alone(self, process: int) -> "Network":
        """Return the model of one process, with the parameters of all."""
        return dataclasses.replace(self, tasks=self.tasks.alone(process))

    def smoother(self, records: Sequence[Record]) -> Smoother:
        """Return how latent functions smooth the records, W held at its posterior mean."""
        model = unwrap(self)
        whiten = model.whiteners()
        features, values = [], []
        for i, record in enumerate(records):
            p = model.tasks.index(i)
            scale = jnp.sqrt(model.tasks.noise(i, record)[0])
            pull = model.tasks.spread[p] * features_of_f(model, whiten, p, record.support)
            features.append(pull / scale[:, None])
            residual = jnp.asarray(record.y) - model.tasks.level(p, record.support)
            values.append(residual / scale)
        basis = jnp.concatenate(features).T
        return Smoother.of(basis, jnp.concatenate(values), jnp.eye(basis.shape[0]))

    def condition(self, records: Sequence[Record]) -> NetworkPosterior:
        """Return the posterior: it is all in q."""
        model = unwrap(self)
        return NetworkPosterior(model.q, model.whiteners())

    def moments(
        self, state: NetworkPosterior, support: Support, task: str, source: str | None
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, " n"]]:
        """Return mean and variance of a task on a support, in closed form (theory 3.7)."""
        model = unwrap(self)
        p = model.tasks.names.index(task)
        weights = state.q.weights[:, None]
        means, variances = jax.vmap(lambda q: model._moments(q, state.whiten, p, support))(
            state.q.blocks
        )
        mean = jnp.sum(weights * means, 0)
        return mean, jnp.sum(weights * (variances + (means - mean[None]) ** 2), 0)

    def joint(
        self, state: NetworkPosterior, support: Support, task: str, source: str | None
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, "n n"]]:
        """Return mean and joint covariance of a task on a support, in closed form."""
        model = unwrap(self)
        p = model.tasks.names.index(task)
        x, weights = nodes_of(model, support)
        count = weights.size
        if self.latents * count > LARGEST_JOINT:
            raise ValueError(
                f"predict: joint=True needs covariances among {self.latents} x {count} nodes; at"
                f" most {LARGEST_JOINT} are allowed. Predict fewer regions at a time."
            )
        level, spread = model.tasks.level(p, support), model.tasks.spread[p]

        def component(q: Factors) -> tuple[Array, Array]:
            mean, pairs = jnp.zeros(count), jnp.zeros((count, count))
            pairs_of = marginals(model, q, state.whiten, p, x.reshape(1, count, -1))
            for group, (f, w) in zip(model.groups, pairs_of, strict=True):
                each = (len(group), count)
                mean += (f.mean * w.mean)[0].reshape(each).sum(0)
                pairs += product_covariance(f, w)[0].reshape(*each, *each).sum((0, 2))
            mean = jnp.sum(weights * mean.reshape(weights.shape), 1)
            pairs = pairs.reshape(*weights.shape, *weights.shape)
            covariance = jnp.einsum("ns,nsmt,mt->nm", weights, pairs, weights)
            return level + spread * mean, spread**2 * covariance

        means, covariances = jax.vmap(component)(state.q.blocks)
        pi = state.q.weights
        mean = pi @ means
        apart = means - mean[None]
        between = jnp.einsum("k,kn,km->nm", pi, apart, apart)
        return mean, jnp.einsum("k,knm->nm", pi, covariances) + between

    def mixture(
        self, state: NetworkPosterior, support: Support, task: str, source: str | None, draws: Any
    ) -> tuple[Float[AnyArray, "j n"], Float[AnyArray, "j n"]]:
        """Return moments given draws of the weights: a mixture of Gaussians over the draws.

        Given W, a task is Gaussian. `draws` has standard normal numbers for the inducing variables
        of every weight, [components, draws, m]; what they leave open of W enters by its moments.
        """
        model = unwrap(self)
        p = model.tasks.names.index(task)
        level, spread = model.tasks.level(p, support), model.tasks.spread[p]

        def chunk(x: Array, weights: Array) -> tuple[Array, ...]:
            seen = views(model, state.whiten, p, x)

            def component(q: Factors, noise: tuple[Array, ...]) -> tuple[Array, Array]:
                f = [a.marginal(qf) for (a, _), (qf, _) in zip(seen, q.of_task(p), strict=True)]

                def one(normals: tuple[Array, ...]) -> tuple[Array, Array]:
                    parts = zip(seen, q.w[p], normals, strict=True)
                    w = [
                        linked(model, b.given(qw.mean + jnp.tril(qw.root) @ e))
                        for (_, b), qw, e in parts
                    ]
                    return sum_of_products(tiled(model, weights), f, w)

                return jax.vmap(one)(noise)

            found = jax.vmap(component)(state.q.blocks, draws[p])
            return tuple(moments.reshape(-1, x.shape[0]).T for moments in found)

        x, weights = nodes_of(model, support)
        count = draws[p][0].shape[0] * draws[p][0].shape[1]
        size = rows_at_a_time(row_width(model, x.shape[1]) + count * x.shape[1] * (x.shape[1] + 2))
        means, variances = map_rows(chunk, (x, weights), size)
        return level[None] + spread * means.T, spread**2 * variances.T

    def base_draws(self, key: Array, samples: int) -> tuple[tuple[Float[Array, "k j m"], ...], ...]:
        """Return standard normal numbers for the inducing variables of every weight.

        Draws come in pairs of a draw and its negative. They belong to the model: a region
        predicted alone or among others meets the same ones.
        """
        k, m = self.q.logits.raw.shape[0], self.locations_w.raw.shape[0]
        p, half = len(self.tasks.names), -(-samples // 2)
        normals = jax.random.normal(key, (p, k, half, self.latents, m), float)
        both = jnp.concatenate([normals, -normals], 2)[:, :, :samples]
        return tuple(
            tuple(task[:, :, np.array(g)].reshape(k, samples, -1) for g in self.groups)
            for task in both
        )

    def observation_noise(self, process: Process) -> float:
        """Return the noise variance of a new observation."""
        return self.tasks.observation_noise(process)

    def named(self) -> dict[str, Parameter]:
        """Return the parameters by name; latent functions are numbered from one."""
        found = latent_parameters(self.kernels_f, self.inputs)
        for task, row in zip(self.tasks.names, self.kernels_w, strict=True):
            for q, kernel in enumerate(row):
                for name, parameter in kernel_parameters(kernel, self.inputs).items():
                    found[f"W[{task}, {q + 1}].{name.removeprefix('kernel.')}"] = parameter
        return found | self.tasks.named()

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return the parameters' values by name; W is in units of each task's spread."""
        found = {name: np.asarray(parameter.value) for name, parameter in self.named().items()}
        return found | self.tasks.report(scaling)

    def account(self, state: NetworkPosterior) -> str:
        """Say how the posterior is held."""
        k = state.q.components
        form = "one Gaussian" if k == 1 else f"a mixture of {k} Gaussians"
        f, w = self.locations_f.raw.shape[0], self.locations_w.raw.shape[0]
        many = "function" if self.latents == 1 else "functions"
        return (
            f"network of {self.latents} latent {many} with {f} inducing inputs and weights with"
            f" {w}; posterior: {form}"
        )

    def with_q(self) -> "Network":
        """Return the model itself: it always has a q."""
        return self

    def _moments(
        self, q: Factors, whiten: Factors, task: int, support: Support
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return mean and variance of a task under one component (theory 3.3)."""
        x, weights = nodes_of(self, support)

        def chunk(x: Array, weights: Array) -> tuple[Array, Array]:
            pairs = marginals(self, q, whiten, task, x)
            return sum_of_products(tiled(self, weights), *zip(*pairs, strict=True))

        mean, variance = map_rows(chunk, (x, weights), rows_at_a_time(row_width(self, x.shape[1])))
        spread = self.tasks.spread[task]
        return self.tasks.level(task, support) + spread * mean, spread**2 * variance

    def _information(
        self, q: Factors, whiten: Factors, process: int, record: Record, group: int, which: str
    ) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
        """Return what a process says of one block, given the moments of all others."""
        p = self.tasks.index(process)
        noise, weight = self.tasks.noise(process, record)
        spread = self.tasks.spread[p]
        x, weights = nodes_of(self, record.support)
        y = (jnp.asarray(record.y) - self.tasks.level(p, record.support)) / spread
        precision = weight * spread**2 / noise

        def chunk(x: Array, weights: Array, y: Array, precision: Array) -> tuple[Array, Array]:
            rest = jnp.zeros(x.shape[0])
            for other in set(range(len(self.groups))) - {group}:
                rest += group_mean(self, q, whiten, p, other, x, weights)
            f, w = view(self, whiten, p, group, x)
            qf, qw = q.of_task(p)[group]
            own, other = (f, linked(self, w.marginal(qw))) if which == "f" else (w, f.marginal(qf))
            return block_information(
                own.alpha, tiled(self, weights)[group], other, y - rest, precision
            )

        size = rows_at_a_time(row_width(self, x.shape[1]))
        return sum_rows(chunk, (x, weights, y, precision), size)


@eqx.filter_jit
def _moments_of(q: Factors) -> Factors:
    return q.map(lambda natural: natural.moments()[0])


def _optimum(parts: Sequence[tuple[Array, Array]]) -> Natural:
    return Natural.optimal(*functools.reduce(lambda a, b: jax.tree.map(jnp.add, a, b), parts))
