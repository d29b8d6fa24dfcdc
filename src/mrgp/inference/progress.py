"""Progress of long work, as an object that is told what happens."""

import contextlib
import dataclasses
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

SECONDS_BETWEEN_LINES = 5.0
SILENT_SECONDS = 8.0
"""How long nothing is said at most where a `Beat` watches."""

FIRST = "compiling, first step"


@runtime_checkable
class Progress(Protocol):
    """Told when work starts, how far it is, and how it ended.

    >>> isinstance(Silent(), Progress), isinstance("lines", Progress)
    (True, False)
    """

    def start(self, title: str, total: int) -> None:
        """Begin a stage of at most `total` steps."""
        ...

    def update(self, step: int, text: str) -> None:
        """Report a step."""
        ...

    def finish(self, text: str) -> None:
        """End the stage."""
        ...


class Silent:
    """Say nothing.

    >>> Silent().start("fit", 10)
    """

    def start(self, title: str, total: int) -> None:
        """Begin a stage."""

    def update(self, step: int, text: str) -> None:
        """Report a step."""

    def finish(self, text: str) -> None:
        """End the stage."""


@dataclasses.dataclass
class Said:
    """When something was last said to the user, what is being done, and whether a bar moves.

    It is `watched` where something is said after some silent seconds.
    """

    at: float = 0.0
    doing: str = ""
    since: float = 0.0
    moving: bool = False
    watched: bool = False

    def do(self, what: str) -> None:
        """Note what is being done from now on."""
        self.doing, self.since = what, time.monotonic()

    @contextlib.contextmanager
    def nothing(self) -> Iterator[None]:
        """Say nothing by oneself for a while: a person is asked, or a bar moves."""
        self.moving = True
        try:
            yield
        finally:
            self.moving, self.at = False, time.monotonic()


said = Said()
"""What all progress of this process shares."""


class Beat:
    """Say what is being done where nothing else was said for some seconds.

    >>> with Beat():
    ...     said.do("reading files")
    """

    def __init__(self, seconds: float | None = None):
        self.seconds = SILENT_SECONDS if seconds is None else seconds
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Beat":
        said.at, said.watched = time.monotonic(), True
        said.do("")
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        said.watched = False

    def _watch(self) -> None:
        while not self.over.wait(self.seconds / 8):
            say_if_silent(self.seconds)


def say_if_silent(seconds: float) -> None:
    """Say what is being done, if nothing was said for so long."""
    if said.moving or time.monotonic() - said.at < seconds:
        return
    what = said.doing or "working"
    if _is_in("jax._src.compiler") and "compiling" not in what:
        what += ", compiling"
    write(f"{what} ({duration(time.monotonic() - said.since)} so far)")


def watch() -> None:
    """Let a thread say what is being done for as long as this library works, unless one does.

    It ends by itself: an error or Ctrl-C may end the work at any place.
    """
    if not said.watched:
        said.at, said.watched = time.monotonic(), True
        threading.Thread(target=_while_working, daemon=True).start()


def _while_working() -> None:
    try:
        while True:
            time.sleep(SILENT_SECONDS / 8)
            if not _is_in("mrgp"):
                return
            # Where nobody can read any more, there is nothing to say.
            with contextlib.suppress(OSError, ValueError):
                say_if_silent(SILENT_SECONDS)
    finally:
        said.watched = False


def _is_in(module: str) -> bool:
    """Tell whether another thread is inside a module, or one below it."""
    mine = threading.get_ident()
    for thread, frame in sys._current_frames().items():
        at: Any = None if thread == mine else frame
        while at is not None:
            name = str(at.f_globals.get("__name__"))
            if name == module or name.startswith(f"{module}."):
                return True
            at = at.f_back
    return False


def write(line: str) -> None:
    """Write a line to standard error, and note when."""
    said.at = time.monotonic()
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def duration(seconds: float) -> str:
    """Return a length of time in words.

    >>> duration(42.3), duration(100.0), duration(5400.0)
    ('42 s', '1 min 40 s', '1 h 30 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class Pace:
    """How fast steps go, and how long those that are left take at most.

    The first step is left out, since it is compiled before. Where steps are skipped, as by a start
    that ends early, the pace is taken anew.

    >>> pace = Pace(total=10)
    >>> pace.left(1), pace.left(10)
    ('', '')
    """

    def __init__(self, total: int):
        self.total, self.first, self.began = total, 0, 0.0
        self.last, self.stride = 0, 0

    def left(self, step: int) -> str:
        """Return the time that is left in words, where it can be told."""
        now = time.monotonic()
        gone, before = step - self.last, self.stride
        self.last, self.stride = step, gone
        if step <= self.first or not self.first or gone > 2 * before:
            self.first, self.began = step, now
            return ""
        seconds = (self.total - step) * (now - self.began) / (step - self.first)
        return f", at most {duration(seconds)} left" if seconds >= 0.5 else ""


class Lines:
    """Write plain lines for logs: one every few seconds, and one when a stage ends.

    Where a step takes long, such as to compile, what is being done is said meanwhile.

    >>> import contextlib, io
    >>> with contextlib.redirect_stderr(io.StringIO()) as log:
    ...     lines = Lines()
    ...     lines.start("fit", total=10)
    ...     lines.finish("converged")
    >>> print(log.getvalue(), end="")
    fit: converged
    """

    def __init__(self, title: str = ""):
        self.given = self.title = title

    def start(self, title: str, total: int) -> None:
        """Remember the title, unless there is one, and the time."""
        self.title, self.said, self.pace = self.given or title, time.monotonic(), Pace(total)
        watch()
        said.do(f"{self.title}: {FIRST}")

    def update(self, step: int, text: str) -> None:
        """Write a line if the last one is some time ago."""
        left = self.pace.left(step)
        said.do(f"{self.title}: {text}")
        if time.monotonic() - self.said > SECONDS_BETWEEN_LINES:
            self.said = time.monotonic()
            write(f"{self.title}: {text}{left}")

    def finish(self, text: str) -> None:
        """Write the line."""
        write(f"{self.title}: {text}")
        said.do(f"after {self.title}: preparing what follows")


class Bar:
    """Draw a bar on standard error with rich.

    >>> import contextlib, io
    >>> with contextlib.redirect_stderr(io.StringIO()) as terminal:
    ...     bar = Bar("fit")
    ...     bar.start("", total=10)
    ...     bar.update(3, "bound -12.1")
    ...     bar.finish("converged")
    >>> "converged" in terminal.getvalue()
    True
    """

    def __init__(self, title: str = ""):
        self.title = title

    def start(self, title: str, total: int) -> None:
        """Show the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[text]}", markup=False),
            TimeElapsedColumn(),
        )
        self.bar = RichProgress(*columns, console=Console(stderr=True))
        self.total, self.pace, self.named = total, Pace(total), self.title or title
        self.bar.start()
        said.moving = True
        # How much there is to choose is not known: the bar goes to and fro.
        self.task = self.bar.add_task(self.named, total=total or None, text=FIRST)

    def update(self, step: int, text: str) -> None:
        """Move the bar."""
        left = self.pace.left(step)
        self.bar.update(self.task, completed=min(step, self.total), text=f"{text}{left}")

    def finish(self, text: str) -> None:
        """Fill the bar and leave it."""
        whole = self.total or 1
        self.bar.update(self.task, total=whole, completed=whole, text=text)
        self.bar.stop()
        said.moving, said.at = False, time.monotonic()
        said.do(f"after {self.named}: preparing what follows")


class Within:
    """Progress of a part of some work, told as a step of the whole under its name.

    >>> import contextlib, io
    >>> with contextlib.redirect_stderr(io.StringIO()):
    ...     whole = Lines()
    ...     whole.start("choose", total=0)
    ...     part = Within(whole, "kernel 2 of 4", at=1)
    ...     part.start("fit", total=60)
    ...     part.update(12, "step 12 of at most 60")
    >>> said.doing
    'choose: kernel 2 of 4: step 12 of at most 60'
    """

    def __init__(self, inner: Progress, name: str, at: int = 0):
        self.inner, self.name, self.at = inner, name, at
        self.pace = Pace(0)

    def start(self, title: str, total: int) -> None:
        """Say that the part begins."""
        self.pace = Pace(total)
        self.inner.update(self.at, f"{self.name}: {FIRST}")

    def update(self, step: int, text: str) -> None:
        """Say how far the part is."""
        self.inner.update(self.at, f"{self.name}: {text}{self.pace.left(step)}")

    def finish(self, text: str) -> None:
        """Say that the whole goes on with what was found."""
        self.inner.update(self.at, f"{self.name}: looking at what it gives")


def in_notebook() -> bool:
    """Tell whether a person reads in a notebook: what runs there has a kernel.

    >>> in_notebook()
    False
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def as_progress(progress: Any) -> Progress:
    """Accept "auto", "bar", "lines", True, False, None, or a progress object.

    "auto" draws a bar on a terminal, writes lines in a notebook, and is silent elsewhere.

    >>> type(as_progress("lines")).__name__, type(as_progress(None)).__name__
    ('Lines', 'Silent')
    """
    if progress == "auto":
        return Bar() if sys.stderr.isatty() else Lines() if in_notebook() else Silent()
    named = {"bar": Bar, True: Bar, "lines": Lines, None: Silent, False: Silent}
    if isinstance(progress, str | bool | None):
        if progress not in named:
            raise ValueError(
                f'progress= is "auto", "bar", "lines", True, False or an object; got {progress!r}.'
            )
        return named[progress]()
    if isinstance(progress, type) or not isinstance(progress, Progress):
        raise TypeError(
            'progress= is "auto", "bar", "lines", True, False, or an object with the methods'
            f" start(title, total), update(step, text) and finish(text); got {progress!r}."
        )
    return progress
