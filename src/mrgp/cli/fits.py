"""From files to a fit, and from a fit to predictions and scores."""

import json
import math
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import mrgp
from mrgp.cli.app import STOPPED, app, is_quiet, note, progress, say
from mrgp.cli.saved import (
    account,
    beside,
    check_asked,
    check_picture,
    config_of,
    draw,
    make_room,
    note_units,
    read_values,
)
from mrgp.config import (
    check_out,
    far_from_data,
    grid_support,
    guess,
    places_of,
    read_config,
    read_data,
    write_prediction,
)
from mrgp.config.files import read_frame
from mrgp.evaluation import TABLE
from mrgp.prediction import predict_values

Saved = Annotated[Path, typer.Argument(help="A saved fit.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Task = Annotated[str | None, typer.Option(help="Task to predict; needed if there are several.")]
TABLE_WIDTH = 120


@app.command()
def init(
    files: Annotated[list[Path], typer.Argument(help="Files of the sources, the target's first.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Configuration.")] = Path("mrgp.toml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a file.")] = False,
) -> None:
    """Write a configuration for files, guessing what their columns and variables are."""
    if out.exists() and not force:
        raise ValueError(f"{out} is there already; give another --out, or --force.")
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder; give the name of a file.")
    text = guess(files, out.parent)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
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
    make_room(out, config)
    note_units(data)
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
    shutil.copyfile(config, beside(out))
    if as_json:
        print_json(account(done, out))
    else:
        say(done.summary())
        say(f"wrote {out} and {beside(out)}; next: mrgp predict {out} --at FILE, or --grid ...")
    if done.status.code == "interrupted":
        raise typer.Exit(STOPPED)


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
            f"Give one of {', '.join(given)}; got {' and '.join(chosen) or 'none of them'}."
        )
    check_out(out)
    check_picture(picture)
    loaded = mrgp.load(fit)
    task = check_asked(loaded, task, source, noise)
    path = at or polygons
    table = None if path is None else read_frame(path)
    if path is None:
        support = grid_support(grid or "", loaded)
    else:
        support = places_of(table, path, loaded, config_of(fit))
    found = mrgp.predict(loaded, support, task=task, source=source, noise=noise)
    for words in far_from_data(found, loaded):
        note(f"note: {words}")
    write_prediction(found, out, exceed, None if at is None else table)
    say(f"{found}")
    say(f"wrote {out}")
    if picture is not None:
        draw(found, picture, loaded.kept_data(), exceed)
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
    scores = {}
    for observed in read_values(fit, loaded, data, source):
        found = predict_values(loaded, observed)
        scores[observed.process] = mrgp.evaluate(found, observed.y)
    if as_json:
        print_json({f"{s}, {t}": found for (s, t), found in scores.items()})
        return
    table = Table("source", "task", *TABLE, "n")
    for process, found in scores.items():
        table.add_row(*process, *(f"{found[name]:.4g}" for name in (*TABLE, "n")))
    if not is_quiet():
        console = Console()
        console.width = max(console.width, TABLE_WIDTH)
        console.print(table)


@app.command()
def info(fit: Saved, as_json: Json = False) -> None:
    """Describe a saved fit."""
    loaded = mrgp.load(fit)
    if as_json:
        print_json(account(loaded, fit))
        return
    say(loaded.summary())
    say(f"  inputs: {', '.join(loaded.inputs)}")


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object; numbers that are none are null, as JSON has no other word."""
    typer.echo(json.dumps(_plain(content), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
