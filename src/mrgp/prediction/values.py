"""What a prediction is: a Gaussian, or a mixture of Gaussians, for each region of a support."""

import dataclasses
from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

from mrgp.data import as_key
from mrgp.prediction.units import is_concentration
from mrgp.supports import Support

BISECTIONS = 60
UNLIKELY = 0.025

Vector = Float[np.ndarray, " n"]
Components = Float[np.ndarray, "k n"]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Prediction:
    """A Gaussian, or a mixture of Gaussians, for each region of a support.

    Mixture components lie along the first axis of `component_weights`, `means` and `variances`; a
    Gaussian has one. `covariance` is there after `predict(..., joint=True)`. From a deep model,
    `experts` has what each expert predicts by itself, and `weights` its weight in each region.

    >>> import mrgp
    >>> from mrgp.prediction import Prediction
    >>> one = np.ones((1, 1))
    >>> pred = Prediction(mrgp.points([[0.0]]), "no2", None, "ug/m3", one, 20 * one, 4 * one)
    >>> pred.mean, pred.std
    (array([20.]), array([2.]))
    >>> pred.exceedance(22.0).round(3)
    array([0.159])
    """

    support: Support
    task: str
    source: str | None
    units: str | None
    component_weights: Components
    means: Components
    variances: Components
    covariance: Float[np.ndarray, "n n"] | None = None
    experts: dict[str, "Prediction"] = dataclasses.field(default_factory=dict)
    weights: dict[str, Vector] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return self.means.shape[1]

    @property
    def mean(self) -> Vector:
        """The expected value."""
        return (self.component_weights * self.means).sum(0)

    @property
    def variance(self) -> Vector:
        """The variance."""
        return (self.component_weights * (self.variances + (self.means - self.mean) ** 2)).sum(0)

    @property
    def std(self) -> Vector:
        """The standard deviation."""
        return np.sqrt(self.variance)

    def cdf(self, value: Any) -> Vector:
        """Return P(value <= t) for each region; `value` is one number or one for each."""
        return (self.component_weights * ndtr(self._standardise(value))).sum(0)

    def exceedance(self, threshold: Any) -> Vector:
        """Return the probability of a value above a threshold."""
        return (self.component_weights * ndtr(-self._standardise(threshold))).sum(0)

    def _standardise(self, value: Any) -> Components:
        """Return (value - mean) / sd; a sd of zero counts as the smallest number."""
        if np.shape(value) not in ((), (len(self),)):
            raise ValueError(
                f"Give one number, or {len(self)}, one a region; got shape {np.shape(value)}."
            )
        sd = np.sqrt(np.maximum(self.variances, np.finfo(float).tiny))
        with np.errstate(over="ignore"):
            return (np.asarray(value, np.float64) - self.means) / sd

    def log_density(self, value: Any) -> Vector:
        """Return the log predictive density of one value for each region."""
        variances = np.maximum(self.variances, np.finfo(float).tiny)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            squares = self._standardise(value) ** 2
            logs = np.log(self.component_weights) - 0.5 * (squares + np.log(2 * np.pi * variances))
            return np.logaddexp.reduce(logs, axis=0)

    def quantile(self, q: float) -> Vector:
        """Return the q-quantile for each region."""
        if not (np.ndim(q) == 0 and 0 < q < 1):
            raise ValueError(f"quantile: q must be one number between 0 and 1; got {q}.")
        ends = self.means + ndtri(q) * np.sqrt(self.variances)
        low, high = ends.min(0), ends.max(0)
        if len(self.means) == 1:
            return low
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)

    def interval(self, level: float = 0.95) -> tuple[Vector, Vector]:
        """Return the central interval of a probability."""
        if not (np.ndim(level) == 0 and 0 < level < 1):
            raise ValueError(
                f"interval: the level must be one number between 0 and 1; got {level}."
            )
        return self.quantile(0.5 - 0.5 * level), self.quantile(0.5 + 0.5 * level)

    def sample(self, key: Any = 0, n: int = 1) -> Float[np.ndarray, "j n"]:
        """Draw `n` samples, shape [n, regions].

        They are joint over the regions after `predict(..., joint=True)`, and independent from
        region to region otherwise. A draw belongs to the regions predicted together.
        """
        if not isinstance(n, int | np.integer) or n < 0:
            raise ValueError(f"sample: n must be a whole number of draws; got {n}.")
        rng = np.random.default_rng(np.asarray(jax.random.key_data(as_key(key))))
        shape = (n, len(self))
        if self.covariance is not None:
            values, vectors = np.linalg.eigh(self.covariance)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            return self.mean + rng.standard_normal(shape) @ root.T
        cumulative = np.cumsum(self.component_weights, 0)[:, None, :]
        component = (rng.uniform(size=shape)[None] > cumulative[:-1]).sum(0)
        columns = np.arange(len(self))
        mean, variance = self.means[component, columns], self.variances[component, columns]
        return mean + np.sqrt(variance) * rng.standard_normal(shape)

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a data frame: regions, mean, std and the ends of a central interval.

        Dates, degrees and outlines are as they were read.

        >>> import mrgp
        >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
        >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors]))
        >>> list(mrgp.predict(fit, mrgp.intervals([0.0], [2.0])).to_frame())
        ['x1_lower', 'x1_upper', 'mean', 'std', 'lower_95', 'upper_95']
        """
        from mrgp.io.frames import to_frame

        return to_frame(self, level)

    def to_grid(self, like: Any = None, local: bool = False) -> Any:
        """Return an xarray Dataset of mean, std, lower and upper, if the regions form a grid.

        `like` lends its coordinates; `local=True` gives dates as wall-clock times of their zone
        instead of UTC.
        """
        from mrgp.io.grids import to_grid

        return to_grid(self, like, local)

    def plot(
        self,
        data: Any = None,
        *,
        exceedance: float | None = None,
        truth: Any = None,
        experts: bool = False,
    ) -> Any:
        """Draw a curve where one input varies, or maps of mean and sd; return the figure.

        `data`, the dataset it was made from, is drawn on top, and `exceedance=40` adds a panel of
        P(value > 40). `truth` is drawn beside a curve. `experts=True` draws what each expert of a
        deep model says, and its weight, instead.

        >>> import mrgp
        >>> x, one = mrgp.points([[0.0], [1.0]], inputs="day"), np.ones((1, 2))
        >>> found = Prediction(x, "no2", None, "ppb", one, one, one)
        >>> [axes.get_ylabel() for axes in found.plot(exceedance=2.0).axes]
        ['no2 (ppb)', 'P(no2 > 2 ppb)']
        """
        from mrgp.plotting import plot_experts, plot_prediction

        if experts:
            if exceedance is not None or truth is not None:
                raise ValueError(
                    "experts=True draws what each expert says and its weight, without exceedance="
                    " and truth=. Leave them out, or draw a picture for each."
                )
            return plot_experts(self, data=data).flat[0].figure
        return plot_prediction(self, data, exceedance=exceedance, truth=truth)

    def __repr__(self) -> str:
        what = self.task if self.source is None else f"{self.task} as {self.source} reports it"
        units = f" {self.units}" if self.units else ""
        if len(self) == 0:
            return f"Prediction({what}, no regions)"
        regions = "1 region" if len(self) == 1 else f"{len(self)} regions"
        return (
            f"Prediction({what}, {regions}: mean {self.mean.min():.4g} to"
            f" {self.mean.max():.4g}{units}, sd {self.std.min():.3g} to"
            f" {self.std.max():.3g}{units}{self._below_zero()})"
        )

    def _below_zero(self) -> str:
        """Say how many concentrations may well be negative, and what to do."""
        count = int((self.cdf(0.0) > UNLIKELY).sum()) if is_concentration(self.units) else 0
        if count == 0:
            return ""
        return (
            f"; {count} of {len(self)} have P(value < 0) above {UNLIKELY}, which a concentration"
            " cannot be: see cdf(0.0), cut intervals at zero, or fit logarithms"
        )
