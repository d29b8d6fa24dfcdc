"""Slices: places and windows along the inputs that a picture does not show."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mrgp.plotting.coordinates import Coordinate, cells_of, coordinates, count_of
from mrgp.supports import Support


class Slice(NamedTuple):
    """A place, or a window, along each input that a picture does not show.

    `spans` are windows of everything: of inputs that cannot be cut, as along the way of a sensor
    that moves. Windows may overlap, as running means do: the support that a slice was taken from is
    asked for `exactly` its regions.
    """

    inputs: tuple[Coordinate, ...] = ()
    spans: tuple[Coordinate, ...] = ()
    exact: bool = False

    @property
    def exactly(self) -> "Slice":
        """The slice that holds no regions but its own."""
        return self._replace(exact=True)

    @property
    def words(self) -> str:
        """The place in words."""
        places = [(c, c.words(*c.ends)) for c in (*self.inputs, *self.spans)]
        return ", ".join(said if c.dated else f"{c.name} {said}" for c, said in places)

    def rows(self, support: Support) -> np.ndarray:
        """Tell which regions of a support meet the slice or, if `exact`, are those of the slice."""
        found, belongs = coordinates(support), _same if self.exact else _meet
        chosen = np.ones(len(support), bool)
        for several, test in ((self.inputs, belongs), (self.spans, _touch)):
            for place in several:
                if place.name in found:
                    near = 1e-9 * max(1.0, *np.abs(place.ends))
                    chosen &= test(found[place.name], *place.ends, near)
        return chosen


EVERYWHERE = Slice()
"""The slice that holds all regions."""


def _same(c: Coordinate, low: float, high: float, near: float) -> np.ndarray:
    """Tell which regions go from one end of a window to the other."""
    return (np.abs(c.lower - low) <= near) & (np.abs(c.upper - high) <= near)


def _touch(c: Coordinate, low: float, high: float, near: float) -> np.ndarray:
    """Tell which regions meet a window, its ends included."""
    return (c.upper >= low - near) & (c.lower <= high + near)


def _meet(c: Coordinate, low: float, high: float, near: float) -> np.ndarray:
    """Tell which regions meet a window; windows that only touch do not."""
    # Where two meet, the later start lies in both; the end of a window lies outside.
    start = np.maximum(c.lower, low)

    def holds(lower: Any, upper: Any) -> np.ndarray:
        return np.where(upper - lower > near, start < upper - near, start <= upper + near)

    return holds(c.lower, c.upper) & holds(low, high)


def slices_of(support: Support, shown_inputs: Sequence[str], most: int) -> list[Slice]:
    """Return what a support has along the inputs that are not shown: few, evenly chosen.

    An input that is given by the place, as elevation is, makes no slices of its own. That is seen
    where places repeat; where they do not, and for dates, the slice says from where to where the
    input goes.
    """
    found = coordinates(support)
    places = [found[name] for name in shown_inputs]
    count = count_of(places)
    cut, spans = [], []
    for c in (c for name, c in found.items() if name not in shown_inputs):
        if c.distinct == 1 or count_of([*places, c]) > count:
            cut.append(c)
        elif c.dated or count == len(support):
            low, high = c.ends
            spans.append(c._replace(lower=np.array([low]), upper=np.array([high])))
    if not cut:
        return [Slice((), tuple(spans))]
    _, first = np.unique(cells_of(cut), axis=0, return_index=True)
    chosen = first[evenly(len(first), most)]
    return [Slice(tuple(c.take([row]) for c in cut), tuple(spans)) for row in chosen]


def evenly(count: int, most: int) -> np.ndarray:
    """Return at most so many of the numbers below a count, evenly chosen; one is the middle.

    >>> evenly(10, 4), evenly(10, 1)
    (array([0, 3, 6, 9]), array([5]))
    """
    if most == 1:
        return np.array([count // 2])
    return np.linspace(0, count - 1, min(count, most)).round().astype(int)
