"""The loop around stochastic steps: schedule, early stopping, resuming, interruption."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, cast

import jax
import numpy as np
from jaxtyping import Float

from mrgp.data import Record, Records
from mrgp.inference.batches import Batches, batch_sizes
from mrgp.inference.feeds import Feeds
from mrgp.inference.journal import new_page
from mrgp.inference.lbfgs import LBFGS, maximise
from mrgp.inference.loop import Code, Optimum, Say, Status, run
from mrgp.inference.objectives import Objective
from mrgp.inference.progress import Progress
from mrgp.inference.stochastic import (
    Adam,
    State,
    full_bound,
    init,
    model_of,
    optimal_q,
    run_chunk,
)
from mrgp.models import as_arrays

CHUNK = 50
WINDOW, SHORT_WINDOW = 6, 2
TOLERANCE = 1e-6
MOST_FAILURES = 6
WARM_ROWS = 3000
WARM = LBFGS(max_steps=60, starts=1, candidates=4)


@dataclasses.dataclass(frozen=True)
class Training:
    """All that a stochastic fit needs to go on: its state, and how the bound went so far.

    `bounds` has the mean of the bound over each stretch of steps; `plateau` is the stretch at which
    the rate was last halved. `natural` says that q(u) goes by natural gradients.

    >>> bounds = np.array([-3.0, -2.5])
    >>> Training((), 0, steps=100, bounds=bounds, halvings=0, plateau=0, natural=True).steps
    100
    """

    leaves: tuple[Any, ...]
    seed: int
    steps: int
    bounds: Float[np.ndarray, " c"]
    halvings: int
    plateau: int
    natural: bool


def ascend(
    objective: Objective,
    settings: Adam,
    seed: int,
    progress: Progress,
    training: Training | None = None,
    begun: Status | None = None,
    feeds: Feeds = (),
) -> Optimum:
    """Maximise an objective by stochastic steps, from the start or from where training stopped.

    Steps run in compiled stretches; between them the bound is watched. Where it has not risen over
    a window by more than its noise, the rate is halved; after the last halving the fit has
    converged. `begun` is how the warm start ended, if there was one. Ctrl-C keeps what there is.
    Minibatches of processes with a feed come from there, and the records that the objective has of
    them stand for all elsewhere.
    """
    climb = _Climb(objective, settings, seed, training, feeds)
    if climb.untrained:
        return climb.solved()
    if begun is not None and begun.code == "interrupted":
        return climb.optimum(begun)
    return climb.optimum(run(climb, "fit", progress))


def warm_start(
    objective: Objective, log_unit: float, seed: int, progress: Progress
) -> tuple[Objective, Status]:
    """Begin where the collapsed bound is highest, on all rows or on a random sample of them."""
    plain = objective.without_q()
    sample = dataclasses.replace(plain, records=sampled(objective.records, seed))
    found = maximise(sample, log_unit, WARM, seed, progress, "warm start")
    if not found.status.ok:
        return objective, found.status
    start = found.trained.with_q(objective.start.q)
    return dataclasses.replace(objective, start=start), found.status


def sampled(records: Records, seed: int) -> Records:
    """Return the rows that a warm start looks at: all, or a random sample of them."""
    rng = np.random.default_rng(seed)
    counts = _shares([len(record) for record in records], WARM_ROWS)
    return as_arrays(tuple(_sample(r, n, rng) for r, n in zip(records, counts, strict=True)))


def standing_for_all(objective: Objective, feeds: Feeds) -> Objective:
    """Weight the records of stored processes, which are samples, so that they count as all do."""
    if not any(feeds):
        return objective
    pairs = zip(objective.records, feeds, strict=True)
    records = tuple(r if feed is None else feed.standing_for_all(r) for r, feed in pairs)
    return dataclasses.replace(objective, records=records)


def _shares(counts: list[int], total: int) -> list[int]:
    """Share rows out evenly; what small processes do not need goes to the larger ones."""
    shares = [0] * len(counts)
    left, total = len(counts), max(total, len(counts))
    for i in sorted(range(len(counts)), key=lambda i: counts[i]):
        shares[i] = min(counts[i], total // left)
        left, total = left - 1, total - shares[i]
    return shares


def _sample(record: Record, count: int, rng: np.random.Generator) -> Record:
    if count == len(record):
        return record
    rows = np.sort(rng.choice(len(record), count, replace=False))
    return record.take(rows)


class _Climb:
    """A stochastic fit in progress."""

    def __init__(
        self,
        objective: Objective,
        settings: Adam,
        seed: int,
        training: Training | None,
        feeds: Feeds = (),
    ):
        self.feeds = feeds or (None,) * len(objective.records)
        objective = standing_for_all(objective, self.feeds)
        self.objective, self.settings = objective, settings
        self.seed = seed if training is None else training.seed
        sizes = tuple(map(len, objective.records))
        if objective.has_q:
            processes = objective.frozen.processes
            sizes = batch_sizes(settings.batch, processes, objective.records)
        elif settings.batch is not None or not isinstance(settings.natural, bool):
            raise ValueError(
                "Adam: batch= and a step size natural= need a bound that is a sum over rows; use"
                ' MRGP(method="svgp").'
            )
        self.sizes = sizes
        self.batches = Batches(tuple(map(len, objective.records)), sizes, self.seed)
        self.size = float(
            sum(
                len(record) if feed is None else feed.count
                for record, feed in zip(objective.records, self.feeds, strict=True)
            )
        )
        self.state: State = as_arrays(init(objective, settings))
        self.start = self.state.trained
        solvable = self.state.q is None or objective.frozen.explicit
        self.untrained = solvable and not jax.tree.leaves(self.state.trained)
        self.fresh = training is None
        self.steps, self.halvings, self.plateau, self.failures = 0, 0, 0, 0
        self.bounds: list[float] = []
        if training is not None:
            self._restore(training)
        self.end = self.steps + settings.steps
        self.page = new_page()
        self.ending = self._take_up(self.page.memory)

    @property
    def total(self) -> int:
        """The most steps to take."""
        return self.settings.steps

    def advance(self, say: Say) -> Status | None:
        """Take a stretch of steps; end where the fit has, or steps are used up."""
        if self.ending is not None:
            return self.ending
        if self.fresh:
            self.state, self.fresh = optimal_q(self.objective, self.state), False
        ending = self.stretch(min(CHUNK, self.end - self.steps))
        say(self.settings.steps - (self.end - self.steps), self.describe())
        if ending is None and self.steps >= self.end:
            ending = Status("step limit", f"{self.steps} steps; resume to go on")
        self.page.offer(functools.partial(self._memory, ending), ended=ending is not None)
        return ending

    def interrupted(self) -> Status:
        """Keep what there is."""
        return Status(
            "interrupted", f"stopped by the user after {self.steps} steps; resume to go on"
        )

    def _memory(self, ending: Status | None) -> list[np.ndarray]:
        """Return all that is needed to go on in another process, and how it ended if it has."""
        counts = np.array([self.steps, self.halvings, self.plateau, self.failures])
        told = "" if ending is None else f"{ending.code}:{ending.message}"
        leaves = jax.tree.leaves(self.state)
        return [counts, np.array(self.bounds), np.array(told), *map(np.asarray, leaves)]

    def _take_up(self, memory: Sequence[np.ndarray]) -> Status | None:
        """Go on from what another process remembered; return how it ended, if it has."""
        leaves, tree = jax.tree.flatten(self.state)
        if [np.shape(x) for x in leaves] != [np.shape(x) for x in memory[3:]]:
            return None
        counts, bounds, told = memory[:3]
        self.steps, self.halvings, self.plateau, self.failures = map(int, counts)
        self.bounds, self.fresh = bounds.tolist(), False
        self.state = jax.tree.unflatten(tree, [jax.numpy.asarray(x) for x in memory[3:]])
        code, _, message = str(told).partition(":")
        return Status(cast(Code, code), message) if code else None

    def _restore(self, training: Training) -> None:
        leaves, tree = jax.tree.flatten(self.state)
        if [np.shape(x) for x in leaves] != [np.shape(x) for x in training.leaves]:
            raise ValueError("resume: the optimiser's settings do not fit those of the first run.")
        self.state = jax.tree.unflatten(tree, [jax.numpy.asarray(x) for x in training.leaves])
        self.steps, self.halvings = training.steps, training.halvings
        self.plateau = training.plateau
        self.bounds = training.bounds.tolist()

    def solved(self) -> Optimum:
        """Return a model that has nothing to train but q(u), whose optimum is known."""
        bound = full_bound(self.objective, self.state, self.state.trained)
        status = Status("converged", "nothing to train")
        if not np.isfinite(bound):
            status = Status("failed", "the bound is not finite, and there is nothing to train")
        model = model_of(self.objective, self.state.trained, self.state.q)
        return Optimum(self.state.trained, model, np.array([bound]), status)

    def stretch(self, steps: int) -> Status | None:
        """Take some steps; return a status where the fit has ended."""
        objective, rows = self._next(steps)
        state, bounds = run_chunk(objective, self.state, as_arrays(rows), steps)
        bounds = np.asarray(bounds)
        leaves = jax.tree.leaves((state.trained, state.q))
        if not np.isfinite(bounds).all() or not all(np.isfinite(x).all() for x in leaves):
            self.failures += 1
            self.state = self.state.slower()
            failed = self.failures > MOST_FAILURES
            return Status("failed", "the bound is not finite at any rate") if failed else None
        self.state, self.steps = state, self.steps + steps
        self.bounds.append(float(bounds.mean()))
        if self._rising():
            return None
        if self.halvings == self.settings.halvings:
            return Status("converged", f"{self.steps} steps")
        self.halvings, self.plateau = self.halvings + 1, len(self.bounds)
        self.state = self.state.slower()
        return None

    def _next(self, steps: int) -> tuple[Objective, Sequence[Any]]:
        """Return the records, and the rows of them, that the next steps take."""
        rows, records = list(self.batches.rows(self.steps, steps)), list(self.objective.records)
        for i, (feed, size) in enumerate(zip(self.feeds, self.sizes, strict=True)):
            if feed is not None:
                records[i] = as_arrays(feed.take(self.steps * size, steps * size))
                rows[i] = np.arange(steps * size, dtype=np.int32).reshape(steps, size)
        if not any(self.feeds):
            return self.objective, rows
        return dataclasses.replace(self.objective, records=tuple(records)), rows

    def _rising(self) -> bool:
        """Tell whether the bound rose over the last two windows by more than its noise."""
        window = SHORT_WINDOW if self.batches.whole else WINDOW
        if len(self.bounds) - self.plateau < 2 * window:
            return True
        recent = np.array(self.bounds[-2 * window :])
        gain = recent[window:].mean() - recent[:window].mean()
        # Half the mean squared difference of neighbours is the noise of one, whatever the trend.
        noise = np.mean(np.diff(recent) ** 2) / window
        return bool(gain > max(np.sqrt(noise), TOLERANCE * self.size))

    def describe(self) -> str:
        """Say how far the fit is."""
        bound = f"bound {self.bounds[-1]:.2f}" if self.bounds else "no finite bound yet"
        return f"step {self.steps}, {bound}, rate {float(self.state.rate):.2g}"

    def optimum(self, status: Status) -> Optimum:
        """Return what was learned, with all that is needed to go on."""
        try:
            trained, bound = self._best()
        except KeyboardInterrupt:
            trained, bound = self.state.averaged, []
        training = Training(
            leaves=tuple(np.asarray(x) for x in jax.tree.leaves(self.state)),
            seed=self.seed,
            steps=self.steps,
            bounds=np.array(self.bounds),
            halvings=self.halvings,
            plateau=self.plateau,
            natural=self.state.q is not None,
        )
        model = model_of(self.objective, trained, self.state.q)
        if self.state.q is not None:
            model = model.with_natural(self.state.q)
        return Optimum(trained, model, np.array([*self.bounds, *bound]), status, training)

    def _best(self) -> tuple[Any, list[float]]:
        """Return the average over the latest steps, or others where their bound is higher.

        The others are the start where the best q is explicit, and the latest parameters where it
        is not: no other q belongs to the start. Bounds are those of all data: no minibatch has a
        say in them. The higher one comes with the parameters.
        """
        if self.batches.whole or self.steps == 0:
            return self.state.trained, []
        explicit = self.state.q is not None and self.objective.frozen.explicit
        candidates = [self.state.averaged, self.start if explicit else self.state.trained]
        bounds = [full_bound(self.objective, self.state, c) for c in candidates]
        best = int(np.argmax(np.nan_to_num(bounds, nan=-np.inf)))
        return candidates[best], [bounds[best]]
