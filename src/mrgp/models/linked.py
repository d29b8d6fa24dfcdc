"""A positive field, or a probability, behind a link: counts, rates and shares (theory 11)."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._compiled import Compiled, effort_of
from mrgp._types import to_numpy
from mrgp.data import Record, Records, Scaling
from mrgp.distributions import GAUSSIANS, LOG_NORMALS, PROBIT_NORMALS, Distribution
from mrgp.gp import (
    LinkedField,
    Moments,
    Natural,
    Places,
    Pull,
    Scatter,
    Seen,
    Step,
    damped_step,
    seen_nodes,
    strict_moments,
)
from mrgp.likelihoods import Likelihood, Poisson
from mrgp.links import Link, node_moments
from mrgp.models.answers import Components, Question, as_arrays, check_joint, in_chunks
from mrgp.models.contract import PlainModel, Process
from mrgp.models.noise import Diagonal
from mrgp.models.readouts import OneField, Readout
from mrgp.parameters import Parameter, unwrap
from mrgp.supports import DEFAULT_RULE, Points, Rule, Support

EASY_STEPS, EASY_GAIN = 5, 1.0
LITTLE, MUCH = 1.5e9, 6e9
DISTRIBUTIONS: dict[Link, Distribution] = {
    "identity": GAUSSIANS,
    "log": LOG_NORMALS,
    "square": LOG_NORMALS,
    "probit": PROBIT_NORMALS,
}


class Linked(eqx.Module, PlainModel):
    """mu = exposure x ratio x L g(f): a field behind a link, with q of its inducing variables.

    The posterior of the inducing variables is Gaussian, found by natural-gradient steps on the
    bound; `approximation` has it.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0, 2], likelihood=mrgp.Poisson())
    >>> model = mrgp.MRGP(mrgp.RBF()).build(mrgp.Dataset([seen]))
    >>> model.link, list(model.named())
    ('log', ['kernel.variance', 'kernel.lengthscale'])
    """

    kernels: Any
    locations: Any
    readout: Readout
    noise: Diagonal
    link: Link = eqx.field(static=True)
    likelihoods: tuple[Likelihood, ...] = eqx.field(static=True)
    processes: tuple[Process, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    rule: Rule = eqx.field(static=True, default=DEFAULT_RULE)
    approximation: Natural | None = None

    @property
    def approximate(self) -> "Linked":
        """The model itself."""
        return self

    def with_approximation(self, found: Natural | None) -> "Linked":
        """Return the model with another posterior."""
        return dataclasses.replace(self, approximation=found)

    def begin(self, records: Records) -> Natural:
        """Return the q from which to start: the one it has, or a few steps from the prior.

        They are on Jensen's bound where there are Poisson counts: its curvature has one sign.
        """
        if self.approximation is not None:
            return self.approximation
        prior = Natural.standard(len(self.kernels) * self.locations.raw.shape[0])
        return self.settle(prior, tuple(map(_on_jensen, records)), EASY_STEPS, EASY_GAIN)

    def settle(self, begun: Natural, records: Records, steps: int, gain: Any) -> Natural:
        """Take natural-gradient steps until the bound rises by less than `gain`."""
        model = unwrap(self)
        field = model.field.whitened()
        parts = []
        for process, record in model.pairs(records):
            of, ratio, places, seen = model.seen(process, record)
            parts.append((of, ratio, field.held(ratio, places, seen), seen))

        def at(natural: Natural) -> Step:
            q, divergence = strict_moments(natural)
            found = [field.slopes(q, *part) for part in parts]
            value, slopes = jax.tree.map(lambda *several: sum(several), *found)
            return Step(natural, q, slopes, value - divergence)

        def rising(state: tuple[Step, Array, Array]) -> Array:
            _, before, count = state
            return (count < steps) & ((state[0].bound - before > gain) | (count == 0))

        def again(state: tuple[Step, Array, Array]) -> tuple[Step, Array, Array]:
            step, _, count = state
            return damped_step(step, at), step.bound, count + 1

        start = (at(begun), jnp.full((), -jnp.inf), jnp.zeros((), int))
        return jax.lax.while_loop(rising, again, start)[0].natural

    def fits(self, found: Natural, records: Records) -> bool:
        """Tell that q of inducing variables serves any records."""
        return True

    def enough(self, records: Records) -> int | None:
        """Return how many rows will do to begin with: those that are little work."""
        count = sum(len(record) for record in records)
        nodes = sum(record.support.quadrature(self.rule).weights.size for record in records)
        work = nodes * (len(self.kernels) * self.locations.raw.shape[0]) ** 2
        return int(count * LITTLE / work) if work > MUCH else None

    def left_open(self) -> tuple[Parameter, ...]:
        """Return the variances of kernels."""
        return tuple(p for name, p in self.named().items() if name.endswith(".variance"))

    def grown(self, share: float) -> Natural | None:
        """Return the posterior with what data say counted so many times."""
        found = self.approximation
        if found is None:
            return None
        prior = np.eye(len(found.shift))
        return Natural(share * found.shift, prior + share * (found.precision - prior))

    def kept(self, found: Natural, rows: Any) -> Natural:
        """Return the posterior as it is: it has no rows."""
        return found

    def log_evidence(self, records: Records) -> Float[Array, ""]:
        """Return the bound at the model's posterior."""
        model = unwrap(self)
        q, divergence = strict_moments(model.begin_arrays())
        field = model.field.whitened()
        parts = (model.seen(process, record) for process, record in model.pairs(records))
        return sum((field.total(q, *part) for part in parts), jnp.zeros(())) - divergence

    def begin_arrays(self) -> Natural:
        """Return the posterior as it is, or the prior (of an unwrapped model)."""
        if self.approximation is not None:
            return self.approximation
        return Natural.standard(len(self.kernels) * self.locations.shape[0])

    def condition(self, records: Records) -> Moments:
        """Return the posterior of whitened inducing variables."""
        return strict_moments(unwrap(self).begin_arrays())[0]

    @property
    def field(self) -> LinkedField:
        """The GPs behind the link (of an unwrapped model)."""
        return LinkedField(self.kernels, self.locations, self.link, self.rule)

    def pairs(self, records: Records) -> list[tuple[Process, Any]]:
        """Return the processes with their records."""
        return list(zip(self.processes, records, strict=True))

    def seen(self, process: Process, record: Any) -> tuple[Scatter, Array, Places, Seen]:
        """Return how a source scatters, how it loads on the GPs, its nodes and its rows."""
        source, task = process
        x, weights = seen_nodes(record.support, self.rule)
        rows = record.y.shape
        exposure = jnp.ones(rows) if record.exposure is None else jnp.asarray(record.exposure)
        seen = Seen(
            weights,
            self.level(x, task),
            exposure * self.bias(source),
            jnp.asarray(record.y),
            self.noise.of_rows(process, record),
            jnp.asarray(record.weights),
            jnp.zeros(rows) if record.censored is None else jnp.asarray(record.censored),
        )
        of = Scatter(record.likelihood, record.censored is not None)
        return of, self.readout.ratio(None, task), (x,), seen

    def level(self, x: Float[Array, "b s d"], task: str) -> Float[Array, "b s"]:
        """Return the mean of f at nodes."""
        b, s, d = x.shape
        nodes = Points(x.reshape(b * s, d), jnp.ones(b * s))
        return self.readout.level(nodes, None, task).reshape(b, s)

    def bias(self, source: str | None) -> Any:
        """Return the ratio by which a source reports the field."""
        if source is None or not isinstance(self.readout, OneField):
            return 1.0
        return self.readout.ratios.get(source, 1.0)

    def moments(
        self, q: Moments, support: Support, task: str, source: str | None
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return mean and variance of the field on a support, as a source reports it."""
        model = unwrap(self)
        x, weights = seen_nodes(support, model.rule)
        ratio = model.readout.ratio(None, task)
        mean, spread = model.field.moments(q, ratio, x, weights, model.level(x, task))
        bias = jnp.asarray(model.bias(source))
        return bias * mean, bias**2 * spread

    def joint(
        self, q: Moments, support: Support, task: str, source: str | None
    ) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """Return mean and covariance of the field among regions."""
        model = unwrap(self)
        x, weights = seen_nodes(support, model.rule)
        n, s, d = x.shape
        together = x.reshape(1, n * s, d)
        features = model.field.features(model.readout.ratio(None, task), together)
        mean, covariance = model.field.at_nodes(Pull.of(q), *features)
        mean, covariance = node_moments(model.link, model.level(together, task) + mean, covariance)
        bias = jnp.asarray(model.bias(source))
        pairs = covariance.reshape(n, s, n, s)
        spread = jnp.einsum("ns,nsmt,mt->nm", weights, pairs, weights)
        return bias * jnp.sum(weights * mean.reshape(n, s), 1), bias**2 * spread

    def predict(self, state: Moments, support: Support, asked: Question) -> Components:
        """Return the field on each region, matched to a distribution of its kind, or jointly."""
        model, q = as_arrays((self.with_approximation(None), state))
        nodes = support.quadrature(self.rule).weights.shape[1]
        if asked.joint:
            check_joint(len(support) * nodes)
            found = _joint(model, q, as_arrays(support), asked.task, asked.source, effort="least")
        else:
            columns = nodes * (state.mean.shape[0] + nodes)

            def answer(part: Support) -> Any:
                effort = effort_of(len(part), once=True)
                return _moments(model, q, part, asked.task, asked.source, effort=effort)

            found = in_chunks(answer, support, columns)
        made = Components.gaussian(*to_numpy(found))
        return dataclasses.replace(made, distribution=DISTRIBUTIONS[self.link])

    def observation_noise(self, process: Process) -> float:
        """Return the likelihood's own parameter for a new observation."""
        return self.noise.observation(process)

    def named(self) -> dict[str, Parameter]:
        """Return the parameters by name."""
        kernels = self.readout.kernels_named(self.kernels, self.inputs)
        return kernels | self.noise.named(self.readout.label) | self.readout.named()

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return the parameters' values by name; kernels and mean are those of f."""
        found = {name: jnp.asarray(parameter.value) for name, parameter in self.named().items()}
        values = self.readout.values(found, scaling)
        return {name: np.asarray(value) for name, value in values.items()}

    def account(self, state: Moments) -> str:
        """Say what the field is, and how the posterior is held."""
        count = self.locations.raw.shape[0]
        return (
            f"{self.link} link: the field is g(f), and what regions see is its average; kernel and"
            f" mean are those of f. Variational: {count} inducing inputs"
        )


@Compiled
def _moments(model: Linked, q: Moments, support: Support, task: str, source: str | None) -> Any:
    return model.moments(q, support, task, source)


@Compiled
def _joint(model: Linked, q: Moments, support: Support, task: str, source: str | None) -> Any:
    return model.joint(q, support, task, source)


def _on_jensen(record: Record) -> Record:
    if not isinstance(record.likelihood, Poisson):
        return record
    return dataclasses.replace(record, likelihood=Poisson("jensen"))
