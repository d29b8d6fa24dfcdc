"""The solver along time, exact at a cost linear in time where kernels are Markov (theory 10).

Its results are those of `Exact`. A Kalman filter over all places does what the factor of a dense
covariance does there: it makes values white, in the order of time.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp import _linalg
from mrgp._types import AnyArray
from mrgp.gp.covariance import variance
from mrgp.gp.filtering import Dynamics, Seen, seen_of, sight_of, whitened
from mrgp.gp.forecast import forecast
from mrgp.gp.further import Before, went_on
from mrgp.gp.leaning import direct, leaning_covariance, whole
from mrgp.gp.readings import (
    Conditioned,
    Kernels,
    Ratio,
    Readings,
    Smoother,
    mixed_covariance,
)
from mrgp.gp.smoothing import Course
from mrgp.gp.solvers import Anchored, Collapsed, Exact
from mrgp.gp.spans import weighed
from mrgp.gp.statespace import series_error, state_space
from mrgp.gp.stretches import jointly
from mrgp.gp.sweeping import sweep
from mrgp.gp.timeline import Groups, Timeline, extent_of, separated
from mrgp.gp.waypoints import Waypoints
from mrgp.gp.windows import Grouped, in_groups
from mrgp.kernels import Kernel
from mrgp.parameters import unwrap
from mrgp.supports import DEFAULT_RULE, Rule, Support, taken_apart

MOVE = 40
"""What moving a state costs beside what one more row of a step does."""

ROUNDING = 1e-12
"""The share of variance up to which what a series leaves out is rounding."""

AT_ONCE, FEWEST_AT_ONCE = 2**28, 64
"""Bytes of values made white beside points that are asked about, and the fewest such points."""


class Later(NamedTuple):
    """Further rows of the source with the number `of`: what they read, their noise and values.

    >>> from mrgp import points
    >>> Later(0, points([[3.0]]), np.ones(1), np.ones(1), np.zeros(1)).of
    0
    """

    of: int
    support: Support
    ratio: Ratio
    noise: Float[np.ndarray, " n"]
    residual: Float[np.ndarray, " n"]


class Filtered(Conditioned):
    """Gaussian processes given data, with states of a filter on its way, and at their last time.

    For the covariances k of the data with g = sum_q r_q L f_q, made white by the filter as the
    data are: mean k . white, variance var(g) - |k|^2.

    >>> from mrgp import Matern12, points
    >>> from mrgp.gp import Reading
    >>> solver = Markov((Matern12(1.0, variance=1.0, dims=0),), time=0)
    >>> at, one = points([[0.0]]), jnp.ones(1)
    >>> read = Readings((Reading(at, one, 2 * one, 0 * one, noise=one),))
    >>> given = solver.with_plan(solver.plan_of([at])).condition(read)
    >>> [round(float(v[0]), 3) for v in given.moments(solver.kernels, one, at)]  # half of the value
    [1.0, 0.5]
    """

    anchors: tuple[Support, ...]
    ratios: tuple[Ratio, ...]
    noise: Float[AnyArray, " n"]
    residual: Float[AnyArray, " n"]
    line: Timeline
    waypoints: Waypoints
    time: int = eqx.field(static=True)

    @property
    def most_nodes(self) -> int:
        """The number of points to ask about at a time: beside each are all values, made white."""
        every = 8 * np.size(self.line.rows)
        return max(AT_ONCE // every, FEWEST_AT_ONCE)

    def refuses(self, support: Support) -> str | None:
        """Say why a support cannot be asked for, or return None.

        Through inducing places, regions are places times instants or windows.
        """
        if not self.line.inducing:
            return None
        try:
            taken_apart(support, self.time)
        except ValueError as error:
            return (
                f"{error}; with inducing places, regions are a place times instant or window. Fit"
                ' with method="collapsed" to ask for others'
            )
        return None

    def filled(self) -> "Filtered":
        """Return itself: its code is compiled for its own size."""
        return self

    def take(self, rows: Int[np.ndarray, " r"]) -> "Filtered":
        """Return itself: it has no rows that only fill a size."""
        return self

    def explained(
        self, kernels: Kernels, ratio: Ratio, support: Support, rule: Rule = DEFAULT_RULE
    ) -> tuple[Float[Array, " n"], Float[Array, "n r"]]:
        """Return the mean, and F such that the prior covariance is less by F F^T."""
        known, white = self.known(kernels, ratio, support, rule)
        return jnp.einsum("tbc,tb->c", known, white), known.reshape(-1, len(support)).T

    def known(
        self,
        kernels: Kernels,
        ratio: Ratio,
        support: Support,
        rule: Rule,
        parts: Kernels | None = None,
    ) -> tuple[Float[Array, "t b c"], Float[Array, "t b"]]:
        """Return the covariances of the data with values on a support, made white, and the data.

        `parts` are the kernels of those parts of the functions that are asked for, if not of all.
        """
        given, inducing, blocks = parts or kernels, self.line.inducing, []
        here, first = direct(kernels, self.time, self.line), 0
        for anchor, r in zip(self.anchors, self.ratios, strict=True):
            at = {kind: which[first : first + len(anchor)] for kind, which in here.items()}
            pair = r, anchor, ratio, support
            blocks.append(leaning_covariance(given, self.time, inducing, *pair, rule, at))
            first += len(anchor)
        dynamics = Dynamics.of(kernels, self.time, self.line, rule)
        rows = [jnp.broadcast_to(r, (len(a), len(kernels))) for a, r in self._pairs()]
        sight = sight_of(dynamics, jnp.concatenate(rows))
        values = jnp.hstack([jnp.concatenate(blocks), jnp.asarray(self.residual)[:, None]])
        white = whitened(dynamics, seen_of(self.line, sight, jnp.asarray(self.noise), values))[0]
        return white[..., :-1], white[..., -1]

    def extended(
        self, kernels: Kernels, later: Sequence[Later], supports: Sequence[Support], rule: Rule
    ) -> "Filtered | None":
        """Return the posterior of further rows as well, None where all must be filtered again.

        `supports` are those of all rows, and further ones are in the order of the sources. It is
        not traced: what comes after the last belief before these rows is filtered.
        """
        if not later:
            return self
        noise = np.concatenate([one.noise for one in later])
        residual = np.concatenate([one.residual for one in later])
        counts, ends = [len(one.noise) for one in later], self._ends
        after = np.repeat([ends[one.of] for one in later], counts)
        every = dataclasses.replace(
            self,
            anchors=tuple(supports),
            noise=np.insert(np.asarray(self.noise), after, noise),
            residual=np.insert(np.asarray(self.residual), after, residual),
            line=Timeline.of(kernels, self.time, supports, inducing=self.line.inducing),
        )
        rows = np.arange(ends[-1]) + np.searchsorted(after, np.arange(ends[-1]), side="right")
        before = Before(self.line, self.waypoints, rows)
        parts = (part for one in later for part in taken_apart(one.support, self.time))
        since = min(part.start.min() for part in parts)
        course, setting = every._course(kernels), (self.time, rule)
        waypoints = went_on(before, course, float(since), extent_of(supports), setting)
        return None if waypoints is None else dataclasses.replace(every, waypoints=waypoints)

    @property
    def _ends(self) -> Int[np.ndarray, " a"]:
        """The number of rows up to the end of each source."""
        return np.cumsum([len(anchor) for anchor in self.anchors])

    def _pairs(self) -> Any:
        return zip(self.anchors, map(jnp.asarray, self.ratios), strict=True)

    def forecast(
        self,
        kernels: Kernels,
        ratio: Ratio,
        support: Support,
        rule: Rule = DEFAULT_RULE,
        joint: bool = False,
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n *n"]] | None:
        """Return mean and variance, or joint covariance, after the last time; None before it.

        It is not traced, and costs the same however much was seen.
        """
        setting = (self.time, rule)
        front = self.waypoints.front(self.line, len(kernels))
        return forecast(front, kernels, setting, np.asarray(ratio), support, joint)

    def sweep(
        self, kernels: Kernels, ratio: Ratio, support: Support, rule: Rule = DEFAULT_RULE
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]] | None:
        """Return mean and variance on many places, instants and windows at once.

        None where regions are no places in time. It is not traced: a smoother passes over the data,
        once for all instants and once for about a thousand windows that are open at a time.
        """
        setting = self.time, rule
        return sweep(self._course(kernels), setting, self.anchors, np.asarray(ratio), support)

    def jointly(
        self, kernels: Kernels, ratio: Ratio, support: Support, rule: Rule = DEFAULT_RULE
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n n"]] | None:
        """Return mean and joint covariance of more regions than there is room for at once.

        None where they are fewer. It is not traced: they are gathered over stretches of time.
        """
        if len(support) <= self.most_nodes:
            return None
        given = self.anchors, np.asarray(ratio), support
        return jointly(self._course(kernels), (self.time, rule), *given, AT_ONCE)

    def in_groups(self, kernels: Kernels, labels: Int[np.ndarray, " n"], rule: Rule) -> Grouped:
        """Return what data say of themselves: means, and covariances of those of one label.

        It is not traced: the smoother gathers the values of groups on its way.
        """
        return in_groups(self._course(kernels), (self.time, rule), self.anchors, labels)

    def _course(self, kernels: Kernels) -> Course:
        rows = [np.broadcast_to(r, (len(a), len(kernels))) for a, r in self._pairs()]
        return Course(
            kernels, self.line, np.concatenate(rows), np.asarray(self.noise), self.residual
        )


class Markov(Anchored):
    """A filter along the input `time`, over all distinct places of the data (theory 10.2).

    `line` is the order in which it meets the data; `plan_of` finds it. With `inducing` places the
    terms that are not white have states at those alone, and the evidence is a bound (10.5). Checks
    that need a dense covariance have it made of at most `most_dense` values.

    >>> from mrgp import Matern12, points
    >>> from mrgp.gp import Reading
    >>> one, at = jnp.ones(1), points([[0.0]])
    >>> solver = Markov((Matern12(1.0, variance=1.0, dims=0),), time=0)
    >>> read = Readings((Reading(at, one, 2 * one, 0 * one, noise=one),))
    >>> solver = solver.with_plan(solver.plan_of([at]))
    >>> round(float(solver.log_evidence(read)), 3)  # log N(2 | 0, 1 + 1)
    -2.266
    """

    time: int = eqx.field(static=True)
    line: Any = None
    inducing: Groups = ()
    keeps_data: ClassVar[bool] = True
    fills: ClassVar[bool] = False
    most_dense: ClassVar[float] = 4000

    def plan_of(self, supports: Sequence[Support]) -> Timeline:
        """Return the order in which values on some supports are met."""
        kernels = unwrap(self.kernels)
        return Timeline.of(kernels, self.time, supports, inducing=self.inducing)

    def on(self, inducing: Groups) -> "Markov":
        """Return the solver with inducing places."""
        return dataclasses.replace(self, inducing=inducing)

    def with_plan(self, plan: Timeline | None) -> "Markov":
        """Return the solver for values in this order."""
        return dataclasses.replace(self, line=plan)

    def work(self, count: int) -> float:
        """Return about how many multiplications the evidence of values in this order takes."""
        return work_of(*_sizes(unwrap(self.kernels), self.time, self.line))

    def log_evidence(self, readings: Readings) -> Float[Array, ""]:
        """Return the log evidence."""
        dynamics = Dynamics.of(self.kernels, self.time, self.line, self.rule)
        found = weighed(dynamics, self._seen(dynamics, readings))
        left_out = self._left_out(dynamics, readings)
        constant = jnp.log(2.0 * jnp.pi) * len(readings)
        return -0.5 * (found.square + found.size + left_out + constant) + readings.tempering

    def _left_out(self, dynamics: Dynamics, readings: Readings) -> Array:
        """Return the variance of values that inducing places do not have, beside their noise."""
        terms = [(q, t) for q, k in enumerate(self.kernels) for t in separated(k, self.time)]
        place, total = jnp.asarray(self.line.place), jnp.zeros(())
        for (q, term), block, seats in zip(terms, dynamics.blocks, self.line.seats, strict=True):
            if block.lean is None:
                continue
            kernel = whole(term, self.time)
            own = [
                s.ratio[q] ** 2 * variance(kernel, s.support, self.rule) for s in readings.sources
            ]
            left = block.lean.left[jnp.asarray(seats.index)[place]]
            total += term.coefficient * jnp.sum(left * jnp.concatenate(own) / readings.noise)
        return total

    def _seen(self, dynamics: Dynamics, readings: Readings) -> Seen:
        rows = [jnp.broadcast_to(s.ratio, (len(s.y), len(s.ratio))) for s in readings.sources]
        sight = sight_of(dynamics, jnp.concatenate(rows))
        values = readings.residual[:, None]
        return seen_of(self.line, sight, readings.noise, values)

    def condition(self, readings: Readings) -> Filtered:
        """Condition on the readings, anchored at their own supports."""
        return self.posterior(self.gather(readings), [s.support for s in readings.sources])

    def gather(self, readings: Readings) -> Filtered:
        """Return the posterior, without the supports of the data."""
        ratios = tuple(jnp.asarray(source.ratio) for source in readings.sources)
        dynamics = Dynamics.of(self.kernels, self.time, self.line, self.rule)
        kept = Waypoints.of(dynamics, self._seen(dynamics, readings))
        return Filtered((), ratios, readings.noise, readings.residual, self.line, kept, self.time)

    def posterior(
        self, known: Filtered, supports: Sequence[Support], by: Any = _linalg
    ) -> Filtered:
        """Return the posterior of values on some supports."""
        return dataclasses.replace(known, anchors=tuple(supports))

    def part(
        self, state: Filtered, term: Kernel, support: Support
    ) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """Return mean and covariance of the part L g of the first function, f = g + others."""
        parts, first = (term, *self.kernels[1:]), np.eye(len(self.kernels))[0]
        known, white = state.known(self.kernels, first, support, self.rule, parts)
        prior = mixed_covariance(parts, first, support, first, support, self.rule)
        mean = jnp.einsum("tbc,tb->c", known, white)
        return mean, prior - jnp.einsum("tbc,tbd->cd", known, known)

    def smoother(self, readings: Readings) -> Smoother:
        """Return the smoother of the dense covariance."""
        return self.dense(len(readings), "the weights of sources").smoother(readings)

    def has_dense(self, count: int) -> bool:
        """Tell whether so many values can have a dense covariance that is this model's."""
        return not self.inducing and count <= self.most_dense

    def dense(self, count: int, wanted_by: str) -> Exact:
        """Return the solver by the dense covariance, or say why there is none."""
        if self.inducing:
            raise ValueError(
                f"{wanted_by}: the exact covariance of all values is needed, and this model along"
                f" time has {sum(map(len, self.inducing))} inducing places, which only approach"
                ' it. Take fewer places, or MRGP(method="exact") if the values are few.'
            )
        if count > self.most_dense:
            raise ValueError(
                f"{wanted_by}: the dense covariance of all values is needed, which is made of at"
                f" most {self.most_dense} values of a fit along time; this has {count}. Take fewer"
                " of them: fewer hours, or fewer places."
            )
        return Exact(self.kernels, rule=self.rule)

    def account(self, state: Filtered) -> str:
        """Say that the data are kept, and what the series of periodic kernels leaves out."""
        steps, places = state.line.gap.shape[0], max(map(len, state.line.seats))
        way = f"exact, along time: {steps} steps over {places} places"
        if state.line.inducing:
            number, of = (sum(map(len, g)) for g in (state.line.inducing, self._places(state)))
            way = f"along time: {steps} steps, exact there, over {number} inducing places for {of}"
        missing = self.series_error()
        if missing > ROUNDING:
            way += f"; the series of periodic kernels leaves {missing:.1g} of their variance out"
        return f"{way}; the training data are kept in the fit, and saved with it"

    def series_error(self) -> float:
        """Return the largest share of variance that the series of a periodic kernel leaves out."""
        terms = [t for k in unwrap(self.kernels) for t in separated(k, self.time)]
        with jax.enable_x64(True):
            return max((series_error(t.time) for t in terms if t.time is not None), default=0.0)

    @staticmethod
    def _places(state: Filtered) -> Groups:
        """Return the places that lean on inducing ones."""
        return max((s.leaning for s in state.line.seats), key=lambda groups: sum(map(len, groups)))


Solver = Exact | Collapsed | Markov
"""A way to find latent functions from what sources read of them.

`keeps_data` says whether its posterior needs the data themselves, which a fit then keeps.
"""


def states_of(
    kernels: Sequence[Kernel], time: int, supports: Sequence[Support], inducing: Groups = ()
) -> tuple[int, int, int]:
    """Return how many steps and states a filter has, and how many rows a step sees.

    >>> from mrgp import Matern32, points
    >>> states_of((Matern32(1.0, variance=1.0, dims=(0,)),), 0, [points([[0.0], [1.0], [2.0]])])
    (3, 2, 1)
    """
    return _sizes(kernels, time, Timeline.of(kernels, time, supports, inducing=inducing))


def _sizes(kernels: Sequence[Kernel], time: int, line: Timeline) -> tuple[int, int, int]:
    terms = [term for kernel in kernels for term in separated(kernel, time)]
    sizes = [1 if term.time is None else state_space(term.time).size for term in terms]
    states = sum(size * len(seats) for size, seats in zip(sizes, line.seats, strict=True))
    steps, rows = line.rows.shape
    return steps, states + len(kernels) * len(line.slots), rows


def work_of(steps: int, states: int, rows: int) -> float:
    """Return about how many multiplications a filter takes that sees so many rows in a step.

    >>> work_of(100, 10, 5)
    500000.0
    """
    return steps * float(states) ** 2 * (MOVE + 2 * rows)
