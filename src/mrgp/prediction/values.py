"""What a prediction is: a distribution for each region of a support, a mixture in general."""

import dataclasses
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from mrgp.data import as_key
from mrgp.distributions import GAUSSIANS, Distribution, Parts
from mrgp.distributions.gaussians import Mixed, Vector
from mrgp.prediction.units import is_concentration
from mrgp.supports import Support

UNLIKELY = 0.025


def require_share(number: Any, label: str) -> None:
    """Refuse what is not one number between 0 and 1."""
    if not (np.ndim(number) == 0 and 0 < number < 1):
        raise ValueError(f"{label} must be one number between 0 and 1; got {number}.")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Prediction:
    """A Gaussian, or a mixture, for each region of a support; `pred[rows]` is that of some regions.

    Mixture components lie along the first axis of `component_weights`, `means` and `variances`; a
    Gaussian has one, and `distribution` says of what kind they are. `covariance` is there after
    `predict(..., joint=True)`. From a deep model, `experts` has what each expert predicts by
    itself, and `weights` its weight in each region.

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
    component_weights: Mixed
    means: Mixed
    variances: Mixed
    covariance: Float[np.ndarray, "n n"] | None = None
    experts: dict[str, "Prediction"] = dataclasses.field(default_factory=dict)
    weights: dict[str, Vector] = dataclasses.field(default_factory=dict)
    distribution: Distribution = GAUSSIANS

    def __len__(self) -> int:
        return self.means.shape[1]

    def __getitem__(self, rows: Any) -> "Prediction":
        """Select regions by slice, mask, integer array or integer."""
        rows = np.atleast_1d(np.arange(len(self))[rows])
        covariance = None if self.covariance is None else self.covariance[np.ix_(rows, rows)]
        return dataclasses.replace(
            self,
            support=self.support[rows],
            component_weights=self.component_weights[:, rows],
            means=self.means[:, rows],
            variances=self.variances[:, rows],
            covariance=covariance,
            experts={name: expert[rows] for name, expert in self.experts.items()},
            weights={name: share[rows] for name, share in self.weights.items()},
        )

    @property
    def components(self) -> Parts:
        """Weights, means and variances of the components."""
        return self.component_weights, self.means, self.variances

    @property
    def mean(self) -> Vector:
        """The expected value."""
        return self.distribution.moments(self.components)[0]

    @property
    def variance(self) -> Vector:
        """The variance."""
        return self.distribution.moments(self.components)[1]

    @property
    def std(self) -> Vector:
        """The standard deviation."""
        return np.sqrt(self.variance)

    def cdf(self, value: Any) -> Vector:
        """Return P(value <= t) for each region; `value` is one number or one for each."""
        return self.distribution.cdf(self.components, self._one_each(value))

    def exceedance(self, threshold: Any) -> Vector:
        """Return the probability of a value above a threshold."""
        return self.distribution.exceedance(self.components, self._one_each(threshold))

    def log_density(self, value: Any) -> Vector:
        """Return the log predictive density of one value for each region."""
        return self.distribution.log_density(self.components, self._one_each(value))

    def crps(self, value: Any) -> Vector:
        """Return the continuous ranked probability score of one value for each region."""
        return self.distribution.crps(self.components, self._one_each(value))

    def _one_each(self, value: Any) -> Any:
        if np.shape(value) not in ((), (len(self),)):
            raise ValueError(
                f"Give one number, or {len(self)}, one a region; got shape {np.shape(value)}."
            )
        return np.asarray(value, np.float64)

    def quantile(self, q: float) -> Vector:
        """Return the q-quantile for each region."""
        require_share(q, "quantile: q")
        return self.distribution.quantile(self.components, q)

    def interval(self, level: float = 0.95) -> tuple[Vector, Vector]:
        """Return the central interval of a probability."""
        require_share(level, "interval: the level")
        return self.quantile(0.5 - 0.5 * level), self.quantile(0.5 + 0.5 * level)

    def sample(self, key: Any = 0, n: int = 1) -> Float[np.ndarray, "j n"]:
        """Draw `n` samples, shape [n, regions].

        They are joint over the regions after `predict(..., joint=True)`, and independent from
        region to region otherwise. A draw belongs to the regions predicted together.
        """
        if not isinstance(n, int | np.integer) or n < 0:
            raise ValueError(f"sample: n must be a whole number of draws; got {n}.")
        rng = np.random.default_rng(np.asarray(jax.random.key_data(as_key(key))))
        if self.covariance is None:
            return self.distribution.sample(self.components, rng, n)
        return self.distribution.sample_jointly(self.mean, self.covariance, rng, n)

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

    def explore(self, data: Any = None) -> Any:
        """Return a plotly figure to point at: a curve, or maps of mean and sd with a slider.

        In a notebook it is drawn without a network, and `figure.write_html("map.html")` makes a
        page of it. `data`, the dataset it was made from, is drawn on top.

        >>> import mrgp
        >>> x, one = mrgp.points([[0.0], [1.0]], inputs="day"), np.ones((1, 2))
        >>> figure = Prediction(x, "no2", None, "ppb", one, one, one).explore()
        >>> figure.layout.xaxis.title.text
        'day'
        """
        from mrgp.plotting import explore_prediction

        return explore_prediction(self, data)

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
