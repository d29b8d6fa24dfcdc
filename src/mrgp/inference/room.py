"""Whether a fit has room in memory: known before it starts, and said with what to take instead."""

import contextlib
import os
from pathlib import Path
from typing import Any

from mrgp.gp import Exact

FITTED, CONDITIONED = 6, 4
"""How many matrices of all values by all values an exact fit holds at once, with its gradient
(measured by `benchmarks/largest.py`), and how many its posterior alone may take."""

MEMORY = Path("/proc/meminfo")
GROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"),
)
"""Where containers say what they may have and what they have."""


def memory() -> float:
    """Return the bytes of memory that are free for this process, infinite if not known.

    Files that are kept in memory only until it is needed count as free.

    >>> memory() > 1e7
    True
    """
    found = [float("inf")]
    with contextlib.suppress(ValueError, OSError, AttributeError):
        found.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    with contextlib.suppress(OSError):
        found += [1024.0 * size for size in _sizes(MEMORY.read_text(), "MemAvailable:")]
    for folder, limit, used in GROUPS:
        with contextlib.suppress(ValueError, OSError):
            most, taken = (float((folder / name).read_text()) for name in (limit, used))
            kept = _sizes((folder / "memory.stat").read_text(), "inactive_file", "total_inactive_")
            found.append(max(0.0, most - max(0.0, taken - max(kept, default=0.0))))
    return min(found)


def _sizes(text: str, *words: str) -> list[float]:
    """Return the numbers of lines that begin with some words."""
    return [float(line.split()[1]) for line in text.splitlines() if line.startswith(words)]


def check_room(model: Any, count: int, what: str = "fit", matrices: int = FITTED) -> None:
    """Refuse an exact fit whose matrices do not fit into memory.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 1.0])
    >>> check_room(mrgp.MRGP().build(mrgp.Dataset([seen])), 2)
    """
    if model.linear is None or not isinstance(model.linear.solver, Exact):
        return
    needed, there = matrices * 8.0 * count**2, memory()
    if needed > there:
        raise ValueError(
            f"An exact {what} of {count:,} values needs about {needed / 2**30:,.3g} GiB of memory,"
            f' and {there / 2**30:,.3g} are free. Take method="collapsed", or "svgp" for very many'
            " values."
        )
