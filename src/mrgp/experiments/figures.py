"""Figures of an experiment: functions, experts, maps, posteriors, calibration, and costs."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrgp import plotting
from mrgp._drafts import draft
from mrgp.data import Dataset
from mrgp.datasets import Case
from mrgp.evaluation import pit
from mrgp.experiments.design import Plan, slug
from mrgp.experiments.metering import COSTS, Cost
from mrgp.experiments.scoring import ARRAYS, LATENT, NOISY, PARAMETERS
from mrgp.experiments.store import Store
from mrgp.plotting.panels import legend_above, new_panels
from mrgp.prediction import Prediction
from mrgp.supports import concat

RESOLUTION = 130

Predictions = Mapping[str, Prediction]


def draw(folder: Path, replicates: Plan, store: Store, costs: Sequence[Cost] = ()) -> None:
    """Draw what there is to see, of the first replicate of each variant, and calibration of all.

    Drawn are functions of one input with the data and the truth, the experts of deep models with
    their weights, the maps that a recording has, posteriors of parameters and, of variants named by
    sizes (`values-500`), the `costs` that are asked for.
    """
    import matplotlib.pyplot as plt

    drawn = [("costs", _costs(replicates, store, costs))] if costs else []
    groups = itertools.groupby(replicates, key=lambda cells: cells[0].variant)
    several = (_figures(variant, list(mine), store) for variant, mine in groups)
    for name, figure in itertools.chain(drawn, *several):
        with draft(folder / f"{name}.png") as named:
            figure.savefig(named, dpi=RESOLUTION)
        plt.close(figure)


def _figures(variant: str, replicates: Plan, store: Store) -> Iterator[tuple[str, Any]]:
    """Yield the figures of a variant, one by one, with their names."""
    cells, case = replicates[0], replicates[0][0].load()
    by_model = {cell.model: store.predictions(cell, case) for cell in cells}
    draws = {cell.model: store.draws(cell) for cell in cells}
    if all(draws.values()):
        functions = {model: found[LATENT] for model, found in by_model.items()}
        figure = plotting.plot_posteriors(
            case.support, functions, draws, PARAMETERS, truth=case.truth
        )
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


def _costs(replicates: Plan, store: Store, costs: Sequence[Cost]) -> Any:
    """Draw every cost against the sizes that name variants, for all models, on logarithmic axes."""
    import pandas as pd
    from matplotlib.ticker import LogLocator

    cells = [cell for replicate in replicates for cell in replicate]
    rows: Any = pd.DataFrame([cell.labels | store.read(cell).costs for cell in cells])
    rows[["quantity", "size"]] = rows["variant"].str.rsplit("-", n=1, expand=True)
    rows = rows.astype({"size": int}).sort_values("size", kind="stable")
    by_quantity = rows.groupby("quantity", sort=False)
    high, wide = len(costs), len(by_quantity)
    shared: Any = {"sharex": "col", "sharey": "row"}
    width, height = 1.2 + 2.1 * wide, 0.8 + 1.7 * high
    figure, panels = new_panels(high, wide, height=height, width=width, **shared)
    for column, (quantity, mine) in zip(panels.T, by_quantity, strict=True):
        sizes, by_model = mine["size"].unique(), mine.groupby("model", sort=False)
        for axes, cost in zip(column, costs, strict=True):
            for colour, (model, ran) in zip(plotting.MODEL_COLOURS, by_model, strict=False):
                axes.loglog(ran["size"], ran[cost], "o-", color=colour, markersize=4, label=model)
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
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
    wide = min(2, len(by_model))
    high = -(-len(by_model) // wide)
    figure, panels = new_panels(high, wide, height=0.6 + 2.3 * high, sharex=True, sharey=True)
    for axes, (model, found) in zip(panels.ravel(), by_model.items(), strict=False):
        plotting.plot_function(
            found.get(LATENT, found[NOISY]), axes, data=case.data, truth=case.truth
        )
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
    figure, panels = new_panels(2, height=5.2, sharex=True, height_ratios=(3, 1))
    plotting.plot_experts(found.get(LATENT, found[NOISY]), panels[:, 0], data=case.data)
    _zoom(panels[0, 0], case)
    return figure


def _calibration(replicates: Plan, store: Store) -> Any:
    """Draw coverage and PIT of new observations, over all replicates."""
    values: dict[str, list[np.ndarray]] = {}
    for cells in replicates:
        case = cells[0].load()
        for cell in cells:
            noisy = store.predictions(cell, case)[NOISY]
            values.setdefault(cell.model, []).append(pit(noisy, case.y))
    pooled = {model: np.concatenate(several) for model, several in values.items()}
    figure, ((left, right),) = new_panels(1, 2, height=4.6)
    plotting.plot_reliability(left, pooled)
    plotting.plot_pit(right, pooled)
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
    figure = plotting.plot_prediction(whole, Dataset([*case.data.select(task=case.task), gone]))
    titles = itertools.product(case.maps, ("mean", "sd"))
    for axes, (title, kind) in zip(figure.axes, titles, strict=False):
        axes.set_title(f"{title}: {kind}")
        for label in (axes.xaxis.label, axes.yaxis.label):
            name = label.get_text()
            label.set_text(f"{name} ({unit})" if (unit := case.input_units.get(name)) else name)
    return figure
