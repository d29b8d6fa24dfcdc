"""A folder in which compiled programs last, for the next process."""

import hashlib
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import jax

VARIABLE = "MRGP_CACHE"
OFF = ("off", "none", "0", "")
PROGRAMS = "*-cache"
LEAST_SECONDS = 0.05


def compilation_cache(path: str | Path | None = None, megabytes: float = 500) -> Path | None:
    """Keep compiled programs in a folder, and use those that are there already.

    Most of a first fit is compiling; the next process finds its programs again. The command line
    does this by itself, the library only where it is asked to. `path` is by default what the
    variable `MRGP_CACHE` says ("off" keeps nothing), and otherwise the user's cache folder; inside
    it, every machine and version has a folder of its own. Beyond `megabytes`, the programs that
    were not used for longest go first. Returns the folder, or None where nothing is kept: it is
    off, cannot be written to, or JAX has a cache already.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = compilation_cache(folder)
    ...     jax.config.update("jax_compilation_cache_dir", None)
    >>> kept is None or kept.parent == Path(folder)
    True
    """
    asked = os.environ.get(VARIABLE) if path is None else path
    if isinstance(asked, str) and asked.strip().lower() in OFF:
        return None
    if path is None and jax.config.values["jax_compilation_cache_dir"]:
        return None
    folder = (Path(asked).expanduser() if asked else _usual()) / _of_this_machine()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _make_room(folder, megabytes * 1e6)
        writable = os.access(folder, os.W_OK)
    except OSError as error:
        if path is not None:
            raise ValueError(
                f"compilation_cache: {folder} cannot be used: {error}. Give a folder that can be"
                " written to."
            ) from error
        return None
    if not writable:
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    return folder


def _usual() -> Path:
    """Return the folder that systems have for what can be made again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "mrgp"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "mrgp"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mrgp"


def _of_this_machine() -> str:
    """Name a folder after all that a program must fit: versions, and what the processor can do.

    Homes are shared by machines with different processors.
    """
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        cpu += "".join(sorted({line for line in lines if line.startswith(("flags", "Features"))}))
    except OSError:
        pass
    parts = (version("mrgp"), version("jax"), version("jaxlib"), platform.machine(), cpu)
    return "programs-" + hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _make_room(folder: Path, most: float) -> None:
    """Remove the programs that were not used for longest, until the rest is small enough.

    Other processes may do the same at the same time: what is gone already is no error.
    """
    found = []
    for path in folder.glob(PROGRAMS):
        try:
            known = path.stat()
        except OSError:
            continue
        found.append((max(known.st_atime, known.st_mtime), known.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= most:
            break
        path.unlink(missing_ok=True)
        total -= size
