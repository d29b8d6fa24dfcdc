"""WHAT was seen: observations, datasets, and the scaling between units."""

from mrgp.data.axes import common_axes, harmonise
from mrgp.data.dataset import Dataset, as_key, as_seed, process_weights, rename_inputs
from mrgp.data.observations import Observations, as_values
from mrgp.data.scaling import Record, Scaling

__all__ = [
    "Dataset",
    "Observations",
    "Record",
    "Scaling",
    "as_key",
    "as_seed",
    "as_values",
    "common_axes",
    "harmonise",
    "process_weights",
    "rename_inputs",
]
