"""Simple rules for counts: rates of other places, times the exposure or the trials."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial import KDTree
from scipy.stats import binom, poisson

from mrgp.data import Observations
from mrgp.selection.sightings import SAME, Layout, layout_of

NEIGHBOURS = 8
RATE_RULES = {
    "overall": "the rate of all other places",
    "nearest": "the rate of the nearest place",
    "neighbours": f"the rate of the {NEIGHBOURS} nearest places",
}
"""By name, what is taken for the rate of a place; where places repeat, that of the same time."""

Values = Float[np.ndarray, " n"]
Rows = Int[np.ndarray, " _"]


class Foretold(NamedTuple):
    """Counts that a rule expects, and the mean negative log probability of those that came."""

    mean: Values
    nlpd: float


def is_count(observed: Observations) -> bool:
    """Tell whether values are counts, or successes among trials.

    >>> from mrgp import Poisson, points
    >>> is_count(Observations(points([[0.0]]), [3.0], likelihood=Poisson()))
    True
    """
    return observed.likelihood.domain in ("count", "successes")


def by_rates(train: Observations, test: Observations) -> dict[str, Foretold]:
    """Return what each rule expects of counts, from those at other places.

    >>> from mrgp import Poisson, points
    >>> seen = Observations(points([[0.0], [1.0], [9.0]]), [2, 4, 30], likelihood=Poisson(),
    ...                     exposure=[1.0, 2.0, 3.0])
    >>> new = seen.replace(exposure=np.array([10.0, 10.0, 10.0]))
    >>> {name: found.mean.tolist() for name, found in by_rates(seen, new[:1]).items()}
    {'overall': [60.0], 'nearest': [20.0], 'neighbours': [60.0]}
    """
    layout = layout_of(train.support)
    seen, size = train.y, _sizes(train)
    known, wanted = (layout.places(o.support.centres) for o in (train, test))
    least = 0.5 / size.sum()
    found = {}
    for name in RATE_RULES:
        rate = np.empty(len(test))
        for now, rows in _times(train, test, layout):
            near = _near(name, known, wanted[rows], now)
            rate[rows] = seen[near].sum(1) / size[near].sum(1)
        # A rate of nothing would call any count impossible.
        expected = np.maximum(rate, least) * _sizes(test)
        found[name] = Foretold(expected, _surprise(test, expected))
    return found


def _sizes(observed: Observations) -> Values:
    """Return what a rate is multiplied by: exposure or trials, and the measure of a sum."""
    size = np.ones(len(observed)) * np.asarray(observed.support.total)
    for given in (observed.exposure, observed.trials):
        size = size if given is None else size * np.asarray(given)
    return size


def _times(train: Observations, test: Observations, layout: Layout) -> list[tuple[Rows, Rows]]:
    """Return which values are of the time of which new ones: all of them, where none is."""
    whole = np.arange(len(train))
    if layout.clock is None:
        return [(whole, np.arange(len(test)))]
    then, there = (o.support.centres[:, layout.clock] for o in (train, test))
    close = SAME * max(float(np.ptp(then)), 1e-300)
    found = []
    for time in np.unique(there):
        now: Bool[np.ndarray, " n"] = np.abs(then - time) <= close
        found.append((whole[now] if now.any() else whole, np.flatnonzero(there == time)))
    return found


def _near(
    name: str, places: Float[np.ndarray, "n s"], wanted: Float[np.ndarray, "r s"], now: Rows
) -> Int[np.ndarray, "r k"]:
    """Return the values that a rule pools, for each new one."""
    if name == "overall":
        return np.broadcast_to(now, (len(wanted), len(now)))
    count = min(1 if name == "nearest" else NEIGHBOURS, len(now))
    near = np.asarray(KDTree(places[now]).query(wanted, count)[1])
    return now[near.reshape(len(wanted), count)]


def _surprise(test: Observations, expected: Values) -> float:
    """Return the mean negative log probability of counts, by the simplest law of their kind."""
    y = test.y
    if test.likelihood.domain == "successes":
        trials = np.asarray(test.trials) * np.ones(len(y))
        share = np.clip(expected / trials, 1e-9, 1 - 1e-9)
        return float(-np.mean(binom.logpmf(y, trials, share)))
    return float(-np.mean(poisson.logpmf(y, expected)))
