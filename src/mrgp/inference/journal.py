"""A journal of a fit: what was evaluated so far, from which a fit that was killed goes on.

A fit of the same data is the same sequence of searches whenever it runs. Those that the journal
knows are gone through again without evaluating anything, so that a fit that goes on ends with the
numbers of one that was never stopped.
"""

import contextlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp._drafts import draft

EVERY = 30.0
"""Seconds between two writings."""

Arrays = Sequence[np.ndarray]
Vector = Float[np.ndarray, " p"]

_current: ContextVar["Journal | None"] = ContextVar("journal", default=None)


class Page:
    """What one search evaluated, in order, and what it remembers beside.

    >>> page = Page()
    >>> page.recall(np.zeros(2)) is None
    True
    """

    def __init__(self, book: "Journal | None" = None, kept: dict[str, np.ndarray] | None = None):
        self.book, kept = book, kept or {}
        self.losses: list[float] = kept.get("losses", np.zeros(0)).tolist()
        self.slopes = list(kept.get("slopes", ()))
        self.places = list(kept.get("places", ()))
        count = sum(name.startswith("memory/") for name in kept)
        self.memory = [kept[f"memory/{i}"] for i in range(count)]
        self.known, self.at = len(self.losses), 0
        self.whole = self.known

    @property
    def following(self) -> bool:
        """Whether there is more to go through that is known."""
        return self.at < self.known

    def recall(self, place: Vector) -> tuple[float, Vector] | None:
        """Return loss and slope at the next place, where they are known."""
        if not self.following:
            return None
        if not np.array_equal(self.places[self.at], place):
            self.forget()
            return None
        self.at += 1
        return self.losses[self.at - 1], self.slopes[self.at - 1]

    def forget(self) -> None:
        """Leave what is known behind: this search goes another way."""
        del self.losses[self.at :], self.slopes[self.at :], self.places[self.at :]
        self.known, self.whole, self.memory = self.at, self.at, []
        if self.book is not None:
            self.book.leave(self)

    def add(self, place: Vector, loss: float, slope: Vector) -> None:
        """Note an evaluation."""
        if self.book is None:
            return
        self.places.append(np.array(place))
        self.losses.append(loss)
        self.slopes.append(np.array(slope))

    def offer(self, memory: Callable[[], Arrays], ended: bool = False) -> None:
        """Keep all up to here with what the search remembers, if it is time or the search ended."""
        if self.book is None or self.following or not (ended or self.book.due):
            return
        self.memory, self.whole = [np.asarray(part) for part in memory()], len(self.losses)
        if self.book.due:
            self.book.write()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a file keeps of the page."""
        found = {
            "losses": np.array(self.losses[: self.whole]),
            "slopes": np.array(self.slopes[: self.whole]),
            "places": np.array(self.places[: self.whole]),
        }
        return found | {f"memory/{i}": part for i, part in enumerate(self.memory)}


class Journal:
    """The pages of all searches of a fit, in a file that is written now and then.

    `mark` says of which fit it is: what is kept of another is left.

    >>> Journal(Path("nowhere"), "a fit").pages
    []
    """

    def __init__(self, path: Path, mark: str, every: float | None = None):
        self.path, self.mark = path, mark
        self.every = EVERY if every is None else every
        self.pages: list[Page] = []
        self.kept: list[dict[str, np.ndarray]] = []
        self.written, self.closed = time.monotonic(), False

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self.written >= self.every

    def read(self) -> bool:
        """Take up what the file has of this fit; tell whether it has anything."""
        try:
            with self.path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                # Journals are not packed: what is larger than its file is none.
                if (
                    sum(m.file_size for m in file.zip.infolist())
                    > os.fstat(opened.fileno()).st_size
                ):
                    return False
                if json.loads(str(file["mark"])) != self.mark:
                    return False
                pages: dict[int, dict[str, np.ndarray]] = {}
                for name in (name for name in file.files if name != "mark"):
                    number, _, part = name.partition("/")
                    pages.setdefault(int(number), {})[part] = file[name]
                self.kept = [pages[number] for number in range(len(pages))]
        except Exception:
            # Whatever is wrong with it, a fit can begin anew.
            return False
        return bool(self.kept)

    def page(self) -> Page:
        """Return the page of the next search."""
        number = len(self.pages)
        found = Page(self, self.kept[number] if number < len(self.kept) else None)
        self.pages.append(found)
        return found

    def leave(self, page: Page) -> None:
        """Forget what was kept of searches after one that goes another way."""
        del self.kept[self.pages.index(page) + 1 :]

    def write(self) -> None:
        """Write all pages."""
        arrays = {
            f"{number}/{name}": part
            for number, page in enumerate(self.pages)
            for name, part in page.arrays().items()
        }
        # Searches that are known and were not come to yet stay.
        for number in range(len(self.pages), len(self.kept)):
            arrays |= {f"{number}/{name}": part for name, part in self.kept[number].items()}
        self.written = time.monotonic()
        try:
            with draft(self.path) as named, named.open("wb") as file:
                np.savez(file, allow_pickle=False, mark=np.array(json.dumps(self.mark)), **arrays)
        except OSError as error:
            self.closed = True
            warnings.warn(f"The fit goes on without a journal: {error}", stacklevel=2)

    def close(self) -> None:
        """Write what there is, and keep nothing of what comes after."""
        if not self.closed:
            self.write()
        self.closed = True


@contextlib.contextmanager
def kept(journal: Journal) -> Iterator[None]:
    """Keep what searches evaluate in a journal.

    >>> with kept(Journal(Path("nowhere"), "a fit")):
    ...     new_page().book.mark
    'a fit'
    """
    token = _current.set(journal)
    try:
        yield
    finally:
        _current.reset(token)


def new_page() -> Page:
    """Return the page of a search that begins, in the journal of the fit or in none.

    >>> new_page().book is None
    True
    """
    journal = _current.get()
    return Page() if journal is None or journal.closed else journal.page()


def stopped() -> None:
    """Close the journal of a fit that the user stopped: what it does to end is not part of it.

    >>> stopped()
    """
    journal: Any = _current.get()
    if journal is not None:
        journal.close()
