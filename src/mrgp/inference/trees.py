"""Fit a tree of GPs: bases, then layers given their bases, then all together (theory 5.5)."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import numpy as np

from mrgp._types import to_numpy
from mrgp.data import Dataset, Scaling, as_seed
from mrgp.gp import Inducing, Sites, start_locations
from mrgp.inference.fits import FitError
from mrgp.inference.objectives import Objective, as_arrays, build_objective
from mrgp.inference.optimisers import LBFGS, Optimum, Status, maximise
from mrgp.inference.progress import Progress, as_progress
from mrgp.inference.stochastic import Adam
from mrgp.models import MRGP, Made, Tree, conditioned, grow
from mrgp.models.growing import given_for, refreshed
from mrgp.models.tree import States
from mrgp.parameters import Parameter, unwrap

BRIEF = LBFGS(max_steps=1, starts=1, candidates=0)
JOINT = LBFGS(max_steps=200, starts=1, candidates=0, tolerance=1e-6)
JOINT_INDUCING = 100
NOISE_LIMIT = 2.0

FitPart = Callable[..., Any]


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


@dataclasses.dataclass
class Gardener:
    """Fits the parts of a tree one by one, taking over those that an earlier fit has.

    A part of an earlier fit is taken as it is where it had the same recipe, data, weight and
    optimiser. It is gone on with where the user had stopped it and, if `go_on`, where it had not
    converged. Once the user has stopped a part, those after it are only begun.
    """

    fit: FitPart
    key: Any
    optimiser: Any
    progress: Any
    earlier: Mapping[str, Any]
    go_on: bool = False
    parts: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def stopped(self) -> bool:
        """Whether the user has stopped the work."""
        return any(part.status.code == "interrupted" for part in self.parts.values())

    def __call__(self, name: str, recipe: MRGP, data: Dataset, weight: float, /) -> Made:
        """Fit a part, or take it over."""
        weights = None if weight == 1.0 else {data.processes[0]: weight}
        known = self.earlier.get(name)
        begun = known is not None and known.optimiser == BRIEF
        known = None if begun or not _same(known, recipe, data, weight) else known
        optimiser = self._optimiser(recipe, data)
        usual = (LBFGS(), Adam()) if optimiser is None else (optimiser,)
        if known is not None and not self.go_on and known.optimiser not in usual:
            known = None
        if known is not None and (self.stopped or self._is_done(known)):
            found = known
        elif known is not None:
            found = known.resume(
                data,
                optimiser=optimiser if type(optimiser) is type(known.optimiser) else None,
                progress=Titled(as_progress(self.progress), name),
                throw=False,
            )
        else:
            optimiser = BRIEF if self.stopped else optimiser
            found = self.fit(
                recipe,
                data,
                key=self.key,
                weights=weights,
                optimiser=optimiser,
                progress=None if self.stopped else Titled(as_progress(self.progress), name),
                throw=False,
            )
        if found.status.code == "failed":
            raise FitError(
                f"The fit failed in {name}: {found.status.message}. Look for extreme values, or"
                " starting values and known noise variances far from the data's scale."
            )
        self.parts[name] = found
        return Made(found.model, found.state, found.scaling)

    def _is_done(self, part: Any) -> bool:
        code = part.status.code
        return code == "converged" or (code != "interrupted" and not self.go_on)

    def _optimiser(self, recipe: MRGP, data: Dataset) -> LBFGS | Adam | None:
        """Return the user's optimiser; Adam is for parts that are trained on minibatches."""
        fitting = isinstance(self.optimiser, LBFGS) or recipe.goes_by_minibatches(data)
        return self.optimiser if fitting else None


def _same(fit: Any, recipe: MRGP, data: Dataset, weight: float) -> bool:
    """Tell whether there is a fit, made by this recipe on these data."""
    if fit is None:
        return False
    if list(fit.weights) != list(data.processes) or not np.allclose(
        list(fit.weights.values()), weight
    ):
        return False
    before, now = (tuple(vars(r).values()) for r in (fit.recipe, recipe))
    return bool(eqx.tree_equal(before, now)) and fit.has_data(data)


def fit_tree(
    recipe: Any,
    data: Dataset,
    weights: Mapping[Any, float] | None,
    gardener: Gardener,
) -> tuple[Optimum, States, Objective]:
    """Fit a tree by its schedule; its parts are then with the gardener.

    The history is the bound of the whole tree: at the end of the cut, and then of each joint step.
    """
    scaling = Scaling.plain(data)
    tree, states = grow(recipe, recipe.plan(data), data, gardener, weights, gardener.key)
    target = build_objective(tree, data, scaling, weights)
    # The bound of a tree is the sum of those of its parts, each given its parents' paths.
    bounds = [part.history[-1] for part in gardener.parts.values() if len(part.history)]
    history = np.array([np.sum(bounds)])
    optimum = Optimum(target.start, to_numpy(tree), history, _overall(gardener.parts))
    for _ in recipe.stages[2:]:
        if optimum.status.code in ("failed", "interrupted"):
            break
        optimum, states, target = _refine(recipe, optimum, states, data, weights, gardener)
    return optimum, to_numpy(states), target


def _overall(parts: Mapping[str, Any]) -> Status:
    """Return the worst way in which a part ended."""
    for code in ("failed", "interrupted", "step limit", "stalled"):
        for name, part in parts.items():
            if part.status.code == code:
                return Status(code, f"{name}: {part.status.message}")
    steps = sum(len(part.history) for part in parts.values())
    return Status("converged", f"{len(parts)} parts, {steps} steps")


def _refine(
    recipe: Any,
    before: Optimum,
    states: States,
    data: Dataset,
    weights: Mapping[Any, float] | None,
    gardener: Gardener,
) -> tuple[Optimum, States, Objective]:
    """Go on with all parts together: bases may yield to the target, within limits.

    The q(u) of every part that a layer rests on is then trained. Noises of bases stay below twice
    what they are: without a limit, dense target data take over a base whose own values are few,
    which then calls those noise.
    """
    tree, scaling = before.model, Scaling.plain(data)
    records = [scaling.record(o) for o in data]
    parts = {}
    for node in tree.nodes:
        part = tree.parts[node.name]
        if node.name in tree.ancestors and not isinstance(part.gp.q, Sites):
            record = as_arrays(records[tree.processes.index(node.process)])
            own = _own_record(as_arrays(tree), as_arrays(states), node, record)
            gp = _with_sites(part.gp, node.process, to_numpy(own), recipe, gardener.key)
            part = dataclasses.replace(part, gp=gp)
        parts[node.name] = part
    target = build_objective(dataclasses.replace(tree, parts=parts), data, scaling, weights)
    settings = gardener.optimiser if isinstance(gardener.optimiser, LBFGS) else JOINT
    settings = dataclasses.replace(settings, starts=1, candidates=0)
    shown = as_progress(gardener.progress)
    unit = float(np.mean(np.log(scaling.scale)))
    found = maximise(target, unit, settings, as_seed(gardener.key), shown, "all together")
    history = np.concatenate([before.history, found.history])
    tree = to_numpy(found.model)
    states = to_numpy(conditioned(tree, target.records))
    tree = refreshed(tree, states, data)
    target = build_objective(tree, data, scaling, weights)
    return dataclasses.replace(found, model=tree, history=history), states, target


@eqx.filter_jit
def _own_record(tree: Tree, states: States, node: Any, record: Any) -> Any:
    return tree.record_of(states, node, record)


def _with_sites(gp: Any, process: Any, record: Any, recipe: Any, key: Any) -> Any:
    """Give a GP a q(u) of its own, at inducing inputs, and a limit to its noise."""
    locations = gp.locations
    if locations is None:
        inducing = Inducing.parse(given_for(recipe.inducing, process))
        inducing = dataclasses.replace(inducing, number=inducing.number or JOINT_INDUCING)
        zero = np.zeros(record.support.dimension)
        kernel = unwrap(gp.kernel)
        locations = start_locations(inducing, (record.support,), zero, kernel, as_seed(key))
    noises = {source: _limited(noise) for source, noise in gp.noise_variance.items()}
    gp = dataclasses.replace(gp, noise_variance=noises)
    return to_numpy(gp.with_sites(locations, as_arrays([record])))


def _limited(noise: Parameter) -> Parameter:
    ceiling = np.asarray(NOISE_LIMIT * noise.value)
    return eqx.tree_at(lambda p: p.transform.ceiling, noise, ceiling)
