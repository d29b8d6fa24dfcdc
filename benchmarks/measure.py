"""Stopwatch and memory gauge, shared with the peers' interpreters: standard library only, Linux."""

import ctypes
import statistics
import time
from collections.abc import Callable
from pathlib import Path

MEGABYTE = 1e6
Seconds = list[tuple[float, float]]


def repeat(call: Callable[[], object], repeats: int) -> Seconds:
    """Time a call again and again: seconds on the clock and seconds of processor time."""
    seconds = []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        call()
        seconds.append((time.perf_counter() - wall, time.process_time() - processor))
    return seconds


def medians(seconds: Seconds) -> dict[str, float]:
    """Return the median of each clock."""
    wall, processor = zip(*seconds, strict=True)
    return {"seconds": statistics.median(wall), "cpu seconds": statistics.median(processor)}


def peak_growth(call: Callable[[], object]) -> float:
    """Return by how many megabytes resident memory rises, at its peak, while a call runs."""
    ctypes.CDLL(None).malloc_trim(0)  # what earlier calls left behind would hide the growth
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = _status("VmRSS")
    call()
    return (_status("VmHWM") - before) / MEGABYTE


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"{field}:"))
    return 1024 * int(line.split()[1])
