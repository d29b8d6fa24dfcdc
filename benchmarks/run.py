"""Run benchmarks, print their tables, and keep their results: `python benchmarks/run.py --help`."""

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
RESULTS = HERE / "results"
NAMES = (
    "first_answer",
    "core_step",
    "network_step",
    "small_loop",
    "svgp_scale",
    "stored_rows",
    "counts",
    "predict_million",
    "map_killed",
    "largest",
    "clusters_million",
    "keeping_up",
    "along_time",
    "year",
    "gpboost_month",
)
RECORDED = {"gpboost_month"}
"""Those that read real data, from the folder that MRGP_DATA names."""
ACCELERATED = {"year"}
"""Those that are for an accelerator: on processors they run if named, or at small size."""
CORES = 2
BUSY = 0.5
PACKAGES = ("mrgp", "jax", "jaxlib", "numpy", "scipy")
# OpenBLAS threads spin while JAX works and slow it down many times over.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}


def limit_cores() -> int:
    """Keep this process and all it starts to the same few cores; return how many."""
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, cores)
    return len(cores)


def machine(cores: int) -> dict[str, Any]:
    """Describe the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    cpu = next(names, platform.machine())
    return {"cpu": cpu, "cores": os.cpu_count(), "cores used": cores}


def versions() -> dict[str, str]:
    """Return the versions of Python and the packages that do the work."""
    found = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version()} | found


def run(name: str, quick: bool, cores: int) -> dict[str, Any]:
    """Run one benchmark in a process of its own."""
    command = [sys.executable, HERE / f"{name}.py", *(["--quick"] if quick else [])]
    environment, load = os.environ | ENVIRONMENT, os.getloadavg()[0]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{name} failed.")
    measured = json.loads(done.stdout)
    for wanted in [*measured["requirements"], *measured.get("aims", [])]:
        wanted["holds"] = wanted["measured"] <= wanted["most"]
    about = {
        "name": name,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(cores) | {"load before": load},
        "versions": versions() | measured.pop("versions", {}),
    }
    return about | measured


def show(console: Console, result: dict[str, Any]) -> None:
    """Print what was measured, and which requirements hold."""
    sizes = ", ".join(f"{name} {size}" for name, size in result["sizes"].items())
    rows = result["rows"]
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    table = Table("", title=f"{result['name']}: {sizes}", title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    for name, row in rows.items():
        table.add_row(name, *(_number(row.get(column)) for column in columns))
    console.print(table)
    if (load := result["machine"]["load before"]) > BUSY:
        console.print(
            f"[yellow]The machine was busy (load {load:.1f}): run again when it is quiet.[/]"
        )
    for what, differences in result.get("agreement", {}).items():
        console.print(f"{what} agree to {max(differences.values()):.1e}: {', '.join(differences)}")
    for r in result["requirements"]:
        mark = "[green]holds[/]" if r["holds"] else "[red]does not hold[/]"
        measured = f"{_number(r['measured'])} (at most {r['most']:g}) {r['unit']}"
        console.print(f"{r['what']}: {measured}, {mark}")
    for aim in result.get("aims", []):
        mark = "[green]reached[/]" if aim["holds"] else "[yellow]not reached[/]"
        console.print(f"{aim['what']}: {_number(aim['measured'])}, aim {aim['most']:g}, {mark}")
    console.print()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def main() -> int:
    """Run the benchmarks named, or all; fail where a requirement does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"among {', '.join(NAMES)}; default: all")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, no peer, no requirements, nothing kept"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"no benchmark is named {', '.join(sorted(unknown))}; there are {NAMES}")
    console, cores, good = Console(), limit_cores(), True
    there = Path(os.environ.get("MRGP_DATA") or "-").is_dir()
    left_out = (set() if there else RECORDED) | (set() if arguments.quick else ACCELERATED)
    for name in arguments.names or [n for n in NAMES if n not in left_out]:
        result = run(name, arguments.quick, cores)
        show(console, result)
        good &= all(r["holds"] for r in result["requirements"])
        if not arguments.quick:
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
