"""Folds of a source's values: at random, by site, or by stretches of time."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Int

from mrgp.data import Observations

WORDS = ("random", "site", "time")


def make_folds(
    observed: Observations, folds: Any = "random", number: int = 5, key: int = 0
) -> Int[np.ndarray, " n"]:
    """Return the fold of each value of a source; values that are missing have -1.

    `folds` is "random", "site" (all values of a place together), "time" (stretches of time one
    after the other), or a label for each value. There are `number` folds, or as many as there are
    sites or labels, if fewer.

    >>> import mrgp
    >>> six = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]), range(6))
    >>> make_folds(six, "time", number=3).tolist()
    [0, 0, 1, 1, 2, 2]
    """
    where = f"source {observed.name!r}, task {observed.task!r}"
    if not isinstance(number, int | np.integer) or number < 2:
        raise ValueError(f"compare: number= of folds must be 2 or more; got {number!r}.")
    if isinstance(folds, str) and folds not in WORDS:
        raise ValueError(
            f"compare: folds= is one of {WORDS}, or a label for each value of the target; got"
            f" {folds!r}."
        )
    word = folds if isinstance(folds, str) else "labels"
    seen = _groups(observed, folds, where)[observed.observed]
    several, groups = np.unique(seen, return_inverse=True)
    count = len(several)
    if count < 2:
        shown = repr(word) if word in WORDS else word
        raise ValueError(
            f"compare: {where} has {count} group to hold out with folds={shown}; two or more are"
            ' needed. Try folds="random" or "time".'
        )
    number, share = min(int(number), count), np.arange(count)
    if word == "time":
        share = share * number // count
    elif word in WORDS:
        share = np.argsort(np.random.default_rng(key).permutation(count)) % number
    found = np.full(len(observed.y), -1)
    found[observed.observed] = share[groups]
    return found


def _groups(observed: Observations, folds: Any, where: str) -> np.ndarray:
    """Return a number for each value; values of one number are held out together."""
    count = len(observed.y)
    if not isinstance(folds, str):
        labels = np.asarray(list(folds) if isinstance(folds, Iterable) else folds)
        if labels.shape != (count,):
            raise ValueError(
                f"compare: folds= has labels of shape {labels.shape}; {where} has {count} values,"
                " and needs one label each."
            )
        return np.unique(labels, return_inverse=True)[1]
    if folds == "random":
        return np.arange(count)
    lower, upper = (np.asarray(side) for side in observed.support.bounds)
    middle = 0.5 * (lower + upper)
    clock = observed.support.clock
    if folds == "time":
        if clock is None:
            raise ValueError(
                f'compare: folds="time" needs an input of time; {where} has the inputs'
                f' {observed.support.input_names}. Name one of them "time".'
            )
        return np.unique(middle[:, clock], return_inverse=True)[1]
    space = [i for i in range(middle.shape[1]) if i != clock]
    if not space:
        raise ValueError(
            f'compare: folds="site" needs an input beside time; {where} has time alone. Use'
            ' folds="time".'
        )
    return np.unique(middle[:, space], axis=0, return_inverse=True)[1].reshape(-1)
