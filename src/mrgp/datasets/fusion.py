"""Monitors and a chemistry-transport model: PM2.5 of the South-East US, June 2004."""

from typing import Any

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.datasets.cases import Recording, check_name, data_file, hold_out, measured
from mrgp.datasets.loaded import need
from mrgp.supports import Support, boxes, points
from mrgp.supports.quadrature import mesh

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
    seen, folds = monitors()
    data, about = Dataset([seen, cells(stride)]), {"input_units": {"x": "km", "y": "km"}}
    maps = _maps(seen.support.centres)
    return hold_out(data, seen.process, folds == int(fold), maps=maps, **about)


def monitors() -> tuple[Observations, np.ndarray]:
    """Return the daily means at monitors, and the fold of each value."""
    import pandas as pd

    table: Any = pd.read_csv(data_file(f"{FOLDER}/aqs_points.csv"), parse_dates=["date"])
    folds: Any = pd.read_csv(data_file(f"{FOLDER}/folds.csv")).set_index("space_id")["fold"]
    seen = measured(points(_places(table), inputs=INPUTS), table["pm25"], "pm25", "aqs")
    return seen, folds.loc[table["space_id"]].to_numpy()


def _maps(place: np.ndarray) -> dict[str, Support]:
    sides = [np.linspace(side.min(), side.max(), MAP_SIDE) for side in place.T[:2]]
    return {
        title: points(mesh(*sides, np.array([day])), inputs=INPUTS) for title, day in DRAWN.items()
    }


def cells(stride: int, aod: bool = False) -> Observations:
    """Return daily means over cells, of the model, or the satellite's optical depth; thinned.

    Cells are thinned in the order of their numbers.
    """
    import pandas as pd

    if not isinstance(stride, int) or stride < 1:
        raise ValueError(
            f"fusion: stride= must be a whole number, at least 1; got {stride!r}. Give 1 for all"
            " cells."
        )
    need("pyarrow", "Parquet files")
    name, column = ("modis", "aod") if aod else ("cmaq", "ctm")
    file = data_file(f"{FOLDER}/{name}_grid.parquet")
    table: Any = pd.read_parquet(file, columns=["space_id", "date", "x", "y", column])
    table = table[table["space_id"].isin(np.unique(table["space_id"])[::stride])]
    centre, half = _places(table), np.array([CELL / 2, CELL / 2, 0.0])
    squares = boxes(centre - half, centre + half, inputs=INPUTS)
    if aod:
        return Observations(squares, table[column].to_numpy(np.float64), task=column, name=name)
    return measured(squares, table[column], "pm25", name)


def _places(frame: Any) -> np.ndarray:
    """Return x and y in km and the day since the first of June, one row for each value."""
    import pandas as pd

    day = (frame["date"] - pd.Timestamp(START)) / pd.Timedelta("1D")
    return np.stack([frame["x"], frame["y"], day], axis=1).astype(np.float64)
