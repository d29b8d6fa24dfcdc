"""What a fit maximises: the log evidence, or its bound, plus the log prior of the parameters."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import float64
from mrgp.data import Dataset, Record, Scaling, process_weights
from mrgp.models import MRDGP, Cascade, Dependent, Recipe, VBAgg
from mrgp.parameters import log_prior, partition


class Objective(eqx.Module):
    """A pure function of the trained raw parameters.

    Call it with a tree like `start`; the value is in nats, in the user's units. With `rows`, an
    array of row numbers (or None for all) for each process, it is the estimate from a minibatch,
    for models whose bound is a sum over rows (`method="svgp"`). It can be passed through `jax.jit`
    and `jax.grad`; use it inside `jax.enable_x64(True)`.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0]]), [2.0], noise_variance=1.0)
    >>> f = objective(mrgp.MRGP(mrgp.Constant(mrgp.fixed(1.0)), mean="zero"), Dataset([sensors]))
    >>> with jax.enable_x64(True):
    ...     print(round(float(f(f.start)), 4))  # log N(2 | 0, 1 + 1)
    -2.2655
    """

    start: Any
    frozen: Any
    records: tuple[Record, ...]

    def __call__(self, trained: Any, rows: Any = None) -> Float[Array, ""]:
        """Return log evidence (or bound) + log prior."""
        model = self.model(trained)
        return model.log_evidence(self.batch(rows)) + log_prior(model)

    @property
    def has_q(self) -> bool:
        """Whether the bound has a q(u) of its own, and so is a sum over rows."""
        return getattr(self.start, "q", None) is not None

    def batch(self, rows: Any) -> tuple[Record, ...]:
        """Return the records of a minibatch, weighted to stand for all."""
        if rows is None or all(r is None for r in rows):
            return self.records
        if not self.has_q:
            raise ValueError(
                'Minibatches need a bound that is a sum over rows; use MRGP(method="svgp").'
            )
        pairs = zip(as_arrays(self.records), rows, strict=True)
        return tuple(record if r is None else record.take(r) for record, r in pairs)

    def __hash__(self) -> int:
        # By identity: `jax.jit` needs a hashable function, and arrays are not hashable.
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def model(self, trained: Any) -> Any:
        """Return the model with these parameters."""
        return eqx.combine(trained, self.frozen)


@float64
def objective(
    model: Recipe, data: Dataset, weights: Mapping[Any, float] | None = None, key: Any = 0
) -> Objective:
    """Return the function that `fit` maximises, with its starting point.

    >>> import jax, mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> f = mrgp.objective(mrgp.MRGP(), mrgp.Dataset([sensors]))
    >>> with jax.enable_x64(True):
    ...     slope = jax.jit(jax.grad(f))(f.start)
    """
    check_model(model, weights)
    seen = model.view(data)
    scaling = Scaling.plain(seen) if is_deep(model) else Scaling.of(seen)
    return build_objective(model.build(seen, key), seen, scaling, weights)


def check_model(model: Any, weights: Mapping[Any, float] | str | None) -> None:
    """Refuse what is not a model, and weights for a model that has none by definition."""
    if isinstance(model, type) or not hasattr(model, "build"):
        hint = f" Write {model.__name__}()." if isinstance(model, type) else ""
        raise TypeError(
            f"The first argument must be a model such as mrgp.MRGP(); got {model!r}.{hint}"
        )
    if isinstance(getattr(model, "model", model), VBAgg) and weights is not None:
        raise ValueError("VBAgg has all weights one by definition; use MRGP to weight sources.")
    if is_deep(model) and isinstance(weights, str):
        raise ValueError(
            f"{type(model).__name__} has a GP for every source, so that no evidence is counted"
            " twice, and no rule for composite weights; give weights={source: number}, or none."
        )
    dependent = any(isinstance(m, Dependent) for m in (model, getattr(model, "model", None)))
    if dependent and not _all_one(weights):
        raise ValueError(
            "Dependent counts shared errors once, and so has all weights one; use MRGP to weight"
            " sources."
        )


def is_deep(recipe: Any) -> bool:
    """Tell whether a recipe makes a tree of GPs."""
    return isinstance(getattr(recipe, "model", recipe), MRDGP | Cascade)


def _all_one(weights: Mapping[Any, float] | str | None) -> bool:
    if weights is None:
        return True
    return isinstance(weights, Mapping) and all(value == 1 for value in weights.values())


def build_objective(
    built: Any, data: Dataset, scaling: Scaling, weights: Mapping[Any, float] | None
) -> Objective:
    """Join a built model and the records of a dataset, as JAX arrays."""
    by_process = process_weights(weights, data.processes)
    records = tuple(scaling.record(o, by_process[o.process]) for o in data)
    trained, frozen = partition(built)
    return Objective(*as_arrays((trained, frozen, records)))


def replace_q(tree: Any, q: Any) -> Any:
    """Return a model, or the trained or frozen part of one, with another q(u)."""
    return eqx.tree_at(lambda t: t.q, tree, q, is_leaf=lambda x: x is None)


def as_arrays(tree: Any) -> Any:
    """Turn NumPy leaves into JAX arrays, so that compiled functions take them as arguments."""
    numpy = np.ndarray | np.generic
    return jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, numpy) else x, tree)
