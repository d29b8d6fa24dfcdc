"""Effects of covariates: what categories and numbers add to a field (theory 12.3)."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from mrgp.data import Dataset
from mrgp.kernels import (
    Category,
    Kernel,
    LeafKernel,
    Linear,
    Matern12,
    Separable,
    Sum,
    single_kernels,
)
from mrgp.parameters import fixed
from mrgp.supports import Geometry

FEWEST_OF_A_KIND = 5
"""How many places a category needs for levels in time that are not those of its places."""


def with_effects(
    kernel: Kernel, data: Dataset, geometry: Geometry, spread: float, clock: int | None = None
) -> tuple[Kernel, Geometry]:
    """Add an effect of every covariate that a kernel does not name, and hide them all from others.

    Categories have levels about their mean, of a variance to learn; those of several places have
    levels that change along the input `clock` as well, if one is given. Numbers have a slope,
    whose prior scale is the spread of the values for one standard deviation of the column.

    >>> import mrgp
    >>> x = mrgp.points([[0.0], [1.0]], covariates={"type": ["park", "road"]})
    >>> data = Dataset([mrgp.Observations(x, [3.0, 5.0])])
    >>> found, geometry = with_effects(mrgp.RBF(), data, Geometry.of(data.supports), 1.0)
    >>> [type(k).__name__ for k in found.kernels], geometry.open
    (['RBF', 'Category'], (0,))
    """
    used = {geometry.index(d) for d in _named(kernel, geometry.names)}
    columns = [d for d in geometry.covariates if d not in used]
    terms = [_effect(data, geometry, d, spread) for d in columns]
    if clock is not None:
        terms += [
            Category(dims=geometry.names[d], only=kinds) * Matern12(dims=geometry.names[clock])
            for d in columns
            if d in geometry.categories and len(kinds := _frequent(data, geometry, d, clock)) > 1
        ]
    hidden = dataclasses.replace(geometry, hidden=geometry.covariates)
    return (Sum.joined(kernel, *terms) if terms else kernel), hidden


def effect_terms(kernel: Kernel) -> Iterator[tuple[int, Category | Linear]]:
    """Return the terms of a bound kernel that are effects of one input, with its column.

    >>> import mrgp
    >>> from mrgp.kernels import Binding
    >>> bound = (mrgp.RBF(dims=0) + mrgp.Linear(dims=1)).bind(Binding(Geometry.unit(2)))
    >>> [column for column, _ in effect_terms(bound)]
    [1]
    """
    for term in kernel.kernels if isinstance(kernel, Sum) else (kernel,):
        if isinstance(term, Category | Linear) and len(term.columns) == 1:
            yield term.columns[0], term


def _effect(data: Dataset, geometry: Geometry, column: int, spread: float) -> Kernel:
    name = geometry.names[column]
    if column in geometry.categories:
        return Category(dims=name)
    values = [support.centres[:, column] for support in data.supports]
    known = {f.names[0]: f.neutral for f in data.covariates or () if f.neutral is not None}
    # A source that lacks the column has one value throughout: others show how it varies.
    width = max(float(np.std(v)) for v in values) or 1.0
    origin = known.get(name, float(np.concatenate(values).mean()))
    return Linear(variance=fixed((spread / width) ** 2), origin=origin, dims=name)


def _frequent(data: Dataset, geometry: Geometry, column: int, clock: int) -> tuple[int, ...]:
    """Return the codes of the categories that several places have."""
    known = {clock, *geometry.covariates}
    space = [d for d in range(len(geometry.names)) if d not in known]
    seen = [o.support[np.flatnonzero(o.observed)] for o in data]
    centres = np.concatenate([s.centres for s in seen if all(s.pointlike[d] for d in space)])
    places = np.unique(centres[:, [column, *space]].round(9), axis=0)
    codes, counts = np.unique(places[:, 0].round().astype(int), return_counts=True)
    return tuple(codes[(counts >= FEWEST_OF_A_KIND) & (codes >= 0)].tolist())


def _named(kernel: Kernel, inputs: tuple[str, ...]) -> Iterator[Any]:
    """Return the inputs that kernels name inside a kernel."""
    for single in single_kernels(kernel):
        if isinstance(single, Separable):
            yield from (group for group in single.groups if group in inputs)
            yield from (name for part in single.kernels for name in _named(part, inputs))
        elif isinstance(single, LeafKernel):
            yield from single.dims or ()
