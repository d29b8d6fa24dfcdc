"""Progress of long work, as an object that is told what happens."""

import sys
import time
from typing import Any, Protocol, runtime_checkable

SECONDS_BETWEEN_LINES = 5.0


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


class Lines:
    """Write plain lines for logs: one every few seconds, and one when a stage ends.

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
        self.title, self.said = self.given or title, time.monotonic()

    def update(self, step: int, text: str) -> None:
        """Write a line if the last one is some time ago."""
        if time.monotonic() - self.said > SECONDS_BETWEEN_LINES:
            self.said = time.monotonic()
            sys.stderr.write(f"{self.title}: {text}\n")

    def finish(self, text: str) -> None:
        """Write the line."""
        sys.stderr.write(f"{self.title}: {text}\n")


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
        self.total = total
        self.bar.start()
        self.task = self.bar.add_task(self.title or title, total=total, text="")

    def update(self, step: int, text: str) -> None:
        """Move the bar."""
        self.bar.update(self.task, completed=min(step, self.total), text=text)

    def finish(self, text: str) -> None:
        """Fill the bar and leave it."""
        self.bar.update(self.task, completed=self.total, text=text)
        self.bar.stop()


def as_progress(progress: Any) -> Progress:
    """Accept "auto", "bar", "lines", True, False, None, or a progress object.

    "auto" draws a bar on a terminal and is silent elsewhere.

    >>> type(as_progress("lines")).__name__, type(as_progress(None)).__name__
    ('Lines', 'Silent')
    """
    if progress == "auto":
        return Bar() if sys.stderr.isatty() else Silent()
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
