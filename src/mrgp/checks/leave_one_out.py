"""Every value predicted from all the others, in closed form, for exact fits (theory 2.6)."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp._types import float64
from mrgp.checks.dense import Dense, dense
from mrgp.checks.residuals import Worst, check_residuals, describe
from mrgp.evaluation import evaluate_quietly
from mrgp.inference import Fit
from mrgp.prediction import Prediction
from mrgp.supports import Support

Vector = Float[np.ndarray, " n"]
OTHERWISE = (
    'Fit with method="exact" where the data are few enough, or compare predictions of held-out'
    " folds with mrgp.compare."
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LeftOut:
    """The observed values of one source, and what all other values say of each.

    `mean` and `variance` are those of the value itself, noise included. Missing values are left
    out: rows are those of the source's observed values, in order.
    """

    source: str
    task: str
    units: str | None
    support: Support
    y: Vector
    mean: Vector
    variance: Vector

    def __len__(self) -> int:
        return len(self.y)

    @property
    def residuals(self) -> Vector:
        """Value minus prediction, in standard deviations: N(0, 1) each if the model is right."""
        return (self.y - self.mean) / np.sqrt(self.variance)

    def prediction(self) -> Prediction:
        """Return the same as a `Prediction`, with quantiles, tables and probabilities."""
        return Prediction(
            support=self.support,
            task=self.task,
            source=self.source,
            units=self.units,
            component_weights=np.ones((1, len(self))),
            means=self.mean[None],
            variances=self.variance[None],
        )

    def __repr__(self) -> str:
        error = np.sqrt(np.mean((self.y - self.mean) ** 2))
        units = f" {self.units}" if self.units else ""
        return f"LeftOut({self.source}, {self.task}: {len(self)} values, rmse {error:.4g}{units})"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut:
    """What the other values say of each, by source; `loo["sensors"]` is one of them.

    `covariance` is that of all standardised residuals under the model, and `ties` the covariance
    of the values, by which neighbours are found.

    >>> import mrgp
    >>> x = np.linspace(0.0, 6.0, 12)[:, None]
    >>> seen = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]), name="sensors")
    >>> loo = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen])).leave_one_out()
    >>> loo["sensors"].residuals.shape
    (12,)
    """

    parts: tuple[LeftOut, ...]
    covariance: Float[np.ndarray, "n n"]
    ties: Float[np.ndarray, "n n"]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __iter__(self) -> Iterator[LeftOut]:
        return iter(self.parts)

    def __getitem__(self, source: Any) -> LeftOut:
        """Return one source, by its name or by (source, task)."""
        found = [p for p in self.parts if source in (p.source, (p.source, p.task))]
        if len(found) != 1:
            what = "several tasks" if found else "no values"
            known = [(p.source, p.task) for p in self.parts]
            raise KeyError(f"{source!r} has {what}; the processes are {known}.")
        return found[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The sources by name, with the task where there are several."""
        one = len({p.task for p in self.parts}) == 1
        return tuple(p.source if one else f"{p.source}, {p.task}" for p in self.parts)

    @property
    def y(self) -> Vector:
        """The values of all sources, one source after another."""
        return np.concatenate([p.y for p in self.parts])

    @property
    def mean(self) -> Vector:
        """What the others say of each value."""
        return np.concatenate([p.mean for p in self.parts])

    @property
    def variance(self) -> Vector:
        """The variance of each value given the others, noise included."""
        return np.concatenate([p.variance for p in self.parts])

    @property
    def residuals(self) -> Vector:
        """Values minus predictions, in standard deviations."""
        return np.concatenate([p.residuals for p in self.parts])

    def scores(self) -> dict[str, dict[str, float]]:
        """Return the scores of `mrgp.evaluate` for each source, and for all under "overall"."""
        found = {
            name: evaluate_quietly(part.prediction(), part.y)
            for name, part in zip(self.names, self.parts, strict=True)
        }
        # Scores do not look at places; those of several sources need not be of one kind.
        whole = dataclasses.replace(self.parts[0], y=self.y, mean=self.mean, variance=self.variance)
        return found | {"overall": evaluate_quietly(whole.prediction(), whole.y)}

    def summary(self) -> str:
        """Tell whether the residuals are what the model expects, and which values are farthest."""
        checks = [
            check_residuals(part.residuals, self.covariance[rows, rows], self.ties[rows, rows])
            for part, rows in self._rows()
        ]
        errors = [float(np.sqrt(np.mean((p.y - p.mean) ** 2))) for p in self.parts]
        units = [p.units for p in self.parts]
        return describe(self.names, errors, units, checks, self.worst())

    def worst(self, count: int = 5) -> tuple[Worst, ...]:
        """Return the values farthest from what the others say, in standard deviations."""
        order = np.argsort(-np.abs(self.residuals), kind="stable")[:count]
        found = []
        for i in map(int, order):
            name, part, rows = next(
                (name, part, rows)
                for name, (part, rows) in zip(self.names, self._rows(), strict=True)
                if rows.start <= i < rows.stop
            )
            found.append(Worst.of(name, i - rows.start, part))
        return tuple(found)

    def _rows(self) -> Iterator[tuple[LeftOut, slice]]:
        start = 0
        for part in self.parts:
            yield part, slice(start, start + len(part))
            start += len(part)

    def __repr__(self) -> str:
        parts = ", ".join(f"{n}: {len(p)}" for n, p in zip(self.names, self.parts, strict=True))
        return f"LeaveOneOut({parts} values; residual sd {self.residuals.std():.3g})"


@float64
def leave_one_out(fit: Fit) -> LeaveOneOut:
    """Predict every value of an exact fit from all the others, with its parameters held.

    >>> import mrgp
    >>> x = np.linspace(0.0, 6.0, 12)[:, None]
    >>> seen = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]), name="sensors")
    >>> len(leave_one_out(mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]))))
    12
    """
    found = dense(fit, "leave_one_out", OTHERWISE)
    precision = (found.root**2).sum(0)
    mean = found.y - found.alpha / precision
    # A held-out value has the noise s2, whatever weight it would have had.
    variance = 1 / precision - found.tempered
    parts = tuple(
        LeftOut(
            source=process[0],
            task=process[1],
            units=fit.units.get(process[1]),
            support=found.supports[process],
            y=found.y[rows],
            mean=mean[rows],
            variance=variance[rows],
        )
        for process, rows in found.rows.items()
    )
    covariance = _residual_covariance(found, precision * np.sqrt(variance))
    return LeaveOneOut(parts, covariance, found.covariance)


def _residual_covariance(found: Dense, scale: Vector) -> Float[np.ndarray, "n n"]:
    """Return the covariance of C^-1 e / scale, for e with the covariance of the values."""
    inverse = found.root.T @ found.root
    spread = inverse - (inverse * found.tempered) @ inverse
    return spread / np.outer(scale, scale)
