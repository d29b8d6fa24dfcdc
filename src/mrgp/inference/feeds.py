"""Rows of stored sources as records, in random order, from a few chunks at a time."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from mrgp.data import Dataset, Observations, Record, Scaling, Stored

CHUNKS, ROWS = 16, 2**18
"""Chunks that are drawn from together, and the rows of them that are then in memory."""


class Feed:
    """An endless stream of rows of one source, every one as likely as any other.

    Rows are drawn from some chunks at a time, which are chosen at random, and as large a share of
    each as memory allows, so that neighbouring rows do not come together. Any stretch can be asked
    for at any time, so that a fit goes on where it stopped.
    """

    def __init__(
        self,
        stored: Stored,
        record: Callable[[int], Record],
        seed: Sequence[int],
        chunks: int = CHUNKS,
        rows: int = ROWS,
    ):
        self.counts = np.array([there for there, _ in stored.counts])
        self.filled = np.flatnonzero(self.counts)
        self.record, self.seed, self.chunks, self.rows = record, tuple(seed), chunks, rows
        self.ends = [0]
        self.held: tuple[int, Record] | None = None

    @property
    def count(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())

    def take(self, start: int, length: int) -> Record:
        """Return a stretch of rows, weighted to stand for all."""
        parts, end = [], start + length
        while start < end:
            drawing = self._drawing_at(start)
            first, held = self.ends[drawing], self._hold(drawing)
            parts.append(held.take(np.arange(start - first, min(end - first, len(held)))))
            start += len(parts[-1])
        return self.standing_for_all(_joined(parts))

    def standing_for_all(self, record: Record) -> Record:
        """Weight some rows so that they count as all do."""
        return dataclasses.replace(record, weight=record.weight * (self.count / len(record)))

    def _drawing_at(self, row: int) -> int:
        """Return which drawing a row of the stream is from."""
        while self.ends[-1] <= row:
            _, rows = self._drawing(len(self.ends) - 1)
            self.ends.append(self.ends[-1] + int(rows.sum()))
        return int(np.searchsorted(self.ends, row, side="right")) - 1

    def _drawing(self, drawing: int) -> tuple[Int[np.ndarray, " c"], Int[np.ndarray, " c"]]:
        """Return the chunks of a drawing, and how many rows it takes of each."""
        chunks = self._random(drawing).permutation(self.filled)[: self.chunks]
        # One share for all drawings: rows of small chunks are no more likely than others.
        share = min(1.0, self.rows / (len(chunks) * self.counts[self.filled].mean()))
        return chunks, np.maximum(np.round(share * self.counts[chunks]), 1).astype(int)

    def _hold(self, drawing: int) -> Record:
        """Return the rows of a drawing in random order, kept until another is asked for."""
        if self.held is None or self.held[0] != drawing:
            self.held = None
            random, parts = self._random(drawing, 1), []
            for chunk, rows in zip(*self._drawing(drawing), strict=True):
                found = self.record(int(chunk))
                parts.append(found.take(random.choice(len(found), int(rows), replace=False)))
            both = _joined(parts)
            self.held = drawing, both.take(random.permutation(len(both)))
        return self.held[1]

    def _random(self, *of: int) -> np.random.Generator:
        return np.random.default_rng([*self.seed, *of])


Feeds = tuple[Feed | None, ...]
"""The feed of each process whose rows are stored, and None for the others."""


def feeds_of(data: Dataset, scaling: Scaling, weights: dict[Any, float], seed: int) -> Feeds:
    """Return the feed of each process whose rows are stored, and None for the others."""

    def feed(number: int, o: Observations) -> Feed | None:
        if o.stored is None:
            return None

        def record(chunk: int) -> Record:
            return scaling.record(o.stored.seen(chunk, o), weights[o.process], bare=True)

        return Feed(o.stored, record, (seed, number))

    return tuple(feed(number, o) for number, o in enumerate(data))


def _joined(parts: list[Record]) -> Record:
    if len(parts) == 1:
        return parts[0]
    return jax.tree.map(lambda *a: a[0] if np.ndim(a[0]) == 0 else np.concatenate(a), *parts)
