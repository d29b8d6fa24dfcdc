"""Whether a fit has room in memory: known before it starts, and said with what to take instead."""

import contextlib
import os
from pathlib import Path

from mrgp.gp import Exact
from mrgp.inference.objectives import Objective

MATRICES = 6
"""How many matrices of all values by all values an exact fit holds at once, with its gradient."""

LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def memory() -> float:
    """Return the bytes of memory that this process may have at most, infinite if not known.

    >>> memory() > 1e8
    True
    """
    found = [float("inf")]
    with contextlib.suppress(ValueError, OSError, AttributeError):
        found.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    for limit in LIMITS:
        with contextlib.suppress(ValueError, OSError):
            found.append(float(limit.read_text()))
    return min(found)


def check_room(objective: Objective) -> None:
    """Refuse an exact fit whose matrices do not fit into memory.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 1.0])
    >>> check_room(mrgp.objective(mrgp.MRGP(), mrgp.Dataset([seen])))
    """
    linear = objective.frozen.linear
    if linear is None or not isinstance(linear.solver, Exact):
        return
    count = objective.count
    needed, there = MATRICES * 8.0 * count**2, memory()
    if needed > there:
        raise ValueError(
            f"An exact fit of {count:,} values needs about {needed / 2**30:,.0f} GiB of memory, and"
            f' there are {there / 2**30:,.0f}. Take method="collapsed", or "svgp" for very many'
            " values."
        )
