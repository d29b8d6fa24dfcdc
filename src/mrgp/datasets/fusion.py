"""Monitors and a chemistry-transport model: PM2.5 of the South-East US, June 2004."""

from typing import Any

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.datasets.cases import Recording, check_name, data_file, grid
from mrgp.datasets.loaded import needed
from mrgp.supports import Support, boxes, points

FOLDER = "seus_pm25_june2004"
START = "2004-06-01"
CELL = 12.0
FOLDS = 8
INPUTS = ("x", "y", "day")
UNITS = "ug/m3"
DRAWN = {"4 June": 3.0, "16 June": 15.0}
MAP_SIDE = 40


def fusion_folds() -> tuple[str, ...]:
    """Return the folds of `fusion`, each of four sites.

    >>> fusion_folds()
    ('0', '1', '2', '3', '4', '5', '6', '7')
    """
    return tuple(map(str, range(FOLDS)))


def fusion(fold: str, stride: int = 1) -> Recording:
    """Hold the monitors of a fold out, beside the whole grid of a biased model.

    The target `aqs` has daily means at the monitors' places; `cmaq` has those of the CMAQ model
    over squares of 12 km, every `stride`-th of them. Inputs are x and y in km, and the day of
    June 2004 counted from 0. There are maps of two days.

    >>> fusion("9")
    Traceback (most recent call last):
    ValueError: fusion: no fold is named '9'; the folds are ('0', '1', '2', '3', '4', ...
    """
    check_name("fusion", fold, fusion_folds())
    place, y, site_fold = _monitors()
    test = site_fold == int(fold)
    seen, gone = (points(place[rows], inputs=INPUTS) for rows in (~test, test))
    monitors = Observations(seen, y[~test], task="pm25", name="aqs", units=UNITS)
    data, units = Dataset([monitors, _cells(stride)]), {"x": "km", "y": "km"}
    return Recording(data, gone, y[test], "aqs", "pm25", maps=_maps(place), input_units=units)


def _maps(place: np.ndarray) -> dict[str, Support]:
    sides = [np.linspace(side.min(), side.max(), MAP_SIDE) for side in place.T[:2]]
    return {
        title: points(grid(*sides, np.array([day])), inputs=INPUTS) for title, day in DRAWN.items()
    }


def _monitors() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return places, values and folds of all the monitors' values."""
    import pandas as pd

    monitors: Any = pd.read_csv(data_file(f"{FOLDER}/aqs_points.csv"), parse_dates=["date"])
    folds: Any = pd.read_csv(data_file(f"{FOLDER}/folds.csv")).set_index("space_id")["fold"]
    site_fold = folds.loc[monitors["space_id"]].to_numpy()
    return _places(monitors), monitors["pm25"].to_numpy(np.float64), site_fold


def _cells(stride: int) -> Observations:
    """Return the model's daily means over its cells, thinned in the order of their numbers."""
    import pandas as pd

    if not isinstance(stride, int) or stride < 1:
        raise ValueError(
            f"fusion: stride= must be a whole number, at least 1; got {stride!r}. Give 1 for all"
            " cells."
        )
    needed("pyarrow", "Parquet files")
    file = data_file(f"{FOLDER}/cmaq_grid.parquet")
    cells: Any = pd.read_parquet(file, columns=["space_id", "date", "x", "y", "ctm"])
    cells = cells[cells["space_id"].isin(np.unique(cells["space_id"])[::stride])]
    centre, half = _places(cells), np.array([CELL / 2, CELL / 2, 0.0])
    support = boxes(centre - half, centre + half, inputs=INPUTS)
    y = cells["ctm"].to_numpy(np.float64)
    return Observations(support, y, task="pm25", name="cmaq", units=UNITS)


def _places(frame: Any) -> np.ndarray:
    """Return x and y in km and the day since the first of June, one row for each value."""
    import pandas as pd

    day = (frame["date"] - pd.Timestamp(START)) / pd.Timedelta("1D")
    return np.stack([frame["x"], frame["y"], day], axis=1).astype(np.float64)
