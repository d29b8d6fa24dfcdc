"""One observation process: values of a task, reported by a source, on a support."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from mrgp.data.limits import as_values, check_limit, refuse_below
from mrgp.likelihoods import as_likelihood
from mrgp.supports import Support

LARGEST = 1e100


@dataclasses.dataclass(eq=False, repr=False)
class Observations:
    """Values of one task as one source reports them.

    `y` has one value for each region of the support; NaN is a missing value. `noise_variance` is
    the known noise variance (one number or one for each value); left out, it is learned.
    `likelihood` is how values scatter about what their regions see. `limit` is a detection limit
    (one number or one for each value): values at or below it are refused, because they are known
    only to lie below, and `mrgp.below_limit` has what may take their place.
    The pair (name, task) identifies the process.

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
    limit: Any = None

    def __post_init__(self) -> None:
        self.task, self.name = str(self.task), str(self.name)
        if not isinstance(self.support, Support):
            raise TypeError(
                f"{self.label}: the first argument must be a support such as mrgp.points(x); got"
                f" {type(self.support).__name__}."
            )
        self.y = self._check_values(self.y)
        self.noise_variance = self._check_noise(self.noise_variance)
        self.likelihood = as_likelihood(self.likelihood, self.label)
        if self.limit is not None:
            self.limit = check_limit(self.limit, self.y, self.label)
            refuse_below(self.y, self.limit, self.label)

    @property
    def label(self) -> str:
        """The process in words, for messages."""
        return f"source {self.name!r}, task {self.task!r}"

    @property
    def process(self) -> tuple[str, str]:
        """The pair (source, task)."""
        return self.name, self.task

    @property
    def observed(self) -> Bool[np.ndarray, " n"]:
        """Which values are not missing."""
        return ~np.isnan(self.y)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: Any) -> "Observations":
        """Select values by slice, mask, integer array or integer."""
        if isinstance(index, int | np.integer):
            index = np.arange(len(self))[index, None]
        by_row = ("support", "y", "noise_variance", "limit")
        given = {name: getattr(self, name) for name in by_row if getattr(self, name) is not None}
        return self.replace(**{name: values[index] for name, values in given.items()})

    def replace(self, **changes: Any) -> "Observations":
        """Return a copy with some arguments changed."""
        return dataclasses.replace(self, **changes)

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
        if len(values) == 0:
            raise ValueError(f"{self.label}: there are no values. Leave the source out.")
        infinite = np.isinf(values)
        if infinite.any():
            raise ValueError(
                f"{self.label}: y is infinite in {infinite.sum()} of {len(values)} rows, first in"
                f" row {np.argmax(infinite)}. Use NaN for missing values."
            )
        huge = np.abs(values) > LARGEST
        if huge.any():
            raise ValueError(
                f"{self.label}: y is {values[np.argmax(huge)]:.3g} in row {np.argmax(huge)}, which"
                " looks like a fill value. Use NaN for missing values."
            )
        if np.isnan(values).all():
            raise ValueError(
                f"{self.label}: all {len(values)} values are missing (NaN). Leave the source out."
            )
        values.flags.writeable = False
        return values

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
        return f"Observations({self.name}, {self.task}: {count}; {self.support})"
