"""The affine maps between the user's units and the model's: inputs are centred, tasks are offset.

Kernels and noises stay in the user's units. `scale` is the spread of a task; starting values,
default priors and the optimiser's coordinates are relative to it.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from mrgp._types import AnyArray, Scalar, Vector
from mrgp.data.dataset import Dataset
from mrgp.data.observations import Observations
from mrgp.data.processes import process_weights
from mrgp.likelihoods import GAUSSIAN, Likelihood
from mrgp.supports import Geometry, Shapes, Support, congruent


class Record(eqx.Module):
    """The observed values of one process in centred coordinates, with their composite weight.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [2.0]]), [3.0, 5.0])
    >>> record = Scaling.of(Dataset([seen])).record(seen)
    >>> record.support.x.ravel(), record.y
    (array([-1.,  1.]), array([-1.,  1.]))
    """

    support: Support
    y: Vector
    noise_variance: Vector | None
    weight: Scalar
    shapes: Shapes | None = None
    likelihood: Likelihood = eqx.field(static=True, default=GAUSSIAN)

    def __len__(self) -> int:
        return self.y.shape[0]

    def take(self, rows: Int[AnyArray, " b"]) -> "Record":
        """Return some rows."""
        return dataclasses.replace(
            self,
            support=self.support[rows],
            y=self.y[rows],
            noise_variance=None if self.noise_variance is None else self.noise_variance[rows],
            shapes=None if self.shapes is None else self.shapes[rows],
        )

    def batch(self, rows: Int[AnyArray, " b"]) -> "Record":
        """Return a minibatch, weighted so that its mean over all batches is the whole."""
        return dataclasses.replace(
            self.take(rows), weight=self.weight * (len(self) / rows.shape[0])
        )


class Scaling(eqx.Module):
    """Where the inputs are centred, and each task's offset and spread.

    For totals the offset acts through L 1: a region of twice the measure is offset twice as much.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [2.0]]), [3.0, 5.0])
    >>> scaling = Scaling.of(Dataset([seen]))
    >>> scaling.centre, scaling.offset, scaling.scale
    (array([1.]), array([4.]), array([1.]))
    """

    centre: Float[np.ndarray, " d"]
    tasks: tuple[str, ...] = eqx.field(static=True)
    offset: Float[np.ndarray, " p"]
    scale: Float[np.ndarray, " p"]

    @classmethod
    def of(cls, data: Dataset) -> "Scaling":
        """Measure a dataset: one affine map for each task, never for each source."""
        maps = [_offset_and_scale(data.select(task=task)) for task in data.tasks]
        offset, scale = np.array(maps).T
        return cls(Geometry.of(data.supports).centre, data.tasks, offset, scale)

    @classmethod
    def plain(cls, data: Dataset) -> "Scaling":
        """Leave inputs and values as they are: each part of the model centres its own."""
        found = cls.of(data)
        return cls(np.zeros_like(found.centre), data.tasks, 0 * found.offset, found.scale)

    def index(self, task: str) -> int:
        """Return the position of a task."""
        return self.tasks.index(task)

    def record(self, observations: Observations, weight: Any = 1.0) -> Record:
        """Centre the observed values of a process."""
        seen = observations.dropna()
        support = seen.support.shift(self.centre)
        y = seen.y - self.offset[self.index(seen.task)] * np.asarray(support.total)
        weight = np.asarray(weight, np.float64)
        shapes = congruent(support)
        return Record(support, y, seen.noise_variance, weight, shapes, seen.likelihood)

    def records(self, data: Dataset, weights: Mapping[Any, float] | None = None) -> "Records":
        """Centre the observed values of all processes, each with its composite weight."""
        given = process_weights(weights, data.processes)
        return tuple(self.record(o, given[o.process]) for o in data)


Records = tuple[Record, ...]


class Frame(NamedTuple):
    """The scaling of a dataset, and the lengths that its supports speak of: measured once.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [2.0]]), [3.0, 5.0])
    >>> frame = Frame.of(Dataset([seen]))
    >>> frame.geometry.extent, frame.scaling.offset
    (array([2.]), array([4.]))
    """

    scaling: Scaling
    geometry: Geometry

    @classmethod
    def of(cls, data: Dataset) -> "Frame":
        """Measure a dataset."""
        return cls(Scaling.of(data), Geometry.of(data.supports))


def spread_of(observed: Observations) -> float:
    """Return the spread of the field behind some values, whether they are means or totals.

    >>> import mrgp
    >>> spread_of(mrgp.Observations(mrgp.points([[0.0], [2.0]]), [3.0, 5.0]))
    1.0
    """
    return _offset_and_scale(Dataset([observed]))[1]


def _offset_and_scale(data: Dataset) -> tuple[float, float]:
    seen = data.dropna()
    y = np.concatenate([o.y for o in seen])
    total = np.concatenate([np.asarray(o.support.total) for o in seen])
    measure = float(total @ total)
    if measure == 0:
        return 0.0, float(np.std(y)) or 1.0
    offset = float(total @ y) / measure
    residual = y - offset * total
    if np.ptp(np.abs(total)) <= 1e-9 * np.abs(total).max():
        scale = float(np.sqrt(residual @ residual / measure))
    else:
        # Totals of very different regions: each region's density counts alike, outliers little.
        densities = residual[total != 0] / total[total != 0]
        scale = float(np.median(np.abs(densities)) * 1.4826)
    # A constant field has no spread of its own: its level, or one, stands in.
    return offset, scale if scale > 1e-13 * abs(offset) else abs(offset) or 1.0
