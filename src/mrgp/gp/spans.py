"""A filter over spans of time side by side, where a machine does many small steps at once.

Given the state at the beginning of a span, what a filter makes of the span is linear in it: values
made white are w + W x, and the state at the end is b + A x, apart from what stays unknown. So all
spans are filtered at once from a state that is known to be zero, with W and A as further columns,
and then the state is followed from span to span (theory 10.7).
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp.gp.filtering import (
    Belief,
    Dynamics,
    Seen,
    Step,
    beginning,
    followed,
    steps_of,
    whitened,
)

FEWEST = 64
"""Steps below which spans are not worth their while."""


class Weighed(NamedTuple):
    """The squares of white values, the log determinant of their covariance, the last belief.

    The evidence is -1/2 of the first two and of log 2 pi for each value. Where values are filtered
    in spans, `passed` has the beliefs after the steps `ends`.
    """

    square: Float[Array, ""]
    size: Float[Array, ""]
    belief: Belief
    passed: Any = None
    ends: tuple[int, ...] = ()


def one_by_one(steps: int) -> bool:
    """Tell whether so many steps are taken one after another: on a processor they are.

    >>> one_by_one(10)
    True
    """
    return jax.default_backend() == "cpu" or steps < FEWEST


def weighed(dynamics: Dynamics, seen: Seen) -> Weighed:
    """Filter all steps: one after another on a processor, in spans on an accelerator."""
    steps = seen.there.shape[0]
    if one_by_one(steps):
        white, size, belief = whitened(dynamics, seen)
        return Weighed(jnp.sum(white**2), size, belief)
    return in_spans(dynamics, seen, math.isqrt(steps))


class Span(NamedTuple):
    """What a span of time says of the state x at its beginning, and makes of it.

    The evidence of its values given x is -1/2 (square - 2 pull.x + x.weight x + size), and the
    state at its end is Gaussian about b + A x, where `belief` has b and then A as its columns.
    """

    square: Float[Array, ""]
    pull: Float[Array, "n c"]
    weight: Float[Array, "n n"]
    size: Float[Array, ""]
    belief: Belief


def in_spans(dynamics: Dynamics, seen: Seen, spans: int) -> Weighed:
    """Filter all steps in spans side by side, and what is left of them one after another."""
    steps = steps_of(dynamics.line, seen)
    count, columns, n = steps.gap.shape[0], seen.values.shape[2], len(dynamics.prior)
    whole = count // spans * spans
    known = Belief(jnp.hstack([jnp.zeros((n, columns)), jnp.eye(n)]), jnp.zeros((n, n)))

    def span(part: Step) -> Span:
        belief, (white, size) = followed(dynamics, known, part, spans)
        white = white.reshape(-1, columns + n)
        own, moved = white[:, :columns], white[:, columns:]
        return Span(jnp.sum(own**2), -moved.T @ own, moved.T @ moved, jnp.sum(size), belief)

    def follow(belief: Belief, one: Span) -> tuple[Belief, tuple[Belief, Array, Array]]:
        after, square, size = _followed(belief, one)
        return after, (after, square, size)

    parts = jax.tree.map(lambda x: x[:whole].reshape(spans, -1, *x.shape[1:]), steps)
    belief, (passed, square, size) = jax.lax.scan(
        follow, beginning(dynamics, columns), jax.vmap(span)(parts)
    )
    rest = jax.tree.map(lambda x: x[whole:], steps)
    belief, (white, more) = followed(dynamics, belief, rest)
    ends = tuple(range(whole // spans - 1, whole, whole // spans))
    square, size = jnp.sum(square) + jnp.sum(white**2), jnp.sum(size) + jnp.sum(more)
    return Weighed(square, size, belief, passed, ends)


def _followed(belief: Belief, span: Span) -> tuple[Belief, Array, Array]:
    """Follow a state of this belief through a span, and weigh the values of the span."""
    m, p = belief
    columns = m.shape[1]
    shrink = jnp.eye(len(p)) + p @ span.weight
    pull = span.pull - span.weight @ m
    left = jnp.linalg.solve(shrink, p)
    left = 0.5 * (left + left.T)
    square = span.square - jnp.sum(m * (span.pull + pull)) - jnp.sum(pull * (left @ pull))
    size = span.size + jnp.linalg.slogdet(shrink)[1]
    end, move = span.belief.mean[:, :columns], span.belief.mean[:, columns:]
    after = Belief(end + move @ (m + left @ pull), span.belief.covariance + move @ left @ move.T)
    return after, square, size
