"""Means over days, years and the whole window: predicted as such, over boxes along time.

The mean of a day is one prediction over a box of 24 hours, whose variance holds how the hours go
together; nothing is averaged afterwards.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.inference import Fit
from mrgp.plotting.slices import evenly
from mrgp.report.layout import Grid, window_of
from mrgp.report.legal import DAY, EIGHT, HOUR, YEAR, pollutant
from mrgp.supports import Axis, Boxes, Points, Support, boxes

SECONDS = {HOUR: 3600.0, EIGHT: 8 * 3600.0, DAY: 86400.0, YEAR: 365.0 * 86400.0}
COVERED = 0.75
"""Share of a period in which there are values, as limits ask for."""
MOST_PERIODS = 24
MOST_HOURLY = 6.0
"""Hours between values that are hourly ones, if thinned."""


class Span(NamedTuple):
    """What the slider goes over: means of some length, from where to where, and their names.

    `over` is the averaging time of limits, `sizes` how many values a source has in each period, and
    `left_out` says how many periods are not shown.
    """

    label: str
    over: str
    names: list[str]
    ends: list[tuple[float, float]]
    sizes: list[int]
    left_out: str = ""


class Clock(NamedTuple):
    """When the values of a source are: their times, how far they are apart and long, in seconds."""

    axis: Axis
    times: np.ndarray
    step: float
    length: float = 0.0

    @property
    def over(self) -> str:
        """What the values are means over, as far as their times tell: an hour, or a day."""
        if self.step <= MOST_HOURLY * SECONDS[HOUR]:
            return HOUR
        return DAY if abs(self.step - SECONDS[DAY]) < 0.2 * SECONDS[DAY] else ""


def clock_of(data: Dataset | None, grid: Grid, task: str) -> Clock | None:
    """Return when the first source of a task has values, where times are dates."""
    along = grid.layout.along
    axis = None if along is None else grid.layout.axes[along]
    sources = [] if data is None else [o for o in data if o.task == task]
    if along is None or axis is None or axis.quantity != "time" or not sources:
        return None
    times = _times(sources[0], along, axis)
    step = float(np.median(np.diff(times))) if len(times) > 1 else np.inf
    length = window_of(sources[0].dropna().support, along) * axis.step
    return Clock(axis, times, step, length)


def _times(observed: Observations, along: int, axis: Axis) -> np.ndarray:
    lower, upper = (np.asarray(bound)[:, along] for bound in observed.dropna().support.bounds)
    return np.unique(np.round(axis.physical(0.5 * (lower + upper)), 3))


def spans(clock: Clock | None, task: str, *, days: bool = False) -> list[Span]:
    """Return the means that the window allows: of days, years, and of all of it.

    Values that are means of days are not averaged again, unless the map has other `days` than they.
    """
    if clock is None or clock.step > 0.5 * SECONDS[DAY]:
        if clock is not None and clock.over == DAY:
            return [*([_days(clock)] if days else []), *_years(clock)]
        return []
    found = [_days(clock)]
    if pollutant(task) == "O3" and clock.step <= 2 * SECONDS[HOUR]:
        found.append(_eights(clock))
    return [span for span in [*found, *_years(clock), _whole(clock)] if span.names]


def _edges(clock: Clock, unit: str) -> tuple[Any, np.ndarray]:
    """Return the edges of periods as dates in their zone, and in seconds."""
    import pandas as pd

    zone = clock.axis.zone or "UTC"
    ends: Any = pd.to_datetime(clock.times[[0, -1]], unit="s", utc=True).tz_convert(zone)
    # Steps are those of the clock on the wall, which may skip midnight or have an hour twice.
    first, last = (end.tz_localize(None).normalize() for end in ends)
    naive = pd.date_range(first, last + pd.Timedelta("1D"), freq="8h" if unit == EIGHT else "D")
    if unit == YEAR:
        naive = pd.to_datetime([f"{y}-01-01" for y in range(first.year, last.year + 2)])
    twice = np.ones(len(naive), bool)
    dates = naive.tz_localize(zone, nonexistent="shift_forward", ambiguous=twice)
    epoch = pd.Timestamp(0, tz="UTC")
    return dates, np.asarray((dates - epoch) / pd.Timedelta("1s"), np.float64)


def _periods(clock: Clock, unit: str, label: str, form: str) -> Span:
    """Return the periods of a length in which there are values most of the time."""
    dates, edges = _edges(clock, unit)
    counts = np.histogram(clock.times, edges)[0]
    whole = np.flatnonzero(counts * clock.step >= COVERED * np.diff(edges))
    kept = whole[evenly(len(whole), MOST_PERIODS)] if len(whole) else whole
    names = [dates[i].strftime(form) for i in kept]
    ends = [(float(edges[i]), float(edges[i + 1])) for i in kept]
    left = f"{len(kept)} of {len(whole)} are shown." if len(kept) < len(whole) else ""
    return Span(label, unit, names, ends, counts[kept].tolist(), left)


def _days(clock: Clock) -> Span:
    return _periods(clock, DAY, "daily mean", "%Y-%m-%d")


def _eights(clock: Clock) -> Span:
    return _periods(clock, EIGHT, "8-hour mean", "%Y-%m-%d from %H:%M")


def _years(clock: Clock) -> list[Span]:
    found = _periods(clock, YEAR, "annual mean", "%Y")
    return [found] if found.names else []


def _whole(clock: Clock) -> Span:
    """Return the mean from the first value to the last: over their windows, where they have such.

    An instant stands for the time up to the next.
    """
    import pandas as pd

    zone = clock.axis.zone or "UTC"
    half = 0.5 * clock.length
    first, last = clock.times[0] - half, clock.times[-1] + (half or clock.step)
    dates = pd.to_datetime([first, last], unit="s", utc=True).tz_convert(zone)
    name = " to ".join(date.strftime("%Y-%m-%d %H:%M") for date in dates)
    return Span("mean of all times", "", [name], [(float(first), float(last))], [len(clock.times)])


def supports(grid: Grid, clock: Clock, span: Span) -> list[Support]:
    """Return the places of the map as boxes over each period."""
    along = grid.layout.along
    place = grid.steps[0]
    assert along is not None
    assert isinstance(place, Points | Boxes)
    lower, upper = (np.array(bound, np.float64) for bound in place.bounds)
    # The grid may count time on an axis of its own.
    axis = grid.sides[along].axis or clock.axis
    found = []
    for start, end in span.ends:
        lower[:, along], upper[:, along] = ((t - axis.origin) / axis.step for t in (start, end))
        made = boxes(lower.copy(), upper.copy(), inputs=grid.layout.names)
        found.append(dataclasses.replace(made, axes=place.axes))
    return found


def noise_of(fit: Fit, task: str) -> tuple[str, float] | None:
    """Return the source whose noise values of a task have, and its sd; None where it has no one."""
    sources = [s for s, t in fit.processes if t == task]
    target = vars(fit.recipe).get("target")
    source = target if target in sources else next(iter(sources), None)
    if source is None or fit.likelihoods.get((source, task)) is None:
        return None
    likelihood = fit.likelihoods[source, task]
    if not likelihood.conjugate or fit.model.linear is None:
        return None
    return source, float(np.sqrt(fit.model.observation_noise((source, task))))
