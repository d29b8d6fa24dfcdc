"""Ordinary kriging at each time, with one variogram pooled over all of them."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls
from scipy.spatial import KDTree
from scipy.spatial.distance import pdist, squareform

from mrgp.selection.estimators import Estimator, Values, by_pattern, mean
from mrgp.selection.sightings import Table

NEIGHBOURS = 64
MOST_PLACES = 1500
BINS = 15


def kriging(table: Table, _: int) -> Estimator:
    """Learn the variogram, and solve the system of ordinary kriging at each place and time."""
    gamma = variogram(table)

    def kriged(places: Any, values: Any, wanted: Any) -> Values:
        # Among all places, or where they are many, among the nearest.
        count = min(NEIGHBOURS, len(places))
        if count == len(places):
            return _weights(gamma, places[None], wanted[None])[0].T @ values
        near: Any = KDTree(places).query(wanted, count)[1]
        near = near.reshape(len(wanted), count)
        weight = _weights(gamma, places[near], wanted[:, None])[..., 0]
        return np.einsum("qk,qkt->qt", weight, values[near])

    return by_pattern(kriged, mean(table, _))


def _weights(gamma: "Variogram", places: Any, wanted: Any) -> Any:
    """Return the weights [b, k, q] of k places each for q wanted ones, b systems at once."""
    batch, count, _ = places.shape
    apart = np.linalg.norm(places[:, :, None] - places[:, None], axis=-1)
    system = np.ones((batch, count + 1, count + 1))
    system[:, :count, :count] = gamma(apart)
    system[:, count, count] = 0.0
    # Places as near as rounding still have one solution.
    system[:, range(count), range(count)] = -1e-9 * gamma.sill
    right = np.ones((batch, count + 1, wanted.shape[1]))
    right[:, :count] = gamma(np.linalg.norm(places[:, :, None] - wanted[:, None], axis=-1))
    return np.linalg.solve(system, right)[:, :count]


class Variogram(NamedTuple):
    """Half the mean squared difference at a distance: nugget + sill (1 - exp(-h / reach)).

    >>> Variogram(1.0, 2.0, 5.0)(np.array([0.0, 1e9])).tolist()
    [0.0, 3.0]
    """

    nugget: float
    partial: float
    reach: float

    @property
    def sill(self) -> float:
        """Half the mean squared difference far apart."""
        return self.nugget + self.partial

    def __call__(self, h: Any) -> Any:
        return np.where(h > 0, self.nugget + self.partial * -np.expm1(-h / self.reach), 0.0)


def variogram(table: Table) -> Variogram:
    """Fit one exponential variogram to the differences of all times, by least squares.

    >>> x = np.arange(40.0)[:, None]
    >>> found = variogram(Table(x, np.zeros(1), np.cumsum(np.ones(40))[:, None]))
    >>> found.nugget < 1.0 < found.partial
    True
    """
    chosen = np.unique(np.linspace(0, len(table.places) - 1, MOST_PLACES).astype(int))
    table = table.take(chosen)
    seen, values = table.seen.astype(float), np.nan_to_num(table.values)
    values = np.where(table.seen, values - np.nanmean(table.values), 0.0)
    count = seen @ seen.T
    squares = values**2 @ seen.T
    total = 0.5 * (squares + squares.T) - values @ values.T
    away = pdist(table.places)
    weight, gamma = (squareform(part, checks=False) for part in (count, total))
    kept = (weight > 0) & (away > 0)
    if kept.sum() < 1 or not np.any(gamma[kept] > 0):
        return Variogram(1.0, 0.0, 1.0)
    away, weight, gamma = away[kept], weight[kept], gamma[kept]
    # Bins of equal numbers of pairs up to half of the largest distance, where there are several.
    far = max(0.5 * away.max(), np.quantile(away, 0.2))
    inside = away <= far
    edges = np.unique(np.quantile(away[inside], np.linspace(0.0, 1.0, BINS + 1)[1:-1]))
    which = np.searchsorted(edges, away[inside])
    pairs = np.bincount(which, weights=weight[inside])
    filled = pairs > 0
    heights = np.bincount(which, weights=gamma[inside])[filled] / pairs[filled]
    middles = np.bincount(which, weights=(weight * away)[inside])[filled] / pairs[filled]
    return _fit_variogram(middles, heights, np.sqrt(pairs[filled]), far)


def _fit_variogram(h: Any, gamma: Any, weight: Any, far: float) -> Variogram:
    """Try ranges, each with its best nugget and sill that are not negative."""
    tried = []
    for reach in far * np.geomspace(0.02, 5.0, 60):
        columns = np.stack([np.ones(len(h)), -np.expm1(-h / reach)], 1)
        (nugget, partial), error = nnls(weight[:, None] * columns, weight * gamma)
        tried.append((error, Variogram(float(nugget), float(partial), float(reach))))
    return min(tried, key=lambda found: found[0])[1]
