"""Alarms of the compiler, kept from the user while this library works.

XLA writes to standard error when a program takes long to compile. Its level is of the whole
process: it is raised when a public function is entered, and put back to JAX's own when it is left.
"""

import contextlib
import importlib
import os
import threading
from collections.abc import Iterator
from typing import Any

import jax

SILENT = "TF_CPP_MIN_LOG_LEVEL"
OF_JAX = "1"
"""What JAX sets the variable to where nobody has."""
FATAL = 3

_lock = threading.Lock()
_depth = 0


def _level() -> Any:
    """Return what sets the level while the process runs, or None where JAX has it no longer."""
    try:
        utils = importlib.import_module("jaxlib.utils")
    except ImportError:
        return None
    return getattr(utils, "absl_set_min_log_level", None)


def _is_default() -> bool:
    """Tell whether nobody has said which of the compiler's words are to be seen."""
    said = getattr(jax.config, "jax_logging_level", None)
    return os.environ.get(SILENT, OF_JAX) == OF_JAX and said in (None, "NOTSET")


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Keep alarms of the compiler away, unless the user has said which are to be seen.

    >>> with hushed():
    ...     jax.numpy.ones(2).sum().item()
    2.0
    """
    global _depth
    level = _level() if _is_default() else None
    if level is None:
        yield
        return
    with _lock:
        _depth += 1
        if _depth == 1:
            level(FATAL)
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                level(int(OF_JAX))
