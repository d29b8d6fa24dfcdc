"""What a page shows of a task: a prediction on a grid, packed for a browser."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.inference import Fit, Progress
from mrgp.prediction import predict
from mrgp.report.layout import Grid
from mrgp.report.packing import packed, quantised, unpacked
from mrgp.report.reduction import Components, Mixture, exceedance, merged

BUDGET = 7_200_000
"""Bytes of numbers on a page; text makes them a third more."""
FINE = 1_000_000
"""Bytes up to which numbers have 32 bits."""
MOST_COMPONENTS = 8
AWAY = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
"""Where probabilities are compared with those of the fit: standard deviations off the mean."""


@dataclasses.dataclass(frozen=True)
class Drawn:
    """The prediction of one task on the grid, with components along the first axis.

    The second axis has the cells, step by step and row by row. `lower` and `upper` are ends of
    95 % intervals, of curves alone. `at` are thresholds for each cell, and `there` what the fit
    says of them. `shares` are the mean weights of a deep model's experts.
    """

    task: str
    units: str | None
    mixture: Mixture
    most: int
    lower: Float[np.ndarray, " n"] | None
    upper: Float[np.ndarray, " n"] | None
    at: Float[np.ndarray, "a n"]
    there: Float[np.ndarray, "a n"]
    shares: dict[str, float]


def draw(fit: Fit, grid: Grid, task: str, room: int, progress: Progress) -> Drawn:
    """Predict a task on a grid, step by step, with as many components as there is room for."""
    steps = [index.ravel() for index in grid.index]
    curve = len(grid.layout.across) == 1
    count = _components(grid.index.size, room)
    progress.start(f"predict {task}", len(steps))
    parts, most, lower, upper, at, there = [], 1, [], [], [], []
    shares: dict[str, list[float]] = {}
    for i, rows in enumerate(steps):
        found = predict(fit, grid.support[rows], task=task)
        most = max(most, len(found.means))
        parts.append(merged((found.component_weights, found.means, found.variances), count))
        thresholds = found.mean + np.array(AWAY)[:, None] * found.std
        at.append(thresholds)
        there.append(np.stack([found.exceedance(t) for t in thresholds]))
        for label, weight in found.weights.items():
            shares.setdefault(label, []).append(float(weight.mean()))
        if curve:
            ends = found.interval(0.95)
            lower.append(ends[0])
            upper.append(ends[1])
        progress.update(i + 1, f"{i + 1} of {len(steps)}")
    progress.finish(f"{grid.index.size:,} places")
    weights, means, variances = (np.concatenate(several, 1) for several in zip(*parts, strict=True))
    return Drawn(
        task=task,
        units=fit.units.get(task),
        mixture=(weights, means, variances),
        most=most,
        lower=np.concatenate(lower) if curve else None,
        upper=np.concatenate(upper) if curve else None,
        at=np.concatenate(at, 1),
        there=np.concatenate(there, 1),
        shares={label: float(np.mean(each)) for label, each in shares.items()},
    )


def _components(cells: int, room: int) -> int:
    """Return how many components of 16-bit numbers fit: each has a mean, a sd and a weight."""
    return int(np.clip((room // (2 * cells) + 1) // 3, 1, MOST_COMPONENTS))


def payload(drawn: Drawn) -> dict[str, Any]:
    """Return what the page reads of a task: components, ranges, and how close they are.

    The weight of the last component is what the others leave of one.
    """
    weights, means, variances = drawn.mixture
    sds = np.sqrt(np.maximum(variances, 0.0))
    coarse = 4 * (3 * len(means) - 1) * means.shape[1] > FINE
    found: dict[str, Any] = {
        "task": drawn.task,
        "units": drawn.units,
        "components": len(means),
        "means": quantised(means) if coarse else packed(means),
        "sds": quantised(sds, log=True) if coarse else packed(sds),
        "weights": None,
    }
    if len(means) > 1:
        found["weights"] = quantised(weights[:-1]) if coarse else packed(weights[:-1])
    mean = (weights * means).sum(0)
    sd = np.sqrt((weights * (variances + (means - mean) ** 2)).sum(0))
    found["range"] = {"mean": _ends(mean), "sd": _ends(sd)}
    found["threshold"] = _round_number(mean)
    found["error"] = float(np.max(np.abs(_again(found, means.shape, drawn.at) - drawn.there)))
    found["most"] = drawn.most
    if drawn.lower is not None and drawn.upper is not None:
        found["lower"], found["upper"] = packed(drawn.lower), packed(drawn.upper)
    return found


def _again(
    found: dict[str, Any], shape: tuple[int, int], at: Float[np.ndarray, "a n"]
) -> Float[np.ndarray, "a n"]:
    """Return probabilities as the page will compute them."""
    means, sds = (unpacked(found[name]).reshape(shape) for name in ("means", "sds"))
    given = found["weights"]
    first: Components = np.zeros((0, shape[1]))
    if given is not None:
        first = unpacked(given).reshape(shape[0] - 1, shape[1])
    weights = np.concatenate([first, 1 - first.sum(0, keepdims=True)])
    return np.stack([exceedance((weights, means, sds**2), t) for t in at])


def _ends(values: Float[np.ndarray, " n"]) -> list[float]:
    return [float(values.min()), float(values.max())]


def _round_number(values: Float[np.ndarray, " n"]) -> float:
    """Return a number of two digits that a tenth of the values exceed."""
    level = float(np.quantile(values, 0.9))
    return float(f"{level:.2g}")
