"""NO2 at London's monitors, and blocks of a coarse product made from them with a known bias."""

import dataclasses
import re
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset, Observations
from mrgp.datasets.aurn import aurn
from mrgp.datasets.cases import Recording, check_name, data_file, hold_out, measured
from mrgp.datasets.loaded import need
from mrgp.io.geography import local_axes
from mrgp.supports import Support, boxes, points
from mrgp.supports.quadrature import mesh

WEST, SOUTH, EAST, NORTH = -0.5, 51.3, 0.3, 51.7
CORNER, BLOCK = np.array([WEST, SOUTH]), 0.2
LEAST_SITES = 3
RATIO, OFFSET = 0.6, 5.0
FOLDS = 8
TEST_HOUR = 48.0
INPUTS = ("time", "lon", "lat")
AXES = local_axes([WEST, EAST], [SOUTH, NORTH], "london_no2")
DRAWN = {"19 February, 11:00": 11.0, "21 February, 17:00": 65.0}
MAP_COLUMNS, MAP_ROWS = 48, 38


LAQN = ("laqn_2022", "window_no2_2022-02-19_to_21.csv", "laqn_site_metadata.csv", "2022-02-19")
AURN = ("aurn_london_2018", "window_2018-02-19_to_21.csv", "sites.csv", "2018-02-19")
NETWORKS = {"forecast": LAQN, "leave-sites-out": LAQN, "aurn-2018": AURN}
"""The folder, values and sites of each protocol, and when its hours begin."""


def london_folds(protocol: str = "forecast") -> tuple[str, ...]:
    """Return the folds of a protocol of `london_no2`: the day predicted, or groups of sites.

    >>> london_folds()
    ('21 February',)
    """
    if protocol not in NETWORKS:
        raise ValueError(f"london_no2: protocol= is one of {tuple(NETWORKS)}; got {protocol!r}.")
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
    check_name("london_no2", fold, london_folds(protocol), f"fold of {protocol!r}", "those")
    hourly = _read(*NETWORKS[protocol])
    if protocol == "leave-sites-out":
        test = hourly["site"].isin(np.unique(hourly["site"])[int(fold) :: FOLDS])
        blocks = block_means(hourly[~test])
    else:
        test = hourly["time"] >= TEST_HOUR
        blocks = block_means(hourly)
    places = in_kilometres(hourly["time"], hourly[["lon", "lat"]].to_numpy())
    sites = measured(places, hourly["no2"], "no2", "sites")
    about = {"site": tuple(hourly["site"][test]), "maps": _maps()}
    return hold_out(Dataset([sites, blocks]), sites.process, test.to_numpy(), **about)


def _maps() -> dict[str, Support]:
    sides = np.linspace(WEST, EAST, MAP_COLUMNS), np.linspace(SOUTH, NORTH, MAP_ROWS)
    degrees = mesh(*sides)
    return {
        title: in_kilometres(np.full(len(degrees), hour), degrees) for title, hour in DRAWN.items()
    }


def _read(folder: str, values: str, sites: str, start: str) -> Any:
    """Return the values that were recorded, site by site and hour by hour since the start."""
    import pandas as pd

    table, places = (pd.read_csv(data_file(f"{folder}/{file}")) for file in (values, sites))
    places = places.rename(columns=lambda column: re.sub("^@(Site)?", "", column))
    frame = aurn(table.rename(columns={"time": "date"}), "no2", sites=places).frame.dropna()
    return frame.assign(time=(frame["time"] - pd.Timestamp(start, tz="UTC")) / pd.Timedelta("1h"))


def hourly_no2(day: int, days: int, complete: float) -> Any:
    """Return hourly NO2 of 2022 with the place and type of each site, from a day of the year on.

    Days count from one. Sites have at least a share `complete` of the hours; `time` is in hours
    since the start.
    """
    import pandas as pd

    need("pyarrow", "Parquet files")
    table: Any = pd.read_parquet(data_file("laqn_2022/no2_2022_hourly.parquet"))
    begin = pd.Timestamp("2022-01-01") + pd.Timedelta(days=day - 1)
    hours = (table["time"] - begin) / pd.Timedelta("1h")
    table = table.assign(time=hours, site=table["site"].astype(str))
    table = table[(hours >= 0) & (hours < 24 * days)]
    places: Any = pd.read_csv(data_file("laqn_2022/laqn_site_metadata.csv"))
    columns = {"@Longitude": "lon", "@Latitude": "lat", "@SiteType": "type"}
    places = places.set_index("@SiteCode")[list(columns)].rename(columns=columns)
    table = table.join(places, on="site").dropna()
    count = table.groupby("site")["no2"].transform("size")
    return table[count >= complete * 24 * days].sort_values(["site", "time"], kind="stable")


def block_means(hourly: Any) -> Observations:
    """Return the biased hourly means of the sites in each block that has enough of them."""
    # Sites on an edge belong to the block that begins there.
    block = np.floor((hourly[["lon", "lat"]] - CORNER) / BLOCK + 1e-9)
    rows = hourly.assign(column=block["lon"], row=block["lat"])
    sites = rows.groupby(["column", "row"])["site"].transform("nunique")
    rows = rows[sites >= LEAST_SITES]
    means = rows.groupby(["column", "row", "time"], as_index=False)["no2"].mean()
    lower = CORNER + BLOCK * means[["column", "row"]].to_numpy()
    support = in_kilometres(means["time"], lower, lower + BLOCK)
    return measured(support, RATIO * means["no2"] + OFFSET, "no2", "blocks")


def in_kilometres(time: Any, *degrees: Float[np.ndarray, "n 2"]) -> Support:
    """Return points, or boxes between two corners, in kilometres that know their degrees."""
    origin, step = np.array([[axis.origin, axis.step] for axis in AXES]).T
    sides = [np.column_stack([time, (side - origin) / step]) for side in degrees]
    made = points(*sides, inputs=INPUTS) if len(sides) == 1 else boxes(*sides, inputs=INPUTS)
    return dataclasses.replace(made, axes=(None, *AXES))
