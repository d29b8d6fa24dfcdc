"""Compiled code: how much effort it gets, one program for many sizes, and the room it takes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Int

MAPS = Path("/proc/self/maps")
LIMIT = Path("/proc/sys/vm/max_map_count")
SHARE = 0.5
LEAST, POWERS, MOST = 16, 128, 8192
FEW = 1000
Effort = Literal["full", "some", "least"]
# Later compilers do not know the option, and refuse what they do not know.
PLAIN: dict[str, Any] = (
    {"xla_cpu_use_fusion_emitters": False} if jax.__version_info__ < (0, 11) else {}
)
EFFORTS: dict[Effort, dict[str, Any]] = {
    "full": {},
    "some": {"xla_backend_optimization_level": 2, **PLAIN},
    "least": {"xla_backend_optimization_level": 0, **PLAIN},
}


class Compiled:
    """A function that is compiled with the effort that it is worth.

    Compilers spend seconds on code that runs for milliseconds. With "some" effort they take half of
    the time, and the code is as fast on few numbers; with the "least" they take a fifth, and the
    code is two to three times slower: for what runs once.

    >>> double = Compiled(lambda x: 2 * x)
    >>> [float(double(jax.numpy.ones(()), effort=effort)) for effort in EFFORTS]
    [2.0, 2.0, 2.0]
    """

    def __init__(self, function: Callable[..., Any]):
        self.ways = {
            effort: eqx.filter_jit(**{"fun": function, "compiler_options": options})
            for effort, options in EFFORTS.items()
        }

    def __call__(self, *arguments: Any, effort: Effort = "full") -> Any:
        """Call the function; there is always full effort for other devices than the processor."""
        return self.ways[effort if jax.default_backend() == "cpu" else "full"](*arguments)


def effort_of(rows: int, once: bool = False) -> Effort:
    """Return the effort that code for so many rows is worth, which may run once, or often.

    >>> effort_of(200), effort_of(200, once=True), effort_of(20_000, once=True)
    ('some', 'least', 'full')
    """
    few: Effort = "least" if once else "some"
    return few if rows <= FEW else "full"


def rung(count: int) -> int:
    """Return the next size on a ladder of sizes for which code is compiled.

    Rungs are powers of two up to 128 rows, and then four between one power and the next. There is
    none above 8192: much work is worth a program of its own.

    >>> [rung(n) for n in (1, 60, 100, 128, 130, 1000, 1100, 9000)]
    [16, 64, 128, 128, 160, 1024, 1280, 9000]
    """
    if count > MOST:
        return count
    power = max(LEAST, 1 << (count - 1).bit_length())
    step = power if power <= POWERS else power // 8
    return -(-count // step) * step


def filled(count: int) -> Int[np.ndarray, " n"]:
    """Return row numbers up to the next rung, where the last row stands for those beyond.

    >>> filled(14)
    array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 13, 13])
    """
    return np.minimum(np.arange(rung(count)), count - 1)


def make_room() -> bool:
    """Forget compiled code before the system refuses more of it; return whether that was needed.

    Every function compiled takes some of the memory maps that Linux allows a process. Many fits of
    data of different sizes in one process use them up, and compiling then fails. Elsewhere nothing
    is done.
    """
    try:
        with MAPS.open() as maps:
            used = sum(1 for _ in maps)
        allowed = int(LIMIT.read_text())
    except (OSError, ValueError):
        return False
    if used < SHARE * allowed:
        return False
    jax.clear_caches()
    return True
