"""Models beside simple rules: ratios of scores, set by set, and what they come to."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrgp._drafts import draft, write_text
from mrgp.datasets.worlds import WITHOUT_STRUCTURE, WORLDS
from mrgp.experiments.results import as_markdown

Row = dict[str, Any]
SCORES = ("rmse", "crps")
WINDOWS = ("", "_day", "_window")
NEAR, PICKED_NEAR = 1.05, 1.02
CALIBRATED = {"": (0.90, 0.98), "_day": (0.85, 1.0), "_window": (0.85, 1.0)}
COST = "first_cpu_seconds"


def compare_with_rules(
    rows: Sequence[Row], costs: Sequence[Row], rules: Collection[str]
) -> list[Row]:
    """Return one row for each set and model, with ratios of its rmse and crps to those of rules.

    `best` is the rule with the least score on the values held out, one for each score; `picked` is
    the one that errs least at training places left out.

    >>> rule = {"variant": "a", "start": "0", "model": "mean", "rmse": 2.0, "crps": 1.0}
    >>> rows = [rule | {"cv_rmse": 2.5}, rule | {"model": "auto", "rmse": 1.0}]
    >>> compare_with_rules(rows, [], ["mean"])[0]["ratio_rmse"]
    0.5
    """
    spent = {_set(row) + (row["model"],): row.get(COST, np.nan) for row in costs}
    by_set: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_set.setdefault(_set(row), []).append(row)
    found = []
    for name, mine in by_set.items():
        simple = [row for row in mine if row["model"] in rules]
        if not simple:
            continue
        picked = min(simple, key=lambda row: row["cv_rmse"])
        best = {score: min(simple, key=lambda row, s=score: row[s]) for score in SCORES}
        for row in mine:
            if row["model"] not in rules:
                cost = spent.get((*name, row["model"]), np.nan)
                found.append(_margin(row, best, picked) | {COST: cost})
    return found


def _set(row: Row) -> tuple[str, str]:
    return row["variant"], _start(row)


def _start(row: Row) -> str:
    """Return what a row is of: where sets begin, or another kind of replicate."""
    return str(next((row[noun] for noun in ("start", "fold", "site", "seed") if noun in row), None))


def _margin(row: Row, best: dict[str, Row], picked: Row) -> Row:
    wanted = [f"{s}{w}" for w in WINDOWS for s in (*SCORES, "coverage_95")]
    kept = {"variant": row["variant"], "start": _start(row), "model": row["model"]}
    kept |= {name: row[name] for name in wanted if name in row}
    for score, rule in best.items():
        kept |= {f"best_{score}": rule["model"], f"ratio_{score}": row[score] / rule[score]}
    kept["picked"] = picked["model"]
    kept |= {f"picked_ratio_{score}": row[score] / picked[score] for score in SCORES}
    return kept | ({"failed": row["failed"]} if "failed" in row else {})


def verdicts(margins: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return, model by model, shares of sets, the worst of them, and geometric means of ratios.

    `near` is the share of sets on which a ratio to the best rule is at most 1.05, `picked_near`
    that on which the ratio to the picked one is at most 1.02; `coverage` that on which 0.90 to 0.98
    of the values lie in their 95 % intervals, and of means 0.85 to 1.

    >>> row = {"variant": "noise", "start": "0", "model": "auto", "coverage_95": 0.95}
    >>> ratios = {f"{r}_{s}": 1.04 for r in ("ratio", "picked_ratio") for s in ("rmse", "crps")}
    >>> found = verdicts([row | ratios])["auto"]
    >>> found["near_rmse"], found["picked_near_rmse"], found["coverage"]
    (1.0, 0.0, 1.0)
    """
    found: dict[str, dict[str, float]] = {}
    for model in dict.fromkeys(row["model"] for row in margins):
        mine = [row for row in margins if row["model"] == model]
        structured = [r for r in mine if r["variant"] in WORLDS.keys() - set(WITHOUT_STRUCTURE)]
        about = {"sets": float(len(mine))}
        for score in SCORES:
            ratio, picked = (_column(mine, f"{r}_{score}") for r in ("ratio", "picked_ratio"))
            about[f"near_{score}"] = float(np.mean(ratio <= NEAR))
            about[f"worst_{score}"] = float(ratio.max())
            about[f"mean_{score}"] = _geometric(ratio)
            about[f"picked_near_{score}"] = float(np.mean(picked <= PICKED_NEAR))
            if structured:
                about[f"structured_{score}"] = _geometric(_column(structured, f"ratio_{score}"))
        for window, (low, high) in CALIBRATED.items():
            share = _column(mine, f"coverage_95{window}")
            if len(share):
                about[f"coverage{window}"] = float(np.mean((low <= share) & (share <= high)))
        found[model] = about
    return found


def _column(rows: Sequence[Row], name: str) -> np.ndarray:
    return np.array([row[name] for row in rows if name in row])


def _geometric(ratios: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def told(margins: Sequence[Row]) -> list[str]:
    """Say where a rule wins, which fits failed, and what all sets come to.

    >>> row = {"variant": "noise", "start": "0", "model": "auto", "best_rmse": "mean"}
    >>> ratios = {f"{r}_{s}": 1.5 for r in ("ratio", "picked_ratio") for s in ("rmse", "crps")}
    >>> told([row | ratios | {"best_crps": "mean"}])[0]
    'noise 0: mean beats auto, whose rmse is 1.500 and crps is 1.500 times as large'
    """
    lines = []
    for row in margins:
        where = f"{row['variant']} {row['start']}"
        if "failed" in row:
            lines.append(f"{where}: {row['model']} failed: {row['failed']}")
        won = [score for score in SCORES if row[f"ratio_{score}"] > 1]
        if won:
            rules = " and ".join(dict.fromkeys(row[f"best_{score}"] for score in won))
            ratios = " and ".join(f"{score} is {row[f'ratio_{score}']:.3f}" for score in won)
            verb = "beat" if " and " in rules else "beats"
            lines.append(f"{where}: {rules} {verb} {row['model']}, whose {ratios} times as large")
    for model, about in verdicts(margins).items():
        figures = {name: value for name, value in about.items() if name != "sets"}
        listed = ", ".join(f"{name} {value:.3f}" for name, value in figures.items())
        lines.append(f"{model}, {about['sets']:g} sets: {listed}")
    return lines


def margins_table(margins: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the header and rows of a table of all sets and models.

    >>> margins_table([])[0][:3]
    ['set', 'start', 'model']
    """
    coverages = [f"coverage_95{window}" for window in WINDOWS]
    ratios = [f"{r}_{score}" for r in ("ratio", "picked_ratio") for score in SCORES]
    against = [f"{score} / {rule}" for rule in ("best", "picked") for score in SCORES]
    shares = ("in 95 %", "days", "windows")
    header = ["set", "start", "model", *SCORES, *shares, "best", "picked", *against, "cpu s"]
    body = []
    for row in margins:
        scores = [f"{row[s]:.4g}" for s in SCORES]
        shares = [f"{row[c]:.3f}" if c in row else "" for c in coverages]
        against = [f"{row[r]:.3f}" for r in ratios]
        names = [row["variant"], str(row["start"]), row["model"]]
        rules = [row["best_rmse"], row["picked"]]
        body.append([*names, *scores, *shares, *rules, *against, f"{row[COST]:.1f}"])
    return header, body


def write_margins(folder: Path, margins: Sequence[Row]) -> None:
    """Write the table, as CSV and in Markdown with what it comes to."""
    if not margins:
        return
    import pandas as pd

    with draft(folder / "margins.csv") as named:
        pd.DataFrame(margins).to_csv(named, index=False, lineterminator="\n")
    lines = "".join(f"- {line}\n" for line in told(margins))
    write_text(folder / "margins.md", f"{as_markdown(*margins_table(margins))}\n{lines}")
