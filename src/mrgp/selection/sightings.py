"""Values as a table of places and times: what simple rules look at."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from mrgp.supports import Support

SAME = 1e-6
"""Places and times are the same where they agree within this share of the extent."""

Rows = Float[np.ndarray, "n d"]


class Layout(NamedTuple):
    """Which inputs are places, which is time, and which are covariates.

    Without places that repeat in time, all inputs but the covariates are the place. Inputs of
    different kinds are then on one `scale`, that of their extents.

    >>> import mrgp
    >>> layout_of(mrgp.points([[0.0, 5.0], [1.0, 5.0]], inputs=("hour", "east")))
    Layout(space=(1,), clock=0, scale=(1.0,))
    """

    space: tuple[int, ...]
    clock: int | None
    scale: tuple[float, ...]

    def places(self, centres: Rows) -> Float[np.ndarray, "n s"]:
        """Return where the rows lie, on one scale."""
        return centres[:, self.space] / np.array(self.scale)


def covariate_names(support: Support) -> tuple[str, ...]:
    """Return which inputs of a support are covariates, and no places or times.

    >>> import mrgp
    >>> covariate_names(mrgp.points([[3.0]]).with_covariates(lambda x: 2 * x, "height"))
    ('height',)
    """
    return tuple(name for field in support.covariates or () for name in field.names)


def layout_of(support: Support) -> Layout:
    """Look for places that repeat in time."""
    added = covariate_names(support)
    columns = [i for i, name in enumerate(support.input_names) if name not in added]
    clock, centres = support.clock, support.centres
    space = tuple(i for i in columns if i != clock)
    if clock is not None and space:
        count = distinct(centres[:, space])[0].size
        if count == 1 or 2 * count <= len(centres):
            return Layout(space, clock, (1.0,) * len(space))
    if clock is None or not space:
        return Layout(tuple(columns), None, (1.0,) * len(columns))
    extent = np.ptp(centres[:, columns], axis=0)
    return Layout(tuple(columns), None, tuple(np.where(extent > 0, extent, 1.0).tolist()))


def distinct(x: Rows) -> tuple[Int[np.ndarray, " p"], Int[np.ndarray, " n"]]:
    """Return the first row of each place, in order of appearance, and the place of each row.

    >>> [found.tolist() for found in distinct(np.array([[2.0], [1.0], [2.0 + 1e-9]]))]
    [[0, 1], [0, 1, 0]]
    """
    if not x.shape[1]:
        return np.zeros(1, int), np.zeros(len(x), int)
    # Chains of neighbours along each input, so that no border runs between two near values.
    codes = np.stack([_levels(column) for column in x.T], 1)
    _, first, inverse = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[inverse.reshape(-1)]


def _levels(column: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    order = np.argsort(column, kind="stable")
    steps = np.diff(column[order]) > SAME * np.ptp(column)
    found = np.empty(len(column), int)
    found[order] = np.concatenate([[0], np.cumsum(steps)])
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """Values of places (rows) at times (columns), NaN where there is none, and their features.

    Without time there is one column.

    >>> table = Table(np.array([[0.0], [4.0]]), np.array([0.0, 1.0]), np.array([[1, 3], [5, 9.0]]))
    >>> table.at(np.array([0.5])).values.tolist()
    [[2.0], [7.0]]
    """

    places: Float[np.ndarray, "p s"]
    times: Float[np.ndarray, " t"]
    values: Float[np.ndarray, "p t"]
    features: Any = None

    @property
    def seen(self) -> np.ndarray:
        """Where there is a value."""
        return np.isfinite(self.values)

    def take(self, places: Any) -> "Table":
        """Keep some places."""
        features = None if self.features is None else self.features[places]
        return Table(self.places[places], self.times, self.values[places], features)

    def at(self, times: Float[np.ndarray, " u"]) -> "Table":
        """Return the values at other times, each place's own interpolated in time."""
        if len(self.times) == 1:
            return self._columns(times, np.zeros(len(times), int))
        near = np.abs(self.times - times[:, None]).argmin(1)
        same = np.abs(self.times[near] - times) <= SAME * np.ptp(self.times)
        found = self._columns(times, near)
        for column in np.flatnonzero(~same):
            found.values[:, column] = [self._between(row, times[column]) for row in self.values]
        return found

    def _columns(self, times: Float[np.ndarray, " u"], which: Int[np.ndarray, " u"]) -> "Table":
        features = None if self.features is None else self.features[:, which]
        return Table(self.places, times, self.values[:, which], features)

    def _between(self, values: Float[np.ndarray, " t"], time: float) -> float:
        seen = np.isfinite(values)
        return np.interp(time, self.times[seen], values[seen]) if seen.any() else np.nan


def table_of(
    layout: Layout, support: Support, y: Float[np.ndarray, " n"], features: Any = None
) -> Table:
    """Return observed values as a table; values of one place and time are averaged.

    >>> import mrgp
    >>> support = mrgp.points([[0.0, 5.0], [1.0, 5.0], [0.0, 7.0]], inputs=("hour", "east"))
    >>> table_of(Layout((1,), 0, (1.0,)), support, np.array([1.0, 2.0, 3.0])).values.tolist()
    [[1.0, 2.0], [3.0, nan]]
    """
    centres = support.centres
    places, clock = layout.places(centres), layout.clock
    first, row = distinct(places)
    hours = np.zeros(len(y)) if clock is None else centres[:, clock]
    level = _levels(hours)
    times = np.array([hours[level == k][0] for k in range(level.max() + 1)])
    shape = (len(first), len(times))
    cell = row * shape[1] + level
    count = np.bincount(cell, minlength=shape[0] * shape[1])
    total = np.bincount(cell, weights=y, minlength=len(count))
    values = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    kept = None
    if features is not None:
        # Where a place has no value, its features are its mean ones.
        each = np.stack([np.bincount(row, weights=f) for f in features.T], 1)
        kept = np.repeat(each / np.bincount(row)[:, None], shape[1], 0)
        kept[cell] = features
        kept = kept.reshape(*shape, -1)
    return Table(places[first], times, values.reshape(shape), kept)
