"""Fit a model whose posterior is approximated step by step, under L-BFGS for its parameters.

At every set of parameters the approximation settles first; the slope of the bound at a settled
approximation is that of the best bound (theory 11.5).
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from mrgp._compiled import Compiled, Effort, effort_of
from mrgp._types import to_numpy
from mrgp.inference.lbfgs import LBFGS, maximise
from mrgp.inference.loop import Optimum
from mrgp.inference.objectives import Objective
from mrgp.inference.problem import Problem
from mrgp.inference.profiles import Profile
from mrgp.inference.progress import Progress
from mrgp.models import as_arrays
from mrgp.parameters import limits

STEPS, GAIN = 30, 1e-3
LAST_STEPS, LAST_GAIN = 60, 1e-6
TOLERANCE, ROUGH = 1e-7, 1e-4
NEAR, FLAT = 0.1, 0.5


@Compiled
def begin(objective: Objective, trained: Any) -> Any:
    """Return the approximation from which a fit starts."""
    model = objective.model(trained).approximate
    return model.begin(objective.records)


@Compiled
def settled(objective: Objective, trained: Any, found: Any, gain: Array, steps: int) -> Any:
    """Return a settled approximation."""
    model = objective.model(trained).approximate
    return model.settle(found, objective.records, steps, gain)


@Compiled
def _profile(
    objective: Objective, trained: Any, found: Any, size: Array, steps: int, gain: float
) -> tuple[Array, Any, Any]:
    """Return the negative bound at the settled approximation, its slope, and that."""
    model = objective.model(trained).approximate
    found = jax.lax.stop_gradient(model.settle(found, objective.records, steps, gain))
    frozen = objective.frozen.with_approximation(found)
    held = dataclasses.replace(objective, frozen=frozen)
    value, slope = eqx.filter_value_and_grad(lambda p: -held(p) / size)(trained)
    return value, slope, found


class Settled(Profile):
    """The best bound over approximations."""

    def __init__(self, objective: Objective):
        bare = without_approximation(objective)
        records = tuple(record.filled() for record in to_numpy(objective.records))
        filled = dataclasses.replace(bare, records=as_arrays(records))
        own = objective.model(objective.start).approximate
        now = own.approximation
        if now is None or not own.fits(now, records):
            now = begin(filled, objective.start, effort="least")
        super().__init__(bare, filled, now)
        self.effort: Effort = effort_of(objective.count)

    def evaluate(self, trained: Any, size: Array) -> tuple[Array, Any, Any]:
        """Return loss and slope at some parameters, and the settled approximation."""
        return _profile(self.filled, trained, self.now, size, STEPS, GAIN, effort=self.effort)

    def model(self, trained: Any) -> Any:
        """Return the model with the best parameters and their approximation, settled for good."""
        gain = jax.device_put(np.asarray(LAST_GAIN))
        found = settled(self.filled, trained, self.best, gain, LAST_STEPS, effort=self.effort)
        model = self.objective.model(trained).approximate
        ends = np.cumsum([0, *map(len, self.filled.records)])
        starts = zip(ends, self.objective.records, strict=False)
        rows = np.concatenate([start + np.arange(len(record)) for start, record in starts])
        return model.with_approximation(model.kept(to_numpy(found), rows))


def maximise_settled(
    objective: Objective, problem: Problem, settings: LBFGS, progress: Progress
) -> Optimum:
    """Maximise the bound of an approximated model over its parameters.

    Where that is much work, some of the rows find parameters from which all of them go on.
    """
    model = objective.model(objective.start).approximate
    rows = model.enough(problem.records)
    tolerance = max(settings.tolerance, TOLERANCE)
    once = dataclasses.replace(settings, starts=1, candidates=0, tolerance=tolerance)
    if rows is not None:
        some = problem.sample(rows).objective(to_numpy(model))
        loss = Settled(some)
        begun = maximise(loss.objective, problem.log_unit, once, 0, progress, "some rows", loss)
        if begun.status.over:
            return begun
        share = sum(map(len, problem.records)) / max(some.count, 1)
        grown = begun.model.with_approximation(begun.model.grown(share))
        objective = problem.objective(to_numpy(grown))
        once = dataclasses.replace(once, tolerance=ROUGH)
    loss = Settled(objective)
    found = maximise(loss.objective, problem.log_unit, once, 0, progress, loss=loss)
    return found if rows is not None or found.status.over else at_expected(found, loss)


def at_expected(found: Optimum, loss: Settled) -> Optimum:
    """Move parameters that few values leave open from their most likely to their expected values.

    By the curvature of the bound log v has a variance s2 about its best value, so that v is
    expected to be exp(s2 / 2) times as large; and what is not known of the field is, on average
    over v, what it is at the v expected (theory 11.5).
    """
    leaves, tree = jax.tree.flatten(found.trained)
    left_open = {id(p.raw) for p in loss.objective.model(found.trained).approximate.left_open()}
    chosen = [np.full(leaf.shape, id(leaf) in left_open) for leaf in leaves]
    if not any(part.any() for part in chosen):
        return found
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def joined(parts: Any) -> np.ndarray:
        return np.concatenate([np.ravel(np.asarray(part)) for part in parts])

    def apart(vector: np.ndarray) -> Any:
        parts = np.split(vector, ends)
        shaped = [p.reshape(leaf.shape) for p, leaf in zip(parts, leaves, strict=True)]
        return jax.tree.unflatten(tree, map(jax.device_put, shaped))

    best, mask = joined(leaves), joined(chosen)
    loss.now = loss.best

    def slope(vector: np.ndarray) -> np.ndarray:
        return loss.size * joined(jax.tree.leaves(loss(apart(vector))[1]))

    around = [(slope(best + h) - slope(best - h)) / (2 * NEAR) for h in NEAR * np.eye(len(best))]
    curvature = 0.5 * (np.array(around) + np.transpose(around))
    values, vectors = np.linalg.eigh(curvature)
    if not np.all(values > FLAT):
        return found
    spread = np.sum(vectors**2 / values, axis=1)
    _, high = limits(loss.objective.model(found.trained))
    moved = apart(np.where(mask, np.minimum(best + 0.5 * spread, np.maximum(high, best)), best))
    return dataclasses.replace(found, trained=moved, model=loss.model(moved))


def with_settled(problem: Problem, model: Any) -> Any:
    """Return a model with the approximation that its parameters have, given other data."""
    objective = problem.objective(model.with_approximation(None))
    return Settled(objective).model(objective.start)


def without_approximation(objective: Objective) -> Objective:
    """Return the objective of a model without an approximation of its own."""
    start, frozen = (tree.with_approximation(None) for tree in (objective.start, objective.frozen))
    return dataclasses.replace(objective, start=start, frozen=frozen)
