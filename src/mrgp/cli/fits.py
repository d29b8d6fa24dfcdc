"""From files to a fit, and from a fit to predictions and scores."""

import json
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import mrgp
from mrgp.cli.app import app, progress, say
from mrgp.config import Config, ConfigError, guess, read_config, read_data, read_places
from mrgp.config.reading import grid_support, read_source
from mrgp.config.writing import write_prediction

Saved = Annotated[Path, typer.Argument(help="A saved fit.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Task = Annotated[str | None, typer.Option(help="Task to predict; needed if there are several.")]
SCORES = ("rmse", "mae", "crps", "nlpd", "coverage_50", "coverage_95", "width_95", "n")


@app.command()
def init(
    files: Annotated[list[Path], typer.Argument(help="Files of the sources, the target's first.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Configuration.")] = Path("mrgp.toml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a file.")] = False,
) -> None:
    """Write a configuration for files, guessing what their columns and variables are."""
    if out.exists() and not force:
        raise ValueError(f"{out} is there already; give another --out, or --force.")
    text = guess(files, out.parent)
    out.write_text(text)
    say(text.rstrip())
    say(f"wrote {out}; next: mrgp fit {out}")


@app.command("fit")
def fit_config(
    config: Annotated[Path, typer.Argument(help="A configuration, as `mrgp init` writes.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to save.")] = Path("fit.mrgp"),
    as_json: Json = False,
) -> None:
    """Read the sources of a configuration, fit the model, and save the fit."""
    settings = read_config(config)
    data = read_data(settings)
    if not as_json:
        say(f"{data}\n")
    model: Any = settings.model if settings.model == "auto" else settings.model.build()
    optimiser = None if settings.model == "auto" else settings.model.optimiser
    done = mrgp.fit(
        model,
        data,
        key=settings.key,
        weights=settings.weights,
        optimiser=None if optimiser is None else optimiser.build(),
        progress=progress("fit"),
    )
    mrgp.save(done, out)
    shutil.copyfile(config, _beside(out))
    if as_json:
        typer.echo(json.dumps(_account(done, out)))
        return
    say(done.summary())
    say(f"wrote {out} and {_beside(out)}; next: mrgp predict {out} --at FILE, or --grid ...")


@app.command()
def predict(
    fit: Saved,
    grid: Annotated[
        str | None,
        typer.Option(help="lon=-0.5:0.3:0.02,lat=51.3:51.7:0.02,time=2022-02-19T12:00"),
    ] = None,
    at: Annotated[Path | None, typer.Option(help="A table of places.")] = None,
    polygons: Annotated[Path | None, typer.Option(help="Shapes to average over.")] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help=".csv, .parquet, .nc, .tif or .geojson.")
    ] = Path("prediction.csv"),
    task: Task = None,
    source: Annotated[str | None, typer.Option(help="As this source would report it.")] = None,
    noise: Annotated[bool, typer.Option("--noise", help="Add the source's noise.")] = False,
    exceed: Annotated[float | None, typer.Option(help="Probability to exceed this.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the map or curve: .png.")] = None,
) -> None:
    """Predict on a grid, at places of a table, or over polygons."""
    given = {"--grid": grid, "--at": at, "--polygons": polygons}
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) != 1:
        raise ValueError(
            f"Give one of {', '.join(given)}; got {', '.join(chosen) or 'none of them'}."
        )
    loaded = mrgp.load(fit)
    places: Any = at or polygons
    support = grid_support(grid, loaded) if grid else read_places(places, loaded, _config(fit))
    found = mrgp.predict(loaded, support, task=task, source=source, noise=noise)
    write_prediction(found, out, exceed)
    say(f"{found}")
    say(f"wrote {out}")
    if picture is not None:
        _draw(found, picture)
        say(f"wrote {picture}")


@app.command()
def evaluate(
    fit: Saved,
    data: Annotated[Path, typer.Argument(help="A configuration, or a file like a source's.")],
    source: Annotated[
        str | None, typer.Option(help="The source whose columns the file has.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Score predictions against values that were not fitted."""
    loaded = mrgp.load(fit)
    if data.suffix == ".toml":
        values = read_data(read_config(data))
    else:
        values = mrgp.Dataset([_like_a_source(fit, data, source)])
    scores = {}
    for observed in values:
        if observed.process not in loaded.processes:
            raise ConfigError(
                f"{data}: {observed.label} was not fitted; the fit has {loaded.processes}."
            )
        asks = {"task": observed.task, "source": observed.name, "noise": True}
        found = mrgp.predict(loaded, observed.support, **asks)
        scores[observed.process] = mrgp.evaluate(found, observed.y)
    if as_json:
        typer.echo(json.dumps({f"{s}, {t}": found for (s, t), found in scores.items()}))
        return
    table = Table("source", "task", *SCORES)
    for process, found in scores.items():
        table.add_row(*process, *(f"{found[name]:.4g}" for name in SCORES))
    Console().print(table)


@app.command()
def info(fit: Saved, as_json: Json = False) -> None:
    """Describe a saved fit."""
    loaded = mrgp.load(fit)
    if as_json:
        typer.echo(json.dumps(_account(loaded, fit)))
        return
    typer.echo(loaded.summary())
    typer.echo(f"  inputs: {', '.join(loaded.inputs)}")


def _account(fit: mrgp.Fit, path: Path) -> dict[str, Any]:
    return {
        "fit": str(path),
        "recipe": type(fit.recipe).__name__,
        "status": fit.status.code,
        "reasons": list(fit.reasons),
        "inputs": list(fit.inputs),
        "values": {f"{s}, {t}": used for (s, t), (used, _) in fit.counts.items()},
        "missing": {f"{s}, {t}": lost for (s, t), (_, lost) in fit.counts.items()},
        "parameters": {name: value.tolist() for name, value in fit.parameters().items()},
    }


def _beside(fit: Path) -> Path:
    """Return the file that keeps a fit's configuration."""
    return fit.with_suffix(".toml")


def _config(fit: Path) -> Config | None:
    return read_config(_beside(fit)) if _beside(fit).is_file() else None


def _like_a_source(fit: Path, file: Path, source: str | None) -> mrgp.Observations:
    """Read a file that has the columns of one of the fit's sources."""
    config = _config(fit)
    if config is None:
        raise ConfigError(f"{_beside(fit)} is not there: give a configuration instead of {file}.")
    name = source or next(iter(config.sources))
    if name not in config.sources:
        raise ConfigError(f"--source {name!r} is none of {list(config.sources)}.")
    return read_source(name, config.sources[name].model_copy(update={"file": file}), config)


def _draw(found: mrgp.Prediction, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from mrgp.plotting import plot_prediction

    figure = plot_prediction(found)
    figure.savefig(path, dpi=130)
