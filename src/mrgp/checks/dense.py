"""The values that an exact fit keeps, and their dense covariance under the model (theory 2.3)."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular

from mrgp.inference import Fit, densely, has_dense
from mrgp.models import Process, as_arrays
from mrgp.supports import Support

Vector = Float[np.ndarray, " n"]
Matrix = Float[np.ndarray, "n n"]


class Dense(NamedTuple):
    """Observed values of all sources, one source after another, in the user's units.

    `mean` is the prior mean, bias included. `factor` is the Cholesky factor of C, the covariance
    with the noise s2 / phi of composite weights, and `root` its inverse; `alpha` is C^-1 times
    y - mean. `tempered` is the part of that noise that is there for the weights alone,
    s2 / phi - s2.
    """

    y: Vector
    mean: Vector
    alpha: Vector
    root: Matrix
    factor: Matrix
    tempered: Vector
    rows: dict[Process, slice]
    supports: dict[Process, Support]

    @property
    def covariance(self) -> Matrix:
        """The covariance of the values under the model, with the noise s2."""
        return self.factor @ self.factor.T - np.diag(self.tempered)


def is_dense(fit: Fit) -> bool:
    """Tell whether a fit keeps its values, and has or can make their covariance.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> is_dense(mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen])))
    True
    """
    return has_dense(fit) and fit.treatment != "adjusted"


def dense(fit: Fit, where: str, otherwise: str) -> Dense:
    """Return the values that an exact fit keeps, or say why there are none, and what to do."""
    linear, records = fit.model.linear, fit.records
    if fit.treatment == "adjusted" and records is not None:
        raise ValueError(
            f"{where}: adjust_curvature has widened this posterior, and it no longer has the"
            " covariance of its values. Ask the fit from before."
        )
    if linear is None or records is None:
        several = "which is not one Gaussian"
        raise ValueError(
            f"{where} needs an exact fit, which keeps the covariance of its values; this is a fit"
            f" of {type(fit.recipe).__name__},"
            f" {several if linear is None else linear.account(fit.state)}. {otherwise}"
        )
    fit = densely(fit, where)
    read = as_arrays(linear).readings(as_arrays(records))
    offsets = [fit.scaling.offset[fit.scaling.index(task)] for _, task in fit.processes]
    level = [o * np.asarray(r.support.total) for o, r in zip(offsets, records, strict=True)]
    ends = np.cumsum([0, *map(len, records)])
    root = np.asarray(fit.state.root)
    extra = [np.asarray(s.effective_noise) - np.asarray(s.noise) for s in read.sources]
    return Dense(
        y=np.concatenate([np.asarray(r.y) + o for r, o in zip(records, level, strict=True)]),
        mean=np.concatenate(
            [np.asarray(s.level) + o for s, o in zip(read.sources, level, strict=True)]
        ),
        alpha=np.asarray(fit.state.alpha),
        root=root,
        factor=solve_triangular(root, np.eye(len(root)), lower=True),
        tempered=np.concatenate(extra),
        rows={p: slice(int(ends[i]), int(ends[i + 1])) for i, p in enumerate(fit.processes)},
        supports={
            p: fit.labelled(r.support.shift(-fit.scaling.centre))
            for p, r in zip(fit.processes, records, strict=True)
        },
    )
