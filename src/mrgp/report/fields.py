"""What a page shows of a task: a prediction on a grid, packed for a browser."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from mrgp.distributions import GAUSSIANS, LOG_NORMALS, PROBIT_NORMALS, log_moments, probit_moments
from mrgp.inference import Fit, Progress
from mrgp.plotting.coordinates import Vector
from mrgp.plotting.sheets import limits_of
from mrgp.prediction import Prediction, predict
from mrgp.report.packing import Components, merged, packed, quantised, unpacked
from mrgp.supports import Support, concat, neutral

BUDGET = 7_200_000
"""Bytes of numbers on a page; text makes them a third more."""
FINE = 1_000_000
"""Bytes up to which numbers have 32 bits."""
MOST_COMPONENTS = 8
SCALES = {
    LOG_NORMALS: ("log", log_moments, lambda t: np.log(np.maximum(t, 0.0))),
    PROBIT_NORMALS: ("probit", probit_moments, lambda t: ndtri(np.clip(t, 0.0, 1.0))),
}
"""What is Gaussian of a field behind a link, its mean and variance, and where a value is there."""
AWAY = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
"""Where probabilities are compared with those of the fit: standard deviations off the mean."""
TOGETHER = 2**15
"""Cells that are predicted at once: along time, one pass over the data serves them all."""


@dataclasses.dataclass(frozen=True)
class Drawn:
    """The prediction of one task on the grid, step by step and row by row.

    Of a mixture of `most` components, `prediction` has as many as a page can carry. `interval` has
    the ends of 95 % intervals, of curves alone. `at` are thresholds for each cell, and `there` what
    the fit says of them. `shares` are the mean weights of a deep model's experts.
    """

    prediction: Prediction
    most: int
    interval: tuple[Vector, Vector] | None
    at: Components
    there: Components
    shares: dict[str, float]


def draw(
    fit: Fit, steps: Sequence[Support], task: str, room: int, progress: Progress, *, ends: bool
) -> Drawn:
    """Predict a task on a map, step by step, with as many components as there is room for.

    Where `ends` are asked for, those of 95 % intervals are found too.
    """
    size = sum(map(len, steps))
    count = _components(size, room)
    progress.start(f"predict {task}", len(steps))
    parts, shares, most, distribution, done = [], [], 1, GAUSSIANS, 0
    for some in _together(steps):
        support = neutral(concat(*some) if len(some) > 1 else some[0], fit.covariates)
        found = predict(fit, support, task=task)
        most, distribution = max(most, len(found.means)), found.distribution
        mixture = merged((found.component_weights, found.means, found.variances), count)
        at = found.mean + np.array(AWAY)[:, None] * found.std
        there = np.stack([found.exceedance(t) for t in at])
        interval = found.interval(0.95) if ends else ()
        parts.append((*mixture, at, there, *interval))
        shares.append({label: weight.sum() for label, weight in found.weights.items()})
        done += len(some)
        progress.update(done, f"{done} of {len(steps)}")
    progress.finish(f"{size:,} places")
    weights, means, variances, at, there, *interval = (
        np.concatenate(several, -1) for several in zip(*parts, strict=True)
    )
    made = (concat(*steps) if len(steps) > 1 else steps[0], task, None, fit.units.get(task))
    return Drawn(
        prediction=Prediction(*made, weights, means, variances, distribution=distribution),
        most=most,
        interval=(interval[0], interval[1]) if interval else None,
        at=at,
        there=there,
        shares={k: float(sum(share[k] for share in shares) / size) for k in shares[0]},
    )


def _together(steps: Sequence[Support]) -> Iterator[Sequence[Support]]:
    """Yield steps, as many at a time as are predicted at once."""
    number = max(1, TOGETHER // max(map(len, steps)))
    yield from (steps[first : first + number] for first in range(0, len(steps), number))


def _components(cells: int, room: int) -> int:
    """Return how many components of 16-bit numbers fit: each has a mean, a sd and a weight."""
    return int(np.clip((room // (2 * cells) + 1) // 3, 1, MOST_COMPONENTS))


def payload(drawn: Drawn) -> dict[str, Any]:
    """Return what the page reads of a task: components, ranges, and how close they are.

    Components are Gaussians: of the field, or of its logarithm or probit behind a link. The weight
    of the last component is what the others leave of one.
    """
    seen = drawn.prediction
    weights, means, variances = seen.components
    scale, matched, onto = SCALES.get(seen.distribution, ("real", None, np.asarray))
    if matched is not None:
        means, variances = matched(means, variances)
    sds = np.sqrt(np.maximum(variances, 0.0))
    coarse = 4 * (3 * len(means) - 1) * means.shape[1] > FINE
    pack = quantised if coarse else packed
    found: dict[str, Any] = {
        "task": seen.task,
        "units": seen.units,
        "scale": scale,
        "components": len(means),
        "means": pack(means),
        "sds": quantised(sds, log=True) if coarse else packed(sds),
        "weights": pack(weights[:-1]) if len(means) > 1 else None,
        "range": {"mean": limits_of(seen.mean), "sd": limits_of(seen.std)},
        # A number of two digits that a tenth of the values exceed.
        "threshold": float(f"{np.quantile(seen.mean, 0.9):.2g}"),
    }
    again = _unpacked(found, seen)
    with np.errstate(divide="ignore"):
        limits = [onto(t) for t in drawn.at]
    errors = [again.exceedance(t) - p for t, p in zip(limits, drawn.there, strict=True)]
    found |= {"error": float(np.max(np.abs(errors))), "most": drawn.most}
    if drawn.interval is not None:
        found["lower"], found["upper"] = map(packed, drawn.interval)
    return found


def _unpacked(found: dict[str, Any], seen: Prediction) -> Prediction:
    """Return the Gaussians as the page will read them."""
    shape = seen.means.shape
    means, sds = (unpacked(found[name]).reshape(shape) for name in ("means", "sds"))
    given = [] if found["weights"] is None else unpacked(found["weights"])
    first = np.reshape(given, (shape[0] - 1, shape[1]))
    weights = np.concatenate([first, 1 - first.sum(0, keepdims=True)])
    parts = {"component_weights": weights, "means": means, "variances": sds**2}
    return dataclasses.replace(seen, **parts, distribution=GAUSSIANS)
