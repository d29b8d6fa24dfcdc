"""What every model recipe and every built model can do."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import numpy as np
from jaxtyping import Float

from mrgp._types import AnyArray
from mrgp.data import Dataset, Record, Scaling
from mrgp.parameters import Parameter
from mrgp.supports import Support

Process = tuple[str, str]


@runtime_checkable
class Built(Protocol):
    """A model with parameters: an equinox module made by a recipe for a dataset."""

    @property
    def processes(self) -> tuple[Process, ...]:
        """The pairs (source, task)."""
        ...

    def account(self, state: Any) -> str:
        """How the posterior is held, in words."""
        ...

    def log_evidence(self, records: Sequence[Record]) -> Float[AnyArray, ""]:
        """Return the log evidence of the records, or a lower bound on it."""
        ...

    def condition(self, records: Sequence[Record]) -> Any:
        """Return the posterior state that prediction needs."""
        ...

    def moments(
        self, state: Any, support: Support, task: str, source: str | None
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, " n"]]:
        """Return mean and variance of a task, or of what a source reports of it, without noise."""
        ...

    def joint(
        self, state: Any, support: Support, task: str, source: str | None
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, "n n"]]:
        """Return mean and joint covariance of the same."""
        ...

    def observation_noise(self, process: Process) -> float:
        """Return the noise variance of a new observation of a process."""
        ...

    def named(self) -> dict[str, Parameter]:
        """Return the parameters by name."""
        ...

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return the parameters by name, in the user's units."""
        ...


@eqx.filter_jit
def conditioned(model: Any, records: Sequence[Record]) -> Any:
    """Return the posterior state of a model given records, compiled.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0]]), [2.0], noise_variance=1.0)
    >>> model = mrgp.MRGP(mrgp.Constant(1.0), mean="zero").build(Dataset([seen]))
    >>> state = conditioned(model, [Scaling.of(Dataset([seen])).record(seen)])
    >>> state.alpha.round(3).tolist()  # 2 / (1 + 1)
    [1.0]
    """
    return model.condition(records)


@runtime_checkable
class Recipe(Protocol):
    """A frozen description of a model: plain values, no data.

    >>> from mrgp import MRGP, RBF
    >>> isinstance(MRGP(), Recipe), isinstance(RBF(), Recipe)
    (True, False)
    """

    def view(self, data: Dataset) -> Dataset:
        """Return the data as the model sees it."""
        ...

    def build(self, data: Dataset, key: Any = 0) -> Built:
        """Make the model for a dataset, with starting values."""
        ...
