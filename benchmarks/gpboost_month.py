"""A month of London's NO2 at unseen sites: mrgp along time beside GPBoost.

June 2022, a quarter of the sites held out in each of three folds (`london_year`,
`unseen-sites-month`), without the types of sites; figures are means over the folds. GPBoost has a
space-time Matern-3/2 by Vecchia's approximation with 20 and 40 neighbours, with and without a
random effect for each site. Prints its measurements as JSON; `run.py` runs it with the right
environment.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from environments import peer_environment, peer_python

import mrgp
from mrgp.datasets import Case, london_year
from mrgp.experiments import find

HERE = Path(__file__).parent
PEER = HERE / "peers" / "gpboost_month.py"
MONTH = tuple((f"day 152, fold {fold}", "unseen-sites", 30) for fold in range(3))
QUICK = (("day 50, fold 0", "unseen-sites", 3),)
EVERY = 6
"""Of a quick run every sixth hour is taken."""
SETTINGS = {
    f"GPBoost, {neighbours} neighbours{', site effects' if effects else ''}": (neighbours, effects)
    for neighbours in (20, 40)
    for effects in (False, True)
}
MOST_TIME = 2.0
LONGEST = 600.0
"""The seconds that a setting of theirs may take; one that takes longer is not asked again."""


def case_of(fold: tuple[str, str, int], quick: bool) -> Case:
    """Return a fold of the month, or a few hours of three days."""
    case = london_year(*fold).bare
    if not quick:
        return case
    seen = case.data["sites"]
    few = seen[np.flatnonzero(seen.support.centres[:, 0] % EVERY == 0)]
    rows = np.flatnonzero(case.support.centres[:, 0] % EVERY == 0)
    return mrgp.datasets.Recording(
        mrgp.Dataset([few]), case.support[rows], case.y[rows], case.target, case.task
    )


def ours(case: Case) -> dict[str, float]:
    """Fit the network's kernel along time, and score it."""
    spec = find("london_year").models["mr-gp"]
    start = time.process_time()
    fit = spec.fit(case.data, 0)
    seconds = time.process_time() - start
    return {"cpu seconds": seconds} | scores(_predicted(fit, case), case.y)


def _predicted(fit: mrgp.Fit, case: Case) -> tuple[np.ndarray, np.ndarray]:
    found = mrgp.predict(fit, case.support, task=case.task, source=case.target, noise=True)
    return found.mean, found.variance


def theirs(case: Case, neighbours: int, effects: bool) -> tuple[dict[str, float], str]:
    """Fit one setting of GPBoost in an environment of its own, and score it."""
    seen = case.data["sites"].dropna()
    x, at = seen.support.centres, case.support.centres
    sites = np.unique(np.concatenate([x, at])[:, 1:], axis=0, return_inverse=True)[1].reshape(-1)
    given = {"x": x, "y": seen.y, "at": at, "site": sites[: len(x)], "site_at": sites[len(x) :]}
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("seen.npz", "found.npz")]
        np.savez(files[0], **given)
        way = [str(neighbours), "effects" if effects else "plain"]
        command = [peer_python("gpboost"), PEER, *files, *way]
        done = subprocess.run(
            command,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env=peer_environment(),
            timeout=LONGEST,
        )
        told, found = json.loads(done.stdout.splitlines()[-1]), np.load(files[1])
        moments = found["mean"], found["variance"]
    return {"cpu seconds": told["cpu seconds"]} | scores(moments, case.y), told["version"]


def scores(moments: tuple[np.ndarray, np.ndarray], y: np.ndarray) -> dict[str, float]:
    """Score Gaussian predictions."""
    from scipy.stats import norm

    mean, sd = moments[0], np.sqrt(moments[1])
    z = (y - mean) / sd
    crps = sd * (z * (2.0 * norm.cdf(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi))
    inside = np.abs(z) <= norm.ppf(0.975)
    return {
        "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
        "crps": float(crps.mean()),
        "coverage_95": float(inside.mean()),
    }


def measure(quick: bool) -> dict[str, Any]:
    """Fit ours and, at full size, every setting of theirs, fold by fold."""
    cases = [case_of(fold, quick) for fold in (QUICK if quick else MONTH)]
    folds, versions, asked = [], {}, {} if quick else dict(SETTINGS)
    for case in cases:
        rows = {"mrgp": ours(case)}
        print("mrgp", rows["mrgp"], file=sys.stderr)
        for name, setting in list(asked.items()):
            try:
                rows[name], versions["gpboost"] = theirs(case, *setting)
            except subprocess.SubprocessError as error:
                # A setting that ends without an answer is no peer; the others are.
                print(name, "gave no answer:", error, file=sys.stderr)
                del asked[name]
            else:
                print(name, rows[name], file=sys.stderr)
        folds.append(rows)
    rows = _means(folds)
    sizes = {
        "values": sum(len(case.data["sites"].dropna()) for case in cases),
        "held out": sum(len(case.y) for case in cases),
    }
    return {
        "sizes": sizes,
        "rows": rows,
        "folds": folds,
        "versions": versions,
        "requirements": [] if quick else _wanted(rows),
    }


def _means(folds: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Average over the folds, for those that answered in every one."""
    names = [name for name in folds[0] if all(name in fold for fold in folds)]
    return {
        name: {
            what: float(np.mean([fold[name][what] for fold in folds])) for what in folds[0][name]
        }
        for name in names
    }


def _wanted(rows: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """Compare with the best setting of theirs, by rmse."""
    ours = rows["mrgp"]
    peers = (row for name, row in rows.items() if name != "mrgp")
    best = min(peers, key=lambda row: row["rmse"])
    limits = {"rmse": 1.0, "crps": 1.0, "cpu seconds": MOST_TIME}
    return [
        {
            "what": f"{name} over the best of GPBoost",
            "unit": "",
            "measured": ours[name] / best[name],
            "most": most,
        }
        for name, most in limits.items()
    ]


def main(arguments: list[str]) -> None:
    """Measure, at full size or a small one without the peer."""
    if not Path(os.environ.get("MRGP_DATA") or "-").is_dir():
        raise SystemExit("gpboost_month reads real data: set MRGP_DATA to their folder.")
    print(json.dumps(measure("--quick" in arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
