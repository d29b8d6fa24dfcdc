"""Predictions of an experiment as NetCDF."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import mrgp
from mrgp.datasets import Simulation
from mrgp.experiments.cells import Cell, slug
from mrgp.experiments.scoring import LATENT, NOISY
from mrgp.experiments.store import Store

LEVEL = 0.95


def write_predictions(folder: Path, replicates: Sequence[Sequence[Cell]], store: Store) -> None:
    """Write one file for each replicate: what every model predicts of the values held out.

    Along `value` are the values held out, with the middle of each one's region as coordinates.
    """
    folder.mkdir(exist_ok=True)
    for cells in replicates:
        first = cells[0]
        name = slug(first.variant, first.noun, first.label)
        predictions_of(cells, store).to_netcdf(folder / f"{name}.nc", engine="scipy")


def predictions_of(cells: Sequence[Cell], store: Store) -> xr.Dataset:
    """Return what the models of one replicate predict, beside what was held out."""
    case = cells[0].load()
    found = [store.predictions(cell, case) for cell in cells]
    middle = np.asarray(case.support.collapse().atoms().lower)[:, 0]
    columns: dict[str, Any] = {
        name: ("value", middle[:, i]) for i, name in enumerate(case.support.input_names)
    }
    units = case.data.units[case.task]
    told = {"units": units} if units else {}
    content: dict[str, Any] = {"held_out": ("value", case.y, told)}
    if isinstance(case, Simulation):
        content["truth"] = ("value", case.truth, told)
    for kind, ending in ((NOISY, ""), (LATENT, "_clean")):
        if all(kind in by_kind for by_kind in found):
            several = [by_kind[kind] for by_kind in found]
            sides = [prediction.interval(LEVEL) for prediction in several]
            values = {
                "mean": [prediction.mean for prediction in several],
                "sd": [prediction.std for prediction in several],
                "lower_95": [low for low, _ in sides],
                "upper_95": [high for _, high in sides],
            }
            content |= {
                f"{name}{ending}": (("model", "value"), np.stack(rows), told)
                for name, rows in values.items()
            }
    return xr.Dataset(
        content,
        coords=columns | {"model": [cell.model for cell in cells]},
        attrs={
            "title": f"Predictions of {case.task}: {cells[0].replicate}",
            "source": f"mrgp {mrgp.__version__}",
        },
    )
