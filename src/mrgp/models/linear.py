"""The linear-Gaussian model behind MR-GP, linear coregionalisation and dependent sources."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp import _lapack
from mrgp._compiled import Compiled, effort_of
from mrgp._linalg import cholesky
from mrgp._types import AnyArray, to_numpy
from mrgp.data import Records, Scaling
from mrgp.gp import (
    Collapsed,
    Conditioned,
    Filtered,
    Grouped,
    Later,
    Marginal,
    Markov,
    Moments,
    Natural,
    Reading,
    Readings,
    Sites,
    Smoother,
    Whitened,
    posterior_at_nodes,
)
from mrgp.kernels import Kernel
from mrgp.models.answers import Components, Question, as_arrays, check_joint, columns_of, in_chunks
from mrgp.models.conditioning import filled
from mrgp.models.contract import PlainModel, Process
from mrgp.models.noise import Diagonal
from mrgp.models.readouts import OneField, Readout
from mrgp.parameters import Parameter, real, unwrap
from mrgp.supports import Points, Support

SITE_JITTER = 1e-9
MANY = 200


class LinearModel(eqx.Module, PlainModel):
    """y = level + sum_q ratio_q L f_q + noise: latent functions, a readout, and noise.

    The solver (`Exact | Collapsed`) has the kernels of the latent functions, and a way to find them
    from the data; the noise is `Diagonal | Shared`.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 2.0], name="sites")
    >>> model = mrgp.MRGP(mrgp.RBF()).build(mrgp.Dataset([seen]))
    >>> list(model.named())
    ['kernel.variance', 'kernel.lengthscale', 'noise_variance[sites]']
    """

    solver: Any
    readout: Readout
    noise: Any
    processes: tuple[Process, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)

    @property
    def linear(self) -> "LinearModel":
        """The model itself."""
        return self

    @property
    def variational(self) -> "LinearModel | None":
        """The model itself where it has inducing variables."""
        return self if isinstance(self.solver, Collapsed) else None

    @property
    def composite(self) -> "LinearModel":
        """The model itself."""
        return self

    @property
    def kernel(self) -> Kernel:
        """The kernel of the first latent function."""
        return self.solver.kernels[0]

    @property
    def field(self) -> Kernel | None:
        """The kernel of the one field that all sources see, None where there are several."""
        return self.kernel if isinstance(self.readout, OneField) else None

    @property
    def own(self) -> dict[str, Kernel]:
        """The kernels of what sources have of their own beside that field, by source."""
        if not isinstance(self.readout, OneField):
            return {}
        return dict(zip(self.readout.apart, self.solver.kernels[1:], strict=True))

    @property
    def q(self) -> Any:
        """The q of inducing variables that is to be trained, if any."""
        return self.solver.q if isinstance(self.solver, Collapsed) else None

    def log_evidence(self, records: Records) -> Float[Array, ""]:
        """Return the exact log evidence, or a bound on it where there are inducing inputs."""
        model = unwrap(self)
        return model.solver.log_evidence(model.readings(records))

    def condition(self, records: Records) -> Conditioned:
        """Condition the latent functions on the records."""
        model = unwrap(self)
        return model.solver.condition(model.readings(records))

    @property
    def masks(self) -> bool:
        """Whether records may have rows that are not used: not where errors are shared."""
        return isinstance(self.noise, Diagonal) and self.solver.fills

    def plan_of(self, records: Records) -> Any:
        """Return what can be found of records before parameters are known."""
        return self.solver.plan_of([record.support for record in records])

    def with_plan(self, plan: Any) -> "LinearModel":
        """Return the model for records of a plan, or, without one, for any."""
        return dataclasses.replace(self, solver=self.solver.with_plan(plan))

    def solved(self, records: Records) -> Conditioned:
        """Condition on records, by LAPACK where compiled code has gathered what they say."""
        given = filled(self, records)
        planned = self.with_plan(self.plan_of(given))
        effort = "least" if self.solver.fills else "some"
        known = to_numpy(_gathered(*as_arrays((planned, given)), effort=effort))
        ends = np.cumsum([0, *map(len, given)])
        rows = [start + np.arange(len(r)) for start, r in zip(ends, records, strict=False)]
        supports = [record.support for record in records]
        known = known.take(np.concatenate(rows))
        # What is not finite is told by the status of the fit.
        with np.errstate(all="ignore"):
            return to_numpy(self.solver.posterior(known, supports, by=_lapack))

    def extended(self, state: Conditioned, records: Records) -> Conditioned | None:
        """Return the posterior of records whose first rows a state has seen, without these.

        None where a state has no belief to go on from: all rows are to be conditioned on.
        """
        if not isinstance(state, Filtered):
            return None
        later = self._later(state, records)
        model = to_numpy(unwrap(as_arrays(self)))
        supports = [record.support for record in records]
        return state.extended(model.solver.kernels, later, supports, model.solver.rule)

    def _later(self, state: Filtered, records: Records) -> list[Later]:
        """Return what rows after those that a state has seen read, source by source."""
        first = [len(anchor) for anchor in state.anchors]
        which = [i for i, record in enumerate(records) if len(record) > first[i]]
        new = tuple(records[i].take(np.arange(first[i], len(records[i]))) for i in which)
        if not new:
            return []
        some = dataclasses.replace(self, processes=tuple(self.processes[i] for i in which))
        given = as_arrays((some, tuple(record.filled() for record in new)))
        read = to_numpy(_read(*given, effort="least"))
        return [
            Later(i, record.support, ratio, noise[: len(record)], residual[: len(record)])
            for i, record, (ratio, noise, residual) in zip(which, new, read, strict=True)
        ]

    def smoother(self, records: Records) -> Smoother:
        """Return how the posterior mean smooths the records, in units of their noise."""
        model = unwrap(self)
        return model.solver.smoother(model.readings(records))

    def goes_in_groups(self, count: int) -> bool:
        """Tell whether so many values are too many for the smoother of all of them."""
        return isinstance(self.solver, Markov) and count > self.solver.most_dense

    def in_groups(self, records: Records, labels: Int[np.ndarray, " n"]) -> Grouped:
        """Return what values along time say of themselves, and of others of the same label."""
        state: Any = self.solved(records)
        model = to_numpy(unwrap(as_arrays(self)))
        return state.in_groups(model.solver.kernels, labels, model.solver.rule)

    def readings(self, records: Records) -> Readings:
        """Return what the sources read of the latent functions."""
        model = unwrap(self)
        noises, shared = model.noise.errors(model.processes, records)
        sources = []
        for process, record, noise in zip(model.processes, records, noises, strict=True):
            sources.append(
                Reading(
                    record.support,
                    model.readout.ratio(*process),
                    record.y,
                    model.readout.level(record.support, *process),
                    noise,
                    jnp.broadcast_to(jnp.asarray(record.weight), record.y.shape),
                    record.shapes,
                    record.likelihood,
                    record.used,
                    record.lattice,
                    censored=record.censored,
                )
            )
        return Readings(tuple(sources), shared)

    def holding(self, state: Conditioned, records: Records) -> Conditioned:
        """Return an exact posterior that holds the records' own supports, not copies."""
        return dataclasses.replace(state, anchors=tuple(record.support for record in records))

    def alone(self, process: int) -> "LinearModel":
        """Return the model of one process, with the parameters of all."""
        return dataclasses.replace(self, processes=(self.processes[process],))

    @property
    def coupling(self) -> tuple[Any, ...]:
        """Parameters that no source shows alone: biases, fields of sources, weights of tasks."""
        return (*self.readout.coupling, *self.own.values())

    def moments(
        self,
        state: Conditioned,
        support: Support,
        task: str,
        source: str | None,
        joint: bool = False,
    ) -> tuple[Float[Array, " n"], Float[Array, "n *n"]]:
        """Return mean and variance, or joint covariance, of a task or of what a source reads."""
        model = unwrap(self)
        ratio = model.readout.ratio(source, task)
        mean, spread = model.solver.predict(state, ratio, support, joint)
        return model.readout.level(support, source, task) + mean, spread

    def part(
        self, state: Conditioned, term: Kernel, support: Support
    ) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """Return mean and covariance of one term of the kernel of a single field, on a support."""
        model = unwrap(self)
        return model.solver.part(state, unwrap(term), support)

    def predict(self, state: Conditioned, support: Support, asked: Question) -> Components:
        """Return one Gaussian for each region, or their joint one."""
        if asked.joint:
            check_joint(len(support))
        along = self._along(state, support, asked) if isinstance(state, Filtered) else None
        if along is not None:
            return along
        model, held = as_arrays((self, state.filled()))

        def answer(part: Support) -> Any:
            effort = effort_of(len(part), once=True) if self.solver.fills else "some"
            return _moments(model, held, part, asked.task, asked.source, asked.joint, effort=effort)

        if asked.joint:
            return Components.gaussian(*answer(as_arrays(support)))
        columns = columns_of(state)
        if isinstance(state, Filtered):
            columns = np.size(state.line.rows)
        return Components.gaussian(*in_chunks(answer, support, columns))

    def _along(self, state: Filtered, support: Support, asked: Question) -> Components | None:
        """Answer after all data, or for many instants at once, where a filter's posterior can."""
        refused = state.refuses(support)
        if refused is not None:
            raise ValueError(f"{refused}.")
        model = to_numpy(unwrap(as_arrays(self)))
        kernels, rule = model.solver.kernels, model.solver.rule
        ratio = np.asarray(model.readout.ratio(asked.source, asked.task))
        found = state.forecast(kernels, ratio, support, rule, asked.joint)
        if found is None and asked.joint:
            found = state.jointly(kernels, ratio, support, rule)
        elif found is None and len(support) >= MANY:
            found = state.sweep(kernels, ratio, support, rule)
        if found is None:
            return None
        level = np.asarray(model.readout.level(support, asked.source, asked.task))
        return Components.gaussian(level + found[0], found[1])

    def at_nodes(self, state: Conditioned, x: Float[AnyArray, "b s d"]) -> Marginal:
        """Return mean and covariance of a single field among the nodes of each region."""
        model, (source, task) = unwrap(self), (None, self.processes[0][1])
        found = posterior_at_nodes(state, model.kernel, x, model.solver.rule)
        nodes = Points(x.reshape(-1, x.shape[2]), jnp.ones(x.shape[0] * x.shape[1]))
        level = model.readout.level(nodes, source, task).reshape(x.shape[:2])
        return Marginal(level + found.mean, found.covariance)

    def observation_noise(self, process: Process) -> float:
        """Return the noise variance of a new observation."""
        return self.noise.observation(process)

    def named(self) -> dict[str, Parameter]:
        """Return the parameters by name."""
        kernels = self.readout.kernels_named(self.solver.kernels, self.inputs)
        return kernels | self.noise.named(self.readout.label) | self.readout.named()

    def values(self, scaling: Scaling) -> dict[str, Array]:
        """Return what `report` does, inside transformations of JAX too."""
        found = {name: jnp.asarray(parameter.value) for name, parameter in self.named().items()}
        return self.readout.values(found, scaling)

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return the parameters' values by name, in the user's units."""
        return {name: np.asarray(value) for name, value in self.values(scaling).items()}

    def account(self, state: Conditioned) -> str:
        """Say how the posterior is held, and how well."""
        made = self.readout.account(len(self.solver.kernels))
        return made + self.solver.account(state) + self.noise.account()

    @property
    def natural_rate(self) -> float:
        """The size of the natural-gradient step that finds the best q on all data."""
        return 1.0

    @property
    def explicit(self) -> bool:
        """The best q is known in closed form."""
        return True

    def with_q(self, q: Any) -> "LinearModel":
        """Return the model with another q, or without one: its bound is then the collapsed one."""
        return dataclasses.replace(self, solver=dataclasses.replace(self.solver, q=q))

    def started(self) -> "LinearModel":
        """Return the model with a q(u) to train, the prior's where it has none."""
        number = len(self.solver.kernels) * self.solver.locations.raw.shape[0]
        return self if self.q is not None else self.with_q(prior_q(number))

    def natural_q(self) -> Natural:
        """Return the q from which natural gradients start: the prior."""
        return Natural.standard(self.q.mean.raw.shape[0])

    def with_natural(self, q: Natural) -> "LinearModel":
        """Return the model itself: its posterior comes from the data, at the best q."""
        return self

    def optimal_q(self, records: Records) -> Natural:
        """Return the best q of the whitened inducing variables: one pass over the records."""
        model = unwrap(self)
        return model.solver.optimal_q(model.readings(records))

    def expected_log_likelihood(self, q: Whitened | Moments, records: Records) -> Float[Array, ""]:
        """Return E_q[log p(records)], weighted, for q of the whitened inducing variables."""
        model = unwrap(self)
        return model.solver.expected_log_likelihood(q, model.readings(records))

    def full_bound(self, q: Natural, records: Records) -> Float[Array, ""]:
        """Return the bound at the best q, which is the collapsed one."""
        return self.with_q(None).log_evidence(records)

    def with_sites(self, locations: Any, records: Records) -> "LinearModel":
        """Return the model with a q(u) of its own to train, which starts at the best one."""
        solver = Collapsed(self.solver.kernels, locations, rule=self.solver.rule)
        placed = dataclasses.replace(self, solver=solver)
        best = placed.optimal_q(records)
        inner = best.precision - jnp.eye(len(best.shift))
        root = cholesky(inner + SITE_JITTER * jnp.trace(inner) / len(inner) * jnp.eye(len(inner)))
        return placed.with_q(Sites(real(np.asarray(best.shift)), real(np.asarray(root))))


@Compiled
def _gathered(model: LinearModel, records: Records) -> Any:
    model = unwrap(model)
    return model.solver.gather(model.readings(records))


@Compiled
def _read(model: LinearModel, records: Records) -> Any:
    """Return what rows of each source read: ratios, noise, and values without their level."""
    found = model.readings(records).sources
    return tuple((s.ratio, s.effective_noise, s.residual) for s in found)


@Compiled
def _moments(
    model: LinearModel,
    state: Conditioned,
    support: Support,
    task: str,
    source: str | None,
    joint: bool,
) -> Any:
    return model.moments(state, support, task, source, joint)


def prior_q(number: int) -> Whitened:
    """Return the prior of whitened inducing variables as a q(u) to train."""
    return Whitened(real(np.zeros(number)), real(np.eye(number)))
