"""From files to a fit, and from a fit to predictions, scores and a page."""

from pathlib import Path
from typing import Annotated, Any

import typer

import mrgp
from mrgp._drafts import write_text
from mrgp.cli import saved, tiled
from mrgp.cli.app import STOPPED, answer, app, asker, check_file, doing, note, progress, say, show
from mrgp.config.checking import read_config
from mrgp.config.schema import Config, duration
from mrgp.evaluation import TABLE
from mrgp.inference import journal
from mrgp.io.exports import check_out, write_prediction
from mrgp.io.files import read_frame
from mrgp.io.guessing import guess
from mrgp.io.queries import at_times, far_from_data, grid_support, places_of
from mrgp.io.sources import read_data
from mrgp.prediction import predict_values
from mrgp.report import write_report
from mrgp.report.page import plotly

Saved = Annotated[Path, typer.Argument(help="A saved fit.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Task = Annotated[str | None, typer.Option(help="Task to predict; needed if there are several.")]
PAGES = (".html", ".htm")
PICTURES = (".png", ".pdf", ".svg")
SHOWN = (*TABLE, "n")


@app.command()
def init(
    files: Annotated[list[Path], typer.Argument(help="Files of the sources, the target's first.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Configuration.")] = Path("mrgp.toml"),
    value: Annotated[
        list[str] | None, typer.Option(help="The column or variable that has the values.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file.")] = False,
) -> None:
    """Write a configuration for files, guessing what their columns and variables are.

    On a terminal it asks where several columns may have the values.
    """
    if out.exists() and not force:
        raise ValueError(f"{out} is there already; give another --out, or --force.")
    check_file(out)
    text = guess(files, out.parent, asker(), value or ())
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, text)
    say(text.rstrip(), f"wrote {out}; next: mrgp fit {out}")


@app.command("fit")
def fit_config(
    config: Annotated[Path, typer.Argument(help="A configuration, as `mrgp init` writes.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to save.")] = Path("fit.mrgp"),
    as_json: Json = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a fit that was stopped or killed.")
    ] = False,
) -> None:
    """Read the sources of a configuration, fit the model, and save the fit.

    What a long fit has found is kept beside it every half minute; one that was stopped or killed
    goes on with --resume, and ends as if it never was.
    """
    kept = saved.beside(out)
    for file in (out, kept):
        check_file(file)
    settings = read_config(config)
    doing(f"reading {', '.join(settings.sources)}")
    data = read_data(settings)
    if config.resolve() in (out.resolve(), kept.resolve()):
        raise ValueError(f"--out {out} would write over {config}; give another name.")
    out.parent.mkdir(parents=True, exist_ok=True)
    saved.note_units(data, settings)
    if not as_json:
        say(f"{data}\n")
    book = saved.journal_of(out, settings, data)
    earlier = saved.begun(out, book, data, resume)
    doing("preparing the model")
    with journal.kept(book):
        done = _fit(settings, data) if earlier is None else _gone_on(earlier, data)
    doing(f"writing {out}")
    mrgp.save(done, out)
    saved.keep_config(config, settings, kept)
    wrote = f"wrote {out} and {kept}; next: mrgp predict {out} --at FILE, or --grid ..."
    answer(saved.account(done, out), as_json, done.summary(), wrote)
    if done.status.code == "interrupted":
        note("note: --resume goes on where it was stopped.")
        raise typer.Exit(STOPPED)
    book.path.unlink(missing_ok=True)


def _fit(settings: Config, data: mrgp.Dataset) -> mrgp.Fit:
    how: dict[str, Any] = {"key": settings.key, "weights": settings.weights}
    model: Any = "auto"
    if settings.model != "auto":
        model, how["optimiser"] = settings.model.build(), settings.model.build_optimiser()
    return mrgp.fit(model, data, progress=progress(), **how)


def _gone_on(earlier: mrgp.Fit, data: mrgp.Dataset) -> mrgp.Fit:
    if earlier.status.code not in ("interrupted", "step limit"):
        note("note: the fit had ended; there is nothing to go on with.")
        return earlier
    return earlier.resume(data, progress=progress())


@app.command()
def predict(
    fit: Saved,
    grid: Annotated[
        str | None, typer.Option(help="lon=-0.5:0.3:0.02,lat=51.3:51.7:0.02,time=2022-02-19T12:00")
    ] = None,
    at: Annotated[Path | None, typer.Option(help="A table of places.")] = None,
    polygons: Annotated[Path | None, typer.Option(help="Shapes to average over.")] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help=".csv, .parquet, .nc, .zarr, .tif or .geojson.")
    ] = Path("prediction.csv"),
    task: Task = None,
    source: Annotated[str | None, typer.Option(help="As this source would report it.")] = None,
    noise: Annotated[bool, typer.Option("--noise", help="Add the source's noise.")] = False,
    exposure: Annotated[
        str | None, typer.Option(help="Of the source's values: a number, or a column of --at.")
    ] = None,
    trials: Annotated[
        str | None, typer.Option(help="Of new successes: a number, or a column of --at.")
    ] = None,
    times: Annotated[
        str | None,
        typer.Option(help="Each place of --at at these times: 2022-02-19/2022-02-21/1h"),
    ] = None,
    window: Annotated[
        str | None, typer.Option(help="Means over so long from each time on, such as 1D.")
    ] = None,
    exceed: Annotated[
        float | None, typer.Option("--exceed", "--exceeds", help="Probability to exceed this.")
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the map or curve: .png.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes to start for a map, one thread each.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="A Dask cluster for a map, as tcp://10.0.0.1:8786.")
    ] = None,
    tile: Annotated[
        int | None, typer.Option(min=1, help="Places of a map that are predicted together.")
    ] = None,
) -> None:
    """Predict on a grid, at places of a table, or over polygons; daily means with --window 1D.

    A map in .zarr is written tile by tile; one that was stopped or killed goes on where it was when
    the same command is given again.
    """
    given = {"--grid": grid, "--at": at, "--polygons": polygons}
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) != 1:
        raise ValueError(
            f"Give one of {', '.join(given)}; got {' and '.join(chosen) or 'none of them'}."
        )
    if times is not None and grid is not None:
        raise ValueError("--times goes with --at or --polygons; a grid has times of its own.")
    if window is not None:
        duration(window)
    check_out(out)
    if picture is not None:
        check_file(picture, PICTURES, "--picture")
    loaded = mrgp.load(fit)
    task = saved.check_asked(loaded, task, source, noise)
    beside: dict[str, Any] = {"--exposure": exposure, "--trials": trials}
    saved.check_beside(loaded, str(task), source, noise, beside)
    by = (scheduler, workers, tile)
    if tiled.wants_tiles(loaded, grid, out, picture, window, *by):
        asked = {"task": task, "source": source, "noise": noise}
        asked |= saved.beside_rows(beside, None, None)
        tiled.write_map(fit, loaded, grid or "", out, asked, exceed, *by)
        return
    path = at or polygons
    if path is None:
        table, support = None, grid_support(grid or "", loaded, window)
    else:
        table = read_frame(path)
        table = table if times is None else at_times(table, path, times, loaded)
        support = places_of(table, path, loaded, saved.config_of(fit), window)
    doing(f"predicting {len(support):,} places")
    rows = saved.beside_rows(beside, table, path)
    found = mrgp.predict(loaded, support, task=task, source=source, noise=noise, **rows)
    for words in far_from_data(found, loaded):
        note(f"note: {words}")
    doing(f"writing {out}")
    write_prediction(found, out, exceed, None if at is None else table)
    say(found, f"wrote {out}")
    if picture is not None:
        saved.draw(found, picture, loaded.kept_data(), exceed)
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
    for observed in saved.read_values(fit, loaded, data, source):
        doing(f"predicting {len(observed):,} values of {observed.name}")
        found = predict_values(loaded, observed)
        scores[observed.process] = mrgp.evaluate(found, observed.y)
    if as_json:
        answer(saved.by_process(scores), as_json)
        return
    rows = [[*process, *(f"{s[name]:.4g}" for name in SHOWN)] for process, s in scores.items()]
    show(["source", "task", *SHOWN], rows)


@app.command()
def report(
    fit: Saved,
    out: Annotated[Path, typer.Option("--out", "-o", help="Page to write.")] = Path("report.html"),
    grid: Annotated[
        str | None, typer.Option(help="As of predict; by default over the extent of the data.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Values to score: a configuration, or a file like a source's."),
    ] = None,
    source: Annotated[str | None, typer.Option(help="The source whose columns --data has.")] = None,
    task: Annotated[str | None, typer.Option(help="Task to draw; by default all.")] = None,
    title: Annotated[
        str | None, typer.Option(help="Title of the page; by default what, where and when.")
    ] = None,
    sites: Annotated[
        Path | None,
        typer.Option(help="Names of sites: a table with the columns of places and one of names."),
    ] = None,
    crs: Annotated[
        str | None,
        typer.Option(help='Where x and y are: "EPSG:27700", or "EPSG:5070 in km".'),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a page with maps, scores and what was learned: one HTML file, for any browser."""
    check_file(out, PAGES)
    if source is not None and data is None:
        raise ValueError("--source says whose columns --data has: give --data too.")
    plotly()
    loaded = mrgp.load(fit)
    if task is not None:
        saved.check_asked(loaded, task, None, False)
    written = write_report(
        loaded,
        out,
        data=saved.fitted_data(fit, loaded),
        held_out=None if data is None else saved.read_values(fit, loaded, data, source),
        grid=None if grid is None else grid_support(grid, loaded, bare=True),
        task=task,
        title=title,
        sites=saved.sites_beside(fit, loaded) if sites is None else read_frame(sites),
        crs=crs,
        progress=progress("report"),
    )
    content = {
        "report": str(written.path),
        "bytes": written.size,
        "grid": written.grid,
        "tasks": list(written.tasks),
        "scores": {name: saved.by_process(found) for name, found in written.checks.items()},
    }
    answer(content, as_json, f"wrote {written}")


@app.command()
def info(fit: Saved, as_json: Json = False) -> None:
    """Describe a saved fit."""
    loaded = mrgp.load(fit)
    inputs = f"  inputs: {', '.join(loaded.inputs)}"
    answer(saved.account(loaded, fit), as_json, loaded.summary(), inputs)
