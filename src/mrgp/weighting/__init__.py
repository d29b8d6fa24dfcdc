"""How much dependent sources say together: composite weights, and wider posteriors."""

from mrgp.weighting.clustering import cluster_rows
from mrgp.weighting.composite import (
    Asked,
    CompositeWeights,
    alone_optimum,
    composite_weights,
    say_cautions,
    weigh_sources,
)
from mrgp.weighting.curvature import adjust_curvature
from mrgp.weighting.smoothed import Smoothed, smoothed_by
from mrgp.weighting.weighted import check_data, fit_weighted, sample_posterior

__all__ = [
    "Asked",
    "CompositeWeights",
    "Smoothed",
    "adjust_curvature",
    "alone_optimum",
    "check_data",
    "cluster_rows",
    "composite_weights",
    "fit_weighted",
    "sample_posterior",
    "say_cautions",
    "smoothed_by",
    "weigh_sources",
]
