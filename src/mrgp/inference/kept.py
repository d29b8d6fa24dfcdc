"""The values that an exact fit keeps inside its posterior, and their covariance (theory 2.3)."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular

from mrgp._types import float64
from mrgp.data import Dataset, Observations, Record
from mrgp.gp import Kernels, Posterior, Sources, variance
from mrgp.inference.alignment import labelled
from mrgp.inference.objectives import as_arrays
from mrgp.supports import Support

Vector = Float[np.ndarray, " n"]
Matrix = Float[np.ndarray, "n n"]


class Kept(NamedTuple):
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
    rows: dict[tuple[str, str], slice]
    supports: dict[tuple[str, str], Support]

    @property
    def covariance(self) -> Matrix:
        """The covariance of the values under the model, with the noise s2."""
        return self.factor @ self.factor.T - np.diag(self.tempered)


def is_exact(fit: Any) -> bool:
    """Tell whether a fit keeps the dense covariance of its values."""
    return isinstance(fit.state, Posterior) and getattr(fit.model, "locations", None) is None


def kept(fit: Any, where: str, otherwise: str) -> Kept:
    """Return the values that an exact fit keeps, or say why there are none, and what to do."""
    _check(fit, where, otherwise)
    state = fit.state
    root, alpha = np.asarray(state.root), np.asarray(state.alpha)
    factor = solve_triangular(root, np.eye(len(root)), lower=True)
    kernels, sources = _without_values(fit)
    offset = {task: fit.scaling.offset[fit.scaling.index(task)] for _, task in fit.processes}
    level = [
        offset[task] * np.asarray(s.support.total) - np.asarray(s.residual)
        for (_, task), s in zip(fit.processes, sources, strict=True)
    ]
    mean = np.concatenate(level)
    ends = [0, *(int(end) for end in np.cumsum([len(part) for part in level]))]
    rows = {p: slice(ends[i], ends[i + 1]) for i, p in enumerate(fit.processes)}
    supports = zip(fit.processes, state.anchors, strict=True)
    return Kept(
        y=mean + factor @ (factor.T @ alpha),
        mean=mean,
        alpha=alpha,
        root=root,
        factor=factor,
        tempered=_tempered(fit, kernels, sources, (factor**2).sum(1)),
        rows=rows,
        supports={p: labelled(fit, s.shift(-fit.scaling.centre)) for p, s in supports},
    )


@float64
def kept_data(fit: Any) -> Dataset | None:
    """Return the observed values that an exact fit, or the exact bases of a tree, keep."""
    if fit.parts:
        bases = [node.name for node in fit.model.nodes if node.parent is None]
        several = [kept_data(fit.parts[name]) for name in bases if name in fit.parts]
        found = [o for data in several if data is not None for o in data]
    elif is_exact(fit) and fit.treatment != "adjusted":
        have = kept(fit, "kept_data", "")
        found = [
            Observations(
                have.supports[process],
                have.y[have.rows[process]],
                task=process[1],
                name=process[0],
                units=fit.units.get(process[1]),
            )
            for process in fit.processes
        ]
    else:
        found = []
    order = {process: i for i, process in enumerate(fit.processes)}
    found.sort(key=lambda o: order[o.process])
    return Dataset(found) if found else None


def _check(fit: Any, where: str, otherwise: str) -> None:
    if not is_exact(fit):
        raise ValueError(
            f"{where} needs an exact fit, which keeps the covariance of its values; this is"
            f" {_held(fit)}. {otherwise}"
        )
    if fit.treatment == "adjusted":
        raise ValueError(
            f"{where}: adjust_curvature has widened this posterior, and it no longer has the"
            " covariance of its values. Ask the fit from before."
        )


def _held(fit: Any) -> str:
    name = type(fit.recipe).__name__
    locations = getattr(fit.model, "locations", None)
    if locations is None:
        return f"a fit of {name}, which is not one Gaussian"
    return f"a sparse fit of {name}, by {locations.raw.shape[0]} inducing inputs"


def _without_values(fit: Any) -> tuple[Kernels, Sources]:
    """Return kernels, and sources as the model sees them, as if all values were zero."""
    records = []
    known = getattr(getattr(fit.model, "tasks", None), "known_noise", None)
    if known is None:
        known = {(name, task) for name, task in fit.processes if name in _known(fit.model)}
    for process, support in zip(fit.processes, fit.state.anchors, strict=True):
        zeros = np.zeros(len(support))
        noise = np.ones(len(support)) if process in known else None
        records.append(Record(support, zeros, noise, np.asarray(fit.weights[process])))
    return as_arrays(fit.model).linear(tuple(records))


def _known(model: Any) -> Any:
    return getattr(model, "field", model).known_noise


def _tempered(fit: Any, kernels: Kernels, sources: Sources, diagonal: Vector) -> Vector:
    """Return s2 / phi - s2 of every value, from the diagonal of C."""
    weights = [fit.weights[process] for process in fit.processes]
    if all(weight == 1 for weight in weights):
        return np.zeros(len(diagonal))
    prior, shares = [], []
    for source, weight in zip(sources, weights, strict=True):
        ratio = np.asarray(source.ratio)
        parts = [
            r**2 * np.asarray(variance(k, source.support, fit.model.rule))
            for k, r in zip(kernels, ratio, strict=True)
        ]
        prior.append(np.sum(parts, 0))
        shares.append(np.full(len(source.support), 1 - weight))
    return np.concatenate(shares) * (diagonal - np.concatenate(prior))
