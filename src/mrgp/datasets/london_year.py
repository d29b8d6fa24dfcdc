"""A year of hourly NO2 at London's monitors: unseen sites, gaps and the next day held out."""

import zlib
from typing import Any

import numpy as np

from mrgp.data import Dataset
from mrgp.datasets.cases import Recording, check_name, measured
from mrgp.datasets.gauntlet import case_of
from mrgp.datasets.london import hourly_no2, in_kilometres

PROTOCOLS = ("unseen-sites", "gaps", "forecast")
DAYS = (20, 50, 95, 140, 185, 230, 275, 320)
"""Days of the year, counted from one, on which three days begin."""
STARTS = {3: DAYS, 30: (32, 152, 274), 365: (1,)}
"""Days on which windows of so many days begin: months are February, June and October."""
MONTHLY = tuple(40 + 28 * k for k in range(12))
"""Days that are forecast from the thirty before: none is the last of a month, which all lack."""
FOLDS = 4
COMPLETE = 0.5
GAP = {3: 1, 30: 7, 365: 7}
"""The days that are missing in a gap."""


def london_year_folds(protocol: str = "unseen-sites", days: int = 3) -> tuple[str, ...]:
    """Return what a protocol is repeated over: days on which windows begin, each with its folds.

    >>> london_year_folds(days=30)[:4]
    ('day 32, fold 0', 'day 152, fold 0', 'day 274, fold 0', 'day 32, fold 1')
    >>> london_year_folds("forecast", days=30)[:2]
    ('day 40', 'day 68')
    """
    check_name("london_year", protocol, PROTOCOLS, "protocol", "the protocols")
    if days not in STARTS or (protocol == "forecast" and days > 30):
        raise ValueError(
            f"london_year: {protocol!r} has windows of 3 days, of 30, or (but for forecasts) of"
            f" 365; got {days}."
        )
    if protocol == "forecast":
        return tuple(f"day {day}" for day in (MONTHLY if days == 30 else DAYS))
    folds = range(FOLDS if days < 365 else 1)
    return tuple(f"day {day}, fold {fold}" for fold in folds for day in STARTS[days])


def london_year(fold: str, protocol: str = "unseen-sites", days: int = 3) -> Recording:
    """Hold hourly NO2 of London's monitors in 2022 out of a window of so many days.

    "unseen-sites" holds every fourth site out, "gaps" a week (of three days, one day) of a quarter
    of the sites, "forecast" the day after the window at all sites. Sites have at least half of the
    hours, and their types as covariates. `means` are over days, and over all hours held out.

    >>> london_year("day 1")
    Traceback (most recent call last):
    ValueError: london_year: no fold of 'unseen-sites' is named 'day 1'; those are ('day 20, ...
    """
    names = london_year_folds(protocol, days)
    check_name("london_year", fold, names, f"fold of {protocol!r}", "those")
    numbers = [int(word.split()[1]) for word in fold.split(", ")]
    # A forecast is of the day on which it starts, from the days before.
    ahead = protocol == "forecast"
    begin, length = (numbers[0] - days, days + 1) if ahead else (numbers[0], days)
    hourly = hourly_no2(begin, length, COMPLETE)
    sites = np.unique(hourly["site"])
    if ahead:
        held = hourly["time"].to_numpy() >= 24.0 * days
    elif protocol == "unseen-sites":
        mixed = np.random.default_rng(zlib.crc32(b"london_year")).permutation(sites)
        held = hourly["site"].isin(mixed[numbers[1] :: FOLDS]).to_numpy()
    else:
        held = _gaps(hourly, sites, days, numbers[1])
    where = in_kilometres(hourly["time"], hourly[["lon", "lat"]].to_numpy())
    seen = Dataset([measured(where, hourly["no2"], "no2", "sites")])
    return case_of(seen, held, 24.0, {"type": hourly["type"].to_numpy(str)})


def _gaps(hourly: Any, sites: np.ndarray, days: int, draw: int) -> np.ndarray:
    """Tell which hours of a quarter of the sites are missing, each site at days of its own."""
    rng = np.random.default_rng([draw, days])
    chosen = rng.permutation(sites)[: round(len(sites) / 4)]
    first = rng.integers(0, days - GAP[days] + 1, len(chosen))
    start = hourly["site"].map(dict(zip(chosen, 24.0 * first, strict=True))).to_numpy(float)
    since = hourly["time"].to_numpy() - start
    return (since >= 0) & (since < 24.0 * GAP[days])
