"""Experiments by one command."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mrgp import experiments
from mrgp.cli.app import app, progress, say, show


@app.command()
def run(
    name: Annotated[str | None, typer.Argument(help="Name or folder of the experiment.")] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            help="How many seeds, folds or sites (5), a range (100-149), or a list (3,7)."
        ),
    ] = None,
    variants: Annotated[
        str | None,
        typer.Option("--variants", "--sets", help="Variants or sets, separated by commas."),
    ] = None,
    models: Annotated[str | None, typer.Option(help="Models, separated by commas.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="'paper': the paper's own settings beside ours; 'auto': the choice."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    jobs: Annotated[
        int, typer.Option(min=1, help="Processes that share the seeds, folds or sites.")
    ] = 1,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes, one thread each, that share all fits.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="A Dask cluster that does the fits, as tcp://10.0.0.1:8786.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run the small version.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run all again, also what an earlier run has done.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
) -> None:
    """Run an experiment and print its table.

    A run that was stopped goes on where it was when it is started again.
    """
    if listing or name is None:
        for known, experiment in experiments.available().items():
            typer.echo(f"{known}: {experiment.title}")
        return
    experiment = experiments.find(name)
    try:
        summary = experiments.run(
            experiment,
            jobs=jobs,
            workers=workers,
            scheduler=scheduler,
            fresh=fresh,
            seeds=None if seeds is None else parse_seeds(seeds),
            variants=_split(variants),
            model_names=_split(models),
            preset=preset,
            quick=quick,
            out=out,
            progress=progress(name),
        )
    except KeyboardInterrupt:
        typer.echo("stopped: the same command goes on with what is left", err=True)
        raise
    if as_json:
        typer.echo(json.dumps(summary))
        return
    known = experiment.replicates
    title = f"{name}: mean ± sd over {known.scored or known.noun}s"
    if margins := summary.get("margins"):
        show(*experiments.margins_table(margins), f"{name}: models beside simple rules")
        for line in experiments.told(margins):
            typer.echo(line)
    else:
        show(*experiments.table(summary, experiment.costs, experiment.shown), title)
    if grown := summary.get("exponents"):
        show(
            *experiments.exponents_table(grown), f"{name}: powers of growth (at the largest sizes)"
        )
    say(f"wrote {out / summary['experiment']}")


def parse_seeds(text: str) -> list[int]:
    """Read a number of seeds, a range a-b, or a list a,b,c."""
    try:
        if "-" in text:
            first, last = (int(part) for part in text.split("-"))
            seeds = list(range(first, last + 1))
        elif "," in text:
            seeds = [int(part) for part in text.split(",")]
        else:
            seeds = list(range(int(text)))
    except ValueError:
        seeds = []
    if not seeds:
        raise ValueError(f"--seeds takes a number, a range a-b or a list a,b; got {text!r}.")
    return seeds


def _split(text: str | None) -> list[str] | None:
    if text is None:
        return None
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        raise ValueError(f"Give names separated by commas; got {text!r}.")
    return names
