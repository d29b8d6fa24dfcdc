"""Scores and calibration: of values left out or held out where there are some."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.checks import is_dense
from mrgp.data import Dataset
from mrgp.evaluation import evaluate, pit
from mrgp.inference import Fit
from mrgp.plotting.calibration import LEVELS, pit_density, shares_inside
from mrgp.prediction import Prediction, predict_values
from mrgp.report.cavity import has_cavity, left_out_each

BINS = 10
MOST_DENSE = 1500
"""Values of a fit along time up to which their dense covariance is made."""
MOST_VALUES = 2000
FEW = 20
"""Values below which a histogram says little."""

SAID = {
    "held out": (
        "Held-out values",
        "Predictions, noise included, of values that the fit has not seen.",
    ),
    "left out": (
        "Each value left out in turn",
        "Each value is predicted from all the others, noise included, in closed form; the"
        " parameters are those of all the values. Where neighbours share what they see, new places"
        " are harder than these.",
    ),
    "in sample": (
        "Values that were fitted (in sample)",
        "In sample: these values were fitted, so that errors are smaller and intervals look better"
        " than they would for new ones. Scores of values that were held out need a file of them.",
    ),
}
"""The title of each check, and what it is."""

Process = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Check:
    """Scores of each process against some values, and where they fell in their predictions.

    `name` is "left out", "held out" or "in sample". `pairs` are predictions and values, `doubts`
    what they say against the model, and `sample` how many of the values they are, if not all.
    """

    name: str
    scores: dict[Process, dict[str, float]]
    pit: dict[Process, Float[np.ndarray, " _"]]
    pairs: dict[Process, tuple[Prediction, Any]]
    remarks: str = ""
    doubts: tuple[str, ...] = ()
    sample: str = ""

    @classmethod
    def of(
        cls,
        name: str,
        pairs: dict[Process, tuple[Prediction, Any]],
        remarks: str = "",
        doubts: tuple[str, ...] = (),
    ) -> "Check":
        """Score predictions of processes against values, of which some may be missing."""
        scores = {process: evaluate(*pair) for process, pair in pairs.items()}
        places = {process: pit(*pair) for process, pair in pairs.items()}
        known = {process: values[~np.isnan(values)] for process, values in places.items()}
        return cls(name, scores, known, pairs, remarks, doubts)

    def curves(self) -> list[dict[str, Any]]:
        """Return, by process, the share of values inside intervals, and a histogram of the PIT."""
        one, found = len({task for _, task in self.pit}) == 1, []
        for (source, task), values in self.pit.items():
            density, edges = pit_density(values, BINS)
            found.append(
                {
                    "name": source if one else f"{source}, {task}",
                    "count": len(values),
                    "levels": LEVELS.round(2).tolist(),
                    "inside": shares_inside(values).tolist(),
                    "edges": edges.round(2).tolist(),
                    "density": density.tolist(),
                }
            )
        return found


def value_units(fit: Fit, process: Process) -> str | None:
    """Return the units of a process's values; counts with an exposure have none of the field's."""
    return None if process in fit.exposed else fit.units_of(process)


def checks(fit: Fit, data: Dataset | None, held_out: Dataset | None) -> list[Check]:
    """Return the checks that can be made of a fit, those of new values first."""
    found = []
    if held_out is not None:
        unknown = [o.label for o in held_out if o.process not in fit.processes]
        if unknown:
            raise ValueError(
                f"write_report: {unknown[0]} of held_out= was not fitted; the fit has"
                f" {fit.processes}."
            )
        found.append(Check.of("held out", _predicted(fit, held_out)))
    along, used = has_cavity(fit), sum(count for count, _ in fit.counts.values())
    # The dense covariance of many windows takes minutes, and says more of neighbours alone.
    if is_dense(fit) and not (along and data is not None and used > MOST_DENSE):
        each = fit.leave_one_out()
        pairs = {(part.source, part.task): (part.prediction(), part.y) for part in each}
        doubts = tuple(
            f"Of {name}, each value predicted from all the others: {'; '.join(check.doubts)}."
            for name, check in zip(each.names, each.checks, strict=True)
            if check.doubts
        )
        found.append(Check.of("left out", pairs, each.summary(), doubts))
        return found
    known = left_out_each(fit, data) if along and data is not None else None
    if known is not None:
        found.append(Check.of("left out", known))
    elif data is not None and held_out is None:
        some, count = data.dropna().batch(MOST_VALUES), sum(o.count for o in data)
        check = Check.of("in sample", _predicted(fit, some))
        kept = sum(map(len, some))
        words = f"a sample of {kept:,} of {count:,} values, drawn at random"
        found.append(dataclasses.replace(check, sample=words if kept < count else ""))
    return found


def _predicted(fit: Fit, values: Dataset) -> dict[Process, tuple[Prediction, Any]]:
    return {o.process: (predict_values(fit, o), o.y) for o in values}
