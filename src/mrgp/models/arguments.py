"""Arguments of recipes, checked where they are given."""

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from mrgp.kernels import Kernel
from mrgp.supports import Rule


def check_choices(recipe: Any, more: str = "", **choices: Any) -> None:
    """Refuse words that are not among the choices of an argument."""
    for name, allowed in choices.items():
        given = getattr(recipe, name)
        if given not in get_args(allowed):
            raise ValueError(
                f"{_named(recipe)}: {name}= is one of {get_args(allowed)}{more}; got {given!r}."
            )


def check_whole(recipe: Any, name: str, what: str = "") -> None:
    """Refuse what is not a whole number, at least one."""
    given = getattr(recipe, name)
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if not whole or given < 1:
        raise ValueError(
            f"{_named(recipe)}: {name}= must be a whole number{what}, at least 1; got {given!r}."
        )


def check_kernels(recipe: Any, name: str, or_else: str = "") -> list[Kernel]:
    """Refuse what is not a kernel, by itself, in a list or in a mapping; return those given."""
    given = getattr(recipe, name)
    several = given.values() if isinstance(given, Mapping) else given
    found = list(several) if isinstance(given, Mapping | list | tuple) else [given]
    for kernel in found:
        if kernel is not None and not isinstance(kernel, Kernel):
            raise TypeError(
                f"{_named(recipe)}: {name}= takes a kernel such as mrgp.RBF(){or_else}; got"
                f" {kernel!r}."
            )
    return [kernel for kernel in found if kernel is not None]


def check_rule(recipe: Any) -> None:
    """Refuse a quadrature that is no rule."""
    if not isinstance(recipe.quadrature, Rule):
        raise TypeError(
            f"{_named(recipe)}: quadrature= takes a rule such as mrgp.GaussLegendre(5); got"
            f" {recipe.quadrature!r}."
        )


def _named(recipe: Any) -> str:
    return type(recipe).__name__
