"""What a loader of monitors' data returns: a tidy frame, and an account of what is not in it."""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp._extras import needed
from mrgp.data import Observations
from mrgp.io import from_frame

UNITS = dict.fromkeys(("no", "no2", "nox", "o3", "so2", "pm10", "pm25"), "ug/m3") | {"co": "mg/m3"}
INPUTS = ("time", "lon", "lat")
SHOWN = 6


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Loaded:
    """Hourly means at sites: a frame, and what is missing from it.

    `frame` has the columns site, time and end (the ends of the hour, UTC), lat, lon (degrees) and
    one of values, named by `species`; NaN is a missing value, of which there are `missing`.
    `refused` has each site that gave no values, and why; `notes` say what else was not taken as
    it came.

    >>> import pandas as pd
    >>> hour = pd.DataFrame({"site": ["MY1"], "time": pd.to_datetime(["2022-02-19"], utc=True)})
    >>> load(hour.assign(lat=51.5, lon=-0.15, value=40.0), "no2", "laqn", "a file", {})
    Loaded(laqn, no2: 1 hours at 1 site)
    """

    frame: Any
    species: str
    units: str | None
    missing: int
    refused: Mapping[str, str]
    source: str
    network: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        sites = _count(self.frame["site"].nunique(), "site")
        return f"Loaded({self.network}, {self.species}: {len(self.frame)} hours at {sites})"

    def __str__(self) -> str:
        ends = self.frame["time"].min(), self.frame["end"].max()
        first, last = (f"{time:%Y-%m-%d %H:%M}" for time in ends)
        sites = _count(self.frame["site"].nunique(), "site")
        lines = [
            f"{self.network}, {self.species} in {self.units or 'units that are not known'}:"
            f" {_count(len(self.frame), 'hourly mean')} at {sites}, {first} to {last} UTC",
            f"source: {self.source}",
            f"missing: {self.missing} of {_count(len(self.frame), 'value')}",
            f"refused: {_count(len(self.refused), 'site')}",
        ]
        lines += [f"  {line}" for line in by_reason(self.refused)]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def observations(self, name: str | None = None, task: str | None = None) -> Observations:
        """Return observations: means over hours, at points in longitude and latitude.

        The inputs are time, lon and lat. The source is called by its network and the task by its
        species, unless given.
        """
        hours = {"start": "time", "end": "end", "crs": "EPSG:4326", "inputs": INPUTS}
        about = {"name": name or self.network, "task": task, "units": self.units}
        return from_frame(self.frame, ["lon", "lat"], self.species, **hours, **about)


def need(package: str, what: str) -> Any:
    """Import a package of the extra `io`, or say what needs it.

    >>> need("nowhere", "Addresses")
    Traceback (most recent call last):
    ImportError: Addresses need nowhere, which is not installed: pip install "mrgp[io]".
    """
    otherwise = f'{what} need {package}, which is not installed: pip install "mrgp[io]".'
    return needed(package, otherwise)


def canonical(species: Any, where: str) -> str:
    """Return a species in lower case without punctuation, so that sources agree on its name.

    >>> canonical("PM2.5", "laqn")
    'pm25'
    """
    name = re.sub(r"[^a-z0-9]", "", species.lower()) if isinstance(species, str) else ""
    if not name:
        raise ValueError(
            f"{where}: species= is the name of one quantity, such as 'NO2'; got {species!r}."
        )
    return name


def numbers(values: Iterable[Any]) -> tuple[Float[np.ndarray, " n"], list[str]]:
    """Return texts as numbers, NaN where there is none, and a note of those that are no numbers.

    >>> numbers(["7.5", "", None, "-0.2", "n/a"])
    (array([ 7.5,  nan,  nan, -0.2,  nan]), ['values that are no numbers count as missing: n/a'])
    """
    texts = ["" if value is None else str(value).strip() for value in values]
    found = np.array([_number(text or "nan") for text in texts], np.float64)
    odd = [text for text, number in zip(texts, found, strict=True) if np.isinf(number)]
    notes = [f"values that are no numbers count as missing: {listed(odd)}"] if odd else []
    return np.where(np.isinf(found), np.nan, found), notes


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.inf


def utc(texts: Iterable[Any]) -> Any:
    """Return dates in UTC, NaT where a text is none that ISO knows.

    >>> utc(["2018-06-18 01:00:00", "yesterday"]).isna().tolist()
    [False, True]
    """
    import pandas as pd

    return pd.to_datetime([str(t) for t in texts], format="ISO8601", utc=True, errors="coerce")


def placed(lat: Any, lon: Any) -> Any:
    """Tell which latitudes and longitudes are there, and are degrees."""
    return (np.abs(lat) <= 90) & (np.abs(lon) <= 180)


def load(
    rows: Any,
    species: str,
    network: str,
    source: str,
    refused: Mapping[str, str],
    notes: Iterable[str] = (),
) -> Loaded:
    """Put rows of site, time, lat, lon and value in order, as the data of a network.

    A record that comes twice counts once; two values of one hour are both kept. Both are noted.
    """
    import pandas as pd

    notes = list(notes)
    repeated = rows.duplicated(["site", "time", "value"])
    if twice := int(repeated.sum()):
        verb = "is" if twice == 1 else "are"
        notes.append(f"{_count(twice, 'record')} came twice and {verb} kept once")
    rows = rows[~repeated].sort_values(["site", "time"], kind="stable", ignore_index=True)
    if rivals := int(rows.duplicated(["site", "time"]).sum()):
        verb = "has" if rivals == 1 else "have"
        notes.append(f"{_count(rivals, 'hour')} {verb} a second, different value; both are kept")
    hours = rows.assign(end=rows["time"] + pd.Timedelta("1h")).rename(columns={"value": species})
    frame = hours[["site", "time", "end", "lat", "lon", species]]
    missing, units = int(frame[species].isna().sum()), UNITS.get(species)
    return Loaded(frame, species, units, missing, dict(refused), source, network, tuple(notes))


def by_reason(refused: Mapping[str, str]) -> list[str]:
    """Return one line for each reason, with the first sites that have it.

    >>> by_reason({"A1": "HTTP 404", "B2": "an empty reply", "C3": "HTTP 404"})
    ['A1, C3: HTTP 404', 'B2: an empty reply']
    """
    groups: dict[str, list[str]] = {}
    for site, reason in refused.items():
        groups.setdefault(reason, []).append(site)
    return [f"{listed(sites)}: {reason}" for reason, sites in groups.items()]


def listed(names: Iterable[str]) -> str:
    """Return the first of some names, and how many others there are.

    >>> listed("ABCDEFGH")
    'A, B, C, D, E, F and 2 others'
    """
    names = list(names)
    if len(names) <= SHOWN + 1:
        return ", ".join(names)
    return f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} others"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
