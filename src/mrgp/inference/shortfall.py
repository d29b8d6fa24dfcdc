"""By how much a sparse fit falls short of its values, where their noise is known to be small."""

import math
from typing import Any

import numpy as np

from mrgp.data import Dataset, Process

SLIGHT, SEVERE = 0.25, 25.0
"""How many nats a value a fit may stay below noise alone before it is worth a word, or refused."""

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
    linear = model.linear
    known = any(o.noise_variance is not None for o in data)
    sparse = model.variational is not None if linear is None else not linear.solver.keeps_data
    if not (sparse and known and len(history)):
        return 0.0
    alone, count = 0.0, 0.0
    for observed in data.dropna():
        weight = weights[observed.process] * len(observed)
        spread = float(np.std(observed.y)) or float(np.abs(observed.y).max()) or 1.0
        alone -= weight * (0.5 * math.log(2 * math.pi) + math.log(spread) + 0.5)
        count += weight
    return max(0.0, (alone - float(history[-1])) / count) if count else 0.0


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
    own = [text for text in fit.doubts if text.startswith(WORSE)]
    parts = [f"{name}: {text}" for name, part in fit.parts.items() for text in shortfalls(part)]
    return (*own, *parts)
