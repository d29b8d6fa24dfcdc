"""A loss that is the best over what beside the parameters is found anew at each of them."""

import abc
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from mrgp.inference.objectives import Objective


class Profile(abc.ABC):
    """The best bound over a q, as a loss with its slope.

    Every evaluation starts from the q of the last step taken, so that a line search sees one
    function; the best q so far is kept beside the best parameters.
    """

    def __init__(self, objective: Objective, filled: Objective, now: Any):
        self.objective, self.filled = objective, filled
        self.size = float(objective.count)
        self.now, self.best, self.lowest = now, now, np.inf
        self.evaluated: dict[bytes, Any] = {}
        self.last: tuple[bytes, tuple[Array, Any]] | None = None

    @abc.abstractmethod
    def evaluate(self, trained: Any, size: Array) -> tuple[Array, Any, Any]:
        """Return loss and slope at some parameters, and the q found from `now`."""

    @abc.abstractmethod
    def model(self, trained: Any) -> Any:
        """Return the model with the best parameters and their q."""

    def __call__(self, trained: Any) -> tuple[Array, Any]:
        """Return loss and slope at some parameters, at once where they are the last ones."""
        mark = _mark(trained)
        if self.last is not None and self.last[0] == mark:
            return self.last[1]
        value, slope, found = self.evaluate(trained, jax.device_put(np.asarray(self.size)))
        self.evaluated[mark], self.last = found, (mark, (value, slope))
        finite = all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))
        if float(value) < self.lowest and finite:
            self.lowest, self.best = float(value), found
        return value, slope

    def accept(self, trained: Any) -> None:
        """Go on from the q of these parameters."""
        self.now = self.evaluated.get(_mark(trained), self.now)
        self.evaluated = {}

    def memory(self) -> list[np.ndarray]:
        """Return the q that evaluations start from, the best one, and its loss."""
        leaves = jax.tree.leaves((self.now, self.best))
        return [np.array(self.lowest), *map(np.asarray, leaves)]

    def remember(self, memory: list[np.ndarray]) -> None:
        """Take up the memory of another loss of the same objective."""
        tree = jax.tree.structure((self.now, self.best))
        self.lowest = float(memory[0])
        self.now, self.best = jax.tree.unflatten(tree, map(jax.device_put, memory[1:]))


def _mark(trained: Any) -> bytes:
    return b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(trained))
