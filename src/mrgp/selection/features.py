"""What a regression may know of a place and a time: covariates, and what other sources say."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from mrgp.data import Dataset, Observations
from mrgp.selection.sightings import SAME, Layout, covariate_names
from mrgp.supports import Support

Columns = dict[str, np.ndarray]
"""Numbers (float) or categories (text), by name, one for each row."""


def covariates_of(support: Support, given: Mapping[str, Any] | None = None) -> Columns:
    """Return the covariates of each region: those that the support knows, and those given.

    >>> import mrgp
    >>> covariates_of(mrgp.points([[0.0], [1.0]]), {"type": ["kerb", "park"]})["type"].tolist()
    ['kerb', 'park']
    """
    found = {}
    for name in covariate_names(support):
        column = support.input_names.index(name)
        levels = support.categories.get(column)
        if levels is None:
            found[name] = support.centres[:, column]
        else:
            found[name] = np.array([*levels, ""])[_prevailing(support, column, len(levels))]
    for name, column in (given or {}).items():
        values = np.asarray(column)
        if values.shape != (len(support),):
            raise ValueError(
                f"The covariate {name!r} has shape {values.shape}; there are {len(support)} regions"
                " and one value is needed for each."
            )
        number = np.issubdtype(values.dtype, np.number) or values.dtype == bool
        found[name] = values.astype(np.float64 if number else str)
    return found


def _prevailing(support: Support, column: int, levels: int) -> Int[np.ndarray, " n"]:
    """Return the code that most of each region has; one below zero is that of no category."""
    inside = support.quadrature()
    codes, weights = np.rint(np.asarray(inside.x)[..., column]), np.asarray(inside.weights)
    shares = [np.where(codes == code, weights, 0.0).sum(1) for code in range(-1, levels)]
    return np.argmax(shares, axis=0) - 1


def is_category(column: np.ndarray) -> bool:
    """Tell whether a covariate has names for values."""
    return column.dtype.kind in "US"


@dataclasses.dataclass(frozen=True)
class Encoding:
    """How covariates become columns of a regression: numbers standardised, a column a category.

    Numbers that are missing are the mean; a category that was never seen has no level.

    >>> encoding = Encoding.of({"type": np.array(["kerb", "park"]), "road": np.array([1.0, 3.0])})
    >>> encoding({"type": np.array(["park", "mars"]), "road": np.array([5.0, np.nan])}).tolist()
    [[0.0, 1.0, 3.0], [0.0, 0.0, 0.0]]
    """

    levels: Mapping[str, tuple[str, ...]]
    scales: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, columns: Columns) -> "Encoding":
        """Learn categories, means and standard deviations."""
        levels, scales = {}, {}
        for name, column in columns.items():
            if is_category(column):
                levels[name] = tuple(np.unique(column).tolist())
            elif np.isfinite(column).any():
                spread = float(np.nanstd(column))
                scales[name] = (float(np.nanmean(column)), spread if spread > 0 else 1.0)
        return cls(levels, scales)

    @property
    def categorical(self) -> int:
        """How many of the first columns are of categories."""
        return sum(map(len, self.levels.values()))

    def __call__(self, columns: Columns) -> Float[np.ndarray, "n k"]:
        """Return the columns of a regression."""
        names = [*self.levels, *self.scales]
        missing = [name for name in names if name not in columns]
        if missing:
            raise ValueError(
                f"The rule was fitted with the covariate {missing[0]!r}, which is not given here."
                " Give it for every region that is to be predicted."
            )
        flags = [columns[n][:, None] == np.array(levels) for n, levels in self.levels.items()]
        numbers = [
            np.nan_to_num((columns[name] - mean) / spread)[:, None]
            for name, (mean, spread) in self.scales.items()
        ]
        return np.concatenate([*flags, *numbers], 1).astype(np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class Others:
    """What sources other than the target say at a place and a time.

    A source says what its region there has, or else the nearest one at that time; of two times,
    the nearer.

    >>> import mrgp
    >>> cells = mrgp.Observations(mrgp.intervals([0.0, 1.0], [1.0, 2.0]), [5.0, 7.0], name="cells")
    >>> here = mrgp.Observations(mrgp.points([[0.9]]), [1.0], name="here")
    >>> others = Others(mrgp.Dataset([here, cells]), ("here", "value"), Layout((0,), None, (1.0,)))
    >>> others(np.array([[0.9], [1.2]]), np.zeros(2))
    {'cells, value': array([5., 7.])}
    """

    data: Dataset
    target: tuple[str, str]
    layout: Layout

    def __call__(
        self, centres: Float[np.ndarray, "n d"], times: Float[np.ndarray, " n"]
    ) -> Columns:
        """Return a column of values for each of the other sources."""
        space = centres[:, self.layout.space]
        others = [o.dropna() for o in self.data if o.process != self.target]
        return {", ".join(o.process): self._said(o, space, times) for o in others}

    def _said(self, other: Observations, space: Any, times: Any) -> Float[np.ndarray, " n"]:
        lower, upper = (np.asarray(side) for side in other.support.bounds)
        centres, columns, clock = other.support.centres, list(self.layout.space), self.layout.clock
        width = np.median(upper - lower, axis=0)[columns]
        # Along cells of one size, the nearest centre in units of their sides is that of the cell.
        unit = np.where(width > 0, width, np.array(self.layout.scale) if not width.any() else 1.0)
        y = other.y / np.asarray(other.support.total)
        if clock is None:
            return _nearest(centres[:, columns] / unit, y, space / unit)
        found = np.empty(len(times))
        middle, slack = centres[:, clock], SAME * max(np.ptp(centres[:, clock]), 1.0)
        for time in np.unique(times):
            mine = times == time
            there = (lower[:, clock] - slack <= time) & (time <= upper[:, clock] + slack)
            if not there.any():
                away = np.abs(middle - time)
                there = away <= away.min() + slack
            found[mine] = _nearest(centres[there][:, columns] / unit, y[there], space[mine] / unit)
        return found


def _nearest(places: Any, y: Any, wanted: Any) -> Float[np.ndarray, " n"]:
    return y[KDTree(places).query(wanted, p=np.inf)[1]]
