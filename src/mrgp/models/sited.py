"""Any likelihood of one linear predictor: Gaussian sites beside a linear model (theory 11.5)."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.data import Records, Scaling
from mrgp.gp import Posterior, Readings
from mrgp.likelihoods import GAUSSIAN
from mrgp.models.answers import Components, Question
from mrgp.models.contract import PlainModel, Process
from mrgp.models.linear import LinearModel
from mrgp.parameters import Parameter, unwrap
from mrgp.supports import Support

LEAST, FAINT = 1e-8, 1e-6
BACKTRACKS = 8


class SiteTerms(eqx.Module):
    """exp(pull z - precision z^2 / 2) for the predictor z of every row of all sources.

    >>> SiteTerms(jnp.array([4.0]), jnp.array([2.0])).value.tolist()
    [2.0]
    """

    pull: Float[AnyArray, " n"]
    precision: Float[AnyArray, " n"]

    @property
    def value(self) -> Float[Array, " n"]:
        """The value that a Gaussian of this precision would have seen."""
        return jnp.asarray(self.pull) / self.precision

    def toward(self, other: "SiteTerms", rate: Any) -> "SiteTerms":
        """Return sites on the way to others."""
        return jax.tree.map(lambda a, b: (1 - rate) * a + rate * b, self, other)


class Sited(eqx.Module, PlainModel):
    """A linear model whose values are not Gaussian: each row has a Gaussian site in their place.

    The posterior is that of a Gaussian model with the sites' values and noises, so that every
    solver of linear models serves.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 2.0], likelihood="student_t")
    >>> list(mrgp.MRGP(mrgp.RBF()).build(mrgp.Dataset([seen])).named())
    ['kernel.variance', 'kernel.lengthscale', 'noise_variance[source]']
    """

    gaussian: LinearModel
    approximation: SiteTerms | None = None

    @property
    def approximate(self) -> "Sited":
        """The model itself."""
        return self

    @property
    def processes(self) -> tuple[Process, ...]:
        """The pairs (source, task)."""
        return self.gaussian.processes

    def with_approximation(self, found: SiteTerms | None) -> "Sited":
        """Return the model with other sites."""
        return dataclasses.replace(self, approximation=found)

    def begin(self, records: Records) -> SiteTerms:
        """Return the sites from which to start: those that it has, or some that say nothing yet.

        What values say is then told by the prior, so that outliers are seen as such.
        """
        if self.approximation is not None:
            return self.approximation
        readings = unwrap(self.gaussian).readings(records)
        parts = [(s.level, FAINT / jnp.asarray(s.noise)) for s in readings.sources]
        level, precision = (jnp.concatenate([jnp.asarray(p[i]) for p in parts]) for i in (0, 1))
        return SiteTerms(level * precision, precision)

    def settle(self, begun: SiteTerms, records: Records, steps: int, gain: Any) -> SiteTerms:
        """Update all sites together until the bound rises by less than `gain`."""
        model = unwrap(self)
        readings = model.gaussian.readings(records)

        def better(sites: SiteTerms, bound: Array) -> tuple[SiteTerms, Array]:
            target = model.targets(sites, readings)

            def lower(state: tuple[Array, Array]) -> Array:
                rate, value = state
                return ~(value >= bound) & (rate > 0.5**BACKTRACKS)

            def halve(state: tuple[Array, Array]) -> tuple[Array, Array]:
                rate = 0.5 * state[0]
                return rate, model.bound(sites.toward(target, rate), readings)

            start = (jnp.full((), 2.0), jnp.full((), -jnp.inf))
            rate, value = jax.lax.while_loop(lower, halve, start)
            rate = jnp.where(value >= bound, rate, 0.0)
            return sites.toward(target, rate), jnp.maximum(value, bound)

        def rising(state: tuple[SiteTerms, Array, Array, Array]) -> Array:
            _, bound, before, count = state
            return (count < steps) & ((bound - before > gain) | (count == 0))

        def again(state: tuple[SiteTerms, Array, Array, Array]) -> Any:
            sites, bound, _, count = state
            return *better(sites, bound), bound, count + 1

        first = model.bound(begun, readings)
        start = (begun, first, jnp.full((), -jnp.inf), jnp.zeros((), int))
        return jax.lax.while_loop(rising, again, start)[0]

    def fits(self, found: SiteTerms, records: Records) -> bool:
        """Tell whether there is a site for each row."""
        return found.pull.shape[0] == sum(len(record) for record in records)

    def enough(self, records: Records) -> int | None:
        """Return None: sites of all rows go together."""
        return None

    def left_open(self) -> tuple[Parameter, ...]:
        """Return none: values on a line tell them as Gaussian ones do."""
        return ()

    def grown(self, share: float) -> None:
        """Return nothing: every row has a site of its own."""

    def kept(self, found: SiteTerms, rows: Any) -> SiteTerms:
        """Return the sites of some rows."""
        return jax.tree.map(lambda leaf: leaf[rows], found)

    def targets(self, sites: SiteTerms, readings: Readings) -> SiteTerms:
        """Return the sites that the slopes of what is expected ask for (theory 11.5)."""
        mean, variance = self.gaussian.solver.marginals(self.sited(sites, readings))
        pull, curve = jax.grad(lambda m, v: jnp.sum(_expected(readings, m, v)), argnums=(0, 1))(
            mean, variance
        )
        precision = jnp.maximum(-2.0 * curve, LEAST / jnp.maximum(variance, LEAST))
        return SiteTerms(pull + precision * mean, precision)

    def bound(self, sites: SiteTerms, readings: Readings) -> Float[Array, ""]:
        """Return the bound of the posterior that sites make: log Z + E[log p - log site]."""
        sited = self.sited(sites, readings)
        solver = self.gaussian.solver
        mean, variance = solver.marginals(sited)
        site = GAUSSIAN.expected_log_prob(sites.value, mean, variance, 1.0 / sites.precision)
        used = readings.used
        return solver.log_evidence(sited) + jnp.sum(
            _expected(readings, mean, variance) - jnp.where(used > 0, site, 0.0)
        )

    def sited(self, sites: SiteTerms, readings: Readings) -> Readings:
        """Return readings with the values and the noises of sites."""
        made, start = [], 0
        for source in readings.sources:
            rows = slice(start, start + source.y.shape[0])
            start = rows.stop
            made.append(
                dataclasses.replace(
                    source,
                    y=sites.value[rows],
                    noise=1.0 / sites.precision[rows],
                    weight=1.0,
                    likelihood=GAUSSIAN,
                    censored=None,
                )
            )
        return Readings(tuple(made))

    def log_evidence(self, records: Records) -> Float[Array, ""]:
        """Return the bound at the model's sites."""
        model = unwrap(self)
        return model.bound(model.begin(records), model.gaussian.readings(records))

    def condition(self, records: Records) -> Posterior:
        """Condition the latent functions on the sites."""
        model = unwrap(self)
        readings = model.gaussian.readings(records)
        return model.gaussian.solver.condition(model.sited(model.begin(records), readings))

    def predict(self, state: Posterior, support: Support, asked: Question) -> Components:
        """Return one Gaussian for each region, or their joint one."""
        return self.gaussian.predict(state, support, asked)

    def observation_noise(self, process: Process) -> float:
        """Return the noise variance of a new observation."""
        return self.gaussian.observation_noise(process)

    def named(self) -> dict[str, Parameter]:
        """Return the parameters by name."""
        return self.gaussian.named()

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return the parameters' values by name, in the user's units."""
        return self.gaussian.report(scaling)

    def account(self, state: Posterior) -> str:
        """Say that values are not Gaussian, and how the posterior is held."""
        return f"Gaussian sites in place of other likelihoods; {self.gaussian.account(state)}"


def _expected(
    readings: Readings, mean: Float[Array, " n"], variance: Float[Array, " n"]
) -> Float[Array, " n"]:
    rows, start = [], 0
    for source in readings.sources:
        part = slice(start, start + source.y.shape[0])
        start = part.stop
        rows.append(source.expected(mean[part], variance[part]))
    return jnp.concatenate(rows)
