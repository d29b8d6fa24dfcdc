"""What a page shows of a prediction: values at the times of the slider, and means over periods."""

import dataclasses
from typing import Any

import numpy as np

from mrgp.data import Dataset
from mrgp.inference import Fit, Progress
from mrgp.report import fields, periods
from mrgp.report.layout import Grid, window_of, written
from mrgp.report.legal import DAY, HOUR
from mrgp.report.periods import SECONDS, Clock, Span, clock_of

NEAR = 0.005
"""Share by which a window may differ from an averaging time: years have 365 days or 366."""


@dataclasses.dataclass(frozen=True)
class Contents:
    """What a page shows of the prediction: at the times of the slider, and averaged."""

    fit: Fit
    tasks: tuple[str, ...]
    known: Dataset | None
    grid: Grid
    progress: Progress

    def drawn(self) -> list[fields.Drawn]:
        """Predict every task at the times of the slider."""
        room = fields.BUDGET // len(self.tasks)
        curve = len(self.grid.layout.across) == 1
        told = (room, self.progress)
        return [fields.draw(self.fit, self.grid.steps, t, *told, ends=curve) for t in self.tasks]

    def spans(self, drawn: list[fields.Drawn]) -> list[dict[str, Any]]:
        """Return what the slider may go over: the times of the grid, and means over periods."""
        first, clock = self.tasks[0], clock_of(self.known, self.grid, self.tasks[0])
        # A map of instants is not one of daily means: those are found beside it.
        apart = clock is not None and not np.isclose(self._window(), clock.length)
        days = apart and clock is not None and clock.over == DAY
        found = [_span(self._times(self._over(clock)), self._named(drawn))]
        for span in () if clock is None else periods.spans(clock, first, days=days):
            assert clock is not None
            boxes = periods.supports(self.grid, clock, span)
            # A small share of the page: averages come with fewer components.
            room = fields.BUDGET // (8 * len(self.tasks))
            told = (room, self.progress)
            made = [fields.draw(self.fit, boxes, t, *told, ends=False) for t in self.tasks]
            found.append(_span(span, self._named(made)))
        return found

    def _over(self, clock: Clock | None) -> str:
        """Return what the map at a time is a mean over, or nothing where that is not known.

        Windows say it themselves; of instants it is known by their dates, how far they are apart.
        """
        window = self._window()
        if window:
            near = (over for over, length in SECONDS.items() if abs(window / length - 1) < NEAR)
            return next(near, "")
        return "" if clock is None or clock.length else clock.over

    def _times(self, over: str) -> Span:
        """Return the times of the slider, as dates where the map has means of days."""
        along, window = self.grid.layout.along, self._window()
        times = [] if along is None else self.grid.shown(along)
        if along is None or not window:
            return Span("values at a time", over, times, [], [])
        starts = list(map(str, written(self.grid.sides[along].lower, self.grid.sides[along].axis)))
        if window == SECONDS[DAY] and all(start.endswith(" 00:00") for start in starts):
            return Span("daily mean", DAY, [start[:10] for start in starts], [], [])
        label = "hourly mean" if window == SECONDS[HOUR] else f"{window / 3600:.6g}-hour mean"
        return Span(label, over, times, [], [])

    def _named(self, drawn: list[fields.Drawn]) -> list[dict[str, Any]]:
        """Return what is read of tasks, with what their maps are of: of counts, a rate."""
        rates = {task for _, task in self.fit.exposed}
        per = [" per unit of exposure" if task in rates else "" for task in self.tasks]
        made = zip(drawn, self.tasks, per, strict=True)
        return [fields.payload(one) | {"label": f"{task}{rate}"} for one, task, rate in made]

    def _window(self) -> float:
        """Return over how many seconds the map averages at a time of the slider."""
        along = self.grid.layout.along
        axis = None if along is None else self.grid.layout.axes[along]
        if along is None or axis is None:
            return 0.0
        step = (self.grid.sides[along].axis or axis).step
        return round(window_of(self.grid.support, along) * step, 3)

    def notices(self) -> list[str]:
        """Say what the map is of, and what the page leaves out: times, tasks."""
        found, along = [], self.grid.layout.along
        if self._window() > 0:
            hours = f"{self._window() / 3600:.6g}"
            unit = "hour" if hours == "1" else "hours"
            found.append(f"The map has means over {hours} {unit} about the times of the slider.")
        if any(process in self.fit.exposed for process in self.fit.processes):
            found.append("The map is of a rate: counts for one unit of their exposure.")
        if along is not None and self.known is not None:
            first = self.known.observations[0]
            lower, upper = (np.asarray(b)[:, along] for b in first.dropna().support.bounds)
            there, shown = len(np.unique((0.5 * (lower + upper)).round(9))), len(self.grid.index)
            if shown < there:
                found.append(
                    f"The slider has {shown} of the {there} times of {first.name}; a grid= of your"
                    " own (--grid on the command line) shows others."
                )
        if len(self.tasks) < len(self.fit.tasks):
            left = [name for name in self.fit.tasks if name not in self.tasks]
            found.append(f"Not shown of this fit: {', '.join(left)}.")
        return found


def _span(span: Span, payloads: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "label": span.label,
        "over": span.over,
        "values": span.names,
        "counts": span.sizes,
        "ends": span.ends,
        "note": span.left_out,
        "fields": payloads,
    }
