"""Draws from a posterior: the way of each chain, and where it spent its time."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from mrgp.plotting.colours import MODEL_COLOURS
from mrgp.plotting.panels import legend_above, new_panels

MOST = 8
BINS = 30


def plot_chains(
    parameters: Mapping[str, np.ndarray], names: str | Sequence[str] | None = None
) -> Any:
    """Draw the draws of parameters: beside the way of each chain, its histogram; return the figure.

    `parameters` has [chains, draws, ...] for each name, as `Chains` do; `names` chooses one or
    some, by default the first eight numbers that vary. A parameter of several numbers has a row for
    each. Chains that have mixed wander over the same range, and their histograms agree.

    >>> draws = {"noise": np.arange(8.0).reshape(2, 4), "fixed": np.ones((2, 4))}
    >>> left, right = plot_chains(draws).axes
    >>> left.get_title(loc="left"), [line.get_label() for line in left.get_lines()]
    ('noise', ['chain 1', 'chain 2'])
    """
    rows = _rows(parameters, [names] if isinstance(names, str) else names)
    if not rows:
        raise ValueError("plot_chains: there are no parameters that vary.")
    height = 0.6 + 1.5 * len(rows)
    figure, panels = new_panels(len(rows), 2, height=height, width_ratios=(2, 1))
    for (left, right), (name, draws) in zip(panels, rows.items(), strict=True):
        low, high = float(draws.min()), float(draws.max())
        edges = np.linspace(low, high, BINS + 1)
        for i, (chain, colour) in enumerate(zip(draws, cycle(MODEL_COLOURS[1:]), strict=False)):
            left.plot(chain, color=colour, linewidth=0.6, label=f"chain {i + 1}")
            if high > low:
                density = np.histogram(chain, edges, density=True)[0]
                right.stairs(density, edges, color=colour, linewidth=1.2)
            else:
                right.axvline(low, color=colour, linewidth=1.2)
        left.set_title(name, fontsize=9, loc="left")
        left.margins(x=0)
        left.tick_params(labelbottom=left is panels[-1, 0])
        right.set(yticks=[], ylim=(0, None))
    panels[-1, 0].set_xlabel("draw")
    panels[-1, 1].set_xlabel("value")
    panels[0, 1].set_title("density", fontsize=9)
    legend_above(figure, panels[:1, 0])
    return figure


def _rows(known: Mapping[str, np.ndarray], names: Sequence[str] | None) -> dict[str, np.ndarray]:
    """Return draws [chains, draws] of each number, by name."""
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise ValueError(
            f"plot_chains: no parameter is named {unknown[0]!r}; they are {list(known)}."
        )
    found: dict[str, np.ndarray] = {}
    for name in known if names is None else names:
        draws = np.asarray(known[name])
        numbers = np.moveaxis(draws.reshape(*draws.shape[:2], -1), 2, 0)
        labels = [name] if len(numbers) == 1 else [f"{name} [{k + 1}]" for k in range(len(numbers))]
        found |= zip(labels, numbers, strict=True)
    if names is not None:
        return found
    varying = [label for label, draws in found.items() if np.ptp(draws) > 0]
    return {label: found[label] for label in varying[:MOST]}
