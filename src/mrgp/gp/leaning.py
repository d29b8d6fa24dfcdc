"""How places lean on others: by regression, and on inducing places where places are many (10.5)."""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mrgp._linalg import add_diagonal, cholesky, solve_lower, solve_upper
from mrgp._types import AnyArray
from mrgp.gp.covariance import cross_covariance, full_covariance, variance
from mrgp.gp.readings import Kernels, Ratio, mixed_covariance
from mrgp.gp.timeline import Groups, Separated, Timeline, seats_lean, separated
from mrgp.kernels import Kernel, Product
from mrgp.kernels.base import View
from mrgp.supports import Rule, Support

JITTER = 1e-12


def regression(
    prior: Float[Array, "j j"], cross: Float[Array, "j g"]
) -> tuple[Float[Array, "j g"], Float[Array, "j g"]]:
    """Return K^-1 k, how other places lean on those of a covariance, and L^-1 k for its root L."""
    root = cholesky(add_diagonal(prior, JITTER * jnp.trace(prior) / len(prior)))
    half = solve_lower(root, cross)
    return solve_upper(root, half), half


def across(kernel: Kernel, seats: Groups, places: Groups, rule: Rule) -> Float[Array, "j g"]:
    """Return the covariance between places in groups."""
    return jnp.block([[cross_covariance(kernel, a, b, rule) for b in places] for a in seats])


class Lean(NamedTuple):
    """What places have of a term at its inducing places, and the share of variance they have not.

    A place that is an inducing one has all of it, and nothing of the others.

    >>> Lean(jnp.ones((1, 1)), jnp.zeros(1)).left.tolist()
    [0.0]
    """

    weights: Float[Array, "p j"]
    left: Float[Array, " p"]

    @classmethod
    def of(
        cls,
        term: Separated,
        inducing: Groups,
        places: Groups,
        rule: Rule,
        own: Int[AnyArray, " p"] | None = None,
    ) -> "Lean":
        """Let places lean on inducing ones, by the covariance of a term among places.

        `own` is the inducing place that each of them is, -1 where it is none.
        """
        prior = jnp.block(full_covariance(term.kernel, inducing, rule))
        weights, half = regression(prior, across(term.kernel, inducing, places, rule))
        all_of_it = jnp.concatenate([variance(term.kernel, group, rule) for group in places])
        left = jnp.maximum(1.0 - jnp.sum(half**2, 0) / all_of_it, 0.0)
        if own is None:
            return cls(weights.T, left)
        number = jnp.asarray(own)
        itself, here = jax.nn.one_hot(number, len(prior), dtype=weights.dtype), number >= 0
        return cls(jnp.where(here[:, None], itself, weights.T), jnp.where(here, 0.0, left))


def whole(term: Separated, time: int) -> Kernel:
    """Return a term without its coefficient, as a kernel of all inputs.

    >>> from mrgp import Matern12
    >>> (term,) = separated(Matern12(1.0, variance=2.0, dims=0), time=0)
    >>> float(whole(term, 0).pair(jnp.zeros(1), jnp.zeros(1)))
    1.0
    """
    moving = () if term.time is None else (View((time,), term.time),)
    return Product((*(View(factor.dims, factor.kernel) for factor in term.space), *moving))


Kind = tuple[tuple[int, ...], tuple[int, ...]]
"""What tells places apart to a term: the inputs that it sees, and those along which it is white."""

Direct = Mapping[Kind, Bool[Array, " n"]]
"""Which rows are at inducing places, by the kind of a term; without kinds that have none."""


def direct(kernels: Kernels, time: int, line: Timeline) -> dict[Kind, Bool[Array, " n"]]:
    """Return which rows of a timeline are at inducing places.

    >>> from mrgp import Matern12, points
    >>> kernels = (Matern12(1.0, variance=1.0, dims=0),)
    >>> places = (points([[1.0, 0.0]]),)
    >>> line = Timeline.of(kernels, 1, [points([[1.0, 5.0], [2.0, 5.0]])], inducing=places)
    >>> direct(kernels, 1, line)[((0,), ())].tolist()
    [True, False]
    """
    terms = [term for kernel in kernels for term in separated(kernel, time)]
    place = jnp.asarray(line.place)
    return {
        (term.dims, term.white): jnp.asarray(seats.own)[jnp.asarray(seats.index)[place]] >= 0
        for term, seats in zip(terms, line.seats, strict=True)
        if seats.own is not None
    }


def leaning_covariance(
    kernels: Kernels,
    time: int,
    inducing: Groups,
    ratio: Ratio,
    first: Support,
    other: Ratio,
    second: Support,
    rule: Rule,
    at: Direct | None = None,
) -> Float[Array, "n m"]:
    """Return the covariance between sum_q r_q L f_q and sum_q r'_q L' f_q through inducing places.

    Regions are places times instants or windows: in space it is that of the inducing places, and
    in time that of the kernel. Rows of the first that are `at` inducing places need no others.
    """
    if not inducing:
        return mixed_covariance(kernels, ratio, first, other, second, rule)
    parts = []
    for q, kernel in enumerate(kernels):
        for term in separated(kernel, time):
            found = _of_term(term, time, inducing, first, second, rule)
            here = (at or {}).get((term.dims, term.white))
            if here is not None:
                every = cross_covariance(whole(term, time), first, second, rule)
                found = jnp.where(here[:, None], every, found)
            parts.append(jnp.asarray(ratio)[q] * jnp.asarray(other)[q] * term.coefficient * found)
    return functools.reduce(jnp.add, parts)


def _of_term(
    term: Separated, time: int, inducing: Groups, first: Support, second: Support, rule: Rule
) -> Any:
    if not term.space and term.time is None:
        return jnp.asarray(first.total)[:, None] * jnp.asarray(second.total)[None, :]
    if not seats_lean(term):
        return cross_covariance(whole(term, time), first, second, rule)
    prior = jnp.block(full_covariance(term.kernel, inducing, rule))
    one, two = (
        regression(prior, across(term.kernel, inducing, (support,), rule))[1]
        for support in (first, second)
    )
    if term.time is None:
        return one.T @ two
    along = cross_covariance(View((time,), term.time), first, second, rule)
    # Both factors have the whole weight of a region, which counts once.
    total = jnp.asarray(first.total)[:, None] * jnp.asarray(second.total)[None, :]
    return (one.T @ two) * along / total
