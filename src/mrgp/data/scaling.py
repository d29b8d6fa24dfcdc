"""The affine maps between the user's units and the model's: inputs are centred, tasks are offset.

Kernels and noises stay in the user's units. `scale` is the spread of a task; starting values,
default priors and the optimiser's coordinates are relative to it.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from mrgp._compiled import MOST, filled
from mrgp._types import AnyArray, Scalar, Vector
from mrgp.data.dataset import Dataset
from mrgp.data.observations import Observations
from mrgp.data.processes import process_weights
from mrgp.likelihoods import GAUSSIAN, Likelihood
from mrgp.supports import Geometry, Lattice, Shapes, Support, congruent, lattice_of


class Record(eqx.Module):
    """The observed values of one process in centred coordinates, with their composite weight.

    Where the rows were filled up to a size for which code is compiled, `used` is 1 for those that
    count and 0 for the others.

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
    used: Vector | None = None
    lattice: Lattice | None = None
    exposure: Vector | None = None
    trials: Vector | None = None
    censored: Vector | None = None

    def __len__(self) -> int:
        return self.y.shape[0]

    @property
    def weights(self) -> Vector:
        """The weight of each row: none for those that are not used."""
        rows = jnp.broadcast_to(jnp.asarray(self.weight), self.y.shape)
        return rows if self.used is None else rows * self.used

    def filled(self) -> "Record":
        """Return the record with its last row repeated up to a size for which code is compiled."""
        count = len(self)
        if count > MOST:
            return self
        rows = filled(count)
        shapes = None if self.shapes is None else self.shapes.filled()
        lattice = None if self.lattice is None else self.lattice.filled()
        used = (np.arange(len(rows)) < count).astype(float)
        return dataclasses.replace(
            dataclasses.replace(self, shapes=shapes, lattice=lattice).take(rows), used=used
        )

    def take(self, rows: Int[AnyArray, " b"]) -> "Record":
        """Return some rows."""
        by_row = ("support", "y", "noise_variance", "shapes", "used", "lattice")
        by_row += ("exposure", "trials", "censored")
        given = {name: getattr(self, name) for name in by_row if getattr(self, name) is not None}
        return dataclasses.replace(self, **{name: part[rows] for name, part in given.items()})

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
    def of(cls, data: Dataset, shifted: bool = True) -> "Scaling":
        """Measure a dataset: one affine map for each task, never for each source.

        Fields behind a link are not `shifted`, and counts have no units (theory 11.1).
        """
        measure = _offset_and_scale if shifted else _scale_alone
        maps = [measure(data.select(task=task)) for task in data.tasks]
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

    def record(self, observations: Observations, weight: Any = 1.0, bare: bool = False) -> Record:
        """Centre the observed values of a process; `bare` without looking for regions alike."""
        seen = observations.dropna()
        support = seen.support.shift(self.centre)
        y = seen.y - self.offset[self.index(seen.task)] * np.asarray(support.total)
        weight = np.asarray(weight, np.float64)
        shapes = None if bare else congruent(support)
        known = None if bare else lattice_of(support)
        return Record(
            support,
            y,
            seen.noise_variance,
            weight,
            shapes,
            seen.likelihood,
            lattice=known,
            exposure=seen.exposure,
            trials=seen.trials,
            censored=seen.censored,
        )

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
    def of(cls, data: Dataset, shifted: bool = True) -> "Frame":
        """Measure a dataset."""
        return cls(Scaling.of(data, shifted), Geometry.of(data.supports))


def spread_of(observed: Observations) -> float:
    """Return the spread of the field behind some values, whether they are means or totals.

    >>> import mrgp
    >>> spread_of(mrgp.Observations(mrgp.points([[0.0], [2.0]]), [3.0, 5.0]))
    1.0
    """
    return _offset_and_scale(Dataset([observed]))[1]


def _scale_alone(data: Dataset) -> tuple[float, float]:
    measured = [o for o in data if o.likelihood.domain not in ("count", "successes")]
    return 0.0, _offset_and_scale(Dataset(measured))[1] if measured else 1.0


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
