"""The `mrgp` command: libraries are told how to behave before anything loads them.

OpenBLAS is to use one thread, since its threads spin while JAX works, and the compiler is not to
write to standard error. Both read their variables once.
"""

import os
import signal
from typing import Any

STOPPED = 130
SILENT = "TF_CPP_MIN_LOG_LEVEL"


def main() -> None:
    """Start the command line."""
    prepare()
    # Ctrl-C while libraries are loaded would end in a traceback of one of them, or be taken for a
    # fault of theirs.
    before = signal.signal(signal.SIGINT, _stop)
    from mrgp.cli import main as start

    signal.signal(signal.SIGINT, before)
    start()


def prepare() -> None:
    """Set what libraries read once, when they are loaded, unless the user has."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The compiler's own alarms, of slow compiling and of constants, are nothing to a user.
    os.environ.setdefault(SILENT, "3")


def _stop(*_: Any) -> None:
    os.write(2, b"stopped\n")
    os._exit(STOPPED)
