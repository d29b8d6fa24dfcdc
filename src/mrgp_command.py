"""The `mrgp` command: OpenBLAS is told to use one thread before anything loads it.

Its threads spin while JAX works, and it reads the variable once.
"""

import os


def main() -> None:
    """Start the command line."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from mrgp.cli import main as start

    start()
