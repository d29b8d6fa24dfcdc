"""Run an experiment: cell by cell, in one process or several, going on where a run was stopped."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mrgp._cluster import Team, team
from mrgp.experiments.design import Cell, Plan, plan
from mrgp.experiments.exponents import exponents
from mrgp.experiments.figures import draw
from mrgp.experiments.margins import compare_with_rules, verdicts, write_margins
from mrgp.experiments.parallel import in_processes
from mrgp.experiments.results import summarise, write_predictions, write_settings, write_tables
from mrgp.experiments.rivals import ExperimentError
from mrgp.experiments.scoring import Scored
from mrgp.experiments.spec import Experiment
from mrgp.experiments.store import Store
from mrgp.inference import Fit, Progress, Silent

Done = Iterator[tuple[Cell, bool]]
"""Cells that are done, and whether they were there before."""
Earlier = dict[tuple[str, str], Fit | None]
_earlier: Earlier = {}
"""In a process of its own: the last fit of each variant and model."""


def run(
    experiment: Experiment,
    *,
    out: Path | None = None,
    quick: bool = False,
    seeds: Sequence[int] | None = None,
    variants: Sequence[str] | None = None,
    model_names: Sequence[str] | None = None,
    preset: str | None = None,
    jobs: int = 1,
    workers: int | None = None,
    scheduler: Any = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run an experiment and return its summary.

    The summary has, for each variant, model and metric, the mean, sd, median and number of
    replicates: seeds, folds or sites. What was recorded has, beside the mean over folds or sites,
    the `pooled` one over all values held out.

    `preset` adds models with the paper's own settings to ours ("paper"), or the one that is chosen
    for the data ("auto").

    Where simple rules are among the models, `margins` has every other model beside them, set by
    set, and `verdicts` what that comes to. Where costs are measured over sizes, `exponents` has the
    powers with which they grow.

    With `out`, `out/name` gets the configuration and the versions, scores by replicate and costs
    (CSV), the summary (JSON, Markdown), predictions (NetCDF) and figures (PNG); nothing but the
    costs and the versions differs from one run to the next. Results are kept cell by cell: a run
    that was stopped goes on at the first that is not there, unless it is to be `fresh`. `jobs`
    processes share the replicates, each with cores of its own. `workers`, processes of this machine
    with one thread each, or those of a Dask cluster, whose `scheduler` is its client or address,
    share the cells: one that is lost costs the cells that it had begun, and nothing else.

    >>> from mrgp import experiments
    >>> wave = experiments.find("dependent")
    >>> found = run(wave, seeds=[0], variants=["noise-0.5"], model_names=["single-gp"])
    >>> found["variants"]["noise-0.5"]["single-gp"]["rmse"]["n"]
    1
    """
    start = time.perf_counter()
    progress = progress or Silent()
    asked = {"variants": variants, "seeds": seeds, "models": model_names, "preset": preset}
    replicates = plan(experiment, **asked, quick=quick)
    cells = [cell for replicate in replicates for cell in replicate]
    with tempfile.TemporaryDirectory() as spare:
        folder = Path(spare) if out is None else out / experiment.name
        store = Store(folder / "cells")
        progress.start(experiment.name, len(cells))
        progress.update(0, f"{cells[0]}, the first")
        done, known = 0, 0
        by = (jobs, workers, scheduler)
        for cell, was_there in _work(replicates, store, by, fresh, experiment.isolated):
            done, known = done + 1, known + was_there
            progress.update(done, f"{cell}{': was there' if was_there else ''}")
        progress.finish(
            f"{done - known} of {done} run" + (f", {known} were there before" if known else "")
        )
        found = [(cell.labels, store.read(cell)) for cell in cells]
        rows = [labels | row for labels, scored in found for row in scored.rows]
        costs = [labels | scored.costs for labels, scored in found]
        beside = compare_with_rules(rows, costs, experiment.rules)
        if out is not None:
            write_margins(folder, beside)
            write_tables(folder, experiment, rows, costs)
            write_settings(folder, experiment, cells, quick)
            write_predictions(folder / "predictions", replicates, store)
            draw(folder, replicates, store, experiment.costs if experiment.isolated else ())
    summary = {"experiment": experiment.name, "variants": summarise([*rows, *costs])}
    if experiment.isolated and (grown := exponents(summary["variants"], experiment.costs)):
        summary |= {"exponents": grown}
    if beside:
        summary |= {"margins": beside, "verdicts": verdicts(beside)}
    return summary | {"seconds": time.perf_counter() - start}


def _work(
    replicates: Plan, store: Store, by: tuple[int, int | None, Any], fresh: bool, isolated: bool
) -> Done:
    """Work through replicates; where they are `isolated`, each cell has a process of its own."""
    jobs, workers, scheduler = by
    options = {"jobs": jobs > 1, "workers": workers is not None, "scheduler": scheduler is not None}
    given = [f"--{name}" for name, on in options.items() if on]
    if isolated and given:
        raise ExperimentError(f"Costs are measured with nothing beside: leave {given[0]} out.")
    if "--jobs" in given and len(given) > 1:
        raise ExperimentError(f"Give --jobs or {given[1]}, one of them.")
    if given and jobs == 1:
        with team(scheduler, workers) as everyone:
            yield from _by_cells(replicates, store, fresh, everyone)
        return
    if isolated:
        replicates = [[cell] for replicate in replicates for cell in replicate]
    if isolated or jobs > 1:
        tasks = [(replicate, store, fresh) for replicate in replicates]
        for done in in_processes(_in_process, tasks, jobs, anew=isolated):
            yield from done
        return
    earlier: Earlier = {}
    for replicate in replicates:
        yield from _through(replicate, store, fresh, earlier)


def _by_cells(replicates: Plan, store: Store, fresh: bool, everyone: Team) -> Done:
    """Let a team work through the cells that are not there; results are kept by this process."""
    left = []
    for replicate in replicates:
        case = replicate[0].load()
        for cell in replicate:
            if not fresh and store.has(cell, case):
                yield cell, True
            else:
                left.append(cell)
    for number, scored in everyone.spread(_score, None, left):
        store.keep(left[number], left[number].load(), scored)
        yield left[number], False


def _score(_: None, cell: Cell) -> Scored:
    """Work through one cell; fits of the process before it, of the same model, are used again."""
    key = (cell.variant, cell.model)
    scored = cell.work(cell.load(), _earlier.get(key))
    _earlier[key] = scored.fit
    return scored._replace(fit=None)


def _in_process(replicate: Sequence[Cell], store: Store, fresh: bool) -> list[tuple[Cell, bool]]:
    return list(_through(replicate, store, fresh, _earlier))


def _through(replicate: Sequence[Cell], store: Store, fresh: bool, earlier: Earlier) -> Done:
    """Work through the cells of a replicate."""
    case = replicate[0].load()
    for cell in replicate:
        was_there = not fresh and store.has(cell, case)
        if not was_there:
            key = (cell.variant, cell.model)
            scored = cell.work(case, earlier.get(key))
            earlier[key] = scored.fit
            store.keep(cell, case, scored)
        yield cell, was_there
