"""The London Air Quality Network, from the public interface of the Environmental Research Group."""

import datetime
import functools
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from mrgp.datasets._http import Fetcher, FetchError, Incomplete
from mrgp.datasets.loaded import Loaded, by_reason, canonical, listed, load, numbers, placed, utc

BASE = "https://api.erg.ic.ac.uk/AirQuality"
WHERE = "laqn"
DATE = "@MeasurementDateGMT"
VALUE = "@Value"


def laqn(
    species: str,
    start: Any,
    end: Any,
    *,
    sites: Any = None,
    group: str = "London",
    base: str = BASE,
    cache: Any = None,
    timeout: float | int = 30.0,
    retries: int = 4,
    pause: float | int = 0.2,
) -> Loaded:
    """Load hourly means of a species, such as "NO2" or "PM25", at the sites of a group.

    The hours are those that begin from `start` until before `end`, which are dates or timestamps,
    in UTC unless they have a zone: "2022-02-19" to "2022-02-22" are three days. `sites` are codes,
    such as ["MY1", "BL0"]; without, those of the group that were open then.

    Values are kept as they come, negative ones (noise of the instruments) too; those left empty
    are NaN. A site that cannot be loaded does not stop the others: `refused` names it and says
    why. Requests are `pause` seconds apart and wait at most `timeout` each; a failed one is sent
    up to `retries` times more, with growing pauses. With a folder as `cache`, replies that are
    complete are kept there and not asked for again; those of days that are not over are not kept.

    >>> laqn("NO2", "2022-02-19", "2022-02-18")
    Traceback (most recent call last):
    ValueError: laqn: end= must lie after start=, which is the first hour ...
    """
    import pandas as pd

    name = canonical(species, WHERE)
    period = _period(start, end)
    root, codes = _root(base), _codes(sites)
    folder = None if cache is None else Path(cache)
    fetcher = Fetcher(float(timeout), retries, float(pause), folder, WHERE)
    register = _register(fetcher, root, group)
    parts, refused, notes = [], {}, []
    for code in register if codes is None else codes:
        try:
            if code not in register:
                raise FetchError(f"not in the register of the group {group}")
            lat, lon = _place(register[code], period if codes is None else None)
            rows = _hours(fetcher, root, code, name, period, notes)
        except FetchError as error:
            refused[code] = str(error)
        else:
            parts.append(rows.assign(site=code, lat=lat, lon=lon))
    if not parts:
        raise FetchError(
            f"{WHERE}: none of the {len(refused)} sites gave {name.upper()} from {period.left} to"
            f" {period.right}: {'; '.join(by_reason(refused))}. Check species=, sites= and the"
            " dates, or try again later."
        )
    return load(pd.concat(parts, ignore_index=True), name, WHERE, root, refused, notes)


def _period(start: Any, end: Any) -> Any:
    """Return the interval of the hours that begin from `start` until before `end`."""
    import pandas as pd

    first, last = _instant(start, "start"), _instant(end, "end")
    if not first < last:
        raise ValueError(
            f"{WHERE}: end= must lie after start=, which is the first hour while end= is the first"
            f" that is left out; got {start} and {end}."
        )
    return pd.Interval(first, last, closed="left")


def _instant(given: Any, argument: str) -> Any:
    """Return a date as a timestamp in UTC; texts are ISO, as 5/2/2022 is two dates."""
    import pandas as pd

    dated = isinstance(given, str | datetime.date | np.datetime64)
    time = utc([given if dated else None])[0]
    if pd.isna(time):
        raise ValueError(
            f"{WHERE}: {argument}= is a date or a timestamp, such as '2022-02-19'; got {given!r}."
        )
    return time


def _root(base: str) -> str:
    if not base.lower().startswith(("https://", "http://")):
        raise ValueError(f"{WHERE}: base= is an address that begins with https://; got {base!r}.")
    return base.rstrip("/")


def _codes(sites: Any) -> list[str] | None:
    """Return the codes asked for, each once, or None for all."""
    if sites is None:
        return None
    given = [sites] if isinstance(sites, str) else list(sites)
    if not given or not all(isinstance(code, str) and code.strip() for code in given):
        raise ValueError(
            f"{WHERE}: sites= is a list of codes, such as ['MY1', 'BL0'], or None for all of the"
            f" group; got {sites!r}."
        )
    return list(dict.fromkeys(code.strip().upper() for code in given))


def _register(fetcher: Fetcher, root: str, group: str) -> dict[str, dict[str, Any]]:
    """Return what is known of the sites of a group, by code."""
    address = f"{root}/Information/MonitoringSites/GroupName={quote(group, safe='')}/Json"
    check = "the connection, base= and group="
    records = fetcher.require(address, _sites, "the register of sites at ", check)
    coded = {str(record["@SiteCode"] or "").strip().upper(): record for record in records}
    return {code: record for code, record in coded.items() if code}


def _place(site: dict[str, Any], period: Any) -> tuple[float, float]:
    """Return the latitude and longitude of a site that was open in a period, if that is asked."""
    (lat, lon), _ = numbers([site.get("@Latitude"), site.get("@Longitude")])
    if not placed(lat, lon):
        raise FetchError("the register has no coordinates of it in degrees")
    # Dates that are not known do not speak against a site.
    opened, closed = utc([site.get("@DateOpened"), site.get("@DateClosed")])
    if period is not None and (opened >= period.right or closed < period.left):
        raise FetchError("not open in this period")
    return lat, lon


def _hours(fetcher: Fetcher, root: str, code: str, name: str, period: Any, notes: list[str]) -> Any:
    """Return times and values of a site, and add what is to be said of them to the notes."""
    import pandas as pd

    first, last = period.left.floor("D"), period.right.ceil("D")
    address = (
        f"{root}/Data/SiteSpecies/SiteCode={quote(code, safe='')}/SpeciesCode={name.upper()}"
        f"/StartDate={first:%Y-%m-%d}/EndDate={last:%Y-%m-%d}/Json"
    )
    read = functools.partial(_records, code=code, species=name.upper())
    records = fetcher.get(address, read, keep=last <= pd.Timestamp.now("UTC"))
    values, odd = numbers(record[VALUE] for record in records)
    notes += [f"{code}: {note}" for note in odd]
    rows: Any = pd.DataFrame({"time": utc(r[DATE] for r in records), "value": values})
    unknown = rows["time"].isna().to_numpy().nonzero()[0]
    if len(unknown):
        texts = listed(repr(records[i][DATE]) for i in unknown)
        notes.append(f"{code}: records without a readable time are left out, at {texts}")
    rows = rows[rows["time"].between(period.left, period.right, inclusive="left")]
    if rows.empty:
        raise FetchError(f"no records of {name.upper()} in this period")
    hours = len(pd.date_range(period.left.ceil("h"), period.right, freq="h", inclusive="left"))
    absent = hours - rows["time"].nunique()
    if absent > 0:
        notes.append(f"{code}: {absent} of the {hours} hours have no record")
    return rows


def _sites(body: bytes) -> list[dict[str, Any]]:
    """Return the records of a register."""
    records = _as_list(_inside(body, "Sites").get("Site"), ("@SiteCode",))
    if not records:
        raise ValueError("the register lists no sites")
    return records


def _records(body: bytes, code: str, species: str) -> list[dict[str, Any]]:
    """Return the records of a site, after a look at whether they are those asked for."""
    found = _inside(body, "RawAQData")
    came = (found.get("@SiteCode"), found.get("@SpeciesCode"))
    if tuple(str(part).upper() for part in came) != (code, species):
        raise ValueError(f"the reply is of {came[1]} at {came[0]}, not of {species} at {code}")
    return _as_list(found.get("Data"), (DATE, VALUE))


def _inside(body: bytes, key: str) -> dict[str, Any]:
    """Return the object that a reply in JSON has at a key."""
    try:
        parsed = json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise Incomplete(f"a reply of {len(body)} bytes that is not whole JSON") from None
    found = parsed.get(key) if isinstance(parsed, dict) else None
    if not isinstance(found, dict):
        keys = f"the keys {list(parsed)}" if isinstance(parsed, dict) else type(parsed).__name__
        raise ValueError(f"a reply of another structure: expected an object {key!r}, got {keys}")
    return found


def _as_list(found: Any, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return records as a list: the interface gives a single one by itself, and none as nothing."""
    records = [found] if isinstance(found, dict) else found or []
    if not isinstance(records, list):
        raise ValueError(f"records of another structure: expected a list, got {found!r:.60}")
    for record in records:
        lacking = [k for k in keys if not isinstance(record, dict) or k not in record]
        if lacking:
            raise ValueError(f"a record of another structure, without {lacking}: {record!r:.60}")
    return records
