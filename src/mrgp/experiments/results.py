"""What comes of a run: tables, settings and versions, and predictions as NetCDF."""

import contextlib
import datetime
import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import mrgp
from mrgp._drafts import draft, write_text
from mrgp.evaluation import tabulate
from mrgp.experiments.design import Cell, Plan, slug
from mrgp.experiments.metering import COSTS, Cost
from mrgp.experiments.scoring import LATENT, NOISY
from mrgp.experiments.spec import Experiment
from mrgp.experiments.store import Store

LABELS = ("variant", "model", "seed", "fold", "site", "start", "draw", "failed")
SHOWN = (
    ("rmse", "crps", "coverage_95", "rmse_clean", "coverage_95_clean", "width_95_clean"),
    ("mse", "rmse", "mae", "crps", "coverage_95", "width_95"),
    ("sigma_1", "sigma_1_sd", "sd_f", "coverage_95_clean", "weight", "r_hat", "ess"),
)
"""Metrics of a table, for what was simulated, recorded, and sampled."""

LEVEL = 0.95
LIBRARIES = ("mrgp", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "blackjax")


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Tabulate over replicates: {variant: {model: {metric: {mean, sd, median, n}}}}.

    Scores of recorded values say how many values they are of, and have a `pooled` mean over all
    of these besides.

    >>> rows = [{"variant": "24h", "model": "mr-gp", "seed": s, "rmse": 1.0 + s} for s in (0, 2)]
    >>> summarise(rows)["24h"]["mr-gp"]["rmse"]["mean"]
    2.0
    """
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        groups.setdefault(row["variant"], {}).setdefault(row["model"], []).append(row)
    return {
        variant: {model: tabulate(mine, LABELS) for model, mine in by_model.items()}
        for variant, by_model in groups.items()
    }


def table(
    summary: dict[str, Any],
    dear: Sequence[Cost] = ("cpu_seconds", "seconds"),
    shown: Sequence[str] | None = None,
) -> tuple[list[str], list[list[str]]]:
    """Return the header and rows of a summary's main metrics, mean ± sd, and of some costs.

    `shown` are other metrics than the usual ones; those that a variant has not are left blank.

    >>> scores = dict.fromkeys(SHOWN[1], {"mean": 2.0, "sd": 0.5, "n": 3})
    >>> header, rows = table({"variants": {"24h": {"mr-gp": scores}}}, dear=())
    >>> rows[0][:3]
    ['24h', 'mr-gp', '2.000 ± 0.500']
    """
    variants = summary["variants"].items()
    cells = [(variant, *item) for variant, by_model in variants for item in by_model.items()]
    shown = shown or next(s for s in SHOWN if all(m.keys() >= set(s) for *_, m in cells))
    pooled = all("pooled" in metrics[shown[0]] for *_, metrics in cells)
    rows = []
    for variant, model, metrics in cells:
        scores = [_spread(metrics[m]) if m in metrics else "" for m in shown]
        whole = [f"{metrics['rmse']['pooled']:.3f}"] if pooled else []
        costs = [f"{metrics[c]['mean']:.2f}" if c in metrics else "" for c in dear]
        rows.append([variant, model, *scores, *whole, *costs, str(metrics[shown[0]]["n"])])
    header = ["variant", "model", *shown, *(["pooled rmse"] if pooled else [])]
    return [*header, *(COSTS[name] for name in dear), "n"], rows


def _spread(cell: Mapping[str, float]) -> str:
    return f"{cell['mean']:.3f}" + (f" ± {cell['sd']:.3f}" if cell["n"] > 1 else "")


def as_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def write_tables(
    folder: Path,
    experiment: Experiment,
    rows: Sequence[dict[str, Any]],
    costs: Sequence[dict[str, Any]],
) -> None:
    """Write scores and costs of each replicate, and the summary of the scores."""
    summary = {"experiment": experiment.name, "variants": summarise(rows)}
    for file, content in (("scores.csv", rows), ("costs.csv", costs)):
        with draft(folder / file) as named:
            pd.DataFrame(content).to_csv(named, index=False, lineterminator="\n")
    _write_json(folder / "summary.json", summary)
    write_text(folder / "summary.md", as_markdown(*table(summary, (), experiment.shown)))


def write_settings(
    folder: Path, experiment: Experiment, cells: Sequence[Cell], quick: bool
) -> None:
    """Write what was run, with every setting, and by which versions on what machine."""
    variants = {cell.variant: experiment.variants[cell.variant] for cell in cells}
    models = {cell.model: experiment.models[cell.model] for cell in cells}
    ran = experiment.model_copy(update={"variants": variants, "models": models})
    replicates = list(dict.fromkeys(cell.replicate for cell in cells))
    run = {"run": {"quick": quick, "replicates": replicates}}
    _write_json(folder / "config.json", ran.model_dump(mode="json") | run)
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
    write_text(file, json.dumps(content, indent=1) + "\n")


def write_predictions(folder: Path, replicates: Plan, store: Store) -> None:
    """Write one file for each replicate: what every model predicts of the values held out.

    Along `value` are the values held out, with the middle of each one's region as coordinates.
    """
    folder.mkdir(exist_ok=True)
    for cells in replicates:
        first = cells[0]
        name = slug(first.variant, first.noun, first.label)
        with draft(folder / f"{name}.nc") as named:
            predictions_of(cells, store).to_netcdf(named, engine="scipy")


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
    columns["model"] = [cell.model for cell in cells]
    title = f"Predictions of {case.task}: {cells[0].replicate}"
    return xr.Dataset(content, columns, {"title": title, "source": f"mrgp {mrgp.__version__}"})
