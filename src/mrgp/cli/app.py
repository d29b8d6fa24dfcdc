"""The application: what all commands share, and how errors are told."""

import contextlib
import json
import math
import sys
import time
import traceback
import warnings
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import mrgp
from mrgp._drafts import check_writable
from mrgp.inference import Bar, Lines, Progress, Silent
from mrgp.inference.progress import Beat, said
from mrgp.io.clues import Ask

EVERYWHERE = {"--quiet": "quiet", "--verbose": "verbose"}
MOST_LINES = 6
TABLE_WIDTH = 170
STOPPED = 130
EXPECTED = (ValueError, TypeError, OSError, ImportError, mrgp.FitError)
_MORE = "--verbose shows where"

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Fuse observations of different resolution, noise and bias.",
    epilog="Exit codes: 0 done; 1 the data, the configuration or the fit is wrong; 2 the command"
    " is; 130 stopped by Ctrl-C.",
)
asked: set[str] = set()
"""Which of "quiet" and "verbose" the command line has."""


def main() -> None:
    """Run the command line, and end with its exit code; compiled programs last."""
    mrgp.compilation_cache()
    sys.exit(command(sys.argv[1:]))


def command(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors are told in a few lines.

    `--quiet` and `--verbose` may stand anywhere; with the latter errors come with their traceback.
    """
    asked.clear()
    asked.update(EVERYWHERE[word] for word in arguments if word in EVERYWHERE)
    left = [word for word in arguments if word not in EVERYWHERE]
    try:
        with watched(), warnings.catch_warnings():
            warnings.showwarning = _warn
            # A program that cannot be read from the cache is compiled again.
            warnings.filterwarnings("ignore", message=".*persistent compilation cache")
            app(left, prog_name="mrgp")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        _tell("[bold red]stopped[/]")
        return STOPPED
    except EXPECTED as error:
        return _fail(str(error))
    except Exception as error:
        return _fail(f"{type(error).__name__}: {error}\nThis is a fault of mrgp; {_MORE}.")
    finally:
        asked.clear()
    return 0


def watched() -> contextlib.AbstractContextManager[Any]:
    """Return what says what is being done after some silent seconds, unless the user wants none."""
    return contextlib.nullcontext() if "quiet" in asked else Beat()


def doing(what: str) -> None:
    """Note what a command is about to do: it is said where that takes long."""
    said.do(what)


def _fail(text: str) -> int:
    if "verbose" in asked:
        traceback.print_exc()
    # Escaped: messages speak of shapes such as [n, d], which are no markup.
    _tell(f"[bold red]error:[/] {escape(_brief(text))}")
    return 1


def _tell(text: str) -> None:
    said.at = time.monotonic()
    Console(stderr=True).print(text, highlight=False, soft_wrap=True)


def _warn(message: Any, *_: Any, **__: Any) -> None:
    note(f"[bold yellow]warning:[/] {escape(_brief(str(message)))}")


def note(text: str) -> None:
    """Write a line beside the results, unless the user wants none."""
    if "quiet" not in asked:
        _tell(text)


def _brief(text: str) -> str:
    lines = text.strip().splitlines()
    if len(lines) > MOST_LINES - 1:
        lines = [*lines[: MOST_LINES - 2], "... (--verbose shows all)"]
    return "\n".join(lines)


def say(*lines: object) -> None:
    """Write lines, unless the user wants none."""
    if "quiet" not in asked:
        said.at = time.monotonic()
        typer.echo("\n".join(map(str, lines)))


def show(header: Iterable[str], rows: Iterable[Iterable[str]], title: str | None = None) -> None:
    """Write a table, unless the user wants none."""
    table = Table(*header, title=title)
    for row in rows:
        table.add_row(*row)
    # A narrow terminal scrolls or wraps whole lines; squeezed columns cannot be read.
    console = Console(quiet="quiet" in asked)
    console.width = max(console.width, TABLE_WIDTH)
    console.print(table)


def answer(content: dict[str, Any], as_json: bool, *lines: object) -> None:
    """Print one JSON object if asked for, and lines otherwise.

    Numbers that are none are null, as JSON has no other word.
    """
    if as_json:
        typer.echo(json.dumps(_plain(content), allow_nan=False))
    else:
        say(*lines)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_file(path: Path, suffixes: Collection[str] = (), option: str = "--out") -> None:
    """Refuse what cannot be written, before anything is computed for it."""
    if suffixes and path.suffix.lower() not in suffixes:
        raise ValueError(f"{option} {path} must end in {' or '.join(suffixes)}.")
    check_writable(path, f"{option} ")


def asker() -> Ask | None:
    """Return what asks a person which column is meant, where one sits at a terminal."""
    there = sys.stdin.isatty() and sys.stderr.isatty() and "quiet" not in asked
    return _ask if there else None


def _ask(file: Path, names: list[str], likely: str) -> str:
    """Ask which of several columns has the values: by number or by name, Enter for the likely."""
    note(f"{file}: several columns may have the values.")
    for number, name in enumerate(names, 1):
        note(f"  {number}  {escape(name)}")
    while True:
        with said.nothing():
            given = str(typer.prompt("Which one", default=likely, err=True)).strip()
        if given in names:
            return given
        if given.isdigit() and 1 <= int(given) <= len(names):
            return names[int(given) - 1]
        note(f"There is no {escape(repr(given))} among them.")


def progress(title: str = "") -> Progress:
    """Return a bar on a terminal, lines elsewhere, and nothing for a quiet user.

    Without a title stages have their own: what is chosen, a warm start, the fit.
    """
    if "quiet" in asked:
        return Silent()
    return Bar(title) if sys.stderr.isatty() else Lines(title)


def _version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"mrgp {mrgp.__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Errors with traceback.")] = False,
) -> None:
    """Fuse observations of different resolution, noise and bias."""
    del version  # its callback has answered
    asked.update(name for name, on in {"quiet": quiet, "verbose": verbose}.items() if on)
