"""What came of trying: how many inputs ended in an answer, in a sentence, or in anything else."""

import contextlib
import dataclasses
import json
import resource
import sys
import time
from pathlib import Path

LONGEST, LARGEST = 30.0, 2e9
"""Seconds that one input may take, and bytes that a process may."""

MOST_LINES, MOST_CHARACTERS = 6, 1500
SAID_EVERY = 5.0
"""Seconds after which a part says how far it is, so that what it has found is not lost with it."""

seen = {"bytes": 0.0}
said = {"at": 0.0}


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


def fault_of(text, name=None):
    """Return what is wrong with a sentence, if anything: no name of its file, or no end."""
    if name is not None and name not in text:
        return f"no name of the file in: {text[:200]}"
    if len(text) > MOST_CHARACTERS or len(text.splitlines()) > MOST_LINES:
        return f"too long: {text[:200]}"
    return None


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
        fault = fault_of(text, name)
        if fault is None:
            self.told += 1
        else:
            self.wrong.append(fault)

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
        if time.perf_counter() - said["at"] > SAID_EVERY:
            self.say()

    def say(self):
        """Print what is known so far as a line of JSON, past whatever takes the output."""
        said["at"] = time.perf_counter()
        print(json.dumps(dataclasses.asdict(self)), file=sys.__stdout__, flush=True)
