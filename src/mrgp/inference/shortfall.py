"""By how much a sparse fit falls short of its values, where their noise is known to be small."""

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from mrgp._linalg import JITTER
from mrgp.data import Dataset, Process
from mrgp.gp import variance
from mrgp.inference.problem import Problem
from mrgp.models.answers import Question
from mrgp.models.contract import State
from mrgp.parameters import unwrap
from mrgp.supports import Points

NEAR, FAR_ROW, MOST_ROWS = 1.5, 10.0, 100_000
"""Up to how many of their own standard deviations rows are followed, in the root of their mean
square; from how many one is named; and how many rows are looked at."""

SLIGHT, SEVERE = 0.25, 25.0
"""How many nats a value a fit may stay below noise alone before it is worth a word, or refused."""

MISSED = "the sparse fit misses"
BELOW = "the sparse fit adds to the variance of its field"
WORSE = "the sparse fit explains its values worse than noise alone would"
ADVICE = (
    'Take method="exact", where the model has it and there are some thousand values at most, more'
    " inducing inputs, or leave noise_variance= out, so that it is learned"
)


def shortfall(model: Any, weights: dict[Process, float], history: Any, data: Dataset) -> float:
    """Return by how much, in nats a value, noise alone would explain data better than a sparse fit.

    Where noise is known to be small, inducing inputs that are too few to follow the values leave
    residuals of many standard deviations, and numbers that mean nothing. Fits that follow their
    values, or learn their noise, explain them better than independent noise of the values' own
    spread does: then, and for fits that are not sparse, it is zero. Networks are sparse; trees are
    asked part by part. A prior that holds little of such values costs as much, though they are
    followed: `is_near` tells that apart.
    """
    known = any(o.noise_variance is not None for o in data)
    if not (_is_sparse(model) and known and len(history)):
        return 0.0
    alone, count = 0.0, 0.0
    for observed in data.dropna():
        weight = weights[observed.process] * len(observed)
        spread = float(np.std(observed.y)) or float(np.abs(observed.y).max()) or 1.0
        alone -= weight * (0.5 * math.log(2 * math.pi) + math.log(spread) + 0.5)
        count += weight
    return max(0.0, (alone - float(history[-1])) / count) if count else 0.0


class Away(NamedTuple):
    """By how many standard deviations rows of known noise are off: the posterior's and their own.

    >>> Away("source 'a', task 'value'", np.array([7]), np.array([0.5])).row
    array([7])
    """

    label: str
    row: Int[np.ndarray, " r"]
    far: Float[np.ndarray, " r"]


def away(model: Any, state: State, problem: Problem) -> list[Away]:
    """Return how far a sparse fit is from values of known noise, source by source.

    What shares errors with others is left out: its own noise is not all of it.
    """
    found: list[Away] = []
    if not _is_sparse(model) or _shares_errors(model):
        return found
    for observed, record in zip(problem.seen, problem.records, strict=True):
        if record.noise_variance is None or observed.likelihood.name != "gaussian":
            continue
        rows = np.unique(np.linspace(0, len(record) - 1, MOST_ROWS).astype(int))
        part = record.take(rows) if len(rows) < len(record) else record
        asked = Question(observed.task, observed.name, jax.random.key(0), samples=0)
        with warnings.catch_warnings():
            # What is to be said of supports was said of the data.
            warnings.simplefilter("ignore")
            told = model.predict(state, part.support, asked)
        weights, means = np.asarray(told.weights), np.asarray(told.means)
        mean = np.sum(weights * means, 1)
        spread = np.sum(weights * (np.asarray(told.variances) + (means - mean[:, None]) ** 2), 1)
        far = np.abs(np.asarray(part.y) - mean) / np.sqrt(spread + np.asarray(part.noise_variance))
        if part.censored is not None:
            far = np.where(np.asarray(part.censored) == 0, far, 0.0)
        found.append(Away(observed.label, np.flatnonzero(observed.observed)[rows], far))
    return found


def is_near(found: Sequence[Away]) -> bool:
    """Tell whether values of known noise are followed, whatever their prior made of them.

    >>> is_near([Away("source 'a'", np.arange(2), np.array([0.5, 1.0]))]), is_near([])
    (True, False)
    """
    every = np.concatenate([np.zeros(0), *(one.far for one in found)])
    return len(every) > 0 and bool(np.sqrt(np.mean(every**2)) < NEAR)


def missed_row(found: Sequence[Away]) -> str | None:
    """Name the row that a sparse fit misses by most of its own standard deviations.

    One row among many is no shortfall in the mean, and yet what is said of its place means nothing.

    >>> missed_row([Away("source 'a', task 'value'", np.arange(2), np.array([0.5, 1.0]))])
    """
    worst = max(found, key=lambda one: one.far.max(initial=0.0), default=None)
    if worst is None or worst.far.max(initial=0.0) <= FAR_ROW:
        return None
    most = int(np.argmax(worst.far))
    return (
        f"{MISSED} values by up to {worst.far[most]:.3g} of their own standard deviations, most in"
        f" {worst.label}: row {worst.row[most]}: their known noise is too small for so few inducing"
        f" inputs, or they do not belong to the others. {ADVICE}"
    )


def below_jitter(model: Any, problem: Problem) -> str | None:
    """Say where known noise is less than what a sparse solver adds to the variance of its field.

    It does so to factor matrices at all: what is said of smaller variances means nothing.
    """
    linear = model.linear
    known = [
        (observed, record)
        for observed, record in zip(problem.seen, problem.records, strict=True)
        if record.noise_variance is not None and observed.likelihood.name == "gaussian"
    ]
    if linear is None or not known or not _is_sparse(model):
        return None
    solver = linear.solver
    first = Points(np.asarray(solver.locations.value)[:1], np.ones(1))
    prior = [float(variance(unwrap(kernel), first)[0]) for kernel in solver.kernels]
    for observed, record in known:
        ratio = np.asarray(unwrap(linear).readout.ratio(observed.name, observed.task))
        added = JITTER * float(np.sum(np.broadcast_to(ratio, (len(prior),)) ** 2 * prior))
        least = float(np.min(np.asarray(record.noise_variance)))
        if least < added:
            return (
                f"{BELOW} {added:.3g}, and the known noise variance of {observed.label} is"
                f" {least:.3g}: nothing so small is resolved. {ADVICE}"
            )
    return None


def _is_sparse(model: Any) -> bool:
    linear = model.linear
    return model.variational is not None if linear is None else not linear.solver.keeps_data


def _shares_errors(model: Any) -> bool:
    return model.linear is not None and bool(model.linear.noise.shared)


def unexplained(short: float) -> str | None:
    """Say that a sparse fit explains its values worse than noise alone would, where it does.

    >>> unexplained(0.0) is None, unexplained(2.0)
    (True, 'the sparse fit explains its values worse than noise alone would, ...')
    """
    if short <= SLIGHT:
        return None
    return (
        f"{WORSE}, by {short:.3g} nats each: the known noise is too small for so few inducing"
        f" inputs. {ADVICE}"
    )


def shortfalls(fit: Any) -> tuple[str, ...]:
    """Return what a fit and its parts say of how they fall short of their values.

    >>> from types import SimpleNamespace
    >>> part = SimpleNamespace(doubts=(unexplained(2.0), "another"), parts={})
    >>> shortfalls(SimpleNamespace(doubts=(), parts={"base[a]": part}))
    ('base[a]: the sparse fit explains its values worse than noise alone would, by 2 nats ...',)
    """
    own = [text for text in fit.doubts if text.startswith((WORSE, MISSED, BELOW))]
    parts = [f"{name}: {text}" for name, part in fit.parts.items() for text in shortfalls(part)]
    return (*own, *parts)
