"""SciPy's L-BFGS on a compiled value and gradient, with a few starts chosen by the bound."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from mrgp._compiled import Compiled, Effort
from mrgp.inference.journal import new_page
from mrgp.inference.loop import Optimum, Say, Status, run
from mrgp.inference.objectives import Objective
from mrgp.inference.progress import Progress
from mrgp.parameters import limits

Vector = Float[np.ndarray, " p"]
WALL = 1e10


@dataclasses.dataclass(frozen=True)
class LBFGS:
    """Settings of the optimiser: how many starts to follow, and for how long.

    `candidates` random starts are compared with the default one by their bound, and the best of
    all are followed to the end. Of several `starts` the last has shorter lengthscales and less
    noise than the default: a search that starts smooth may end where everything is noise.

    >>> LBFGS(starts=1).max_steps
    200
    """

    max_steps: Any = 200
    starts: Any = 2
    candidates: Any = 6
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        least = {"max_steps": 1, "starts": 1, "candidates": 0}
        for name, low in least.items():
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < low:
                raise ValueError(
                    f"LBFGS: {name} must be a whole number, at least {low}; got {value}."
                )
            object.__setattr__(self, name, int(value))


NEAR, STEPS, AHEAD = 0.5, 3, 5
"""Nats that do not matter between ends, steps over which a run that gains fewer is ending, and how
many times what they gained a run may be behind another."""

ROUGH = {"lengthscale": -1.1, "noise": -2.3}
"""Logarithms by which a rough start is off: a third of the lengthscales, a tenth of the noise."""

BRIEF = LBFGS(max_steps=1, starts=1, candidates=0)
"""The least work: parameters stay about where they are."""


@Compiled
def _loss_and_gradient(objective: Objective, trained: Any, size: Array) -> tuple[Array, Any]:
    """Return the negative objective for each observation, so that tolerances mean the same."""
    return eqx.filter_value_and_grad(lambda p: -objective(p) / size)(trained)


class Direct:
    """The objective itself, for each observation, as a loss with its slope."""

    def __init__(self, objective: Objective):
        self.objective, self.filled = objective, objective.filled()
        self.size = float(objective.count)
        self.effort: Effort = objective.effort

    def __call__(self, trained: Any) -> tuple[Array, Any]:
        """Return loss and slope at some parameters."""
        size = jax.device_put(np.asarray(self.size))
        return _loss_and_gradient(self.filled, trained, size, effort=self.effort)

    def accept(self, trained: Any) -> None:
        """Be told that a step was taken to the parameters evaluated last."""

    def memory(self) -> list[np.ndarray]:
        """Return what evaluations depend on beside the parameters: nothing."""
        return []

    def remember(self, memory: list[np.ndarray]) -> None:
        """Take up what another loss of the same objective had in its memory."""

    def model(self, trained: Any) -> Any:
        """Return the model with the best parameters."""
        return self.objective.model(trained)


def maximise(
    objective: Objective,
    log_unit: float,
    settings: LBFGS,
    seed: int,
    progress: Progress,
    title: str = "fit",
    loss: Any = None,
) -> Optimum:
    """Maximise an objective from several starts.

    `log_unit` is the mean log spread of the values; taking it off makes tolerances independent of
    units. `loss` is how the objective is evaluated, `Direct` by default. Ctrl-C ends the search
    and keeps the best parameters so far.
    """
    search = _Search(objective, loss or Direct(objective), log_unit, settings, seed)
    if not len(search.origin):
        return search.untrained()
    status = run(search, title, progress)
    search.catch_up()
    best = search.tree(search.best)
    # Where the start is the optimum, no step was taken.
    losses = search.history or [search.lowest + log_unit]
    history = -np.array(losses) * search.size if np.isfinite(losses).all() else np.zeros(0)
    return Optimum(best, search.loss.model(best), history, status)


class _Search:
    """One fit's view of the objective as a function of a NumPy vector."""

    def __init__(
        self,
        objective: Objective,
        loss: Any,
        log_unit: float,
        settings: LBFGS,
        seed: int,
    ):
        self.objective, self.settings, self.seed = objective, settings, seed
        self.loss, self.size = loss, loss.size
        leaves, self.treedef = jax.tree.flatten(objective.start)
        self.shapes = [leaf.shape for leaf in leaves]
        self.origin = np.concatenate([np.zeros(0), *(np.ravel(leaf) for leaf in leaves)])
        low, high = limits(eqx.combine(objective.start, objective.frozen))
        self.low, self.high = np.minimum(low, self.origin), np.maximum(high, self.origin)
        self.log_unit = log_unit
        self.best, self.lowest, self.history = self.origin, np.inf, []
        self.pending: list[Vector] | None = None
        self.page, self.caught_up = new_page(), False
        self.ending = Status("failed", "the bound is not finite at any starting point")
        self.least, self.starts = np.inf, 1

    @property
    def total(self) -> int:
        """The most steps from all starts."""
        return self.settings.max_steps * self.settings.starts

    def advance(self, say: Say) -> Status | None:
        """Follow one start to its end."""
        if self.pending is None:
            if self.settings.candidates:
                say(0, f"comparing {self.settings.candidates + 1} starting points")
            self.pending = self.choose_starts(np.random.default_rng(self.seed))
            self.starts = len(self.pending)
        if self.pending:
            loss, ending = self.follow(self.pending.pop(0), say)
            if loss < self.least:
                self.ending, self.least = ending, loss
        if self.pending:
            return None
        self.keep(ended=True)
        return self.ending

    def interrupted(self) -> Status:
        """Keep the best so far."""
        return Status("interrupted", "stopped by the user; the best parameters so far are kept")

    def untrained(self) -> Optimum:
        """Evaluate a model that has nothing to train, and say whether it can be used."""
        value, _ = self.loss(self.objective.start)
        status = Status("converged", "nothing to train")
        if not np.isfinite(float(value)):
            status = Status("failed", "the bound is not finite, and there is nothing to train")
        start = self.objective.start
        history = np.array([-float(value) * self.size])
        return Optimum(start, self.loss.model(start), history, status)

    def tree(self, vector: Vector) -> Any:
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        leaves = [jax.device_put(p.reshape(s)) for p, s in zip(parts, self.shapes, strict=True)]
        return jax.tree.unflatten(self.treedef, leaves)

    def evaluate(self, vector: Vector) -> tuple[float, Vector]:
        """Return loss and gradient; where they are not finite, a wall that turns the search."""
        known = self.page.recall(vector)
        if known is None:
            self.catch_up()
            known = self.measure(vector)
            self.page.add(vector, *known)
        loss, slope = known
        if loss < min(self.lowest, WALL):
            self.best, self.lowest = vector.copy(), loss
        return loss, slope

    def measure(self, vector: Vector) -> tuple[float, Vector]:
        """Return loss and gradient of the objective itself."""
        value, gradient = self.loss(self.tree(vector))
        loss = float(value) - self.log_unit
        slope = np.concatenate([np.ravel(g) for g in jax.tree.leaves(gradient)])
        if not (np.isfinite(loss) and np.isfinite(slope).all()):
            return WALL, np.zeros_like(vector)
        return loss, slope

    def catch_up(self) -> None:
        """Give the loss what it had in its memory where the journal of the search ends."""
        if self.page.memory and not self.page.following and not self.caught_up:
            self.loss.remember(self.page.memory)
        self.caught_up = True

    def keep(self, ended: bool = False) -> None:
        """Offer what there is to the journal, once all that it has was gone through."""
        if not self.page.following:
            self.catch_up()
            self.page.offer(self.loss.memory, ended)

    def choose_starts(self, rng: np.random.Generator) -> list[Vector]:
        """Return the best of the default start and random ones about it, and a rough one."""
        moved = np.isfinite(self.low)
        draws = rng.standard_normal((self.settings.candidates, len(self.origin))) * moved
        candidates = [self.origin, *np.clip(self.origin + draws, self.low, self.high)]
        losses = [self.evaluate(c)[0] for c in candidates]
        order = np.argsort(losses, kind="stable")
        chosen = order[: max(1, self.settings.starts - 1)]
        found = [candidates[i] for i in chosen if losses[i] < WALL]
        if self.settings.starts > 1:
            rough = np.clip(self.origin + self.roughness(), self.low, self.high)
            found += [rough] * bool(np.any(rough != self.origin) and self.evaluate(rough)[0] < WALL)
        return found

    def roughness(self) -> Vector:
        """Return the way from the default start to one that takes less for noise."""
        leaves = jax.tree_util.tree_flatten_with_path(self.objective.start)[0]
        steps = [np.zeros(0)]
        for path, leaf in leaves:
            name = jax.tree_util.keystr(path)
            step = next((step for word, step in ROUGH.items() if word in name), 0.0)
            steps.append(np.full(np.size(leaf), step))
        return np.concatenate(steps)

    def follow(self, start: Vector, say: Say) -> tuple[float, Status]:
        """Run L-BFGS from one start; the history kept is that of the best run so far.

        A run ends early where it seems to end no higher than one before it.
        """
        history: list[float] = []
        before, self.history = self.history, history
        number, most = self.starts - len(self.pending or ()), self.settings.max_steps
        which = f"start {number} of {self.starts}, " if self.starts > 1 else ""

        def callback(intermediate_result: Any) -> None:
            self.loss.accept(self.tree(intermediate_result.x))
            self.keep()
            history.append(float(intermediate_result.fun) + self.log_unit)
            bound = -history[-1] * self.size
            told = f"{which}step {len(history)} of at most {most}, bound {bound:.2f}"
            say((number - 1) * most + len(history), told)
            if self.is_ending_below(history):
                raise StopIteration

        result = minimize(
            self.evaluate,
            np.clip(start, self.low, self.high),
            jac=True,
            method="L-BFGS-B",
            bounds=np.stack([self.low, self.high], 1),
            callback=callback,
            options={
                "maxiter": self.settings.max_steps,
                "ftol": self.settings.tolerance,
                "gtol": 1e-6,
                "maxcor": 20,
            },
        )
        if before and before[-1] < float(result.fun) + self.log_unit:
            self.history = before
        return float(result.fun), _status(result, self.settings)

    def is_ending_below(self, history: list[float]) -> bool:
        """Tell whether a run gains too little to end above the best one before it."""
        if not np.isfinite(self.least) or len(history) <= STEPS:
            return False
        gained = (history[-1 - STEPS] - history[-1]) * self.size
        behind = (history[-1] - self.log_unit - self.least) * self.size
        same = gained < NEAR and 0.0 <= behind < NEAR
        return same or gained * AHEAD < behind


def _status(result: Any, settings: LBFGS) -> Status:
    if not np.isfinite(result.fun) or result.fun >= WALL:
        return Status("failed", "the bound is not finite")
    if result.nit >= settings.max_steps:
        return Status("step limit", f"{result.nit} steps; raise max_steps= of mrgp.LBFGS to go on")
    if not result.success:
        return Status("stalled", f"no higher bound found after {result.nit} steps")
    return Status("converged", f"{result.nit} steps")
