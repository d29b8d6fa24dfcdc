"""Files that are written whole or not at all: a draft beside the target takes its place."""

import contextlib
import ctypes
import glob
import hashlib
import os
import platform
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BEGIN = ".part"
FORGOTTEN = 86400.0
"""Seconds after which the draft of another machine is taken for a leftover."""

_HERE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]


@contextlib.contextmanager
def draft(path: Any) -> Iterator[Path]:
    """Give a name to write to; what is there at the end takes the place of `path`.

    The draft lies beside the path under a name of its own, so that two writers never meet: the last
    whole file wins. It is on the disk before it takes the place, and where anything goes wrong the
    file that was there stays. Leftovers of processes that are gone are removed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with draft(Path(folder) / "a.txt") as named:
    ...         _ = named.write_text("whole")
    ...     [file.name for file in Path(folder).iterdir()]
    ['a.txt']
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        # A device or a pipe takes what comes; nothing can take its place.
        yield path
        return
    target = Path(os.path.realpath(path))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"{path} cannot be written: it is read-only.")
    clean(target)
    named = target.with_name(_name(target))
    try:
        yield named
        _place(named, target)
    except OSError as error:
        raise OSError(_told(path, error)) from error
    finally:
        with contextlib.suppress(OSError):
            named.unlink(missing_ok=True)


def write_bytes(path: Any, content: bytes | memoryview) -> None:
    """Write a file whole or not at all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes(Path(folder) / "a", b"whole")
    ...     (Path(folder) / "a").read_bytes()
    b'whole'
    """
    with draft(path) as named:
        named.write_bytes(content)


def write_text(path: Any, text: str) -> None:
    """Write text in UTF-8, whole or not at all; its lines end as they are.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(Path(folder) / "a", "whole")
    ...     (Path(folder) / "a").read_text()
    'whole'
    """
    write_bytes(path, text.encode())


def check_writable(path: Any, option: str = "") -> None:
    """Refuse a path that cannot be written, before anything is computed for it.

    A folder that is not there yet is not made; the nearest above it must take new files.

    >>> check_writable("/dev/null/a.csv", "--out ")
    Traceback (most recent call last):
    OSError: --out /dev/null/a.csv cannot be written: Not a directory.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{option}{path} is a folder; give the name of a file.")
    try:
        if path.exists():
            path.open("ab").close()
        # The draft lies in the folder, which must take it too.
        folder = next(above for above in path.absolute().parents if above.exists())
        tried = folder / _name(path)
        tried.touch()
        tried.unlink()
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(f"{option}{path} cannot be written: {reason}.") from None


def exchange(new: Path, old: Path) -> None:
    """Let two files or folders change their names, at once where the system can.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     new, old = Path(folder) / "new", Path(folder) / "old"
    ...     new.mkdir(), write_text(old, "a file")
    ...     exchange(new, old)
    ...     old.is_dir(), new.read_text()
    (None, None)
    (True, 'a file')
    """
    if _exchanged(new, old):
        return
    aside = new.with_name(_name(new))
    os.replace(old, aside)
    os.replace(new, old)
    os.replace(aside, new)


def _exchanged(one: Path, other: Path) -> bool:
    """Ask Linux to exchange two names in one step; not every file system does."""
    with contextlib.suppress(AttributeError, OSError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        here, swap = -100, 2
        return rename(here, os.fsencode(one), here, os.fsencode(other), ctypes.c_uint(swap)) == 0
    return False


def clean(target: Path) -> None:
    """Remove drafts of a file that processes which are gone have left.

    >>> clean(Path("nowhere/at-all"))
    """
    for left in target.parent.glob(f"{BEGIN}-*-{glob.escape(_tail(target))}"):
        _, machine, process, *_ = left.name.split("-", 4)
        with contextlib.suppress(OSError, ValueError):
            if _is_left(left, machine, int(process)):
                left.unlink()


def _is_left(file: Path, machine: str, process: int) -> bool:
    if time.time() - file.stat().st_mtime > FORGOTTEN:
        return True
    if machine != _HERE or os.name != "posix":
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def _name(target: Path) -> str:
    """Return a name that is nobody else's; it ends as the file does, which tells its format."""
    return f"{BEGIN}-{_HERE}-{os.getpid()}-{secrets.token_hex(4)}-{_tail(target)}"


def _tail(target: Path) -> str:
    """Return the end of a name, short enough for a longer one in any file system."""
    name = target.name
    if len(name.encode()) <= 150:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{mark}{target.suffix[-50:]}"


def _place(named: Path, target: Path) -> None:
    """Bring a draft to the disk, and to its place."""
    with named.open("r+b") as file:
        os.fsync(file.fileno())
    if target.exists():
        shutil.copymode(target, named)
    os.replace(named, target)
    if os.name == "posix":
        with contextlib.suppress(OSError):
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _told(path: Path, error: OSError) -> str:
    kept = " What was there is as it was." if path.exists() else ""
    return f"{path} could not be written: {error.strerror or error}.{kept}"
