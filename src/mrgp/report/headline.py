"""What a page begins with: what, where and when; how good, beside which rule; and what to mind."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.inference import Fit
from mrgp.report.backdrop import Box, city_of
from mrgp.report.beside import Margin
from mrgp.report.ground import Ground
from mrgp.report.layout import Layout, written
from mrgp.report.legal import pollutant
from mrgp.report.markup import counted, heading, joined, listing, paragraph
from mrgp.report.verdicts import Check, value_units
from mrgp.supports import Boxes, Points, Polygons

NOTHING_AMISS = "Neither the fit nor the checks below found anything amiss."


def named(task: str) -> str:
    """Return a task as it is usually written.

    >>> named("no2"), named("rain")
    ('NO2', 'rain')
    """
    found = pollutant(task)
    return found if found and len(task) <= len(found) + 2 else task


def title_of(
    fit: Fit,
    tasks: Sequence[str],
    data: Dataset | None,
    layout: Layout,
    box: Box | None,
    ground: Ground | None = None,
) -> str:
    """Return what, where and when: tasks, sources, the place, and dates."""
    parts = [joined([named(task) for task in tasks])]
    if data is None:
        return f"{parts[0]}, {joined(fit.sources)}"
    shown = [o for o in data if o.task in tasks]
    parts.append(joined(list(dict.fromkeys(_places(o, layout) for o in shown))))
    parts += [_where(shown, layout, box, ground), _when(shown, layout)]
    said = ", ".join(filter(None, parts))
    return said[:1].upper() + said[1:]


def _places(observed: Observations, layout: Layout) -> str:
    """Return how many places of which kind a source has."""
    if len(layout.across) == 1:
        return f"{counted(int(observed.observed.sum()), 'value')} of {observed.name}"
    lower, upper = (np.asarray(b)[:, list(layout.across)].round(9) for b in observed.support.bounds)
    count = len(np.unique(np.hstack([lower, upper]), axis=0))
    kinds = [part for part, _ in observed.support.members]
    if isinstance(observed.support, Points) or np.array_equal(lower, upper):
        return f"{count:,} {'site' if count == 1 else 'sites'}"
    if any(isinstance(part, Polygons) for part in kinds):
        return f"{count:,} {'area' if count == 1 else 'areas'}"
    if all(isinstance(part, Boxes) for part in kinds) and count > 1:
        return f"a grid of {count:,} cells"
    return counted(count, "region")


def _ends(shown: Sequence[Observations], layout: Layout, d: int) -> list[Any]:
    low = min(float(np.asarray(o.support.bounds[0])[:, d].min()) for o in shown)
    high = max(float(np.asarray(o.support.bounds[1])[:, d].max()) for o in shown)
    return written(np.array([low, high]), layout.axes[d])


def _where(
    shown: Sequence[Observations], layout: Layout, box: Box | None, ground: Ground | None
) -> str:
    """Return the place: a city, degrees in words, or from where to where plain inputs go."""
    city = city_of(box)
    if city is not None:
        return city
    sides = [d for d in layout.across if not layout.is_time(d) and d != layout.along]
    ends = {d: _ends(shown, layout, d) for d in sides}
    if ground is not None:
        west, east, south, north = ground.box(*ends.values())
        return f"{_degrees(west, east, 'EW')}, {_degrees(south, north, 'NS')}"
    found, plain = [], []
    for d, (low, high) in ends.items():
        axis = layout.axes[d]
        if axis is None:
            plain.append(f"{layout.names[d]} {_plain(low, high)}")
        else:
            found.append(_degrees(low, high, "EW" if axis.quantity == "longitude" else "NS"))
    # Two numbers of a plane are one place.
    return ", ".join([*found, *([joined(plain)] if plain else [])])


def _plain(low: float, high: float) -> str:
    """Return from where to where, with as many digits as tell the two apart.

    >>> _plain(784.26, 1355.1), _plain(0.0, 6.0), _plain(0.25, 0.75)
    ('784 to 1,355', '0 to 6', '0.25 to 0.75')
    """
    ends = (low, high)
    if high - low >= 100:
        return " to ".join(f"{v:,.0f}" for v in ends)
    return " to ".join(f"{v:.4g}" for v in ends)


def _degrees(low: float, high: float, signs: str) -> str:
    """Return two degrees in words.

    >>> _degrees(-84.32, -75.46, "EW"), _degrees(-1.0, 2.0, "EW")
    ('84.3 to 75.5° W', '1° W to 2° E')
    """
    ends = [(f"{abs(v):.3g}", signs[0] if v >= 0 else signs[1]) for v in (low, high)]
    (first, one), (last, other) = ends
    return f"{first} to {last}° {other}" if one == other else f"{first}° {one} to {last}° {other}"


def _when(shown: Sequence[Observations], layout: Layout) -> str:
    """Return the dates from the first to the last, or from where to where time goes."""
    d = next((d for d in range(len(layout.names)) if layout.is_time(d)), layout.along)
    if d is None:
        return ""
    axis = layout.axes[d]
    if axis is None or not layout.is_time(d):
        low, high = _ends(shown, layout, d)
        return f"{layout.names[d]} {low:.4g} to {high:.4g}"
    bounds = [np.asarray(o.support.bounds)[:, :, d] for o in shown]
    # A window that ends at midnight has nothing of the day that begins there.
    lasts = [np.where(upper > lower, upper - 1.0 / axis.step, upper) for lower, upper in bounds]
    ends = min(lower.min() for lower, _ in bounds), max(last.max() for last in lasts)
    low, high = written(np.array(ends), axis)
    return dates(str(low), str(high))


def dates(first: str, last: str) -> str:
    """Return from which date to which, without saying a month or a year twice.

    >>> dates("2022-02-19 00:00", "2022-02-21 21:00"), dates("2022-02-27", "2022-03-01")
    ('19 to 21 February 2022', '27 February to 1 March 2022')
    """
    import pandas as pd

    low, high = (pd.Timestamp(text) for text in (first, last))
    end = f"{high.day} {high.strftime('%B %Y')}"
    if low.date() == high.date():
        return end
    if (low.year, low.month) == (high.year, high.month):
        return f"{low.day} to {end}"
    year = "" if low.year == high.year else f" {low.year}"
    return f"{low.day} {low.strftime('%B')}{year} to {end}"


def subtitle_of(fit: Fit, tasks: Sequence[str]) -> str:
    """Return what was fitted, and how the fit ended."""
    used = sum(count for count, _ in fit.counts.values())
    said = f"{used:,} values of {joined(fit.sources)}; {counted(len(fit.tasks), 'task')}"
    said += f": {joined(fit.tasks)}" if len(fit.tasks) > 1 else ""
    said += f", of which {joined(list(tasks))} is shown" if len(tasks) < len(fit.tasks) else ""
    return f"{said}; fitted by {fit.name}, {fit.status.code}"


def _without_effects(fit: Fit) -> list[str]:
    """Say that maps are those of no place of one kind, where places have kinds."""
    fields = [field for field in fit.covariates or () if field.in_rows]
    if not fields:
        return []
    names = joined([name for field in fields for name in field.names])
    kinds = [level for field in fields for level in field.levels or ()]
    between = f" They lie between those of its kinds: {joined(kinds)}." if kinds else ""
    return [
        f"The map, its averages and its probabilities are without the effect of {names}, which is"
        f" known at places of the data alone.{between} For a place with it, or a map of one kind,"
        " take mrgp predict, or mrgp.predict, which are given it."
    ]


def short_section(
    fit: Fit,
    checks: list[Check],
    data: Dataset | None,
    margins: Sequence[Margin],
    doubts: Sequence[str] = (),
) -> str:
    """Tell first what a reader wants to know: how good, against what, and what to be careful of.

    `doubts` are those about the calibration.
    """
    behind = [words for margin in margins for words in margin.behind]
    good = [*behind, *(margin.words for margin in margins)]
    scores = [words for check in checks[:1] for words in _scores(fit, check)]
    good += scores or ["There are no values to score it by."]
    parts = [heading(3, "How good"), listing(good)]
    warnings = [*behind]
    if fit.status.code != "converged":
        warnings.insert(0, f"The fit is not converged: {fit.status}.")
    warnings += [*_without_effects(fit), *fit.warnings, *_lacking(data)]
    warnings += [words for words in fit.reasons if words.startswith("Counts of ")]
    warnings += [*doubts, *(words for check in checks for words in check.doubts)]
    careful = listing(warnings) if warnings else paragraph(NOTHING_AMISS)
    return "\n".join([*parts, heading(3, "What to be careful of"), careful])


def _lacking(data: Dataset | None) -> list[str]:
    """Say which sources read the field without the effect of a column that others have."""
    found = []
    for observed in data or ():
        support, lost = observed.support, []
        for field in support.covariates or ():
            d = support.input_names.index(field.names[0])
            if field.in_rows and np.all(np.asarray(support.bounds[0])[:, d] == field.neutral):
                lost.append(field.names[0])
        if lost:
            effects = "its effect" if len(lost) == 1 else "their effects"
            found.append(f"{observed.name} has no {joined(lost)}, and is read without {effects}.")
    return found


HOW = {
    "left out": "Each value predicted from all the others",
    "held out": "Values that the fit has not seen",
    "in sample": "Values that were fitted (in sample, which flatters)",
}


def _scores(fit: Fit, check: Check) -> list[str]:
    """Say of every process how far predictions were off, and how many were inside."""
    found = []
    for process, scores in check.scores.items():
        said, values = check.pairs[process]
        y = np.asarray(values, np.float64)
        units = value_units(fit, process)
        unit = f" {units}" if units else ""
        name = f"{process[0]}, {process[1]}" if len(fit.tasks) > 1 else process[0]
        found.append(
            f"{HOW[check.name]}: {int(scores['n']):,} of {name} are off by {scores['rmse']:.3g}"
            f"{unit} (rmse), while they vary by {float(np.nanstd(y)):.3g}{unit} (sd);"
            f" {100 * scores['coverage_95']:.0f} % of them lie inside their 95 % intervals"
            f"{', ends included' if said.distribution.discrete else ''}."
        )
    return found
