"""A saved fit as one HTML page."""

from pathlib import Path
from typing import Annotated, Any

import typer

import mrgp
from mrgp.cli.app import app, note, progress, say
from mrgp.cli.fits import Json, Saved, print_json
from mrgp.cli.saved import check_asked, config_of, read_values
from mrgp.config import ConfigError, grid_support, read_data
from mrgp.report import Report, write_report
from mrgp.report.page import plotly

SUFFIXES = (".html", ".htm")


@app.command("report")
def report(
    fit: Saved,
    out: Annotated[Path, typer.Option("--out", "-o", help="Page to write.")] = Path("report.html"),
    grid: Annotated[
        str | None,
        typer.Option(help="As of predict; by default over the extent of the data."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Values to score: a configuration, or a file like a source's."),
    ] = None,
    source: Annotated[str | None, typer.Option(help="The source whose columns --data has.")] = None,
    task: Annotated[str | None, typer.Option(help="Task to draw; by default all.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    as_json: Json = False,
) -> None:
    """Write a page with maps, scores and what was learned: one HTML file, for any browser."""
    _check_page(out)
    if source is not None and data is None:
        raise ValueError("--source says whose columns --data has: give --data too.")
    plotly()
    loaded = mrgp.load(fit)
    if task is not None:
        check_asked(loaded, task, None, False)
    written = write_report(
        loaded,
        out,
        data=_fitted(fit, loaded),
        held_out=None if data is None else read_values(fit, loaded, data, source),
        grid=None if grid is None else grid_support(grid, loaded),
        task=task,
        title=title,
        progress=progress("report"),
    )
    if as_json:
        print_json(_account(written))
    else:
        say(f"wrote {written}")


def _check_page(out: Path) -> None:
    """Refuse a file that is no page, before anything is computed for it."""
    if out.suffix.lower() not in SUFFIXES:
        raise ValueError(f"--out {out} must end in {' or '.join(SUFFIXES)}.")
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder; give the name of a file.")


def _fitted(path: Path, fit: mrgp.Fit) -> mrgp.Dataset | None:
    """Return the data of a fit, where the files that its configuration names still have them."""
    try:
        config = config_of(path)
        data = None if config is None else read_data(config)
    except (ConfigError, OSError, ValueError, TypeError) as error:
        note(f"note: the data of the fit cannot be read again: {str(error).splitlines()[0]}")
        return None
    if data is None or fit.has_data(data):
        return data
    note("note: the files of the fit's configuration have other values now; they are not shown.")
    return None


def _account(written: Report) -> dict[str, Any]:
    """Return what was written, in words that JSON knows."""
    return {
        "report": str(written.path),
        "bytes": written.size,
        "grid": written.grid,
        "tasks": list(written.tasks),
        "scores": {
            name: {f"{s}, {t}": scores for (s, t), scores in of_processes.items()}
            for name, of_processes in written.checks.items()
        },
    }
