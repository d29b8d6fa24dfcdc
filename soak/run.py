"""Try to break everything, and say what came of it: `make soak`, or `make soak-quick` in minutes.

Parts run a few at a time, the longest first, each in processes of its own, so that one that hangs
or dies is found and the rest goes on. What a part has found is kept in a file of rows as soon as
it is known: `--only readers,kills` runs some parts, at any time, and `--page` alone writes the
figures of all rows into the page "What has been tried". `--anew` forgets the
rows of the parts that it runs.
"""

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from judging import judged
from page import about, calibration_table, soak_table, write
from rows import KEPT, commit, keep, kept, merged

HERE = Path(__file__).parent
READERS = ("netcdf-4", "cams", "zarr", "geopackage", "shapefile", "geojson", "--grid", "parquet")
READERS += ("csv", "aurn", "netcdf-3", "laqn records", "laqn sites", "configuration")
READERS += ("journal", "saved fit")
COMMANDS = ("report", "run", "fit", "predict, zarr", "predict, tiled nc", "predict, tif")
COMMANDS += ("predict", "data")
QUICKLY = ("fit", "predict, zarr", "data", "report", "run")
RARE = {"fit, auto": 5}
"""Commands whose kills take long, and how many there are in a whole soak."""

MODELS = ("mr-gprn", "mr-dgp", "svgp", "mr-gprn, constant weights", "affine", "cascade")
MODELS += ("collapsed", "vbagg", "center-point", "exact", "markov")
FAST = ("exact", "collapsed")
MACHINES = 4
"""How many processes share the sequences of calls."""

CALIBRATED = {"MR-DGP": 50, "MR-GPRN": 50, "MR-GP, svgp": 200, "MR-GPRN, constant weights": 100}
CALIBRATED |= {"the same, weights estimated": 100, "MR-GP, collapsed": 200, "MR-GP, exact": 200}
CALIBRATED |= {"MR-GP, markov": 200}
FEW = {"MR-GP, collapsed, few inducing": 200, "MR-GP, svgp, few inducing": 200}
ORDER = ("MR-GP, exact", "MR-GP, collapsed", "MR-GP, svgp", *FEW, "MR-GP, markov")
ORDER += ("MR-GPRN, constant weights", "the same, weights estimated", "MR-GPRN", "MR-DGP")
MEANT = (*ORDER[:3], *ORDER[5:7], "MR-GPRN")
"""Whose intervals are to hold; of the others the page says by how much they fall short."""

QUICK = 0.003
PARTS = ("machine", "kills", "hostile", "readers", "writers")


def plan(share, seed, only=PARTS):
    """Return the scripts to run with their arguments, for a share of all that the soak tries."""

    def some(count):
        return max(1, round(share * count))

    quick = share <= QUICK
    counts = [len(part) for part in divided(24 if quick else some(2000), 2 if quick else MACHINES)]
    parts = [("machine.py", [count, seed + i]) for i, count in enumerate(counts)]
    parts += [("kills.py", [name, n, seed]) for name, n in RARE.items() if not quick]
    parts += [("kills.py", [name, some(50), seed]) for name in (QUICKLY if quick else COMMANDS)]
    models = FAST if quick else MODELS
    parts += [("hostile.py", [name, 8 if quick else 1]) for name in models]
    parts += [("readers.py", [kind, some(10_000), seed]) for kind in READERS]
    parts += [("writers.py", [name, max(10, some(150)), seed]) for name in ("full", "two")]
    parts += [("writers.py", ["read-only", 1, seed])]
    return [part for part in parts if part[0].removesuffix(".py") in only]


def divided(count, parts):
    """Share a number of things out among parts.

    >>> [len(part) for part in divided(10, 4)]
    [3, 3, 2, 2]
    """
    return [range(i, count, parts) for i in range(min(parts, count))]


def tried(script, arguments, limit):
    """Run a script, and return the last row that it told, whatever became of it."""
    what = " ".join(map(str, [script.removesuffix(".py"), *arguments]))
    row = {"part": script.removesuffix(".py"), "what": what, "inputs": 0, "answered": 0, "told": 0}
    row |= {"slowest": 0.0, "bytes": 0.0, "wrong": []}
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    began, ending = time.perf_counter(), None
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        started = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)
        try:
            if started.wait(limit):
                err.seek(0)
                ending = f"ended with {started.returncode}: {err.read()[-300:]}"
        except subprocess.TimeoutExpired:
            ending = f"no end within {limit} s"
            # With all that it started.
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
        out.seek(0)
        for line in out.read().splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
    if ending is None and not row["inputs"]:
        ending = "ended without a word of what it found"
    if ending is not None:
        row = row | {"wrong": [*row["wrong"], ending]}
    return row | {"took": time.perf_counter() - began}


def run_all(parts, seed, jobs, limit, file):
    """Run parts, some at a time; keep the row of each as it comes, and return all."""
    stamp, found = commit(), []

    def one_of(part):
        row = tried(*part, limit) | {"seed": seed, "commit": stamp}
        keep(row, file)
        counted = f"{row['inputs']:6} tried, {len(row['wrong'])} wrong, {row['took']:.0f} s"
        lines = [f"{row['part']:11} {row['what']:45} {counted}", *row["wrong"][:5]]
        print("\n    ".join(lines), flush=True)
        found.append(row)

    with ThreadPoolExecutor(jobs) as pool:
        for waited in [pool.submit(one_of, part) for part in parts]:
            waited.result()
    return found


def calibrations(quick, seed, models):
    """Return the scripts of simulation-based calibration, with their arguments."""
    several = {"MR-GP, exact": 40} if quick else CALIBRATED | FEW
    chosen = {name: n for name, n in several.items() if not models or name in models}
    return [("calibration.py", [name, count, seed]) for name, count in chosen.items()]


def forget(parts, file):
    """Leave out the rows that are kept of parts that are about to be run again."""
    again = {script.removesuffix(".py").replace("machine", "api") for script, _ in parts}
    models = {arguments[0] for script, arguments in parts if script == "calibration.py"}
    left = [
        row
        for row in kept(file)
        if row["part"] not in again or (row["part"] == "calibration" and row["what"] not in models)
    ]
    file.unlink(missing_ok=True)
    for row in left:
        keep(row, file)


def faults(found):
    """Count what is wrong in rows: inputs, parts that came to no end, intervals that hold not."""
    wrong = sum(len(row["wrong"]) for row in found)
    for row in (row for row in found if row["part"] == "calibration"):
        ranks = row.get("ranks", {})
        short = row["what"] in MEANT and not all(judged(r)["holds"] for r in ranks.values())
        wrong += short or not ranks
    return wrong


def make_page(file):
    """Write the tables of all rows into the page; return how many faults they have."""
    several = kept(file)
    found = merged(several)
    soaked = sorted(
        (one for one in found if one["part"] != "calibration"),
        key=lambda one: (one["part"] == "api", one["part"] == "hostile", one["part"] == "writers"),
    )
    if soaked:
        rows = [row for row in several if row["part"] != "calibration"]
        write("soak", about(soaked, rows) + soak_table(soaked))
    known = {one["what"]: one for one in found if one["part"] == "calibration"}
    ordered = [known[name] for name in ORDER if name in known and "ranks" in known[name]]
    if ordered:
        rows = [row for row in several if row["part"] == "calibration"]
        notes = "".join(f"{note}\n\n" for one in ordered for note in one.get("notes", [])[-1:])
        write("calibration", about(ordered, rows) + calibration_table(ordered) + f"\n{notes}")
    return faults(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="minutes instead of an hour")
    parser.add_argument("--share", type=float, default=1.0, help="of all that the soak tries")
    parser.add_argument("--only", default="", help=f"some of {', '.join(PARTS)}, between commas")
    parser.add_argument("--calibrate", action="store_true", help="calibration alone")
    parser.add_argument("--models", default="", help="of a calibration, between semicolons")
    parser.add_argument("--page", action="store_true", help="write the figures into the page")
    parser.add_argument("--anew", action="store_true", help="forget the rows that are kept")
    parser.add_argument("--rows", type=Path, default=KEPT, help="the file of rows")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--seed", type=int, default=None, help="default: a new one")
    asked = parser.parse_args()
    only = [name for name in asked.only.split(",") if name]
    if unknown := set(only) - set(PARTS):
        parser.error(f"--only takes {', '.join(PARTS)}; got {', '.join(sorted(unknown))}")
    models = [name.strip() for name in asked.models.split(";") if name.strip()]
    if unknown := set(models) - set(ORDER):
        parser.error(f"--models takes {'; '.join(ORDER)}; got {'; '.join(sorted(unknown))}")
    some = only or asked.calibrate or asked.quick
    whole = not some and (asked.anew or not asked.page)
    seed = secrets.randbelow(10**6) if asked.seed is None else asked.seed
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parts, share = [], QUICK if asked.quick else asked.share
    if whole or only or (asked.quick and not asked.calibrate):
        parts += plan(share, seed, only or PARTS)
    if asked.calibrate or (asked.quick and not only):
        parts += calibrations(asked.quick, seed, models)
    if asked.anew:
        forget(parts, asked.rows)
    print(f"seed {seed}, {len(parts)} parts, rows in {asked.rows}", flush=True)
    began = time.perf_counter()
    wrong = faults(run_all(parts, seed, asked.jobs, 300 if asked.quick else 3600, asked.rows))
    if asked.page:
        wrong = max(wrong, make_page(asked.rows))
    print(f"{time.perf_counter() - began:.0f} s, {wrong} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
