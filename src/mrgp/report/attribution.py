"""How much each source tells of a place: the spread with all sources, and without one of them."""

import dataclasses
from typing import Any

import numpy as np

from mrgp.data import Dataset
from mrgp.gp import Markov
from mrgp.inference import Fit, FitError, Progress
from mrgp.plotting.slices import evenly
from mrgp.prediction import predict
from mrgp.report.layout import Grid
from mrgp.report.packing import packed
from mrgp.supports import neutral

NEXT_TO_NOTHING = 1e-9
"""The composite weight of a source that is left out."""
MOST_VALUES = 3000
"""Values of an exact fit up to which it is conditioned again: the effort grows with the cube."""
MOST_ALONG_TIME = 30_000
ACROSS, STEPS = 15, 3


def telling(
    fit: Fit, data: Dataset | None, grid: Grid, task: str, progress: Progress
) -> dict[str, Any] | None:
    """Return the sd of a task on a coarse grid, with all sources and without each in turn.

    The parameters are those of the fit. None where there is one source, or where the posterior
    would have to be found anew at great cost.
    """
    sources = [source for source, its in fit.processes if its == task]
    if data is None or len(sources) < 2 or not _cheap(fit):
        return None
    rows, columns = (evenly(count, ACROSS) for count in grid.index.shape[1:])
    steps = evenly(len(grid.index), STEPS)
    chosen = grid.index[np.ix_(steps, rows, columns)]
    places = neutral(grid.support[chosen.ravel()], fit.covariates)
    progress.start(f"what sources tell of {task}", len(sources))
    without = {}
    for i, source in enumerate(sources):
        weights = fit.weights | {(source, task): NEXT_TO_NOTHING}
        try:
            others = dataclasses.replace(fit, weights=weights).condition(data)
        except (FitError, ValueError):
            return None
        without[source] = packed(predict(others, places, task=task).std)
        progress.update(i + 1, source)
    progress.finish(f"{len(sources)} sources")
    return {
        "rows": rows.tolist(),
        "columns": columns.tolist(),
        "steps": steps.tolist(),
        "sd": packed(predict(fit, places, task=task).std),
        "without": without,
    }


def _cheap(fit: Fit) -> bool:
    """Tell whether a fit can be conditioned on its data again within seconds."""
    linear = fit.model.linear
    if linear is None or fit.records is None or fit.treatment == "adjusted":
        return False
    values = sum(count for count, _ in fit.counts.values())
    along_time = isinstance(linear.solver, Markov)
    return values <= (MOST_ALONG_TIME if along_time else MOST_VALUES)
