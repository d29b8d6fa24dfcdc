"""What values say against the calibration of a fit, in words: intervals, sites, single values."""

from collections.abc import Iterator, Sequence

import numpy as np

from mrgp.evaluation import pit
from mrgp.inference import Fit
from mrgp.plotting.calibration import LEVELS, shares_inside
from mrgp.prediction import Prediction
from mrgp.report.layout import Layout, written
from mrgp.report.markup import counted, joined
from mrgp.report.sites import Sites, scores
from mrgp.report.verdicts import FEW, Check, Process, value_units

TOLERATED = {0.5: 0.1, 0.95: 0.05}
"""By how much the share of values inside an interval may be off."""
ERRORS = 3.0
"""Standard errors by which a share must be off as well."""
LEAST = 10
"""Values of a site from which on its share inside says something."""
NAMED = 3
RARE = 0.01
"""How probable the farthest of all values may be at least."""


def calibration_doubts(
    fit: Fit, checks: Sequence[Check], sites: Sequence[Sites], layout: Layout
) -> list[str]:
    """Return what each check says against intervals, of all values, of sites and of one value."""
    found = []
    for check in checks:
        for process in check.pairs:
            own = next(
                (s for s in sites if (s.check, s.source, s.task) == (check.name, *process)), None
            )
            name = f"{process[0]}, {process[1]}" if len(fit.tasks) > 1 else process[0]
            of = f"{name} held out" if check.name == "held out" else name
            found += _intervals(check, process, of)
            found += [] if own is None else _sites(own, of)
            found += _farthest(fit, check, process, own, layout, of)
    return found


def _intervals(check: Check, process: Process, of: str) -> Iterator[str]:
    """Say which intervals hold far more or fewer values than they should."""
    values = check.pit[process]
    if len(values) < FEW:
        return
    inside = shares_inside(values)
    for level, most in TOLERATED.items():
        share = float(inside[int(np.abs(LEVELS - level).argmin())])
        error = ERRORS * np.sqrt(level * (1 - level) / len(values))
        # Of values that were fitted intervals hold too many anyway.
        over = share > level and check.name == "in sample"
        if abs(share - level) <= max(most, error) or over:
            continue
        what = "too wide" if share > level else "too narrow"
        where = " in the middle" if level == 0.5 else ""
        yield (
            f"Intervals of {of} are {what}{where}: those of {100 * level:.0f} % hold"
            f" {100 * share:.0f} % of the values."
        )


def _sites(sites: Sites, of: str) -> Iterator[str]:
    """Name the sites that have the fewest values inside their 95 % intervals."""
    error = ERRORS * np.sqrt(0.95 * 0.05)
    low = [
        row
        for row in scores(sites)
        if row["n"] >= LEAST and row["inside"] < 0.95 - error / np.sqrt(row["n"])
    ]
    if not low:
        return
    low.sort(key=lambda row: row["inside"])
    worst = [f"{row['name']} ({100 * row['inside']:.0f} %)" for row in low[:NAMED]]
    more = [counted(len(low) - NAMED, "other place")] if len(low) > NAMED else []
    yield (
        f"At single places of {of} the 95 % intervals hold far fewer values than they should:"
        f" {joined([*worst, *more])}."
    )


def _farthest(
    fit: Fit, check: Check, process: Process, sites: Sites | None, layout: Layout, of: str
) -> Iterator[str]:
    """Tell the value that is farthest from its prediction, where it is one that is rare."""
    said, y = check.pairs[process]
    y = np.asarray(y, np.float64)
    z = (y - said.mean) / said.std
    if not np.isfinite(z).any():
        return
    row = int(np.nanargmax(np.abs(z)))
    # Counts are skewed: how probable a value is goes by its distribution.
    place = float(pit(said[[row]], y[[row]])[0])
    if 2 * len(z) * min(place, 1 - place) >= RARE:
        return
    units = value_units(fit, process)
    unit = f" {units}" if units else ""
    yield (
        f"The largest residual of {of} is {z[row]:+.1f} sd, {_where(said, row, sites, layout)}:"
        f" {y[row]:.4g}{unit}, predicted {said.mean[row]:.4g} ± {said.std[row]:.2g}."
    )


def _where(said: Prediction, row: int, sites: Sites | None, layout: Layout) -> str:
    """Return the name of the place of a value, or where it is, and its time."""
    lower, upper = (np.asarray(bound)[row] for bound in said.support.bounds)
    middle = 0.5 * (lower + upper)
    name = None if sites is None else sites.name_of(row)
    shown = () if name else layout.across
    words = [] if name is None else [name]
    for d in (*shown, *(() if layout.along is None else (layout.along,))):
        (value,) = written(middle[[d]], layout.axes[d])
        words.append(value if isinstance(value, str) else f"{layout.names[d]} {value:.5g}")
    return ", ".join(words)
