"""A network of GPs: g_p = sum_q W_pq f_q with weights that vary over the inputs (theory 3)."""

import dataclasses
import warnings
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import softmax

from mrgp._compiled import Compiled, Effort, effort_of
from mrgp._linalg import whitener
from mrgp.data import Records, Scaling
from mrgp.gp import EntropyBound, Mixture, Smoother, for_each, smoother_of, too_few_nodes
from mrgp.kernels import kernel_parameters
from mrgp.models.aggregates import Aggregates
from mrgp.models.answers import Components, Question, as_arrays, check_joint, columns_of, in_chunks
from mrgp.models.contract import PlainModel, Process
from mrgp.models.factors import Factors, naturals_of, trained_q
from mrgp.models.noise import Diagonal
from mrgp.models.readouts import Levels, latent_parameters
from mrgp.parameters import Parameter, unwrap
from mrgp.supports import Rule, Support

Schedule = Literal["joint", "noise-last"]
LARGEST_NODES = 8000
DRAWS = 50


class NetworkPosterior(eqx.Module):
    """What prediction needs of a fitted network: q, and what turns inducing variables white.

    >>> q = Mixture(jnp.zeros(1), Factors((), ()))
    >>> NetworkPosterior(q, Factors((), ())).q.weights.tolist()
    [1.0]
    """

    q: Mixture
    whiten: Factors


class Network(eqx.Module, PlainModel):
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
    levels: Levels
    noise: Diagonal
    locations_f: Any
    locations_w: Any
    q: Any
    processes: tuple[Process, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    groups: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    components: int = eqx.field(static=True)
    positive: bool = eqx.field(static=True)
    entropy: EntropyBound = eqx.field(static=True)
    schedule: Schedule = eqx.field(static=True)
    rule: Rule = eqx.field(static=True)

    @property
    def variational(self) -> "Network":
        """The model itself: it always has a q."""
        return self

    @property
    def composite(self) -> "Network":
        """The model itself."""
        return self

    @property
    def masks(self) -> bool:
        """Rows of no weight say nothing."""
        return True

    @property
    def coupling(self) -> tuple[Any, ...]:
        """Nothing: each source alone has a q of the weights of its own."""
        return ()

    @property
    def latents(self) -> int:
        """Number of latent functions."""
        return len(self.kernels_f)

    def log_evidence(self, records: Records) -> Float[Array, ""]:
        """Return the bound of the model's own q (theory 3.5)."""
        model = unwrap(self)
        by_component = jax.vmap(lambda blocks: self.expected_log_likelihood(blocks, records))
        expected = jnp.vdot(model.q.weights, by_component(model.q.blocks))
        return expected - model.q.divergence(model.entropy)

    def expected_log_likelihood(self, q: Factors, records: Records) -> Float[Array, ""]:
        """Return E_q[log p(records)], weighted, for one component (theory 3.3)."""
        model = unwrap(self)
        seen, total = model.aggregates(), jnp.zeros(())
        for process, record in zip(model.processes, records, strict=True):
            mean, variance = seen.of_component(q, process[1], record.support)
            noise = model.noise.of_rows(process, record)
            rows = record.likelihood.expected_log_prob(record.y, mean, variance, noise)
            total += jnp.sum(record.weights * rows)
        return total

    def aggregates(self, whiten: Factors | None = None) -> Aggregates:
        """Return what regions see of the network (unwrapped)."""
        return Aggregates(self, self.whiteners() if whiten is None else whiten)

    def whiteners(self) -> Factors:
        """Return what turns the inducing variables of each factor white (of an unwrapped model)."""

        def white(kernels: Any, z: Any) -> tuple[Array, ...]:
            return tuple(for_each(lambda kernel: whitener(kernel.cross(z, z)), kernels))

        number = len(self.kernels_f)
        flat = white([k for row in self.kernels_w for k in row], self.locations_w)
        rows = tuple(flat[i : i + number] for i in range(0, len(flat), number))
        return Factors(white(self.kernels_f, self.locations_f), rows)

    @property
    def natural_rate(self) -> float:
        """A natural-gradient step of all blocks at once that does not overshoot (theory 3.6)."""
        return 0.5 / len(self.groups)

    @property
    def explicit(self) -> bool:
        """The best q of all blocks together is not known in closed form."""
        return False

    def with_q(self, q: Any) -> "Network":
        """Return the model with another q, or without one."""
        return dataclasses.replace(self, q=q)

    def started(self) -> "Network":
        """Return the model itself: it always has a q."""
        return self

    def optimal_q(self, records: Records) -> Factors:
        """Refuse: only one block at a time has an explicit optimum (theory 3.6)."""
        raise ValueError("A network has no explicit best q of all its blocks.")

    def natural_q(self) -> Factors | None:
        """Return the model's q by natural parameters; a mixture has none."""
        q = unwrap(self.q)
        return naturals_of(q) if q.components == 1 else None

    def with_natural(self, q: Factors) -> "Network":
        """Return the model with a q that natural gradients found."""
        return self.with_q(trained_q(_moments_of(q)))

    def full_bound(self, q: Factors, records: Records) -> Float[Array, ""]:
        """Return the bound of a q by natural parameters."""
        solved = q.map(lambda natural: natural.moments())
        divergence = jnp.sum(jnp.stack([d for _, d in solved.parts()]))
        moments = solved.map(lambda pair: pair[0])
        return self.expected_log_likelihood(moments, records) - divergence

    def alone(self, process: int) -> "Network":
        """Return the model of one process, with the parameters of all."""
        return dataclasses.replace(self, processes=(self.processes[process],))

    def smoother(self, records: Records) -> Smoother:
        """Return how latent functions smooth the records, W held at its posterior mean."""
        model = unwrap(self)
        seen = model.aggregates()
        features, values = [], []
        for process, record in zip(model.processes, records, strict=True):
            p = model.levels.index(process[1])
            scale = jnp.sqrt(model.noise.of_rows(process, record))
            pull = model.levels.spread[p] * seen.features_of_f(p, record.support)
            features.append(pull / scale[:, None])
            residual = jnp.asarray(record.y) - model.levels.level(record.support, process[1])
            values.append(residual / scale)
        basis = jnp.concatenate(features).T
        return smoother_of(basis, jnp.concatenate(values), jnp.eye(basis.shape[0]))

    def condition(self, records: Records) -> NetworkPosterior:
        """Return the posterior: it is all in q."""
        model = unwrap(self)
        return NetworkPosterior(model.q, model.whiteners())

    def predict(self, state: NetworkPosterior, support: Support, asked: Question) -> Components:
        """Return a mixture over draws of the weights, with the moments in closed form.

        Given W, a task is Gaussian; without draws, or jointly, one Gaussian stands for all.
        """
        self.warn_of_wide_regions(support, "predict", stacklevel=5)
        model, held = as_arrays((self, state))
        if asked.joint:
            check_joint(len(support))
            self._check_nodes(support)
            return Components.gaussian(*_joint(model, held, as_arrays(support), asked.task))
        samples = DRAWS if asked.samples is None else int(asked.samples)
        columns = columns_of(state)

        def effort(part: Support) -> Effort:
            return effort_of(len(part), once=True)

        mean, variance = in_chunks(
            lambda part: _moments(model, held, part, asked.task, effort=effort(part)),
            support,
            columns,
        )
        if samples == 0:
            return Components.gaussian(mean, variance)
        draws = as_arrays(self.base_draws(asked.key, samples))
        means, variances = in_chunks(
            lambda part: _mixture(model, held, part, asked.task, draws, effort=effort(part)),
            support,
            columns,
        )
        weights = np.repeat(softmax(state.q.logits) / samples, samples)
        weights = np.broadcast_to(weights, means.shape)
        return _with_moments(weights, means, variances, mean, variance)

    def base_draws(
        self, key: Array, samples: int
    ) -> tuple[tuple[Float[np.ndarray, "k j m"], ...], ...]:
        """Return standard normal numbers for the inducing variables of every weight.

        Draws come in pairs of a draw and its negative. They belong to the model: a region
        predicted alone or among others meets the same ones.
        """
        k, m = self.q.logits.raw.shape[0], self.locations_w.raw.shape[0]
        p, half = len(self.levels.names), -(-samples // 2)
        normals = np.asarray(jax.random.normal(key, (p, k, half, self.latents, m), float))
        both = np.concatenate([normals, -normals], 2)[:, :, :samples]
        return tuple(
            tuple(task[:, :, np.array(g)].reshape(k, samples, -1) for g in self.groups)
            for task in both
        )

    def observation_noise(self, process: Process) -> float:
        """Return the noise variance of a new observation."""
        return self.noise.observation(process)

    def named(self) -> dict[str, Parameter]:
        """Return the parameters by name; latent functions are numbered from one."""
        found = latent_parameters(self.kernels_f, self.inputs)
        for task, row in zip(self.levels.names, self.kernels_w, strict=True):
            for q, kernel in enumerate(row):
                for name, parameter in kernel_parameters(kernel, self.inputs).items():
                    found[f"W[{task}, {q + 1}].{name.removeprefix('kernel.')}"] = parameter
        return found | self.noise.named(", ".join)

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return the parameters' values by name; W is in units of each task's spread."""
        found = {name: np.asarray(parameter.value) for name, parameter in self.named().items()}
        levels = self.levels.values(scaling)
        return found | {name: np.asarray(value) for name, value in levels.items()}

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

    def warn_of_wide_regions(self, support: Support, where: str, stacklevel: int) -> None:
        """Warn of regions that the quadrature cannot resolve at the fitted lengthscales."""
        text = too_few_nodes(unwrap(self.kernels_f), support, self.rule)
        if text:
            warnings.warn(f"{where}: {text} in MRGPRN.", stacklevel=stacklevel + 1)

    def _check_nodes(self, support: Support) -> None:
        count = len(support) * support.quadrature(self.rule).nodes_per_region
        if self.latents * count > LARGEST_NODES:
            raise ValueError(
                f"predict: joint=True needs covariances among {self.latents} x {count} nodes; at"
                f" most {LARGEST_NODES} are allowed. Predict fewer regions at a time."
            )


@Compiled
def _moments(model: Network, state: NetworkPosterior, support: Support, task: str) -> Any:
    return unwrap(model).aggregates(state.whiten).moments(state.q, task, support)


@Compiled
def _joint(model: Network, state: NetworkPosterior, support: Support, task: str) -> Any:
    return unwrap(model).aggregates(state.whiten).joint(state.q, task, support)


@Compiled
def _mixture(
    model: Network, state: NetworkPosterior, support: Support, task: str, draws: Any
) -> Any:
    return unwrap(model).aggregates(state.whiten).mixture(state.q, task, support, draws)


def _with_moments(
    weights: np.ndarray,
    means: np.ndarray,
    variances: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
) -> Components:
    """Move and stretch a mixture to the mean and variance that are known in closed form."""
    centre = (weights * means).sum(1, keepdims=True)
    spread = (weights * (variances + (means - centre) ** 2)).sum(1, keepdims=True)
    ratio = variance[:, None] / np.where(spread > 0, spread, 1.0)
    return Components(weights, mean[:, None] + np.sqrt(ratio) * (means - centre), ratio * variances)


@eqx.filter_jit
def _moments_of(q: Factors) -> Factors:
    return q.map(lambda natural: natural.moments()[0])
