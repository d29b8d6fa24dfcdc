"""Rows that stay where they are stored: read chunk by chunk, with a sample of them in memory."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mrgp.data.harmony import harmonise
from mrgp.data.observations import Observations

SAMPLE = 20_000
"""Values in memory that stand for all: what scaling, defaults and warm starts look at."""

Chunk = Callable[[int], Observations | int]
"""Returns the rows of a chunk, or how many they are where all values are missing."""


@dataclasses.dataclass(frozen=True, eq=False)
class Stored:
    """All rows of a source: how a chunk of them is read, and how many values each has and lacks.

    >>> Stored(lambda chunk: 4, ((0, 4), (3, 1))).observed  # a chunk without any value, and another
    3
    """

    read: Chunk
    counts: tuple[tuple[int, int], ...]

    @property
    def observed(self) -> int:
        """How many values there are."""
        return sum(there for there, _ in self.counts)

    @property
    def missing(self) -> int:
        """How many values are missing."""
        return sum(missing for _, missing in self.counts)

    @property
    def largest(self) -> int:
        """The most rows of a chunk."""
        return max(map(sum, self.counts))

    def seen(self, chunk: int, like: Observations) -> Observations:
        """Return the observed values of a chunk, written as those that are in memory are."""
        found = self.read(chunk)
        assert isinstance(found, Observations), "Chunks without values are not asked for."
        return _alike(found.dropna(), like)

    def moved(self, change: Callable[[Any], Any]) -> "Stored":
        """Return the same rows, their supports changed when they are read."""

        def read(chunk: int) -> Observations | int:
            found = self.read(chunk)
            return found if isinstance(found, int) else found.replace(support=change(found.support))

        return dataclasses.replace(self, read=read)


def stored(read: Chunk, chunks: int, rows: int = SAMPLE, seed: int = 0) -> Observations:
    """Go through all chunks once, and return a random sample of their values that knows them all.

    Values are checked as they come by. One chunk at a time is in memory, and `rows` values of all.

    >>> import mrgp
    >>> def read(chunk):
    ...     x = 10.0 * chunk + np.arange(10.0)
    ...     return mrgp.Observations(mrgp.points(x[:, None]), np.sin(x), name="cells")
    >>> stored(read, 3, rows=5)
    Observations(cells, value: 30 values in 3 chunks, 5 of them in memory; ...)
    """
    counts, kept, keys = [], [], np.zeros(0)
    first: Observations | None = None
    for chunk in range(chunks):
        found = read(chunk)
        if isinstance(found, int):
            counts.append((0, found))
            continue
        there = int(found.observed.sum())
        counts.append((there, len(found) - there))
        # The rows with the smallest of random keys are a sample without replacement.
        drawn = np.random.default_rng([seed, chunk]).random(there)
        limit = np.partition(keys, rows - 1)[rows - 1] if len(keys) >= rows else 1.0
        chosen = np.flatnonzero(drawn <= limit)
        seen = found.dropna()
        first = seen if first is None else first
        if len(chosen):
            kept.append(_alike(seen[chosen], first))
            keys = np.concatenate([keys, drawn[chosen]])
        if len(keys) > 4 * rows:
            kept, keys = _smallest(kept, keys, rows)
    if not kept:
        raise ValueError("All values that are stored are missing (NaN). Leave the source out.")
    (sample,), _ = _smallest(kept, keys, rows)
    return sample.replace(stored=Stored(read, tuple(counts)))


def require_in_memory(data: Iterable[Observations]) -> None:
    """Refuse data of which only a sample is in memory.

    >>> import mrgp
    >>> require_in_memory([mrgp.Observations(mrgp.points([[0.0]]), [1.0])])
    """
    for o in data:
        if o.stored is not None:
            raise ValueError(
                f"{o.label}: {o.count:,} values stay where they are stored, and only"
                ' MRGP(method="svgp"), trained on minibatches, reads them there. Fit that to all of'
                " them, or take a sample for everything else, such as data.batch(5000)."
            )


def _smallest(
    kept: list[Observations], keys: np.ndarray, rows: int
) -> tuple[list[Observations], np.ndarray]:
    """Keep the rows with the smallest keys, in the order in which they came."""
    both = kept[0] if len(kept) == 1 else kept[0].joined(*kept[1:])
    if len(keys) <= rows:
        return [both], keys
    chosen = np.sort(np.argpartition(keys, rows)[:rows])
    return [both[chosen]], keys[chosen]


def _alike(part: Observations, like: Observations) -> Observations:
    """Write a part in the axes, and with the labels, of what is in memory."""
    support = part.support
    if support.inputs is None:
        support = dataclasses.replace(support, inputs=like.support.inputs)
    support = harmonise(support, like.support.axes, part.label)
    support = dataclasses.replace(support, space=like.support.space)
    return part if support is part.support else part.replace(support=support)
