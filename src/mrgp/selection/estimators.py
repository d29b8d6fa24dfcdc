"""How simple rules estimate: means, neighbours, interpolation, regressions of a table."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import KDTree, QhullError
from scipy.spatial.distance import cdist

from mrgp.selection.sightings import Table

RIDGE = 1e-6

Values = Float[np.ndarray, "q t"]


class Query(NamedTuple):
    """Places to predict at all times of a table, and their features there."""

    places: Float[np.ndarray, "q s"]
    features: Any = None


Estimator = Callable[[Table, Query], Values]
"""Predict places at the times of a table; of one that was learned from, or of its other times."""


def mean(table: Table, _: int) -> Estimator:
    """Take the mean of the places at each time; of all values, where a time has none."""
    level = float(np.nanmean(table.values))

    def estimate(now: Table, query: Query) -> Values:
        return np.repeat(_column_means(now, level)[None], len(query.places), 0)

    return estimate


def _column_means(now: Table, otherwise: float) -> Float[np.ndarray, " t"]:
    count = now.seen.sum(0)
    total = np.nansum(now.values, axis=0)
    return np.divide(total, count, out=np.full(len(count), otherwise), where=count > 0)


def nearest(table: Table, _: int) -> Estimator:
    """Take the nearest place that has a value at each time."""
    level = float(np.nanmean(table.values))

    def estimate(now: Table, query: Query) -> Values:
        found = np.full((len(query.places), len(now.times)), np.nan)
        tree, reach = KDTree(now.places), min(8, len(now.places))
        while np.isnan(found).any():
            near: Any = tree.query(query.places, reach)[1]
            for rank in near.reshape(len(found), reach).T:
                found = np.where(np.isnan(found), now.values[rank], found)
            if reach == len(now.places):
                break
            reach = min(4 * reach, len(now.places))
        return np.where(np.isnan(found), level, found)

    return estimate


def inverse(power: float) -> Callable[[Table, int], Estimator]:
    """Weigh places by a power of the inverse distance."""

    def learn(table: Table, _: int) -> Estimator:
        level = float(np.nanmean(table.values))

        def estimate(now: Table, query: Query) -> Values:
            away = cdist(query.places, now.places)
            # At a place itself its own value is all that counts, and the weights stay finite.
            near = max(float(away.max(initial=0.0)), 1e-300) * 1e-9
            weight = np.maximum(away, near) ** -power
            total = weight @ np.nan_to_num(now.values)
            share = weight @ now.seen.astype(float)
            return np.divide(total, share, out=np.full(share.shape, level), where=share > 0)

        return estimate

    return learn


def by_pattern(work: Callable[[Any, Any, Any], Values | None], otherwise: Estimator) -> Estimator:
    """Treat the times together at which the same places have a value."""

    def estimate(now: Table, query: Query) -> Values:
        found = otherwise(now, query)
        patterns, which = np.unique(now.seen, axis=1, return_inverse=True)
        for k, seen in enumerate(patterns.T):
            columns = np.flatnonzero(which.reshape(-1) == k)
            if seen.sum() > 1:
                values = now.values[np.ix_(seen, columns)]
                made = work(now.places[seen], values, query.places)
                if made is not None:
                    found[:, columns] = np.where(np.isnan(made), found[:, columns], made)
        return found

    return estimate


def linear(table: Table, _: int) -> Estimator:
    """Interpolate between places on triangles; outside, take the nearest."""
    return by_pattern(_interpolated, nearest(table, _))


def _interpolated(places: Any, values: Any, wanted: Any) -> Values | None:
    """Interpolate between places; NaN outside, and nothing where they span no triangle."""
    if places.shape[1] == 1:
        order = np.argsort(places[:, 0])
        return np.stack([np.interp(wanted[:, 0], places[order, 0], v[order]) for v in values.T], 1)
    try:
        return LinearNDInterpolator(places, values)(wanted)
    except (QhullError, ValueError):
        return None


def regression(table: Table, _: int) -> Estimator:
    """Fit a line in all features."""
    slopes = _least_squares(table.features[table.seen], table.values[table.seen])
    return lambda _, query: slopes(query.features)


def category(table: Table, categorical: int) -> Estimator:
    """Learn how far the places of a category lie above the others at the same times.

    Which places have a value differs from time to time: values and categories are both taken
    about their means at that time.
    """
    level = float(np.nanmean(table.values))
    flags = table.features[..., :categorical] - _shares(table, categorical)
    about = table.values - _column_means(table, level)
    levels = _ridge(flags[table.seen], about[table.seen])

    def estimate(now: Table, query: Query) -> Values:
        flags = query.features[..., :categorical] - _shares(now, categorical)
        return _column_means(now, level) + flags @ levels

    return estimate


def _shares(now: Table, categorical: int) -> Float[np.ndarray, "t c"]:
    """Return which share of the values of a time is of each category; of all, if it has none."""
    flags, count = now.features[..., :categorical], now.seen.sum(0)[:, None]
    total = np.where(now.seen[..., None], flags, 0.0).sum(0)
    return np.where(count > 0, total / np.maximum(count, 1), flags.mean((0, 1)))


def _least_squares(features: Any, y: Any) -> Callable[[Any], Any]:
    middle, level = features.mean(0), y.mean()
    slopes = _ridge(features - middle, y - level)
    return lambda at: level + (at - middle) @ slopes


def _ridge(x: Any, y: Any) -> Float[np.ndarray, " k"]:
    """Least squares that stay finite where columns say the same."""
    return np.linalg.solve(x.T @ x + RIDGE * (1 + len(y)) * np.eye(x.shape[1]), x.T @ y)
