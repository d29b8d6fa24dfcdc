"""Measurements from the services that publish them, into a file."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from mrgp.cli.app import app, say

WRITERS = {".csv": "to_csv", ".parquet": "to_parquet"}
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
    from mrgp.datasets import laqn

    writer = _writer(out)
    options: dict[str, Any] = {} if base is None else {"base": base}
    codes = None if sites is None else [code for code in sites.split(",") if code.strip()]
    _write(laqn(species, start, end, sites=codes, group=group, cache=cache, **options), out, writer)


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
    from mrgp.datasets import aurn

    writer = _writer(out)
    _write(aurn(file, species, sites=sites), out, writer)


@data_app.command("cams")
def load_cams(
    file: Annotated[Path, typer.Argument(help="A NetCDF file of CAMS.")],
    species: Species,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .nc.")],
    level: Annotated[float, typer.Option(help="Height in metres.")] = 0.0,
) -> None:
    """Bring a forecast or reanalysis of CAMS into a grid that `mrgp init` knows."""
    from mrgp.datasets import cams

    if out.suffix != ".nc":
        raise ValueError(f"--out {out} must end in .nc.")
    grid = cams(file, species, level=level)
    out.parent.mkdir(parents=True, exist_ok=True)
    grid.to_dataset(name=str(grid.name)).to_netcdf(out, engine="h5netcdf")
    say(f"{grid.name}: {dict(grid.sizes)}, {grid.attrs.get('units', 'no units')}")
    say(f"wrote {out}")


def _write(loaded: Any, out: Path, writer: str) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    getattr(loaded.frame, writer)(out, index=False)
    say(str(loaded))
    say(f"wrote {out}")


def _writer(out: Path) -> str:
    """Return the method of a frame that writes a file, before anything is loaded."""
    if out.suffix not in WRITERS:
        raise ValueError(f"--out {out} must end in {' or '.join(WRITERS)}.")
    if out.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise ValueError("Parquet files need pyarrow: pip install 'mrgp[io]', or write a .csv.")
    return WRITERS[out.suffix]
