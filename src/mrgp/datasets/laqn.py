"""The London Air Quality Network, from the public interface of the Environmental Research Group."""

import dataclasses
import functools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from mrgp.datasets._http import Fetcher, FetchError, Incomplete
from mrgp.datasets.loaded import Loaded, by_reason, canonical, listed, load, numbers

BASE = "https://api.erg.ic.ac.uk/AirQuality"
WHERE = "laqn"
DATE = "@MeasurementDateGMT"
VALUE = "@Value"


class _Site(NamedTuple):
    """A site of the register, with its coordinates as they came."""

    code: Any
    lat: Any
    lon: Any
    opened: Any
    closed: Any


@dataclasses.dataclass(frozen=True)
class _Period:
    """The hours that begin from `start` until before `end`, and the days that contain them."""

    start: Any
    end: Any

    @property
    def days(self) -> str:
        first, last = self.start.floor("D"), self.end.ceil("D")
        return f"StartDate={first:%Y-%m-%d}/EndDate={last:%Y-%m-%d}"

    @property
    def over(self) -> bool:
        import pandas as pd

        return self.end.ceil("D") <= pd.Timestamp.now("UTC")


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
    wanted, refused = _wanted(register, codes, group, period)
    parts, notes = [], []
    for site in wanted:
        try:
            rows, said = _site(fetcher, root, site, name, period)
        except FetchError as error:
            refused[site.code] = str(error)
            continue
        notes += said
        if len(rows):
            parts.append(rows)
        else:
            refused[site.code] = f"no records of {name.upper()} in this period"
    if not parts:
        raise FetchError(
            f"{WHERE}: none of the {len(refused)} sites gave {name.upper()} from {period.start} to"
            f" {period.end}: {'; '.join(by_reason(refused))}. Check species=, sites= and the dates,"
            " or try again later."
        )
    return load(pd.concat(parts, ignore_index=True), name, WHERE, root, refused, notes)


def _period(start: Any, end: Any) -> _Period:
    ends = [_instant(start, "start"), _instant(end, "end")]
    if not ends[0] < ends[1]:
        raise ValueError(
            f"{WHERE}: end= must lie after start=, which is the first hour while end= is the first"
            f" that is left out; got {start} and {end}."
        )
    return _Period(*ends)


def _instant(given: Any, argument: str) -> Any:
    """Return a date as a timestamp in UTC; texts are ISO, as 5/2/2022 is two dates."""
    import pandas as pd

    try:
        iso = pd.to_datetime(given, format="ISO8601") if isinstance(given, str) else given
        time = pd.NaT if isinstance(iso, int | float) else pd.Timestamp(iso)
    except (ValueError, TypeError):
        time = pd.NaT
    if time is pd.NaT:
        raise ValueError(
            f"{WHERE}: {argument}= is a date or a timestamp, such as '2022-02-19'; got {given!r}."
        )
    return time.tz_localize("UTC") if time.tz is None else time.tz_convert("UTC")


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


def _register(fetcher: Fetcher, root: str, group: str) -> dict[str, _Site]:
    """Return the sites of a group by code."""
    address = f"{root}/Information/MonitoringSites/GroupName={quote(group, safe='')}/Json"
    try:
        records = fetcher.get(address, _sites)
    except FetchError as error:
        raise FetchError(
            f"{WHERE}: the register of sites at {address} was not loaded: {error}. Check the"
            " connection, base= and group=, or try again later."
        ) from None
    keys = ("@SiteCode", "@Latitude", "@Longitude", "@DateOpened", "@DateClosed")
    found = [_Site(*(record.get(key) for key in keys)) for record in records]
    return {str(site.code).strip().upper(): site for site in found if site.code}


def _wanted(
    register: dict[str, _Site], codes: list[str] | None, group: str, period: _Period
) -> tuple[list[_Site], dict[str, str]]:
    """Return the sites to ask for, with coordinates as numbers, and the others with the reason."""
    wanted, refused = [], {}
    for code in register if codes is None else codes:
        if code not in register:
            refused[code] = f"not in the register of the group {group}"
            continue
        site = register[code]
        (lat, lon), _ = numbers([site.lat, site.lon])
        if not (abs(lat) <= 90 and abs(lon) <= 180):
            refused[code] = "the register has no coordinates of it in degrees"
        elif codes is None and not _open(site, period):
            refused[code] = "not open in this period"
        else:
            wanted.append(site._replace(code=code, lat=float(lat), lon=float(lon)))
    return wanted, refused


def _open(site: _Site, period: _Period) -> bool:
    """Return whether a site was open in a period; dates that are not known do not speak against."""
    opened, closed = _times([site.opened, site.closed])
    return not (opened >= period.end or closed < period.start)


def _site(
    fetcher: Fetcher, root: str, site: _Site, name: str, period: _Period
) -> tuple[Any, list[str]]:
    """Return the rows of a site, and what is to be said of them."""
    import pandas as pd

    address = f"SiteCode={quote(site.code, safe='')}/SpeciesCode={name.upper()}/{period.days}"
    read = functools.partial(_records, code=site.code, species=name.upper())
    records = fetcher.get(f"{root}/Data/SiteSpecies/{address}/Json", read, period.over)
    values, odd = numbers(record[VALUE] for record in records)
    rows: Any = pd.DataFrame({"site": site.code, "time": _times(r[DATE] for r in records)})
    rows = rows.assign(lat=site.lat, lon=site.lon, value=values)
    notes = []
    if odd:
        notes.append(f"{site.code}: values that are no numbers count as missing: {listed(odd)}")
    unknown = rows["time"].isna()
    if unknown.any():
        texts = listed(repr(records[i][DATE]) for i in unknown.to_numpy().nonzero()[0])
        notes.append(f"{site.code}: records without a readable time are left out, at {texts}")
    rows = rows[(rows["time"] >= period.start) & (rows["time"] < period.end)]
    hours = len(pd.date_range(period.start.ceil("h"), period.end, freq="h", inclusive="left"))
    absent = hours - rows["time"].nunique()
    if len(rows) and absent > 0:
        notes.append(f"{site.code}: {absent} of the {hours} hours have no record")
    return rows, notes


def _times(texts: Iterable[Any]) -> Any:
    import pandas as pd

    return pd.to_datetime([str(t) for t in texts], format="ISO8601", utc=True, errors="coerce")


def _sites(body: bytes) -> list[dict[str, Any]]:
    """Return the records of a register."""
    found = _inside(_parsed(body), "Sites")
    records = _as_list(found.get("Site"), ("@SiteCode",))
    if not records:
        raise ValueError("the register lists no sites")
    return records


def _records(body: bytes, code: str, species: str) -> list[dict[str, Any]]:
    """Return the records of a site, after a look at whether they are those asked for."""
    found = _inside(_parsed(body), "RawAQData")
    came = (found.get("@SiteCode"), found.get("@SpeciesCode"))
    if tuple(str(part).upper() for part in came) != (code, species):
        raise ValueError(f"the reply is of {came[1]} at {came[0]}, not of {species} at {code}")
    return _as_list(found.get("Data"), (DATE, VALUE))


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        size = len(body)
        raise Incomplete(f"a reply of {size} bytes that is not whole JSON") from None


def _inside(parsed: Any, key: str) -> dict[str, Any]:
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
