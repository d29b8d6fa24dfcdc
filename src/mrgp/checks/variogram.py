"""Semivariances of values against distance, beside those of the fitted model (theory 2.7)."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from mrgp._types import float64
from mrgp.checks.dense import dense
from mrgp.data import Dataset
from mrgp.gp import prior_covariance
from mrgp.inference import Fit
from mrgp.models import as_arrays
from mrgp.parameters import unwrap
from mrgp.supports import Support

MOST_VALUES = 1000
SAME = 1e-9
OTHERWISE = "Give the data of the fit as data=."

Vector = Float[np.ndarray, " n"]
Matrix = Float[np.ndarray, "n n"]
Bins = Float[np.ndarray, " b"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Variogram:
    """Semivariances by distance: those of the values, and those that the model expects.

    For each bin: `lag` is the mean distance of its pairs, `pairs` their number, `empirical` the
    mean of half their squared differences, about the model's mean function, and `model` what the
    model expects of it, noise included. `standard_error` is how far from `model` the empirical
    one of data from the model typically lies. Empty bins are left out.

    >>> import mrgp
    >>> x = np.linspace(0.0, 6.0, 12)[:, None]
    >>> seen = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]), name="sensors")
    >>> found = mrgp.variogram(mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen])), bins=3)
    >>> list(found.to_frame())
    ['lag', 'pairs', 'empirical', 'model', 'standard_error']
    """

    source: str
    task: str
    units: str | None
    dims: tuple[str, ...]
    distance_units: str | None
    values: int
    lag: Bins
    pairs: Int[np.ndarray, " b"]
    empirical: Bins
    model: Bins
    standard_error: Bins

    def to_frame(self) -> Any:
        """Return a data frame with a row for each bin."""
        import pandas as pd

        names = ("lag", "pairs", "empirical", "model", "standard_error")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def plot(self, axes: Any = None) -> Any:
        """Draw both against distance, with two standard errors; return the axes."""
        from mrgp.plotting import plot_variogram

        return plot_variogram(self, axes)

    def __repr__(self) -> str:
        units = f" {self.distance_units}" if self.distance_units else ""
        outside = np.abs(self.empirical - self.model) > 2 * self.standard_error
        return (
            f"Variogram({self.source}, {self.task}: {self.values} values over"
            f" {', '.join(self.dims)}, lags {self.lag[0]:.4g} to {self.lag[-1]:.4g}{units};"
            f" {int(outside.sum())} of {len(self.lag)} bins more than 2 standard errors from the"
            " model)"
        )


@float64
def variogram(
    fit: Fit,
    source: Any = None,
    bins: Any = 15,
    *,
    dims: Any = None,
    within: Mapping[str, float] | None = None,
    data: Dataset | None = None,
) -> Variogram:
    """Compare how values of a source differ over distance with what the fitted model expects.

    `dims` names the inputs that make the distance, which is that of the regions' centres in the
    inputs' own units. Pairs agree in the other inputs, or are at most as far apart there as
    `within` says, as in `within={"hour": 1.0}`. `bins` is a number, of equal bins up to half the
    largest distance, or the edges. The model's values are means over the same pairs, so that
    regions of any shape compare rightly. Fits that are not exact need their `data`. Of more than
    1000 values, 1000 are drawn.

    >>> import numpy as np, mrgp
    >>> x = np.linspace(0.0, 9.0, 40)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([mrgp.Observations(mrgp.points(x), y)]))
    >>> found = mrgp.variogram(fit, bins=5)
    >>> found.lag.round(2)
    array([0.46, 1.26, 2.18, 3.1 , 4.03])
    """
    if not isinstance(fit, Fit):
        raise TypeError(f"variogram takes a fit; got {type(fit).__name__}.")
    process = _process(fit, source)
    residual, covariance, support = _values(fit, process, data)
    columns = _columns(support, dims)
    apart = _apart(support, columns, within)
    chosen = _drawn(len(residual))
    residual, covariance = residual[chosen], covariance[np.ix_(chosen, chosen)]
    x = support.centres[chosen]
    distance = np.sqrt(sum((x[:, None, d] - x[None, :, d]) ** 2 for d in columns))
    allowed = np.triu(np.ones(distance.shape, bool), 1)
    for d, reach in apart.items():
        allowed &= np.abs(x[:, None, d] - x[None, :, d]) <= reach
    edges = _edges(bins, distance[allowed], support, columns)
    distance = np.where(allowed, distance, np.nan)
    return Variogram(
        *process,
        units=fit.units.get(process[1]),
        dims=tuple(support.input_names[d] for d in columns),
        distance_units=_unit(support, columns),
        values=len(residual),
        **_binned(residual, covariance, distance, edges),
    )


def _binned(residual: Vector, covariance: Matrix, distance: Matrix, edges: Bins) -> dict[str, Any]:
    """Return the columns of a variogram; what is no pair has no distance."""
    # NaN comes after the last edge.
    bin_of = np.searchsorted(edges, distance, side="left") - 1
    bin_of[distance == edges[0]] = 0
    rows = []
    for b in range(len(edges) - 1):
        first, second = np.nonzero(bin_of == b)
        if len(first):
            rows.append(_one_bin(residual, covariance, distance, first, second))
    if not rows:
        raise ValueError(
            "variogram: no pairs lie inside the edges of bins=; the largest distance is"
            f" {np.nanmax(distance):.4g}."
        )
    lag, pairs, *others = np.array(rows).T
    names = ("empirical", "model", "standard_error")
    return {"lag": lag, "pairs": pairs.astype(int), **dict(zip(names, others, strict=True))}


def _one_bin(
    residual: Vector, covariance: Matrix, distance: Matrix, first: Any, second: Any
) -> tuple[float, int, float, float, float]:
    """Return lag, pairs, semivariance, its expectation and standard deviation under the model."""
    count = len(first)
    # The sum over pairs of (e_i - e_j)^2 is a quadratic form in the graph's Laplacian.
    graph = np.zeros(covariance.shape)
    graph[first, second] = graph[second, first] = -1.0
    np.fill_diagonal(graph, -graph.sum(1))
    moved = graph @ covariance
    empirical = float(residual @ graph @ residual) / (2 * count)
    expected = float(np.trace(moved)) / (2 * count)
    spread = float(np.sqrt(2 * np.sum(moved * moved.T))) / (2 * count)
    return float(distance[first, second].mean()), count, empirical, expected, spread


def _values(
    fit: Fit, process: tuple[str, str], data: Dataset | None
) -> tuple[Vector, Matrix, Support]:
    """Return residuals of a process from its mean, their covariance, and their support."""
    if data is not None:
        data = fit.same_data(data, "variogram")
    if data is None or fit.records is not None:
        found = dense(fit, "variogram", OTHERWISE)
        rows = found.rows[process]
        block = found.factor[rows] @ found.factor[rows].T - np.diag(found.tempered[rows])
        return (found.y - found.mean)[rows], block, found.supports[process]
    linear = fit.model.linear
    if linear is None:
        raise ValueError(
            f"variogram: {type(fit.recipe).__name__} is not one Gaussian, and its covariance is in"
            " no simple form; fit mrgp.MRGP() to see how the values vary over distance."
        )
    observations = fit.recipe.view(data)[process].dropna()
    few = Dataset([observations[_drawn(len(observations))]])
    alone = as_arrays(linear.alone(fit.processes.index(process)))
    read = alone.readings(as_arrays(fit.scaling.records(few)))
    prior = prior_covariance(unwrap(alone.solver.kernels), read, alone.solver.rule)
    covariance = np.array(prior) + np.diag(np.asarray(read.noise))
    return np.asarray(read.residual), covariance, few[process].support


def _drawn(count: int) -> Int[np.ndarray, " n"]:
    """Return the rows to take: all, or a fixed draw of the most that are taken."""
    if count <= MOST_VALUES:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, MOST_VALUES, replace=False))


def _process(fit: Fit, source: Any) -> tuple[str, str]:
    found = [p for p in fit.processes if source is None or source in (p, p[0])]
    if len(found) != 1:
        raise ValueError(
            f"variogram: say which source, by name or as (source, task); the fit has"
            f" {fit.processes}, and got {source!r}."
        )
    return found[0]


def _columns(support: Support, dims: Any) -> tuple[int, ...]:
    """Return the columns that make the distance."""
    names = support.input_names
    if dims is None:
        if len(names) > 1 and _unit(support, tuple(range(len(names)))) is None:
            raise ValueError(
                f"variogram: a distance over {names} means something only where they share their"
                f" units. Say which inputs make it, as dims={names[0]!r} or, where they share one,"
                f" dims={names[:2]!r}."
            )
        return tuple(range(len(names)))
    wanted = (dims,) if isinstance(dims, str | int) else tuple(dims)
    columns = [names.index(d) if d in names else d for d in wanted]
    known = [isinstance(d, int | np.integer) and 0 <= d < len(names) for d in columns]
    if not columns or not all(known) or len(set(columns)) < len(columns):
        raise ValueError(f"variogram: dims= takes some of the inputs {names}; got {dims!r}.")
    return tuple(int(d) for d in columns)


def _unit(support: Support, columns: tuple[int, ...]) -> str | None:
    """Return the unit that inputs share, where it is known."""
    axes = [support.input_axes[d] for d in columns]
    units = {None if axis is None else axis.unit for axis in axes}
    return units.pop() if len(units) == 1 else None


def _apart(
    support: Support, columns: tuple[int, ...], within: Mapping[str, float] | None
) -> dict[int, float]:
    """Return how far apart pairs may be along each of the other inputs."""
    names, given = support.input_names, dict(within or {})
    others = [d for d in range(len(names)) if d not in columns]
    for name, reach in given.items():
        if name not in [names[d] for d in others] or not reach >= 0:
            raise ValueError(
                "variogram: within= takes distances of zero or more along the inputs that are not"
                f" in dims=, {tuple(names[d] for d in others)}; got {name!r}: {reach!r}."
            )
    x = support.centres
    return {d: float(given.get(names[d], 0.0)) + SAME * float(np.ptp(x[:, d])) for d in others}


def _edges(bins: Any, distances: Vector, support: Support, columns: tuple[int, ...]) -> Bins:
    names = support.input_names
    if len(distances) == 0:
        others = [name for d, name in enumerate(names) if d not in columns]
        cure = f" Allow some distance in {others} with within=." if others else ""
        raise ValueError(f"variogram: no two values make a pair.{cure}")
    if isinstance(bins, int | np.integer) and bins > 0:
        farthest = float(distances.max())
        if farthest == 0:
            raise ValueError("variogram: all pairs are at one place; there are no distances.")
        # Half the largest distance: beyond it few values, at the rims, make all the pairs.
        return np.linspace(0.0, farthest / 2, int(bins) + 1)
    edges = np.asarray(bins, dtype=np.float64)
    if edges.ndim != 1 or len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise ValueError(f"variogram: bins= takes a number, or edges that increase; got {bins!r}.")
    return edges
