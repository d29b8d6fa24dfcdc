"""Scores and calibration: of values left out or held out where there are some."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset
from mrgp.evaluation import evaluate_quietly
from mrgp.inference import Fit
from mrgp.inference.kept import is_exact
from mrgp.prediction import Prediction, predict_values

LEVELS = np.linspace(0.05, 0.95, 19)
BINS = 10
MOST_VALUES = 2000
FEW = 20
"""Values below which a histogram says little."""


@dataclasses.dataclass(frozen=True)
class Check:
    """Scores of each process against some values, and where they fell in their predictions.

    `name` is "left out", "held out" or "in sample", and `words` what that means.
    """

    name: str
    title: str
    words: str
    scores: dict[tuple[str, str], dict[str, float]]
    pit: dict[tuple[str, str], Float[np.ndarray, " n"]]
    remarks: str = ""

    def curves(self) -> list[dict[str, Any]]:
        """Return, by process, the share of values inside intervals, and a histogram of the PIT."""
        edges = np.linspace(0.0, 1.0, BINS + 1)
        one = len({task for _, task in self.pit}) == 1
        found = []
        for (source, task), values in self.pit.items():
            beside = np.abs(2 * values - 1)
            found.append(
                {
                    "name": source if one else f"{source}, {task}",
                    "count": len(values),
                    "levels": LEVELS.round(2).tolist(),
                    "inside": [float(np.mean(beside <= level)) for level in LEVELS],
                    "edges": edges.round(2).tolist(),
                    "density": np.histogram(values, edges, density=True)[0].tolist(),
                }
            )
        return found


def checks(fit: Fit, data: Dataset | None, held_out: Dataset | None) -> list[Check]:
    """Return the checks that can be made of a fit, those of new values first."""
    found = [] if held_out is None else [_held_out(fit, held_out)]
    if is_exact(fit) and fit.treatment != "adjusted":
        found.append(_left_out(fit))
    elif data is not None and held_out is None:
        found.append(_in_sample(fit, data))
    return found


def _held_out(fit: Fit, values: Dataset) -> Check:
    unknown = [o.label for o in values if o.process not in fit.processes]
    if unknown:
        raise ValueError(
            f"write_report: {unknown[0]} of held_out= was not fitted; the fit has {fit.processes}."
        )
    words = "Predictions, noise included, of values that the fit has not seen."
    return _check("held out", "Held-out values", words, _predicted(fit, values))


def _left_out(fit: Fit) -> Check:
    found = fit.leave_one_out()
    pairs = {(part.source, part.task): (part.prediction(), part.y) for part in found}
    words = (
        "Each value is predicted from all the others, noise included, in closed form; the"
        " parameters are those of all the values. Where neighbours share what they see, new places"
        " are harder than these."
    )
    return _check("left out", "Each value left out in turn", words, pairs, found.summary())


def _in_sample(fit: Fit, data: Dataset) -> Check:
    rng = np.random.default_rng(0)
    parts = []
    for observed in data.dropna():
        count = min(len(observed), MOST_VALUES)
        parts.append(observed[np.sort(rng.choice(len(observed), count, replace=False))])
    words = (
        "In sample: these values were fitted, so that errors are smaller and intervals look better"
        " than they would for new ones. Scores of values that were held out need a file of them."
    )
    title = "Values that were fitted (in sample)"
    return _check("in sample", title, words, _predicted(fit, Dataset(parts)))


def _predicted(fit: Fit, values: Dataset) -> dict[tuple[str, str], tuple[Prediction, Any]]:
    return {o.process: (predict_values(fit, o), o.y) for o in values}


def _check(
    name: str,
    title: str,
    words: str,
    pairs: dict[tuple[str, str], tuple[Prediction, Any]],
    remarks: str = "",
) -> Check:
    scores = {process: evaluate_quietly(found, y) for process, (found, y) in pairs.items()}
    pit = {process: _pit(found, y) for process, (found, y) in pairs.items()}
    return Check(name, title, words, scores, pit, remarks)


def _pit(found: Prediction, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " k"]:
    """Return the probability integral transform of the values that are not missing."""
    values = found.cdf(y)
    return values[~np.isnan(values)]
