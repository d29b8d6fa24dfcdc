"""Simple rules that a model should beat: means, neighbours, kriging, regressions."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset
from mrgp.selection.comparing import target_of
from mrgp.selection.estimators import (
    Estimator,
    Query,
    Values,
    category,
    inverse,
    linear,
    mean,
    nearest,
    regression,
)
from mrgp.selection.features import Encoding, Others, covariates_of
from mrgp.selection.kriging import NEIGHBOURS, kriging
from mrgp.selection.sightings import Layout, Table, distinct, layout_of, table_of
from mrgp.supports import Support

FOLDS = 5
LARGEST = 4_000_000


@dataclasses.dataclass(frozen=True)
class Rule:
    """A simple rule: how it learns from a table of places and times, and what it needs.

    >>> import mrgp
    >>> sites = mrgp.points([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], inputs=("t", "x"))
    >>> data = mrgp.Dataset([mrgp.Observations(sites, [1.0, 3.0, 5.0, 7.0])])
    >>> RULES["mean"].fit(data).predict(mrgp.points([[1.0, 0.2]], inputs=("t", "x")))[0]
    array([6.])
    """

    name: str
    meaning: str
    learn: Callable[[Table, int], Estimator]
    needs: str = ""

    def fit(
        self, data: Dataset, target: Any = None, *, covariates: Mapping[str, Any] | None = None
    ) -> "FittedRule":
        """Learn from the target's values; `covariates` are further columns of its rows, by name."""
        view = View.of(data, target, covariates)
        if not view.serves(self):
            raise ValueError(
                f"The rule {self.name!r} needs {self.needs}; {view.label} has none. Give"
                " covariates=, or take another rule."
            )
        return view.fitted(self)


@dataclasses.dataclass(frozen=True, eq=False)
class View:
    """Data as rules see them: a table of the target, and where features come from."""

    table: Table
    layout: Layout
    encoding: Encoding
    others: Others
    label: str

    @classmethod
    def of(cls, data: Dataset, target: Any, covariates: Mapping[str, Any] | None) -> "View":
        """Look at the target's observed values by place and time."""
        process = target_of(data, target)
        observed = data[process]
        seen, layout = np.flatnonzero(observed.observed), layout_of(observed.support)
        others = Others(data, process, layout)
        support = observed.support[seen]
        columns = {n: c[seen] for n, c in covariates_of(observed.support, covariates).items()}
        columns |= others(support.centres, _hours(support.centres, layout))
        encoding = Encoding.of(columns)
        features = encoding(columns) if columns else None
        y = observed.y[seen] / np.asarray(support.total)
        table = table_of(layout, support, y, features)
        return cls(table, layout, encoding, others, observed.label)

    def serves(self, rule: Rule) -> bool:
        """Tell whether there is what a rule needs."""
        there = {
            "": True,
            CATEGORY: bool(self.encoding.levels),
            COVARIATE: self.table.features is not None,
        }
        return there[rule.needs]

    def fitted(self, rule: Rule, folds: int = FOLDS) -> "FittedRule":
        """Learn a rule, and what it errs by at places that it has not seen."""
        count = self.encoding.categorical
        return FittedRule(rule, self, rule.learn(self.table, count), _residuals(rule, self, folds))


@dataclasses.dataclass(frozen=True, eq=False)
class FittedRule:
    """A rule that has learned from data, with its errors at places left out, in folds of places.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [1.0, 2.0, 6.0])
    >>> fitted = RULES["mean"].fit(mrgp.Dataset([seen]))
    >>> [part.round(3).tolist() for part in fitted.predict(mrgp.points([[0.5]]))]
    [[3.0], [3.24]]
    """

    rule: Rule
    view: View
    estimate: Estimator
    residuals: Values

    @property
    def rmse(self) -> float:
        """The root mean squared error at training places that were left out."""
        return _root_mean_square(self.residuals)

    def predict(
        self, support: Support, *, covariates: Mapping[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Return the mean and sd of each region: at its centre, and over all times that it spans.

        The sd is that of the errors at training places left out, averaged over as many times.
        """
        columns = covariates_of(support, covariates)
        row, time, weight = _spans(support, self.view.layout, self.view.table)
        centres = support.centres
        found = self._at(centres[row], time, {n: c[row] for n, c in columns.items()})
        mean = np.bincount(row, weights=weight * found, minlength=len(support))
        count = np.bincount(row, minlength=len(support))
        sizes = {m: _spread(self.residuals, m) for m in np.unique(count).tolist()}
        total = np.asarray(support.total)
        return mean * total, np.array([sizes[m] for m in count]) * np.abs(total)

    def _at(self, centres: Any, time: Any, columns: Any) -> Float[np.ndarray, " n"]:
        """Predict at centres and times, in parts if places by times are too many at once."""
        places = self.view.layout.places(centres)
        first, place = distinct(places)
        times, column = np.unique(time, return_inverse=True)
        if len(first) * len(times) > LARGEST and len(times) > 1:
            early = time < times[len(times) // 2]
            found = np.empty(len(time))
            for part in (early, ~early):
                chosen = {n: c[part] for n, c in columns.items()}
                found[part] = self._at(centres[part], time[part], chosen)
            return found
        features = None
        if self.rule.needs:
            columns = columns | self.view.others(centres, time)
            rows = self.view.encoding(columns)
            features = np.zeros((len(first), len(times), rows.shape[1]))
            features[place, column] = rows
        query = Query(places[first], features)
        return _in_parts(self.estimate, self.view.table.at(times), query)[place, column]


class Best(NamedTuple):
    """The rule that cross-validation over training places picks, its rmse, and that of all.

    >>> Best(RULES["mean"], 2.0, {"mean": 2.0, "nearest": 3.0}).rule.name
    'mean'
    """

    rule: Rule
    rmse: float
    scores: dict[str, float]


def best_rule(
    data: Dataset,
    folds: int = FOLDS,
    target: Any = None,
    *,
    covariates: Mapping[str, Any] | None = None,
) -> Best:
    """Return the rule with the least rmse at training places that are left out, in folds.

    >>> import mrgp
    >>> x = np.linspace(0.0, 3.0, 12)[:, None]
    >>> best = best_rule(mrgp.Dataset([mrgp.Observations(mrgp.points(x), 5 * x[:, 0])]))
    >>> best.rule.name, sorted(best.scores)
    ('linear', ['inverse', 'inverse-2', 'kriging', 'linear', 'mean', 'nearest'])
    """
    view = View.of(data, target, covariates)
    served = [rule for rule in RULES.values() if view.serves(rule)]
    scores = {rule.name: _root_mean_square(_residuals(rule, view, folds)) for rule in served}
    best = min(scores, key=lambda name: scores[name])
    return Best(RULES[best], scores[best], scores)


def rules_for(
    data: Dataset, target: Any = None, *, covariates: Mapping[str, Any] | None = None
) -> tuple[Rule, ...]:
    """Return the rules that data serve: all, or those without covariates where there are none.

    >>> import mrgp
    >>> len(rules_for(mrgp.Dataset([mrgp.Observations(mrgp.points([[0.0], [1.0]]), [1.0, 2.0])])))
    6
    """
    view = View.of(data, target, covariates)
    return tuple(rule for rule in RULES.values() if view.serves(rule))


def _hours(centres: Any, layout: Layout) -> Float[np.ndarray, " n"]:
    return np.zeros(len(centres)) if layout.clock is None else centres[:, layout.clock]


def _spans(support: Support, layout: Layout, table: Table) -> tuple[Any, Any, Any]:
    """Return regions as rows of (region, time, weight), one for each time that a region spans."""
    rows = np.arange(len(support))
    if layout.clock is None:
        return rows, np.zeros(len(support)), np.ones(len(support))
    atoms = support.atoms()
    lower, upper = (np.asarray(side)[..., layout.clock] for side in (atoms.lower, atoms.upper))
    weight = np.asarray(atoms.weights)
    rows = np.broadcast_to(rows[:, None], weight.shape)[weight != 0]
    low, high, weight = (a[weight != 0] for a in (lower, upper, weight))
    # Over a width, the values are those at the times of the table within it.
    first, end = np.searchsorted(table.times, low), np.searchsorted(table.times, high, "right")
    count = np.maximum(end - first, 1)
    atom = np.repeat(np.arange(len(rows)), count)
    inside = np.arange(len(atom)) - np.repeat(np.cumsum(count) - count, count)
    several = (count > 1)[atom]
    known = table.times[np.minimum(first[atom] + inside, len(table.times) - 1)]
    time = np.where(several, known, (0.5 * (low + high))[atom])
    # Nodes of a region that differ in space alone are one: rules look at its centre.
    pairs, which = np.unique(np.stack([rows[atom], time]), axis=1, return_inverse=True)
    share = np.bincount(which.reshape(-1), weights=(weight / count)[atom])
    row = pairs[0].astype(int)
    return row, pairs[1], share / np.bincount(row, weights=share, minlength=len(support))[row]


def _in_parts(estimate: Estimator, now: Table, query: Query) -> Values:
    """Predict some places at a time, so that no array of places by places is too large."""
    size = max(1, LARGEST // max(*now.values.shape, NEIGHBOURS**2))
    found = np.empty((len(query.places), len(now.times)))
    for start in range(0, len(found), size):
        part = slice(start, start + size)
        features = None if query.features is None else query.features[part]
        found[part] = estimate(now, Query(query.places[part], features))
    return found


def _residuals(rule: Rule, view: View, folds: int) -> Values:
    """Return what a rule errs by at places left out; about each mean, where there is one place."""
    table, count = view.table, view.encoding.categorical
    number = min(folds, len(table.places))
    if number < 2:
        return table.values - np.nanmean(table.values)
    fold = np.argsort(np.random.default_rng(0).permutation(len(table.places))) % number
    found = np.full(table.values.shape, np.nan)
    for k in range(number):
        kept, gone = table.take(fold != k), table.take(fold == k)
        query = Query(gone.places, gone.features)
        found[fold == k] = gone.values - _in_parts(rule.learn(kept, count), kept, query)
    return found


def _root_mean_square(errors: Any) -> float:
    return float(np.sqrt(np.nanmean(errors**2))) if np.isfinite(errors).any() else np.inf


def _spread(residuals: Values, times: int) -> float:
    """Return the root mean square of errors averaged over so many values in a row of a place.

    A place with fewer values gives one average, if it has half of them.
    """
    if times == 1:
        return _root_mean_square(residuals)
    means = []
    for place in residuals:
        errors = place[np.isfinite(place)]
        count = max(1, len(errors) // times)
        if len(errors) >= 0.5 * times:
            means += [part.mean() for part in np.array_split(errors[: count * times], count)]
    return _root_mean_square(np.array(means) if means else residuals)


CATEGORY, COVARIATE = "a category", "a covariate or another source"
RULES = {
    rule.name: rule
    for rule in (
        Rule("mean", "the mean of the other places at that time", mean),
        Rule("nearest", "the nearest place at that time", nearest),
        Rule("inverse", "weights of 1 / distance at that time", inverse(1.0)),
        Rule("inverse-2", "weights of 1 / distance² at that time", inverse(2.0)),
        Rule("linear", "between places at that time, nearest outside", linear),
        Rule("kriging", "ordinary kriging at that time, one variogram", kriging),
        Rule("regression", "a line in covariates and other sources", regression, COVARIATE),
        Rule("type", "the mean at that time, and a level of each category", category, CATEGORY),
    )
}
