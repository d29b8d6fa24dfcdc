"""Which rows of each process a minibatch takes."""

from collections.abc import Mapping, Sequence, Sized
from typing import Any

import numpy as np
from jaxtyping import Int

from mrgp.data import by_process, require_processes

DEFAULT_BATCH = 256


class Batches:
    """An endless stream of rows for each process: one random order of all rows after another.

    Any stretch of it can be asked for at any time, so that a fit goes on where it stopped.
    Processes with no more rows than a batch are taken whole, as None.
    """

    def __init__(self, counts: tuple[int, ...], sizes: tuple[int, ...], seed: int):
        self.counts, self.sizes, self.seed = counts, sizes, seed
        self.orders: dict[tuple[int, int], np.ndarray] = {}

    @property
    def whole(self) -> bool:
        """Whether every batch is all of the data."""
        return all(n <= b for n, b in zip(self.counts, self.sizes, strict=True))

    def rows(self, start: int, steps: int) -> tuple[Int[np.ndarray, "t b"] | None, ...]:
        """Return the rows of each process for a stretch of steps."""
        return tuple(
            None if n <= b else self._stretch(i, start * b, steps * b).reshape(steps, b)
            for i, (n, b) in enumerate(zip(self.counts, self.sizes, strict=True))
        )

    def _stretch(self, process: int, start: int, length: int) -> np.ndarray:
        n = self.counts[process]
        parts = []
        while length:
            epoch, at = divmod(start, n)
            part = self._order(process, epoch)[at : at + length]
            parts.append(part)
            start, length = start + len(part), length - len(part)
        return np.concatenate(parts)

    def _order(self, process: int, epoch: int) -> np.ndarray:
        if (process, epoch) not in self.orders:
            self.orders = {k: v for k, v in self.orders.items() if k[0] != process}
            rng = np.random.default_rng([self.seed, process, epoch])
            order = rng.permutation(self.counts[process]).astype(np.int32)
            self.orders[process, epoch] = order
        return self.orders[process, epoch]


def batch_sizes(
    batch: Any, processes: tuple[tuple[str, str], ...], records: Sequence[Sized]
) -> tuple[int, ...]:
    """Return the size of a batch of each process: one number, or a mapping by source or process."""
    given = batch if isinstance(batch, Mapping) else {}
    require_processes(given, processes, "batch")
    for name, size in given.items():
        if not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(f"batch: the size for {name!r} must be at least 1; got {size!r}.")
    usual = DEFAULT_BATCH if batch is None or isinstance(batch, Mapping) else int(batch)
    sizes = (by_process(given, process, usual) for process in processes)
    return tuple(min(int(b), len(r)) for b, r in zip(sizes, records, strict=True))
