"""What a piece of work costs: wall time, and peak memory."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

Cost = Literal[
    "cpu_seconds", "seconds", "first_cpu_seconds", "peak_mb", "predict_seconds", "predict_peak_mb"
]
COSTS: dict[Cost, str] = {
    "cpu_seconds": "cpu s",
    "seconds": "wall s",
    "first_cpu_seconds": "first cpu s",
    "peak_mb": "peak MB",
    "predict_seconds": "predict s",
    "predict_peak_mb": "predict MB",
}
STATUS, FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")

T = TypeVar("T")


def metered(work: Callable[[], T]) -> tuple[T, dict[str, float]]:
    """Do some work, and return what it returns with what it costs.

    `seconds` is wall time, and `first_cpu_seconds` that of the process. `peak_mb` is the largest
    resident memory of the process during the work above that before it, in units of 10^6 bytes; it
    is left out where the system does not tell.

    >>> metered(lambda: 1 + 1)[0]
    2
    """
    told = _forget_peak()
    before = _memory("VmRSS") if told else 0
    start, busy = time.perf_counter(), time.process_time()
    result = work()
    costs = {"seconds": time.perf_counter() - start}
    costs["first_cpu_seconds"] = time.process_time() - busy
    if told:
        costs["peak_mb"] = (_memory("VmHWM") - before) / 1e6
    return result, costs


def _forget_peak() -> bool:
    """Have the system look for a new peak of the resident memory, and tell whether it does."""
    try:
        # By this number Linux knows what is meant (proc_pid_clear_refs).
        FORGET.write_text("5")
    except OSError:
        return False
    return True


def _memory(name: str) -> int:
    found: Any = re.search(rf"{name}:\s+(\d+) kB", STATUS.read_text())
    return 1024 * int(found[1])
