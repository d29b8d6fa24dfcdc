"""Level, spread and noise of several tasks, as their sources report them (theory 3.1)."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.data import Dataset, Observations, Record, Scaling
from mrgp.models.recipe import Process
from mrgp.parameters import LogNormal, Parameter, fixed, positive, real
from mrgp.supports import Support

NOISE_SHARE = 0.1
NOISE_LOG_SD = 2.0
NOISE_FLOOR = 1e-6


class Tasks(eqx.Module):
    """y = L (mean_p + spread_p g_p) + noise, for functions g_p without units.

    `spread` is that of each task's data: what multiplies it is of order one in any units. Noise
    variances are those of each (source, task), in the user's units; `known_noise` has the mean of
    those that were given.

    >>> import mrgp
    >>> data = Dataset([Observations(mrgp.points([[0.0], [1.0]]), [1.0, 3.0], task="no2")])
    >>> tasks = Tasks.of(data, Scaling.of(data), zero_mean=False, priors=True)
    >>> tasks.observation_noise(data.processes[0])  # a tenth of the variance
    0.1
    """

    mean: Any
    spread: Float[AnyArray, " p"]
    noise_variance: dict[Process, Any]
    known_noise: dict[Process, Float[AnyArray, ""]]
    names: tuple[str, ...] = eqx.field(static=True)
    processes: tuple[Process, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, data: Dataset, scaling: Scaling, *, zero_mean: bool, priors: bool) -> "Tasks":
        """Start at the level of the data, with noise a tenth of their variance."""
        spread = np.asarray(scaling.scale)
        level = np.asarray(scaling.offset)
        # Values are centred at their level: a zero mean lies that much below.
        mean = fixed(-level) if zero_mean else real(np.zeros(len(spread)), scale=spread)
        known: dict[Process, Float[AnyArray, ""]] = {
            o.process: np.asarray(o.noise_variance[o.observed].mean())
            for o in data
            if o.noise_variance is not None
        }
        return cls(
            mean=mean,
            spread=spread,
            noise_variance={
                o.process: start_noise(
                    float(spread[scaling.index(o.task)]) * typical_total(o), priors
                )
                for o in data
                if o.noise_variance is None
            },
            known_noise=known,
            names=data.tasks,
            processes=data.processes,
        )

    def alone(self, process: int) -> "Tasks":
        """Return the same tasks, seen by one process."""
        return dataclasses.replace(self, processes=(self.processes[process],))

    def index(self, process: int) -> int:
        """Return the number of the task of a process."""
        return self.names.index(self.processes[process][1])

    def level(self, task: int, support: Support) -> Float[Array, " n"]:
        """Return L mean."""
        return self.mean[task] * jnp.asarray(support.total)

    def noise(self, process: int, record: Record) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return the noise variance and the composite weight of every row."""
        given = record.noise_variance
        noise = self.noise_variance[self.processes[process]] if given is None else given
        shape = record.y.shape
        return (
            jnp.broadcast_to(jnp.asarray(noise), shape),
            jnp.broadcast_to(jnp.asarray(record.weight), shape),
        )

    def with_noise_trained(self, trained: bool) -> "Tasks":
        """Return the tasks with noises that a fit may change, or must hold."""
        noises = {
            process: dataclasses.replace(noise, trainable=trained)
            for process, noise in self.noise_variance.items()
        }
        return dataclasses.replace(self, noise_variance=noises)

    def observation_noise(self, process: Process) -> float:
        """Return the noise variance of a new observation: learned, or the mean of those given."""
        if process in self.known_noise:
            return float(self.known_noise[process])
        return float(self.noise_variance[process].value)

    def named(self) -> dict[str, Parameter]:
        """Return the noises by name."""
        return {f"noise_variance[{s}, {t}]": v for (s, t), v in self.noise_variance.items()}

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return each task's mean and spread in the user's units, by name."""
        means = np.asarray(self.mean.value) + scaling.offset
        found = {f"mean[{t}]": np.asarray(v) for t, v in zip(self.names, means, strict=True)}
        spreads = zip(self.names, self.spread, strict=True)
        return found | {f"spread[{t}]": np.asarray(v) for t, v in spreads}


def start_noise(spread: float, priors: bool) -> Parameter:
    """Start a noise variance at a tenth of the data's."""
    typical = np.asarray(NOISE_SHARE * spread**2)
    prior = LogNormal(typical, np.asarray(NOISE_LOG_SD)) if priors else None
    return positive(typical, prior, floor=NOISE_FLOOR * spread**2, scale=typical)


def typical_total(observations: Observations) -> float:
    """Return the median size of L 1: noise on totals grows with the regions."""
    return float(np.median(np.abs(observations.support.total))) or 1.0
