"""Fit all parameters of a model at once: by L-BFGS, or by stochastic steps on minibatches."""

import dataclasses
from collections.abc import Callable

import numpy as np

from mrgp._types import to_numpy
from mrgp.data import require_in_memory
from mrgp.gp import Markov
from mrgp.inference.ascent import Training, ascend, warm_start
from mrgp.inference.finishing import finished
from mrgp.inference.fits import Fit
from mrgp.inference.lbfgs import LBFGS, maximise
from mrgp.inference.loop import Optimum
from mrgp.inference.objectives import Objective
from mrgp.inference.problem import Problem
from mrgp.inference.progress import Progress
from mrgp.inference.room import check_room
from mrgp.inference.settling import maximise_settled
from mrgp.inference.stochastic import Adam
from mrgp.models import Model

MUCH = 3e9
"""Multiplications of an evaluation, about a second of a core, from which on it is long."""

PLACES, ROWS, SAMPLE = 100, 4000, 1000
"""How much of the data finds parameters to begin with: of a network, and of others."""

ROUGH = 1e-7


def fit_whole(
    problem: Problem, optimiser: LBFGS | Adam | None, progress: Progress, throw: bool = True
) -> Fit:
    """Fit a model by L-BFGS, or by Adam where its bound is a sum over rows."""
    target = problem.objective()
    check_room(target.frozen, target.count)
    settings = optimiser or (Adam() if target.has_q else LBFGS())
    return finished(problem, optimise_whole(target, problem, settings, progress), settings, throw)


def optimise_whole(
    target: Objective,
    problem: Problem,
    settings: LBFGS | Adam,
    progress: Progress,
    training: Training | None = None,
) -> Optimum:
    """Maximise an objective from its start, or from where training stopped."""
    if not (target.has_q and isinstance(settings, Adam)):
        require_in_memory(problem.seen)
    if target.model(target.start).approximate is not None:
        if not isinstance(settings, LBFGS):
            raise ValueError(
                "fit: models of counts, of fields behind a link and of other noise than Gaussian"
                " are fitted by mrgp.LBFGS(); leave optimiser= out."
            )
        return maximise_settled(target, problem, settings, progress)
    if isinstance(settings, LBFGS):
        # The best q(u) of all is known, and with it the bound is the collapsed one.
        target = target.without_q() if target.has_q else target
        begun = begin_with_some(target, problem, settings, progress)
        if begun is None or not begun.status.ok:
            return maximise(target, problem.log_unit, settings, problem.key, progress)
        if begun.status.over:
            # The bound that was reached is that of a part of the data.
            return dataclasses.replace(begun, history=np.zeros(0))
        target = problem.objective(to_numpy(begun.model))
        rough = ROUGH if settings.tolerance == LBFGS().tolerance else settings.tolerance
        once = dataclasses.replace(settings, starts=1, candidates=0, tolerance=rough)
        return maximise(target, problem.log_unit, once, problem.key, progress)
    begun = None
    if training is None and settings.warm_start and target.has_q:
        target, begun = warm_start(target, problem.log_unit, problem.key, progress)
    return ascend(target, settings, problem.key, progress, training, begun, problem.feeds)


def begin_with_some(
    target: Objective, problem: Problem, settings: LBFGS, progress: Progress
) -> Optimum | None:
    """Find parameters on a part of the data, where a search on all of them would take long.

    Starts are chosen and followed there; all data have only to be gone on with from its end.
    """
    linear = target.model(target.start).linear
    if linear is None or not settings.candidates or linear.solver.work(problem.count) < MUCH:
        return None
    if linear.noise.shared:
        # Errors that sources share are those of all rows together.
        return None
    along = isinstance(linear.solver, Markov)
    some = problem.excerpt(PLACES, ROWS) if along else problem.sample(SAMPLE)
    if some.count == problem.count:
        return None
    begun = some.objective(to_numpy(target.model(target.start)))
    return maximise(begun, problem.log_unit, settings, problem.key, progress, "start")


def going_on(fit: Fit, optimiser: LBFGS | Adam | None) -> tuple[LBFGS | Adam, Training | None, int]:
    """Return settings with which a fit may be resumed, its training if it has any, and a seed."""
    settings, training = optimiser or fit.optimiser, fit.training
    if type(settings) is not type(fit.optimiser):
        raise ValueError(
            f"resume: the fit was made with {type(fit.optimiser).__name__}; got"
            f" {type(settings).__name__}."
        )
    if isinstance(settings, LBFGS):
        return dataclasses.replace(settings, starts=1, candidates=0), None, 0
    free = {"steps": settings.steps, "halvings": settings.halvings}
    if dataclasses.replace(fit.optimiser, **free) != settings:
        raise ValueError(
            f"resume: only steps and halvings may differ from the first run's {fit.optimiser}."
        )
    if training is not None and training.steps == 0:
        return settings, None, training.seed
    return settings, training, 0


def with_start_q(fit: Fit) -> Model:
    """Return the model of a fit, with a q(u) where natural gradients had found it."""
    variational = fit.model.variational
    natural = fit.training is not None and fit.training.natural
    return variational.started() if natural and variational is not None else fit.model


def resumed(
    fit: Fit,
    problem: Problem,
    optimiser: LBFGS | Adam | None,
    progress: Progress,
    throw: bool = True,
    optimise: Callable[..., Optimum] = optimise_whole,
) -> Fit:
    """Go on with a fit, from the parameters, and the q, that it has."""
    settings, training, seed = going_on(fit, optimiser)
    problem = dataclasses.replace(problem, key=seed)
    target = problem.objective(with_start_q(fit))
    check_room(target.frozen, target.count)
    optimum = optimise(target, problem, settings, progress, training)
    return finished(dataclasses.replace(problem, key=fit.key), optimum, settings, throw)
