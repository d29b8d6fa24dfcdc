"""One observation process: values of a task, reported by a source, on a support."""

import copy
import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from mrgp.data.limits import as_values, censoring, check_limits, within
from mrgp.data.rows import check_domain, check_exposure, check_trials
from mrgp.data.strays import fill_values, shown_rows
from mrgp.likelihoods import as_likelihood
from mrgp.supports import Support, concat

SMALLEST = 1e-100


@dataclasses.dataclass(eq=False, repr=False)
class Observations:
    """Values of one task as one source reports them.

    `y` has one value for each region of the support; NaN is a missing value. `noise_variance` is
    the known noise variance (one number or one for each value); left out, it is learned.
    `likelihood` is how values scatter about what their regions see: a word, or a value such as
    `mrgp.Poisson()`. `exposure` (population, births, hours) multiplies what a region sees of the
    field, `trials` are those of a binomial. Values at or below a detection `limit`, or at or above
    an `upper_limit` (one number or one for each value), are censored: they are known only to lie
    beyond it. The pair (name, task) identifies the process. Where there are more values than memory
    holds, `stored` knows them all, and those that are here are a sample of them.

    >>> import mrgp
    >>> mrgp.Observations(mrgp.points([[0.0], [1.0]]), [3.0, float("nan")], task="no2", name="laqn")
    Observations(laqn, no2: 1 of 2 values observed; Points(2 means: x1 0 to 1))
    """

    support: Support
    y: Any
    _: dataclasses.KW_ONLY
    task: str = "value"
    name: str = "source"
    noise_variance: Any = None
    likelihood: Any = "gaussian"
    units: str | None = None
    exposure: Any = None
    trials: Any = None
    limit: Any = None
    upper_limit: Any = None
    stored: Any = None

    def __post_init__(self) -> None:
        self.task, self.name = str(self.task), str(self.name)
        self.units = self.units or None
        if not isinstance(self.support, Support):
            raise TypeError(
                f"{self.label}: the first argument must be a support such as mrgp.points(x); got"
                f" {type(self.support).__name__}."
            )
        self.y = self._check_values(self.y)
        self.noise_variance = self._check_noise(self.noise_variance)
        self.likelihood = as_likelihood(self.likelihood, self.label)
        if self.noise_variance is not None and self.likelihood.own != "noise_variance":
            raise ValueError(
                f"{self.label}: the likelihood {self.likelihood.name!r} has no noise variance;"
                " leave noise_variance= out."
            )
        self.trials = check_trials(self.trials, self.likelihood, self.y, self.label)
        self.exposure = check_exposure(self.exposure, self.likelihood, self.support, self.label)
        self.limit, self.upper_limit = check_limits(
            self.limit, self.upper_limit, self.y, self.likelihood, self.label
        )
        # What lies beyond a limit is as well reported as the limit itself.
        self.y = within(self.y, self.limit, self.upper_limit)
        check_domain(self.likelihood, self.y, self.trials, self.label)

    @property
    def label(self) -> str:
        """The process in words, for messages."""
        return f"source {self.name!r}, task {self.task!r}"

    @property
    def process(self) -> tuple[str, str]:
        """The pair (source, task)."""
        return self.name, self.task

    @property
    def censored(self) -> Float[np.ndarray, " n"] | None:
        """-1 for values known only to lie below their limit, 1 for those above; None if none is."""
        return censoring(self.y, self.limit, self.upper_limit)

    @property
    def conjugate(self) -> bool:
        """Whether a Gaussian field stays Gaussian given these values."""
        return self.likelihood.conjugate and self.censored is None

    @property
    def observed(self) -> Bool[np.ndarray, " n"]:
        """Which values are not missing."""
        return ~np.isnan(self.y)

    @property
    def count(self) -> int:
        """How many values there are, with those that stay where they are stored."""
        return int(self.observed.sum()) if self.stored is None else self.stored.observed

    @property
    def missing(self) -> int:
        """How many values are missing, with those that stay where they are stored."""
        return int((~self.observed).sum()) if self.stored is None else self.stored.missing

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: Any) -> "Observations":
        """Select values by slice, mask, integer array or integer."""
        rows = np.atleast_1d(np.arange(len(self))[index])
        by_row = ("support", "y", "noise_variance", "exposure", "trials", "limit", "upper_limit")
        # What was checked among all values is not checked again: what is a fill value among a few
        # of them may not be one among all.
        found = copy.copy(self)
        # Rows of a sample are no longer a sample of all.
        found.stored = None
        for name in (name for name in by_row if getattr(self, name) is not None):
            setattr(found, name, getattr(self, name)[rows])
        found._check_there(found.y)
        found.y.flags.writeable = False
        return found

    def replace(self, **changes: Any) -> "Observations":
        """Return a copy with some arguments changed."""
        return dataclasses.replace(self, **changes)

    def joined(self, *others: "Observations") -> "Observations":
        """Return these values and then those of others of the same process."""
        parts = (self, *others)
        both: dict[str, Any] = {"y": np.concatenate([part.y for part in parts])}
        for name in ("noise_variance", "exposure", "trials", "limit", "upper_limit"):
            given = [getattr(part, name) for part in parts]
            if 0 < sum(values is None for values in given) < len(parts):
                raise ValueError(
                    f"{self.label}: {name}= is known for some of the values and not for others;"
                    " give it for all or for none."
                )
            both[name] = None if given[0] is None else np.concatenate(given)
        return self.replace(support=concat(*(part.support for part in parts)), **both)

    def dropna(self) -> "Observations":
        """Return the observed values alone."""
        return self if self.observed.all() else self[self.observed]

    def to_frame(self) -> Any:
        """Return a data frame: regions, values under the task's name, noise variance if given.

        >>> import mrgp
        >>> mrgp.Observations(mrgp.points([[0.5]]), [3.0], task="no2").to_frame()
            x1  no2
        0  0.5  3.0
        """
        from mrgp.io.frames import to_frame

        return to_frame(self)

    def to_grid(self, like: Any = None, local: bool = False) -> Any:
        """Return an xarray DataArray, if the regions form a grid (see `Prediction.to_grid`)."""
        from mrgp.io.grids import to_grid

        return to_grid(self, like, local)

    def _check_values(self, y: Any) -> Float[np.ndarray, " n"]:
        values = as_values(y, f"{self.label}: y")
        if values.ndim != 1 or len(values) != len(self.support):
            raise ValueError(
                f"{self.label}: y must have shape ({len(self.support)},), one value for each region"
                f" of the support; got {values.shape}."
            )
        self._check_there(values)
        infinite = np.isinf(values)
        if infinite.any():
            raise ValueError(
                f"{self.label}: y is infinite in {infinite.sum()} of {len(values)} rows, first in"
                f" row {np.argmax(infinite)}. Use NaN for missing values."
            )
        fills = fill_values(values)
        if fills.any():
            raise ValueError(
                f"{self.label}: y is {values[np.argmax(fills)]:.6g} in {shown_rows(fills)}, which"
                " looks like a fill value. Use NaN for missing values."
            )
        size = np.nanmax(np.abs(values), initial=0.0)
        if 0 < size < SMALLEST:
            raise ValueError(
                f"{self.label}: y is {size:.3g} at most, whose square is no number any more. Give"
                " it in smaller units."
            )
        values.flags.writeable = False
        return values

    def _check_there(self, values: Float[np.ndarray, " n"]) -> None:
        if len(values) == 0:
            raise ValueError(f"{self.label}: there are no values. Leave the source out.")
        if np.isnan(values).all():
            raise ValueError(
                f"{self.label}: all {len(values)} values are missing (NaN). Leave the source out."
            )

    def _check_noise(self, noise: Any) -> Float[np.ndarray, " n"] | None:
        if noise is None:
            return None
        values = np.asarray(noise, dtype=np.float64)
        if values.shape not in ((), self.y.shape):
            raise ValueError(
                f"{self.label}: noise_variance must be one number or {len(self.y)}; got shape"
                f" {values.shape}."
            )
        values = np.broadcast_to(values, self.y.shape).copy()
        wrong = ~(np.isfinite(values) & (values > 0)) & self.observed
        if wrong.any():
            raise ValueError(
                f"{self.label}: noise_variance must be positive and finite; it is"
                f" {values[np.argmax(wrong)]} in row {np.argmax(wrong)}."
            )
        return np.where(np.isfinite(values) & (values > 0), values, 1.0)

    def __repr__(self) -> str:
        count = f"{self.observed.sum()} of {len(self)} values observed"
        if self.stored is not None:
            chunks = len(self.stored.counts)
            count = f"{self.count:,} values in {chunks} chunks, {len(self):,} of them in memory"
        return f"Observations({self.name}, {self.task}: {count}; {self.support})"
