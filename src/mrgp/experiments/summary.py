"""Tables of an experiment: means over seeds, folds or sites."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

LABELS = ("variant", "model", "seed", "fold", "site", "n")
POOLED = ("mse", "mae", "crps", "nlpd", "coverage_", "width_")
"""Metrics, or beginnings of their names, that are means over values."""


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Aggregate over replicates: {variant: {model: {metric: {mean, sd, median, n}}}}.

    Scores of recorded values say how many values they are of, and have a `pooled` mean over all
    of these besides. Infinite scores, such as the mape of a site that reports a zero, are left out;
    `n` is the number of those that are in.

    >>> rows = [{"variant": "24h", "model": "mr-gp", "seed": s, "rmse": 1.0 + s} for s in (0, 2)]
    >>> summarise(rows)["24h"]["mr-gp"]["rmse"]["mean"]
    2.0
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
    rows = [row for row in rows if "n" in row]
    if not rows:
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


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


SHOWN = (
    ("rmse", "crps", "coverage_95", "rmse_clean", "coverage_95_clean", "width_95_clean"),
    ("mse", "rmse", "mae", "crps", "coverage_95", "width_95"),
    ("sigma_1", "sigma_1_sd", "sd_f", "coverage_95_clean", "weight", "r_hat", "ess"),
)
"""Metrics of a table, for what was simulated, recorded, and sampled."""

COSTS = {
    "cpu_seconds": "cpu s",
    "seconds": "wall s",
    "peak_mb": "peak MB",
    "predict_seconds": "predict s",
    "predict_peak_mb": "predict MB",
}


def table(
    summary: dict[str, Any], dear: Sequence[str] = ("cpu_seconds", "seconds")
) -> tuple[list[str], list[list[str]]]:
    """Return the header and rows of a summary's main metrics, mean ± sd, and of some costs.

    >>> scores = dict.fromkeys(SHOWN[1], {"mean": 2.0, "sd": 0.5, "n": 3})
    >>> header, rows = table({"variants": {"24h": {"mr-gp": scores}}}, dear=())
    >>> rows[0][:3]
    ['24h', 'mr-gp', '2.000 ± 0.500']
    """
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
        scores = [_spread(metrics[m]) for m in shown]
        whole = [f"{metrics['rmse']['pooled']:.3f}"] if pooled else []
        costs = [f"{metrics[c]['mean']:.2f}" if c in metrics else "" for c in dear]
        rows.append([variant, model, *scores, *whole, *costs, str(metrics[shown[0]]["n"])])
    header = ["variant", "model", *shown, *(["pooled rmse"] if pooled else [])]
    return [*header, *(COSTS[name] for name in dear), "n"], rows


def _spread(cell: Mapping[str, float]) -> str:
    return f"{cell['mean']:.3f}" + (f" ± {cell['sd']:.3f}" if cell["n"] > 1 else "")


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as CSV, with every column that any of them has."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=_columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
