"""Files as frames and grids, with the line at which one cannot be read."""

import contextlib
import csv
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from mrgp.config.names import did_you_mean
from mrgp.config.schema import SHAPES, TABLES, ConfigError
from mrgp.io.geography import need
from mrgp.io.probing import check_columns, check_values, probe, size_of

DECIMAL_COMMA = r"\s*[+-]?\d+,\d+\s*"
OFFSET = r"(?:Z|\d[+-]\d\d:?\d\d)$"
UNEVEN = "Numbers with a decimal comma need a semicolon between columns"
LONGEST_LINE = 1 << 24
SHOWN = 80
FIRST_BYTES = {".gpkg": b"SQLite format 3\0", ".shp": b"\x00\x00\x27\x0a", ".geojson": b"{"}
"""How files of shapes begin: what begins in other ways, GDAL would take for another kind."""


@contextlib.contextmanager
def told(where: str) -> Iterator[None]:
    """Put the place before what went wrong there."""
    try:
        yield
    except (ValueError, TypeError, OSError, KeyError) as error:
        text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
        # Which function found out is nothing to those who wrote a file.
        text = re.sub(r"^(from_frame|from_grid)(: | )", "", text).rstrip(".")
        text = re.sub(r"^source '[^']*', (task '[^']*': )", r"\1", text)
        end = "" if text.endswith("?") else "."
        raise ConfigError(f"{text}{end}" if where in text else f"{where}: {text}{end}") from error


def require(path: Path, folder: bool = False) -> None:
    """Refuse a file that is not there, with the nearest name that is."""
    if path.is_file() or (folder and path.is_dir()):
        return
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; give a file.")
    there = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
    raise ConfigError(f"There is no file {path}.{did_you_mean(path.name, there)}")


def read_frame(path: Path) -> Any:
    """Read a table or shapes."""
    require(path)
    suffix = path.suffix.lower()
    if suffix not in (*TABLES, *SHAPES):
        known = ", ".join((*TABLES, *SHAPES))
        raise ConfigError(f"{path} ends in {path.suffix!r}; tables and shapes end in {known}.")
    with told(str(path)):
        frame = _read_csv(path) if suffix == ".csv" else _read_binary(path, suffix)
        check_columns(frame.shape[1])
        if len(frame) == 0:
            raise ConfigError("there are names of columns, but no rows below them")
    return frame


def read_coordinate(column: Any, where: str) -> Any:
    """Return a column of numbers as it is, and one of text as dates; each row must have one."""
    gaps = column.isna()
    if gaps.any():
        raise ConfigError(
            f"{where} is empty in {gaps.sum()} of {len(gaps)} rows, first in line {line_of(gaps)}."
            " A value needs a place and a time: fill them in, or remove those rows"
        )
    if not _is_text(column):
        return column
    # Offsets may differ from row to row.
    zoned = bool(column.astype(str).str.contains(OFFSET).any())
    dates: Any = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=zoned)
    if dates.notna().all():
        return dates
    wrong = _no_numbers(column)
    wrong = dates.isna() if wrong.all() else wrong
    first = str(column[wrong].iloc[0])[:SHOWN]
    raise ConfigError(
        f"{where}, line {line_of(wrong)}: {first!r} is neither a number nor a date"
        " in the form 2022-02-19 or 2022-02-19T13:00. Other forms of dates can be read in two ways,"
        " so rewrite the column."
    )


def check_numbers(column: Any, where: str) -> Any:
    """Return a column of numbers as it is; refuse text among them, and say at which line."""
    if _is_text(column) and (wrong := _no_numbers(column)).any():
        first = str(column[wrong].iloc[0])[:SHOWN]
        advice = "Leave missing values empty, and write 1.5 for one and a half."
        if first.strip().startswith("<"):
            number = first.strip().lstrip("<= ")
            advice = f"Write the limit itself, {number}, and limit = {number} in the configuration."
        raise ConfigError(f"{where}, line {line_of(wrong)}: {first!r} is no number. {advice}")
    return column


def _no_numbers(column: Any) -> Any:
    numbers: Any = pd.to_numeric(column, errors="coerce")
    return numbers.isna() & column.notna()


def line_of(rows: Any) -> int:
    """Return the line of a file with a header at which the first of some rows stands."""
    return int(rows.to_numpy().argmax()) + 2


def read_grid(path: Path, whole: bool = True) -> xr.Dataset:
    """Open a NetCDF file of either format, or a Zarr store, and read all of it if `whole`."""
    zarr = path.suffix.lower() == ".zarr"
    require(path, folder=zarr)
    try:
        if zarr:
            probe(path, "zarr")
            grid = xr.open_zarr(path, chunks=None, consolidated=False)
        else:
            grid = xr.open_dataset(path, engine=engine_of(path))
        check_values(sum(int(values.size) for values in grid.variables.values()), size_of(path))
        if not whole:
            return grid
        with grid:
            return grid.load()
    except Exception as error:
        # Libraries meet damaged files with errors of every type.
        size = f" ({path.stat().st_size} bytes)" if path.is_file() else ""
        raise ConfigError(
            f"{path}{size} cannot be read as a grid: {_reason(error)}. It may be only half written;"
            " load or copy it again."
        ) from None


def engine_of(path: Path) -> Any:
    """Return which library reads a NetCDF file, once it was seen that it can."""
    with path.open("rb") as file:
        # The first bytes tell the two formats apart.
        if file.read(3) == b"CDF":
            return "scipy"
    probe(path, "hdf5")
    return "h5netcdf"


def _reason(error: Exception) -> str:
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    return text.strip().split("\n")[0].rstrip(".")[:400] or type(error).__name__


def _read_binary(path: Path, suffix: str) -> Any:
    try:
        if suffix == ".parquet":
            probe(path, "parquet")
            return pd.read_parquet(path)
        with path.open("rb") as file:
            first = file.read(100).removeprefix(b"\xef\xbb\xbf").lstrip()
        if not first.startswith(FIRST_BYTES[suffix]):
            raise ConfigError(f"it does not begin as {suffix} files do, but with {first[:16]!r}")
        geopandas = need("geopandas")
        probe(path, "shapes")
        return geopandas.read_file(path)
    except (ConfigError, ImportError):
        raise
    except Exception as error:
        raise ConfigError(f"it cannot be read: {_reason(error)}") from None


def _read_csv(path: Path) -> Any:
    """Read columns between commas, semicolons or tabs; names that come twice stay the same."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline(LONGEST_LINE)
        separator = max(",;\t", key=head.count)
        check_columns(head.count(separator) + 1)
        check_table(path, head.count(separator) + 1)
        if len(head) == LONGEST_LINE:
            raise ConfigError("its first line does not end; it has the names of the columns")
        settings = {"sep": separator, "skipinitialspace": True, "encoding": "utf-8-sig"}
        frame = pd.read_csv(path, **settings)
        if separator != "," and any(map(_has_decimal_comma, (frame[c] for c in frame))):
            frame = pd.read_csv(path, decimal=",", **settings)
    except UnicodeDecodeError:
        raise ConfigError("the text is not in UTF-8. Save the file as CSV in UTF-8") from None
    except pd.errors.EmptyDataError:
        raise ConfigError("the file is empty") from None
    except pd.errors.ParserError as error:
        reason = str(error).split("C error: ")[-1].strip()
        raise ConfigError(f"{reason}. {UNEVEN}") from None
    if not isinstance(frame.index, pd.RangeIndex):
        raise ConfigError(f"rows have more fields than the {frame.shape[1]} names above. {UNEVEN}")
    _note_open_end(path)
    try:
        names = next(csv.reader([head], delimiter=separator, skipinitialspace=True))
    except csv.Error as error:
        raise ConfigError(f"its first line has no names of columns: {error}") from None
    if len(names) == frame.shape[1]:
        frame.columns = [n.strip() or old for n, old in zip(names, frame.columns, strict=True)]
    return frame


def check_table(path: Path, columns: int) -> None:
    """Refuse a text of few bytes and very many values: short rows are filled up."""
    lines, last = 0, b""
    with path.open("rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            # Lines end with \n, \r or both.
            lines += part.count(b"\n") + part.count(b"\r") - (last + part).count(b"\r\n")
            last = part[-1:]
    check_values(lines * columns, size_of(path))


def _note_open_end(path: Path) -> None:
    """Say where the last line has no end: a file that was cut there may have other values."""
    with path.open("rb") as file:
        file.seek(-min(200, path.stat().st_size), os.SEEK_END)
        last = file.read()
    if not last.endswith((b"\n", b"\r")):
        line = last.splitlines()[-1].decode("utf-8", "replace")
        warnings.warn(
            f"{path}: the last line, {line[-80:]!r}, has no end. If the file was cut short, its"
            " last value may be wrong.",
            stacklevel=2,
        )


def _has_decimal_comma(column: Any) -> bool:
    return _is_text(column) and bool(column.dropna().astype(str).str.fullmatch(DECIMAL_COMMA).any())


def _is_text(column: Any) -> bool:
    return pd.api.types.is_string_dtype(column) or pd.api.types.is_object_dtype(column)
