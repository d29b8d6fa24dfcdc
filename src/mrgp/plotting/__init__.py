"""Pictures: functions, maps, data, fits, models and checks. Colours suit colour-blind readers."""

from mrgp.plotting.calibration import (
    plot_calibration,
    plot_dependence,
    plot_pit,
    plot_reliability,
    plot_variogram,
)
from mrgp.plotting.colours import FIELD_COLOURS, LINE_COLOURS, MODEL_COLOURS, SPREAD_COLOURS
from mrgp.plotting.drawing import plot_diagram
from mrgp.plotting.experts import plot_experts
from mrgp.plotting.exploring import explore_prediction
from mrgp.plotting.functions import plot_bias_map, plot_function, plot_posteriors
from mrgp.plotting.learned import plot_fit
from mrgp.plotting.maps import plot_data, plot_map, plot_outlines, plot_prediction
from mrgp.plotting.observed import plot_dataset
from mrgp.plotting.traces import plot_chains

__all__ = [
    "FIELD_COLOURS",
    "LINE_COLOURS",
    "MODEL_COLOURS",
    "SPREAD_COLOURS",
    "explore_prediction",
    "plot_bias_map",
    "plot_calibration",
    "plot_chains",
    "plot_data",
    "plot_dataset",
    "plot_dependence",
    "plot_diagram",
    "plot_experts",
    "plot_fit",
    "plot_function",
    "plot_map",
    "plot_outlines",
    "plot_pit",
    "plot_posteriors",
    "plot_prediction",
    "plot_reliability",
    "plot_variogram",
]
