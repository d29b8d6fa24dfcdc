"""What came of trying: how many inputs ended in an answer, in a sentence, or in anything else."""

import contextlib
import dataclasses
import resource
import time
from pathlib import Path

LONGEST, LARGEST = 30.0, 2e9
"""Seconds that one input may take, and bytes that a process may."""

MOST_LINES, MOST_CHARACTERS = 6, 1500


seen = {"bytes": 0.0}


def note_size(process):
    """Note the most bytes that another process has ever had."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                seen["bytes"] = max(seen["bytes"], 1024.0 * float(line.split()[1]))


def most_bytes():
    """The most bytes that this process or any of its children has ever had."""
    with contextlib.suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            for child in (task / "children").read_text().split():
                note_size(child)
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(seen["bytes"], *(resource.getrusage(one).ru_maxrss * 1024.0 for one in whose))


@dataclasses.dataclass
class Tried:
    """What came of one kind of trying."""

    part: str
    what: str
    inputs: int = 0
    answered: int = 0
    told: int = 0
    wrong: list[str] = dataclasses.field(default_factory=list)
    slowest: float = 0.0
    bytes: float = 0.0
    before: float = dataclasses.field(default_factory=lambda: most_bytes())

    def answer(self):
        self.answered += 1

    def tell(self, text, name=None):
        """Count a sentence; one without the name of its file, or without end, is wrong."""
        if name is not None and name not in text:
            self.wrong.append(f"no name of the file in: {text[:200]}")
        elif len(text) > MOST_CHARACTERS or len(text.splitlines()) > MOST_LINES:
            self.wrong.append(f"too long: {text[:200]}")
        else:
            self.told += 1

    def fail(self, text):
        self.wrong.append(text[:400])

    def timed(self, start, longest=LONGEST):
        """Note how long an input took, and how large the process has become."""
        took = time.perf_counter() - start
        self.inputs, self.slowest = self.inputs + 1, max(self.slowest, took)
        self.bytes = most_bytes()
        if took > longest:
            self.wrong.append(f"took {took:.0f} s")
        if self.bytes > self.before and self.bytes > LARGEST:
            self.wrong.append(f"the process has {self.bytes / 1e9:.1f} GB")

    @property
    def row(self):
        room = f"{self.bytes / 1e9:.2f} GB" if self.bytes else ""
        numbers = [self.inputs, self.answered, self.told, len(self.wrong)]
        return [self.what, *map("{:,}".format, numbers), f"{self.slowest:.1f} s", room]
