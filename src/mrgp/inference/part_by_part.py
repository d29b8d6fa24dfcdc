"""Fit a tree of GPs: bases, then layers given their bases, then all together (theory 5.5)."""

import dataclasses
from collections.abc import Mapping

import equinox as eqx
import numpy as np

from mrgp._types import to_numpy
from mrgp.data import Record, by_process
from mrgp.inference.finishing import finished
from mrgp.inference.fits import Fit, FitError
from mrgp.inference.lbfgs import BRIEF, LBFGS, maximise
from mrgp.inference.loop import Optimum, Status
from mrgp.inference.problem import Problem
from mrgp.inference.progress import Progress, Silent
from mrgp.inference.stochastic import Adam
from mrgp.inference.whole import fit_whole, resumed
from mrgp.models import (
    Branch,
    Growth,
    Made,
    Tree,
    as_arrays,
    conditioned,
    innermost,
)
from mrgp.models.growing import Wanted, refreshed
from mrgp.models.parts import States

JOINT = LBFGS(max_steps=200, starts=1, candidates=0, tolerance=1e-6)


def fit_parts(
    problem: Problem,
    optimiser: LBFGS | Adam | None,
    progress: Progress,
    throw: bool = True,
    earlier: Fit | None = None,
    go_on: bool = False,
) -> Fit:
    """Fit a tree part by part, each given those before it, and then, by its schedule, together.

    Parts of an earlier fit are taken as they are where they had the same recipe, data, weight and
    optimiser; with `go_on`, those that had not converged are gone on with. Once the user has
    stopped a part, those after it are only begun. The history is the bound of the whole tree: at
    the end of the cut, and then of each joint step.
    """
    recipe = innermost(problem.recipe)
    terms = Terms(optimiser, progress, {} if earlier is None else earlier.parts, go_on)
    plan = recipe.plan(problem.seen)
    growth = Growth.begin(recipe, plan, problem.seen, problem.weights, problem.key)
    parts: dict[str, Fit] = {}
    for branch in plan.branches:
        wanted = growth.wanted(branch)
        if wanted is None:
            continue
        stopped = any(part.status.code == "interrupted" for part in parts.values())
        part = terms.fit(wanted, problem.key, stopped)
        if not part.status.ok:
            raise FitError(
                f"The fit failed in {branch.name}: {part.status.message}. Look for extreme values,"
                " or starting values and known noise variances far from the data's scale."
            )
        parts[branch.name] = part
        growth = growth.joined(wanted, Made(part.model.linear, part.state, part.scaling))
    # The bound of a tree is the sum of those of its parts, each given its parents' paths.
    bounds = [part.history[-1] for part in parts.values() if len(part.history)]
    optimum = Optimum(None, growth.tree, np.array([np.sum(bounds)]), _overall(parts))
    states = growth.states
    for _ in recipe.stages[2:]:
        if optimum.status.over:
            break
        optimum, states = _refine(problem, optimum, states, optimiser, progress)
    found = finished(problem, optimum, optimiser or LBFGS(), throw, to_numpy(states))
    return dataclasses.replace(found, parts=parts)


@dataclasses.dataclass(frozen=True)
class Terms:
    """How parts are fitted, and which there are already."""

    optimiser: LBFGS | Adam | None
    progress: Progress
    earlier: Mapping[str, Fit]
    go_on: bool

    def fit(self, wanted: Wanted, key: int, stopped: bool) -> Fit:
        """Fit a part, go on with it, or take it over."""
        optimiser = self._optimiser(wanted)
        known = self._known(wanted, optimiser)
        if known is not None and (stopped or self._is_done(known)):
            return known
        shown = Silent() if stopped else Titled(self.progress, wanted.branch.name)
        if known is not None:
            same = optimiser if type(optimiser) is type(known.optimiser) else None
            problem = known.problem(known.same_data(wanted.data))
            return resumed(known, problem, same, shown, throw=False)
        weights = {wanted.branch.process: wanted.weight}
        problem = Problem.of(wanted.recipe, wanted.data, weights, key)
        return fit_whole(problem, BRIEF if stopped else optimiser, shown, throw=False)

    def _known(self, wanted: Wanted, optimiser: LBFGS | Adam | None) -> Fit | None:
        """Return an earlier fit of a part, if it was made by the same recipe on the same data."""
        known = self.earlier.get(wanted.branch.name)
        if known is None or known.optimiser == BRIEF or not _same(known, wanted):
            return None
        usual = (LBFGS(), Adam()) if optimiser is None else (optimiser,)
        return known if self.go_on or known.optimiser in usual else None

    def _is_done(self, part: Fit) -> bool:
        code = part.status.code
        return code == "converged" or (code != "interrupted" and not self.go_on)

    def _optimiser(self, wanted: Wanted) -> LBFGS | Adam | None:
        """Return the user's optimiser; Adam is for parts that are trained on minibatches."""
        batches = wanted.recipe.goes_by_minibatches(wanted.data)
        return self.optimiser if isinstance(self.optimiser, LBFGS) or batches else None


def _same(fit: Fit, wanted: Wanted) -> bool:
    """Tell whether a fit was made by a recipe on some data, with a weight."""
    if list(fit.weights) != list(wanted.data.processes) or not np.allclose(
        list(fit.weights.values()), wanted.weight
    ):
        return False
    before, now = (tuple(vars(r).values()) for r in (fit.recipe, wanted.recipe))
    return bool(eqx.tree_equal(before, now)) and fit.has_data(wanted.data)


class Titled:
    """Progress of one part of a fit, shown under the part's name."""

    def __init__(self, inner: Progress, name: str):
        self.inner, self.name = inner, name

    def start(self, title: str, total: int) -> None:
        """Begin, under the part's name."""
        self.inner.start(f"{self.name}: {title}", total)

    def update(self, step: int, text: str) -> None:
        """Pass a step on."""
        self.inner.update(step, text)

    def finish(self, text: str) -> None:
        """Pass the end on."""
        self.inner.finish(text)


def _overall(parts: Mapping[str, Fit]) -> Status:
    """Return the worst way in which a part ended."""
    for code in ("failed", "interrupted", "step limit", "stalled"):
        for name, part in parts.items():
            if part.status.code == code:
                return Status(code, f"{name}: {part.status.message}")
    steps = sum(len(part.history) for part in parts.values())
    return Status("converged", f"{len(parts)} parts, {steps} steps")


def _refine(
    problem: Problem,
    before: Optimum,
    states: States,
    optimiser: LBFGS | Adam | None,
    progress: Progress,
) -> tuple[Optimum, States]:
    """Go on with all parts together: bases may yield to the target, within limits.

    The q(u) of every part that a layer rests on is then trained. Noises of bases stay below twice
    what they are: without a limit, dense target data take over a base whose own values are few,
    which then calls those noise.
    """
    tree, recipe, parts = before.model, innermost(problem.recipe), {}
    records = problem.scaling.records(problem.seen)
    for branch in tree.branches:
        part = tree.parts[branch.name]
        if branch.name in tree.ancestors and not part.has_sites:
            record = as_arrays(records[tree.processes.index(branch.process)])
            own = to_numpy(_own_record(as_arrays(tree), as_arrays(states), branch, record))
            part = part.with_sites(own, by_process(recipe.inducing, branch.process), problem.key)
        parts[branch.name] = part
    target = problem.objective(dataclasses.replace(tree, parts=parts))
    settings = optimiser if isinstance(optimiser, LBFGS) else JOINT
    settings = dataclasses.replace(settings, starts=1, candidates=0)
    unit = float(np.mean(np.log(problem.scaling.scale)))
    found = maximise(target, unit, settings, problem.key, progress, "all together")
    history = np.concatenate([before.history, found.history])
    tree = to_numpy(found.model)
    states = conditioned(tree, target.records)
    tree = refreshed(tree, states, problem.seen)
    return dataclasses.replace(found, model=tree, history=history), states


@eqx.filter_jit
def _own_record(tree: Tree, states: States, branch: Branch, record: Record) -> Record:
    return tree.record_of(states, branch, record)
