"""What `predict` needs of a fit, or of chains."""

from typing import Protocol, runtime_checkable

from mrgp.data import Scaling
from mrgp.models import Components, Process, Question
from mrgp.supports import Axis, Field, Support


@runtime_checkable
class Predictor(Protocol):
    """A model that has learned from data, and the numbers in which it has them."""

    scaling: Scaling
    inputs: tuple[str, ...]
    units: dict[str, str | None]
    axes: tuple[Axis | None, ...] | None
    covariates: tuple[Field, ...] | None

    @property
    def processes(self) -> tuple[Process, ...]:
        """The pairs (source, task)."""
        ...

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks."""
        ...

    def components(self, support: Support, asked: Question, noise: bool = False) -> Components:
        """Return what is known of a support in centred coordinates."""
        ...

    def labelled(self, support: Support) -> Support:
        """Give a support that has no names or axes of its own those of the data."""
        ...
