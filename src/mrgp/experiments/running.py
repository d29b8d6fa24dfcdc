"""Run an experiment: cell by cell, in one process or several, going on where a run was stopped."""

import contextlib
import datetime
import importlib.metadata
import json
import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mrgp.experiments.cells import Cell, plan
from mrgp.experiments.figures import draw
from mrgp.experiments.parallel import in_processes
from mrgp.experiments.predictions import write_predictions
from mrgp.experiments.spec import Experiment, ExperimentError
from mrgp.experiments.store import Store
from mrgp.experiments.summary import as_csv, as_markdown, summarise, table
from mrgp.inference import Fit, Progress, Silent

LIBRARIES = ("mrgp", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "blackjax")

_earlier: dict[tuple[str, str], Fit | None] = {}
"""In a process of its own: the last fit of each variant and model."""


def run(
    experiment: Experiment,
    *,
    seeds: Sequence[int] | None = None,
    variants: Sequence[str] | None = None,
    model_names: Sequence[str] | None = None,
    preset: str | None = None,
    quick: bool = False,
    out: Path | None = None,
    jobs: int = 1,
    fresh: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run an experiment and return its summary.

    The summary has, for each variant, model and metric, the mean, sd, median and number of
    replicates: seeds, folds or sites. What was recorded has, beside the mean over folds or sites,
    the `pooled` one over all values held out.

    `preset` adds models with the paper's own settings to ours ("paper"), or the one that is chosen
    for the data ("auto").

    With `out`, `out/name` gets the configuration and the versions, scores by replicate and costs
    (CSV), the summary (JSON, Markdown), predictions (NetCDF) and figures (PNG); nothing but the
    costs and the versions differs from one run to the next. Results are kept cell by cell: a run
    that was stopped goes on at the first that is not there, unless it is to be `fresh`. `jobs`
    processes share the replicates, each with cores of its own.

    >>> from mrgp import experiments
    >>> wave = experiments.find("dependent")
    >>> found = run(wave, seeds=[0], variants=["noise-0.5"], model_names=["single-gp"])
    >>> found["variants"]["noise-0.5"]["single-gp"]["rmse"]["n"]
    1
    """
    start = time.perf_counter()
    progress = progress or Silent()
    replicates = plan(
        experiment,
        variants=variants,
        seeds=seeds,
        models=model_names,
        preset=preset,
        quick=quick,
    )
    cells = [cell for replicate in replicates for cell in replicate]
    with _folder(out, experiment.name) as folder:
        store = Store(folder / "cells")
        progress.start(experiment.name, len(cells))
        done, known = 0, 0
        work = _one_by_one if experiment.isolated else _work
        for cell, was_there in work(replicates, folder / "cells", jobs, fresh):
            done, known = done + 1, known + was_there
            progress.update(done, f"{cell}{': was there' if was_there else ''}")
        progress.finish(
            f"{done - known} of {done} run" + (f", {known} were there before" if known else "")
        )
        rows, costs = [], []
        for cell in cells:
            found = store.read(cell)
            rows += [cell.labels | row for row in found.rows]
            costs.append(cell.labels | found.costs)
        summary = {"experiment": experiment.name, "variants": summarise([*rows, *costs])}
        if out is not None:
            alone = {"experiment": experiment.name, "variants": summarise(rows)}
            _write(folder, alone, rows, costs)
            _write_settings(folder, experiment, cells, quick)
            write_predictions(folder / "predictions", replicates, store)
            draw(folder, replicates, store, experiment.costs if experiment.isolated else ())
    return summary | {"seconds": time.perf_counter() - start}


def _work(
    replicates: Sequence[Sequence[Cell]], folder: Path, jobs: int, fresh: bool
) -> Iterator[tuple[Cell, bool]]:
    """Work through replicates; yield each cell that is done, and whether it was there before."""
    if jobs > 1:
        tasks = [(replicate, folder, fresh) for replicate in replicates]
        for done in in_processes(_in_process, tasks, jobs):
            yield from done
        return
    earlier: dict[tuple[str, str], Fit | None] = {}
    for replicate in replicates:
        yield from _through(replicate, folder, fresh, earlier)


def _one_by_one(
    replicates: Sequence[Sequence[Cell]], folder: Path, jobs: int, fresh: bool
) -> Iterator[tuple[Cell, bool]]:
    """Work through cells, each in a process of its own."""
    if jobs > 1:
        raise ExperimentError("Costs are measured with nothing beside: leave --jobs out.")
    tasks = [([cell], folder, fresh) for replicate in replicates for cell in replicate]
    for done in in_processes(_in_process, tasks, anew=True):
        yield from done


def _in_process(replicate: Sequence[Cell], folder: Path, fresh: bool) -> list[tuple[Cell, bool]]:
    return list(_through(replicate, folder, fresh, _earlier))


def _through(
    replicate: Sequence[Cell],
    folder: Path,
    fresh: bool,
    earlier: dict[tuple[str, str], Fit | None],
) -> Iterator[tuple[Cell, bool]]:
    store, case = Store(folder), replicate[0].load()
    for cell in replicate:
        was_there = not fresh and store.has(cell, case)
        if not was_there:
            key = (cell.variant, cell.model)
            scored = cell.work(case, earlier.get(key))
            earlier[key] = scored.fit
            store.keep(cell, case, scored)
        yield cell, was_there


@contextlib.contextmanager
def _folder(out: Path | None, name: str) -> Iterator[Path]:
    if out is not None:
        yield out / name
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _write(
    folder: Path,
    summary: dict[str, Any],
    rows: Sequence[dict[str, Any]],
    costs: Sequence[dict[str, Any]],
) -> None:
    (folder / "scores.csv").write_text(as_csv(rows))
    (folder / "costs.csv").write_text(as_csv(costs))
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    (folder / "summary.md").write_text(as_markdown(*table(summary, dear=())))


def _write_settings(
    folder: Path, experiment: Experiment, cells: Sequence[Cell], quick: bool
) -> None:
    """Write what was run, with every setting, and by which versions on what machine."""
    content = experiment.model_dump(mode="json", exclude={"models", "variants"})
    config = content | {
        "run": {
            "quick": quick,
            "replicates": list(dict.fromkeys(cell.replicate for cell in cells)),
        },
        "variants": {cell.variant: experiment.variants[cell.variant] for cell in cells},
        "models": {c.model: experiment.models[c.model].model_dump(mode="json") for c in cells},
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    installed = {name: _version(name) for name in LIBRARIES}
    versions = {
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **{name: version for name, version in installed.items() if version is not None},
    }
    (folder / "versions.json").write_text(json.dumps(versions, indent=1) + "\n")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
