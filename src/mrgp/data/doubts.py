"""What to be careful of in data, as text: values, scales and supports that may be mistakes."""

import itertools

import numpy as np

from mrgp.data.dataset import Dataset
from mrgp.data.harmony import NARROW, share_off
from mrgp.data.observations import Observations
from mrgp.data.strays import far_values, short_codes, shown_rows, still_runs
from mrgp.supports import bounds_of, place_in_words

OTHER_SCALE = 100.0
"""How many times the values of one source are those of another before a slip of units is likely."""

WIDE = 100.0
"""How many times wider than another source's reach cells are before they cannot inform it."""

ROUNDED = 1e-12
OTHER_REACH = 1e4
"""How many times farther the places of one source reach before a slip of units is likely."""


def cautions_of(data: Dataset) -> tuple[str, ...]:
    """Return what to be careful of in a dataset, nothing where all looks well.

    >>> import mrgp
    >>> x = np.arange(5.0)[:, None]
    >>> good = mrgp.Observations(mrgp.points(x), [1.0, 3.0, 2.0, 4.0, 5.0], name="good")
    >>> slip = mrgp.Observations(mrgp.points(x), [1e3, 3e3, 2e3, 4e3, 5e3], name="slip")
    >>> cautions_of(Dataset([good])), len(cautions_of(Dataset([good, slip])))
    ((), 1)
    """
    far = (doubt(observed) for observed in data for doubt in DOUBTS)
    pairs = list(itertools.combinations(data, 2))
    scales = (other_scale(*pair) for pair in pairs)
    reaches = (other_reach(*pair) for pair in pairs)
    wide = (wide_cells(*pair) for pair in itertools.permutations(data, 2))
    alone = (cells_alike(observed) for observed in data)
    found = itertools.chain([wide_area(data)], far, scales, reaches, wide, alone)
    return tuple(text for text in found if text is not None)


def wide_area(data: Dataset) -> str | None:
    """Name the projection of places over many degrees, and how far off distances are in it.

    >>> import pandas as pd, mrgp
    >>> frame = pd.DataFrame({"lon": [-84.3, -75.5], "lat": [33.9, 36.6], "y": [1.0, 2.0]})
    >>> wide = mrgp.from_frame(frame, ["lon", "lat"], "y", crs="EPSG:4326")
    >>> wide_area(Dataset([wide]))
    'The places span 8.8 degrees of longitude and 2.7 of latitude. They are measured in ...'
    """
    lower, upper = bounds_of(data.supports)
    axes = {a.quantity: (a, d) for d, a in enumerate(data.axes or ()) if a and a.unit == "km"}
    if not {"longitude", "latitude"} <= set(axes):
        return None
    (east, i), (north, j) = axes["longitude"], axes["latitude"]
    width, height = east.step * (upper[i] - lower[i]), north.step * (upper[j] - lower[j])
    if max(width, height) <= NARROW:
        return None
    off = share_off(north.physical(np.array([lower[j], upper[j]])), north.origin)
    return (
        f"The places span {width:.3g} degrees of longitude and {height:.3g} of latitude. They are"
        " measured in kilometres of the equidistant cylindrical projection with the standard"
        f" parallel {north.origin:.4g}: at its edges distances from west to east are off by up to"
        f" {100 * off:.2g} %. For better ones give coordinates of another projection, with"
        " crs=False."
    )


def far_apart(observed: Observations) -> str | None:
    """Name values that stand a thousand spreads or more from the others, with their rows.

    >>> import mrgp
    >>> x = np.arange(5.0)[:, None]
    >>> far_apart(mrgp.Observations(mrgp.points(x), [1.0, 3.0, 2.0, 1e15, 5.0], name="a"))
    "source 'a', task 'value': y is 1e+15 in row 3, over 1000 spreads from the others. ..."
    """
    values = _densities(observed)
    far = far_values(values)
    if not far.any():
        return None
    return (
        f"{observed.label}: y is {observed.y[np.argmax(far)]:.6g} in {shown_rows(far)}, over"
        " 1000 spreads from the others. Look at what was measured there, or give NaN: one such"
        " value can bend a whole fit."
    )


def may_be_missing(observed: Observations) -> str | None:
    """Name a value such as -99 that stands apart from the others as a code for a missing one does.

    >>> import mrgp
    >>> x = np.arange(5.0)[:, None]
    >>> may_be_missing(mrgp.Observations(mrgp.points(x), [15.0, 25.0, -99.0, 20.0, 18.0], name="a"))
    "source 'a', task 'value': y is -99 in row 2, apart from all others. ..."
    """
    codes = short_codes(observed.y)
    if not codes.any() or observed.likelihood.domain != "real":
        return None
    return (
        f"{observed.label}: y is {observed.y[np.argmax(codes)]:.6g} in {shown_rows(codes)}, apart"
        " from all others. If it stands for a missing value, give NaN."
    )


def stands_still(observed: Observations) -> str | None:
    """Name a place that reports one value for so long that it seems to be stuck.

    >>> import mrgp
    >>> y = np.concatenate([np.sin(np.arange(40.0)), np.full(12, 0.3)])
    >>> hours = mrgp.points(np.arange(52.0)[:, None], inputs="time")
    >>> stands_still(mrgp.Observations(hours, y, name="a"))
    "source 'a', task 'value': y is 0.3 in 12 values in a row, from time 40 to time 51. ..."
    """
    support = observed.support
    clock = support.clock
    if clock is None or observed.likelihood.domain not in ("real", "positive"):
        return None
    x, y = support.centres, observed.y
    if observed.censored is not None:
        y = np.where(observed.censored == 0, y, np.nan)
    place = np.unique(np.delete(x, clock, 1), axis=0, return_inverse=True)[1].reshape(-1)
    run = still_runs(y, place, x[:, clock])
    if not run.any():
        return None
    rows = np.flatnonzero(run == 1 + np.argmax(np.bincount(run)[1:]))
    rows = rows[np.argsort(x[rows, clock], kind="stable")].tolist()
    first, last = (place_in_words(support, row, (clock,)) for row in (rows[0], rows[-1]))
    beside = tuple(d for d in range(support.dimension) if d != clock)
    where = f" at {place_in_words(support, rows[0], beside)}" if beside else ""
    others = len(np.unique(place[run > 0])) - 1
    more = f", and so do {others} other places" if others else ""
    return (
        f"{observed.label}: y is {observed.y[rows[0]]:.6g} in {len(rows)} values in a row{where},"
        f" from {first} to {last}{more}. A sensor that is stuck agrees with itself, and no noise"
        " makes up for it: give NaN for these values."
    )


def other_scale(one: Observations, other: Observations) -> str | None:
    """Say where two sources of a task are on scales so different that their units may be.

    >>> import mrgp
    >>> x, y = np.arange(5.0)[:, None], np.array([1.0, 3.0, 2.0, 4.0, 5.0])
    >>> good = mrgp.Observations(mrgp.points(x), y, name="good")
    >>> slip = mrgp.Observations(mrgp.points(x), 1000 * y, name="slip")
    >>> other_scale(good, slip)
    "'slip' has values about 1e+03 times those of 'good' for the task 'value'. ..."
    """
    if one.task != other.task:
        return None
    small, large = sorted((one, other), key=_level)
    by_level = _ratio(_level(small), _level(large))
    by_spread = _ratio(_spread(small), _spread(large))
    if min(by_level, by_spread) < OTHER_SCALE:
        return None
    return (
        f"{large.name!r} has values about {by_level:.2g} times those of {small.name!r} for the task"
        f" {one.task!r}. If their units differ, bring them to the same; no bias is meant to be so"
        " large."
    )


def other_reach(one: Observations, other: Observations) -> str | None:
    """Say where the supports of two sources reach so differently that one cannot inform the other.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [1.0, 2.0], name="sensors")
    >>> cells = mrgp.Observations(mrgp.boxes([[0.0]], [[1e9]]), [1.5], name="cells")
    >>> other_reach(sensors, cells)
    "'cells' reaches over 1e+09 along x1, 'sensors' over 1: ..."
    """
    for name, first, second in zip(
        one.support.input_names, _extent(one), _extent(other), strict=True
    ):
        if min(first, second) > 0 and _ratio(first, second) > OTHER_REACH:
            near, far = (one, other) if first < second else (other, one)
            low, high = sorted((first, second))
            return (
                f"{far.name!r} reaches over {high:.4g} along {name}, {near.name!r} over {low:.4g}:"
                " the one says nothing of where the other varies. If their coordinates are in other"
                " units, bring them to the same."
            )
    return None


def wide_cells(one: Observations, other: Observations) -> str | None:
    """Say where the cells of a source are far wider than all that another source reaches over.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [19.0]]), [1.0, 2.0], name="sensors")
    >>> cells = mrgp.Observations(mrgp.boxes([[0.0], [5.0]], [[1e4], [1e4]]), [1.5, 2.5], name="c")
    >>> wide_cells(cells, sensors)
    "the cells of 'c' are about 9998 wide along x1, and 'sensors' reaches over 19: ..."
    """
    for name, width, extent, reach in zip(
        one.support.input_names, _width(one), _extent(other), _extent(one), strict=True
    ):
        if 0 < WIDE * extent < width and _ratio(extent, reach) <= OTHER_REACH:
            return (
                f"the cells of {one.name!r} are about {width:.4g} wide along {name}, and"
                f" {other.name!r} reaches over {extent:.4g}: the one says nothing of where the"
                " other varies. If their coordinates are in other units, bring them to the same."
            )
    return None


def cells_alike(observed: Observations) -> str | None:
    """Say where cells are so much wider than they are apart that all are as good as one.

    >>> import mrgp
    >>> lower = np.arange(5.0)[:, None]
    >>> cells = mrgp.Observations(mrgp.boxes(lower, lower + 1e9), lower[:, 0], name="cells")
    >>> cells_alike(cells)
    "the cells of 'cells' are about 1e+09 wide along x1, and their middles span 4: ..."
    """
    centres, lower = np.asarray(observed.support.centres), np.asarray(observed.support.bounds[0])
    # Cells in one row along an input are as far apart along it as numbers are rounded.
    least = ROUNDED * np.max(np.abs([*centres, *lower]), axis=0)
    for name, width, span, rounded in zip(
        observed.support.input_names, _width(observed), np.ptp(centres, axis=0), least, strict=True
    ):
        if rounded < span and OTHER_REACH * span < width:
            return (
                f"the cells of {observed.name!r} are about {width:.4g} wide along {name}, and their"
                f" middles span {span:.4g}: all of them see the same, and nothing between is"
                " learned. Look for an end or a width in other units."
            )
    return None


DOUBTS = (far_apart, may_be_missing, stands_still)
"""What is asked of each source alone."""


def _width(observed: Observations) -> np.ndarray:
    lower, upper = observed.support.bounds
    return np.median(np.asarray(upper) - np.asarray(lower), 0)


def _densities(observed: Observations) -> np.ndarray:
    """Return values for each unit of measure: totals grow with their regions."""
    total = np.abs(np.asarray(observed.support.total))
    return observed.y / np.where(total > 0, total, 1.0)


def _level(observed: Observations) -> float:
    return float(np.nanmedian(np.abs(_densities(observed))))


def _spread(observed: Observations) -> float:
    values = _densities(observed)
    return float(np.nanmedian(np.abs(values - np.nanmedian(values))))


def _ratio(one: float, other: float) -> float:
    low, high = sorted((one, other))
    return high / low if low > 0 else 1.0


def _extent(observed: Observations) -> np.ndarray:
    lower, upper = observed.support.bounds
    return np.max(upper, 0) - np.min(lower, 0)
