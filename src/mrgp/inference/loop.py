"""One loop for all long work: steps until it ends, with progress, Ctrl-C and a status."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from mrgp.inference.journal import stopped
from mrgp.inference.progress import Progress

Code = Literal["converged", "stalled", "step limit", "interrupted", "failed"]
Say = Callable[[int, str], None]
"""Told how many steps were taken, and how it stands."""


@dataclasses.dataclass(frozen=True)
class Status:
    """How a fit ended, and what that means.

    >>> status = Status("failed", "the posterior is not finite")
    >>> print(status, status.ok)
    failed: the posterior is not finite False
    """

    code: Code
    message: str

    @property
    def ok(self) -> bool:
        """Whether the result can be used."""
        return self.code != "failed"

    @property
    def over(self) -> bool:
        """Whether nothing more is to be done: it failed, or the user stopped it."""
        return self.code in ("failed", "interrupted")

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


@dataclasses.dataclass(frozen=True)
class Optimum:
    """The best parameters found, the model with them, the bound along the way, and how it ended.

    `training` is what a stochastic fit needs to go on.

    >>> Optimum(None, None, np.array([-3.0, -2.5]), Status("converged", "2 steps")).bound
    -2.5
    """

    trained: Any
    model: Any
    history: Float[np.ndarray, " steps"]
    status: Status
    training: Any = None

    @property
    def bound(self) -> float:
        """The bound at the end, minus infinity where there is none."""
        last = float(self.history[-1]) if len(self.history) else -np.inf
        return last if np.isfinite(last) else -np.inf


@runtime_checkable
class Work(Protocol):
    """Something that is done in steps: a search from several starts, stochastic steps, draws."""

    @property
    def total(self) -> int:
        """How many steps there are at most."""
        ...

    def advance(self, say: Say) -> Status | None:
        """Go on for a while; return a status where it has ended."""
        ...

    def interrupted(self) -> Status:
        """Return what to say where the user stopped it."""
        ...


def run(work: Work, title: str, progress: Progress) -> Status:
    """Go on with some work until it ends, or the user stops it."""
    progress.start(title, work.total)
    status = None
    said = "failed"
    try:
        while status is None:
            status = work.advance(progress.update)
        # There may be more stages: whether the fit converged is for its status to say.
        said = f"done, {status.message}" if status.code == "converged" else status.code
    except KeyboardInterrupt:
        stopped()
        status = work.interrupted()
        said = status.code
    finally:
        progress.finish(said)
    return status
