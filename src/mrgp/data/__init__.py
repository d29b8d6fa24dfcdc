"""WHAT was seen: observations, datasets, and the scaling between units."""

from mrgp.data.dataset import Dataset, as_key, as_seed, rename_inputs
from mrgp.data.doubts import cautions_of
from mrgp.data.excerpts import excerpt, stretch
from mrgp.data.harmony import common_axes, harmonise
from mrgp.data.limits import as_values, below_limit
from mrgp.data.observations import Observations
from mrgp.data.processes import Process, by_process, process_weights, require_processes
from mrgp.data.scaling import Frame, Record, Records, Scaling, spread_of
from mrgp.data.stored import Stored, require_in_memory, stored
from mrgp.data.strays import far_values, fill_values, shown_rows

__all__ = [
    "Dataset",
    "Frame",
    "Observations",
    "Process",
    "Record",
    "Records",
    "Scaling",
    "Stored",
    "as_key",
    "as_seed",
    "as_values",
    "below_limit",
    "by_process",
    "cautions_of",
    "common_axes",
    "excerpt",
    "far_values",
    "fill_values",
    "harmonise",
    "process_weights",
    "rename_inputs",
    "require_in_memory",
    "require_processes",
    "shown_rows",
    "spread_of",
    "stored",
    "stretch",
]
