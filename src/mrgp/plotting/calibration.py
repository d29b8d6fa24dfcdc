"""Whether predictions are calibrated, sources independent, and values vary as the model says."""

from collections.abc import Mapping
from itertools import cycle
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.checks import Dependence, Variogram
from mrgp.plotting.colours import LINE_COLOURS, MODEL_COLOURS
from mrgp.plotting.coordinates import Vector, with_units
from mrgp.plotting.panels import Axes, new_axes, new_panels
from mrgp.prediction import Prediction

LEVELS = np.linspace(0.05, 0.95, 19)
STYLES = [(colour, style) for style in ("-", "--", ":") for colour in MODEL_COLOURS]
"""Of the lines of models, no two alike."""


def plot_calibration(axes: Axes, predictions: Mapping[str, Prediction], y: Vector) -> None:
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


def plot_reliability(axes: Axes, values: Mapping[str, Float[np.ndarray, " _"]]) -> None:
    """Draw the share of values inside central intervals, from probability integral transforms.

    >>> from matplotlib.figure import Figure
    >>> axes = Figure().subplots()
    >>> plot_reliability(axes, {"MRGP": np.linspace(0.0, 1.0, 101)})
    >>> float(axes.get_lines()[1].get_ydata()[9].round(1))
    0.5
    """
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="perfect")
    for (name, pit), (colour, style) in zip(values.items(), cycle(STYLES), strict=False):
        axes.plot(LEVELS, shares_inside(pit), color=colour, linestyle=style, label=name)
    axes.set(xlabel="nominal share", ylabel="observed share", xlim=(0, 1), ylim=(0, 1))
    axes.set(aspect="equal", title="Calibration of central intervals")


def plot_pit(axes: Axes, values: Mapping[str, Float[np.ndarray, " _"]], *, bins: int = 10) -> None:
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
    for (name, pit), (colour, style) in zip(values.items(), cycle(STYLES), strict=False):
        density, edges = pit_density(pit, bins)
        axes.stairs(density, edges, color=colour, linestyle=style, linewidth=1.4, label=name)
    axes.set(xlabel="P(y ≤ value held out)", ylabel="density", xlim=(0, 1), ylim=(0, None))
    axes.set_title("Probability integral transform")


def shares_inside(pit: Vector) -> Float[np.ndarray, " levels"]:
    """Return the share of values inside central intervals of the `LEVELS`.

    >>> shares_inside(np.array([0.5, 0.96, np.nan]))[[0, 9, 18]]
    array([0.5, 0.5, 1. ])
    """
    beside = np.abs(2 * pit[~np.isnan(pit)] - 1)
    return np.mean(beside[:, None] <= LEVELS, axis=0)


def pit_density(
    pit: Vector, bins: int
) -> tuple[Float[np.ndarray, " bins"], Float[np.ndarray, " edges"]]:
    """Return a histogram of probability integral transforms: densities, and the edges of bins.

    >>> pit_density(np.array([0.1, 0.2, 0.9, np.nan]), 2)[0].round(2)
    array([1.33, 0.67])
    """
    return np.histogram(pit[~np.isnan(pit)], bins, range=(0.0, 1.0), density=True)


def plot_dependence(found: Dependence) -> Any:
    """Draw the residuals of pairs of overlapping sources; return the figure.

    >>> import mrgp
    >>> from mrgp.checks import Pair
    >>> clusters = mrgp.overlap_clusters([mrgp.points([[0.0]]), mrgp.points([[1.0]])])
    >>> pair = Pair("laqn", "sat", np.array([[-1.0, -1.0], [1.0, 1.0]]))
    >>> plot_dependence(mrgp.Dependence((pair,), clusters)).axes[0].get_xlabel()
    'residual of laqn (sd)'
    """
    count = max(len(found.pairs), 1)
    wide = min(count, 4)
    high = -(-count // wide)
    figure, panels = new_panels(high, wide, width=3.6 * wide, height=3.9 * high)
    for axes in panels.ravel()[len(found.pairs) :]:
        axes.set_visible(False)
    for axes, pair in zip(panels.ravel(), found.pairs, strict=False):
        first, second = pair.residuals.T
        reach = 1.1 * float(np.max(np.abs(pair.residuals), initial=1.0))
        axes.axline((0, 0), slope=1, color="0.7", linewidth=1)
        axes.scatter(first, second, s=16, color=LINE_COLOURS[0], alpha=0.7, linewidths=0)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        axes.set(xlabel=f"residual of {pair.first} (sd)", ylabel=f"residual of {pair.second} (sd)")
        title = f"correlation {pair.correlation:.2f} ± {pair.standard_error:.2f}"
        axes.set_title(title, fontsize=10)
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
    axes = new_axes(axes)
    reach = 2 * found.standard_error
    low, high = np.maximum(found.model - reach, 0.0), found.model + reach
    colour = LINE_COLOURS[0]
    axes.fill_between(found.lag, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(found.lag, found.model, color=colour, label="model, ± 2 standard errors")
    axes.plot(found.lag, found.empirical, "o", color="black", markersize=4, label="values")
    axes.set_xlabel(with_units(f"distance in {', '.join(found.dims)}", found.distance_units))
    axes.set_ylabel(with_units("semivariance", found.units and f"({found.units})²"))
    axes.set(xlim=(0, None), ylim=(0, None), title=f"{found.source}, {found.task}")
    axes.legend(frameon=False, loc="lower right")
    return axes
