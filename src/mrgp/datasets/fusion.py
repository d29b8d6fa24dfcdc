"""Monitors and a chemistry-transport model: PM2.5 of the South-East US, June 2004."""

from typing import Any

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.datasets.cases import Recording, check_name, data_file, grid, hold_out
from mrgp.datasets.loaded import needed
from mrgp.supports import Support, boxes, points

FOLDER = "seus_pm25_june2004"
START = "2004-06-01"
CELL = 12.0
FOLDS = 8
INPUTS = ("x", "y", "day")
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
    import pandas as pd

    table: Any = pd.read_csv(data_file(f"{FOLDER}/aqs_points.csv"), parse_dates=["date"])
    folds: Any = pd.read_csv(data_file(f"{FOLDER}/folds.csv")).set_index("space_id")["fold"]
    place, test = _places(table), folds.loc[table["space_id"]].to_numpy() == int(fold)
    monitors = _observations(points(place, inputs=INPUTS), table["pm25"], "aqs")
    data, about = Dataset([monitors, _cells(stride)]), {"input_units": {"x": "km", "y": "km"}}
    return hold_out(data, monitors.process, test, maps=_maps(place), **about)


def _maps(place: np.ndarray) -> dict[str, Support]:
    sides = [np.linspace(side.min(), side.max(), MAP_SIDE) for side in place.T[:2]]
    return {
        title: points(grid(*sides, np.array([day])), inputs=INPUTS) for title, day in DRAWN.items()
    }


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
    return _observations(boxes(centre - half, centre + half, inputs=INPUTS), cells["ctm"], "cmaq")


def _observations(support: Support, y: Any, name: str) -> Observations:
    return Observations(support, y.to_numpy(np.float64), task="pm25", name=name, units="ug/m3")


def _places(frame: Any) -> np.ndarray:
    """Return x and y in km and the day since the first of June, one row for each value."""
    import pandas as pd

    day = (frame["date"] - pd.Timestamp(START)) / pd.Timedelta("1D")
    return np.stack([frame["x"], frame["y"], day], axis=1).astype(np.float64)
