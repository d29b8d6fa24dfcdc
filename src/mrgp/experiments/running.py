"""Run an experiment over its variants and replicates, and write what comes out."""

import csv
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrgp.datasets import Simulation
from mrgp.experiments.sampling import Sampled, draw, sample
from mrgp.experiments.scoring import score
from mrgp.experiments.spec import Experiment
from mrgp.inference import Progress, Silent

LABELS = ("variant", "model", "seed", "fold", "site")


def run(
    experiment: Experiment,
    *,
    seeds: Sequence[int] | None = None,
    variants: Sequence[str] | None = None,
    model_names: Sequence[str] | None = None,
    quick: bool = False,
    out: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run an experiment and return its summary.

    The summary has, for each variant, model and metric, the mean, sd, median and number of
    replicates: seeds, folds or sites. With `out`, scores by replicate (CSV) and the summary (JSON,
    Markdown) are written to `out/name`.
    """
    start = time.perf_counter()
    progress = progress or Silent()
    small = experiment.quick if quick else None
    chosen_variants = experiment.choose("variants", variants or (small and small.variants))
    small_sampler = small.sampler if small else None
    chosen_models = experiment.choose("models", model_names or (small and small.models))
    if seeds is None:
        count = small.seeds if small else experiment.seeds
        seeds = None if count is None else range(count)
    noun, load, _ = experiment.replicates
    replicates = experiment.replicates.choose(seeds)
    progress.start(experiment.name, len(chosen_variants) * len(replicates) * len(chosen_models))
    rows: list[dict[str, Any]] = []
    sampled: dict[str, tuple[Any, dict[str, Sampled]]] = {}
    for variant in chosen_variants:
        settings = dict(experiment.variants[variant])
        sampler = settings.pop("sampler", None)
        for place, (number, label) in enumerate(replicates.items()):
            case = load(label, **settings)
            timed = experiment.timed is None or place < experiment.timed
            for model in chosen_models:
                progress.update(len(rows), f"{variant}, {noun} {label}, {model}")
                spec = experiment.models[model]
                if sampler is None or not isinstance(case, Simulation):
                    scores = score(spec, case, number, timed=timed)
                else:
                    scores, chains = sample(spec, case, number, sampler | (small_sampler or {}))
                    sampled.setdefault(f"{variant}-{noun}-{label}", (case, {}))[1][model] = chains
                rows.append({"variant": variant, "model": model, noun: label} | scores)
    progress.finish(f"{len(rows)} fits scored")
    summary = {
        "experiment": experiment.name,
        "variants": summarise(rows),
        "seconds": time.perf_counter() - start,
    }
    if out is not None:
        write(out / experiment.name, rows, summary)
        for label, (case, by_model) in sampled.items():
            draw(out / experiment.name / f"{label}.png", case, by_model)
    return summary


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Aggregate over replicates: {variant: {model: {metric: {mean, sd, median, n}}}}."""
    summary: dict[str, Any] = {}
    for variant, model, metric, values in _groups(rows):
        sd = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        cell = {
            "mean": float(np.mean(values)),
            "sd": sd,
            "median": float(np.median(values)),
            "n": len(values),
        }
        summary.setdefault(variant, {}).setdefault(model, {})[metric] = cell
    return summary


def _groups(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, str, list[float]]]:
    pairs = dict.fromkeys((r["variant"], r["model"]) for r in rows)
    for variant, model in pairs:
        mine = [r for r in rows if (r["variant"], r["model"]) == (variant, model)]
        for metric in _columns(mine):
            if metric not in LABELS:
                yield variant, model, metric, [r[metric] for r in mine if metric in r]


def _columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


SHOWN = (
    ("rmse", "crps", "coverage_95", "rmse_clean", "coverage_95_clean", "width_95_clean"),
    ("mse", "rmse", "mae", "crps", "coverage_95", "width_95"),
    ("sigma_1", "sigma_1_sd", "sd_f", "coverage_95_clean", "weight", "r_hat", "ess"),
)
"""Metrics of a table, for what was simulated, recorded, and sampled."""


def table(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the header and rows of a summary's main metrics, mean +- sd."""
    cells = [
        (variant, model, metrics)
        for variant, by_model in summary["variants"].items()
        for model, metrics in by_model.items()
    ]
    shown = next(
        known for known in SHOWN if all(m in metrics for *_, metrics in cells for m in known)
    )
    rows = []
    for variant, model, metrics in cells:
        scores = [f"{metrics[m]['mean']:.3f} ± {metrics[m]['sd']:.3f}" for m in shown]
        seconds, n = metrics["cpu_seconds"]["mean"], metrics[shown[0]]["n"]
        rows.append([variant, model, *scores, f"{seconds:.2f}", str(n)])
    return ["variant", "model", *shown, "cpu s", "n"], rows


def write(folder: Path, rows: Sequence[dict[str, Any]], summary: dict[str, Any]) -> None:
    """Write scores by replicate and the summary into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "scores.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=_columns(rows))
        writer.writeheader()
        writer.writerows(rows)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    header, cells = table(summary)
    lines = [header, ["---"] * len(header), *cells]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    (folder / "summary.md").write_text(text + "\n")
