"""A fit at a glance: how the objective rose, and what was learned of sources and inputs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from mrgp._types import float64
from mrgp.inference import Adam, Fit
from mrgp.inference.ascent import CHUNK
from mrgp.kernels import LeafKernel, Periodic
from mrgp.plotting.colours import MODEL_COLOURS, source_colours
from mrgp.plotting.functions import set_log
from mrgp.plotting.panels import WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("overview", "history", "noise", "bias", "lengthscales")
LEAST_RISE = 1e-3
MOST_ABREAST = 4
ROW = 0.27
"""The height of a named value, in inches."""


class Value(NamedTuple):
    """A number that was learned: whose it is, of which group, and its colour."""

    name: str
    value: float
    colour: str
    group: str = ""


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
    drawn = _panels(fit)
    if kind != "overview":
        drawn = {name: panels for name, panels in drawn.items() if name == kind}
    if not drawn:
        raise ValueError(f"plot: this fit of {type(fit.recipe).__name__} has no {kind} to draw.")
    return _figure(fit, [panel for panels in drawn.values() for panel in panels])


class Panel(NamedTuple):
    """What is drawn on one pair of axes, how many rows of values it has, and over which width."""

    draw: Callable[["Axes"], None]
    rows: int
    full: bool = False


def _panels(fit: Fit) -> dict[str, list[Panel]]:
    """Return the panels that a fit has, by kind."""
    found: dict[str, list[Panel]] = {}
    if histories_of(fit):
        found["history"] = [Panel(lambda axes: _draw_history(axes, fit), 8, True)]
    found["noise"] = [_dots(several, label, log=True) for label, several in _noises(fit).items()]
    offsets, ratios = _bias(fit, "offset"), _bias(fit, "ratio")
    if offsets or ratios:
        units = _of_units(fit.units.get(fit.tasks[0]))
        pairs = ((offsets, f"offset{units}", 0.0), (ratios, "ratio", 1.0))
        found["bias"] = [_dots(several, label, line=at) for several, label, at in pairs if several]
    scales = _lengthscales(fit)
    if scales:
        found["lengthscales"] = [
            _dots(several, label, log=True) for label, several in scales.items()
        ]
    return found


def _figure(fit: Fit, panels: list[Panel]) -> Any:
    """Lay panels out: the history over the full width, the others side by side."""
    import matplotlib.pyplot as plt

    wide = [panel for panel in panels if panel.full]
    rest = [panel for panel in panels if not panel.full]
    abreast = max(len(rest) if len(rest) <= MOST_ABREAST else 3, 1)
    lines = [rest[i : i + abreast] for i in range(0, len(rest), abreast)]
    heights = [2.5 for _ in wide] + [0.9 + ROW * max(p.rows for p in line) for line in lines]
    figure = plt.figure(figsize=(WIDTH, 0.5 + sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(heights), abreast, height_ratios=heights)
    for i, panel in enumerate(wide):
        panel.draw(figure.add_subplot(grid[i, :]))
    for i, line in enumerate(lines, start=len(wide)):
        for j, panel in enumerate(line):
            panel.draw(figure.add_subplot(grid[i, j]))
    figure.suptitle(f"{type(fit.recipe).__name__}, {fit.status}", fontsize=10)
    return figure


def histories_of(fit: Fit) -> dict[str, Float[np.ndarray, " _"]]:
    """Return the objective after each step, of the fit and of its parts, where there are steps."""
    whole = {"all parts" if fit.parts else "": np.asarray(fit.history)}
    several = {name: np.asarray(part.history) for name, part in fit.parts.items()} | whole
    return {name: values for name, values in several.items() if len(values) > 1}


def _draw_history(axes: "Axes", fit: Fit) -> None:
    from matplotlib.ticker import MaxNLocator

    several = histories_of(fit)
    stretch = CHUNK if isinstance(fit.optimiser, Adam) else 1
    if len(several) == 1:
        (values,) = several.values()
        axes.plot(
            stretch * np.arange(1, len(values) + 1),
            values,
            color=MODEL_COLOURS[1],
            marker="." if len(values) < 30 else None,
        )
        axes.set_ylabel("log evidence or bound")
        _without_the_fall(axes, values)
    else:
        for i, (name, values) in enumerate(several.items()):
            colour = MODEL_COLOURS[i % len(MODEL_COLOURS)]
            # What is left to rise falls to zero, which a log axis cannot show.
            left = np.maximum(values.max() - values, LEAST_RISE)
            axes.plot(np.arange(1, len(values) + 1), left, color=colour, label=name)
        axes.set(yscale="log")
        axes.set_ylabel("log evidence\nbelow its best")
        if len(several) <= 8:
            axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set_xlabel("step")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _without_the_fall(axes: "Axes", values: Float[np.ndarray, " steps"]) -> None:
    """Show the end of a history whose first steps lie far below the rest."""
    low, high = float(values.min()), float(values.max())
    usual = float(np.quantile(values, 0.1))
    if high - low > 10 * (high - usual) > 0:
        axes.set_ylim(usual - 0.5 * (high - usual), high + 0.1 * (high - usual))


def _noises(fit: Fit) -> dict[str, list[Value]]:
    """Return the noise sd of each process, by the units they are in."""
    colours, several = source_colours(fit.sources), len(fit.tasks) > 1
    found: dict[str, list[Value]] = {}
    for (source, task), variance in zip(fit.processes, _noise_variances(fit), strict=True):
        name = f"{source}, {task}" if several else source
        label = f"noise sd{_of_units(fit.units.get(task))}"
        value = Value(name, float(np.sqrt(variance)), colours[source])
        found.setdefault(label, []).append(value)
    return found


@float64
def _noise_variances(fit: Fit) -> list[Any]:
    return [fit.model.observation_noise(process) for process in fit.processes]


def _bias(fit: Fit, name: str) -> list[Value]:
    colours, values = source_colours(fit.sources), fit.parameters()
    return [
        Value(source, float(values[f"{name}[{source}]"]), colours[source])
        for source in fit.sources
        if f"{name}[{source}]" in values
    ]


def _lengthscales(fit: Fit) -> dict[str, list[Value]]:
    """Return the lengthscales along each input, of all GPs over the inputs."""
    found: dict[str, list[Value]] = {}
    kernels = {id(getattr(kernel, "lengthscale", None)): kernel for kernel in _kernels(fit)}
    named = fit.model.named()
    for name, value in fit.parameters().items():
        owner, _, last = name.rpartition(".")
        # Layers of a deep model see values of their parents: their inputs are others.
        if last != "lengthscale" or owner.startswith("expert"):
            continue
        kernel, values = kernels[id(named[name])], np.ravel(value)
        inputs = [_input(fit, d) for d in kernel.columns]
        if isinstance(kernel, Periodic):
            # It has no unit: it is a share of the period.
            inputs = ["a period"]
        elif len(values) == 1:
            inputs = [", ".join(inputs)]
        said = owner.removesuffix(".kernel")
        for along, length in zip(inputs, values, strict=True):
            label = f"lengthscale of {along}"
            found.setdefault(label, []).append(Value(said, float(length), MODEL_COLOURS[1]))
    return found


def _kernels(fit: Fit) -> list[LeafKernel]:
    leaves = jax.tree.leaves(fit.model, is_leaf=lambda node: isinstance(node, LeafKernel))
    return [leaf for leaf in leaves if isinstance(leaf, LeafKernel)]


def _input(fit: Fit, i: int) -> str:
    axis = None if fit.axes is None or i >= len(fit.axes) else fit.axes[i]
    return f"{fit.inputs[i]} ({axis.unit})" if axis is not None else fit.inputs[i]


def _of_units(units: str | None) -> str:
    return f" ({units})" if units else ""


def _dots(
    values: list[Value], label: str, *, log: bool = False, line: float | None = None
) -> Panel:
    """Return a panel of named values, one below the other, each with its number."""

    def draw(axes: "Axes") -> None:
        at = np.arange(len(values))[::-1]
        numbers = np.array([v.value for v in values])
        axes.scatter(numbers, at, c=[v.colour for v in values], s=26, zorder=3)
        axes.set_yticks(at, [v.name for v in values], fontsize=9)
        axes.set_ylim(-0.7, len(values) - 0.3)
        axes.grid(axis="y", color="0.9", linewidth=0.8)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(label)
        if line is not None:
            axes.axvline(line, color="0.6", linewidth=1, linestyle="--", label="no bias")
        _leave_room(axes, numbers, log, line)
        for height, value in zip(at, values, strict=True):
            axes.annotate(
                f"{value.value:.3g}",
                (value.value, height),
                (0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                color="0.3",
            )

    return Panel(draw, len(values))


def _leave_room(axes: "Axes", numbers: np.ndarray, log: bool, line: float | None) -> None:
    """Leave room about the values, at least a factor of two on log axes; few ticks."""
    if log and np.all(numbers > 0):
        low, high = numbers.min() / 2, numbers.max() * 2
        set_log(axes, (1, 2, 5) if high / low < 50 else (1,))
        axes.set_xlim(low, high)
        return
    ends = np.append(numbers, [] if line is None else [line])
    margin = 0.3 * (float(np.ptp(ends)) or max(abs(float(ends[0])), 1.0))
    axes.set_xlim(ends.min() - margin, ends.max() + margin)
    axes.locator_params(axis="x", nbins=4)  # pyright: ignore[reportArgumentType]
