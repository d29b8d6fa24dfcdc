"""Measurements from the services that publish them, into a file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mrgp.cli.app import app, check_file, say
from mrgp.config.schema import TABLES
from mrgp.datasets import aurn, cams, laqn
from mrgp.io.exports import check_out, write

Out = Annotated[Path, typer.Option("--out", "-o", help="File to write: .csv or .parquet.")]
Species = Annotated[str, typer.Option(help="What was measured: NO2, PM10, PM25, O3, ...")]

data_app = typer.Typer(no_args_is_help=True, help="Load measurements into a file.")
app.add_typer(data_app, name="data")


@data_app.command("laqn")
def load_laqn(
    species: Species,
    start: Annotated[str, typer.Option(help="First day or hour, such as 2022-02-19 (UTC).")],
    end: Annotated[str, typer.Option(help="First day or hour that is left out.")],
    out: Out,
    sites: Annotated[str | None, typer.Option(help="Codes, such as MY1,BL0; else all.")] = None,
    group: Annotated[str, typer.Option(help="Group of sites.")] = "London",
    cache: Annotated[Path | None, typer.Option(help="Folder that keeps complete replies.")] = None,
    base: Annotated[str | None, typer.Option(help="Another address of the service.")] = None,
) -> None:
    """Load hourly means of the London Air Quality Network."""
    _check(out)
    options: dict[str, Any] = {} if base is None else {"base": base}
    codes = None if sites is None else [code for code in sites.split(",") if code.strip()]
    loaded = laqn(species, start, end, sites=codes, group=group, cache=cache, **options)
    _write(loaded.frame, out, loaded)


@data_app.command("aurn")
def load_aurn(
    file: Annotated[str, typer.Argument(help="A CSV of UK-AIR: a path, or an address.")],
    species: Species,
    out: Out,
    sites: Annotated[
        str | None, typer.Option(help="A CSV of sites with coordinates, if the file has none.")
    ] = None,
) -> None:
    """Bring hourly means of the Automatic Urban and Rural Network into one form."""
    _check(out)
    loaded = aurn(file, species, sites=sites)
    _write(loaded.frame, out, loaded)


@data_app.command("cams")
def load_cams(
    file: Annotated[Path, typer.Argument(help="A NetCDF file of CAMS.")],
    species: Species,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .nc.")],
    level: Annotated[float, typer.Option(help="Height in metres.")] = 0.0,
) -> None:
    """Bring a forecast or reanalysis of CAMS into a grid that `mrgp init` knows."""
    _check(out, (".nc",))
    grid = cams(file, species, level=level)
    account = f"{grid.name}: {dict(grid.sizes)}, {grid.attrs.get('units', 'no units')}"
    _write(grid.to_dataset(name=str(grid.name)), out, account)


def _check(out: Path, kinds: tuple[str, ...] = TABLES) -> None:
    """Refuse a file that cannot be written, before anything is loaded."""
    check_file(out, kinds)
    check_out(out)


def _write(made: Any, out: Path, account: object) -> None:
    write(made, out)
    say(account, f"wrote {out}")
