"""The UK's Automatic Urban and Rural Network, from files in the format of UK-AIR."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.datasets._http import Fetcher, Incomplete
from mrgp.datasets.loaded import Loaded, canonical, listed, load, numbers, placed, utc
from mrgp.io.probing import check_values

WHERE = "aurn"
CODES = ("code", "aurn_code", "site_code", "site")
LATITUDES = ("latitude", "lat")
LONGITUDES = ("longitude", "lon", "long")
NAMELESS = "(rows without a code)"


def aurn(path_or_url: Any, species: str, *, sites: Any = None) -> Loaded:
    """Load hourly means of a species from a CSV file of UK-AIR: code, date, no2, pm10, pm2.5, ...

    Dates are the beginnings of hours, in GMT. `sites` is a table with the code, latitude and
    longitude of each site, as a frame or a CSV file; without, the file itself needs those columns.
    Rows of a site that has no coordinates are left out, and `refused` names it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "aurn.csv"
    ...     with file.open("w") as rows:
    ...         print("code,date,no2,latitude,longitude", file=rows)
    ...         print("KC1,2018-06-18 00:00:00,21.5,51.52,-0.21", file=rows)
    ...     aurn(file, "NO2").frame["no2"].tolist()
    [21.5]
    """
    name = canonical(species, WHERE)
    table = _read(path_or_url)
    code = _column(table, ("code", "site"), path_or_url)
    columns = [column for column in table.columns if column.replace(".", "") == name]
    if not columns:
        raise ValueError(
            f"{WHERE}: {_named(path_or_url)} has no column of the species {name!r}; its columns"
            f" are {list(table.columns)}."
        )
    place = _place(table, path_or_url) if sites is None else _joined(table[code], sites)
    y, notes = numbers(table[columns[0]])
    time = _times(table[_column(table, ("date",), path_or_url)], path_or_url)
    rows = table[[code]].set_axis(["site"], axis=1)
    rows = rows.assign(time=time, lat=place[:, 0], lon=place[:, 1], value=y)
    known = placed(rows["lat"], rows["lon"])
    lost = rows.loc[~known, "site"].value_counts(sort=False)
    refused = {str(s): f"no coordinates in degrees; rows left out: {n}" for s, n in lost.items()}
    if not known.any():
        raise ValueError(
            f"{WHERE}: {_named(path_or_url)} has no row of a site with known coordinates; its"
            f" sites are {listed(refused) or 'none'}. Give sites=, a table of code, latitude and"
            " longitude that has them."
        )
    return load(rows[known], name, WHERE, _named(path_or_url), refused, notes)


def _read(given: Any) -> Any:
    """Return a table of texts, its columns in lower case, from a frame, a file or an address."""
    import pandas as pd

    if isinstance(given, pd.DataFrame):
        table: Any = given.astype(object)
    else:
        text = _text(given)
        _check_whole(text, given)
        try:
            table = pd.read_csv(io.StringIO(text), dtype=object, index_col=False)
        except ValueError as error:
            raise ValueError(
                f"{WHERE}: {_named(given)} is not a CSV file: {error}. Download it again."
            ) from None
    table = table.rename(columns=lambda c: str(c).strip().lower())
    for column in table.columns.intersection(CODES):
        table[column] = [str(c).strip() if pd.notna(c) else NAMELESS for c in table[column]]
    return table


def _check_whole(text: str, given: Any) -> None:
    """Refuse a file whose last row has fewer fields than the first."""
    lines = text.strip().splitlines()
    try:
        check_values(len(lines) * lines[0].count(","), len(text))
    except ValueError as error:
        raise ValueError(f"{WHERE}: {_named(given)}: {error}.") from None
    try:
        first, last = (len(next(csv.reader([line]))) for line in (lines[0], lines[-1]))
    except csv.Error as error:
        raise ValueError(
            f"{WHERE}: {_named(given)} is not a CSV file: {error}. Download it again."
        ) from None
    if last < first:
        raise ValueError(
            f"{WHERE}: {_named(given)} is cut short: its last row has {last} fields, its first"
            f" {first}. Download it again."
        )


def _text(given: Any) -> str:
    if isinstance(given, str) and given.lower().startswith(("https://", "http://")):
        return Fetcher(where=WHERE).require(given, _decoded, "", "the address")
    path = Path(given)
    if not path.is_file():
        raise FileNotFoundError(
            f"{WHERE}: there is no file {path}. Give a CSV file of UK-AIR, or an address that"
            " begins with https://."
        )
    try:
        return _decoded(path.read_bytes())
    except Incomplete as error:
        raise ValueError(f"{WHERE}: {path} is {error}. Download it again.") from None


def _decoded(body: bytes) -> str:
    if not body.strip():
        raise Incomplete("empty")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Incomplete("no text in UTF-8") from None


def _column(table: Any, names: tuple[str, ...], where: Any) -> str:
    for name in names:
        if name in table.columns:
            return name
    raise ValueError(
        f"{WHERE}: {_named(where)} needs a column {' or '.join(map(repr, names))}; it has"
        f" {list(table.columns)}."
    )


def _place(table: Any, where: Any) -> Float[np.ndarray, "n 2"]:
    """Return the latitude and longitude of each row, NaN where it has none."""
    try:
        columns = _column(table, LATITUDES, where), _column(table, LONGITUDES, where)
    except ValueError as error:
        raise ValueError(f"{error} Give sites=, a table of code, latitude and longitude.") from None
    return np.stack([numbers(table[column])[0] for column in columns], 1)


def _joined(codes: Any, sites: Any) -> Float[np.ndarray, "n 2"]:
    """Return the place of each code, NaN where the table of sites has none."""
    import pandas as pd

    table = _read(sites)
    known: Any = pd.DataFrame(_place(table, sites), index=table[_column(table, CODES, sites)])
    known = known.dropna().drop(index=NAMELESS, errors="ignore")
    return known[~known.index.duplicated()].reindex(codes).to_numpy(np.float64)


def _times(texts: Any, where: Any) -> Any:
    """Return dates in UTC, or name the first row whose date is not in the format expected."""
    times = utc(texts)
    wrong = times.isna().nonzero()[0]
    if len(wrong):
        raise ValueError(
            f"{WHERE}: {len(wrong)} of the {len(times)} dates of {_named(where)} are not such as"
            f" '2018-06-18 00:00:00'; the first is {str(texts.iloc[wrong[0]])!r}, in row"
            f" {wrong[0] + 1}. If it is the last row, the file was cut short: download it again."
        )
    return times


def _named(given: Any) -> str:
    return str(given) if isinstance(given, str | Path) else "the table given"
