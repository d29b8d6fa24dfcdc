"""Which inputs are directions of one space: they have one unit and, by default, one lengthscale."""

from collections.abc import Sequence
from typing import Any

from mrgp.supports.axes import Axis

Spaces = tuple[tuple[int, ...], ...]
"""Groups of input columns, each of which is a space; inputs in no group stand alone."""

PAIRS = (
    (("lon", "longitude", "lng", "long"), ("lat", "latitude")),
    (("x",), ("y",)),
    (("east", "easting", "eastings"), ("north", "northing", "northings")),
)
_EARTH = ("longitude", "latitude")


def known_spaces(names: Sequence[str], axes: Sequence[Axis | None]) -> Spaces:
    """Return the spaces that axes or well-known whole names show, in any order and case.

    >>> known_spaces(("time", "Lat", "Lon"), (None,) * 3), known_spaces(("x", "y2"), (None,) * 2)
    (((1, 2),), ())
    """
    quantities = [None if axis is None else axis.quantity for axis in axes]
    found = [[d for d, known in enumerate(quantities) if known == q] for q in _EARTH]
    lowered = [name.lower() for name in names]
    pairs = [
        found,
        *([[lowered.index(w) for w in words if w in lowered] for words in pair] for pair in PAIRS),
    ]
    spaces: list[tuple[int, ...]] = []
    for first, second in pairs:
        taken = {d for space in spaces for d in space}
        if len(first) == len(second) == 1 and not taken & {*first, *second}:
            spaces.append(tuple(sorted((*first, *second))))
    return tuple(sorted(spaces))


def check_space(space: Any, names: Sequence[str], where: str) -> Spaces | None:
    """Return the groups that a user gives as names, one group or several; () is for none.

    >>> check_space(("a", "b"), ("a", "time", "b"), "points")
    ((0, 2),)
    """
    if space is None:
        return None
    groups = [] if len(space) == 0 else [space] if isinstance(space[0], str) else list(space)
    expected = f'{where}: space= takes names of inputs, as space=("a", "b"); the inputs are {names}'
    if isinstance(space, str) or any(isinstance(group, str) or len(group) < 2 for group in groups):
        raise ValueError(f"{expected}. A space has two of them or more; got {space!r}.")
    flat = [name for group in groups for name in group]
    unknown = [name for name in flat if name not in names]
    if unknown:
        raise ValueError(f"{expected}. None is named {unknown[0]!r}.")
    if len(set(flat)) < len(flat):
        raise ValueError(f"{expected}. An input is in one space, once; got {space!r}.")
    return tuple(sorted(tuple(sorted(map(list(names).index, group))) for group in groups))


def grouped(columns: Sequence[int], spaces: Spaces) -> Spaces:
    """Return columns in groups of one space, and alone where they are in none.

    >>> grouped((0, 1, 2), ((0, 2),))
    ((0, 2), (1,))
    """
    found: dict[Any, list[int]] = {}
    for d in columns:
        space = next((space for space in spaces if d in space), d)
        found.setdefault(space, []).append(d)
    return tuple(map(tuple, found.values()))
