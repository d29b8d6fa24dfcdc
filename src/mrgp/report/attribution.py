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
MOST_VALUES = 4000
"""Values of an exact fit up to which it is conditioned again: the effort grows with the cube."""
MOST_ALONG_TIME = 30_000
NOT_DONE = "What each source tells here was not computed: "
ACROSS, STEPS = 15, 3


def telling(
    fit: Fit, data: Dataset | None, grid: Grid, task: str, progress: Progress
) -> dict[str, Any] | None:
    """Return the sd of a task on a coarse grid, with all sources and without each in turn.

    The parameters are those of the fit. None where there is one source; where the posterior would
    have to be found anew at great cost, `why` says so in the place of numbers.
    """
    sources = [source for source, its in fit.processes if its == task]
    if len(sources) < 2:
        return None
    why = _why_not(fit, data)
    if data is None or why:
        return {"why": f"{NOT_DONE}{why}."}
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
        except (FitError, ValueError) as problem:
            return {"why": f"{NOT_DONE}without {source}, {problem}"}
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


def _why_not(fit: Fit, data: Dataset | None) -> str:
    """Say why a fit cannot be conditioned on its data again within seconds; nothing if it can."""
    linear = fit.model.linear
    if data is None:
        return "the fit does not keep its data"
    if linear is None or fit.records is None or fit.treatment == "adjusted":
        return "this fit would have to be made anew without each of them; exact ones need not"
    values = sum(count for count, _ in fit.counts.values())
    along_time = isinstance(linear.solver, Markov)
    most = MOST_ALONG_TIME if along_time else MOST_VALUES
    if values > most:
        return f"the fit has {values:,} values, and it is done for up to {most:,}"
    return ""
