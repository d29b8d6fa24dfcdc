"""What the names of columns and dimensions mean: places, times, windows."""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence

LON = ("lon", "longitude", "lng", "long")
LAT = ("lat", "latitude")
PLANE = (("x", "easting", "east"), ("y", "northing", "north"))
TIME = ("time", "datetime", "date", "timestamp", "measurementdategmt", "date_time", "hour", "day")
STARTS = ("start", "from", "begin", "time_start", "start_time", "date_start", "start_date")
ENDS = ("end", "until", "to", "time_end", "end_time", "date_end", "end_date")
BRACKETS = re.compile(r"\(([^)]+)\)|\[([^\]]+)\]")
_START = re.compile(
    r"(?i:(^|[_ ]+)(start|lower|min)$|^(start|lower|min)[_ ]+)"
    r"|(?<=[a-z0-9])(Start|Lower|Min)$|^([sS]tart|[lL]ower|[mM]in)(?=[A-Z])"
)
KINDS = {"lon": LON, "lat": LAT, "time": (*TIME, *STARTS)}


def plain(name: str) -> str:
    """Return a name in lower case, without units, blanks and words that add nothing.

    >>> [plain(n) for n in ("Longitude (deg)", "Site Lat", "Start Time", "time_utc", "NO2 [ppb]")]
    ['longitude', 'lat', 'start_time', 'time', 'no2']
    """
    words = re.split(r"[^a-z0-9.]+", BRACKETS.sub(" ", name).strip().lower())
    kept = [w for w in words if w not in ("", "site", "station", "utc", "gmt", "deg", "degrees")]
    return "_".join(kept)


def without_end(name: str) -> str:
    """Return the name of a window's column without the word "start", "lower" or "min" at its ends.

    >>> [without_end(n) for n in ("time_start", "Min lon", "LonMin", "minute", "started_at")]
    ['time', 'lon', 'Lon', 'minute', 'started_at']
    """
    return _START.sub("", name, count=1)


def kind_of(name: str) -> str | None:
    """Tell whether a name is one of longitudes, latitudes or times."""
    return next((kind for kind, words in KINDS.items() if plain(name) in words), None)


def side_of(name: str) -> str | None:
    """Tell which side of a grid a name means: as `kind_of`, with x and y as east and north.

    >>> side_of("Easting"), side_of("latitude"), side_of("depth")
    ('lon', 'lat', None)
    """
    plane = zip(("lon", "lat"), PLANE, strict=True)
    return kind_of(name) or next((kind for kind, words in plane if plain(name) in words), None)


def first(names: Iterable[str], wanted: Sequence[str]) -> str | None:
    """Return the first name that is among those wanted, which are in order of preference."""
    known = {plain(name): name for name in reversed(list(names))}
    return next((known[word] for word in wanted if word in known), None)


def match(names: Sequence[str], inputs: Sequence[str], sure: bool = False) -> dict[str, str]:
    """Return which input each name stands for: its own, one of its kind, or the next left.

    With `sure` the order says nothing, and x and y are east and north.

    >>> match(["time", "latitude", "longitude"], ["lon", "lat", "time"])
    {'time': 'time', 'latitude': 'lat', 'longitude': 'lon'}
    >>> match(["y", "x", "depth"], ["lon", "lat", "time"], sure=True)
    {'y': 'lat', 'x': 'lon'}
    """
    rounds: tuple[Callable[[str, str], bool], ...] = (
        lambda name, given: name == given,
        lambda name, given: kind_of(name) == kind_of(given) is not None,
        # A name that means something else is not taken for what is left.
        (lambda name, given: side_of(name) == side_of(given) is not None)
        if sure
        else (lambda name, given: None in (kind_of(name), kind_of(given))),
    )
    found: dict[str, str] = {}
    for fits in rounds:
        for name in (name for name in names if name not in found):
            left = (given for given in inputs if given not in found.values())
            given = next((given for given in left if fits(name, given)), None)
            if given is not None:
                found[name] = given
    return {name: found[name] for name in names if name in found}


def did_you_mean(name: str, known: Iterable[object]) -> str:
    """Return a question with the nearest of the names that are there, or nothing."""
    names = {str(k).lower(): str(k) for k in known}
    near = difflib.get_close_matches(name.lower(), names, 1, 0.6)
    return f" Did you mean {names[near[0]]!r}?" if near else ""


def offer(name: str, known: Iterable[object]) -> str:
    """Return the names that are there, and the nearest to one that is not.

    >>> offer("tine", ["time", "lon"])
    "time, lon. Did you mean 'time'?"
    """
    known = list(known)
    return f"{listed(known)}.{did_you_mean(name, known)}"


def listed(names: Iterable[object], most: int = 12) -> str:
    """Return names with commas between them, the first few of many."""
    shown = [str(name) for name in names]
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")
