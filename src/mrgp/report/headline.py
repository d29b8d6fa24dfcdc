"""What a page begins with: what, where and when; how good, beside which rule; and what to mind."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mrgp.checks import is_dense
from mrgp.checks.dense import dense
from mrgp.data import Dataset, Observations
from mrgp.inference import Fit
from mrgp.report.backdrop import Box, city_of
from mrgp.report.layout import Layout, written
from mrgp.report.legal import pollutant
from mrgp.report.markup import heading, listing, paragraph
from mrgp.report.verdicts import Check, value_units
from mrgp.selection import RULES, best_rule
from mrgp.supports import Boxes, Points, Polygons

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MOST_VALUES = 2500
"""Values up to which places are left out in closed form: the effort grows with the cube."""
FOLDS, FEWEST = 5, 5
VERDICTS = ("Beside the best simple rule", "A simple rule is better")
"""How the reason begins in which a choice tells how the model does beside simple rules."""
NOTHING_AMISS = "Neither the fit nor the checks below found anything amiss."
BEHIND = 0.02
"""Share by which a rule's rmse is lower before a page begins with it."""


NOT_CHOSEN_BY_RULES = (
    "It was not compared with simple rules, which is done for Gaussian values of one task: by a"
    f" choice of the model, and for exact fits to at most {MOST_VALUES:,} values at {FEWEST} places"
    " or more."
)
NOT_COMPARED = (
    'It was not compared with simple rules: mrgp.fit("auto", data) does so, and so does a report'
    f" on an exact fit of one task to at most {MOST_VALUES:,} values at {FEWEST} places or more."
)


def joined(words: Sequence[str]) -> str:
    """Return words in a row: "a, b and c".

    >>> joined(["a", "b", "c"]), joined(["a"])
    ('a, b and c', 'a')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, small ones in words.

    >>> counted(2, "task"), counted(1, "task"), counted(1200, "value")
    ('two tasks', 'one task', '1,200 values')
    """
    number = NUMBERS[count] if count < len(NUMBERS) else f"{count:,}"
    return f"{number} {noun}{'' if count == 1 else 's'}"


def named(task: str) -> str:
    """Return a task as it is usually written.

    >>> named("no2"), named("rain")
    ('NO2', 'rain')
    """
    found = pollutant(task)
    return found if found and len(task) <= len(found) + 2 else task


def title_of(
    fit: Fit, tasks: Sequence[str], data: Dataset | None, layout: Layout, box: Box | None
) -> str:
    """Return what, where and when: tasks, sources, the place, and dates."""
    parts = [joined([named(task) for task in tasks])]
    if data is None:
        return f"{parts[0]}, {joined(fit.sources)}"
    shown = [o for o in data if o.task in tasks]
    parts.append(joined(list(dict.fromkeys(_places(o, layout) for o in shown))))
    parts += [_where(shown, layout, box), _when(shown, layout)]
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


def _where(shown: Sequence[Observations], layout: Layout, box: Box | None) -> str:
    """Return the place: a city, degrees in words, or from where to where plain inputs go."""
    city = city_of(box)
    if city is not None:
        return city
    found = []
    for d in (d for d in layout.across if not layout.is_time(d) and d != layout.along):
        low, high = _ends(shown, layout, d)
        axis = layout.axes[d]
        if axis is not None:
            signs = "EW" if axis.quantity == "longitude" else "NS"
            found.append(_degrees(float(low), float(high), signs))
        else:
            found.append(f"{layout.names[d]} {low:.4g} to {high:.4g}")
    return ", ".join(found)


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


def short_section(fit: Fit, checks: list[Check], data: Dataset | None) -> str:
    """Tell first what a reader wants to know: how good, against what, and what to be careful of."""
    margin = beside_rules(fit, data)
    if margin is None:
        good = [NOT_CHOSEN_BY_RULES if fit.reasons else NOT_COMPARED]
    else:
        good = [*margin.behind, margin.words]
    scores = [words for check in checks[:1] for words in _scores(fit, check)]
    good += scores or ["There are no values to score it by."]
    parts = [heading(3, "How good"), listing(good)]
    warnings = [] if margin is None else margin.behind
    if fit.status.code != "converged":
        warnings.insert(0, f"The fit is not converged: {fit.status}.")
    warnings += [*_without_effects(fit), *fit.warnings, *_lacking(data)]
    warnings += [words for words in fit.reasons if words.startswith("Counts of ")]
    warnings += [words for check in checks for words in check.doubts]
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
        y = np.asarray(check.pairs[process][1], np.float64)
        units = value_units(fit, process)
        unit = f" {units}" if units else ""
        name = f"{process[0]}, {process[1]}" if len(fit.tasks) > 1 else process[0]
        found.append(
            f"{HOW[check.name]}: {int(scores['n']):,} of {name} are off by {scores['rmse']:.3g}"
            f"{unit} (rmse), while they vary by {float(np.nanstd(y)):.3g}{unit} (sd);"
            f" {100 * scores['coverage_95']:.0f} % of them lie inside their 95 % intervals."
        )
    return found


class Margin(NamedTuple):
    """How the model does beside the best simple rule, and the share its rmse is higher by."""

    words: str
    share: float

    @classmethod
    def of(cls, words: str) -> "Margin":
        """Read the reason of a choice, as rounded there."""
        said = re.search(r"rmse is (\d+) % higher", words)
        if said:
            return cls(words, float(said[1]) / 100.0)
        rmse = re.search(r"rmse (\S+) and crps \S+, beside (\S+) and", words)
        return cls(words, float(rmse[1]) / float(rmse[2]) - 1.0 if rmse else 0.0)

    @property
    def behind(self) -> list[str]:
        """Say plainly that a rule is better, where it is.

        >>> Margin("Beside it.", 0.05).behind
        ['A simple rule is better at places held out: the rmse of the model is 5 % higher.']
        >>> Margin("Beside it.", 0.01).behind
        []
        """
        if self.share <= BEHIND:
            return []
        higher = f"the rmse of the model is {100 * self.share:.0f} % higher"
        return [f"A simple rule is better at places held out: {higher}."]


def beside_rules(fit: Fit, data: Dataset | None) -> Margin | None:
    """Say how the model does beside the best simple rule, at places left out.

    The reasons of a choice have it; of other exact fits the places of the first source are left
    out in folds, in closed form, with the parameters held.
    """
    known = next((words for words in fit.reasons if words.startswith(VERDICTS)), None)
    if known is not None:
        return Margin.of(known)
    used = sum(count for count, _ in fit.counts.values())
    if data is None or len(fit.tasks) > 1 or used > MOST_VALUES or not is_dense(fit):
        return None
    process = next((p for p in fit.processes if p[0] == vars(fit.recipe).get("target")), None)
    process = process or fit.processes[0]
    rmse = _left_out(fit, process)
    if rmse is None:
        return None
    best = best_rule(data, FOLDS, process)
    unit = f" {fit.units_of(process)}" if fit.units_of(process) else ""
    share = rmse / best.rmse - 1.0 if best.rmse else 0.0
    word = "more" if share > 0 else "less"
    more = "about as much" if abs(share) < 0.02 else f"{100 * abs(share):.0f} % {word}"
    words = (
        f"At places of {process[0]} that are left out, a fifth at a time, the model is off by"
        f" {rmse:.3g}{unit} (rmse), {more} than the best of {len(best.scores)} simple rules,"
        f" {RULES[best.rule.name].meaning} ({best.rmse:.3g}{unit})."
    ).replace("as much than", "as much as")
    return Margin(words, share)


def _left_out(fit: Fit, process: tuple[str, str]) -> float | None:
    """Return the rmse at places left out in folds: (C^-1)_bb^-1 (C^-1 r)_b are their errors."""
    found = dense(fit, "write_report", "")
    rows, support = found.rows[process], found.supports[process]
    layout = Layout.of(fit)
    columns = [d for d in range(len(layout.names)) if d != layout.along]
    centres = np.asarray(support.centres)[:, columns].round(9)
    places, owner = np.unique(centres, axis=0, return_inverse=True)
    if len(places) < FEWEST:
        return None
    fold = np.random.default_rng(0).permutation(len(places)) % FOLDS
    errors = []
    for k in range(FOLDS):
        gone = rows.start + np.flatnonzero(fold[owner.ravel()] == k)
        block = found.root[:, gone]
        errors.append(np.linalg.solve(block.T @ block, found.alpha[gone]))
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))
