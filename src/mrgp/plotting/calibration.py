"""Whether predictions are calibrated, sources independent, and values vary as the model says."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from mrgp.inference import Dependence, Variogram
from mrgp.plotting.colours import LINE_COLOURS, MODEL_COLOURS
from mrgp.prediction import Prediction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = np.linspace(0.05, 0.95, 19)


def plot_calibration(
    axes: "Axes", predictions: Mapping[str, Prediction], y: Float[np.ndarray, " n"]
) -> None:
    """Draw the share of values inside central intervals against the intervals' nominal share.

    >>> import mrgp
    >>> from matplotlib.figure import Figure
    >>> one = np.ones((1, 3))
    >>> found = mrgp.Prediction(mrgp.points(one.T), "no2", None, None, one, 0 * one, one)
    >>> axes = Figure().subplots()
    >>> plot_calibration(axes, {"MRGP": found}, np.array([-1.0, 0.0, 1.0]))
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['perfect', 'MRGP']
    """
    plot_reliability(axes, {name: prediction.cdf(y) for name, prediction in predictions.items()})
    axes.legend(frameon=False)


def plot_reliability(axes: "Axes", values: Mapping[str, Float[np.ndarray, " _"]]) -> None:
    """Draw the share of values inside central intervals, from probability integral transforms.

    >>> from matplotlib.figure import Figure
    >>> axes = Figure().subplots()
    >>> plot_reliability(axes, {"MRGP": np.linspace(0.0, 1.0, 101)})
    >>> float(axes.get_lines()[1].get_ydata()[9].round(1))
    0.5
    """
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="perfect")
    for (name, pit), (colour, style) in zip(values.items(), _styles(len(values)), strict=True):
        beside = np.abs(2 * pit[~np.isnan(pit)] - 1)
        observed = [float(np.mean(beside <= level)) for level in LEVELS]
        axes.plot(LEVELS, observed, color=colour, linestyle=style, label=name)
    axes.set(
        xlabel="nominal share", ylabel="observed share", xlim=(0, 1), ylim=(0, 1), aspect="equal"
    )
    axes.set_title("Calibration of central intervals")


def plot_pit(
    axes: "Axes", values: Mapping[str, Float[np.ndarray, " _"]], *, bins: int = 10
) -> None:
    """Draw histograms of probability integral transforms, P(y <= the value held out).

    Where predictions are calibrated they are even; a hump is too much uncertainty, and a hollow
    too little.

    >>> from matplotlib.figure import Figure
    >>> axes = Figure().subplots()
    >>> plot_pit(axes, {"MRGP": np.array([0.1, 0.3, 0.6, 0.8])}, bins=2)
    >>> axes.patches[0].get_data().values
    array([1., 1.])
    """
    axes.axhline(1.0, color="0.6", linewidth=1, label="perfect")
    edges = np.linspace(0.0, 1.0, bins + 1)
    for (name, pit), (colour, style) in zip(values.items(), _styles(len(values)), strict=True):
        density = np.histogram(pit[~np.isnan(pit)], edges, density=True)[0]
        axes.stairs(density, edges, color=colour, linestyle=style, linewidth=1.4, label=name)
    axes.set(xlabel="P(y ≤ value held out)", ylabel="density", xlim=(0, 1), ylim=(0, None))
    axes.set_title("Probability integral transform")


def _styles(count: int) -> list[tuple[str, str]]:
    """Return colours and line styles of so many models, no two alike."""
    several = [(colour, style) for style in ("-", "--", ":") for colour in MODEL_COLOURS]
    return (several * (count // len(several) + 1))[:count]


def plot_dependence(found: Dependence) -> Any:
    """Draw the residuals of pairs of overlapping sources; return the figure.

    >>> import mrgp
    >>> from mrgp.inference.dependence import Pair
    >>> clusters = mrgp.overlap_clusters([mrgp.points([[0.0]]), mrgp.points([[1.0]])])
    >>> pair = Pair("laqn", "sat", np.array([[-1.0, -1.0], [1.0, 1.0]]))
    >>> plot_dependence(mrgp.Dependence((pair,), clusters)).axes[0].get_xlabel()
    'residual of laqn (sd)'
    """
    import matplotlib.pyplot as plt

    count = max(len(found.pairs), 1)
    wide = min(count, 4)
    high = -(-count // wide)
    figure, panels = plt.subplots(
        high, wide, figsize=(3.6 * wide, 3.9 * high), squeeze=False, layout="constrained"
    )
    for axes in panels.ravel()[len(found.pairs) :]:
        axes.set_visible(False)
    for axes, pair in zip(panels.ravel(), found.pairs, strict=False):
        first, second = pair.residuals.T
        reach = 1.1 * float(np.max(np.abs(pair.residuals), initial=1.0))
        axes.axline((0, 0), slope=1, color="0.7", linewidth=1)
        axes.scatter(first, second, s=16, color=LINE_COLOURS[0], alpha=0.7, linewidths=0)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        axes.set_xlabel(f"residual of {pair.first} (sd)")
        axes.set_ylabel(f"residual of {pair.second} (sd)")
        axes.set_title(
            f"correlation {pair.correlation:.2f} ± {pair.standard_error:.2f}", fontsize=10
        )
    return figure


def plot_variogram(found: Variogram, axes: Any = None) -> Any:
    """Draw semivariances of the values over those of the model, with two standard errors.

    >>> from matplotlib.figure import Figure
    >>> lag = np.arange(1.0, 4.0)
    >>> found = Variogram("s", "no2", "ppb", ("x",), "km", 9, lag, np.ones(3, int), lag, lag, lag)
    >>> axes = plot_variogram(found, Figure().subplots())
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('distance in x (km)', 'semivariance ((ppb)²)')
    """
    import matplotlib.pyplot as plt

    axes = plt.subplots(layout="constrained")[1] if axes is None else axes
    reach = 2 * found.standard_error
    low, high = np.maximum(found.model - reach, 0.0), found.model + reach
    colour = LINE_COLOURS[0]
    axes.fill_between(found.lag, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(found.lag, found.model, color=colour, label="model, ± 2 standard errors")
    axes.plot(found.lag, found.empirical, "o", color="black", markersize=4, label="values")
    distance = f" ({found.distance_units})" if found.distance_units else ""
    units = f" (({found.units})²)" if found.units else ""
    axes.set(
        xlabel=f"distance in {', '.join(found.dims)}{distance}",
        ylabel=f"semivariance{units}",
        xlim=(0, None),
        ylim=(0, None),
    )
    axes.set_title(f"{found.source}, {found.task}")
    axes.legend(frameon=False, loc="lower right")
    return axes
