"""What a run leaves in its folder: tables, settings and versions, and predictions as NetCDF."""

import contextlib
import datetime
import importlib.metadata
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import mrgp
from mrgp.experiments.design import Cell, slug
from mrgp.experiments.scoring import LATENT, NOISY
from mrgp.experiments.spec import Experiment
from mrgp.experiments.store import Store
from mrgp.experiments.summary import as_markdown, summarise, table

LEVEL = 0.95
LIBRARIES = ("mrgp", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "blackjax")


def write_tables(
    folder: Path, name: str, rows: Sequence[dict[str, Any]], costs: Sequence[dict[str, Any]]
) -> None:
    """Write scores and costs of each replicate, and the summary of the scores."""
    summary = {"experiment": name, "variants": summarise(rows)}
    for file, content in (("scores.csv", rows), ("costs.csv", costs)):
        pd.DataFrame(content).to_csv(folder / file, index=False, lineterminator="\n")
    _write_json(folder / "summary.json", summary)
    (folder / "summary.md").write_text(as_markdown(*table(summary, dear=())))


def write_settings(
    folder: Path, experiment: Experiment, cells: Sequence[Cell], quick: bool
) -> None:
    """Write what was run, with every setting, and by which versions on what machine."""
    content = experiment.model_dump(mode="json", exclude={"models", "variants"})
    config = content | {
        "run": {
            "quick": quick,
            "replicates": list(dict.fromkeys(cell.replicate for cell in cells)),
        },
        "variants": {cell.variant: experiment.variants[cell.variant] for cell in cells},
        "models": {c.model: experiment.models[c.model].model_dump(mode="json") for c in cells},
    }
    _write_json(folder / "config.json", config)
    versions = {
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    _write_json(folder / "versions.json", versions)


def _write_json(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=1) + "\n")


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
    if case.truth is not None:
        content["truth"] = ("value", case.truth, told)
    for kind, ending in ((NOISY, ""), (LATENT, "_clean")):
        if all(kind in by_kind for by_kind in found):
            several = [by_kind[kind] for by_kind in found]
            rows = [(p.mean, p.std, *p.interval(LEVEL)) for p in several]
            names = (f"{name}{ending}" for name in ("mean", "sd", "lower_95", "upper_95"))
            for name, values in zip(names, zip(*rows, strict=True), strict=True):
                content[name] = (("model", "value"), np.stack(values), told)
    return xr.Dataset(
        content,
        coords=columns | {"model": [cell.model for cell in cells]},
        attrs={
            "title": f"Predictions of {case.task}: {cells[0].replicate}",
            "source": f"mrgp {mrgp.__version__}",
        },
    )
