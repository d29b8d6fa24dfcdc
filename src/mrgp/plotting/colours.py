"""Colours that suit colour-blind readers, and whose they are."""

from collections.abc import Iterable

FIELD_COLOURS = "viridis"
SPREAD_COLOURS = "cividis"
SHARE_COLOURS = "magma_r"
LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
MODEL_COLOURS = ("#000000", *LINE_COLOURS, "#56B4E9", "#E69F00")
PREDICTION_COLOUR = LINE_COLOURS[0]
"""A prediction, or the mixture of experts: no source has this colour."""

SOURCE_COLOURS = ("#000000", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")


def source_colours(*names: Iterable[str]) -> dict[str, str]:
    """Return the colour of each source, or expert, in order of first appearance.

    Pictures of one dataset name its sources first, all of them, so that a source has the same
    colour in every picture.

    >>> source_colours(["laqn", "sat"], ["sat", "pm10"])
    {'laqn': '#000000', 'sat': '#D55E00', 'pm10': '#009E73'}
    """
    return _allot(names, SOURCE_COLOURS)


def source_markers(names: Iterable[str]) -> dict[str, str]:
    """Return the marker of each source, in order.

    >>> source_markers(["laqn", "aurn"])
    {'laqn': 'o', 'aurn': 's'}
    """
    return _allot([names], MARKERS)


def _allot(names: Iterable[Iterable[str]], among: tuple[str, ...]) -> dict[str, str]:
    known = dict.fromkeys(name for several in names for name in several)
    return {name: among[i % len(among)] for i, name in enumerate(known)}
