"""A grid for a page where the user gives none: the extent of the data, at its times."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from mrgp.report.layout import Layout, plain
from mrgp.supports import Support, bounds_of, points

MOST_ACROSS, LEAST_ACROSS, MOST_STEPS, CURVE = 60, 12, 24, 400
MARGIN = 0.03
UNEVEN = 8.0
"""How many times longer one side of a map may be before cells need not be square."""

Vector = Float[np.ndarray, " n"]


def default_grid(layout: Layout, supports: Sequence[Support]) -> Support:
    """Return a grid over the extent of the data: 60 cells along its longer side, and 24 times.

    Times are those of the first source, evenly chosen where there are more. In the numbers of the
    fit.
    """
    sides: list[Vector] = [np.zeros(1)] * len(layout.names)
    spans = [_span(low, high) for low, high in zip(*bounds_of(supports), strict=True)]
    if len(layout.across) == 1:
        low, high = spans[0]
        sides[0] = np.linspace(low, high, CURVE)
    else:
        counts = _counts([spans[d] for d in layout.across])
        for d, count in zip(layout.across, counts, strict=True):
            low, high = spans[d]
            low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
            sides[d] = low + (np.arange(count) + 0.5) / count * (high - low)
    if layout.along is not None:
        sides[layout.along] = _times(supports[0], layout.along)
    for d in layout.held:
        sides[d] = np.array([np.median(_middles(supports[0], d))])
    mesh = np.meshgrid(*sides, indexing="ij")
    made = points(np.column_stack([part.ravel() for part in mesh]), inputs=layout.names)
    return dataclasses.replace(made, axes=layout.axes if any(layout.axes) else None)


def _span(low: float, high: float) -> tuple[float, float]:
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(high) + 0.5)


def _counts(spans: list[tuple[float, float]]) -> list[int]:
    """Return how many cells lie along each side, so that cells are square where they can be."""
    lengths = np.array([high - low for low, high in spans])
    if lengths.max() > UNEVEN * lengths.min():
        return [MOST_ACROSS, MOST_ACROSS]
    counts = np.rint(MOST_ACROSS * lengths / lengths.max())
    return [max(int(count), LEAST_ACROSS) for count in counts]


def _middles(support: Support, d: int) -> Vector:
    lower, upper = (np.asarray(bound)[:, d] for bound in support.bounds)
    return 0.5 * (lower + upper)


def _times(support: Support, d: int) -> Vector:
    """Return when a source has values: instants, or the middles of windows."""
    there = np.unique(np.round(_middles(support, d), 9))
    return there[np.unique(np.linspace(0, len(there) - 1, MOST_STEPS).astype(int))]


def extent(support: Support, d: int, layout: Layout) -> tuple[Vector, Vector]:
    """Return the ends of regions along an input in plain numbers: degrees, seconds, as given."""
    axis = None if support.axes is None else support.axes[d]
    lower, upper = (np.asarray(bound)[:, d] for bound in support.bounds)
    return plain(lower, axis or layout.axes[d]), plain(upper, axis or layout.axes[d])
