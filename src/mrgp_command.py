"""The `mrgp` command: OpenBLAS is told to use one thread before anything loads it.

Its threads spin while JAX works, and it reads the variable once.
"""

import os
import signal
from typing import Any

STOPPED = 130


def main() -> None:
    """Start the command line."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Ctrl-C while libraries are loaded would end in a traceback of one of them, or be taken for a
    # fault of theirs.
    before = signal.signal(signal.SIGINT, _stop)
    from mrgp.cli import main as start

    signal.signal(signal.SIGINT, before)
    start()


def _stop(*_: Any) -> None:
    os.write(2, b"stopped\n")
    os._exit(STOPPED)
