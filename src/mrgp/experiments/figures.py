"""Figures of an experiment: functions, experts, maps, posteriors, calibration, and costs."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrgp.data import Dataset
from mrgp.datasets import Case
from mrgp.evaluation import pit
from mrgp.experiments.design import Cell, slug
from mrgp.experiments.metering import COSTS, Cost
from mrgp.experiments.scoring import ARRAYS, LATENT, NOISY, PARAMETERS
from mrgp.experiments.store import Store
from mrgp.plotting import (
    MODEL_COLOURS,
    plot_experts,
    plot_function,
    plot_pit,
    plot_posteriors,
    plot_prediction,
    plot_reliability,
)
from mrgp.plotting.functions import legend_above
from mrgp.prediction import Prediction
from mrgp.supports import concat

RESOLUTION = 130
WIDTH = 9.0

Predictions = Mapping[str, Prediction]


def draw(
    folder: Path, replicates: Sequence[Sequence[Cell]], store: Store, costs: Sequence[Cost] = ()
) -> None:
    """Draw what there is to see, of the first replicate of each variant, and calibration of all.

    Drawn are functions of one input with the data and the truth, the experts of deep models with
    their weights, the maps that a recording has, posteriors of parameters and, of variants named by
    sizes (`values-500`), the `costs` that are asked for.
    """
    import matplotlib.pyplot as plt

    drawn = [("costs", _costs(_sizes(replicates), store, costs))] if costs else []
    groups = itertools.groupby(replicates, key=lambda cells: cells[0].variant)
    several = (_figures(variant, list(mine), store) for variant, mine in groups)
    for name, figure in itertools.chain(drawn, *several):
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
        functions = {model: found[LATENT] for model, found in by_model.items()}
        figure = plot_posteriors(case.support, functions, draws, PARAMETERS, truth=case.truth)
        yield slug("posteriors", variant), figure
        return
    yield slug("calibration", variant), _calibration(replicates, store)
    if case.support.dimension == 1:
        yield slug("functions", variant), _functions(case, by_model)
    for model, found in by_model.items():
        if case.support.dimension == 1 and found[NOISY].experts:
            yield slug("experts", variant, model), _experts(found, case)
        if case.maps:
            yield slug("maps", variant, model), _maps(case, found)


Sizes = dict[str, dict[int, list[Cell]]]


def _sizes(replicates: Sequence[Sequence[Cell]]) -> Sizes:
    """Return the cells of variants that are named by a quantity and its size."""
    found: Sizes = {}
    for cells in replicates:
        quantity, _, size = cells[0].variant.rpartition("-")
        found.setdefault(quantity, {}).setdefault(int(size), []).extend(cells)
    return found


def _costs(sizes: Sizes, store: Store, costs: Sequence[Cost]) -> Any:
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
        ran = [(size, cell) for size in sorted(by_size) for cell in by_size[size]]
        known = dict.fromkeys(cell.model for _, cell in ran)
        for model, colour in zip(known, MODEL_COLOURS, strict=False):
            mine = [(size, store.read(cell).costs) for size, cell in ran if cell.model == model]
            x = [size for size, _ in mine]
            for axes, cost in zip(column, costs, strict=True):
                y = [found.get(cost) or np.nan for _, found in mine]
                axes.loglog(x, y, "o-", color=colour, markersize=4, label=model)
        for axes in column:
            axes.set_xticks(sorted(by_size), [f"{size:,}" for size in sorted(by_size)])
            axes.minorticks_off()
        column[-1].set_xlabel(quantity)
        column[-1].tick_params(axis="x", rotation=45)
    for axes, cost in zip(panels[:, 0], costs, strict=True):
        axes.set_ylabel(COSTS[cost])
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter("{x:g}")
    legend_above(figure, [panels[0, 0]])
    return figure


def _functions(case: Case, by_model: Mapping[str, Predictions]) -> Any:
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
    for axes, (model, found) in zip(panels.ravel(), by_model.items(), strict=False):
        plot_function(found.get(LATENT, found[NOISY]), axes, data=case.data, truth=case.truth)
        if case.truth is None:
            x = np.asarray(case.support.bounds[0])[:, 0]
            axes.plot(x, case.y, "x", color="0.35", markersize=3, zorder=4, label="held out")
            axes.set_xlim(x.min() - np.ptp(x), x.max() + np.ptp(x))
        axes.set_title(model)
        axes.label_outer()
    for axes in panels.ravel()[len(by_model) :]:
        axes.set_visible(False)
    _zoom(panels[0, 0], case)
    legend_above(figure, [panels[0, 0]])
    return figure


def _zoom(axes: Any, case: Case) -> None:
    """Show the range of the values, and not that of intervals where nothing is known."""
    values = np.concatenate([case.y, *[o.y for o in case.data if o.task == case.task]])
    low, high = np.nanmin(values), np.nanmax(values)
    margin = 0.3 * (high - low)
    axes.set_ylim(low - margin, high + margin)


def _experts(found: Predictions, case: Case) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, sharex=True, figsize=(WIDTH, 5.2), layout="constrained", height_ratios=(3, 1)
    )
    plot_experts(found.get(LATENT, found[NOISY]), axes, data=case.data)
    _zoom(axes[0], case)
    return figure


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
    legend_above(figure, [left])
    return figure


def _maps(case: Case, found: Predictions) -> Any:
    """Draw mean and sd of every map, with the data there and the values held out.

    All means are on one colour scale, and all standard deviations on another.
    """
    several = [found[title] for title in case.maps]
    arrays = {name: np.concatenate([getattr(p, name) for p in several], 1) for name in ARRAYS}
    support = concat(*(prediction.support for prediction in several))
    whole = dataclasses.replace(several[0], support=support, experts={}, weights={}, **arrays)
    gone = case.held_out.replace(name="held out")
    figure = plot_prediction(whole, Dataset([*case.data.select(task=case.task), gone]))
    titles = itertools.product(case.maps, ("mean", "sd"))
    for axes, (title, kind) in zip(figure.axes, titles, strict=False):
        axes.set_title(f"{title}: {kind}")
        for label in (axes.xaxis.label, axes.yaxis.label):
            name = label.get_text()
            label.set_text(f"{name} ({unit})" if (unit := case.input_units.get(name)) else name)
    return figure
