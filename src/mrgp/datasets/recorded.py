"""PM2.5 beside coarser PM10 at monitors, with two days of the PM2.5 held out."""

from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset, Observations
from mrgp.datasets.cases import Recording, check_name, data_file, hold_out
from mrgp.supports import Nodes, nodes, points

AURN = "aurn_london_2018/window_2018-06-18_to_28.csv"
LAQN = "laqn_2022/window_{}_2022-06-18_to_28.csv"
AURN_SITE = "KC1"
HOURS = 264
GAP = 48
FOLDS = {f"{18 + 2 * k}-{19 + 2 * k} June": GAP * k for k in range(5)}
LAQN_GAP = "22-23 June"
COMPLETE = 0.97
PM = ("pm25", "pm10")

Hourly = Float[np.ndarray, " n"]


def folds() -> tuple[str, ...]:
    """Return the pairs of days that `inter_task` holds out, one pair a fold.

    >>> folds()[0]
    '18-19 June'
    """
    return tuple(FOLDS)


def inter_task(fold: str, window: int = 2) -> Recording:
    """Hold two days of hourly PM2.5 out at a site that reports PM10 as means of `window` hours.

    AURN site KC1 (North Kensington), 18 to 28 June 2018, one input: hours since the start.

    >>> inter_task("18 June")
    Traceback (most recent call last):
    ValueError: inter_task: no fold is named '18 June'; the folds are ('18-19 June', ...
    """
    check_name("inter_task", fold, folds())
    frame = _read(AURN, "date", "2018-06-18", "code")
    pm25, pm10 = (np.asarray(frame[name, AURN_SITE], np.float64) for name in ("pm2.5", "pm10"))
    return _held_out(AURN_SITE, pm25, pm10, window, FOLDS[fold])


def laqn_sites() -> tuple[str, ...]:
    """Return the LAQN sites of June 2022 that have 97 % of the hours of both PM10 and PM2.5.

    >>> import contextlib
    >>> with contextlib.suppress(FileNotFoundError):  # where the recorded data are missing
    ...     assert all(len(code) == 3 for code in laqn_sites())
    """
    return tuple(_laqn())


def inter_task_laqn(site: str, window: int = 2) -> Recording:
    """Hold the PM2.5 of 22 and 23 June 2022 out at a LAQN site, as `inter_task` does.

    PM10 windows are means of the hours that were recorded; windows without any are left out.

    >>> import contextlib
    >>> with contextlib.suppress(FileNotFoundError):  # where the recorded data are missing
    ...     assert len(inter_task_laqn(laqn_sites()[0], window=24).y) <= 48
    """
    sites = _laqn()
    complete = f"site with {COMPLETE:.0%} of the hours of both PM10 and PM2.5"
    check_name("inter_task_laqn", site, tuple(sites), complete, "those")
    return _held_out(site, *sites[site], window, FOLDS[LAQN_GAP])


def window_means(y: Hourly, window: int) -> tuple[Nodes, Float[np.ndarray, " m"]]:
    """Average hourly values over consecutive windows, each a region of the hours it averages.

    A last, shorter window keeps its own hours; missing hours (NaN) belong to no window.

    >>> support, means = window_means(np.array([1.0, 3.0, np.nan, 5.0, 7.0]), 2)
    >>> support
    Nodes(3 means of 2 nodes: hour 0 to 4, widths 0 to 1)
    >>> means.tolist()
    [2.0, 5.0, 7.0]
    """
    if not 1 <= window <= len(y):
        raise ValueError(
            f"window_means: window= must lie between 1 and the {len(y)} hours given; got {window}."
        )
    count = -(-len(y) // window)
    rows = np.pad(y, (0, count * window - len(y)), constant_values=np.nan).reshape(count, window)
    seen = np.isfinite(rows)
    kept = seen.any(1)
    hours = np.arange(float(rows.size)).reshape(rows.shape)
    support = nodes(hours[kept, :, None], seen[kept], inputs="hour")
    return support, np.nanmean(rows[kept], axis=1)


def _held_out(site: str, pm25: Hourly, pm10: Hourly, window: int, first: int) -> Recording:
    """Remove 48 hours of PM2.5 from the data, and keep PM10 as means of windows throughout."""
    hours, about = np.arange(float(HOURS)), {"name": site, "units": "ug/m3"}
    fine = Observations(points(hours[:, None], inputs="hour"), pm25, task="pm25", **about)
    coarse = Observations(*window_means(pm10, window), task="pm10", **about)
    return hold_out(Dataset([fine, coarse]), fine.process, (hours - first) // GAP == 0)


def _laqn() -> dict[str, tuple[Hourly, Hourly]]:
    """Return hourly PM2.5 and PM10 of the LAQN sites where both are nearly complete."""
    tables = [_read(LAQN.format(task), "time", "2022-06-18", "site")[task] for task in PM]
    nearly = [table.columns[table.count() >= COMPLETE * HOURS] for table in tables]
    sites = sorted(set(nearly[0]) & set(nearly[1]))
    pm25, pm10 = (np.asarray(table[sites], np.float64) for table in tables)
    return {site: (pm25[:, k], pm10[:, k]) for k, site in enumerate(sites)}


def _read(file: str, time: str, start: str, site: str) -> Any:
    """Read a table of recorded data: a row an hour from `start`, a column a (quantity, site)."""
    import pandas as pd

    long: Any = pd.read_csv(data_file(file), parse_dates=[time])
    hours = pd.date_range(start, periods=HOURS, freq="h")
    return long.pivot(index=time, columns=site).reindex(hours)
