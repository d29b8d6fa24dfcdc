"""What data say of many regions together, gathered over one stretch of time after another (10.6).

Covariances of all data with all regions, made white, are a matrix that grows with both. What is
wanted of it is a sum over time.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mrgp._compiled import Compiled
from mrgp._types import AnyArray
from mrgp.gp.filtering import Belief, arrived, beginning, emptied, looked_at
from mrgp.gp.leaning import Kind, direct, leaning_covariance
from mrgp.gp.readings import Ratio, mixed_covariance
from mrgp.gp.smoothing import Course, Setting, dynamics_of, some_steps
from mrgp.supports import Support


class Stretch(NamedTuple):
    """Some steps: those from `first` on, of which the first few are `known` already.

    `anchors` are the supports of rows that they see, with `rows` their numbers, and `at` says which
    of these each step sees.
    """

    first: Any
    known: Any
    anchors: tuple[Support, ...]
    rows: Int[AnyArray, " m"]
    at: Int[AnyArray, "l b"]


def stretches(
    rows: Int[np.ndarray, "t b"], anchors: Sequence[Support], length: int
) -> Iterator[Stretch]:
    """Cut steps that see some rows into stretches of one length, with as many rows each.

    >>> from mrgp import points
    >>> found = list(stretches(np.array([[0], [1], [2]]), [points([[0.0], [1.0], [2.0]])], 2))
    >>> [(one.first, one.known, one.rows.tolist()) for one in found]
    [(0, 0, [0, 1]), (1, 1, [1, 2])]
    """
    count, ends = len(rows), np.cumsum([0, *map(len, anchors)])
    length = min(length, count)
    firsts = [min(a, count - length) for a in range(0, count, length)]
    seen = [np.unique(rows[a : a + length]) for a in firsts]
    sides = list(itertools.pairwise(ends))
    own = [[s[(s >= low) & (s < high)] for low, high in sides] for s in seen]
    sizes = [max(len(parts[i]) for parts in own) for i in range(len(anchors))]
    for number, (first, parts) in enumerate(zip(firsts, own, strict=True)):
        # Where a stretch sees fewer rows of a source, its first one fills the place of others.
        full = [
            np.concatenate([part, np.full(size - len(part), low)])
            for part, size, (low, _) in zip(parts, sizes, sides, strict=True)
        ]
        into = np.zeros(ends[-1] + 1, int)
        starts = np.cumsum([0, *sizes])
        for part, start in zip(parts, starts, strict=False):
            into[part] = start + np.arange(len(part))
        supports = tuple(
            anchor[part - low]
            for anchor, part, (low, _) in zip(anchors, full, sides, strict=True)
            if len(part)
        )
        known = number * length - first
        yield Stretch(
            first, known, supports, np.concatenate(full), into[rows[first : first + length]]
        )


class Told(NamedTuple):
    """What a filter believes at a time, and what was said of regions by then."""

    belief: Belief
    mean: Float[Array, " c"]
    less: Float[Array, "c c"]


def jointly(
    course: Course,
    setting: Setting,
    anchors: Sequence[Support],
    ratio: Ratio,
    support: Support,
    most_bytes: int,
) -> tuple[Float[np.ndarray, " c"], Float[np.ndarray, "c c"]]:
    """Return mean and covariance of sum_q r_q L f_q on a support.

    Memory is that of the covariance, and of a stretch of time whose own covariances with the
    support take about so many bytes. It is not traced.
    """
    rows, given = np.asarray(course.line.rows), jax.tree.map(jnp.asarray, (course, support, ratio))
    length = max(most_bytes // (8 * rows.shape[1] * len(support)), 1)
    every = np.asarray(course.ratios)
    told = _started(given[0], setting, len(support), effort="least")
    for one in stretches(rows, anchors, length):
        ends = np.cumsum([0, *map(len, one.anchors)])
        ratios = tuple(every[one.rows[end]] for end in ends[:-1])
        told = _over(*given, setting, told, jax.tree.map(jnp.asarray, one), ratios, effort="some")
    prior = _prior(given[0], setting, *given[1:], effort="least")
    return np.asarray(told.mean), np.asarray(prior) - np.asarray(told.less)


@Compiled
def _prior(course: Course, setting: Setting, support: Support, ratio: Array) -> Array:
    return mixed_covariance(course.kernels, ratio, support, ratio, support, setting[1])


@Compiled
def _started(course: Course, setting: Setting, columns: int) -> Told:
    belief = beginning(dynamics_of(course, setting), columns + 1)
    return Told(belief, jnp.zeros(columns), jnp.zeros((columns, columns)))


@Compiled
def _over(
    course: Course,
    support: Support,
    ratio: Array,
    setting: Setting,
    told: Told,
    stretch: Stretch,
    ratios: tuple[Array, ...],
) -> Told:
    """Filter a stretch of data beside their covariances with the support."""
    (time, rule), line, length = setting, course.line, stretch.at.shape[0]
    dynamics = dynamics_of(course, setting)
    here = {k: v[stretch.rows] for k, v in direct(course.kernels, time, line).items()}
    ends = np.cumsum([0, *map(len, stretch.anchors)])
    blocks = []
    for anchor, own, low, high in zip(stretch.anchors, ratios, ends[:-1], ends[1:], strict=True):
        at: dict[Kind, Bool[Array, " m"]] = {k: v[low:high] for k, v in here.items()}
        pair = own, anchor, ratio, support
        blocks.append(leaning_covariance(course.kernels, time, line.inducing, *pair, rule, at))
    steps = some_steps(course, dynamics, jnp.asarray(stretch.first), length)
    beside = steps.seen.there[..., None] * jnp.concatenate(blocks)[stretch.at]
    values = jnp.concatenate([beside, steps.seen.values], -1)
    steps = steps._replace(seen=steps.seen._replace(values=values))

    def step(belief: Belief, one: tuple) -> tuple[Belief, Array]:
        found, white, _, _ = looked_at(dynamics, arrived(dynamics, belief, one[0]), one[0].seen)
        found = emptied(dynamics, found, one[0])
        kept = jax.tree.map(lambda a, b: jnp.where(one[1], a, b), found, belief)
        return kept, jnp.where(one[1], white, 0.0)

    new = jnp.arange(length) >= stretch.known
    belief, white = jax.lax.scan(step, told.belief, (steps, new))
    known, data = white[..., :-1].reshape(-1, len(told.mean)), white[..., -1].ravel()
    return Told(belief, told.mean + data @ known, told.less + known.T @ known)
