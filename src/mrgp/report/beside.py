"""How a fit does beside simple rules, at places that are left out: of each task, or why not."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from mrgp.checks import is_dense
from mrgp.checks.dense import dense
from mrgp.data import Dataset, Observations, excerpt
from mrgp.evaluation import evaluate
from mrgp.inference import Fit, FitError, Progress, Silent
from mrgp.prediction import predict_values
from mrgp.report.layout import Layout
from mrgp.report.markup import counted
from mrgp.selection import RULES, best_rule
from mrgp.selection.rate_rules import RATE_RULES, by_rates, is_count
from mrgp.selection.rules import View

VERDICTS = ("Beside the best simple rule", "A simple rule is better")
"""How the reason begins in which a choice tells how the model does beside simple rules."""
BEHIND = 0.02
"""Share by which a rule's rmse is lower before a page begins with it."""
FOLDS, FEWEST = 5, 5
WHOLE = 2500
"""Values up to which all folds are left out, in closed form where that is known."""
MOST_VALUES, PLACES = 30_000, 200
"""Values, of how many places, that stand for more in a comparison."""
NOT_COMPARED = "It was not compared with simple rules"
HELD = "The parameters of the model are held."


class Margin(NamedTuple):
    """How the model does beside the best simple rule, and the share its rmse is higher by."""

    words: str
    share: float = 0.0
    task: str = ""

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
        of = f" of {self.task}" if self.task else ""
        return [f"A simple rule is better at places{of} held out: {higher}."]


def beside_rules(fit: Fit, data: Dataset | None, progress: Progress | None = None) -> list[Margin]:
    """Say of each task how the model does beside the best simple rule, or why that is not known.

    The reasons of a choice have it. Otherwise the places of one source are left out in folds, with
    the parameters held: in closed form where the fit is exact and small, else by conditioning the
    fit on the other values. Of large fits one fold is left out.
    """
    known = next((words for words in fit.reasons if words.startswith(VERDICTS)), None)
    if known is not None and len(fit.tasks) == 1:
        return [Margin.of(known)]
    found, shown = [], progress or Silent()
    for task in fit.tasks:
        name = task if len(fit.tasks) > 1 else ""
        of = f": {task}" if name else ""
        try:
            margin = _margin(fit, data, _process(fit, task), shown)
        except (FitError, ValueError) as problem:
            margin = Margin(f"{NOT_COMPARED}{of}. {problem}")
        found.append(margin._replace(task=name))
    return found


def _process(fit: Fit, task: str) -> tuple[str, str]:
    """Return the source of a task that is compared: the target, or the first one."""
    target = vars(fit.recipe).get("target")
    of_task = [p for p in fit.processes if p[1] == task]
    return next((p for p in of_task if p[0] == target), of_task[0])


def _margin(fit: Fit, data: Dataset | None, process: tuple[str, str], progress: Progress) -> Margin:
    label = _label(fit, process)
    if data is None:
        return Margin(f"{NOT_COMPARED}: the fit does not keep its data, and none were given.")
    if fit.recipe.fitted == "parts":
        return Margin(
            f"{NOT_COMPARED}: the maps of {fit.name} rest on the values that they were trained on,"
            " and it would be fitted anew for each part that is left out. mrgp.compare does so."
        )
    seen = data[process].dropna()
    count = len(_places(fit, seen)[0])
    if count < FEWEST:
        return Margin(
            f"{NOT_COMPARED}: {label} has {counted(count, 'place')}, of which too few are left when"
            f" some are left out; it is done for {FEWEST} or more."
        )
    if process in fit.exposed and seen.exposure is None:
        return Margin(
            f"{NOT_COMPARED}: counts need their exposure for it. Give the data of the fit as data=."
        )
    used = sum(count for count, _ in fit.counts.values())
    if used <= WHOLE and is_dense(fit):
        rmse, best = _closed(fit, process), best_rule(data, FOLDS, process)
        rules = {RULES[name].meaning: score for name, score in best.scores.items()}
        return _told(fit, process, "a fifth at a time, ", rmse, rules)
    return _folded(fit, data, process, used, progress)


def _label(fit: Fit, process: tuple[str, str]) -> str:
    return f"{process[0]}, {process[1]}," if len(fit.tasks) > 1 else process[0]


def _told(
    fit: Fit,
    process: tuple[str, str],
    how: str,
    rmse: float,
    rules: dict[str, float],
    more: str = "",
) -> Margin:
    """Put the comparison into words: of the rmse of the model, and of those of rules."""
    best = min(rules, key=lambda meaning: rules[meaning])
    units = None if process in fit.exposed else fit.units_of(process)
    unit = f" {units}" if units else ""
    share = rmse / rules[best] - 1.0 if rules[best] else 0.0
    word = "more" if share > 0 else "less"
    beside = "about as much as" if abs(share) < BEHIND else f"{100 * abs(share):.0f} % {word} than"
    return Margin(
        f"At places of {_label(fit, process)} that are left out, {how}the model is off by"
        f" {rmse:.3g}{unit} (rmse), {beside} the best of {counted(len(rules), 'simple rule')},"
        f" {best} ({rules[best]:.3g}{unit}).{more} {HELD}",
        share,
    )


def _places(
    fit: Fit, observed: Observations
) -> tuple[Float[np.ndarray, "p s"], Int[np.ndarray, " n"]]:
    """Return the places of a source, and which one each value is at."""
    layout = Layout.of(fit)
    columns = [d for d in range(len(layout.names)) if d != layout.along]
    centres = np.asarray(observed.support.centres)[:, columns].round(9)
    places, owner = np.unique(centres, axis=0, return_inverse=True)
    return places, owner.ravel()


def _fold(fit: Fit, observed: Observations) -> Int[np.ndarray, " n"]:
    places, owner = _places(fit, observed)
    return (np.random.default_rng(0).permutation(len(places)) % FOLDS)[owner]


def _closed(fit: Fit, process: tuple[str, str]) -> float:
    """Return the rmse at places left out in folds: (C^-1)_bb^-1 (C^-1 r)_b are their errors."""
    found = dense(fit, "write_report", "")
    rows, support = found.rows[process], found.supports[process]
    y = found.y[rows]
    fold = _fold(fit, Observations(support, y, name=process[0], task=process[1]))
    errors = []
    for k in range(FOLDS):
        gone = rows.start + np.flatnonzero(fold == k)
        block = found.root[:, gone]
        errors.append(np.linalg.solve(block.T @ block, found.alpha[gone]))
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))


class _Turn(NamedTuple):
    """How many values were left out, and the squared errors and surprise of model and rules."""

    size: int
    model: tuple[float, float]
    rules: dict[str, tuple[float, float]]


def _folded(
    fit: Fit, data: Dataset, process: tuple[str, str], used: int, progress: Progress
) -> Margin:
    """Leave places out by conditioning the fit on the other values."""
    some = Dataset([o.dropna() for o in data])
    if used > MOST_VALUES:
        some = excerpt(some, PLACES, MOST_VALUES)
    folds = FOLDS if used <= WHOLE else 1
    turns = list(_turns(fit, some, process, folds, progress))
    count = sum(turn.size for turn in turns)

    def pooled(pairs: list[tuple[float, float]]) -> tuple[float, float]:
        sums = np.array([turn.size for turn in turns]) @ np.array(pairs) / count
        return float(np.sqrt(sums[0])), float(sums[1])

    rmse, surprise = pooled([turn.model for turn in turns])
    rules = {name: pooled([turn.rules[name] for turn in turns]) for name in turns[0].rules}
    how, more = "a fifth at a time, ", ""
    if folds == 1:
        how = f"a fifth of them with {count:,} values, "
    if used > MOST_VALUES:
        places = len(_places(fit, some[process])[0])
        how += f"in a part of the data with {counted(places, 'place')}, "
    if is_count(data[process]):
        best = min(rules, key=lambda name: rules[name][0])
        more = (
            f" The counts have a mean negative log probability of {surprise:.3g}, beside"
            f" {rules[best][1]:.3g} by that rule: lower is better."
        )
    return _told(fit, process, how, rmse, {name: s[0] for name, s in rules.items()}, more)


def _turns(
    fit: Fit, data: Dataset, process: tuple[str, str], folds: int, progress: Progress
) -> Iterator[_Turn]:
    """Leave each fold out, and ask the model and the rules for it."""
    seen = data[process]
    fold = _fold(fit, seen)
    progress.start("beside simple rules", folds)
    for k in range(folds):
        test = seen[np.flatnonzero(fold == k)]
        rest = [o if o.process != process else o[np.flatnonzero(fold != k)] for o in data]
        train = Dataset(rest)
        scores = evaluate(predict_values(fit.condition(train), test), test.y)
        yield _Turn(len(test), (scores["mse"], scores["nlpd"]), _rules(train, test))
        progress.update(k + 1, f"fold {k + 1} of {folds}")
    progress.finish(f"{counted(folds, 'fold')} left out")


def _rules(train: Dataset, test: Observations) -> dict[str, tuple[float, float]]:
    """Return the mean squared error of each simple rule, and the surprise of counts."""
    if is_count(test):
        size = "exposure" if test.exposure is not None else "trials"
        times = f" times the {size}" if test.exposure is not None or test.trials is not None else ""
        found = by_rates(train[test.process], test)
        return {
            f"{RATE_RULES[name]}{times}": (float(np.mean((said.mean - test.y) ** 2)), said.nlpd)
            for name, said in found.items()
        }
    view: Any = View.of(train, test.process, None)
    said = {
        r.meaning: view.fitted(r).predict(test.support)[0] for r in RULES.values() if view.serves(r)
    }
    return {name: (float(np.nanmean((mean - test.y) ** 2)), 0.0) for name, mean in said.items()}
