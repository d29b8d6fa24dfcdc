"""What a piece of work costs: wall time, and peak memory."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

STATM = Path("/proc/self/statm")
INTERVAL = 0.01

T = TypeVar("T")


def metered(work: Callable[[], T]) -> tuple[T, dict[str, float]]:
    """Do some work, and return what it returns with what it costs.

    `seconds` is wall time. `peak_mb` is the largest resident memory of the process during the work
    above that before it, in units of 10^6 bytes; it is left out where the system does not tell.

    >>> metered(lambda: 1 + 1)[0]
    2
    """
    watch = _Watch() if STATM.is_file() else None
    start = time.perf_counter()
    try:
        result = work()
    finally:
        costs = {"seconds": time.perf_counter() - start}
        if watch is not None:
            costs["peak_mb"] = watch.stop() / 1e6
    return result, costs


class _Watch:
    """A thread that looks at the resident memory of the process from time to time."""

    def __init__(self):
        self.before = self.most = _resident()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self) -> None:
        while not self.done.wait(INTERVAL):
            self.most = max(self.most, _resident())

    def stop(self) -> int:
        """Stop looking, and return the bytes of the peak above the start."""
        self.done.set()
        self.thread.join()
        return max(self.most, _resident()) - self.before


def _resident() -> int:
    pages: Any = STATM.read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
