"""By how much a sparse fit falls short of its values, where their noise is known to be small."""

import math
import warnings
from typing import Any

import jax
import numpy as np

from mrgp._linalg import JITTER
from mrgp.data import Dataset, Process
from mrgp.gp import variance
from mrgp.inference.problem import Problem
from mrgp.models.answers import Question
from mrgp.models.contract import State
from mrgp.parameters import unwrap
from mrgp.supports import Points

FAR_ROW, MOST_ROWS = 10.0, 100_000
"""From how many of its own standard deviations a row is named, and how many rows are looked at."""

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
    asked part by part.
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


def missed_row(model: Any, state: State, problem: Problem) -> str | None:
    """Name the row of known noise that a sparse fit misses by most of its own standard deviations.

    These are of the posterior and the row's noise together. One row among many is no shortfall in
    the mean, and yet what is said of its place means nothing. What shares errors with others is
    left out: its own noise is not all of it.
    """
    if not _is_sparse(model) or _shares_errors(model):
        return None
    worst = (FAR_ROW, "")
    for observed, record in zip(problem.seen, problem.records, strict=True):
        noise = record.noise_variance
        if noise is None or observed.likelihood.name != "gaussian":
            continue
        rows = np.unique(np.linspace(0, len(record) - 1, MOST_ROWS).astype(int))
        part = record.take(rows) if len(rows) < len(record) else record
        asked = Question(observed.task, observed.name, jax.random.key(0), samples=0)
        with warnings.catch_warnings():
            # What is to be said of supports was said of the data.
            warnings.simplefilter("ignore")
            found = model.predict(state, part.support, asked)
        spread = np.asarray(found.variances)[:, 0] + np.asarray(part.noise_variance)
        away = np.abs(np.asarray(part.y) - np.asarray(found.means)[:, 0]) / np.sqrt(spread)
        if part.censored is not None:
            away = np.where(np.asarray(part.censored) == 0, away, 0.0)
        if (most := int(np.argmax(away))) >= 0 and away[most] > worst[0]:
            row = np.flatnonzero(observed.observed)[rows[most]]
            worst = (float(away[most]), f"{observed.label}: row {row}")
    if not worst[1]:
        return None
    return (
        f"{MISSED} values by up to {worst[0]:.3g} of their own standard deviations, most in"
        f" {worst[1]}: their known noise is too small for so few inducing inputs, or they do not"
        f" belong to the others. {ADVICE}"
    )


def below_jitter(model: Any, problem: Problem) -> str | None:
    """Say where known noise is less than what a sparse solver adds to the variance of its field.

    It does so to factor matrices at all: what is said of smaller variances means nothing.
    """
    linear = model.linear
    if linear is None or not _is_sparse(model):
        return None
    solver = linear.solver
    first = Points(np.asarray(solver.locations.value)[:1], np.ones(1))
    prior = [float(variance(unwrap(kernel), first)[0]) for kernel in solver.kernels]
    for observed, record in zip(problem.seen, problem.records, strict=True):
        if record.noise_variance is None or observed.likelihood.name != "gaussian":
            continue
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
