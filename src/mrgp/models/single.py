"""One latent GP seen by every source: the model of MR-GP (theory 2)."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._linalg import cholesky
from mrgp._types import AnyArray
from mrgp.data import Record, Scaling
from mrgp.gp import (
    Kernels,
    LinearGaussian,
    Marginal,
    Moments,
    Natural,
    Posterior,
    Sites,
    Smoother,
    Sources,
    Whitened,
    collapsed_log_evidence,
    collapsed_posterior,
    exact_log_evidence,
    exact_posterior,
    exact_smoother,
    expected_log_likelihood,
    inducing_posterior,
    information,
    posterior_at_nodes,
    sparse_smoother,
    whiteners,
)
from mrgp.kernels import Kernel, kernel_parameters
from mrgp.likelihoods import tempering_constant
from mrgp.models.recipe import Process
from mrgp.parameters import Parameter, real, unwrap
from mrgp.supports import Points, Rule, Support

LOOSE = 0.05
SITE_JITTER = 1e-9


class SingleGP(eqx.Module):
    """y = c + r L f + noise for each source, with one latent field f = mean + GP.

    The target's c is zero and its r one. An offset acts through L 1, so that c is a bias of the
    field in the field's units, for means and totals alike. `q` is there when the bound is to be
    the uncollapsed one.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 2.0], name="sites")
    >>> model = mrgp.MRGP(mrgp.RBF()).build(mrgp.Dataset([seen]))
    >>> list(model.named())
    ['kernel.variance', 'kernel.lengthscale', 'noise_variance[sites]']
    """

    kernel: Kernel
    mean: Any
    offset: dict[str, Any]
    ratio: dict[str, Any]
    noise_variance: dict[str, Any]
    locations: Any
    known_noise: dict[str, Float[AnyArray, ""]]
    q: Any
    processes: tuple[Process, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    target: str = eqx.field(static=True)
    rule: Rule = eqx.field(static=True)

    def log_evidence(self, records: Sequence[Record]) -> Float[Array, ""]:
        """Return the exact log evidence, or a bound on it where there are inducing inputs."""
        model = unwrap(self)
        if isinstance(model.q, Sites):
            moments, divergence = model.q.natural.moments()
            return self.expected_log_likelihood(moments, records) - divergence
        if model.q is not None:
            return self.expected_log_likelihood(model.q, records) - model.q.divergence
        data = model._linear_gaussian(records)
        constant = model.tempering(records)
        if model.locations is None:
            return exact_log_evidence((model.kernel,), data, model.rule) + constant
        return collapsed_log_evidence((model.kernel,), data, model.locations, model.rule) + constant

    def expected_log_likelihood(
        self, q: Whitened | Moments, records: Sequence[Record]
    ) -> Float[Array, ""]:
        """Return E_q[log p(records)], weighted, for q of the whitened inducing variables."""
        model = unwrap(self)
        whiten = whiteners((model.kernel,), model.locations)
        total = jnp.zeros(())
        for i, record in enumerate(records):
            noise, weight = model._noise(i, record)
            data = model._source(i, record, noise)
            total += expected_log_likelihood(
                (model.kernel,), data, weight, model.locations, whiten, q, model.rule
            )
        return total

    def with_q(self) -> "SingleGP":
        """Return the model with a q(u) to train, the prior's where it has none."""
        if self.q is not None:
            return self
        return dataclasses.replace(self, q=prior_q(self.locations.raw.shape[0]))

    def optimal_q(self, records: Sequence[Record]) -> Natural:
        """Return the best q of the whitened inducing variables: one pass over the records."""
        model = unwrap(self)
        whiten = whiteners((model.kernel,), model.locations)
        sources = model._linear_gaussian(records)
        known = information((model.kernel,), sources, model.locations, whiten, model.rule)
        return Natural.optimal(known.score, known.precision)

    @property
    def natural_rate(self) -> float:
        """The size of the natural-gradient step that finds the best q on all data."""
        return 1.0

    def natural_q(self) -> Natural:
        """Return the q from which natural gradients start: the prior."""
        return Natural.standard(self.q.mean.raw.shape[0])

    def with_natural(self, q: Natural) -> "SingleGP":
        """Return the model itself: its posterior comes from the data, at the best q."""
        return self

    def full_bound(self, q: Natural, records: Sequence[Record]) -> Float[Array, ""]:
        """Return the bound at the best q, which is the collapsed one."""
        return eqx.tree_at(lambda m: m.q, self, None, is_leaf=lambda x: x is None).log_evidence(
            records
        )

    def condition(self, records: Sequence[Record]) -> Posterior:
        """Condition the latent field on the records."""
        model = unwrap(self)
        data = model._linear_gaussian(records)
        if isinstance(model.q, Sites):
            whiten = whiteners((model.kernel,), model.locations)
            basis, score = jnp.tril(model.q.root), jnp.asarray(model.q.shift)
            return inducing_posterior(score, basis, model.locations, whiten, jnp.zeros(()))
        if model.locations is None:
            return exact_posterior((model.kernel,), data, model.rule)
        return collapsed_posterior((model.kernel,), data, model.locations, model.rule)

    def tempering(self, records: Sequence[Record]) -> Float[Array, ""]:
        """Return what weights add to the log evidence beyond a larger noise (theory 2.2)."""
        model = unwrap(self)
        noises = (model._noise(i, record) for i, record in enumerate(records))
        return jnp.sum(jnp.stack([tempering_constant(*noise) for noise in noises]))

    def noise_covariance(self, records: Sequence[Record]) -> Float[Array, " n"]:
        """Return the noise of all values given the field: variances, as errors are independent."""
        return jnp.concatenate([s.noise for s in self.linear(records)[1]])

    def alone(self, process: int) -> "SingleGP":
        """Return the model of one process, with the parameters of all."""
        return dataclasses.replace(self, processes=(self.processes[process],))

    def linear(self, records: Sequence[Record]) -> tuple[Kernels, Sources]:
        """Return the model as GPs and what the sources see of them."""
        model = unwrap(self)
        return (model.kernel,), model._linear_gaussian(records)

    def smoother(self, records: Sequence[Record]) -> Smoother:
        """Return how the posterior mean smooths the records, in units of their noise."""
        model = unwrap(self)
        data = model._linear_gaussian(records)
        if model.locations is None:
            return exact_smoother((model.kernel,), data, model.rule)
        whiten = whiteners((model.kernel,), model.locations)
        return sparse_smoother((model.kernel,), data, model.locations, whiten, model.rule)

    def moments(
        self, state: Posterior, support: Support, task: str, source: str | None
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, " n"]]:
        """Return mean and variance of L f, or of c + r L f for a source."""
        model = unwrap(self)
        ratio = model._ratio(source)[None]
        mean, variance = state.moments((model.kernel,), ratio, support, model.rule)
        return model._prior_mean(support, source) + mean, variance

    def at_nodes(self, state: Posterior, x: Float[AnyArray, "b s d"]) -> Marginal:
        """Return mean and covariance of f among the nodes of each region."""
        model = unwrap(self)
        found = posterior_at_nodes(state, model.kernel, x, model.rule)
        nodes = Points(x.reshape(-1, x.shape[2]), jnp.ones(x.shape[0] * x.shape[1]))
        level = model._prior_mean(nodes, None).reshape(x.shape[:2])
        return Marginal(level + found.mean, found.covariance)

    def with_sites(self, locations: Any, records: Sequence[Record]) -> "SingleGP":
        """Return the model with a q(u) of its own to train, which starts at the best one."""
        placed = dataclasses.replace(self, locations=locations, q=None)
        best = placed.optimal_q(records)
        inner = best.precision - jnp.eye(len(best.shift))
        root = cholesky(inner + SITE_JITTER * jnp.trace(inner) / len(inner) * jnp.eye(len(inner)))
        sites = Sites(real(np.asarray(best.shift)), real(np.asarray(root)))
        return dataclasses.replace(placed, q=sites)

    def joint(
        self, state: Posterior, support: Support, task: str, source: str | None
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, "n n"]]:
        """Return mean and joint covariance of L f, or of c + r L f for a source."""
        model = unwrap(self)
        ratio = model._ratio(source)[None]
        mean, covariance = state.joint((model.kernel,), ratio, support, model.rule)
        return model._prior_mean(support, source) + mean, covariance

    def observation_noise(self, process: Process) -> float:
        """Return the noise variance of a new observation: learned, or the mean of those given."""
        source = process[0]
        if source in self.known_noise:
            return float(self.known_noise[source])
        return float(self.noise_variance[source].value)

    def named(self) -> dict[str, Parameter]:
        """Return the parameters by name; kernels inside others go by their class and inputs."""
        found = kernel_parameters(self.kernel, self.inputs)
        for field in ("noise_variance", "offset", "ratio"):
            found |= {f"{field}[{k}]": v for k, v in getattr(self, field).items()}
        return found

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return the parameters' values by name, in the user's units."""
        return {name: np.asarray(value) for name, value in self.values(scaling).items()}

    def values(self, scaling: Scaling) -> dict[str, Array]:
        """Return what `report` does, inside transformations of JAX too."""
        found = {name: jnp.asarray(parameter.value) for name, parameter in self.named().items()}
        level = jnp.asarray(scaling.offset[0])
        for source in self.offset:
            # Values are centred before c + r L f: undoing that moves (1 - r) levels into c.
            ratio = found.get(f"ratio[{source}]", 1.0)
            found[f"offset[{source}]"] = found[f"offset[{source}]"] + (1 - ratio) * level
        mean = jnp.asarray(self.mean.value)
        constant, slopes = mean[:1], mean[1:]
        if len(slopes):
            level = level - slopes @ jnp.asarray(scaling.centre)
            found["mean.slope"] = slopes
        return found | {"mean.constant": level + constant.sum()}

    def account(self, state: Posterior) -> str:
        """Say how the posterior is held, and how well."""
        if self.locations is None:
            return "exact: the training data are kept in the fit, and saved with it"
        share = float(state.unexplained)
        advice = "; more would help" if share > LOOSE else ""
        return (
            f"sparse: {self.locations.raw.shape[0]} inducing inputs, which miss variance worth"
            f" {share:.1%} of the noise{advice}"
        )

    def _linear_gaussian(self, records: Sequence[Record]) -> tuple[LinearGaussian, ...]:
        """Return the sources with weights folded into the noise (theory 2.2)."""
        sources = []
        for i, record in enumerate(records):
            noise, weight = self._noise(i, record)
            sources.append(self._source(i, record, noise / weight))
        return tuple(sources)

    def _source(self, process: int, record: Record, noise: Float[Array, " n"]) -> LinearGaussian:
        source, _ = self.processes[process]
        residual = jnp.asarray(record.y) - self._prior_mean(record.support, source)
        ratio = self._ratio(source)[None]
        return LinearGaussian(record.support, ratio, residual, noise, record.shapes)

    def _noise(self, process: int, record: Record) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        given = record.noise_variance
        noise = self.noise_variance[self.processes[process][0]] if given is None else given
        shape = record.y.shape
        return (
            jnp.broadcast_to(jnp.asarray(noise), shape),
            jnp.broadcast_to(jnp.asarray(record.weight), shape),
        )

    def _prior_mean(self, support: Support, source: str | None) -> Float[Array, " n"]:
        """Return c L1 + r L mu."""
        total = jnp.asarray(support.total)
        basis = jnp.concatenate([total[:, None], jnp.asarray(support.moment)], 1)
        count = self.mean.shape[0]
        mean = basis[:, :count] @ self.mean
        offset = self.offset.get(source, 0.0) if source is not None else 0.0
        return offset * total + self._ratio(source) * mean

    def _ratio(self, source: str | None) -> Float[AnyArray, ""]:
        return self.ratio[source] if source in self.ratio else jnp.ones(())


def prior_q(number: int) -> Whitened:
    """Return the prior of whitened inducing variables as a q(u) to train."""
    return Whitened(real(np.zeros(number)), real(np.eye(number)))
