"""What the last state of a filter says of later times, whatever came before it (theory 10.6)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp._compiled import Compiled, filled, rung
from mrgp.gp.covariance import variance
from mrgp.gp.filtering import blocks_of
from mrgp.gp.forms import for_each
from mrgp.gp.leaning import across, regression
from mrgp.gp.readings import Kernels, mixed_covariance
from mrgp.gp.smoothing import Setting
from mrgp.gp.statespace import StateSpace
from mrgp.gp.timeline import Groups, Separated, extent_of, separated
from mrgp.gp.waypoints import Front
from mrgp.supports import Places, Rule, Support, Timed, taken_apart

ROWS = 1024
Spread = Float[np.ndarray, "n *n"]


class Clock(NamedTuple):
    """What rows read of time: sums over instants and over integrals up to them, from the front on.

    >>> from mrgp import boxes
    >>> clock = Clock.of(taken_apart(boxes([[2.0]], [[4.0]]), 0), 1, when=1.0)
    >>> clock.times[:2].tolist(), clock.integrals[0, :2].tolist()
    ([1.0, 3.0], [-0.5, 0.5])
    """

    times: Float[np.ndarray, " u"]
    instants: Float[np.ndarray, "n u"]
    integrals: Float[np.ndarray, "n u"]

    @classmethod
    def of(cls, parts: list[Timed], count: int, when: float) -> "Clock":
        """Read the times of regions that were taken apart."""
        found = [p.times.ravel() for p in parts if p.times is not None]
        ends = [side for p in parts for side in (p.start, p.end)]
        every = np.unique(np.concatenate([*ends, *found]))
        size = rung(len(every))
        clock = cls(np.zeros(size), np.zeros((count, size)), np.zeros((count, size)))
        clock.times[: len(every)] = every - when
        for part in parts:
            start, end = (np.searchsorted(every, side) for side in (part.start, part.end))
            if part.times is not None and part.shares is not None:
                at = np.searchsorted(every, part.times)
                shares = part.scale[:, None] * part.shares
                np.add.at(clock.instants, (part.rows[:, None], at), shares)
                continue
            now = part.end == part.start
            clock.instants[part.rows[now], start[now]] = part.scale[now]
            rows, over = part.rows[~now], ~now
            rate = part.scale[over] / (part.end - part.start)[over]
            clock.integrals[rows, end[over]] = rate
            clock.integrals[rows, start[over]] = -rate
        return clock


class Asked(NamedTuple):
    """Regions at and after the front: themselves, their times, places, and which each has."""

    support: Support
    clock: Clock
    places: Groups
    where: Int[np.ndarray, " n"]


def forecast(
    front: Front,
    kernels: Kernels,
    setting: Setting,
    ratio: Float[np.ndarray, " q"],
    support: Support,
    joint: bool = False,
) -> tuple[Float[np.ndarray, " n"], Spread] | None:
    """Return mean and variance, or joint covariance, of sum_q r_q L f_q after all data.

    None where a region begins before the front, or is no place times an instant or window.
    """
    size = len(support) if joint else ROWS
    found = []
    for first in range(0, len(support), size):
        part = support[np.arange(first, min(first + size, len(support)))]
        asked = _asked(part[filled(len(part))], setting[0], float(front.when))
        if asked is None:
            return None
        given = jax.tree.map(jnp.asarray, (front, kernels, asked, ratio))
        mean, spread = _forecast(*given, setting, joint, effort="least")
        n = len(part)
        found.append((np.asarray(mean)[:n], np.asarray(spread)[(slice(n),) * spread.ndim]))
    means, spreads = zip(*found, strict=True)
    return np.concatenate(means), np.concatenate(spreads)


def _asked(support: Support, time: int, when: float) -> Asked | None:
    try:
        parts = taken_apart(support, time)
    except ValueError:
        return None
    if any(part.start.min() < when for part in parts):
        return None
    told, where = Places.of(parts, extent_of([support])), np.zeros(len(support), int)
    for part, index in zip(parts, told.which, strict=True):
        where[part.rows] = index
    return Asked(support, Clock.of(parts, len(support), when), told.groups, where)


@Compiled
def _forecast(
    front: Front,
    kernels: Kernels,
    asked: Asked,
    ratio: Float[Array, " q"],
    setting: Setting,
    joint: bool,
) -> tuple[Array, Array]:
    time, rule = setting
    blocks = blocks_of(kernels, time, front.seats, rule)
    terms = [term for kernel in kernels for term in separated(kernel, time)]
    rows, prior = [], []
    for block, term in zip(blocks, terms, strict=True):
        seen = _weights(term, block.prior, block.groups, asked.places, rule)[:, asked.where]
        now = ratio[block.function] * _readings(block.space, asked.clock)
        rows.append(jnp.einsum("nd,jn->ndj", now, seen).reshape(len(now), -1))
        prior.append(jnp.kron(block.space.stationary, block.prior))
    weights = jnp.concatenate(rows, 1)
    known = jax.scipy.linalg.block_diag(*prior) - front.covariance
    mean = weights @ front.mean
    if joint:
        own = mixed_covariance(kernels, ratio, asked.support, ratio, asked.support, rule)
        return mean, own - weights @ known @ weights.T
    own = for_each(lambda kernel: variance(kernel, asked.support, rule), kernels)
    total = sum(r**2 * v for v, r in zip(own, ratio, strict=True))
    return mean, jnp.maximum(total - jnp.sum((weights @ known) * weights, 1), 0.0)


def _readings(space: StateSpace, clock: Clock) -> Float[Array, "n d"]:
    """Return what rows read of the states at the front, as they move on."""
    moved = space.reads @ jax.vmap(space.transition)(clock.times)
    total = space.reads @ jax.vmap(lambda dt: space.integrals(dt)[0])(clock.times)
    return jnp.asarray(clock.instants) @ moved + jnp.asarray(clock.integrals) @ total


def _weights(
    term: Separated, prior: Array, seats: Groups, places: Groups, rule: Rule
) -> Float[Array, "j g"]:
    """Return how places lean on the seats of a term."""
    if not term.space:
        return jnp.concatenate([jnp.asarray(p.total) for p in places])[None, :]
    return regression(prior, term.coefficient * across(term.kernel, seats, places, rule))[0]
