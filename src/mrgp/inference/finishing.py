"""The end of a fit: the posterior of all data with the parameters found, and how it went."""

import jax
import numpy as np

from mrgp._types import to_numpy
from mrgp.data import Dataset, cautions_of
from mrgp.inference.fits import Fit, FitError, checksum_of, counts_of
from mrgp.inference.lbfgs import LBFGS
from mrgp.inference.loop import Optimum, Status
from mrgp.inference.problem import Problem
from mrgp.inference.shortfall import (
    SEVERE,
    SLIGHT,
    away,
    below_jitter,
    is_near,
    missed_row,
    shortfall,
    unexplained,
)
from mrgp.inference.stochastic import Adam
from mrgp.models import conditioned
from mrgp.models.contract import State
from mrgp.supports import bounds_of


def finished(
    problem: Problem,
    optimum: Optimum,
    settings: LBFGS | Adam,
    throw: bool,
    state: State = None,
) -> Fit:
    """Condition on all the data with the parameters found, and say how it went."""
    if state is None:
        state = conditioned(optimum.model, problem.records)
    model, data, status = to_numpy(optimum.model), problem.data, optimum.status
    if status.ok and not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(state)):
        status = Status("failed", "the posterior is not finite")
    far = away(model, state, problem) if status.ok else []
    short = shortfall(model, problem.weights, optimum.history, problem.seen)
    short = 0.0 if is_near(far) else short
    if status.ok and short > SEVERE:
        status = Status("failed", str(unexplained(short)))
    falls = [unexplained(short)] if short > SLIGHT else []
    if status.ok and not falls:
        falls = [missed_row(far), below_jitter(model, problem)]
    if throw and not status.ok:
        raise FitError(_diagnosis(problem.seen, status))
    linear, records = model.linear, None
    if linear is not None:
        model = linear = linear.with_plan(None)
    if linear is not None and linear.solver.keeps_data:
        records, state = problem.records, linear.holding(state, problem.records)
    return Fit(
        recipe=problem.recipe,
        model=model,
        state=state,
        scaling=problem.scaling,
        inputs=data.inputs,
        units=data.units,
        counts=counts_of(data),
        weights=problem.weights,
        history=optimum.history,
        status=status,
        optimiser=settings,
        training=optimum.training,
        axes=data.axes,
        covariates=data.covariates,
        checksum=checksum_of(data),
        bounds=np.stack(bounds_of(data.supports)),
        key=problem.key,
        records=records,
        likelihoods={o.process: o.likelihood for o in data},
        spaces=data.spaces,
        exposed=tuple(o.process for o in data if o.exposure is not None),
        doubts=cautions_of(data) + tuple(text for text in falls if text is not None),
        unitless=tuple(o.process for o in data if o.units is None),
    )


def _diagnosis(data: Dataset, status: Status) -> str:
    ranges = (f"{o.label}: {np.nanmin(o.y):.4g} to {np.nanmax(o.y):.4g}" for o in data)
    return (
        f"The fit failed: {status.message}. Values range over {'; '.join(ranges)}. Look for extreme"
        " values, or starting values and known noise variances far from the data's scale."
    )
