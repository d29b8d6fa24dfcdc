"""How sources read latent functions: one field with biases, or tasks that mix several functions."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray
from mrgp.data import Scaling
from mrgp.gp import Kernels
from mrgp.kernels import kernel_parameters
from mrgp.models.contract import Process
from mrgp.parameters import Parameter, fixed, real
from mrgp.supports import Support


class OneField(eqx.Module):
    """c + r L (mean + f) + L d of one latent field f, with c = 0 and r = 1 for the target.

    An offset acts through L 1, so that c is a bias of the field in the field's units, for means
    and totals alike. `mean` is a constant, or a constant and slopes. Sources `apart` have a latent
    function d each, in this order after f: what they alone see. What is asked for without a source
    is what the target sees.

    >>> bias = OneField(jnp.zeros(1), {"model": 2.0}, {"model": 0.5}, target="sites")
    >>> float(bias.ratio("model", "no2")[0]), float(bias.ratio("sites", "no2")[0])
    (0.5, 1.0)
    """

    mean: Any
    offset: dict[str, Any]
    ratios: dict[str, Any]
    target: str = eqx.field(static=True)
    apart: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def coupling(self) -> tuple[Any, ...]:
        """Biases, which are between sources."""
        return (self.offset, self.ratios) if self.offset or self.ratios else ()

    def ratio(self, source: str | None, task: str) -> Float[Array, " q"]:
        """Return r of a source, and 1 for the function that is its own."""
        source = self.target if source is None else source
        of_field = jnp.asarray(self.ratios.get(source, 1.0))
        own = np.array([float(source == name) for name in self.apart])
        return jnp.concatenate([of_field[None], own])

    def level(self, support: Support, source: str | None, task: str) -> Float[Array, " n"]:
        """Return c L1 + r L mean."""
        total = jnp.asarray(support.total)
        basis = jnp.concatenate([total[:, None], jnp.asarray(support.moment)], 1)
        mean = basis[:, : self.mean.shape[0]] @ self.mean
        offset = self.offset.get(source, 0.0) if source is not None else 0.0
        return offset * total + self.ratio(source, task)[0] * mean

    def label(self, process: Process) -> str:
        """Return the source: there is one task."""
        return process[0]

    def named(self) -> dict[str, Parameter]:
        """Return the biases by name."""
        found = {f"offset[{source}]": value for source, value in self.offset.items()}
        return found | {f"ratio[{source}]": value for source, value in self.ratios.items()}

    def kernels_named(self, kernels: Kernels, inputs: tuple[str, ...]) -> dict[str, Parameter]:
        """Return the kernel's parameters; kernels inside others go by their class and inputs.

        Those of what a source has of its own go by its name.
        """
        found = kernel_parameters(kernels[0], inputs)
        for source, kernel in zip(self.apart, kernels[1:], strict=True):
            of_source = kernel_parameters(kernel, inputs).items()
            found |= {f"own[{source}].{name}": value for name, value in of_source}
        return found

    def values(self, found: dict[str, Array], scaling: Scaling) -> dict[str, Array]:
        """Return biases and mean in the user's units."""
        level = jnp.asarray(scaling.offset[0])
        for source in self.offset:
            # Values are centred before c + r L f: undoing that moves (1 - r) levels into c.
            ratio = found.get(f"ratio[{source}]", 1.0)
            found[f"offset[{source}]"] = found[f"offset[{source}]"] + (1 - ratio) * level
        mean = jnp.asarray(self.mean.value)
        constant, slopes = mean[:1], mean[1:]
        if len(slopes):
            level = level - slopes @ jnp.asarray(scaling.centre)[: len(slopes)]
            found["mean.slope"] = slopes
        return found | {"mean.constant": level + constant.sum()}

    def account(self, latents: int) -> str:
        """Say nothing: one field is what one expects."""
        return ""


class Levels(eqx.Module):
    """mean_p + spread_p g_p of each task p, for functions g_p without units (theory 3.1).

    `spread` is that of each task's data: what multiplies it is of order one in any units.

    >>> from mrgp import points
    >>> levels = Levels(jnp.array([3.0, 5.0]), np.ones(2), ("no2", "o3"))
    >>> levels.level(points([[0.0]]), "o3").tolist()
    [5.0]
    """

    mean: Any
    spread: Float[AnyArray, " p"]
    names: tuple[str, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, scaling: Scaling, zero_mean: bool) -> "Levels":
        """Start at the level of the data."""
        spread, level = np.asarray(scaling.scale), np.asarray(scaling.offset)
        # Values are centred at their level: a zero mean lies that much below.
        mean = fixed(-level) if zero_mean else real(np.zeros(len(spread)), scale=spread)
        return cls(mean, spread, scaling.tasks)

    def index(self, task: str) -> int:
        """Return the number of a task."""
        return self.names.index(task)

    def level(self, support: Support, task: str) -> Float[Array, " n"]:
        """Return L mean."""
        return self.mean[self.index(task)] * jnp.asarray(support.total)

    def values(self, scaling: Scaling) -> dict[str, Array]:
        """Return each task's mean and spread in the user's units, by name."""
        means = jnp.asarray(self.mean.value) + jnp.asarray(scaling.offset)
        found = {f"mean[{t}]": means[i] for i, t in enumerate(self.names)}
        return found | {
            f"spread[{t}]": jnp.asarray(self.spread)[i] for i, t in enumerate(self.names)
        }


class Mixed(eqx.Module):
    """g_p = sum_q W_pq f_q with constant weights, trained under the prior of a constant kernel.

    >>> levels = Levels(jnp.zeros(2), np.array([1.0, 10.0]), ("no2", "o3"))
    >>> Mixed(jnp.array([[1.0, 2.0], [3.0, 4.0]]), levels).ratio(None, "o3").tolist()
    [30.0, 40.0]
    """

    weights: Any
    levels: Levels

    @property
    def coupling(self) -> tuple[Any, ...]:
        """Weights between tasks."""
        return (self.weights,) if len(self.levels.names) > 1 else ()

    def ratio(self, source: str | None, task: str) -> Float[Array, " q"]:
        """Return the weights of a task, in its units."""
        p = self.levels.index(task)
        return jnp.asarray(self.levels.spread[p] * self.weights[p])

    def level(self, support: Support, source: str | None, task: str) -> Float[Array, " n"]:
        """Return L mean of the task."""
        return self.levels.level(support, task)

    def label(self, process: Process) -> str:
        """Return source and task."""
        return ", ".join(process)

    def named(self) -> dict[str, Parameter]:
        """Return nothing: weights are told task by task, in `values`."""
        return {}

    def kernels_named(self, kernels: Kernels, inputs: tuple[str, ...]) -> dict[str, Parameter]:
        """Return the parameters of the latent functions, numbered from one."""
        return latent_parameters(kernels, inputs)

    def values(self, found: dict[str, Array], scaling: Scaling) -> dict[str, Array]:
        """Return weights, means and spreads in the user's units."""
        rows = jnp.asarray(self.weights.value) * jnp.asarray(self.levels.spread)[:, None]
        weights = {f"W[{t}]": rows[i] for i, t in enumerate(self.levels.names)}
        return found | weights | self.levels.values(scaling)

    def account(self, latents: int) -> str:
        """Say how many latent functions there are."""
        many = "function" if latents == 1 else "functions"
        return f"linear coregionalised model, {latents} latent {many}, "


Readout = OneField | Mixed
"""What a source reads of a task: level + sum_q ratio_q L f_q; without a source, the task itself."""


def latent_parameters(kernels: Kernels, inputs: tuple[str, ...]) -> dict[str, Parameter]:
    """Return the parameters of the kernels of latent functions, by name."""
    return {
        f"f{i + 1}.{name.removeprefix('kernel.')}": parameter
        for i, kernel in enumerate(kernels)
        for name, parameter in kernel_parameters(kernel, inputs).items()
    }
