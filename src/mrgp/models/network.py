"""A network of GPs: g_p = sum_q W_pq f_q with weights that vary over the inputs (theory 3)."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._linalg import inverse_lower, whitener
from mrgp._types import AnyArray
from mrgp.data import Record, Scaling
from mrgp.gp import (
    AtNodes,
    Marginal,
    Mixture,
    Moments,
    Natural,
    Whitened,
    block_information,
    map_rows,
    mean_at_nodes,
    rows_at_a_time,
    sum_of_products,
    sum_rows,
)
from mrgp.kernels import kernel_parameters
from mrgp.models.coregionalised import latent_parameters
from mrgp.models.recipe import Process
from mrgp.models.tasks import Tasks
from mrgp.parameters import Parameter, real, unwrap
from mrgp.supports import Rule, Support


class Factors(eqx.Module):
    """One q(u) for each latent function and each weight, in any form; `w` is by task, then latent.

    Any form: `Whitened`, `Moments`, `Natural`, whitening matrices, draws.
    """

    f: tuple[Any, ...]
    w: tuple[tuple[Any, ...], ...]

    def of_task(self, task: int) -> list[tuple[Any, Any]]:
        """Return the pairs of latent function and weight that make up a task."""
        return list(zip(self.f, self.w[task], strict=True))

    def map(self, function: Callable[..., Any], *others: "Factors") -> "Factors":
        """Apply a function to every factor."""
        f = tuple(function(*parts) for parts in zip(self.f, *(o.f for o in others), strict=True))
        rows = zip(self.w, *(o.w for o in others), strict=True)
        w = tuple(tuple(function(*parts) for parts in zip(*row, strict=True)) for row in rows)
        return Factors(f, w)

    def with_f(self, latent: int, value: Any) -> "Factors":
        """Replace one latent function's."""
        return Factors((*self.f[:latent], value, *self.f[latent + 1 :]), self.w)

    def with_w(self, latent: int, values: Sequence[Any]) -> "Factors":
        """Replace the weights of one latent function, one for each task."""
        pairs = zip(self.w, values, strict=True)
        return Factors(self.f, tuple((*r[:latent], v, *r[latent + 1 :]) for r, v in pairs))

    def parts(self) -> list[Any]:
        """List all factors."""
        return [*self.f, *(w for row in self.w for w in row)]


class NetworkPosterior(eqx.Module):
    """What prediction needs of a fitted network: q, and what turns inducing variables white."""

    q: Mixture
    whiten: Factors


class Network(eqx.Module):
    """y = L (mean_p + spread_p sum_q link(W_pq) f_q) + noise, with link 1 or exp.

    All factors are GPs of their own; `q` is the posterior of their whitened inducing variables, a
    mixture with one or more components.
    """

    kernels_f: tuple[Any, ...]
    kernels_w: tuple[tuple[Any, ...], ...]
    tasks: Tasks
    locations_f: Any
    locations_w: Any
    q: Any
    inputs: tuple[str, ...] = eqx.field(static=True)
    positive: bool = eqx.field(static=True)
    entropy: Any = eqx.field(static=True)
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

    def expected_log_likelihood(
        self, q: Factors, records: Sequence[Record]
    ) -> Float[Array, ""]:
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

    def best_f(
        self, q: Factors, whiten: Factors, records: Sequence[Record], latent: int
    ) -> Natural:
        """Return the best q(u_q) of one latent function, given all other factors (theory 3.6)."""
        model = unwrap(self)
        return _optimum(
            [model._information(q, whiten, i, r, latent, "f") for i, r in enumerate(records)],
            model.locations_f.shape[0],
        )

    def best_w(
        self, q: Factors, whiten: Factors, records: Sequence[Record], latent: int
    ) -> tuple[Natural, ...]:
        """Return the best q(v_pq) of every task's weight of one latent function (theory 3.6).

        Given the latent functions, tasks do not depend on one another. Only the identity link has
        an explicit optimum.
        """
        model = unwrap(self)
        found: list[list[Any]] = [[] for _ in model.tasks.names]
        for i, record in enumerate(records):
            said = model._information(q, whiten, i, record, latent, "w")
            found[model.tasks.index(i)].append(said)
        return tuple(_optimum(parts, model.locations_w.shape[0]) for parts in found)

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
        return mean, jnp.sum(weights * (variances + (means - mean) ** 2), 0)

    def joint(
        self, state: NetworkPosterior, support: Support, task: str, source: str | None
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, "n n"]]:
        """Return mean and joint covariance of a task on a support, in closed form."""
        model = unwrap(self)
        p = model.tasks.names.index(task)
        x, weights = model._nodes(support)
        flat = x.reshape(1, -1, x.shape[-1])
        level, spread = model.tasks.level(p, support), model.tasks.spread[p]

        def component(q: Factors) -> tuple[Array, Array]:
            mean, pairs = jnp.zeros(flat.shape[1]), jnp.zeros((flat.shape[1],) * 2)
            for f, w in model._marginals(q, state.whiten, p, flat):
                mean += (f.mean * w.mean)[0]
                pairs += (f.covariance * w.second_moment)[0]
                pairs += jnp.outer(f.mean[0], f.mean[0]) * w.covariance[0]
            rows = jnp.zeros((len(support), flat.shape[1]))
            at = jnp.arange(flat.shape[1]).reshape(weights.shape)
            rows = rows.at[jnp.arange(len(support))[:, None], at].set(weights)
            return level + spread * rows @ mean, spread**2 * rows @ pairs @ rows.T

        means, covariances = jax.vmap(component)(state.q.blocks)
        pi = state.q.weights
        mean = pi @ means
        apart = means - mean
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

        def chunk(x: Array, weights: Array) -> tuple[Array, Array]:
            views = model._views(state.whiten, p, x)

            def component(q: Factors, noise: tuple[Array, ...]) -> tuple[Array, Array]:
                f = [a.marginal(qf) for (a, _), (qf, _) in zip(views, q.of_task(p), strict=True)]

                def one(normals: tuple[Array, ...]) -> tuple[Array, Array]:
                    parts = zip(views, q.w[p], normals, strict=True)
                    w = [
                        model._link(b.given(qw.mean + jnp.tril(qw.root) @ e))
                        for (_, b), qw, e in parts
                    ]
                    return sum_of_products(weights, f, w)

                return jax.vmap(one)(noise)

            means, variances = jax.vmap(component)(state.q.blocks, draws[p])
            flat = (-1, x.shape[0])
            return means.reshape(flat).T, variances.reshape(flat).T

        x, weights = model._nodes(support)
        count = draws[p][0].shape[0] * draws[p][0].shape[1]
        size = rows_at_a_time(model._width(x.shape[1]) + count * x.shape[1] * (x.shape[1] + 2))
        means, variances = map_rows(chunk, (x, weights), size)
        return level + spread * means.T, spread**2 * variances.T

    def base_draws(self, key: Array, samples: int) -> tuple[tuple[Float[Array, "k j m"], ...], ...]:
        """Return standard normal numbers for the inducing variables of every weight.

        Every draw comes with its negative, so that their mean is zero. They belong to the model:
        a region predicted alone or among others meets the same ones.
        """
        k, m = self.q.components, self.locations_w.raw.shape[0]
        p, half = len(self.tasks.names), -(-samples // 2)
        normals = jax.random.normal(key, (p, self.latents, k, half, m), float)
        both = jnp.concatenate([normals, -normals], 3)[:, :, :, :samples]
        return tuple(tuple(both[i, j] for j in range(self.latents)) for i in range(p))

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
        return found | self.tasks.means(scaling)

    def account(self, state: NetworkPosterior) -> str:
        """Say how the posterior is held."""
        k = state.q.components
        form = "one Gaussian" if k == 1 else f"a mixture of {k} Gaussians"
        return (
            f"network of {self.latents} latent functions, {self.locations_f.raw.shape[0]} inducing"
            f" inputs each, and weights with {self.locations_w.raw.shape[0]}; posterior: {form}"
        )

    def with_q(self) -> "Network":
        """Return the model itself: it always has a q."""
        return self

    def _moments(
        self, q: Factors, whiten: Factors, task: int, support: Support
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return mean and variance of a task under one component (theory 3.3)."""
        x, weights = self._nodes(support)

        def chunk(x: Array, weights: Array) -> tuple[Array, Array]:
            pairs = self._marginals(q, whiten, task, x)
            return sum_of_products(weights, *zip(*pairs, strict=True))

        mean, variance = map_rows(
            chunk, (x, weights), rows_at_a_time(self._width(x.shape[1]))
        )
        spread = self.tasks.spread[task]
        return self.tasks.level(task, support) + spread * mean, spread**2 * variance

    def _information(
        self, q: Factors, whiten: Factors, process: int, record: Record, latent: int, which: str
    ) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
        """Return what a process says of one block, given the moments of all others."""
        p = self.tasks.index(process)
        noise, weight = self.tasks.noise(process, record)
        spread = self.tasks.spread[p]
        x, weights = self._nodes(record.support)
        y = (jnp.asarray(record.y) - self.tasks.level(p, record.support)) / spread
        precision = weight * spread**2 / noise

        def chunk(x: Array, weights: Array, y: Array, precision: Array) -> tuple[Array, Array]:
            rest = self._mean_without(q, whiten, p, latent, x, weights)
            f, w = self._view(whiten, p, latent, x)
            qf, qw = q.of_task(p)[latent]
            own, other = (f, self._link(w.marginal(qw))) if which == "f" else (w, f.marginal(qf))
            return block_information(own.alpha, weights, other, y - rest, precision)

        size = rows_at_a_time(self._width(x.shape[1]))
        return sum_rows(chunk, (x, weights, y, precision), size)

    def _mean_without(
        self, q: Factors, whiten: Factors, task: int, latent: int, x: Array, weights: Array
    ) -> Float[Array, " b"]:
        """Return the mean of L sum_q W_q f_q over all latent functions but one."""
        total = jnp.zeros(x.shape[0])
        for i, (qf, qw) in enumerate(q.of_task(task)):
            if i == latent:
                continue
            f = mean_at_nodes(self.kernels_f[i], self.locations_f, whiten.f[i], qf, x)
            if self.positive:
                w = self._link(self._view(whiten, task, i, x)[1].marginal(qw)).mean
            else:
                kernel, white = self.kernels_w[task][i], whiten.w[task][i]
                w = mean_at_nodes(kernel, self.locations_w, white, qw, x)
            total += jnp.sum(weights * f * w, 1)
        return total

    def _view(
        self, whiten: Factors, task: int, latent: int, x: Array
    ) -> tuple[AtNodes, AtNodes]:
        """Return a latent function and its weight in a task, at nodes."""
        white_f, white_w = whiten.of_task(task)[latent]
        return (
            AtNodes.of(self.kernels_f[latent], self.locations_f, white_f, x),
            AtNodes.of(self.kernels_w[task][latent], self.locations_w, white_w, x),
        )

    def _views(self, whiten: Factors, task: int, x: Array) -> list[tuple[AtNodes, AtNodes]]:
        return [self._view(whiten, task, q, x) for q in range(self.latents)]

    def _marginals(
        self, q: Factors, whiten: Factors, task: int, x: Array
    ) -> list[tuple[Marginal, Marginal]]:
        views = self._views(whiten, task, x)
        return [
            (f.marginal(qf), self._link(w.marginal(qw)))
            for (f, w), (qf, qw) in zip(views, q.of_task(task), strict=True)
        ]

    def _link(self, weight: Marginal) -> Marginal:
        return weight.exp() if self.positive else weight

    def _nodes(self, support: Support) -> tuple[Float[Array, "n s d"], Float[Array, "n s"]]:
        atoms = support.quadrature(self.rule).atoms()
        return jnp.asarray(atoms.lower), jnp.asarray(atoms.weights)

    def _width(self, nodes: int) -> int:
        """Return how many numbers a row of so many nodes needs at once."""
        features = self.locations_f.shape[0] + self.locations_w.shape[0]
        return self.latents * nodes * (2 * features + 4 * nodes)


def _optimum(parts: Sequence[tuple[Array, Array]], size: int) -> Natural:
    score = sum((s for s, _ in parts), jnp.zeros(size))
    return Natural(score, sum((p for _, p in parts), jnp.eye(size)))


def prior_q(latents: int, tasks: int, size_f: int, size_w: int, components: int) -> Mixture:
    """Return the prior as a q to train."""

    def block(size: int) -> Whitened:
        eye = np.broadcast_to(np.eye(size), (components, size, size))
        return Whitened(real(np.zeros((components, size))), real(eye))

    blocks = Factors(
        tuple(block(size_f) for _ in range(latents)),
        tuple(tuple(block(size_w) for _ in range(latents)) for _ in range(tasks)),
    )
    return Mixture(real(np.zeros(components)), blocks)


def trained_q(naturals: Factors) -> Mixture:
    """Return factors by natural parameters as a q of one component to train."""

    def block(natural: Natural) -> Whitened:
        moments, _ = natural.moments()
        # S = P^-1 = L L^T by the factor of P: its inverse, turned about both ends, is triangular.
        root = np.linalg.cholesky(np.asarray(moments.covariance))
        return Whitened(real(np.asarray(moments.mean)[None]), real(root[None]))

    return Mixture(real(np.zeros(1)), naturals.map(block))


def naturals_of(q: Mixture, component: int = 0) -> Factors:
    """Return one component of a q (unwrapped) by its natural parameters."""

    def natural(block: Whitened) -> Natural:
        inverse = inverse_lower(jnp.tril(jnp.asarray(block.root[component])))
        precision = inverse.T @ inverse
        return Natural(precision @ block.mean[component], precision)

    return q.blocks.map(natural)
