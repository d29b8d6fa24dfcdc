"""The linear model of coregionalisation: a network whose weights are constants (theory 3.1)."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.data import Record, Scaling
from mrgp.gp import (
    Kernels,
    LinearGaussian,
    Posterior,
    Smoother,
    Sources,
    collapsed_log_evidence,
    collapsed_posterior,
    exact_log_evidence,
    exact_posterior,
    exact_smoother,
    sparse_smoother,
    whiteners,
)
from mrgp.kernels import kernel_parameters
from mrgp.likelihoods import tempering_constant
from mrgp.models.recipe import Process
from mrgp.models.tasks import Tasks
from mrgp.parameters import Parameter, unwrap
from mrgp.supports import Rule, Support


class Coregionalised(eqx.Module):
    """g_p = sum_q W_pq f_q with constant weights: jointly Gaussian, solved without approximation.

    Where there are inducing inputs, the bound is the collapsed one. W is trained, under the prior
    that a constant kernel gives it.

    >>> import mrgp
    >>> x = mrgp.points([[0.0], [1.0]])
    >>> seen = [mrgp.Observations(x, [0.0, 1.0], task=task, name="sites") for task in ("no2", "o3")]
    >>> model = mrgp.MRGPRN(kernel_w="constant").build(mrgp.Dataset(seen))
    >>> len(model.kernels), model.weights.value.shape
    (2, (2, 2))
    """

    kernels: tuple[Any, ...]
    weights: Any
    tasks: Tasks
    locations: Any
    inputs: tuple[str, ...] = eqx.field(static=True)
    rule: Rule = eqx.field(static=True)

    @property
    def processes(self) -> tuple[Process, ...]:
        """The pairs (source, task)."""
        return self.tasks.processes

    def log_evidence(self, records: Sequence[Record]) -> Float[Array, ""]:
        """Return the exact log evidence, or the collapsed bound."""
        model = unwrap(self)
        noises = [model.tasks.noise(i, r) for i, r in enumerate(records)]
        constant = jnp.sum(jnp.stack([tempering_constant(*pair) for pair in noises]))
        sources = model._sources(records)
        if model.locations is None:
            return exact_log_evidence(model.kernels, sources, model.rule) + constant
        bound = collapsed_log_evidence(model.kernels, sources, model.locations, model.rule)
        return bound + constant

    def condition(self, records: Sequence[Record]) -> Posterior:
        """Condition the latent functions on the records."""
        model = unwrap(self)
        sources = model._sources(records)
        if model.locations is None:
            return exact_posterior(model.kernels, sources, model.rule)
        return collapsed_posterior(model.kernels, sources, model.locations, model.rule)

    def alone(self, process: int) -> "Coregionalised":
        """Return the model of one process, with the parameters of all."""
        return dataclasses.replace(self, tasks=self.tasks.alone(process))

    def linear(self, records: Sequence[Record]) -> tuple[Kernels, Sources]:
        """Return the model as GPs and what the sources see of them."""
        model = unwrap(self)
        return model.kernels, model._sources(records)

    def smoother(self, records: Sequence[Record]) -> Smoother:
        """Return how the posterior mean smooths the records, in units of their noise."""
        model = unwrap(self)
        sources = model._sources(records)
        if model.locations is None:
            return exact_smoother(model.kernels, sources, model.rule)
        whiten = whiteners(model.kernels, model.locations)
        return sparse_smoother(model.kernels, sources, model.locations, whiten, model.rule)

    def moments(
        self, state: Posterior, support: Support, task: str, source: str | None
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, " n"]]:
        """Return mean and variance of a task on a support."""
        model = unwrap(self)
        p = model.tasks.names.index(task)
        mean, variance = state.moments(model.kernels, model._ratio(p), support, model.rule)
        return model.tasks.level(p, support) + mean, variance

    def joint(
        self, state: Posterior, support: Support, task: str, source: str | None
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, "n n"]]:
        """Return mean and joint covariance of a task on a support."""
        model = unwrap(self)
        p = model.tasks.names.index(task)
        mean, covariance = state.joint(model.kernels, model._ratio(p), support, model.rule)
        return model.tasks.level(p, support) + mean, covariance

    def observation_noise(self, process: Process) -> float:
        """Return the noise variance of a new observation."""
        return self.tasks.observation_noise(process)

    def named(self) -> dict[str, Parameter]:
        """Return the parameters by name; latent functions are numbered from one."""
        return latent_parameters(self.kernels, self.inputs) | self.tasks.named()

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return the parameters' values by name, in the user's units."""
        found = {name: np.asarray(parameter.value) for name, parameter in self.named().items()}
        rows = np.asarray(self.weights.value) * np.asarray(self.tasks.spread)[:, None]
        weights = {f"W[{t}]": row for t, row in zip(self.tasks.names, rows, strict=True)}
        return found | weights | self.tasks.report(scaling)

    def account(self, state: Posterior) -> str:
        """Say how the posterior is held."""
        many = "function" if len(self.kernels) == 1 else "functions"
        what = f"linear coregionalised model, {len(self.kernels)} latent {many}"
        if self.locations is None:
            return f"{what}, exact: the training data are kept in the fit, and saved with it"
        share = float(state.unexplained)
        return (
            f"{what}, sparse: {self.locations.raw.shape[0]} inducing inputs each, which miss"
            f" variance worth {share:.1%} of the noise"
        )

    def _ratio(self, task: int) -> Float[Array, " q"]:
        return self.tasks.spread[task] * self.weights[task]

    def _sources(self, records: Sequence[Record]) -> tuple[LinearGaussian, ...]:
        sources = []
        for i, record in enumerate(records):
            p = self.tasks.index(i)
            noise, weight = self.tasks.noise(i, record)
            residual = jnp.asarray(record.y) - self.tasks.level(p, record.support)
            sources.append(
                LinearGaussian(
                    record.support, self._ratio(p), residual, noise / weight, record.shapes
                )
            )
        return tuple(sources)


def latent_parameters(kernels: Kernels, inputs: tuple[str, ...]) -> dict[str, Parameter]:
    """Return the parameters of the kernels of latent functions, by name."""
    return {
        f"f{i + 1}.{name.removeprefix('kernel.')}": parameter
        for i, kernel in enumerate(kernels)
        for name, parameter in kernel_parameters(kernel, inputs).items()
    }
