"""Rules that replace a box by weighted nodes (theory 1.1)."""

import dataclasses
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy.stats import qmc


@runtime_checkable
class Rule(Protocol):
    """Nodes and weights on the unit cube; weights sum to one.

    >>> isinstance(GaussLegendre(3), Rule), isinstance(3, Rule)
    (True, False)
    """

    def on_unit_cube(
        self, flat: tuple[bool, ...]
    ) -> tuple[Float[np.ndarray, "s d"], Float[np.ndarray, " s"]]:
        """Return nodes and weights, with one central node along the sides marked flat."""
        ...


def _tensor(
    sides: list[tuple[np.ndarray, np.ndarray]],
) -> tuple[Float[np.ndarray, "s d"], Float[np.ndarray, " s"]]:
    nodes = np.meshgrid(*(x for x, _ in sides), indexing="ij")
    weights = np.meshgrid(*(w for _, w in sides), indexing="ij")
    return np.stack([x.ravel() for x in nodes], -1), np.prod([w.ravel() for w in weights], axis=0)


def _check_number(number: Any, name: str) -> None:
    counts = number if isinstance(number, tuple) else (number,)
    if not counts or not all(isinstance(c, int) and c >= 1 for c in counts):
        raise ValueError(f"{name} takes a positive whole number, or a tuple of them; got {number}.")


def _counts(number: int | tuple[int, ...], flat: tuple[bool, ...], name: str) -> list[int]:
    counts = (number,) * len(flat) if isinstance(number, int) else tuple(number)
    if len(counts) != len(flat):
        raise ValueError(
            f"{name} takes one positive number, or one for each of the {len(flat)} inputs;"
            f" got {number}."
        )
    return [1 if is_flat else count for count, is_flat in zip(counts, flat, strict=True)]


@dataclasses.dataclass(frozen=True)
class Midpoint:
    """A uniform grid of cell midpoints, `number` along each side.

    >>> nodes, weights = Midpoint(2).on_unit_cube((False,))
    >>> nodes.ravel(), weights
    (array([0.25, 0.75]), array([0.5, 0.5]))
    """

    number: Any = 10

    def __post_init__(self) -> None:
        _check_number(self.number, "Midpoint")

    def on_unit_cube(
        self, flat: tuple[bool, ...]
    ) -> tuple[Float[np.ndarray, "s d"], Float[np.ndarray, " s"]]:
        """Return nodes at (i + 1/2) / number with equal weights."""
        counts = _counts(self.number, flat, "Midpoint")
        return _tensor([((np.arange(c) + 0.5) / c, np.full(c, 1.0 / c)) for c in counts])


@dataclasses.dataclass(frozen=True)
class GaussLegendre:
    """A tensor Gauss-Legendre rule, `number` nodes along each side.

    A tuple has a number for each side. A side marked flat has one node, in its middle.

    >>> nodes, weights = GaussLegendre(2).on_unit_cube((False, True))
    >>> nodes.round(3)
    array([[0.211, 0.5  ],
           [0.789, 0.5  ]])
    """

    number: Any = 5

    def __post_init__(self) -> None:
        _check_number(self.number, "GaussLegendre")

    def on_unit_cube(
        self, flat: tuple[bool, ...]
    ) -> tuple[Float[np.ndarray, "s d"], Float[np.ndarray, " s"]]:
        """Return the tensor product of 1-D Gauss-Legendre rules."""
        counts = _counts(self.number, flat, "GaussLegendre")
        return _tensor([gauss_legendre(c) for c in counts])


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

    def on_unit_cube(
        self, flat: tuple[bool, ...]
    ) -> tuple[Float[np.ndarray, "s d"], Float[np.ndarray, " s"]]:
        """Return the unscrambled sequence, moved to the middle of its finest cells."""
        if all(flat):
            return np.full((1, len(flat)), 0.5), np.ones(1)
        draws = qmc.Sobol(len(flat), scramble=False).random(self.number) + 0.5 / self.number
        return np.where(np.array(flat), 0.5, draws), np.full(self.number, 1.0 / self.number)


def gauss_legendre(
    number: int,
) -> tuple[Float[np.ndarray, " s"], Float[np.ndarray, " s"]]:
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
    number = getattr(rule, "number", None)
    if not isinstance(number, tuple) or not isinstance(rule, Midpoint | GaussLegendre):
        return rule
    if max(columns) >= len(number):
        raise ValueError(
            f"{type(rule).__name__} takes one positive number, or one for each of the inputs, of"
            f" which there are at least {max(columns) + 1}; got {number}."
        )
    return dataclasses.replace(rule, number=tuple(number[d] for d in columns))


DEFAULT_RULE = GaussLegendre(5)
