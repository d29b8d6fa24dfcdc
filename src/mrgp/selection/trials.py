"""A model and simple rules beside one another, at places that are held out of a sample."""

import dataclasses
import functools
from typing import Any

import numpy as np
from scipy.special import ndtr

from mrgp.data import Dataset
from mrgp.evaluation import attempt, tabulate
from mrgp.inference import LBFGS, Fit, Progress, Silent
from mrgp.inference.progress import Within
from mrgp.selection.comparing import split
from mrgp.selection.folds import make_folds
from mrgp.selection.rules import RULES, View
from mrgp.weighting import fit_weighted

FOLDS = 4
FEWEST, FEW = 12, 300
CLOSE = 1.02
BRIEF = LBFGS(max_steps=40, starts=1, candidates=0, tolerance=1e-6)


@dataclasses.dataclass(frozen=True)
class Trial:
    """Scores of a model at places held out, and of the simple rule that does best there.

    >>> worse, better = {"rmse": 2.0, "crps": 1.0}, {"rmse": 1.0, "crps": 0.5}
    >>> Trial("sites", 40, worse, "nearest", better).behind
    True
    """

    source: str
    count: int
    model: dict[str, float]
    rule: str
    simple: dict[str, float]

    @property
    def behind(self) -> bool:
        """Whether the rule is better, by more than a little, in rmse and in crps."""
        return all(self.model[s] > CLOSE * self.simple[s] for s in ("rmse", "crps"))

    @property
    def verdict(self) -> str:
        """The scores in a sentence."""
        meaning = RULES[self.rule].meaning if self.rule in RULES else self.rule
        scores = (
            f"the model has rmse {self.model['rmse']:.3g} and crps {self.model['crps']:.3g}, the"
            f" rule {self.simple['rmse']:.3g} and {self.simple['crps']:.3g}"
        )
        where = f"at the places of {self.count} values of {self.source} that were held out"
        if self.behind:
            return f"A simple rule is better {where}: {meaning} ({self.rule}); {scores}."
        shares = {s: self.model[s] / self.simple[s] for s in ("rmse", "crps") if self.simple[s]}
        told = " and ".join(f"{score} is {_beside(share)}" for score, share in shares.items())
        return f"Beside the best simple rule {where}, {meaning} ({self.rule}): {scores}; {told}."


@dataclasses.dataclass(frozen=True)
class Held:
    """Places of the target that are held out of a sample, one part after another."""

    splits: list[tuple[Dataset, Any]]
    process: tuple[str, str]
    key: int

    @classmethod
    def of(cls, sample: Dataset, process: tuple[str, str], key: int) -> "Held | None":
        """Hold a quarter of the target's places out; None where there are too few of them.

        Of few values each quarter is held out in turn: one alone would tell little.
        """
        target = sample[process]
        sites = target.support.clock is not None and target.support.dimension > 1
        if len(target) < FEWEST:
            return None
        fold = make_folds(target, "site" if sites else "random", FOLDS, key)
        turns = range(FOLDS if len(target) <= FEW else 1)
        splits = [split(sample, process, fold == turn) for turn in turns]
        splits = [(train, test) for train, test in splits if len(train[process]) and len(test)]
        return cls(splits, process, key) if splits else None

    @functools.cached_property
    def simple(self) -> tuple[str, dict[str, float]]:
        """The simple rule that does best at these places, and its scores."""
        rows = [_rules(train, test, self.process) for train, test in self.splits]
        found = {name: _pooled([row[name] for row in rows]) for name in rows[0]}
        best = min(found, key=lambda name: found[name]["rmse"])
        return best, found[best]

    def trial(self, recipe: Any, progress: Progress | None = None, of: str = "") -> Trial:
        """Fit a model to what is left each time, and score it at these places.

        Fits are brief; where a rule is better, they are done as those of all data are, since a
        brief search may end far from the best.
        """
        trial = self._trial(recipe, progress, of, BRIEF)
        if trial.behind and recipe.fitted == "whole":
            trial = self._trial(recipe, progress, f"{of} at length", None)
        return trial

    def _trial(
        self, recipe: Any, progress: Progress | None, of: str, optimiser: LBFGS | None
    ) -> Trial:
        told, number = progress or Silent(), len(self.splits)
        optimiser = optimiser if recipe.fitted == "whole" else None
        words = (f"held out{of}, fit {turn} of {number}" for turn in range(1, number + 1))
        models = [
            _tried(recipe, *pair, self.key, optimiser, Within(told, text))
            for pair, text in zip(self.splits, words, strict=True)
        ]
        count = sum(len(test) for _, test in self.splits)
        return Trial(self.process[0], count, _pooled(models), *self.simple)


def _beside(share: float) -> str:
    """Say how a score is beside another, of which it is a share.

    >>> _beside(1.052), _beside(0.9), _beside(1.001)
    ('5 % higher', '10 % lower', 'about the same')
    """
    if abs(share - 1.0) < 0.5 * (CLOSE - 1.0):
        return "about the same"
    return f"{100 * abs(share - 1.0):.0f} % {'higher' if share > 1.0 else 'lower'}"


def _tried(
    recipe: Any, train: Dataset, test: Any, key: int, optimiser: LBFGS | None, progress: Progress
) -> dict[str, float]:
    def fit() -> Fit:
        return fit_weighted(recipe, train, key, optimiser=optimiser, progress=progress)

    return attempt(fit, test, key).scores


def _rules(train: Dataset, test: Any, process: Any) -> dict[str, dict[str, float]]:
    view = View.of(train, process, None)
    served = {name: rule for name, rule in RULES.items() if view.serves(rule)}
    return {n: _scores(test.y, *view.fitted(r).predict(test.support)) for n, r in served.items()}


def _scores(y: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> dict[str, float]:
    sd = np.maximum(sd, 1e-9 * (1.0 + np.abs(mean).max()))
    z = (y - mean) / sd
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    crps = sd * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))
    mse = float(np.nanmean((y - mean) ** 2))
    return {"rmse": mse**0.5, "mse": mse, "crps": float(np.nanmean(crps)), "n": len(y)}


def _pooled(rows: list[dict[str, float]]) -> dict[str, float]:
    table = tabulate([{name: row[name] for name in ("rmse", "mse", "crps", "n")} for row in rows])
    return {name: table[name]["pooled"] for name in ("rmse", "crps")}
