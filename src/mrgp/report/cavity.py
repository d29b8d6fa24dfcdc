"""Each value predicted from all the others, where their dense covariance would be too large.

Exact inference along time has the posterior of what a source would report at every value, mean m
and variance v. Without one value y, whose noise is s2, that is N(m', v') with
1 / v' = 1 / v - phi / s2 and m' / v' = m / v - phi y / s2 (theory 2.6, a value at a time).
"""

import numpy as np

from mrgp.data import Dataset
from mrgp.gp import Markov
from mrgp.inference import Fit
from mrgp.models import Process
from mrgp.prediction import Prediction, predict, predict_values

MOST_VALUES = 30_000
LEAST = 1e-9
"""Of the precision that is left, as a share: less is rounding."""


def has_cavity(fit: Fit) -> bool:
    """Tell whether the values of a fit can be left out one by one without their covariance.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> has_cavity(mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen])))
    False
    """
    linear = fit.model.linear
    exact = linear is not None and isinstance(linear.solver, Markov) and not linear.solver.inducing
    used = sum(count for count, _ in fit.counts.values())
    return exact and fit.records is not None and fit.treatment != "adjusted" and used <= MOST_VALUES


def left_out_each(fit: Fit, data: Dataset) -> dict[Process, tuple[Prediction, np.ndarray]] | None:
    """Return what all others say of each value, with noise; None where that is lost in rounding.

    >>> import mrgp
    >>> x = [[float(p), float(t)] for t in range(4) for p in range(2)]
    >>> seen = mrgp.Observations(mrgp.points(x, inputs=("x", "time")), range(8))
    >>> fit = mrgp.fit(mrgp.MRGP(method="markov"), mrgp.Dataset([seen]))
    >>> found, y = left_out_each(fit, fit.kept_data())["source", "value"]
    >>> bool(np.allclose(found.mean, fit.leave_one_out().mean, rtol=1e-6))
    True
    """
    found: dict[Process, tuple[Prediction, np.ndarray]] = {}
    for observed in data:
        seen, process = observed.dropna(), observed.process
        field = predict(fit, seen.support, task=seen.task, source=seen.name)
        noisy = predict_values(fit, seen)
        noise, share = noisy.variance - field.variance, fit.weights[process]
        left = 1.0 - share * field.variance / noise
        if np.any(left < LEAST) or not np.all(np.isfinite(left)):
            return None
        mean = (field.mean - share * field.variance / noise * seen.y) / left
        about = (noisy.support, noisy.task, noisy.source, noisy.units)
        parts = (np.ones((1, len(seen))), mean[None], (field.variance / left + noise)[None])
        found[process] = Prediction(*about, *parts), seen.y
    return found
