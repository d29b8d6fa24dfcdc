"""A fit at a glance: how the objective rose, and what was learned of sources and inputs."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mrgp._types import float64
from mrgp.inference import Adam, Fit
from mrgp.inference.ascent import CHUNK
from mrgp.kernels import lengthscale_inputs
from mrgp.plotting.colours import MODEL_COLOURS, source_colours
from mrgp.plotting.coordinates import with_units
from mrgp.plotting.functions import set_log
from mrgp.plotting.panels import WIDTH, Axes
from mrgp.supports import Spaces

KINDS = ("overview", "history", "noise", "bias", "lengthscales")
LEAST_RISE = 1e-3
MOST_ABREAST = 4
ROW = 0.27
"""The height of a named value, in inches."""


class Panel(NamedTuple):
    """Values of a kind on one axis: its label and, of biases, the value that is none."""

    kind: str
    label: str
    none: float | None = None


Value = tuple[str, float, str]
"""A number that was learned: whose it is, how large, and in which colour."""


def plot_fit(fit: Fit, kind: str = "overview") -> Any:
    """Draw how a fit went and what it learned; return the figure.

    `kind` is one of "history" (the log evidence or bound after each step; of a deep model, how far
    below its end each part was), "noise" (the noise sd of each source), "bias" (offset and ratio of
    each source, where the recipe has them), "lengthscales" (in the units of each input), or
    "overview", all of these that the fit has.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5], name="s")
    >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors]))
    >>> (axes,) = plot_fit(fit, "noise").axes
    >>> [text.get_text() for text in axes.get_yticklabels()], axes.get_xlabel()
    (['s'], 'noise sd')
    """
    if kind not in KINDS:
        raise ValueError(f"plot: kind= is one of {KINDS}; got {kind!r}.")
    drawn = {p: values for p, values in _learned(fit).items() if kind in ("overview", p.kind)}
    histories = histories_of(fit) if kind in ("overview", "history") else {}
    if not drawn and not histories:
        raise ValueError(f"plot: this fit of {type(fit.recipe).__name__} has no {kind} to draw.")
    import matplotlib.pyplot as plt

    abreast = max(len(drawn) if len(drawn) <= MOST_ABREAST else 3, 1)
    rows = [list(drawn.items())[i : i + abreast] for i in range(0, len(drawn), abreast)]
    heights = [2.5] * bool(histories)
    heights += [0.9 + ROW * max(len(values) for _, values in row) for row in rows]
    figure = plt.figure(figsize=(WIDTH, 0.5 + sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(heights), abreast, height_ratios=heights)
    if histories:
        # Adam tells the objective after stretches of steps.
        stretch = CHUNK if isinstance(fit.optimiser, Adam) else 1
        _draw_history(figure.add_subplot(grid[0, :]), histories, stretch)
    for i, row in enumerate(rows, start=len(heights) - len(rows)):
        for j, (panel, values) in enumerate(row):
            _draw_values(figure.add_subplot(grid[i, j]), panel, values)
    figure.suptitle(f"{type(fit.recipe).__name__}, {fit.status}", fontsize=10)
    return figure


def histories_of(fit: Fit) -> dict[str, np.ndarray]:
    """Return the objective after each step, of the fit and of its parts, where there are steps."""
    whole = {"all parts" if fit.parts else "": np.asarray(fit.history)}
    several = {name: np.asarray(part.history) for name, part in fit.parts.items()} | whole
    return {name: values for name, values in several.items() if len(values) > 1}


def _draw_history(axes: Axes, several: dict[str, np.ndarray], stretch: int) -> None:
    from matplotlib.ticker import MaxNLocator

    if len(several) == 1:
        (values,) = several.values()
        steps = stretch * np.arange(1, len(values) + 1)
        marker = "." if len(values) < 30 else None
        axes.plot(steps, values, color=MODEL_COLOURS[1], marker=marker)
        axes.set_ylabel("log evidence or bound")
        _without_the_fall(axes, values)
    else:
        for i, (name, values) in enumerate(several.items()):
            colour = MODEL_COLOURS[i % len(MODEL_COLOURS)]
            # What is left to rise falls to zero, which a log axis cannot show.
            left = np.maximum(values.max() - values, LEAST_RISE)
            axes.plot(np.arange(1, len(values) + 1), left, color=colour, label=name)
        axes.set(yscale="log", ylabel="log evidence\nbelow its best")
        if len(several) <= 8:
            axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set_xlabel("step")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _without_the_fall(axes: Axes, values: np.ndarray) -> None:
    """Show the end of a history whose first steps lie far below the rest."""
    low, high = float(values.min()), float(values.max())
    usual = float(np.quantile(values, 0.1))
    if high - low > 10 * (high - usual) > 0:
        axes.set_ylim(usual - 0.5 * (high - usual), high + 0.1 * (high - usual))


def _learned(fit: Fit) -> dict[Panel, list[Value]]:
    """Return the noise sd of each process, the bias of each source, and the lengthscales."""
    found: defaultdict[Panel, list[Value]] = defaultdict(list)
    colours, parameters = source_colours(fit.sources), fit.parameters()
    several = len(fit.tasks) > 1
    for (source, task), sd in zip(fit.processes, noise_sds(fit), strict=True):
        name = f"{source}, {task}" if several else source
        panel = Panel("noise", with_units("noise sd", fit.units.get(task)))
        found[panel].append((name, sd, colours[source]))
    for name, units, none in (("offset", fit.units.get(fit.tasks[0]), 0.0), ("ratio", None, 1.0)):
        panel = Panel("bias", with_units(name, units), none)
        for source in fit.sources:
            if f"{name}[{source}]" in parameters:
                value = float(parameters[f"{name}[{source}]"])
                found[panel].append((source, value, colours[source]))
    for along, owner, length in _lengthscales(fit):
        panel = Panel("lengthscales", f"lengthscale of {along}")
        found[panel].append((owner, length, MODEL_COLOURS[1]))
    return found


@float64
def noise_sds(fit: Fit) -> list[float]:
    """Return the standard deviation of the noise of each process."""
    return [float(np.sqrt(fit.model.observation_noise(process))) for process in fit.processes]


def _lengthscales(fit: Fit) -> Iterator[tuple[str, str, float]]:
    """Yield the lengthscales of all GPs over the inputs: along what, whose, and how long."""
    parameters = fit.parameters()
    for name, groups in lengthscales_along(fit).items():
        lengths = np.ravel(parameters[name])
        for columns, length in zip(groups, lengths, strict=True):
            inputs = [with_units(fit.inputs[d], unit_of(fit, d)) for d in columns]
            along = ", ".join(inputs) or "a period"
            yield along, name.removesuffix(".lengthscale").removesuffix(".kernel"), float(length)


def lengthscales_along(fit: Fit) -> dict[str, Spaces]:
    """Return the inputs that each number of a lengthscale is along; of a share of a period, none.

    Layers of a deep model see values of their parents: their inputs are others.
    """
    known, named = lengthscale_inputs(fit.model), fit.model.named()
    return {
        name: known[id(named[name])]
        for name in fit.parameters()
        if name.endswith(".lengthscale") and not name.startswith("expert")
    }


def unit_of(fit: Fit, d: int) -> str | None:
    """Return the unit of an input, where the fit knows it."""
    axis = fit.axes[d] if fit.axes is not None and d < len(fit.axes) else None
    return None if axis is None else axis.unit


def _draw_values(axes: Axes, panel: Panel, values: list[Value]) -> None:
    """Draw named values, one below the other, each with its number."""
    names, numbers, colours = zip(*values, strict=True)
    at = np.arange(len(values))[::-1]
    axes.scatter(numbers, at, c=colours, s=26, zorder=3)
    axes.set_yticks(at, names, fontsize=9)
    axes.set(xlabel=panel.label, ylim=(-0.7, len(values) - 0.3))
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.tick_params(axis="y", length=0)
    if panel.none is not None:
        axes.axvline(panel.none, color="0.6", linewidth=1, linestyle="--", label="no bias")
    _leave_room(axes, np.array(numbers), panel.none)
    style = {"textcoords": "offset points", "ha": "center", "fontsize": 8, "color": "0.3"}
    for height, number in zip(at, numbers, strict=True):
        axes.annotate(f"{number:.3g}", (number, height), (0, 6), **style)


def _leave_room(axes: Axes, numbers: np.ndarray, none: float | None) -> None:
    """Leave room about the values, at least a factor of two on log axes; few ticks."""
    if none is None and np.all(numbers > 0):
        low, high = numbers.min() / 2, numbers.max() * 2
        set_log(axes, (1, 2, 5) if high / low < 50 else (1,))
        axes.set_xlim(low, high)
        return
    ends = np.append(numbers, [] if none is None else [none])
    margin = 0.3 * (float(np.ptp(ends)) or max(abs(float(ends[0])), 1.0))
    axes.set_xlim(ends.min() - margin, ends.max() + margin)
    axes.locator_params(axis="x", nbins=4)  # pyright: ignore[reportArgumentType]
