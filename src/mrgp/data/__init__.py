"""WHAT was seen: observations, datasets, and the scaling between units."""

from mrgp.data.axes import common_axes, harmonise
from mrgp.data.dataset import Dataset, as_key, as_seed, process_weights, rename_inputs
from mrgp.data.limits import below_limit
from mrgp.data.observations import Observations
from mrgp.data.scaling import Frame, Record, Records, Scaling, spread_of
from mrgp.data.values import as_values

__all__ = [
    "Dataset",
    "Frame",
    "Observations",
    "Record",
    "Records",
    "Scaling",
    "as_key",
    "as_seed",
    "as_values",
    "below_limit",
    "common_axes",
    "harmonise",
    "process_weights",
    "rename_inputs",
    "spread_of",
]
