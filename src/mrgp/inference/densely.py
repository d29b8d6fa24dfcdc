"""Fits that keep their data, with the dense covariance of all values (theory 2.3)."""

import dataclasses
from typing import Any

from mrgp.inference.fits import Fit


def densely(fit: Fit, where: str) -> Fit:
    """Return a fit that keeps its data as one by the dense covariance, its parameters the same.

    A fit along time has none, and it is made on demand; where values are too many, an error says
    so. Other fits stay what they are.

    >>> import jax, mrgp
    >>> x = [[float(p), float(t)] for t in range(4) for p in range(2)]
    >>> seen = mrgp.Observations(mrgp.points(x, inputs=("x", "time")), range(8))
    >>> fit = mrgp.fit(mrgp.MRGP(method="markov"), mrgp.Dataset([seen]))
    >>> with jax.enable_x64(True):
    ...     densely(fit, "a check").state.root.shape
    (8, 8)
    """
    linear: Any = fit.model.linear
    if linear is None or fit.records is None:
        return fit
    solver = linear.solver.dense(sum(map(len, fit.records)), where)
    if solver is linear.solver:
        return fit
    model = dataclasses.replace(linear, solver=solver)
    state = model.holding(model.solved(fit.records), fit.records)
    return dataclasses.replace(fit, model=model, state=state)


def has_dense(fit: Fit) -> bool:
    """Tell whether a fit has the dense covariance of its values, or few enough to make it.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> has_dense(mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen])))
    True
    """
    if fit.model.linear is None or fit.records is None:
        return False
    return fit.model.linear.solver.has_dense(sum(map(len, fit.records)))
