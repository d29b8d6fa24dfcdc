"""Adam for the parameters and natural gradients for q(u), on minibatches (theory 2.5)."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from mrgp._types import AnyArray, float64
from mrgp.gp import Natural
from mrgp.inference.batches import batch_sizes
from mrgp.inference.objectives import Objective
from mrgp.models import as_arrays
from mrgp.parameters import limits, log_prior

AVERAGED_STEPS = 200
MINIBATCH_NATURAL_RATE = 0.1

_ADAM = optax.scale_by_adam()


@dataclasses.dataclass(frozen=True)
class Adam:
    """Settings for stochastic fits: steps of Adam, and of natural gradients for q(u).

    At most `steps` steps are taken, on `batch` rows of each process (a number, or a mapping by
    source; default 256). `rate` is Adam's, in the optimiser's coordinates, where one means a
    factor of e for a positive parameter; it is halved whenever the bound stops rising, and the
    fit ends after `halvings` of them. `natural` is the step of the natural gradient; by default
    one on all data (for a network, whose blocks move together, one half or less) and at most 0.1
    on minibatches; `natural=False` leaves q(u) to Adam. `warm_start` begins from the collapsed
    solution on a sample of the data, or on all where it fits.

    >>> Adam(batch=512).rate
    0.02
    """

    steps: Any = 5000
    rate: float = 0.02
    batch: Any = None
    natural: Any = True
    halvings: Any = 3
    warm_start: bool = True

    def __post_init__(self) -> None:
        for name, low in (("steps", 1), ("halvings", 0)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < low:
                raise ValueError(
                    f"Adam: {name} must be a whole number, at least {low}; got {value}."
                )
            object.__setattr__(self, name, int(value))
        if not 0 < self.rate < np.inf:
            raise ValueError(f"Adam: rate must be positive; got {self.rate}.")
        if not (isinstance(self.natural, bool) or 0 < self.natural <= 1):
            raise ValueError(
                f"Adam: natural is a step size between 0 and 1, True or False; got {self.natural}."
            )
        whole = isinstance(self.batch, int | np.integer) and self.batch >= 1
        if self.batch is not None and not whole and not isinstance(self.batch, Mapping):
            raise ValueError(
                f"Adam: batch is a number of rows, or a mapping by source; got {self.batch!r}."
            )


class State(eqx.Module):
    """Where a stochastic fit stands.

    `q`, a `Natural` or a tree of them, is there where q(u) goes by natural gradients; `trained`
    then leaves it out. Adam's moments
    and limits are those of all trained numbers in one vector, and so is `average`, the mean of the
    latest, which has less of the minibatches' noise.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 1.0])
    >>> state = init(mrgp.objective(mrgp.MRGP(method="svgp"), mrgp.Dataset([sensors])))
    >>> float(state.rate), int(state.count)
    (0.02, 0)
    """

    trained: Any
    q: Any
    adam: Any
    average: Float[AnyArray, " p"]
    low: Float[AnyArray, " p"]
    high: Float[AnyArray, " p"]
    rate: Float[AnyArray, ""]
    natural_rate: Float[AnyArray, ""]
    count: Int[AnyArray, ""]

    @property
    def averaged(self) -> Any:
        """The mean of the latest parameters, in the shape of `trained`."""
        return ravel_pytree(self.trained)[1](jnp.asarray(self.average))

    def slower(self) -> "State":
        """Halve both step sizes."""
        changes = {"rate": 0.5 * self.rate, "natural_rate": 0.5 * self.natural_rate}
        return dataclasses.replace(self, **changes)


@float64
def init(objective: Objective, optimiser: Adam | None = None) -> State:
    """Return the state from which `step` starts.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> f = mrgp.objective(mrgp.MRGP(method="svgp"), mrgp.Dataset([sensors]))
    >>> state, bound = mrgp.step(f, mrgp.init(f))
    >>> int(state.count)
    1
    """
    settings = optimiser or Adam()
    trained, q = objective.start, None
    if settings.natural and objective.has_q:
        q = objective.model(trained).natural_q()
        trained = trained if q is None else trained.with_q(None)
    model = model_of(objective, trained, q)
    raw = ravel_pytree(trained)[0].astype(float)
    low, high = limits(model)
    rate = float(settings.natural)
    if settings.natural is True and q is not None:
        rate = model.natural_rate
        rate = rate if _takes_all(objective, settings) else min(rate, MINIBATCH_NATURAL_RATE)
    return as_arrays(
        State(
            trained=trained,
            q=q,
            adam=_ADAM.init(raw),
            average=raw,
            low=jnp.minimum(low, raw),
            high=jnp.maximum(high, raw),
            rate=np.asarray(settings.rate),
            natural_rate=np.asarray(rate),
            count=np.asarray(0),
        )
    )


@float64
def step(objective: Objective, state: State, rows: Any = None) -> tuple[State, Float[AnyArray, ""]]:
    """Take one step up the objective, and return the new state and the bound before it.

    `rows` selects a minibatch: for each process an array of row numbers, or None for all.

    >>> import mrgp, numpy as np
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> f = mrgp.objective(mrgp.MRGP(method="svgp"), mrgp.Dataset([sensors]))
    >>> state, bound = mrgp.step(f, mrgp.init(f), rows=[np.array([0, 2])])
    >>> int(state.count), bool(np.isfinite(bound))
    (1, True)
    """
    if rows is not None:
        _check_rows(objective, rows)
    return _step(*as_arrays((objective, state, rows)))


@eqx.filter_jit
def _step(objective: Objective, state: State, rows: Any) -> tuple[State, Array]:
    return _advance(objective, state, rows)


@eqx.filter_jit
def run_chunk(objective: Objective, state: State, rows: Any, steps: int) -> tuple[State, Array]:
    """Take several steps in one compiled loop; return the state and the bound before each."""
    return jax.lax.scan(lambda s, r: _advance(objective, s, r), state, rows, length=steps)


def _advance(objective: Objective, state: State, rows: Any) -> tuple[State, Array]:
    records = objective.batch(rows)
    if state.q is None:
        value, slope = eqx.filter_value_and_grad(objective)(state.trained, rows)
        q = None
    else:
        naturals, tree = jax.tree.flatten(state.q, is_leaf=_is_natural)
        solved = [natural.moments() for natural in naturals]
        moments = tree.unflatten([m for m, _ in solved])
        divergence = jnp.sum(jnp.stack([d for _, d in solved]))

        def expected(trained: Any, moments: Any) -> Array:
            model = model_of(objective, trained, state.q)
            return model.expected_log_likelihood(moments, records) + log_prior(model)

        both = jax.value_and_grad(expected, argnums=(0, 1))
        value, (slope, slopes) = both(state.trained, moments)
        value = value - divergence
        steps = zip(naturals, solved, tree.flatten_up_to(slopes), strict=True)
        rate = state.natural_rate
        q = tree.unflatten([natural.step(m, slope, rate) for natural, (m, _), slope in steps])
    raw, tree = ravel_pytree(state.trained)
    if not raw.size:
        return dataclasses.replace(state, q=q, count=state.count + 1), value
    # Optax counts in int32 and relies on promotion, which the host program may have made strict.
    with jax.numpy_dtype_promotion("standard"):
        update, adam = _ADAM.update(ravel_pytree(slope)[0], state.adam)
    raw = jnp.clip(raw + state.rate * jnp.asarray(update), state.low, state.high)
    share = 1.0 / jnp.minimum(state.count + 1, AVERAGED_STEPS).astype(float)
    average = state.average + share * (raw - state.average)
    moved = dataclasses.replace(
        state, trained=tree(raw), q=q, adam=adam, average=average, count=state.count + 1
    )
    return moved, value


def _is_natural(node: Any) -> bool:
    return isinstance(node, Natural)


def optimal_q(objective: Objective, state: State) -> State:
    """Give a state the best q for its parameters, where it is explicit."""
    if state.q is None or not objective.frozen.explicit:
        return state
    return dataclasses.replace(state, q=_optimal_q(objective, state))


@eqx.filter_jit
def _optimal_q(objective: Objective, state: State) -> Natural:
    return model_of(objective, state.trained, state.q).optimal_q(objective.records)


def _takes_all(objective: Objective, settings: Adam) -> bool:
    """Tell whether a batch of these settings is all of the data."""
    sizes = batch_sizes(settings.batch, objective.frozen.processes, objective.records)
    return sizes == tuple(map(len, objective.records))


def _check_rows(objective: Objective, rows: Any) -> None:
    counts = list(map(len, objective.records))
    if len(rows) != len(counts):
        raise ValueError(
            f"step: rows needs an array, or None, for each of the {len(counts)} processes; got"
            f" {len(rows)}."
        )
    for (source, task), chosen, n in zip(objective.frozen.processes, rows, counts, strict=True):
        if chosen is None:
            continue
        index = np.asarray(chosen)
        if (
            index.ndim != 1
            or index.dtype.kind not in "iu"
            or not np.all((index >= 0) & (index < n))
        ):
            raise ValueError(
                f"step: rows of source {source!r}, task {task!r} must be whole numbers from 0 to"
                f" {n - 1} in one array; got {chosen!r}."
            )


def full_bound(objective: Objective, state: State, trained: Any) -> float:
    """Return the bound on all data, with the best q for the parameters where it is known."""
    return float(_full_bound(objective, state, trained))


@eqx.filter_jit
def _full_bound(objective: Objective, state: State, trained: Any) -> Array:
    model = model_of(objective, trained, state.q)
    if state.q is None:
        return model.log_evidence(objective.records) + log_prior(model)
    return model.full_bound(state.q, objective.records) + log_prior(model)


def model_of(objective: Objective, trained: Any, q: Any) -> Any:
    """Return the model with these parameters, without the q(u) that natural gradients keep."""
    frozen = objective.frozen if q is None else objective.frozen.with_q(None)
    return eqx.combine(trained, frozen)
