"""Compiled code, and the room that the system has for it."""

from pathlib import Path

import jax

MAPS = Path("/proc/self/maps")
LIMIT = Path("/proc/sys/vm/max_map_count")
SHARE = 0.5


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
