"""What a fit maximises: the log evidence, or its bound, plus the log prior of the parameters."""

import dataclasses
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from mrgp._compiled import Effort, effort_of
from mrgp._types import to_numpy
from mrgp.data import Records
from mrgp.models import as_arrays, filled
from mrgp.parameters import log_prior, partition


class Objective(eqx.Module):
    """A pure function of the trained raw parameters.

    Call it with a tree like `start`; the value is in nats, in the user's units. With `rows`, an
    array of row numbers (or None for all) for each process, it is the estimate from a minibatch,
    for models whose bound is a sum over rows (`method="svgp"`). It can be passed through `jax.jit`
    and `jax.grad`; use it inside `jax.enable_x64(True)`.

    >>> import jax, mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0]]), [2.0], noise_variance=1.0)
    >>> recipe = mrgp.MRGP(mrgp.Constant(mrgp.fixed(1.0)), mean="zero")
    >>> f = mrgp.objective(recipe, mrgp.Dataset([sensors]))
    >>> with jax.enable_x64(True):
    ...     print(round(float(f(f.start)), 4))  # log N(2 | 0, 1 + 1)
    -2.2655
    """

    start: Any
    frozen: Any
    records: Records

    @classmethod
    def of(cls, model: Any, records: Records) -> "Objective":
        """Join a model and the records of a dataset, as JAX arrays."""
        if model.linear is not None:
            model = model.with_plan(model.plan_of(records))
        return cls(*as_arrays((*partition(model), records)))

    def __call__(self, trained: Any, rows: Any = None) -> Float[Array, ""]:
        """Return log evidence (or bound) + log prior."""
        model = self.model(trained)
        return model.log_evidence(self.batch(rows)) + log_prior(model)

    @property
    def has_q(self) -> bool:
        """Whether the bound has a q(u) of its own, and so is a sum over rows."""
        variational = self.model(self.start).variational
        return variational is not None and variational.q is not None

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(len(record) for record in self.records)

    @property
    def effort(self) -> Effort:
        """The effort that its code is worth: what rests on inducing inputs has less to do."""
        linear = self.model(self.start).linear
        if linear is not None and not linear.solver.fills:
            # Steps along time are small, however many there are.
            return "some"
        sparse = linear is not None and not linear.solver.keeps_data
        return effort_of(self.count // 5 if sparse else self.count)

    def filled(self) -> "Objective":
        """Return the same function of records filled up to sizes for which code is compiled."""
        records = filled(self.model(self.start), to_numpy(self.records))
        return dataclasses.replace(self, records=as_arrays(records))

    def batch(self, rows: Any) -> Records:
        """Return the records of a minibatch, weighted to stand for all."""
        if rows is None or all(r is None for r in rows):
            return self.records
        if not self.has_q:
            raise ValueError(
                'Minibatches need a bound that is a sum over rows; use MRGP(method="svgp").'
            )
        pairs = zip(as_arrays(self.records), rows, strict=True)
        return tuple(record if r is None else record.batch(r) for record, r in pairs)

    def __hash__(self) -> int:
        # By identity: `jax.jit` needs a hashable function, and arrays are not hashable.
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def model(self, trained: Any) -> Any:
        """Return the model with these parameters."""
        return eqx.combine(trained, self.frozen)

    def without_q(self) -> "Objective":
        """Return the bound at the best q for any parameters, where that is explicit."""
        parts = (tree.with_q(None) for tree in (self.start, self.frozen))
        return Objective(*parts, records=self.records)
