"""What sources report, as pictures show it: of one task, sums by the unit of their region."""

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.plotting.coordinates import Vector


def per_unit(observed: Observations) -> Vector:
    """Return values that compare with the field's: sums are divided by the measure of their region.

    >>> import mrgp
    >>> day = mrgp.intervals([0.0], [24.0], inputs="hour", kind="sum")
    >>> per_unit(mrgp.Observations(day, [240.0], name="daily"))
    array([10.])
    """
    if observed.support.kind != "sum":
        return observed.y
    total = np.asarray(observed.support.total)
    return np.where(total != 0, observed.y / np.where(total != 0, total, 1.0), np.nan)


def spoken(observed: Observations) -> str:
    """Return the name of a source, with what was done to its values."""
    return f"{observed.name} (sum per unit)" if observed.support.kind == "sum" else observed.name


def of_task(data: Dataset, task: str) -> Dataset:
    """Return the values of a task that was predicted, or say which tasks there are."""
    if task not in data.tasks:
        raise ValueError(
            f"data= has no values of {task!r}, which was predicted; it has {data.tasks}. Give the"
            " data of that task, or leave data= out."
        )
    return data.dropna().select(task=[task])
