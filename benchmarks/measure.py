"""Stopwatch and memory gauge, shared with the peers' interpreters: standard library only, Linux."""

import ctypes
import json
import statistics
import sys
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


def answer(loop: Callable[[], None], value: Callable[[], float], versions: object) -> None:
    """Print a value and versions, then time a loop once for every line read, with the value after.

    So a peer takes turns with others in one run: whatever else the machine does falls on all.
    """
    print(json.dumps({"value": value(), "versions": versions}), flush=True)
    for _ in sys.stdin:
        seconds = repeat(loop, 1)
        print(json.dumps({"seconds": seconds[0], "value": value()}), flush=True)


def peak_growth(call: Callable[[], object]) -> float:
    """Return by how many megabytes resident memory rises, at its peak, while a call runs."""
    ctypes.CDLL(None).malloc_trim(0)  # what earlier calls left behind would hide the growth
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = _status("VmRSS")
    call()
    return (_status("VmHWM") - before) / MEGABYTE


def peak_resident() -> float:
    """Return the most megabytes of memory that this process ever held."""
    return _status("VmHWM") / MEGABYTE


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"{field}:"))
    return 1024 * int(line.split()[1])
