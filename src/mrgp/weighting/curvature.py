"""Curvature adjustment: a posterior as wide as the scores of clusters say (theory 4.2)."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp._types import float64
from mrgp.data import Dataset
from mrgp.gp import Posterior
from mrgp.inference import Fit, densely
from mrgp.weighting.clustering import cluster_rows
from mrgp.weighting.sandwich import Sandwich, leading_directions
from mrgp.weighting.smoothed import Smoothed


def curvature(found: Sandwich, cap: bool = True) -> Float[np.ndarray, "m m"]:
    """Return C, by which draws move: theta_hat + C (theta - theta_hat).

    In coordinates in which the posterior covariance is the identity, the mean's own covariance is
    I - H + J. J is taken along the leading directions, as many as there are degrees of freedom and
    at most half as many as clusters; elsewhere, where the prior speaks, H stands for it. With `cap`
    no direction becomes narrower.
    """
    most = max(1, min(found.clusters // 2, int(found.dimension)))
    directions, strength = leading_directions(found.information, most)
    change = directions.T @ found.variability @ directions - np.diag(strength)
    target = directions @ change @ directions.T + np.eye(len(found.information))
    eigenvalues, vectors = np.linalg.eigh(target)
    return (vectors * np.sqrt(np.maximum(eigenvalues, 1.0 if cap else 0.0))) @ vectors.T


@float64
def adjust_curvature(fit: Fit, data: Dataset, clusters: Any = "overlap", cap: bool = True) -> Fit:
    """Return the fit with a posterior as wide as the scores of clusters of the data say.

    Where a composite weight is one number, this changes the width direction by direction: draws
    theta of the latent function become theta_hat + C (theta - theta_hat). The mean stays, and the
    variance never exceeds the prior's. It goes best with the parameters of each source on its own,
    `fit(..., hyperparameters="keep")` without weights. `clusters` are as in `composite_weights`;
    `cap=False` lets directions become narrower too, where scores vary less than they should.

    >>> import numpy as np, mrgp
    >>> x = np.linspace(0.0, 9.0, 40)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> twice = [mrgp.Observations(mrgp.points(x), y, name=name) for name in ("one", "copy")]
    >>> data = mrgp.Dataset(twice)
    >>> fit = mrgp.fit(mrgp.MRGP(), data, hyperparameters="keep")
    >>> wider = mrgp.adjust_curvature(fit, data)
    >>> at = mrgp.points([[4.5]])
    >>> bool(mrgp.predict(wider, at).variance > mrgp.predict(fit, at).variance)
    True
    """
    if not isinstance(fit, Fit):
        raise TypeError(f"adjust_curvature takes a fit; got {type(fit).__name__}.")
    if fit.treatment == "adjusted":
        raise ValueError("adjust_curvature: this fit is adjusted already.")
    linear = fit.model.linear
    if linear is None:
        raise ValueError(
            "adjust_curvature takes fits of MRGP, or of MRGPRN with constant weights, whose"
            f" posterior is Gaussian; got one of {type(fit.recipe).__name__}. Use weights=."
        )
    if any(weight != 1 for weight in fit.weights.values()):
        raise ValueError(
            "adjust_curvature takes fits without composite weights, which it stands in for."
        )
    same, fit = fit.same_data(data, "adjust_curvature"), densely(fit, "adjust_curvature")
    records = fit.problem(same).records
    smoothed = Smoothed.of(linear, records, cluster_rows(same, clusters))
    root = _adjusted_root(fit.state, smoothed.lift, curvature(smoothed.sandwich(), cap))
    state = dataclasses.replace(fit.state, root=root)
    return dataclasses.replace(fit, state=state, treatment="adjusted")


def _adjusted_root(
    state: Posterior, lift: Float[np.ndarray, "a m"], matrix: Float[np.ndarray, "m m"]
) -> Float[np.ndarray, "r a"]:
    """Return the root of what the data take off the prior variance, by the posterior's anchors."""
    change = matrix @ matrix.T - np.eye(len(matrix))
    taken = np.asarray(state.root).T @ np.asarray(state.root) - lift @ change @ lift.T
    eigenvalues, vectors = np.linalg.eigh(0.5 * (taken + taken.T))
    return np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T
