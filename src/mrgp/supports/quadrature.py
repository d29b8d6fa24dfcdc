"""Rules that replace a box by weighted nodes (theory 1.1)."""

import abc
import dataclasses
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

OnCube = tuple[Float[np.ndarray, "s d"], Float[np.ndarray, " s"]]
OnSide = tuple[Float[np.ndarray, " s"], Float[np.ndarray, " s"]]


@runtime_checkable
class Rule(Protocol):
    """Nodes and weights on the unit cube; weights sum to one.

    >>> isinstance(GaussLegendre(3), Rule), isinstance(3, Rule)
    (True, False)
    """

    def on_unit_cube(self, flat: tuple[bool, ...]) -> OnCube:
        """Return nodes and weights, with one central node along the sides marked flat."""
        ...


@dataclasses.dataclass(frozen=True)
class TensorRule:
    """The tensor product of rules for the sides, of `number` nodes each.

    A tuple has a number for each side. A side marked flat has one node, in its middle.
    """

    number: Any

    def __post_init__(self) -> None:
        counts = self.number if isinstance(self.number, tuple) else (self.number,)
        if not counts or not all(isinstance(c, int) and c >= 1 for c in counts):
            raise ValueError(
                f"{type(self).__name__} takes a positive whole number, or a tuple of them; got"
                f" {self.number}."
            )

    @staticmethod
    @abc.abstractmethod
    def on_side(number: int) -> OnSide:
        """Return nodes and weights on [0, 1]."""

    def on_unit_cube(self, flat: tuple[bool, ...]) -> OnCube:
        """Return the tensor product of the rules for the sides."""
        counts = self.number if isinstance(self.number, tuple) else (self.number,) * len(flat)
        if len(counts) != len(flat):
            raise ValueError(
                f"{type(self).__name__} takes one positive number, or one for each of the"
                f" {len(flat)} inputs; got {self.number}."
            )
        numbers = (1 if point else count for count, point in zip(counts, flat, strict=True))
        sides = zip(*map(self.on_side, numbers), strict=True)
        nodes, weights = (mesh(*side) for side in sides)
        return nodes, weights.prod(1)


@dataclasses.dataclass(frozen=True)
class Midpoint(TensorRule):
    """A uniform grid of cell midpoints, `number` along each side.

    >>> nodes, weights = Midpoint(2).on_unit_cube((False,))
    >>> nodes.ravel(), weights
    (array([0.25, 0.75]), array([0.5, 0.5]))
    """

    number: Any = 10

    @staticmethod
    def on_side(number: int) -> OnSide:
        """Return nodes at (i + 1/2) / number with equal weights."""
        return (np.arange(number) + 0.5) / number, np.full(number, 1.0 / number)


@dataclasses.dataclass(frozen=True)
class GaussLegendre(TensorRule):
    """A tensor Gauss-Legendre rule, `number` nodes along each side.

    A tuple has a number for each side. A side marked flat has one node, in its middle.

    >>> nodes, weights = GaussLegendre(2).on_unit_cube((False, True))
    >>> nodes.round(3)
    array([[0.211, 0.5  ],
           [0.789, 0.5  ]])
    """

    number: Any = 5

    @staticmethod
    def on_side(number: int) -> OnSide:
        """Return the 1-D Gauss-Legendre rule."""
        return gauss_legendre(number)


@dataclasses.dataclass(frozen=True)
class Sobol:
    """A Sobol sequence of `number` nodes with equal weights; `number` is a power of two.

    >>> nodes, weights = Sobol(4).on_unit_cube((False, False))
    >>> nodes.shape, weights
    ((4, 2), array([0.25, 0.25, 0.25, 0.25]))
    """

    number: Any = 64

    def __post_init__(self) -> None:
        number = self.number
        if not isinstance(number, int) or number < 1 or number & (number - 1):
            raise ValueError(f"Sobol takes a power of two; got {number}.")

    def on_unit_cube(self, flat: tuple[bool, ...]) -> OnCube:
        """Return the unscrambled sequence, moved to the middle of its finest cells."""
        if all(flat):
            return np.full((1, len(flat)), 0.5), np.ones(1)
        # Importing scipy.stats takes a third of a second, which few fits need.
        from scipy.stats import qmc

        draws = qmc.Sobol(len(flat), scramble=False).random(self.number) + 0.5 / self.number
        return np.where(np.array(flat), 0.5, draws), np.full(self.number, 1.0 / self.number)


def mesh(*sides: Float[np.ndarray, " _"]) -> Float[np.ndarray, "n d"]:
    """Return all combinations of values along each input, the last input's changing fastest.

    >>> mesh(np.array([0.0, 1.0]), np.array([5.0, 6.0])).tolist()
    [[0.0, 5.0], [0.0, 6.0], [1.0, 5.0], [1.0, 6.0]]
    """
    return np.stack(np.meshgrid(*sides, indexing="ij"), -1).reshape(-1, len(sides))


def gauss_legendre(number: int) -> OnSide:
    """Return Gauss-Legendre nodes and weights on [0, 1].

    >>> gauss_legendre(1)
    (array([0.5]), array([1.]))
    """
    nodes, weights = np.polynomial.legendre.leggauss(number)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def along(rule: Rule, columns: tuple[int, ...]) -> Rule:
    """Return what a rule is on some of the inputs: its own numbers, where each input has one.

    >>> along(GaussLegendre((3, 5, 7)), (0, 2))
    GaussLegendre(number=(3, 7))
    """
    if not isinstance(rule, TensorRule) or not isinstance(rule.number, tuple):
        return rule
    if max(columns) >= len(rule.number):
        raise ValueError(
            f"{type(rule).__name__} takes one positive number, or one for each of the inputs, of"
            f" which there are at least {max(columns) + 1}; got {rule.number}."
        )
    return dataclasses.replace(rule, number=tuple(rule.number[d] for d in columns))


DEFAULT_RULE = GaussLegendre(5)
