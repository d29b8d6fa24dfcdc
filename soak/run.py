"""Try to break everything, and say what came of it: `make soak`, or `make soak-quick` in minutes.

Parts run a few at a time, each in processes of its own, so that one that hangs or dies is found
and the rest goes on. `--page` writes the figures into the page "What has been tried".
"""

import argparse
import json
import os
import secrets
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "tried.md"
BEGIN, END = "<!-- figures: {} -->", "<!-- end of figures: {} -->"
READERS = ("csv", "parquet", "netcdf-3", "netcdf-4", "zarr", "geojson", "geopackage", "shapefile")
READERS += ("configuration", "saved fit", "journal", "aurn", "cams", "laqn records", "laqn sites")
READERS += ("--grid",)
COMMANDS = ("fit", "predict", "predict, zarr", "predict, tiled nc", "predict, tif", "data")
COMMANDS += ("report", "run")
QUICKLY = ("fit", "predict, zarr")
RARE = {"fit, auto": 5}
"""Commands whose kills take long, and how many there are in a whole soak."""

MODELS = ("exact", "affine", "collapsed", "svgp", "markov", "vbagg", "center-point")
MODELS += ("mr-gprn, constant weights", "mr-gprn", "cascade", "mr-dgp")
CALIBRATED = {"MR-GP, exact": 200, "MR-GP, collapsed": 200, "MR-GP, svgp": 200}
CALIBRATED |= {"MR-GP, markov": 200, "MR-GPRN, constant weights": 100}
CALIBRATED |= {"the same, weights estimated": 100, "MR-GPRN": 50, "MR-DGP": 50}
MEANT = (*list(CALIBRATED)[:5], "MR-GPRN")
"""Whose intervals are to hold; of the others the page says by how much they fall short."""

QUICK = 0.003
HEADINGS = ["tried", "inputs", "answered", "told in a sentence", "wrong", "slowest", "memory"]


def plan(share, seed):
    """Return the scripts to run with their arguments, for a share of all that the soak tries."""

    def some(count):
        return max(1, round(share * count))

    quick = share <= QUICK
    parts = [("readers.py", [kind, some(10_000), seed]) for kind in READERS]
    commands = QUICKLY if quick else COMMANDS
    parts += [("kills.py", [name, some(50), seed]) for name in commands]
    parts += [("kills.py", [name, some(n), seed]) for name, n in RARE.items() if not quick]
    parts += [("writers.py", [name, max(10, some(150)), seed]) for name in ("two", "full")]
    parts += [("writers.py", ["read-only", 1, seed])]
    models = MODELS[:1] if quick else MODELS
    parts += [("hostile.py", [name, 2 if quick else 1]) for name in models]
    return [*parts, ("machine.py", [some(2000)])]


def tried(script, arguments, limit):
    """Run a script, and return what it found, or that it never came to an end."""
    what = " ".join(map(str, [script.removesuffix(".py"), *arguments]))
    lost = {"part": script, "what": what, "inputs": 0, "answered": 0, "told": 0}
    lost |= {"slowest": 0.0, "bytes": 0.0}
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return lost | {"wrong": [f"no end within {limit} s"]}
    except (IndexError, ValueError):
        return lost | {"wrong": [f"ended with {done.returncode}: {done.stderr[-300:]}"]}


def soak(share, seed, jobs):
    """Run all parts, some at a time, and yield what they have found so far."""
    found, limit = [], 300 if share <= QUICK else 3600
    pool = ThreadPoolExecutor(jobs)
    several = [pool.submit(tried, *part, limit) for part in plan(share, seed)]
    for waited in several:
        one = waited.result()
        found.append(one)
        counted = f"{one['inputs']:6} tried, {len(one['wrong'])} wrong"
        print(f"{one['part']:10} {one['what']:45} {counted}")
        for text in one["wrong"][:5]:
            print(f"    {text}")
        sys.stdout.flush()
        yield found


def calibrate(quick, seed):
    """Run simulation-based calibration, and return its table."""
    found = {}
    for name, count in CALIBRATED.items():
        if quick and name != "MR-GP, exact":
            continue
        one = tried("calibration.py", [name, 40 if quick else count, seed], 3000)
        found[name] = one.get("found", {})
        print(f"calibration of {name}: {one.get('found', one)}", flush=True)
    return found


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def soak_table(found):
    """Return what was tried, as a table."""
    rows = []
    for one in found:
        numbers = [one["inputs"], one["answered"], one["told"], len(one["wrong"])]
        size = f"{one['bytes'] / 1e9:.2f} GB" if one["bytes"] else ""
        plain = one["part"] in ("writers", "api")
        label = one["what"] if plain else f"{one['part']}: {one['what']}"
        rows.append([label, *map("{:,}".format, numbers), f"{one['slowest']:.1f} s", size])
    return table(HEADINGS, rows)


def calibration_table(found):
    """Return coverage by model and kind of question."""
    rows = [
        [
            name,
            what,
            one["replicates"],
            *(f"{one[f'coverage_{level}']:.2f}" for level in (50, 80, 95)),
            f"{one['uniform_p']:.2f}",
            "yes" if one["holds"] else "no",
        ]
        for name, several in found.items()
        for what, one in several.items()
    ]
    levels = [f"{level} % holds" for level in (50, 80, 95)]
    return table(["model", "of", "replicates", *levels, "p of uniform ranks", "in its band"], rows)


def write(name, text):
    """Put a table in its place on the page."""
    page, begin, end = PAGE.read_text(), BEGIN.format(name), END.format(name)
    head, _, rest = page.partition(begin)
    PAGE.write_text(f"{head}{begin}\n\n{text}\n{end}{rest.partition(end)[2]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="minutes instead of an hour")
    parser.add_argument("--share", type=float, default=1.0, help="of all that the soak tries")
    parser.add_argument("--calibrate", action="store_true", help="calibration alone")
    parser.add_argument("--page", action="store_true", help="write the figures into the page")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--seed", type=int, default=None, help="default: a new one")
    asked = parser.parse_args()
    seed = secrets.randbelow(10**6) if asked.seed is None else asked.seed
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    print(f"seed {seed}")
    start, wrong = time.perf_counter(), 0
    if not asked.calibrate:
        share = QUICK if asked.quick else asked.share
        for found in soak(share, seed, asked.jobs):
            wrong = sum(len(one["wrong"]) for one in found)
            if asked.page:
                about = f"Seed {seed}, {share:.3g} of a whole soak, in"
                took = f"{about} {(time.perf_counter() - start) / 60:.0f} minutes.\n\n"
                write("soak", took + soak_table(found))
    if asked.calibrate or asked.quick:
        table = calibrate(asked.quick, seed)
        held = [one["holds"] for name in table if name in MEANT for one in table[name].values()]
        wrong += held.count(False)
        if asked.page and asked.calibrate:
            write("calibration", calibration_table(table))
    print(f"{time.perf_counter() - start:.0f} s, {wrong} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
