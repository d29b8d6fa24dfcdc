"""What the columns of a table seem to be: values, counts, means over windows, kinds of places."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from mrgp.config.names import first, kind_of, listed, plain, without_end
from mrgp.config.schema import ConfigError
from mrgp.io.files import check_numbers

VALUES = ("no2", "pm25", "pm2.5", "pm2_5", "pm10", "o3", "so2", "co", "nox", "no", "value", "y")
LABELS = re.compile(
    r"(.*_)?(id|code|index|number|nr|row|fips|unnamed(_\d+)?)|altitude|elevation|year"
)
COUNTED = {"cases", "deaths", "count", "counts", "events", "incidents", "crashes", "accidents"}
COUNTED |= {"infections", "sids", "admissions", "sightings", "fires"}
EXPOSED = {"population", "pop", "births", "persons", "people", "inhabitants", "expected"}
KINDS = ("type", "class", "category", "kind", "environment", "landuse", "land_use", "setting")
AVERAGED = re.compile(r"(^|[^a-z])(hourly|daily|monthly|mean|means|avg|average|averaged)([^a-z]|$)")
LAST = ((re.compile(r"(?i)start"), "end"), (re.compile(r"(?i)lower"), "upper"))
LAST += ((re.compile(r"(?i)min"), "max"),)
MOST_KINDS = 15
SMALL_COUNT = 200

Ask = Callable[[Path, list[str], str], str]
"""Asks which of several columns is meant, given the one that is most likely."""


class Clue(NamedTuple):
    """Keys of a source that something suggests, and what to say of it in comments."""

    keys: dict[str, Any]
    notes: list[str]


def is_numeric(values: Any) -> bool:
    """Tell whether a column or variable has numbers."""
    kind = getattr(values, "dtype", None)
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)


def value_columns(frame: Any, columns: Sequence[str]) -> list[str]:
    """Return the columns that may have the values: numbers that are no places, times or labels.

    >>> value_columns(pd.DataFrame({"site_id": [1], "time": [2.0], "no2": [30.0]}), ["time", "no2"])
    ['no2']
    """
    numeric = (c for c in columns if kind_of(c) is None and is_numeric(frame[c]))
    return [c for c in numeric if not LABELS.fullmatch(plain(c))]


def value_column(
    file: Path, frame: Any, columns: list[str], ask: Ask | None, wanted: Sequence[str]
) -> tuple[str, list[str]]:
    """Return the column that has the values, and what to say of others that may."""
    left = [c for c in columns if kind_of(c) is None]
    numeric = value_columns(frame, columns)
    likely = first(left, VALUES)
    if likely and likely not in numeric:
        check_numbers(frame[likely], f"{file}, column {likely!r}")
    if not numeric:
        raise ConfigError(
            f"{file}: no column of numbers is left for the values; the columns are"
            f" {listed(frame)}. Numbers are written as 1.5."
        )
    named = [c for c in wanted if c in numeric]
    if named:
        return named[0], _others(numeric, named[0], sure=True)
    known = [c for c in numeric if plain(c) in VALUES]
    counted = [c for c in numeric if COUNTED & set(plain(c).split("_"))]
    best = first(numeric, VALUES) or (counted[0] if counted else numeric[-1])
    sure = len(numeric) == 1 or len(known) == 1
    if not sure and ask is not None:
        best, sure = ask(file, numeric, best), True
    return best, _others(numeric, best, sure)


def _others(numeric: list[str], chosen: str, sure: bool) -> list[str]:
    others = listed(c for c in numeric if c != chosen)
    if not others:
        return []
    doubt = "" if sure else "; is y the right one? mrgp init --value NAME takes another"
    return [f"other columns of numbers: {others}{doubt}"]


def counts(frame: Any, y: str, regions: bool) -> Clue:
    """Recognise counts by whole numbers and the name of their column, and what they are out of."""
    values: Any = pd.Series(pd.to_numeric(frame[y], errors="coerce")).dropna()
    whole = len(values) > 0 and bool(((values >= 0) & (values == values.round())).all())
    words = set(plain(y).split("_"))
    if not whole or values.nunique() < 2:
        return Clue({}, [])
    if not words & COUNTED:
        small = values.max() <= SMALL_COUNT and frame[y].dtype.kind in "iu"
        doubt = ['likelihood = "poisson"   # whole numbers: if these are counts']
        return Clue({}, doubt if small and plain(y) not in VALUES else [])
    about = [c for c in frame if EXPOSED & set(plain(str(c)).split("_")) and is_numeric(frame[c])]
    # Of births_1974 and births_of_boys_1979, the first goes with deaths_1974.
    about.sort(key=lambda c: len(set(plain(str(c)).split("_")) ^ words))
    about = [str(c) for c in about if bool((frame[c] > 0).all() and (frame[c] >= frame[y]).all())]
    keys: dict[str, Any] = {"likelihood": "poisson"}
    if about:
        return Clue(keys | {"exposure": about[0]}, [f"counts: the field is a rate, per {about[0]}"])
    notes = ['exposure = "population"   # counts: what they are out of, if a column has it']
    if regions:
        notes.append('values = "sum"   # or counts add up over regions: the field is a density')
    return Clue(keys, notes)


def spacing_of(times: Any) -> str | None:
    """Return how far apart dates are where they are whole steps from midnight on.

    >>> spacing_of(pd.date_range("2022-02-19", periods=5, freq="h"))
    '1h'
    """
    dates: Any = pd.DatetimeIndex(pd.unique(pd.Series(times))).sort_values()
    if len(dates) < 3:
        return None
    step = (dates[1:] - dates[:-1]).min()
    known = {"1min": "1min", "15min": "15min", "30min": "30min", "1h": "1h", "3h": "3h", "1D": "1D"}
    text = next((name for name in known if pd.Timedelta(name) == step), None)
    since = (dates - dates[0].normalize()) / step
    return text if text and bool((since == since.round()).all()) else None


def averaged(times: Any, said: str) -> Clue:
    """Recognise means over the time to the next: days, or what a name or an attribute says so."""
    step = spacing_of(times) if len(times) and times.dtype.kind == "M" else None
    if step is None:
        return Clue({}, [])
    if step == "1D" or AVERAGED.search(said.lower()):
        note = f"values are means over {step} from each time on; up to it would be window = "
        return Clue({"window": step}, [f'{note}"-{step}"'])
    return Clue({}, [f'window = "{step}"   # if values are means over {step} from each time on'])


def kinds_of_places(frame: Any, columns: list[str], places: list[str]) -> Clue:
    """Recognise columns of text that describe places: few kinds, each of several places."""
    found = [c for c in columns if _describes(frame, c, places)]
    known = [c for c in found if plain(c) in KINDS]
    if known:
        one = sorted(map(str, frame[known[0]].unique()))[0]
        note = f"places to predict at then have these too; a grid has one, as {known[0]}={one}"
        return Clue({"covariates": known}, [note])
    words = ", ".join(f'"{c}"' for c in found)
    return Clue({}, [f"covariates = [{words}]   # text that may describe places"] if found else [])


def _describes(frame: Any, column: str, places: list[str]) -> bool:
    values = frame[column]
    if is_numeric(values) or values.isna().any() or not 2 <= values.nunique() <= MOST_KINDS:
        return False
    if not places:
        return False
    each = frame[[*places, column]].drop_duplicates()
    apart = len(frame[places].drop_duplicates())
    return len(each) == apart and apart >= 2 * values.nunique()


def ends_of(columns: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return columns between which cells lie, by the names that they share.

    >>> ends_of(["lon_min", "lon_max", "lat_min", "lat_max", "minute"])
    {'lon': ('lon_min', 'lon_max'), 'lat': ('lat_min', 'lat_max')}
    """
    known = {c.lower(): c for c in columns}
    found = {}
    for column in columns:
        name = without_end(column)
        if name in ("", column) or kind_of(name) == "time":
            continue
        others = (word.sub(last, column).lower() for word, last in LAST if word.search(column))
        end = next((known[other] for other in others if other in known), None)
        if end is not None:
            found[name] = column, end
    return found
