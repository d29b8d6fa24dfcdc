"""NO2 at London's monitors, and blocks of a coarse product made from them with a known bias."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.datasets.recorded import Recording, data_file
from mrgp.io.geography import local_axes
from mrgp.supports import Support, boxes, points

WEST, SOUTH, EAST, NORTH = -0.5, 51.3, 0.3, 51.7
BLOCK = 0.2
LEAST_SITES = 3
RATIO, OFFSET = 0.6, 5.0
FOLDS = 8
TEST_HOUR = 48.0
INPUTS = ("time", "lon", "lat")
UNITS = "ug/m3"
AXES = local_axes([WEST, EAST], [SOUTH, NORTH], "london_no2")
DRAWN = {"19 February, 11:00": 11.0, "21 February, 17:00": 65.0}
MAP_COLUMNS, MAP_ROWS = 48, 38


class _Files(NamedTuple):
    """Where a network's values and sites are, and what their columns are called."""

    values: str
    start: str
    site: str
    time: str
    places: str
    columns: tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
class _Hourly:
    """Values that were recorded: site, hours since the start, longitude and latitude, NO2."""

    site: np.ndarray
    time: np.ndarray
    degrees: np.ndarray
    no2: np.ndarray

    def rows(self, chosen: np.ndarray) -> "_Hourly":
        """Return some of the values."""
        return _Hourly(self.site[chosen], self.time[chosen], self.degrees[chosen], self.no2[chosen])

    @property
    def support(self) -> Support:
        """The places and hours, as points that know their degrees."""
        x = np.column_stack([self.time, _local(self.degrees)])
        return dataclasses.replace(points(x, inputs=INPUTS), axes=(None, *AXES))


LAQN = _Files(
    "laqn_2022/window_no2_2022-02-19_to_21.csv",
    "2022-02-19",
    "site",
    "time",
    "laqn_2022/laqn_site_metadata.csv",
    ("@SiteCode", "@Longitude", "@Latitude"),
)
AURN = _Files(
    "aurn_london_2018/window_2018-02-19_to_21.csv",
    "2018-02-19",
    "code",
    "date",
    "aurn_london_2018/sites.csv",
    ("aurn_code", "longitude", "latitude"),
)
NETWORKS = {"forecast": LAQN, "leave-sites-out": LAQN, "aurn-2018": AURN}


def london_folds(protocol: str = "forecast") -> tuple[str, ...]:
    """Return the folds of a protocol of `london_no2`: the day predicted, or groups of sites.

    >>> london_folds()
    ('21 February',)
    """
    _check_protocol(protocol)
    if protocol == "leave-sites-out":
        return tuple(map(str, range(FOLDS)))
    return ("21 February",)


def london_no2(fold: str, protocol: str = "forecast") -> Recording:
    """Hold hourly NO2 of London's monitors out, beside a coarse product made from them.

    19 to 21 February 2022, LAQN. The target `sites` has points. Per hour, `blocks` has the mean of
    the sites in each block of 0.2 degrees that has three or more, passed through 0.6 y + 5, as a
    box in longitude and latitude.
    "forecast" holds all sites of the last day out, and the blocks contain them; "leave-sites-out"
    holds every eighth site out at all hours, and the blocks do without; "aurn-2018" is "forecast"
    at the five AURN sites on the same days of 2018. Inputs are hours since the start and
    kilometres from the middle of the grid, which know their degrees. There are maps of an hour with
    sites, and of one without.

    >>> london_no2("19 February")
    Traceback (most recent call last):
    ValueError: london_no2: no fold of 'forecast' is named '19 February'; those ...
    """
    if fold not in london_folds(protocol):
        raise ValueError(
            f"london_no2: no fold of {protocol!r} is named {fold!r}; those are"
            f" {london_folds(protocol)}."
        )
    hourly = _read(NETWORKS[protocol])
    if protocol == "leave-sites-out":
        test = np.isin(hourly.site, np.unique(hourly.site)[int(fold) :: FOLDS])
        averaged = hourly.rows(~test)
    else:
        test = hourly.time >= TEST_HOUR
        averaged = hourly
    seen, gone = hourly.rows(~test), hourly.rows(test)
    data = Dataset([_observations(seen.support, seen.no2, "sites"), _blocks(averaged)])
    site = tuple(gone.site.tolist())
    return Recording(data, gone.support, gone.no2, "sites", "no2", site, _maps())


def _maps() -> dict[str, Support]:
    sides = np.linspace(WEST, EAST, MAP_COLUMNS), np.linspace(SOUTH, NORTH, MAP_ROWS)
    place = _local(np.stack(np.meshgrid(*sides, indexing="ij"), -1).reshape(-1, 2))
    found = {}
    for title, hour in DRAWN.items():
        x = np.column_stack([np.full(len(place), hour), place])
        found[title] = dataclasses.replace(points(x, inputs=INPUTS), axes=(None, *AXES))
    return found


def _check_protocol(protocol: str) -> None:
    if protocol not in NETWORKS:
        raise ValueError(f"london_no2: protocol= is one of {tuple(NETWORKS)}; got {protocol!r}.")


def _read(files: _Files) -> _Hourly:
    """Read the values that were recorded, site by site and hour by hour."""
    import pandas as pd

    values: Any = pd.read_csv(data_file(files.values), parse_dates=[files.time])
    code, *degrees = files.columns
    places: Any = pd.read_csv(data_file(files.places)).set_index(code)
    values = values.dropna(subset="no2").sort_values([files.site, files.time])
    site = values[files.site].to_numpy(str)
    time = (values[files.time] - pd.Timestamp(files.start)) / pd.Timedelta("1h")
    return _Hourly(
        site,
        time.to_numpy(np.float64),
        places.loc[site, degrees].to_numpy(np.float64),
        values["no2"].to_numpy(np.float64),
    )


def _blocks(hourly: _Hourly) -> Observations:
    """Return the biased hourly means of the sites in each block that has enough of them."""
    corner = np.array([WEST, SOUTH])
    # Sites on an edge belong to the block that begins there.
    numbers = np.floor((hourly.degrees - corner) / BLOCK + 1e-9)
    lower, y = [], []
    for block in np.unique(numbers, axis=0):
        inside = hourly.rows((numbers == block).all(1))
        if len(np.unique(inside.site)) < LEAST_SITES:
            continue
        hours, index = np.unique(inside.time, return_inverse=True)
        y.append(np.bincount(index, inside.no2) / np.bincount(index))
        place = np.broadcast_to(corner + BLOCK * block, (len(hours), 2))
        lower.append(np.column_stack([hours, place]))
    time, degrees = np.split(np.concatenate(lower), [1], axis=1)
    sides = [np.concatenate([time, _local(d)], 1) for d in (degrees, degrees + BLOCK)]
    support = dataclasses.replace(boxes(*sides, inputs=INPUTS), axes=(None, *AXES))
    return _observations(support, RATIO * np.concatenate(y) + OFFSET, "blocks")


def _local(degrees: np.ndarray) -> np.ndarray:
    """Return longitudes and latitudes in kilometres from the middle of the grid."""
    sides = zip(degrees.T, AXES, strict=True)
    return np.stack([(side - axis.origin) / axis.step for side, axis in sides], 1)


def _observations(support: Support, y: np.ndarray, name: str) -> Observations:
    return Observations(support, y, task="no2", name=name, units=UNITS)
