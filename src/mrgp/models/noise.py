"""The noise of values given the field: of each alone, or shared by several (theory 2.1, 7.2)."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.data import Dataset, Observations, Record, Records, Scaling
from mrgp.models.contract import Process
from mrgp.parameters import LogNormal, Parameter, positive, stretched

NOISE_SHARE = 0.1
NOISE_LOG_SD = 2.0
NOISE_FLOOR = 1e-6
OWN = {"dispersion": (10.0, 1.5), "shape": (5.0, 1.5), "log_variance": (0.1, 2.0)}
"""Median and log-sd of what likelihoods have in place of a noise variance."""

Errors = tuple[list[Float[Array, " _"]], Float[Array, "n n"] | None]


class Diagonal(eqx.Module):
    """Independent noise: for each (source, task) one variance to learn, or those that are known.

    `known` has the mean of those that were given.

    >>> import mrgp
    >>> data = Dataset([Observations(mrgp.points([[0.0], [1.0]]), [1.0, 3.0], task="no2")])
    >>> noise = Diagonal.of(data, Scaling.of(data), priors=True)
    >>> noise.observation(data.processes[0])  # a tenth of the variance
    0.1
    """

    shared: ClassVar[bool] = False
    learned: dict[Process, Any]
    known: dict[Process, Float[AnyArray, ""]]
    names: tuple[tuple[Process, str], ...] = eqx.field(static=True, default=())

    @classmethod
    def of(
        cls,
        data: Dataset,
        scaling: Scaling,
        priors: bool,
        given: Mapping[str, Any] | None = None,
        scales: Mapping[str, float] | None = None,
    ) -> "Diagonal":
        """Start at a tenth of the variance of the data, or at what is given by source.

        `scales` are those of sources that report on another than the task's.
        """
        learned, known = {}, {}
        names = tuple((o.process, o.likelihood.own) for o in data if o.likelihood.own in OWN)
        for o in data:
            if o.likelihood.own is None:
                known[o.process] = np.ones(())
                continue
            if o.likelihood.own in OWN:
                learned[o.process] = start_own(o.likelihood.own, priors, (given or {}).get(o.name))
                continue
            if o.noise_variance is not None:
                known[o.process] = np.asarray(o.noise_variance[o.observed].mean())
                continue
            spread = float(scaling.scale[scaling.index(o.task)]) * typical_total(o)
            spread *= (scales or {}).get(o.name) or 1.0
            usual = start_noise(spread, priors)
            value = (given or {}).get(o.name, usual)
            if not isinstance(value, Parameter):
                value = stretched(usual, float(value) / float(usual.value))
            learned[o.process] = value
        return cls(learned, known, names)

    def errors(self, processes: Sequence[Process], records: Records) -> Errors:
        """Return the noise variance of every value; no errors are shared."""
        pairs = zip(processes, records, strict=True)
        return [self.of_rows(process, record) for process, record in pairs], None

    def of_rows(self, process: Process, record: Record) -> Float[Array, " n"]:
        """Return the noise variance of every row of a process."""
        given = record.noise_variance if record.trials is None else record.trials
        if given is None and process in self.known:
            given = self.known[process]
        noise = self.learned[process] if given is None else given
        return jnp.broadcast_to(jnp.asarray(noise), record.y.shape)

    def usual(self, process: Process) -> Float[AnyArray, ""]:
        """Return the variance of a process, learned, or the mean of those known."""
        return jnp.asarray(self.known[process] if process in self.known else self.learned[process])

    def observation(self, process: Process) -> float:
        """Return the noise variance of a new observation: learned, or the mean of those given."""
        if process in self.known:
            return float(self.known[process])
        return float(self.learned[process].value)

    def changed(self, change: Callable[[Parameter], Parameter]) -> "Diagonal":
        """Return the noise with its parameters changed."""
        return dataclasses.replace(self, learned={p: change(v) for p, v in self.learned.items()})

    def named(self, label: Callable[[Process], str]) -> dict[str, Parameter]:
        """Return the variances to learn, by name."""
        own = dict(self.names)
        return {f"{own.get(p, 'noise_variance')}[{label(p)}]": v for p, v in self.learned.items()}

    def account(self) -> str:
        """Say nothing: independent noise is what one expects."""
        return ""


class Shared(eqx.Module):
    """Errors that some sources take over from another, beside the noise that each has alone.

    `shares[fine]` has a row for every value of all sources and a column for every place of source
    `fine`, first those that it observed: how much of its error there is in that value.
    `left[coarse]` is what averaging leaves of the variance of those errors, over the regions of
    source `coarse` on average.

    >>> fine, coarse = ("hourly", "no2"), ("daily", "no2")
    >>> own = Diagonal({}, {fine: np.asarray(4.0), coarse: np.asarray(0.1)})
    >>> Shared(own, {}, {"daily": np.asarray(0.5)}, (("daily", "hourly"),)).observation(coarse)
    2.1
    """

    shared: ClassVar[bool] = True
    own: Diagonal
    shares: dict[str, Float[AnyArray, "n e"]]
    left: dict[str, Float[AnyArray, ""]]
    averages: tuple[tuple[str, str], ...] = eqx.field(static=True)

    def errors(self, processes: Sequence[Process], records: Records) -> Errors:
        """Return the noise of each value alone, and the covariance of the errors of all."""
        own, _ = self.own.errors(processes, records)
        names, total = [source for source, _ in processes], jnp.zeros(())
        count = sum(len(record) for record in records)
        for fine, share in self.shares.items():
            if share.shape[0] != count:
                raise ValueError(
                    f"Dependent: the model was built for {share.shape[0]} values and is given"
                    f" {count}. Fit all the data at once."
                )
            at = names.index(fine)
            unseen = (share.shape[1] - len(own[at]),)
            scale = [own[at], jnp.broadcast_to(self.own.usual(processes[at]), unseen)]
            scaled = jnp.asarray(share) * jnp.sqrt(jnp.concatenate(scale))[None, :]
            total = total + scaled @ scaled.T
            own[at] = jnp.zeros_like(own[at])
        return own, total

    def observation(self, process: Process) -> float:
        """Return the noise variance of a new observation.

        For a source that averages another it is its own noise and the averaged errors of the
        other, for a region with as many nodes as those observed, on average.
        """
        source, task = process
        fine = dict(self.averages).get(source)
        if fine is None:
            return self.own.observation(process)
        error = self.own.observation((fine, task))
        return self.own.observation(process) + error * float(self.left[source])

    def named(self, label: Callable[[Process], str]) -> dict[str, Parameter]:
        """Return the variances to learn, by name."""
        return self.own.named(label)

    def account(self) -> str:
        """Say which sources share errors."""
        pairs = (f"{coarse} averages the values of {fine}" for coarse, fine in self.averages)
        return f"; {'; '.join(pairs)}, errors included"


Noise = Diagonal | Shared
"""How values err about what their supports see."""


def start_noise(spread: float, priors: bool) -> Parameter:
    """Start a noise variance at a tenth of the data's."""
    typical = np.asarray(NOISE_SHARE * spread**2)
    prior = LogNormal(typical, np.asarray(NOISE_LOG_SD)) if priors else None
    return positive(typical, prior, floor=NOISE_FLOOR * spread**2, scale=typical)


def start_own(name: str, priors: bool, given: Any = None) -> Parameter:
    """Start the parameter that a likelihood has in place of a noise variance."""
    if isinstance(given, Parameter):
        return given
    typical, log_sd = OWN[name]
    prior = LogNormal(np.asarray(typical), np.asarray(log_sd)) if priors else None
    start = positive(typical, prior, floor=NOISE_FLOOR * typical, scale=typical)
    return start if given is None else stretched(start, float(given) / typical)


def typical_total(observations: Observations) -> float:
    """Return the median size of L 1: noise on totals grows with the regions."""
    return float(np.median(np.abs(observations.support.total))) or 1.0
