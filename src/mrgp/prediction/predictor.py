"""What `predict` needs of a fit, or of chains."""

from typing import Protocol, runtime_checkable

from mrgp.data import Scaling
from mrgp.likelihoods import Likelihood
from mrgp.models import Components, Process, Question
from mrgp.supports import Axis, Field, Support


@runtime_checkable
class Predictor(Protocol):
    """A model that has learned from data, and the numbers in which it has them."""

    @property
    def scaling(self) -> Scaling:
        """Where inputs are centred, and the level of each task."""
        ...

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        ...

    @property
    def units(self) -> dict[str, str | None]:
        """The units of each task."""
        ...

    @property
    def axes(self) -> tuple[Axis | None, ...] | None:
        """What the numbers of each input mean."""
        ...

    @property
    def covariates(self) -> tuple[Field, ...] | None:
        """What the covariates among the inputs were sampled from."""
        ...

    @property
    def processes(self) -> tuple[Process, ...]:
        """The pairs (source, task)."""
        ...

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks."""
        ...

    @property
    def likelihoods(self) -> dict[Process, Likelihood]:
        """How the values of each process scatter."""
        ...

    @property
    def exposed(self) -> tuple[Process, ...]:
        """The processes whose values had an exposure."""
        ...

    def components(self, support: Support, asked: Question, noise: bool = False) -> Components:
        """Return what is known of a support in centred coordinates."""
        ...

    def labelled(self, support: Support) -> Support:
        """Give a support that has no names or axes of its own those of the data."""
        ...
