"""Models whose posterior is approximated in steps, and data that others refuse."""

from typing import Any, Protocol, runtime_checkable

from mrgp.data import Dataset, Records
from mrgp.models.contract import Model
from mrgp.parameters import Parameter


@runtime_checkable
class Approximate(Model, Protocol):
    """A model whose posterior is approximated: found in steps for given parameters (theory 11.5).

    >>> from mrgp import MRGP, Dataset, Observations, Poisson, points
    >>> data = Dataset([Observations(points([[0.0], [1.0]]), [0, 2], likelihood=Poisson())])
    >>> MRGP().build(data).approximate is None
    False
    """

    approximation: Any

    def with_approximation(self, found: Any) -> "Approximate":
        """Return the model with another approximation, or without one."""
        ...

    def begin(self, records: Records) -> Any:
        """Return the approximation from which to start."""
        ...

    def settle(self, begun: Any, records: Records, steps: int, gain: Any) -> Any:
        """Improve an approximation until the bound rises by less than `gain`."""
        ...

    def fits(self, found: Any, records: Records) -> bool:
        """Tell whether an approximation can be one of these records."""
        ...

    def enough(self, records: Records) -> int | None:
        """Return how many rows will do to begin with, where all of them are much work."""
        ...

    def left_open(self) -> tuple[Parameter, ...]:
        """Return positive parameters that few values leave open, and that the field grows with."""
        ...

    def grown(self, share: float) -> Any:
        """Return the approximation that so many times as many rows would have, about."""
        ...

    def kept(self, found: Any, rows: Any) -> Any:
        """Return an approximation without the rows that only fill a size."""
        ...


CLOSED = (
    "the model is solved in closed form. Use MRGP (for counts of several tasks MRGPRN with"
    ' kernel_w="constant")'
)


def refuse_likelihoods(data: Dataset, name: str, why: str = CLOSED) -> None:
    """Refuse sources whose likelihood a model cannot serve that is solved in closed form.

    >>> from mrgp import Observations, points
    >>> data = Dataset([Observations(points([[0.0]]), [1.0], likelihood="gaussian")])
    >>> refuse_likelihoods(data, "MRGPRN")
    """
    for o in data:
        reason = None
        if not o.likelihood.conjugate:
            reason = (
                f"the likelihood {o.likelihood.name!r} has no Gaussian posterior, and {why}, or"
                ' likelihood="gaussian"'
            )
        elif o.censored is not None:
            reason = (
                "values at or beyond their limit have no Gaussian posterior. Put half the limit in"
                " their place, with a noise to match (mrgp.below_limit), or use MRGP"
            )
        elif o.exposure is not None:
            reason = 'exposure= multiplies a positive field. Use MRGP(link="log")'
        if reason is not None:
            raise ValueError(f"{o.label}: {name} cannot be fitted to it: {reason}.")
