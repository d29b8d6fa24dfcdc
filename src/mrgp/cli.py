"""The command line: demo, run, info."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import mrgp
from mrgp import experiments
from mrgp.datasets import Simulation, city
from mrgp.inference import Bar, Lines, Progress

TABLE_WIDTH = 170

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Fuse observations of different resolution, noise and bias.",
)


def main() -> None:
    """Start the command line with OpenBLAS on one thread.

    OpenBLAS reads the variable when it is loaded, and its threads spin while JAX works; so the
    process starts itself again with the variable set.
    """
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "mrgp.cli", *sys.argv[1:]])
    try:
        app(prog_name="mrgp")
    except (ValueError, TypeError, OSError, mrgp.FitError) as error:
        # Escaped: messages speak of shapes such as [n, d], which are no markup.
        text = f"[bold red]error:[/] {escape(str(error))}"
        Console(stderr=True).print(text, highlight=False, soft_wrap=True)
        sys.exit(1)


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"mrgp {mrgp.__version__}")
        raise typer.Exit
    return asked


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Fuse observations of different resolution, noise and bias."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("mrgp-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated city.")] = 0,
) -> None:
    """Simulate a city seen by sensors and a satellite, fuse both, and compare with baselines."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; give a folder.")
    console = Console()
    simulation = city(seed)
    console.print("A simulated city of 20 x 20 km, NO2 in ug/m3; its truth is known.")
    console.print(f"{simulation.data}\n", highlight=False, soft_wrap=True)
    names = ("mr-gp", "center-point", "single-gp")
    predictions = {name: _predict(name, simulation) for name in names}
    table = Table("model", "rmse", "mae", "crps", "coverage 95 %", "width 95 %")
    for name, prediction in predictions.items():
        scores = mrgp.evaluate(prediction, simulation.truth)
        shown = [scores[k] for k in ("rmse", "mae", "crps")]
        table.add_row(
            name,
            *(f"{value:.2f}" for value in shown),
            f"{scores['coverage_95']:.3f}",
            f"{scores['width_95']:.2f}",
        )
    console.print(table)
    console.print(
        "mr-gp averages the field over each cell, center-point takes a cell for its\n"
        "centre, single-gp sees the sensors alone. Scored against the truth on a grid\n"
        "of 60 x 60 points: lower rmse, mae and crps are better; coverage should be 0.95.",
        highlight=False,
    )
    out.mkdir(parents=True, exist_ok=True)
    for file in _demo_pictures(simulation, predictions, out):
        typer.echo(f"wrote {file}")


def _predict(name: str, simulation: Simulation) -> mrgp.Prediction:
    model: Any = mrgp.CenterPoint(mrgp.MRGP()) if name == "center-point" else mrgp.MRGP()
    data = simulation.data
    if name == "single-gp":
        data = data.select(source=simulation.target)
    fitted = mrgp.fit(model, data, progress=_progress(f"fit {name}"))
    return mrgp.predict(fitted, simulation.support)


def _demo_pictures(
    simulation: Simulation, predictions: dict[str, mrgp.Prediction], out: Path
) -> list[Path]:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from mrgp.plotting import SPREAD_COLOURS, plot_calibration, plot_data, plot_map

    label = "NO2 (ug/m3)"
    limits = (float(simulation.truth.min()), float(simulation.truth.max()))
    figure, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
    support = simulation.support
    plot_map(axes[0, 0], support, simulation.truth, label=label, limits=limits, title="Truth")
    title = "Data: satellite cells and sensors"
    plot_data(axes[0, 1], simulation.data, label=label, limits=limits, title=title)
    for place, name in zip((axes[0, 2], axes[1, 0], axes[1, 1]), predictions, strict=True):
        rmse = mrgp.evaluate(predictions[name], simulation.truth)["rmse"]
        title = f"{name}: mean (rmse {rmse:.2f})"
        plot_map(place, support, predictions[name].mean, label=label, limits=limits, title=title)
    spread = predictions["mr-gp"].std
    title = "mr-gp: standard deviation"
    plot_map(axes[1, 2], support, spread, label=label, title=title, colours=SPREAD_COLOURS)
    for place in axes.flat:
        place.set(xlabel="east (km)", ylabel="north (km)")
    maps = out / "maps.png"
    figure.savefig(maps, dpi=120)
    plt.close(figure)
    figure, place = plt.subplots(figsize=(5, 5), layout="constrained")
    plot_calibration(place, predictions, simulation.truth)
    calibration = out / "calibration.png"
    figure.savefig(calibration, dpi=120)
    plt.close(figure)
    return [maps, calibration]


@app.command()
def run(
    name: Annotated[str | None, typer.Argument(help="Name or folder of the experiment.")] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            help="How many seeds, folds or sites (5), a range (100-149), or a list (3,7)."
        ),
    ] = None,
    variants: Annotated[str | None, typer.Option(help="Variants, separated by commas.")] = None,
    models: Annotated[str | None, typer.Option(help="Models, separated by commas.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="'paper': models with the paper's own settings, beside ours."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    jobs: Annotated[
        int, typer.Option(min=1, help="Processes that share the seeds, folds or sites.")
    ] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Run the small version.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run all again, also what an earlier run has done.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    show: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
) -> None:
    """Run an experiment and print its table.

    A run that was stopped goes on where it was when it is started again.
    """
    if show or name is None:
        for known, experiment in experiments.available().items():
            typer.echo(f"{known}: {experiment.title}")
        return
    experiment = experiments.find(name)
    try:
        summary = experiments.run(
            experiment,
            jobs=jobs,
            fresh=fresh,
            seeds=None if seeds is None else parse_seeds(seeds),
            variants=_split(variants),
            model_names=_split(models),
            preset=preset,
            quick=quick,
            out=out,
            progress=_progress(name),
        )
    except KeyboardInterrupt:
        typer.echo("stopped: the same command goes on with what is left", err=True)
        raise
    if as_json:
        typer.echo(json.dumps(summary))
        return
    header, rows = experiments.table(summary, experiment.costs)
    known = experiment.replicates
    table = Table(*header, title=f"{name}: mean ± sd over {known.scored or known.noun}s")
    for row in rows:
        table.add_row(*row)
    # A narrow terminal scrolls or wraps whole lines; squeezed columns cannot be read.
    console = Console()
    console.width = max(console.width, TABLE_WIDTH)
    console.print(table)
    typer.echo(f"wrote {out / summary['experiment']}")


@app.command()
def info(fit: Annotated[Path, typer.Argument(help="A saved fit.")]) -> None:
    """Describe a saved fit."""
    loaded = mrgp.load(fit)
    typer.echo(loaded.summary())
    typer.echo(f"  inputs: {', '.join(loaded.inputs)}")


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


def _progress(title: str) -> Progress:
    return Bar(title) if sys.stderr.isatty() else Lines(title)


if __name__ == "__main__":
    main()
