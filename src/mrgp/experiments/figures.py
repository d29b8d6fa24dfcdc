"""Figures of an experiment: functions, experts, maps, posteriors, calibration, and costs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrgp.datasets import Recording, Simulation
from mrgp.evaluation import pit
from mrgp.experiments.cells import Cell, slug
from mrgp.experiments.sampling import PARAMETERS
from mrgp.experiments.scoring import LATENT, NOISY
from mrgp.experiments.store import Store
from mrgp.plotting import (
    MODEL_COLOURS,
    SPREAD_COLOURS,
    plot_experts,
    plot_function,
    plot_map,
    plot_outlines,
    plot_pit,
    plot_posteriors,
    plot_reliability,
)
from mrgp.prediction import Prediction
from mrgp.supports import Boxes, Support, boxes, points

COST_NAMES = {
    "cpu_seconds": "second fit\n(CPU s)",
    "seconds": "first fit\n(s)",
    "peak_mb": "memory of\na fit (MB)",
    "predict_seconds": "prediction\n(s)",
    "predict_peak_mb": "memory of a\nprediction (MB)",
}
RESOLUTION = 130
WIDTH = 9.0

Case = Simulation | Recording


def draw(
    folder: Path, replicates: Sequence[Sequence[Cell]], store: Store, costs: Sequence[str] = ()
) -> None:
    """Draw what there is to see, of the first replicate of each variant, and calibration of all.

    Drawn are functions of one input with the data and the truth, the experts of deep models with
    their weights, the maps that a recording has, posteriors of parameters and, of variants named by
    sizes (`values-500`), the `costs` that are asked for.
    """
    import matplotlib.pyplot as plt

    if costs:
        figure = _costs(_sizes(replicates), store, costs)
        figure.savefig(folder / "costs.png", dpi=RESOLUTION)
        plt.close(figure)
    for variant in dict.fromkeys(cells[0].variant for cells in replicates):
        mine = [cells for cells in replicates if cells[0].variant == variant]
        for name, figure in _figures(variant, mine, store):
            figure.savefig(folder / f"{name}.png", dpi=RESOLUTION)
            plt.close(figure)


def _figures(
    variant: str, replicates: Sequence[Sequence[Cell]], store: Store
) -> Iterator[tuple[str, Any]]:
    """Yield the figures of a variant, one by one, with their names."""
    cells, case = replicates[0], replicates[0][0].load()
    by_model = {cell.model: store.predictions(cell, case) for cell in cells}
    draws = {cell.model: store.draws(cell) for cell in cells}
    if all(draws.values()):
        yield slug("posteriors", variant), _posteriors(case, by_model, draws)
        return
    yield slug("calibration", variant), _calibration(replicates, store)
    if case.support.dimension == 1:
        yield slug("functions", variant), _functions(case, by_model)
        for model, found in by_model.items():
            if found[NOISY].experts:
                yield slug("experts", variant, model), _experts(found, case)
    if isinstance(case, Recording) and case.maps:
        for model, found in by_model.items():
            yield slug("maps", variant, model), _maps(case, found)


Sizes = dict[str, dict[int, list[Cell]]]


def _sizes(replicates: Sequence[Sequence[Cell]]) -> Sizes:
    """Return the cells of variants that are named by a quantity and its size."""
    found: Sizes = {}
    for cells in replicates:
        quantity, _, size = cells[0].variant.rpartition("-")
        found.setdefault(quantity, {}).setdefault(int(size), []).extend(cells)
    return found


def _costs(sizes: Sizes, store: Store, costs: Sequence[str]) -> Any:
    """Draw every cost against every quantity, for all models, on logarithmic axes."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator

    figure, panels = plt.subplots(
        len(costs),
        len(sizes),
        figsize=(1.2 + 2.1 * len(sizes), 0.8 + 1.7 * len(costs)),
        sharex="col",
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    for column, (quantity, by_size) in zip(panels.T, sizes.items(), strict=True):
        known = dict.fromkeys(c.model for cells in by_size.values() for c in cells)
        for model, colour in zip(known, MODEL_COLOURS, strict=False):
            ran = {
                n: [c for c in cells if c.model == model] for n, cells in sorted(by_size.items())
            }
            for axes, cost in zip(column, costs, strict=True):
                y = [
                    (store.read(c).costs.get(cost) or np.nan)
                    for cells in ran.values()
                    for c in cells
                ]
                x = [n for n, cells in ran.items() for _ in cells]
                axes.loglog(x, y, "o-", color=colour, markersize=4, label=model)
                axes.set_xticks(sorted(by_size), [f"{n:,}" for n in sorted(by_size)])
                axes.minorticks_off()
        column[-1].set_xlabel(quantity)
        column[-1].tick_params(axis="x", rotation=45)
    for axes, cost in zip(panels[:, 0], costs, strict=True):
        axes.set_ylabel(COST_NAMES[cost])
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _legend(figure, panels[0, 0])
    return figure


def _functions(case: Case, by_model: dict[str, dict[str, Prediction]]) -> Any:
    """Draw every model's prediction of a function of one input in a panel of its own."""
    import matplotlib.pyplot as plt

    wide = min(2, len(by_model))
    high = -(-len(by_model) // wide)
    figure, panels = plt.subplots(
        high,
        wide,
        figsize=(WIDTH, 0.6 + 2.3 * high),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    truth = case.truth if isinstance(case, Simulation) else None
    for axes, (model, found) in zip(panels.ravel(), by_model.items(), strict=False):
        plot_function(found.get(LATENT, found[NOISY]), axes, data=case.data, truth=truth)
        if truth is None:
            x = np.asarray(case.support.bounds[0])[:, 0]
            axes.plot(x, case.y, "x", color="0.35", markersize=3, zorder=4, label="held out")
            axes.set_xlim(x.min() - np.ptp(x), x.max() + np.ptp(x))
        axes.set_title(model)
        axes.label_outer()
    for axes in panels.ravel()[len(by_model) :]:
        axes.set_visible(False)
    _zoom(panels[0, 0], case)
    _legend(figure, panels[0, 0])
    return figure


def _zoom(axes: Any, case: Case) -> None:
    """Show the range of the values, and not that of intervals where nothing is known."""
    values = np.concatenate([case.y, *[o.y for o in case.data if o.task == case.task]])
    low, high = np.nanmin(values), np.nanmax(values)
    margin = 0.3 * (high - low)
    axes.set_ylim(low - margin, high + margin)


def _legend(figure: Any, axes: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=6, frameon=False)


def _experts(found: dict[str, Prediction], case: Case) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, sharex=True, figsize=(WIDTH, 5.2), layout="constrained", height_ratios=(3, 1)
    )
    plot_experts(found.get(LATENT, found[NOISY]), axes, data=case.data)
    _zoom(axes[0], case)
    return figure


def _posteriors(
    case: Case,
    by_model: dict[str, dict[str, Prediction]],
    draws: dict[str, dict[str, np.ndarray]],
) -> Any:
    truth = case.truth if isinstance(case, Simulation) else None
    functions = {model: found[LATENT] for model, found in by_model.items()}
    return plot_posteriors(case.support, functions, draws, PARAMETERS, truth=truth)


def _calibration(replicates: Sequence[Sequence[Cell]], store: Store) -> Any:
    """Draw coverage and PIT of new observations, over all replicates."""
    import matplotlib.pyplot as plt

    values: dict[str, list[np.ndarray]] = {}
    for cells in replicates:
        case = cells[0].load()
        for cell in cells:
            noisy = store.predictions(cell, case)[NOISY]
            values.setdefault(cell.model, []).append(pit(noisy, case.y))
    pooled = {model: np.concatenate(several) for model, several in values.items()}
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 4.6), layout="constrained")
    plot_reliability(left, pooled)
    plot_pit(right, pooled)
    _legend(figure, left)
    return figure


def _maps(case: Recording, found: dict[str, Prediction]) -> Any:
    """Draw mean and sd of every map, with the sites' values and the coarse cells' outlines.

    All means are on one colour scale, and all standard deviations on another.
    """
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        len(case.maps),
        2,
        figsize=(WIDTH, 3.4 * len(case.maps)),
        squeeze=False,
        layout="constrained",
    )
    several = [found[title] for title in case.maps]
    limits = [_range([p.mean for p in several]), _range([p.std for p in several])]
    label = f"{case.task} ({several[0].units})" if several[0].units else case.task
    for row, (title, prediction) in zip(panels, zip(case.maps, several, strict=True), strict=True):
        flat, place = _flat(prediction.support, case.input_units)
        drawn = plot_map(
            row[0], flat, prediction.mean, label=label, title=f"{title}: mean", limits=limits[0]
        )
        plot_map(
            row[1],
            flat,
            prediction.std,
            label=f"sd, {label}",
            title=f"{title}: sd",
            limits=limits[1],
            colours=SPREAD_COLOURS,
        )
        _overlay(row, case, place, drawn)
    return figure


def _range(arrays: Sequence[np.ndarray]) -> tuple[float, float]:
    values = np.concatenate(arrays)
    return float(values.min()), float(values.max())


def _flat(support: Support, units: dict[str, str]) -> tuple[Support, dict[int, float]]:
    """Return a grid over the two inputs that vary, and the values of those that do not."""
    x = np.asarray(support.bounds[0])
    constant = {i: float(x[0, i]) for i in range(x.shape[1]) if np.ptp(x[:, i]) == 0}
    free = [i for i in range(x.shape[1]) if i not in constant]
    names = tuple(_spoken(support, i, units) for i in free)
    return points(x[:, free], inputs=names), constant


def _spoken(support: Support, i: int, units: dict[str, str]) -> str:
    name, axis = support.input_names[i], support.axes[i] if support.axes else None
    unit = units.get(name) if axis is None else axis.unit
    return f"{name} ({unit})" if unit else name


def _overlay(row: Any, case: Recording, place: dict[int, float], drawn: Any) -> None:
    """Draw the data at a place: values of points as markers, boxes by their outlines."""
    pairs = [(o.support, o.y, False) for o in case.data if o.task == case.task]
    for support, y, held_out in [*pairs, (case.support, case.y, True)]:
        lower, upper = (np.asarray(side) for side in support.bounds)
        here = np.ones(len(lower), bool)
        for i, value in place.items():
            here &= lower[:, i] == value
        free = [i for i in range(lower.shape[1]) if i not in place]
        if not here.any():
            continue
        for axes in row:
            if isinstance(support, Boxes):
                plot_outlines(axes, boxes(lower[here][:, free], upper[here][:, free]))
                continue
            filled = {"c": y[here], "norm": drawn.norm, "cmap": drawn.cmap}
            axes.scatter(
                *lower[here][:, free].T,
                **(filled if axes is row[0] else {"facecolors": "none"}),
                marker="s" if held_out else "o",
                edgecolors="black",
                linewidths=0.7,
                s=22,
            )
