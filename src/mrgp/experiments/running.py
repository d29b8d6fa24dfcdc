"""Run an experiment over its variants and replicates, and write what comes out."""

import csv
import functools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mrgp.datasets import Recording, Simulation
from mrgp.experiments.sampling import Sampled, draw, sample
from mrgp.experiments.scoring import score_by_site
from mrgp.experiments.spec import Experiment, ModelSpec
from mrgp.inference import Fit, Progress, Silent

LABELS = ("variant", "model", "seed", "fold", "site", "n")
POOLED = ("mse", "mae", "crps", "nlpd", "coverage_", "width_")
"""Metrics, or beginnings of their names, that are means over values."""


class Replicate(NamedTuple):
    """One seed, fold or site of one variant."""

    variant: str
    noun: str
    number: int
    label: Any
    load: Callable[[], Simulation | Recording]
    timed: bool
    sampler: dict[str, Any] | None

    def __str__(self) -> str:
        return f"{self.variant}, {self.noun} {self.label}"


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
    replicates: seeds, folds or sites. What was recorded has, beside the mean over folds or sites,
    the `pooled` one over all values held out. With `out`, scores by replicate (CSV) and the summary
    (JSON, Markdown) are written to `out/name`.
    """
    start = time.perf_counter()
    progress = progress or Silent()
    small = experiment.quick if quick else None
    models = experiment.choose("models", model_names or (small and small.models))
    replicates = _replicates(experiment, variants, seeds, quick)
    progress.start(experiment.name, len(replicates) * len(models))
    rows: list[dict[str, Any]] = []
    sampled: dict[str, tuple[Any, dict[str, Sampled]]] = {}
    fits, last = 0, dict[str, Fit | None]()
    for replicate in replicates:
        case = replicate.load()
        for model in models:
            progress.update(fits, f"{replicate}, {model}")
            scores, chains, made = _score(
                experiment.models[model], case, replicate, last.get(model)
            )
            last[model] = made
            label = {"variant": replicate.variant, "model": model, replicate.noun: replicate.label}
            rows += [label | row for row in scores]
            if chains is not None:
                name = f"{replicate.variant}-{replicate.noun}-{replicate.label}"
                sampled.setdefault(name, (case, {}))[1][model] = chains
            fits += 1
    progress.finish(f"{fits} fits scored")
    summary = {
        "experiment": experiment.name,
        "variants": summarise(rows),
        "seconds": time.perf_counter() - start,
    }
    if out is not None:
        write(out / experiment.name, rows, summary)
        for name, (case, by_model) in sampled.items():
            draw(out / experiment.name / f"{name}.png", case, by_model)
    return summary


def _replicates(
    experiment: Experiment,
    variants: Sequence[str] | None,
    seeds: Sequence[int] | None,
    quick: bool,
) -> list[Replicate]:
    """Return what is to be run: the replicates asked for, of all variants asked for."""
    small = experiment.quick if quick else None
    if seeds is None:
        count = small.seeds if small else experiment.seeds
        seeds = None if count is None else range(count)
    found = []
    for variant in experiment.choose("variants", variants or (small and small.variants)):
        settings = dict(experiment.variants[variant])
        sampler = settings.pop("sampler", None)
        if sampler is not None and small is not None:
            sampler = sampler | (small.sampler or {})
        known = experiment.replicates
        for place, (number, label) in enumerate(known.choose(seeds, settings).items()):
            timed = experiment.timed is None or place < experiment.timed
            load = functools.partial(known.load, label, **settings)
            found.append(Replicate(variant, known.noun, number, label, load, timed, sampler))
    return found


def _score(
    spec: ModelSpec, case: Simulation | Recording, replicate: Replicate, earlier: Fit | None
) -> tuple[list[dict[str, Any]], Sampled | None, Fit | None]:
    """Fit or sample one model; return rows of scores, its chains if it has any, or its fit.

    Folds of recorded data share what depends on none of the values held out: parts of an earlier
    fit are taken over. Simulations share nothing.
    """
    if replicate.sampler is None or not isinstance(case, Simulation):
        shared = earlier if isinstance(case, Recording) else None
        rows, made = score_by_site(
            spec, case, replicate.number, timed=replicate.timed, earlier=shared
        )
        return rows, None, made
    scores, chains = sample(spec, case, replicate.number, replicate.sampler)
    return [dict(scores)], chains, None


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Aggregate over replicates: {variant: {model: {metric: {mean, sd, median, n}}}}.

    Scores of recorded values say how many values they are of, and have a `pooled` mean over all
    of these besides. Infinite scores, such as the mape of a site that reports a zero, are left out;
    `n` is the number of those that are in.
    """
    summary: dict[str, Any] = {}
    for variant, model, mine in _groups(rows):
        metrics = summary.setdefault(variant, {}).setdefault(model, {})
        for metric in _columns(mine):
            if metric not in LABELS:
                metrics[metric] = _cell([r[metric] for r in mine if metric in r])
        for metric, value in _pool(mine).items():
            metrics[metric]["pooled"] = value
    return summary


def _cell(values: Sequence[float]) -> dict[str, float]:
    kept = [value for value in values if np.isfinite(value)] or list(values)
    sd = float(np.std(kept, ddof=1)) if len(kept) > 1 else 0.0
    return {
        "mean": float(np.mean(kept)),
        "sd": sd,
        "median": float(np.median(kept)),
        "n": len(kept),
    }


def _pool(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return means over all values that rows are of, where rows say how many that is."""
    if not all("n" in row for row in rows):
        return {}
    counts = np.array([row["n"] for row in rows], np.float64)
    shared = [m for m in _columns(rows) if m.startswith(POOLED) and all(m in r for r in rows)]
    pooled = {m: float(counts @ [row[m] for row in rows] / counts.sum()) for m in shared}
    return pooled | ({"rmse": pooled["mse"] ** 0.5} if "mse" in pooled else {})


def _groups(
    rows: Sequence[dict[str, Any]],
) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    for variant, model in dict.fromkeys((r["variant"], r["model"]) for r in rows):
        yield variant, model, [r for r in rows if (r["variant"], r["model"]) == (variant, model)]


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
    pooled = all("pooled" in metrics[shown[0]] for *_, metrics in cells)
    rows = []
    for variant, model, metrics in cells:
        scores = [f"{metrics[m]['mean']:.3f} ± {metrics[m]['sd']:.3f}" for m in shown]
        whole = [f"{metrics['rmse']['pooled']:.3f}"] if pooled else []
        costs = [_cost(metrics, "cpu_seconds"), _cost(metrics, "seconds")]
        rows.append([variant, model, *scores, *whole, *costs, str(metrics[shown[0]]["n"])])
    header = ["variant", "model", *shown, *(["pooled rmse"] if pooled else [])]
    return [*header, "cpu s", "wall s", "n"], rows


def _cost(metrics: dict[str, Any], name: str) -> str:
    return f"{metrics[name]['mean']:.2f}" if name in metrics else ""


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
