"""Every value predicted from all the others, in closed form, for exact fits (theory 2.6)."""

import dataclasses
import itertools
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp._types import float64
from mrgp.checks.dense import Dense, dense
from mrgp.checks.residuals import ResidualCheck, Worst, check_residuals, describe
from mrgp.evaluation import evaluate
from mrgp.inference import Fit
from mrgp.prediction import Prediction
from mrgp.supports import Support

Vector = Float[np.ndarray, " n"]
OTHERWISE = (
    'Fit with method="exact" where the data are few enough, or compare predictions of held-out'
    " folds with mrgp.compare."
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class _Compared:
    """Values, with mean and variance of what others say of each, noise included."""

    y: Vector
    mean: Vector
    variance: Vector

    def __len__(self) -> int:
        return len(self.y)

    @property
    def residuals(self) -> Vector:
        """Value minus prediction, in standard deviations: N(0, 1) each if the model is right."""
        return (self.y - self.mean) / np.sqrt(self.variance)

    @property
    def rmse(self) -> float:
        """The root of the mean squared error."""
        return float(np.sqrt(np.mean((self.y - self.mean) ** 2)))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LeftOut(_Compared):
    """The observed values of one source, and what all other values say of each.

    Missing values are left out: rows are those of the source's observed values, in order.
    """

    source: str
    task: str
    units: str | None
    support: Support

    def prediction(self) -> Prediction:
        """Return the same as a `Prediction`, with quantiles, tables and probabilities."""
        about = (self.support, self.task, self.source, self.units)
        return Prediction(*about, np.ones((1, len(self))), self.mean[None], self.variance[None])

    def __repr__(self) -> str:
        found = f"{len(self)} values, rmse {self.rmse:.4g}{f' {self.units}' if self.units else ''}"
        return f"LeftOut({self.source}, {self.task}: {found})"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut(_Compared):
    """What the other values say of each, by source; `loo["sensors"]` is one of them.

    `y`, `mean`, `variance` and `residuals` are of all sources, one source after another.
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
    def named(self) -> dict[str, LeftOut]:
        """The sources by name, with the task where there are several."""
        one = len({p.task for p in self.parts}) == 1
        return {p.source if one else f"{p.source}, {p.task}": p for p in self.parts}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sources."""
        return tuple(self.named)

    def scores(self) -> dict[str, dict[str, float]]:
        """Return the scores of `mrgp.evaluate` for each source, and for all under "overall"."""
        found = {n: evaluate(p.prediction(), p.y) for n, p in self.named.items()}
        # Scores do not look at places; those of several sources need not be of one kind.
        whole = dataclasses.replace(self.parts[0], y=self.y, mean=self.mean, variance=self.variance)
        return found | {"overall": evaluate(whole.prediction(), whole.y)}

    @cached_property
    def checks(self) -> tuple[ResidualCheck, ...]:
        """What the residuals of each source say of the model."""
        ends = np.cumsum([0, *map(len, self.parts)])
        blocks = [slice(*pair) for pair in itertools.pairwise(ends)]
        return tuple(
            check_residuals(
                self.residuals[rows], self.covariance[rows, rows], self.ties[rows, rows]
            )
            for rows in blocks
        )

    def summary(self) -> str:
        """Tell whether the residuals are what the model expects, and which values are farthest."""
        return describe(self.named, self.checks, self.worst())

    def worst(self, count: int = 5) -> tuple[Worst, ...]:
        """Return the values farthest from what the others say, in standard deviations."""
        order = np.argsort(-np.abs(self.residuals), kind="stable")[:count]
        rows = [(name, row, p) for name, p in self.named.items() for row in range(len(p))]
        return tuple(Worst.of(*rows[i]) for i in order)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {len(part)}" for name, part in self.named.items())
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
    parts = []
    for (source, task), rows in found.rows.items():
        about = (source, task, fit.units.get(task), found.supports[source, task])
        parts.append(LeftOut(found.y[rows], mean[rows], variance[rows], *about))
    covariance = _residual_covariance(found, precision * np.sqrt(variance))
    return LeaveOneOut(found.y, mean, variance, tuple(parts), covariance, found.covariance)


def _residual_covariance(found: Dense, scale: Vector) -> Float[np.ndarray, "n n"]:
    """Return the covariance of C^-1 e / scale, for e with the covariance of the values."""
    inverse = found.root.T @ found.root
    spread = inverse - (inverse * found.tempered) @ inverse
    return spread / np.outer(scale, scale)
