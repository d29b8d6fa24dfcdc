"""Interpreters of the peers, each in an environment of its own that is made from its pins."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# The peers' scripts share the stopwatch, and neither peer is to look for a GPU.
ENVIRONMENT = {
    "PYTHONPATH": str(HERE),
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "-1",
    "OPENBLAS_NUM_THREADS": "1",
}


def peer_python(name: str) -> Path:
    """Return a peer's interpreter, after making its environment where it is missing or stale."""
    folder, pinned = HERE.parent / f".venv-{name}", HERE / "peers" / f"{name}.txt"
    python, stamp, pins = folder / "bin" / "python", folder / "installed.txt", pinned.read_text()
    if not stamp.exists() or stamp.read_text() != pins:
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
        for command in ([sys.executable, "-m", "venv", folder], [*pip, "-r", pinned]):
            subprocess.run(command, check=True, stdout=sys.stderr)
        stamp.write_text(pins)
    return python


def peer_environment() -> dict[str, str]:
    """Return the environment variables that a peer runs with."""
    return os.environ | ENVIRONMENT
