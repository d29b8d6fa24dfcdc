"""The stages of a network's fit: linear start, one component, several components (theory 3.6)."""

import dataclasses
from typing import Any

from mrgp._types import to_numpy
from mrgp.inference.ascent import WARM, Training, ascend, sampled
from mrgp.inference.coordinate import maximise_mixture, maximise_network, with_components
from mrgp.inference.finishing import finished
from mrgp.inference.fits import Fit
from mrgp.inference.lbfgs import BRIEF, LBFGS, maximise
from mrgp.inference.loop import Optimum, Status
from mrgp.inference.objectives import Objective
from mrgp.inference.problem import Problem
from mrgp.inference.progress import Progress, Silent
from mrgp.inference.stochastic import Adam
from mrgp.models import Network, begin, innermost

MANY_VALUES = 5000
USUAL = LBFGS(tolerance=2e-5, starts=1, candidates=0)
FORERUNNER_ROWS = 1500


def fit_blocks(
    problem: Problem, optimiser: LBFGS | Adam | None, progress: Progress, throw: bool = True
) -> Fit:
    """Fit a network of GPs: from the linear model of its latent functions, in stages."""
    settings = optimiser or (USUAL if problem.count <= MANY_VALUES else Adam())
    network: Any = problem.build()
    check_schedule(network, settings)
    network, stopped = begun(problem, network, settings, progress)
    target = problem.objective(network)
    if stopped is None:
        found = optimise_blocks(target, problem, settings, progress)
    else:
        found = optimise_network(target, problem, BRIEF, Silent())
        found = dataclasses.replace(found, status=stopped)
    for o in problem.seen:
        to_numpy(found.model).warn_of_wide_regions(o.support, o.label, stacklevel=6)
    return finished(problem, found, settings, throw)


def optimise_blocks(
    target: Objective,
    problem: Problem,
    settings: LBFGS | Adam,
    progress: Progress,
    training: Training | None = None,
) -> Optimum:
    """Maximise the bound of a network, by coordinate ascent or by stochastic steps."""
    if isinstance(settings, LBFGS):
        return optimise_network(target, problem, settings, progress)
    ended = None
    if training is None and settings.warm_start:
        sample = dataclasses.replace(target, records=sampled(target.records, problem.key))
        found = maximise_network(
            sample, problem.log_unit, WARM, problem.key, progress, "warm start"
        )
        target, ended = Objective.of(to_numpy(found.model), target.records), found.status
    target = with_components(target, problem.key)
    return ascend(target, settings, problem.key, progress, training, ended)


def check_schedule(network: Network, settings: LBFGS | Adam) -> None:
    """Refuse a schedule that the optimiser does not follow."""
    if network.schedule != "joint" and isinstance(settings, Adam):
        raise ValueError(
            f"schedule={network.schedule!r} goes with L-BFGS; give optimiser=mrgp.LBFGS(), or"
            ' leave schedule="joint" with Adam.'
        )


def begun(
    problem: Problem, network: Network, settings: LBFGS | Adam, progress: Progress
) -> tuple[Network, Status | None]:
    """Start a network from the linear coregionalised model, on a sample where there is much.

    The status is there where the user stopped the work.
    """
    linear = forerunner(problem)
    steps = settings.max_steps if isinstance(settings, LBFGS) else LBFGS().max_steps
    limited = LBFGS(max_steps=steps)
    found = maximise(
        linear.objective(), linear.log_unit, limited, problem.key, progress, "linear start"
    )
    stopped = found.status if found.status.code == "interrupted" else None
    return (begin(network, to_numpy(found.model)) if found.status.ok else network), stopped


def forerunner(problem: Problem) -> Problem:
    """Return the linear coregionalised model of a network's latent functions, on a sample."""
    recipe: Any = innermost(problem.recipe).forerunner
    return dataclasses.replace(problem.sample(FORERUNNER_ROWS), recipe=recipe)


def optimise_network(
    target: Objective, problem: Problem, settings: LBFGS, progress: Progress
) -> Optimum:
    """Fit one component by coordinate ascent, in stages; several then start about it."""
    model: Any = to_numpy(target.model(target.start))
    unit, seed = problem.log_unit, problem.key

    def stage(model: Network) -> Objective:
        return Objective.of(model, target.records)

    def with_noises(model: Network, trained: bool) -> Network:
        held = model.noise.changed(lambda noise: dataclasses.replace(noise, trainable=trained))
        return dataclasses.replace(model, noise=held)

    if model.q.logits.raw.shape[0] > 1:
        return maximise_mixture(target, unit, settings, seed, progress)
    if model.schedule == "noise-last":
        held = stage(with_noises(model, trained=False))
        found = maximise_network(held, unit, settings, seed, progress, "fit, noises held")
        model = with_noises(to_numpy(found.model), trained=True)
        if found.status.over:
            return dataclasses.replace(found, model=model)
        settings = dataclasses.replace(settings, starts=1, candidates=0)
    found = maximise_network(stage(model), unit, settings, seed, progress)
    if model.components == 1 or found.status.over:
        return found
    return maximise_mixture(stage(to_numpy(found.model)), unit, settings, seed, progress)
