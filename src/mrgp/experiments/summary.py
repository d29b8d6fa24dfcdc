"""Tables of an experiment: means over seeds, folds or sites."""

from collections.abc import Mapping, Sequence
from typing import Any

from mrgp.evaluation import tabulate
from mrgp.experiments.metering import COSTS, Cost

LABELS = ("variant", "model", "seed", "fold", "site")


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


SHOWN = (
    ("rmse", "crps", "coverage_95", "rmse_clean", "coverage_95_clean", "width_95_clean"),
    ("mse", "rmse", "mae", "crps", "coverage_95", "width_95"),
    ("sigma_1", "sigma_1_sd", "sd_f", "coverage_95_clean", "weight", "r_hat", "ess"),
)
"""Metrics of a table, for what was simulated, recorded, and sampled."""


def table(
    summary: dict[str, Any], dear: Sequence[Cost] = ("cpu_seconds", "seconds")
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


def as_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
