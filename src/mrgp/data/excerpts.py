"""A part of the data in which places and times are whole: what much work is first tried on."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from mrgp.data.dataset import Dataset
from mrgp.data.observations import Observations

SAME = 1e-6
"""Places are the same where they agree within this share of the extent."""

Centres = Float[np.ndarray, "_ s"]
Numbers = Int[np.ndarray, " _"]


def excerpt(data: Dataset, places: int, values: int, key: int = 0) -> Dataset:
    """Return a stretch of time at some places, all of them where they are few.

    Sources at points have at most so many places each, drawn at random; of regions those nearest to
    the points are kept, half as many or what the points leave.

    >>> import mrgp
    >>> sites = mrgp.points([[float(t), 2.2] for t in range(4)], inputs=("time", "x"))
    >>> lower = np.array([[float(t), float(x)] for t in range(4) for x in range(9)])
    >>> cells = mrgp.boxes(lower, lower + [0.0, 1.0], inputs=("time", "x"))
    >>> model = mrgp.Observations(cells, lower[:, 1], name="model")
    >>> seen = [mrgp.Observations(sites, np.zeros(4)), model]
    >>> [len(o) for o in excerpt(Dataset(seen), places=3, values=100)]
    [4, 8]
    """
    return stretch(Dataset(list(_fewer(data, places, key))), values)


def stretch(data: Dataset, most: int) -> Dataset:
    """Return a stretch of time from the middle of data, with at most so many values or one time.

    Times are whole. A source that is silent then has as many of its nearest values.

    >>> import mrgp
    >>> x = mrgp.points([[float(t), 1.0] for t in range(9)], inputs=("time", "x"))
    >>> stretch(Dataset([mrgp.Observations(x, range(9))]), 3)["source"].y.tolist()
    [3.0, 4.0, 5.0]
    """
    count = sum(map(len, data))
    clock = data.clock
    if count <= most or clock is None:
        return data
    ends = [np.asarray(o.support.bounds[1])[:, clock] for o in data]
    times, each = np.unique(np.concatenate(ends), return_counts=True)
    after = np.cumsum(each)
    before = after - each
    first = min(int(np.searchsorted(before, (count - most) // 2)), len(times) - 1)
    last = int(np.searchsorted(after, before[first] + most, side="right")) - 1
    low, high = times[first], times[max(first, last)]
    inside = [np.flatnonzero((end >= low) & (end <= high)) for end in ends]
    near = [np.argsort(np.maximum(low - e, e - high), kind="stable")[:most] for e in ends]
    pairs = zip(data, inside, near, strict=True)
    return Dataset([o[rows if len(rows) else np.sort(others)] for o, rows, others in pairs])


def _fewer(data: Dataset, most: int, key: int) -> Iterator[Observations]:
    """Keep some places of each source."""
    rng, told = np.random.default_rng(key), [_places(o) for o in data]
    kept = {i: rng.permutation(len(told[i][0]))[:most] for i, o in enumerate(data) if _at_points(o)}
    known = [told[i][0][rows] for i, rows in kept.items()]
    left = max(most // 2, most - max(map(len, known), default=0))
    for i, (observed, (x, place)) in enumerate(zip(data, told, strict=True)):
        chosen = kept[i] if i in kept else _nearest(x, known, left, rng)
        rows = np.flatnonzero(np.isin(place, chosen))
        yield observed if len(rows) == len(place) else observed[rows]


def _at_points(observed: Observations) -> bool:
    return all(observed.support.pointlike[d] for d in _columns(observed))


def _columns(observed: Observations) -> list[int]:
    """Return the inputs that are neither time nor covariates."""
    support = observed.support
    count = support.dimension - sum(len(field.names) for field in support.covariates or ())
    return [d for d in range(count) if d != support.clock]


def _places(observed: Observations) -> tuple[Centres, Numbers]:
    """Return the distinct places of a source, and which of them each row has."""
    x = observed.support.centres[:, _columns(observed)]
    extent = np.ptp(x, axis=0)
    told = np.round((x - x.min(0)) / (SAME * np.where(extent > 0, extent, 1.0)))
    _, first, which = np.unique(told, axis=0, return_index=True, return_inverse=True)
    return x[first], which.reshape(-1)


def _nearest(x: Centres, known: Sequence[Centres], most: int, rng: np.random.Generator) -> Numbers:
    """Return places near known ones, each of these having its nearest before any its second."""
    if len(x) <= most or not known:
        return rng.permutation(len(x))[:most]
    distance, owner = map(np.asarray, KDTree(np.concatenate(known)).query(x))
    order = np.lexsort((distance, owner))
    runs = np.flatnonzero(np.diff(owner[order], prepend=-1))
    rank = np.arange(len(x)) - np.repeat(runs, np.diff(runs, append=len(x)))
    return order[np.lexsort((distance[order], rank))][:most]
