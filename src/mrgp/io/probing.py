"""Try a file in a process of its own first, where the library beneath may hang or crash on it."""

import atexit
import contextlib
import functools
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

SECONDS, LONGEST = 8.0, 30.0
BYTES_A_SECOND = 2e7
"""How long a file may take to be gone through: some time for all, and more for large ones."""

MOST_COLUMNS = 10_000
FEWEST_VALUES, MOST_VALUES = 3_000_000, 10**8
FEWEST_BYTES, MOST_GROWTH = 1 << 27, 20
"""A file of any size may have the fewest, a larger one a value a byte, and grow so many times."""

VARIABLE = "MRGP_MOST_VALUES"
"""The variable of the environment by which a file that is right may have more values."""

CHILD = Path(__file__).with_name("trial.py")
ALONE = {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
ALONE |= {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}


class Prober:
    """A process that goes through files, started when it is first needed and kept.

    >>> Prober().process is None
    True
    """

    def __init__(self) -> None:
        self.process: Any = None
        self.lock = threading.Lock()

    def ask(self, line: str, seconds: float) -> str:
        """Return what going through a file says, of which `trial.py` knows."""
        with self.lock:
            if self.process is None or self.process.poll() is not None:
                self.process = self._start()
            late = threading.Event()
            watch = threading.Timer(seconds, self._kill, [late])
            watch.start()
            try:
                self.process.stdin.write(f"{line}\n")
                self.process.stdin.flush()
                said = self.process.stdout.readline().strip()
            except OSError:
                said = ""
            finally:
                watch.cancel()
            if said:
                return said
            self.process.communicate()
            self.process = None
        return f"error the library that reads it {'hangs' if late.is_set() else 'crashes'} on it"

    def _kill(self, late: threading.Event) -> None:
        late.set()
        self.process.kill()

    def end(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            with contextlib.suppress(OSError):
                self.process.kill()
                self.process.communicate()

    def _start(self) -> Any:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-P", str(CHILD)],
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            env=os.environ | ALONE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )


_prober = Prober()
atexit.register(_prober.end)


def probe(path: Path, kind: str) -> None:
    """Raise what is wrong with a file, if anything, before this process reads it.

    One flipped byte can send a library into a loop without end, which no signal breaks, and a few
    kilobytes can unfold into gigabytes.
    """
    name = str(path.resolve())
    if not sys.executable or "\n" in name:
        return
    newest, size = _about(path)
    values, most = most_values(size), most_bytes(size)
    line = f"{kind} {MOST_COLUMNS} {values} {most} {name}"
    what, _, said = _asked(line, newest, size).partition(" ")
    if what == "error":
        raise ValueError(said)
    if what == "columns":
        check_columns(int(said))
    elif what == "values":
        check_values(int(said), size)
    elif what == "bytes":
        times = f"{most / max(1, size):,.0f} times its size"
        raise ValueError(f"it grows to over {most:,} bytes, {times}. {_allow()}")


@functools.lru_cache(64)
def _asked(line: str, _: int, size: int) -> str:
    """Ask once for each version of a file."""
    return _prober.ask(line, min(LONGEST, SECONDS + size / BYTES_A_SECOND))


def size_of(path: Path) -> int:
    """Return the bytes of a file with those that belong to it, or of all files of a store.

    >>> size_of(Path("nowhere"))
    0
    """
    return _about(path)[1]


def _about(path: Path) -> tuple[int, int]:
    """Return when the newest of the files of a path was written, and the bytes of all."""
    if path.is_dir():
        files = [file for file in path.rglob("*") if file.is_file()]
    else:
        beside = (".shx", ".dbf", ".prj", ".cpg") if path.suffix.lower() == ".shp" else ()
        files = [path, *map(path.with_suffix, beside)]
    found = [file.stat() for file in files if file.exists()]
    return max((f.st_mtime_ns for f in found), default=0), sum(f.st_size for f in found)


def most_values(size: int) -> int:
    """Return how many values a file of so many bytes may have.

    >>> most_values(100), most_values(5_000_000)
    (3000000, 5000000)
    """
    given = os.environ.get(VARIABLE, "")
    if given and not given.isdecimal():
        raise ValueError(f"the variable {VARIABLE} must be a whole number; got {given!r}")
    return int(given) if given else min(MOST_VALUES, max(FEWEST_VALUES, size))


def most_bytes(size: int) -> int:
    """Return into how many bytes a file of so many may unfold.

    >>> most_bytes(100), most_bytes(10_000_000)
    (134217728, 200000000)
    """
    given = 8 * most_values(size) if os.environ.get(VARIABLE) else 0
    return max(FEWEST_BYTES, MOST_GROWTH * size, given)


def check_values(count: int, size: int) -> None:
    """Refuse more values than a file of so many bytes may have, before they are read."""
    most = most_values(size)
    if count > most:
        raise ValueError(
            f"it says that it has {count:,} values, and {most:,} are the most for a file of"
            f" {size:,} bytes. {_allow(count)}"
        )


def check_columns(count: int) -> None:
    """Refuse a table of very many columns."""
    if count > MOST_COLUMNS:
        raise ValueError(
            f"it has {count:,} columns, and {MOST_COLUMNS:,} are the most. Values stand below one"
            " another, in one column"
        )


def _allow(count: int = MOST_VALUES) -> str:
    return (
        "Take a part of it, with fewer times or places; or, if it is right and there is memory for"
        f" it, set {VARIABLE}={count}"
    )
